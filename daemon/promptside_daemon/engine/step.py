"""`step(task, event) -> (task, effects)`: what follows from a fact. Total, pure, and the only way a task changes.

It routes; what an event means inside a machine is that machine's business.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from promptside_daemon.engine import attempt, decision, gate, life, retry, rollback, stage, terminal
from promptside_daemon.engine.closing import REASONS, end
from promptside_daemon.engine.effects import (
    CloseInput,
    Deliver,
    Effect,
    FollowAttempt,
    RestoreFiles,
    StartAttempt,
    StopAttempt,
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
    ConversationReturned,
    ConversationTaken,
    DaemonStarted,
    DraftChanged,
    FilesRestored,
    FilesUndone,
    GateApproved,
    Observed,
    Ordered,
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
    UnsavedCleared,
    WentBack,
    Woke,
)
from promptside_daemon.engine.stage import Stepped
from promptside_daemon.engine.task import (
    Archived,
    Draft,
    Failed,
    Queued,
    Ready,
    Running,
    StageRun,
    Taken,
    Task,
    Undoing,
    find_attempt,
    live_attempt,
    with_live,
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
    if isinstance(event, Observed) and _known(task, event):
        return task, ()
    before = task.wake_at
    task, effects = _routed(task, event)
    if isinstance(event, Observed):
        task = _heard(task, event)
    wake_at = due(task)
    if wake_at is not None and (wake_at != before or isinstance(event, DaemonStarted | Woke)):
        effects = (*effects, WakeAt(at=wake_at))
    return (replace(task, wake_at=wake_at) if wake_at != before else task), effects


def due(task: Task) -> float | None:
    """When the task next wants to be woken: for a retry, for a question to be parked, for an agent that stays."""
    parking = decision.parking_due(task) if isinstance(task.life, Taken) else None
    times = (retry.due(task), parking, attempt.overdue(task))
    return min((t for t in times if t is not None), default=None)


def _routed(task: Task, event: AnyEvent) -> Stepped:
    if isinstance(task.life, Archived | Failed) and not isinstance(event, _AFTER_THE_END):
        return task, ()  # decided or found out before the task was put away: it starts nothing any more
    if task.taken_over is not None and isinstance(event, Ordered) and not isinstance(event, _IN_A_TERMINAL):
        return task, ()  # decided before a person went on with it in a terminal
    match event:
        case TaskCreated():
            return task, (WriteDocument(document=f"{task.directory}/task.md"),)
        case TaskReadied():
            return (replace(task, life=Ready(since=event.at)) if isinstance(task.life, Draft) else task), ()
        case RunOrdered():
            return stage.ordered(task, event)
        case GateApproved():
            return gate.approved(task, event)
        case ApprovalTakenBack():
            return gate.taken_back(task, event)
        case RedoOrdered():
            return stage.redone(task, event)
        case RetryOrdered():
            return retry.ordered(task, event)
        case StageSkipped():
            return stage.skipped(task, event)
        case WentBack():
            return rollback.went_back(task, event)
        case TaskPaused():
            return life.paused(task, event)
        case TaskResumed():
            return life.resumed(task, event)
        case ConversationTaken():
            return terminal.taken(task, event)
        case ConversationReturned():
            return terminal.returned(task, event)
        case StopOrdered():
            return attempt.stopped(task, event)
        case PersonSaid():
            return attempt.said(task, event)
        case TaskAbandoned():
            return life.put_away(task, event.at, "abandoned")
        case TaskArchived():
            return life.put_away(task, event.at, "")
        case DraftChanged():
            return gate.draft_changed(task, event)
        case QuestionsAnswered():
            return decision.questions_answered(task, event)
        case PermissionAnswered():
            return decision.permission_answered(task, event)
        case FilesUndone(stage=name, attempt=n, paths=paths):
            task = replace(task, undoing=Undoing(stage=name, attempt=n, paths=paths))
            return task, (RestoreFiles(stage=name, attempt=n, paths=paths),)
        case SlotGranted():
            return stage.slot_granted(task, event)
        case AttemptStarted():
            return attempt.started(task, event)
        case SessionOpened():
            return attempt.session_opened(task, event)
        case QuestionsAsked():
            return decision.asked(task, event)
        case PermissionAsked():
            return decision.permission_asked(task, event)
        case PermissionSettled():
            return decision.permission_settled(task, event)
        case AskWithdrawn():
            return decision.withdrawn(task, event)
        case TurnEnded():
            return attempt.turn_ended(task, event)
        case Condemned():
            return end(task, "condemned", event.failure)
        case AttemptEnded():
            return attempt.ended(task, event)
        case ArtifactChanged():
            return gate.artifact_changed(task, event)
        case UnsavedCleared():
            return decision.unsaved_cleared(task, event)
        case FilesRestored():
            return attempt.restored(task, event)
        case Woke():
            return retry.woke(task, event.at) or attempt.woke(task, event.at) or decision.park(task, event.at)
        case DaemonStarted():
            return task, _again(task)
        case StepFailed():
            return life.broken(task, event)
        case _:
            assert_never(event)


_AFTER_THE_END = (Observed, Woke, DaemonStarted, FilesUndone, FilesRestored, TaskAbandoned, TaskArchived)
"""What can follow when a task is put away: its last process ends, its files are put back."""


_IN_A_TERMINAL = (ConversationReturned, DraftChanged)
"""What a person can order while they are at it in a terminal."""


def _again(task: Task) -> tuple[Effect, ...]:
    """Every effect that may not have happened when the daemon before this one ended."""
    effects: list[Effect] = []
    alive = live_attempt(task)
    if alive is not None and alive.live is not None:
        found = find_attempt(task, alive.id)
        owner = found[1].id if found is not None else ""
        if alive.started is None:
            effects.append(StartAttempt(stage=owner, attempt=alive.id))
        effects += [FollowAttempt(stage=owner, attempt=alive.id), Deliver(attempt=alive.id)]
        if alive.live.closed is not None:
            effects.append(CloseInput(attempt=alive.id))
        elif alive.live.ending is not None:
            effects.append(StopAttempt(attempt=alive.id, reason=REASONS[alive.live.ending.why]))
    if isinstance(task.life, Archived | Failed):
        return tuple(effects)
    run = task.run
    if run is not None and isinstance(run.status, Queued) and alive is None:
        effects.append(WantSlot(stage=run.id))
    effects.append(WriteDocument(document=f"{task.directory}/task.md", only_if_missing=True))
    if run is not None and run.form is not None and not isinstance(run.status, Running):
        effects.append(WriteDocument(document=run.form.document, only_if_missing=True))
    if task.questions is not None:
        effects.append(WriteDocument(document=task.questions.document, only_if_missing=True))
    if task.undoing is not None:
        undoing = task.undoing
        effects.append(RestoreFiles(stage=undoing.stage, attempt=undoing.attempt, paths=undoing.paths))
    return tuple(effects)


def _known(task: Task, event: Observed) -> bool:
    """Whether a line was told before: a transcript is read from its beginning after a restart."""
    found = find_attempt(task, event.attempt)
    live = found[2].live if found is not None else None
    if live is None:
        return True  # the attempt is over, or another task's
    if event.offset == live.read_to:
        return event.offset > 0 and _name(event) in live.heard
    return 0 < event.offset < live.read_to


def _heard(task: Task, event: Observed) -> Task:
    found = find_attempt(task, event.attempt)
    live = found[2].live if found is not None else None
    if found is None or live is None or event.offset == 0 or event.offset < live.read_to:
        return task
    heard = live.heard if event.offset == live.read_to else ()
    return with_live(task, found[2], read_to=event.offset, heard=(*heard, _name(event)))


def _name(event: Observed) -> str:
    """What tells an event from the others of one line."""
    request = getattr(event, "request", "")
    return f"{event.__struct_config__.tag} {request}".rstrip()
