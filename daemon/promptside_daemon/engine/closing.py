"""What is over before its time: a live attempt that is to end, and decisions that nobody waits for any more."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from promptside_daemon.engine.effects import Effect, StopAttempt
from promptside_daemon.engine.task import (
    Decision,
    Ending,
    EndReason,
    Failure,
    Task,
    live_attempt,
    with_attempt_of,
)

REASONS: dict[EndReason, str] = {
    "stopped": "stopped by a person",
    "paused": "paused",
    "parked": "its question is parked",
    "taken_back": "the approval before it was taken back",
    "gone_back": "the task went back to an earlier stage",
    "abandoned": "the task was put away",
    "broken": "a fault in Promptside",
    "condemned": "stopped by Promptside",
}
"""For the attempt's own record of its end."""

_YIELDING: frozenset[EndReason] = frozenset({"condemned", "paused", "parked"})
"""Endings after which the stage would go on; any other order of a person takes their place."""


def end(task: Task, why: EndReason, failure: Failure | None = None) -> tuple[Task, tuple[Effect, ...]]:
    """Begin to end the live attempt, whichever stage it belongs to, and settle what it has asked.

    Pausing parks what is open; every other end withdraws it. The first reason stands, unless the stage would
    go on after it and a person now wants it not to.
    """
    task = park_open(task) if why == "paused" else withdraw(task)
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None:
        return task, ()
    now = attempt.live.ending
    if now is None or (now.why in _YIELDING and why not in _YIELDING):
        ending = Ending(why=why, failure=failure or (now.failure if now is not None else None))
        task = with_attempt_of(task, replace(attempt, live=replace(attempt.live, ending=ending)))
    return task, (StopAttempt(attempt=attempt.id, reason=REASONS[why]),)


def park_open(task: Task) -> Task:
    """Keep what is open for after the end of the process that asked it."""
    return _each(task, lambda d: replace(d, status="parked", parked=True) if d.status == "open" else d)


def withdraw(task: Task, request: str | None = None) -> Task:
    """Close what is open without an answer; with a request only what still waits under it."""

    def closed(d: Decision) -> Decision:
        if request is None:
            return replace(d, status="withdrawn") if d.status in ("open", "parked") else d
        # What is parked waits for no process: the end of its turn takes nothing from it.
        mine = d.status == "open" and d.request == request
        return replace(d, status="withdrawn", by_agent=True) if mine else d

    task = _each(task, closed)
    return replace(task, questions=None) if task.questions and not task.open_questions else task


def _each(task: Task, change: Callable[[Decision], Decision]) -> Task:
    decisions = tuple(change(d) for d in task.decisions)
    return task if decisions == task.decisions else replace(task, decisions=decisions)
