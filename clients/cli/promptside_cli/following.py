"""One task followed over a connection: its newest view, and each attempt's output once, without a gap.

What is drawn is behind what was read by nothing: before a stage's end is told, its output is read to the last
line, by cursor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from promptside_cli.drawing import Drawing
from promptside_cli.events import Happened, between
from promptside_protocol.client import Connection
from promptside_protocol.notices import DaemonSays, FlowFailed, Notice, OutputCame, TaskChanged
from promptside_protocol.queries import FollowOutput, GetTask, Output, Unfollow, Watch
from promptside_protocol.views import TaskView

if TYPE_CHECKING:
    from promptside_protocol.client import Daemon


class Following:
    """A task, its drawing, and the flow of the attempt that runs."""

    def __init__(self, daemon: Daemon, drawing: Drawing, view: TaskView) -> None:
        self.daemon = daemon
        self.drawing = drawing
        self.view = view
        self._flow: int | None = None
        self._at: tuple[str, int] | None = None
        self._cursor = 0

    async def begin(self) -> None:
        """Draw the task as it is, and hear of it from now on."""
        view = self.view
        await self.daemon.call(Watch(project=view.project, cursors={view.project: view.seq}))
        self.drawing.begin(view)
        for stage in view.stages:
            if stage.attempts and stage.attempts[-1].status == "running":
                await self._tell(Happened(event="attempt_started", stage=stage, attempt=stage.attempts[-1].n))
        if view.waiting_for is not None:
            current = next((s for s in view.stages if s.id == view.waiting_for.stage), None)
            await self._tell(Happened(event=f"{view.waiting_for.kind}_waiting", stage=current))

    async def refresh(self) -> None:
        """Read the task: after an order its view is newer than the notices that came."""
        view = await self.daemon.call(GetTask(project=self.view.project, task=self.view.id))
        await self._became(view)

    async def take(self, notice: Notice | Connection) -> None:
        """One notice of the connection."""
        match notice:
            case TaskChanged(project=project, task=view):
                if project == self.view.project and view.id == self.view.id:
                    await self._became(view)
            case OutputCame(flow=flow) if flow == self._flow and self._at is not None:
                self._cursor = notice.cursor
                self.drawing.output(self.view, *self._at, notice.cursor, notice.entries)
            case FlowFailed(refusal=refusal):
                self.drawing.says(refusal.message)
            case DaemonSays(message=message):
                self.drawing.says(message)
            case Connection(state="lost"):
                self.drawing.says("The Promptside daemon stopped. Agents at work go on; nothing is lost.")
            case Connection(sentence=sentence):
                self.drawing.says(sentence or "The daemon is there again.")
            case _:
                pass  # of other tasks, or for those who asked for more

    async def _became(self, after: TaskView) -> None:
        before = self.view
        if after.seq <= before.seq:
            return
        self.view = after
        if self._at is not None and (self._ended(after) or after.waiting_for is not None):
            await self._catch_up()
        for happened in between(before, after):
            await self._tell(happened)

    async def _tell(self, happened: Happened) -> None:
        self.drawing.happened(happened, self.view)
        if happened.event == "attempt_started" and happened.stage is not None:
            self._at, self._cursor = (happened.stage.id, happened.attempt), 0
            await self._catch_up()

    async def _catch_up(self) -> None:
        """Read the attempt to where it has come, then follow it if it goes on."""
        if self._at is None:
            return
        if self._flow is not None:
            # What this flow still sends is read here instead, and passed over when it comes.
            flow, self._flow = self._flow, None
            await self.daemon.call(Unfollow(flow=flow))
        stage, attempt = self._at
        where = {"project": self.view.project, "task": self.view.id, "stage": stage, "attempt": attempt}
        while True:
            page = await self.daemon.call(Output(**where, cursor=self._cursor))  # type: ignore[arg-type]  # see where
            self._cursor = page.cursor
            self.drawing.output(self.view, stage, attempt, page.cursor, page.entries)
            if page.ended or (self._ended(self.view) and not page.entries):
                self._at = None
                return
            if not page.entries:
                break
        followed = await self.daemon.call(FollowOutput(**where, cursor=self._cursor))  # type: ignore[arg-type]  # see where
        self._flow = followed.flow

    def _ended(self, view: TaskView) -> bool:
        if self._at is None:
            return True
        stage = next((one for one in view.stages if one.id == self._at[0]), None)
        attempt = next((a for a in stage.attempts if a.n == self._at[1]), None) if stage is not None else None
        return attempt is None or attempt.status != "running"
