"""Where the reader of a flow stands: opened again there, it has no gap and no repeat (CW-16)."""

from __future__ import annotations

import msgspec

from promptside_protocol.notices import CaughtUp, EventHappened, Notice, OutputCame, ProjectGone, TaskChanged
from promptside_protocol.queries import FollowOutput, Watch


class Flow:
    """An open flow; its number is the reader's own and stays when the daemon gives it another."""

    def __init__(self, number: int, query: Watch | FollowOutput) -> None:
        self.number = number
        self.ended = False
        self._query = query
        self._cursors = dict(query.cursors) if isinstance(query, Watch) else {}

    def again(self) -> Watch | FollowOutput:
        """The question that goes on where this flow stands."""
        if isinstance(self._query, Watch):
            return msgspec.structs.replace(self._query, cursors=dict(self._cursors))
        return self._query

    def noticed(self, notice: Notice) -> None:
        """Note where the flow stands with this notice."""
        match notice:
            case TaskChanged() | EventHappened() | CaughtUp():
                self._cursors[notice.project] = notice.seq
            case ProjectGone(project=project):
                self._cursors.pop(project, None)
            case OutputCame():
                self.ended = notice.ended
                self._query = FollowOutput(
                    project=self._query.project,
                    task=notice.task,
                    stage=notice.stage,
                    attempt=notice.attempt,
                    cursor=notice.cursor,
                )
            case _:
                pass  # nothing durable: what was missed is not missed
