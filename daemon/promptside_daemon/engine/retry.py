"""The machine of retries and limits: what follows a failure, and when (GA-7)."""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.events import RetryOrdered
from promptside_daemon.engine.pipeline import limits_for
from promptside_daemon.engine.stage import Stepped, answers_so_far, opening, queue, set_status
from promptside_daemon.engine.task import (
    Failure,
    Held,
    Order,
    Paused,
    RetryDue,
    StageRun,
    Stuck,
    Taken,
    Task,
    with_run,
)

RETRY_DELAYS_S = (1.0, 5.0, 20.0, 60.0, 300.0)
"""Before the first, second, … retry; the last holds for all that follow."""

NEVER_AGAIN = frozenset({"breach", "stopped"})
"""Kinds that are never tried again by themselves, whatever else is said of them."""

AFRESH = "The conversation was gone; started afresh with the prompt, the last output and your words."


def failed(task: Task, index: int, failure: Failure, order: Order, at: float) -> Stepped:
    """What follows a failed attempt: afresh, when a limit ends, after a delay, or a person."""
    run = task.stages[index]
    again = once_more(task, index, order, failure.sentence)
    if failure.kind == "session_gone" and order.resume:
        afresh = replace(again, cause=order.cause, resume="", failure=order.failure, note=AFRESH)
        return queue(task, index, at, afresh)
    if failure.kind in NEVER_AGAIN:
        return set_status(task, index, Stuck(since=at, failure=failure, order=again)), ()
    if failure.until is not None and failure.until > at:
        return _later(task, index, RetryDue(since=at, at=failure.until, order=again))
    if failure.retryable and run.retries < limits_for(task.limits, task.pipeline.stages[index]).retries:
        delay = RETRY_DELAYS_S[min(run.retries, len(RETRY_DELAYS_S) - 1)]
        task = with_run(task, index, replace(run, retries=run.retries + 1))
        return _later(task, index, RetryDue(since=at, at=at + delay, order=again, n=run.retries + 1))
    return set_status(task, index, Stuck(since=at, failure=failure, order=again)), ()


def ordered(task: Task, event: RetryOrdered) -> Stepped:
    """A person wants it tried again now; retries count anew."""
    index, run = task.current, task.run
    if run is None or not isinstance(run.status, Stuck | RetryDue):
        return task, ()  # decided before it went on
    task = replace(with_run(task, index, replace(run, retries=0)), limits=event.limits)
    return queue(task, index, event.at, run.status.order)


def woke(task: Task, at: float) -> Stepped | None:
    """The retry that is due; None if none is."""
    time, run = due(task), task.run
    if time is None or time > at or run is None or not isinstance(run.status, RetryDue):
        return None
    return queue(task, task.current, at, run.status.order)


def due(task: Task) -> float | None:
    """When the next attempt is made by itself."""
    if task.run is None or not isinstance(task.run.status, RetryDue) or not isinstance(task.life, Taken):
        return None
    return task.run.status.at


def once_more(task: Task, index: int, order: Order, failure: str) -> Order:
    """The same again in a new conversation, with all that the old one had been told in this stage.

    A stage that goes on with the conversation before it (ST-15) begins again where that one had ended.
    """
    run = task.stages[index]
    return Order(
        cause="retry",
        resume=opening(task, index),
        feedback=_said(run, order),
        failure=failure,
        answers=answers_so_far(task, run),
    )


def _said(run: StageRun, order: Order) -> str:
    """What persons have said in the conversation that ends with an order, the oldest first."""
    said = [order.feedback]
    begins = order.cause == "first" or not order.resume
    for attempt in reversed(run.attempts):
        if begins:
            break
        if attempt.order is not order:
            said.insert(0, attempt.order.feedback)
            begins = attempt.order.cause == "first" or not attempt.order.resume
    return "\n\n".join(dict.fromkeys(words for words in said if words))


def _later(task: Task, index: int, status: RetryDue) -> Stepped:
    if isinstance(task.life, Paused):
        return set_status(task, index, Held(since=status.since, order=status.order)), ()
    return set_status(task, index, status), ()
