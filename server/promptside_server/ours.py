"""The methods of our own, beside LSP's: what a client that announces `experimental.promptside` is told and may ask.

This is the one place where they are listed; nothing that a person can do depends on them.
"""

from __future__ import annotations

from msgspec import Struct

from promptside_protocol.output import OutputEntry
from promptside_protocol.views import Activity, TaskView


class TaskNews(Struct, frozen=True, kw_only=True):
    """A task as it is now, whole; told for each task that changed, and for all of them at the beginning."""

    project: str
    seq: int
    task: TaskView


class ActivityNews(Struct, frozen=True, kw_only=True):
    """What an agent does now; at most 30 times a second, and dropped while the editor is behind."""

    activity: Activity


class DaemonNews(Struct, frozen=True, kw_only=True):
    """Whether the daemon is there; while it isn't, everything that is shown is stale."""

    up: bool
    sentence: str = ""


class Follow(Struct, frozen=True, kw_only=True):
    """Ask for the output of an attempt from a cursor on; empty and 0 take the newest."""

    project: str = ""
    task: int = 0
    stage: str = ""
    attempt: int = 0
    cursor: int = 0


class Followed(Struct, frozen=True, kw_only=True):
    """The number that each `promptside/output` of this wish bears."""

    flow: int


class Unfollow(Struct, frozen=True, kw_only=True):
    """Ask for no more of it."""

    flow: int


class OutputNews(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt wrote up to `cursor`, since the last of this flow: no gap, no repeat.

    With `error` the flow has ended because the output can't be had.
    """

    flow: int
    project: str
    task: int
    stage: str
    attempt: int
    cursor: int
    entries: tuple[OutputEntry, ...]
    ended: bool = False
    error: str = ""


NOTIFICATIONS: dict[str, type[Struct]] = {
    "promptside/task": TaskNews,
    "promptside/activity": ActivityNews,
    "promptside/daemon": DaemonNews,
    "promptside/output": OutputNews,
}
REQUESTS: dict[str, tuple[type[Struct], type[Struct] | None]] = {
    "promptside/follow": (Follow, Followed),
    "promptside/unfollow": (Unfollow, None),
}
