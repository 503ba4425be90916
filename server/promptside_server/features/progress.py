"""Running stages as work-done progress, which every editor shows in its own way; cancelling one stops the stage."""

from __future__ import annotations

import logging

from lsprotocol import types
from msgspec import Struct
from pygls.exceptions import JsonRpcException

from promptside_protocol.commands import Stop
from promptside_protocol.errors import PromptsideError
from promptside_protocol.notices import ActivityChanged, Notice
from promptside_protocol.views import StageView, TaskView
from promptside_server import shared
from promptside_server.features.commands import sentence
from promptside_server.pace import Pace
from promptside_server.server import Server

log = logging.getLogger(__name__)

REPORT_SECONDS = 0.25
"""Nobody reads faster, and an editor that shows each line in turn is not flooded."""
LINE = 120


class Shown(Struct, kw_only=True):
    """A progress that the editor has, or will have once it has agreed to the token."""

    token: str
    task: TaskView
    stage: StageView
    began: bool = False
    over: str | None = None
    """The last word, once there is one."""
    line: str = ""
    told: str = ""


def register(server: Server) -> None:
    """Follow the tasks, and listen for cancel."""
    progress = Progress(server)
    server.on_task.append(progress.task)
    server.on_notice.append(progress.notice)
    shared.on(server, types.WINDOW_WORK_DONE_PROGRESS_CANCEL, progress.cancel)


class Progress:
    """One progress for each attempt that runs in a folder which is open."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._shown: dict[str, Shown] = {}
        self._pace = Pace(server, self._report, every=REPORT_SECONDS)

    def task(self, task: TaskView) -> None:
        """Begin what has begun, end what has ended."""
        if not self._server.editor.progress:
            return
        running = {}
        if self._server.has_open(task.project):
            running = {
                f"promptside/{task.project}/{task.id}/{stage.id}/{attempt.n}": stage
                for stage in task.stages
                for attempt in stage.attempts
                if attempt.status == "running"
            }
        for token, stage in running.items():
            if token not in self._shown:
                shown = self._shown[token] = Shown(token=token, task=task, stage=stage)
                self._server.do(self._begin(shown))
        for token, shown in tuple(self._shown.items()):
            if (shown.task.project, shown.task.id) == (task.project, task.id) and token not in running:
                self._end(shown, task)

    def notice(self, notice: Notice) -> None:
        """Note what an agent does now."""
        if not isinstance(notice, ActivityChanged):
            return
        now = notice.activity
        shown = self._shown.get(f"promptside/{now.project}/{now.task}/{now.stage}/{now.attempt}")
        if shown is not None and now.line:
            shown.line = now.line.partition("\n")[0][:LINE]
            self._pace.wake()

    async def cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The person wants the stage to stop."""
        shown = self._shown.get(str(params.token))
        if shown is None:
            return  # it has ended meanwhile
        try:
            await self._server.link.call(Stop(project=shown.task.project, task=shown.task.id))
        except PromptsideError as error:
            self._server.say(types.MessageType.Warning, sentence(error))

    async def _begin(self, shown: Shown) -> None:
        try:
            await self._server.work_done_progress.create_async(shown.token)
        except JsonRpcException as error:
            log.warning("the editor shows no progress: %s", error)
            self._shown.pop(shown.token, None)
            return
        if shown.over is not None:
            self._server.work_done_progress.tokens.pop(shown.token, None)
            return  # it was over before the editor agreed
        shown.began = True
        title = f"{shown.stage.name}: {shown.task.title}"
        self._server.work_done_progress.begin(
            shown.token,
            types.WorkDoneProgressBegin(title=title, cancellable=True, message=shown.line or None),
        )
        shown.told = shown.line

    def _report(self) -> None:
        for shown in self._shown.values():
            if shown.began and shown.line != shown.told:
                shown.told = shown.line
                self._server.work_done_progress.report(
                    shown.token, types.WorkDoneProgressReport(message=shown.line)
                )

    def _end(self, shown: Shown, task: TaskView) -> None:
        del self._shown[shown.token]
        stage = next((s for s in task.stages if s.id == shown.stage.id), shown.stage)
        shown.over = LAST.get(stage.status, "")
        if shown.began:
            self._server.work_done_progress.end(
                shown.token, types.WorkDoneProgressEnd(message=shown.over or None)
            )
            self._server.work_done_progress.tokens.pop(shown.token, None)


LAST = {"waiting": "It waits for you.", "failed": "It failed.", "approved": "It is done."}
