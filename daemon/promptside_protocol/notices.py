"""What the daemon tells without being asked again, one Struct each; the tag is the method.

Durable notices carry `seq`, which is the cursor to come back with; the others may be dropped when late.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from promptside_protocol.errors import Refusal
from promptside_protocol.output import OutputEntry
from promptside_protocol.views import Activity, TaskView


class TaskChanged(Struct, frozen=True, kw_only=True, tag="taskChanged", tag_field="type"):
    """A task as it is after `seq`."""

    flow: int
    project: str
    seq: int
    task: TaskView


class CaughtUp(Struct, frozen=True, kw_only=True, tag="caughtUp", tag_field="type"):
    """The flow has sent everything up to `seq`; what follows is live.

    It comes again when something changed that belongs to no task, such as a permission for good that was removed.
    """

    flow: int
    project: str
    seq: int


class ProjectGone(Struct, frozen=True, kw_only=True, tag="projectGone", tag_field="type"):
    """A project was removed, or another database is in its place: what was told of its tasks holds no longer."""

    flow: int
    project: str


class EventHappened(Struct, frozen=True, kw_only=True, tag="event", tag_field="type"):
    """A fact of the journal (CW-22), for those who asked for events."""

    flow: int
    project: str
    seq: int
    at: float
    task: int
    kind: str
    body: dict[str, Any]


class OutputCame(Struct, frozen=True, kw_only=True, tag="output", tag_field="type"):
    """What an attempt wrote since the last notice of this flow; `ended` when nothing will follow."""

    flow: int
    task: int
    stage: str
    attempt: int
    cursor: int
    entries: tuple[OutputEntry, ...]
    ended: bool = False


class ActivityChanged(Struct, frozen=True, kw_only=True, tag="activity", tag_field="type"):
    """What the agent does now."""

    flow: int
    activity: Activity


class FlowFailed(Struct, frozen=True, kw_only=True, tag="flowFailed", tag_field="type"):
    """A flow can't be opened or went wrong, and has ended; what is asked for again may work."""

    flow: int
    refusal: Refusal


class DaemonSays(Struct, frozen=True, kw_only=True, tag="daemon", tag_field="type"):
    """The daemon's own state: it is about to end, was replaced, or a project can't be read."""

    state: Literal["stopping", "replaced", "warning"]
    message: str


Notice = (
    TaskChanged
    | CaughtUp
    | ProjectGone
    | EventHappened
    | OutputCame
    | ActivityChanged
    | FlowFailed
    | DaemonSays
)
NOTICES: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        TaskChanged, CaughtUp, ProjectGone, EventHappened, OutputCame, ActivityChanged, FlowFailed, DaemonSays,
    )
}  # fmt: skip
