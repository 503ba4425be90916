"""The machine of a task's own life: paused and resumed, put away, broken by a fault of ours."""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.closing import end
from promptside_daemon.engine.events import StepFailed, TaskPaused, TaskResumed
from promptside_daemon.engine.stage import Stepped, queue, set_status, take
from promptside_daemon.engine.task import (
    Archived,
    EndReason,
    Failed,
    Failure,
    Held,
    Parked,
    Paused,
    Queued,
    RetryDue,
    Stuck,
    Taken,
    Task,
)

PUT_AWAY = Failure(kind="stopped", sentence="The task was put away.")


def paused(task: Task, event: TaskPaused) -> Stepped:
    """Hold everything: what waits to start is held, what runs is ended and keeps its session."""
    if not isinstance(task.life, Taken):
        return task, ()  # decided before it was done
    task = replace(task, life=Paused(since=event.at, by=task.life.by))
    run = task.run
    if run is not None and isinstance(run.status, Queued | RetryDue):
        return set_status(task, task.current, Held(since=event.at, order=run.status.order)), ()
    return end(task, "paused")


def resumed(task: Task, event: TaskResumed) -> Stepped:
    """Go on where it was paused; what is still ending goes on at its end."""
    if not isinstance(task.life, Paused):
        return task, ()  # it goes on already
    run = task.run
    task = replace(take(task, event.by, event.at), limits=event.limits)
    if run is not None and isinstance(run.status, Held):
        return queue(task, task.current, event.at, run.status.order)
    return task, ()


def put_away(task: Task, at: float, reason: str) -> Stepped:
    """Nothing more is done with it; what runs is ended, and everything it left stays."""
    task, effects = _over(task, at, "abandoned", PUT_AWAY)
    return replace(task, life=Archived(since=at, reason=reason)), effects


def broken(task: Task, event: StepFailed) -> Stepped:
    """A fault of ours: this task can't go on, the others can."""
    task, effects = _over(task, event.at, "broken", Failure(kind="fault", sentence=event.reason))
    return replace(task, life=Failed(since=event.at, reason=event.reason)), effects


def _over(task: Task, at: float, why: EndReason, failure: Failure) -> Stepped:
    task, effects = end(replace(task, taken_over=None), why)
    run = task.run
    if run is not None and isinstance(run.status, Queued | RetryDue | Held | Parked):
        task = set_status(task, task.current, Stuck(since=at, failure=failure))
    return task, effects
