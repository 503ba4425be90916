"""The machine of one stage run: entered, run, queued, started, redone, skipped.

It knows nothing of gates' answers or of questions; those have machines of their own.
"""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.closing import withdraw
from promptside_daemon.engine.effects import Effect, StartAttempt, WantSlot, WriteDocument
from promptside_daemon.engine.events import RedoOrdered, RunOrdered, SlotGranted, StageSkipped
from promptside_daemon.engine.task import (
    Ahead,
    AtGate,
    Attempt,
    AwaitsInput,
    Completed,
    Draft,
    Held,
    Order,
    Parked,
    Paused,
    Person,
    Queued,
    Ready,
    RetryDue,
    Running,
    Skipped,
    StageRun,
    Status,
    Stuck,
    Taken,
    Task,
    find_stage,
    live_attempt,
    with_run,
)

Stepped = tuple[Task, tuple[Effect, ...]]


# --- reached and run ---------------------------------------------------------------------------------


def enter(task: Task, index: int, at: float) -> Stepped:
    """Reach a stage after the one before it passed."""
    if index >= len(task.stages):
        return replace(task, current=index, life=Completed(since=at)), ()
    task = replace(task, current=index)
    waits = index > 0 and (task.stage_only or task.pipeline.stages[index].input in ("both", "user"))
    if waits:
        return set_status(task, index, AwaitsInput(since=at)), ()
    return queue(task, index, at, Order(resume=opening(task, index)))


def ordered(task: Task, event: RunOrdered) -> Stepped:
    """Start the current stage, with what the person added."""
    index, run = task.current, task.run
    if run is None or not isinstance(run.status, Ahead | AwaitsInput):
        return task, ()  # it has been started, or every stage is passed
    if isinstance(task.life, Draft | Ready):
        task = take(task, event.by, event.at)
    task = replace(task, on_ask=event.on_ask, stage_only=event.stage_only, limits=event.limits)
    task = with_run(task, index, replace(run, input=event.input, retries=0))
    return queue(task, index, event.at, Order(resume=opening(task, index)))


def redone(task: Task, event: RedoOrdered) -> Stepped:
    """Do the stage again, with feedback, in the same conversation unless it is to be fresh (ST-8)."""
    index, run = task.current, task.run
    if run is None or not isinstance(run.status, AtGate | Stuck | Parked | RetryDue):
        return task, ()  # decided before it went on
    task = replace(withdraw(task), limits=event.limits)
    order = Order(cause="redo", resume="" if event.fresh else session(run), feedback=event.feedback)
    if not order.resume:
        order = replace(order, answers=answers_so_far(task, run))
    written: tuple[Effect, ...] = ()
    if run.form is not None and event.document == run.form.document:
        # The notes went with this order: they are not to be told again.
        form = replace(run.form, shown=event.shown, text=event.text, version=run.form.version + 1)
        run, written = replace(run, form=form), (WriteDocument(document=form.document),)
    task, effects = queue(with_run(task, index, replace(run, retries=0)), index, event.at, order)
    return task, (*written, *effects)


def skipped(task: Task, event: StageSkipped) -> Stepped:
    """Leave the current stage out; a task that was not started is not started by it."""
    index, run = task.current, task.run
    if run is None or isinstance(run.status, Running | Queued):
        return task, ()  # decided before it went on
    status = Skipped(at=event.at, by=event.by, reason=event.reason)
    task = with_run(withdraw(task), index, replace(formless(run), status=status))
    if isinstance(task.life, Draft | Ready) and index + 1 < len(task.stages):
        return replace(task, current=index + 1), ()
    return enter(task, index + 1, event.at)


# --- a slot, and an attempt --------------------------------------------------------------------------


def queue(task: Task, index: int, at: float, order: Order) -> Stepped:
    """Ask for a slot; while another attempt of the task is still ending, its end asks (no two share a tree)."""
    if isinstance(task.life, Paused):
        return set_status(task, index, Held(since=at, order=order)), ()
    task = set_status(task, index, Queued(since=at, order=order))
    if live_attempt(task) is not None:
        return task, ()
    return task, (WantSlot(stage=task.stages[index].id),)


def slot_granted(task: Task, event: SlotGranted) -> Stepped:
    """Begin the next attempt of a queued stage."""
    found = find_stage(task, event.stage)
    if found is None or found[0] != task.current or not isinstance(found[1].status, Queued):
        return task, ()  # the order was taken back while it waited for the slot
    if live_attempt(task) is not None:
        return task, ()  # its end asks for a slot again
    index, run = found
    order = found[1].status.order
    new = Attempt(n=len(run.attempts) + 1, id=event.attempt, order=order, queued=event.at, note=order.note)
    run = replace(run, status=Running(since=event.at), attempts=(*run.attempts, new), mark="")
    return with_run(task, index, run), (StartAttempt(stage=event.stage, attempt=event.attempt),)


# --- conversations -----------------------------------------------------------------------------------


def opening(task: Task, index: int) -> str:
    """The session in which a stage begins: that of the stage before it where it goes on (ST-15), else none."""
    if task.pipeline.stages[index].session == "new":
        return ""
    return next((s for run in reversed(task.stages[:index]) if (s := session(run))), "")


def session(run: StageRun) -> str:
    """The session that a redo goes on with: the newest that an attempt of this stage had; empty if none."""
    return next((a.session for a in reversed(run.attempts) if a.session), "")


def answers_so_far(task: Task, run: StageRun) -> str:
    """What a person has answered in this stage, for a conversation that has not heard it."""
    first = max((a.n for a in run.attempts if a.order.cause == "first"), default=1)
    return in_words(
        tuple(
            (d.text, d.answer)
            for d in task.decisions
            if d.stage == run.id and d.attempt >= first and d.status == "answered" and d.kind != "permission"
        )
    )


def in_words(answered: tuple[tuple[str, str], ...]) -> str:
    """Questions with their answers, as the agent is told them."""
    return "\n\n".join(f"You asked: {question}\nThe answer: {answer}" for question, answer in answered)


# --- what a stage is ---------------------------------------------------------------------------------


def document(task: Task, index: int) -> str:
    """Path of a stage's document, relative to the project: `NN-<stage>.md`, or the artifact's own name."""
    stage = task.pipeline.stages[index]
    return f"{task.directory}/{stage.artifact or f'{index + 1:02}-{stage.id}.md'}"


def set_status(task: Task, index: int, status: Status) -> Task:
    """The task with one stage in another status."""
    return with_run(task, index, replace(task.stages[index], status=status))


def formless(run: StageRun) -> StageRun:
    """The stage without its form; what comes next begins with a version that was not used."""
    return run if run.form is None else replace(run, form=None, formed=run.form.version + 1)


def unreached(run: StageRun) -> StageRun:
    """The stage as it was before it was reached: retries count anew (GA-7), attempts are kept."""
    return replace(formless(run), status=Ahead(), retries=0, mark="")


def take(task: Task, by: Person, at: float) -> Task:
    """The task under way; who has it keeps it."""
    if isinstance(task.life, Taken):
        return task
    owner = task.life.by if isinstance(task.life, Paused) else by
    return replace(task, life=Taken(since=at, by=owner))
