"""Running stages as work-done progress, which every editor shows in its own way; cancelling one stops the stage.

What is shown is of now: when the daemon is away its progresses end, and begin again when it is back.
"""

from __future__ import annotations

import itertools
import logging

from lsprotocol import types
from msgspec import Struct
from pygls.exceptions import JsonRpcException

from promptside_protocol.commands import Stop
from promptside_protocol.errors import PromptsideError
from promptside_protocol.notices import ActivityChanged, Notice
from promptside_protocol.views import Activity, StageView, TaskView
from promptside_server import shared
from promptside_server.features.commands import sentence
from promptside_server.pace import Pace
from promptside_server.server import Server

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.25
"""Nobody reads faster, and an editor that shows each line in turn is not flooded."""
LINE = 120
DOING = {
    "Agent": "asking a subagent",
    "Ask": "asking",
    "Edit": "editing",
    "Fetch": "fetching",
    "Find": "finding",
    "Read": "reading",
    "Run": "running",
    "Search": "searching",
    "Write": "writing",
}
"""The verbs of what an agent does, as what it is doing."""
ASKED = "Ask "
"""An agent that goes on has its answer."""
LAST = {"waiting": "It waits for you.", "failed": "It failed.", "approved": "It is done."}
AWAY = "The daemon is away; the agent goes on."
REMOVED = "The project was removed."

Attempt = tuple[str, int, str, int]
"""Project, task, stage and number."""


class Shown(Struct, kw_only=True):
    """A progress that the editor has, or will have once it has agreed to the token."""

    token: str
    project: str
    task: int
    stage: str
    title: str
    began: bool = False
    over: str | None = None
    """The last word, once there is one."""
    line: str = ""
    percentage: int | None = None
    told: tuple[str, int | None] = ("", None)


def register(server: Server) -> None:
    """Follow the tasks, and listen for cancel."""
    progress = Progress(server)
    server.on_task.append(progress.task)
    server.on_notice.append(progress.notice)
    server.on_gone.append(progress.gone)
    server.on_link.append(progress.link)
    shared.on(server, types.WINDOW_WORK_DONE_PROGRESS_CANCEL, progress.cancel)


class Progress:
    """One progress for each attempt that runs in a folder which is open."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._shown: dict[Attempt, Shown] = {}
        self._count = itertools.count(1)
        self._pace = Pace(server, self._report, every=REPORT_SECONDS)

    def task(self, task: TaskView) -> None:
        """Begin what has begun, end what has ended."""
        if not self._server.editor.progress:
            return
        running: dict[Attempt, StageView] = {}
        # An agent that waits for an answer makes no progress: that it is the person's turn is said elsewhere.
        if self._server.has_open(task.project) and task.waiting_for is None:
            running = {
                (task.project, task.id, stage.id, attempt.n): stage
                for stage in task.stages
                for attempt in stage.attempts
                if attempt.status == "running"
            }
        for attempt, shown in tuple(self._shown.items()):
            if attempt[:2] == (task.project, task.id) and attempt not in running:
                stage = next((s for s in task.stages if s.id == shown.stage), None)
                self._end(attempt, LAST.get(stage.status, "") if stage is not None else "")
        for attempt, stage in running.items():
            if attempt not in self._shown:
                # Editors show title and message as one line; a second one names its task, to be told apart.
                title = f"{stage.name} #{task.id}" if self._shown else stage.name
                # A token is used once only, also if the same attempt is shown again.
                token = f"promptside/{next(self._count)}/{'/'.join(map(str, attempt))}"
                shown = Shown(
                    token=token,
                    project=task.project,
                    task=task.id,
                    stage=stage.id,
                    title=title,
                    line=task.title,
                )
                self._shown[attempt] = shown
                activity = self._server.mirror.activity(task)
                its = activity is not None and (activity.stage, activity.attempt) == attempt[2:]
                if activity is not None and its and not activity.line.startswith(ASKED):
                    _take(shown, activity)
                self._server.do(self._begin(shown))

    def notice(self, notice: Notice) -> None:
        """Note what an agent does now."""
        if isinstance(notice, ActivityChanged):
            now = notice.activity
            shown = self._shown.get((now.project, now.task, now.stage, now.attempt))
            if shown is not None:
                _take(shown, now)
                self._pace.wake()

    def gone(self, project: str) -> None:
        """The project was removed."""
        for attempt in [attempt for attempt in self._shown if attempt[0] == project]:
            self._end(attempt, REMOVED)

    def link(self, up: bool, _: str) -> None:
        """The daemon was lost, or found again."""
        if not up:
            for attempt in tuple(self._shown):
                self._end(attempt, AWAY)
            return
        for task in self._server.mirror.tasks():
            self.task(task)

    async def cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The person wants the stage to stop."""
        shown = next((s for s in self._shown.values() if s.token == str(params.token)), None)
        if shown is None:
            return  # it has ended meanwhile
        try:
            await self._server.link.call(Stop(project=shown.project, task=shown.task))
        except PromptsideError as error:
            self._server.say(types.MessageType.Warning, sentence(error))

    async def _begin(self, shown: Shown) -> None:
        try:
            await self._server.work_done_progress.create_async(shown.token)
        except JsonRpcException as error:
            log.warning("the editor shows no progress: %s", error)
            return  # it stays known: an editor that has refused once is not asked again for the same attempt
        if shown.over is not None:
            self._server.work_done_progress.tokens.pop(shown.token, None)
            return  # it was over before the editor agreed
        shown.began, shown.told = True, (shown.line, shown.percentage)
        self._server.work_done_progress.begin(
            shown.token,
            types.WorkDoneProgressBegin(
                title=shown.title,
                cancellable=True,
                message=shown.line or None,
                percentage=shown.percentage,
            ),
        )

    def _report(self) -> None:
        for shown in self._shown.values():
            if shown.began and (shown.line, shown.percentage) != shown.told:
                shown.told = (shown.line, shown.percentage)
                self._server.work_done_progress.report(
                    shown.token,
                    types.WorkDoneProgressReport(message=shown.line, percentage=shown.percentage),
                )

    def _end(self, attempt: Attempt, last: str) -> None:
        shown = self._shown.pop(attempt)
        shown.over = last
        if shown.began:
            self._server.work_done_progress.end(shown.token, types.WorkDoneProgressEnd(message=last or None))
            self._server.work_done_progress.tokens.pop(shown.token, None)


def _take(shown: Shown, now: Activity) -> None:
    if not now.line:
        return
    verb, _, what = now.line.partition("\n")[0].partition(" ")
    shown.line = f"{DOING.get(verb, verb)} {what.strip()}".strip()[:LINE]
    if now.steps:
        shown.percentage = 100 * now.step // now.steps
        # Many editors show a percentage only of a progress that began with one.
        shown.line = f"{shown.line} ({now.step} of {now.steps} steps)"
