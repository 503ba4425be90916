"""What goes into a project's database and comes out of it; bodies are bytes that only the engine reads."""

from __future__ import annotations

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True):
    """Something that happened, for the journal; the engine's event as bytes."""

    at: float
    kind: str
    body: bytes


class Summary(Struct, frozen=True, kw_only=True):
    """What tasks are searched, sorted and counted by; the rest is in their body."""

    state: str
    waiting: int
    """How much waits for a person."""
    running: int
    """How many attempts run."""
    title: str
    priority: int
    work_type: str
    created: float
    changed: float


class AttemptRow(Struct, frozen=True, kw_only=True):
    """What attempts are searched and summed by; None where nothing has been measured yet."""

    id: str
    task: int
    stage: str
    n: int
    status: str
    started: float | None = None
    ended: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    removed: bool = False
    """Whether retention took its directory (DA-9); set by `mark_removed` only."""


class NewRule(Struct, frozen=True, kw_only=True):
    """A permission given for good, and the decision it was given with (ST-14)."""

    rule: str
    task: int
    stage: str
    decision: str
    by: str
    client: str
    at: float


class RuleRow(NewRule, frozen=True, kw_only=True):
    """A rule as it is kept."""

    id: int


class Append(Struct, frozen=True, kw_only=True):
    """What one step of one task leads to.

    A task's first append has `expected_version` 0, the client's `key`, and the next free id as `task`.
    Task 0 is the project itself: facts about it have neither version nor row, so `summary` is None and `body`
    empty.
    """

    task: int
    expected_version: int
    events: tuple[Fact, ...]
    summary: Summary | None
    body: bytes
    key: str = ""
    attempts: tuple[AttemptRow, ...] = ()
    rules_added: tuple[NewRule, ...] = ()
    """A rule that is there already, with the same task, stage and decision, is not added again."""
    rules_removed: tuple[int, ...] = ()


class Appended(Struct, frozen=True, kw_only=True):
    """It is written, and will not be lost."""

    task: int
    version: int
    seq: int
    """Of the last of its facts."""


class Existing(Struct, frozen=True, kw_only=True):
    """A new task's key was used before: nothing was written, and this is the task it made then."""

    task: int
    seq: int


class Conflict(Struct, frozen=True, kw_only=True):
    """The task is at another version, or a new task's id is not the next one: load it and decide again."""

    task: int
    version: int
    """The one it is at; 0 if there is no such task."""


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task as it is after `seq`."""

    id: int
    version: int
    seq: int
    key: str
    state: str
    waiting: int
    running: int
    title: str
    priority: int
    work_type: str
    created: float
    changed: float
    body: bytes


class JournalRow(Struct, frozen=True, kw_only=True):
    """A fact and its place in the one order of its project."""

    seq: int
    at: float
    task: int
    kind: str
    body: bytes


class Counts(Struct, frozen=True, kw_only=True):
    """How many tasks are not archived, how many of them wait for a person, and how many run."""

    tasks: int
    waiting: int
    running: int
