"""Where the reader of a flow stands: opened again there, it has no gap and no repeat (CW-16)."""

from __future__ import annotations

import msgspec

from promptside_protocol.notices import CaughtUp, EventHappened, Notice, OutputCame, TaskChanged
from promptside_protocol.queries import FollowOutput, Watch


class Flow:
    """An open flow; its number is the reader's own and stays when the daemon gives it another."""

    def __init__(self, number: int, query: Watch | FollowOutput) -> None:
        self.number = number
        self.ended = False
        self._query = query
        cursors = dict(query.cursors) if isinstance(query, Watch) else {}
        self._tasks = cursors
        self._events = dict(cursors)
        # What was seen when the flow was opened last. Tasks and events of one project share the cursor that
        # the daemon knows; where one was ahead, the difference comes again and is passed over here.
        self._tasks_before: dict[str, int] = {}
        self._events_before: dict[str, int] = {}

    def again(self) -> Watch | FollowOutput:
        """The question that goes on where this flow stands."""
        if isinstance(self._query, FollowOutput):
            return self._query
        self._tasks_before, self._events_before = dict(self._tasks), dict(self._events)
        cursors = dict(self._tasks)
        if self._query.events:
            cursors = {name: min(seq, self._events.get(name, 0)) for name, seq in self._tasks.items()}
        return msgspec.structs.replace(self._query, cursors=cursors)

    def takes(self, notice: Notice) -> bool:
        """Note where the flow stands with this notice; False if it was seen before."""
        match notice:
            case TaskChanged(project=project, seq=seq):
                if seq <= self._tasks_before.get(project, -1):
                    return False
                self._tasks[project] = seq
            case EventHappened(project=project, seq=seq):
                if seq <= self._events_before.get(project, -1):
                    return False
                self._events[project] = seq
            case CaughtUp(project=project, seq=seq):
                self._tasks[project] = max(seq, self._tasks.get(project, 0))
                self._events[project] = max(seq, self._events.get(project, 0))
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
        return True
