"""The machine of one stage run: entered, queued, running, failed and tried again, passed.

It knows nothing of gates' answers or of questions; those have machines of their own.
"""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.effects import Effect, StartAttempt, StopAttempt, WantSlot
from promptside_daemon.engine.pipeline import limits_for
from promptside_daemon.engine.task import (
    Ahead,
    Attempt,
    AwaitsInput,
    Completed,
    Ending,
    Failure,
    Live,
    Order,
    Person,
    Queued,
    RetryDue,
    Running,
    StageRun,
    Status,
    Stuck,
    Task,
    live_attempt,
    with_attempt,
    with_run,
)

RETRY_DELAYS_S = (1.0, 5.0, 20.0, 60.0, 300.0)
"""Before the first, second, … retry; the last holds for all that follow."""

STOPPED = Failure(kind="stopped", sentence="Stopped by you.", hint="Redo it with feedback, or retry it.")

Stepped = tuple[Task, tuple[Effect, ...]]


def document(task: Task, index: int) -> str:
    """Path of a stage's document, relative to the project: `NN-<stage>.md`, or the artifact's own name."""
    stage = task.pipeline.stages[index]
    return f"{task.directory}/{stage.artifact or f'{index + 1:02}-{stage.id}.md'}"


def set_status(task: Task, index: int, status: Status) -> Task:
    """The task with one stage in another status."""
    return with_run(task, index, replace(task.stages[index], status=status))


def enter(task: Task, index: int, at: float) -> Stepped:
    """Reach a stage after the one before it passed; retries count anew (GA-7)."""
    if index >= len(task.stages):
        return replace(task, current=index, life=Completed(since=at)), ()
    task = with_run(task, index, replace(task.stages[index], retries=0, mark=""))
    task = replace(task, current=index)
    waits = index > 0 and (task.stage_only or task.pipeline.stages[index].input in ("both", "user"))
    if waits:
        return set_status(task, index, AwaitsInput(since=at)), ()
    return queue(task, index, at, Order())


def queue(task: Task, index: int, at: float, order: Order) -> Stepped:
    """Ask for a slot; while another attempt of the task is still ending, its end asks (no two share a tree)."""
    task = set_status(task, index, Queued(since=at, order=order))
    if live_attempt(task) is not None:
        return task, ()
    return task, (WantSlot(stage=task.stages[index].id),)


def slot_granted(task: Task, stage: str, attempt: str, at: float) -> Stepped:
    """Begin the next attempt of a queued stage."""
    index = task.pipeline.index(stage)
    run = task.stages[index] if index >= 0 else None
    if run is None or index != task.current or not isinstance(run.status, Queued):
        return task, ()  # the order was taken back while it waited for the slot
    if live_attempt(task) is not None:
        return task, ()  # its end asks for a slot again
    order = run.status.order
    new = Attempt(n=len(run.attempts) + 1, id=attempt, order=order, queued=at, note=order.note)
    run = replace(run, status=Running(since=at), attempts=(*run.attempts, new))
    return with_run(task, index, run), (StartAttempt(stage=stage, attempt=attempt),)


def end_live(task: Task, ending: Ending, reason: str) -> Stepped:
    """Begin to end the live attempt, whichever stage it belongs to; the first reason given stands."""
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None:
        return task, ()
    if attempt.live.ending is None:
        task = with_live(task, attempt, replace(attempt.live, ending=ending))
    return task, (StopAttempt(attempt=attempt.id, reason=reason),)


def with_live(task: Task, attempt: Attempt, live: Live) -> Task:
    """The task with the live part of an attempt replaced."""
    for index, run in enumerate(task.stages):
        if any(a.id == attempt.id for a in run.attempts):
            return with_run(task, index, with_attempt(run, replace(attempt, live=live)))
    return task


def failed(task: Task, index: int, failure: Failure, order: Order, at: float) -> Stepped:
    """What follows a failed attempt: afresh, when a limit ends, after a delay, or a person (GA-7)."""
    run = task.stages[index]
    if failure.kind == "session_gone" and order.resume:
        note = "The conversation was gone; started afresh with the prompt, the last output and your words."
        return queue(task, index, at, replace(order, resume="", note=note))
    again = replace(order, cause="retry", resume="", failure=failure.sentence, note="")
    if failure.until is not None:
        return set_status(task, index, RetryDue(since=at, at=max(failure.until, at + 1), order=again)), ()
    if failure.retryable and run.retries < limits_for(task.limits, task.pipeline.stages[index]).retries:
        delay = RETRY_DELAYS_S[min(run.retries, len(RETRY_DELAYS_S) - 1)]
        task = with_run(task, index, replace(run, retries=run.retries + 1))
        return set_status(task, index, RetryDue(since=at, at=at + delay, order=again)), ()
    return set_status(task, index, Stuck(since=at, failure=failure)), ()


def last_order(run: StageRun) -> Order:
    """How the newest attempt was started; the plain order if there was none."""
    return run.last.order if run.last else Order()


def went_back(task: Task, stage: str, reason: str, at: float) -> Stepped:
    """Make an earlier stage the current one again; the later ones run again after it (GA-6, by a person)."""
    target = task.pipeline.index(stage)
    task, effects = end_live(task, Ending(why="gone_back"), "went back")
    for index in range(target + 1, len(task.stages)):
        task = with_run(
            task, index, replace(task.stages[index], status=Ahead(), form=None, retries=0, mark="")
        )
    task = replace(task, current=target)
    run = replace(task.stages[target], retries=0, mark="")
    task = with_run(task, target, run)
    if reason or run.form is None:
        order = Order(cause="redo" if run.attempts else "first", resume=session(run), feedback=reason)
        task, more = queue(task, target, at, order)
        return task, effects + more
    return task, effects


def session(run: StageRun) -> str:
    """The session that a redo goes on with: the newest that an attempt of this stage had; empty if none."""
    return next((a.session for a in reversed(run.attempts) if a.session), "")


def taken(task: Task, by: Person) -> Person:
    """Who the task belongs to now."""
    return getattr(task.life, "by", by)
