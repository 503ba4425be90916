"""`step(task, event) -> (task, effects)`: what follows from a fact. Total, pure, and the only way a task changes.

It routes; what an event means inside a machine is that machine's business.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from promptside_daemon.engine import attempt as attempts
from promptside_daemon.engine import decision, gate, stage
from promptside_daemon.engine.effects import (
    Deliver,
    Effect,
    FollowAttempt,
    RestoreFiles,
    StartAttempt,
    WakeAt,
    WantSlot,
    WriteDocument,
)
from promptside_daemon.engine.events import (
    AnyEvent,
    ApprovalTakenBack,
    ArtifactChanged,
    AskWithdrawn,
    AttemptEnded,
    AttemptStarted,
    Condemned,
    DaemonStarted,
    DraftChanged,
    FilesRestored,
    FilesUndone,
    GateApproved,
    Observed,
    PermissionAnswered,
    PermissionAsked,
    PermissionSettled,
    PersonSaid,
    QuestionsAnswered,
    QuestionsAsked,
    RedoOrdered,
    RetryOrdered,
    RunOrdered,
    SessionOpened,
    SlotGranted,
    StageSkipped,
    StepFailed,
    StopOrdered,
    TaskAbandoned,
    TaskArchived,
    TaskCreated,
    TaskPaused,
    TaskReadied,
    TaskResumed,
    TurnEnded,
    WentBack,
    Woke,
)
from promptside_daemon.engine.stage import STOPPED, Stepped
from promptside_daemon.engine.task import (
    Archived,
    Draft,
    Ending,
    Failed,
    Held,
    Interrupt,
    Order,
    Parked,
    Paused,
    Queued,
    Ready,
    RetryDue,
    Running,
    SayText,
    Skipped,
    StageRun,
    Stuck,
    Taken,
    Task,
    find_attempt,
    live_attempt,
    with_run,
)


def born(event: TaskCreated) -> Task:
    """The task that a creation makes; the only event that has no task before it."""
    return Task(
        id=event.id,
        project=event.project,
        slug=event.slug,
        title=event.title,
        description=event.description,
        kind=event.kind,
        work_type=event.work_type,
        priority=event.priority,
        criteria=event.criteria,
        files=event.files,
        agent=event.agent,
        created=event.at,
        pipeline=event.pipeline,
        limits=event.limits,
        life=Draft(since=event.at) if event.draft else Ready(since=event.at),
        stages=tuple(StageRun(id=s.id) for s in event.pipeline.stages),
    )


def step(task: Task, event: AnyEvent) -> Stepped:
    """The task after an event, and what is to be done; the time it wants to be woken at is always among it."""
    before = task.wake_at
    if isinstance(event, Observed) and _known(task, event):
        return task, ()
    task, effects = _step(task, event)
    if isinstance(event, Observed):
        task = _read(task, event)
    wake_at = due(task)
    if wake_at is not None and (wake_at != before or isinstance(event, DaemonStarted)):
        effects = (*effects, WakeAt(at=wake_at))
    return (replace(task, wake_at=wake_at) if wake_at != before else task), effects


def due(task: Task) -> float | None:
    """When the task next wants to be woken: a retry that is due, a question that is to be parked."""
    if not isinstance(task.life, Taken):
        return None
    times = [t for t in (decision.parking_due(task),) if t is not None]
    if task.run is not None and isinstance(task.run.status, RetryDue):
        times.append(task.run.status.at)
    return min(times, default=None)


def _step(task: Task, event: AnyEvent) -> Stepped:
    match event:
        case TaskCreated():
            return task, (WriteDocument(document=f"{task.directory}/task.md"),)
        case TaskReadied():
            return replace(task, life=Ready(since=event.at)), ()
        case RunOrdered():
            return _run_ordered(task, event)
        case GateApproved():
            return gate.approved(task, event)
        case ApprovalTakenBack():
            return gate.taken_back(task, event)
        case RedoOrdered():
            return _redo_ordered(task, event)
        case RetryOrdered():
            return _retry_ordered(task, event)
        case StageSkipped():
            return _skipped(task, event)
        case WentBack():
            task = replace(decision.withdraw(task), life=Taken(since=event.at, by=event.by))
            return stage.went_back(task, event.stage, event.reason, event.at)
        case TaskPaused():
            return _paused(task, event)
        case TaskResumed():
            return _resumed(task, event)
        case StopOrdered():
            return _stopped(task, event)
        case PersonSaid():
            return _said(task, event)
        case TaskAbandoned():
            return _put_away(task, event.at, "abandoned")
        case TaskArchived():
            return _put_away(task, event.at, "")
        case DraftChanged():
            return gate.draft_changed(task, event)
        case QuestionsAnswered():
            return decision.questions_answered(task, event)
        case PermissionAnswered():
            return decision.permission_answered(task, event)
        case FilesUndone():
            return task, (RestoreFiles(stage=event.stage, attempt=event.attempt, paths=event.paths),)
        case SlotGranted():
            return stage.slot_granted(task, event.stage, event.attempt, event.at)
        case AttemptStarted():
            return attempts.started(task, event)
        case SessionOpened():
            return attempts.session_opened(task, event)
        case QuestionsAsked():
            return decision.asked(task, event)
        case PermissionAsked():
            return decision.permission_asked(task, event)
        case PermissionSettled():
            return decision.permission_settled(task, event)
        case AskWithdrawn():
            return decision.withdrawn(task, event)
        case TurnEnded():
            return attempts.turn_ended(task, event)
        case Condemned():
            return stage.end_live(task, Ending(why="condemned", failure=event.failure), event.failure.kind)
        case AttemptEnded():
            return attempts.ended(task, event)
        case ArtifactChanged():
            return gate.artifact_changed(task, event)
        case FilesRestored():
            return task, ()  # a record: the files are back, the task is as it was
        case Woke():
            return _woke(task, event)
        case DaemonStarted():
            return task, _again(task)
        case StepFailed():
            return replace(task, life=Failed(since=event.at, reason=event.reason)), ()
        case _:
            assert_never(event)


def _run_ordered(task: Task, event: RunOrdered) -> Stepped:
    index, run = task.current, task.run
    if run is None:
        return task, ()  # every stage is passed: there is nothing to run
    life = Taken(since=event.at, by=event.by) if isinstance(task.life, Draft | Ready) else task.life
    task = replace(task, life=life, on_ask=event.on_ask, stage_only=event.stage_only, limits=event.limits)
    task = with_run(task, index, replace(run, input=event.input, retries=0))
    return stage.queue(task, index, event.at, Order())


def _redo_ordered(task: Task, event: RedoOrdered) -> Stepped:
    index, run = task.current, task.run
    if run is None:
        return task, ()  # decided before the last stage was passed
    task = decision.withdraw(task)
    resume = "" if event.fresh else stage.session(run)
    order = Order(cause="redo", resume=resume, feedback=event.feedback)
    task = with_run(task, index, replace(task.stages[index], retries=0))
    return stage.queue(task, index, event.at, order)


def _retry_ordered(task: Task, event: RetryOrdered) -> Stepped:
    index, run = task.current, task.run
    if run is None:
        return task, ()  # decided before the last stage was passed
    failure = run.last.failure.sentence if run.last and run.last.failure else ""
    order = replace(stage.last_order(run), cause="retry", resume="", failure=failure, note="")
    task = with_run(task, index, replace(run, retries=0))
    return stage.queue(task, index, event.at, order)


def _skipped(task: Task, event: StageSkipped) -> Stepped:
    index = task.current
    task, effects = stage.end_live(decision.withdraw(task), Ending(why="skipped"), "skipped")
    task = stage.set_status(task, index, Skipped(at=event.at, by=event.by, reason=event.reason))
    task, more = stage.enter(task, index + 1, event.at)
    return task, effects + more


def _paused(task: Task, event: TaskPaused) -> Stepped:
    index, run = task.current, task.run
    by = stage.taken(task, event.by)
    task = replace(task, life=Paused(since=event.at, by=by))
    if run is None:
        return task, ()  # nothing runs after the last stage
    if isinstance(run.status, Queued):
        return stage.set_status(task, index, Held(since=event.at, order=run.status.order)), ()
    if isinstance(run.status, RetryDue):
        return stage.set_status(task, index, Held(since=event.at, order=run.status.order)), ()
    return stage.end_live(task, Ending(why="paused"), "paused")


def _resumed(task: Task, event: TaskResumed) -> Stepped:
    index, run = task.current, task.run
    task = replace(task, life=Taken(since=event.at, by=stage.taken(task, event.by)))
    if run is not None and isinstance(run.status, Held):
        return stage.queue(task, index, event.at, run.status.order)
    return task, ()


def _stopped(task: Task, event: StopOrdered) -> Stepped:
    index, run = task.current, task.run
    task, effects = stage.end_live(decision.withdraw(task), Ending(why="stopped"), "stopped")
    if run is not None and isinstance(run.status, Queued | RetryDue | Parked | Held):
        task = stage.set_status(task, index, Stuck(since=event.at, failure=STOPPED))
    return task, effects


def _said(task: Task, event: PersonSaid) -> Stepped:
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None:
        return task, ()  # it ended while the words were on their way
    task = stage.with_live(task, attempt, replace(attempt.live, said=attempt.live.said + 1))
    task = decision.withdraw(task)
    task, first = decision.send(task, attempt, Interrupt(number=0))
    task, _ = decision.send(task, attempt, SayText(number=0, text=event.text))
    return task, first


def _put_away(task: Task, at: float, reason: str) -> Stepped:
    index, run = task.current, task.run
    task, effects = stage.end_live(decision.withdraw(task), Ending(why="abandoned"), "abandoned")
    if run is not None and isinstance(run.status, Queued | RetryDue):
        task = stage.set_status(task, index, Stuck(since=at, failure=STOPPED))
    return replace(task, life=Archived(since=at, reason=reason)), effects


def _woke(task: Task, event: Woke) -> Stepped:
    if task.run is not None and isinstance(task.run.status, RetryDue) and task.run.status.at <= event.at:
        return stage.queue(task, task.current, event.at, task.run.status.order)
    return decision.park(task, event.at)


def _again(task: Task) -> tuple[Effect, ...]:
    """Every effect that may not have happened when the daemon before this one ended."""
    effects: list[Effect] = []
    attempt = live_attempt(task)
    if attempt is not None:
        found = find_attempt(task, attempt.id)
        owner = found[1].id if found else ""
        if attempt.started is None:
            effects.append(StartAttempt(stage=owner, attempt=attempt.id))
        effects += [FollowAttempt(stage=owner, attempt=attempt.id), Deliver(attempt=attempt.id)]
    run = task.run
    if run is not None and isinstance(run.status, Queued) and attempt is None:
        effects.append(WantSlot(stage=run.id))
    if run is not None and run.form is not None and not isinstance(run.status, Running):
        effects.append(WriteDocument(document=run.form.document, only_if_missing=True))
    if task.questions is not None:
        effects.append(WriteDocument(document=task.questions.document, only_if_missing=True))
    return tuple(effects)


def _known(task: Task, event: Observed) -> bool:
    """Whether a line was told before: a transcript is read from its beginning after a restart."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return True
    live = found[2].live
    return live is None or (event.offset > 0 and event.offset <= live.read_to)


def _read(task: Task, event: Observed) -> Task:
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None or event.offset <= found[2].live.read_to:
        return task
    return stage.with_live(task, found[2], replace(found[2].live, read_to=event.offset))
