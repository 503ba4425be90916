"""`decide(task, command, given) -> event`: whether an order is possible now, and as which fact.

It refuses with a reason or returns what happened; it changes nothing. `given` is what the loop had read for it.
"""

from __future__ import annotations

from typing import assert_never

from promptside_daemon.engine import approval, reply, terminal, unsaved
from promptside_daemon.engine.events import (
    AnyEvent,
    DraftChanged,
    FilesUndone,
    PersonSaid,
    RedoOrdered,
    RetryOrdered,
    RunOrdered,
    StageSkipped,
    StopOrdered,
    TaskAbandoned,
    TaskArchived,
    TaskPaused,
    TaskReadied,
    TaskResumed,
    WentBack,
)
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.standing import current, current_if_any, must_be_open, not_in, not_now
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    Attempt,
    AwaitsInput,
    Completed,
    Draft,
    Failed,
    Held,
    Parked,
    Passed,
    Paused,
    Queued,
    RetryDue,
    Running,
    StageRun,
    Stuck,
    Taken,
    Task,
    left_changes,
    live_attempt,
)
from promptside_protocol.commands import (
    Abandon,
    Allow,
    Answer,
    Approve,
    Archive,
    Deny,
    EditDraft,
    GiveBack,
    GoBack,
    Pause,
    Ready,
    Redo,
    Resume,
    Retry,
    Run,
    Say,
    SendAnswers,
    Skip,
    StageCommand,
    Stop,
    TakeBack,
    TakeOver,
    UndoFiles,
)
from promptside_protocol.errors import refused

__all__ = ["Given", "decide"]


def decide(task: Task, command: StageCommand, given: Given) -> AnyEvent:
    """The fact that an order becomes; raises `Refused` with a sentence and what to do instead."""
    event = _decided(task, command, given)
    unsaved.mind(task, command, event, given.unsaved)
    return event


def _decided(task: Task, command: StageCommand, given: Given) -> AnyEvent:
    at, by = given.at, given.by
    terminal.must_be_here(task, command)
    match command:
        case Ready():
            if not isinstance(task.life, Draft):
                raise refused("state", f"“{task.title}” is no draft.")
            return TaskReadied(at=at, by=by)
        case Run():
            return _run(task, command, given)
        case Approve():
            return approval.approve(task, command, given)
        case TakeBack():
            return approval.take_back(task, given)
        case Redo():
            return _redo(task, command, given)
        case Retry():
            return _retry(task, given)
        case Skip():
            return _skip(task, command, given)
        case GoBack():
            return _go_back(task, command, given)
        case Pause():
            return _pause(task, given)
        case Resume():
            if not isinstance(task.life, Paused):
                raise refused("state", f"“{task.title}” is not paused.")
            return TaskResumed(at=at, by=by, limits=given.limits)
        case TakeOver():
            return terminal.take_over(task, given)
        case GiveBack():
            return terminal.give_back(task, given)
        case Stop():
            return _stop(task, given)
        case Say():
            return _say(task, command, given)
        case Abandon():
            if isinstance(task.life, Archived | Completed):
                raise not_now(task)
            return TaskAbandoned(at=at, by=by)
        case Archive():
            return _archive(task, given)
        case UndoFiles():
            return _undo(task, command, given)
        case EditDraft():
            return _edit(task, command, given)
        case Answer():
            return reply.answer(task, command, given)
        case SendAnswers():
            return reply.send(task, command, given)
        case Allow():
            return reply.allow(task, command, given)
        case Deny():
            return reply.deny(task, command, given)
        case _:
            assert_never(command)


# --- stages ------------------------------------------------------------------------------------------


def _run(task: Task, command: Run, given: Given) -> RunOrdered:
    stage, run = current(task)
    match run.status:
        case Ahead() | AwaitsInput():
            return RunOrdered(
                at=given.at,
                by=given.by,
                input=command.input,
                stage_only=command.stage_only,
                on_ask=command.on_ask,
                limits=given.limits,
            )
        case Queued() | Running() if not task.open_decisions:
            raise refused("running", f"{stage.name} is running already.", f"promptside watch {task.id}")
        case RetryDue():
            raise refused(
                "retry-due", f"{stage.name} is tried again by itself.", f"promptside retry {task.id}"
            )
        case Stuck(failure=failure):
            raise refused(
                "failed",
                f"{stage.name} has failed: {failure.sentence}",
                f"promptside retry {task.id}, or promptside redo {task.id} -m “…”",
            )
        case _:
            raise refused("waits", f"{stage.name} waits for you.", f"promptside open {task.id}")


def _redo(task: Task, command: Redo, given: Given) -> RedoOrdered:
    stage, run = current(task)
    if not isinstance(run.status, AtGate | Stuck | Parked | RetryDue):
        raise not_in(task, stage, run)
    words = (command.feedback.strip(), *given.untold.notes)
    return RedoOrdered(
        at=given.at,
        by=given.by,
        feedback="\n\n".join(w for w in words if w),
        fresh=command.fresh,
        limits=given.limits,
        document=given.untold.document,
        shown=given.untold.shown,
        text=given.untold.text,
    )


def _retry(task: Task, given: Given) -> RetryOrdered:
    stage, run = current(task)
    if not isinstance(run.status, Stuck | RetryDue):
        raise refused("state", f"{stage.name} has not failed.", f"promptside redo {task.id} -m “…”")
    return RetryOrdered(at=given.at, by=given.by, limits=given.limits)


def _skip(task: Task, command: Skip, given: Given) -> StageSkipped:
    stage, run = current(task)
    if isinstance(run.status, Running | Queued):
        raise not_in(task, stage, run)
    return StageSkipped(at=given.at, by=given.by, reason=command.reason)


def _go_back(task: Task, command: GoBack, given: Given) -> WentBack:
    if isinstance(task.life, Archived | Failed | Paused | Draft):
        raise not_now(task)
    index = task.pipeline.index(command.stage)
    if index < 0:
        names = ", ".join(s.id for s in task.pipeline.stages[: task.current])
        raise refused("no-stage", f"There is no stage {command.stage}.", f"One of: {names or 'none'}")
    if index >= task.current:
        name = task.pipeline.stages[index].name
        raise refused("not-earlier", f"{name} is not an earlier stage.", f"promptside redo {task.id}")
    return WentBack(at=given.at, by=given.by, stage=command.stage, reason=command.reason)


# --- the task ----------------------------------------------------------------------------------------


def _pause(task: Task, given: Given) -> TaskPaused:
    must_be_open(task)
    if not isinstance(task.life, Taken):
        raise not_now(task)
    return TaskPaused(at=given.at, by=given.by)


def _stop(task: Task, given: Given) -> StopOrdered:
    if not isinstance(task.life, Paused):
        must_be_open(task)
    stage, run = current_if_any(task)
    if not isinstance(run.status, Running | Queued | RetryDue | Parked | Held):
        raise refused("not-running", f"{stage.name} is not running.")
    return StopOrdered(at=given.at, by=given.by)


def _say(task: Task, command: Say, given: Given) -> PersonSaid:
    must_be_open(task)
    instead = f"promptside redo {task.id} -m “…”"
    attempt, run = live_attempt(task), task.run
    if attempt is None or attempt.live is None or run is None or not isinstance(run.status, Running):
        raise refused("not-running", "The agent is not running.", instead)
    if attempt.started is None:
        raise refused("starting", "The agent is still starting.", "Try again in a moment.")
    if attempt.live.ending is not None or attempt.live.finished:
        raise refused("ending", "The agent is ending.", instead)
    if attempt.live.said:
        raise refused("unread", "The agent has not read your last message yet.", "Try again in a moment.")
    if not command.text.strip():
        raise refused("empty", "There is nothing to say.")
    files = f"\n\nLook at these files: {', '.join(command.attach)}" if command.attach else ""
    return PersonSaid(at=given.at, by=given.by, text=command.text + files)


def _archive(task: Task, given: Given) -> TaskArchived:
    if isinstance(task.life, Archived):
        raise refused("state", f"“{task.title}” is archived already.")
    if not isinstance(task.life, Completed | Failed):
        raise refused("state", f"“{task.title}” is not done.", f"promptside task abandon {task.id}")
    return TaskArchived(at=given.at, by=given.by)


# --- files -------------------------------------------------------------------------------------------


def _undo(task: Task, command: UndoFiles, given: Given) -> FilesUndone:
    run = task.run
    if live_attempt(task) is not None or (run is not None and isinstance(run.status, Queued | RetryDue)):
        raise refused("running", "The agent is at work in these files.", "Stop it first.")
    index = task.pipeline.index(command.stage) if command.stage else min(task.current, len(task.stages) - 1)
    if index < 0:
        raise refused("no-stage", f"There is no stage {command.stage}.")
    chosen = _attempt(task.stages[index], command.attempt)
    if chosen is None or not chosen.checkpoint or not chosen.changes:
        raise refused("nothing", "There is nothing to undo: that attempt changed no file.")
    if not left_changes(chosen) and not chosen.unlisted:
        raise refused("nothing", "There is nothing to undo: what that attempt changed was taken back.")
    if given.conflicts:
        raise refused(
            "changed-since",
            f"Somebody else has changed {', '.join(given.conflicts)} since. Nothing was undone.",
            "Undo single files by naming them.",
        )
    return FilesUndone(
        at=given.at, by=given.by, stage=task.stages[index].id, attempt=chosen.n, paths=command.paths
    )


def _attempt(run: StageRun, n: int) -> Attempt | None:
    return next((a for a in reversed(run.attempts) if n in (0, a.n)), None)


def _edit(task: Task, command: EditDraft, given: Given) -> DraftChanged:
    if isinstance(task.life, Archived | Failed | Completed):
        raise not_now(task)
    sheet = given.sheet
    owner = next(
        (i for i, r in enumerate(task.stages) if r.form and sheet and r.form.document == sheet.document), None
    )
    waits = task.questions is not None and sheet is not None and task.questions.document == sheet.document
    if sheet is None or (owner is None and not waits):
        raise refused("no-document", f"No form that waits is called {command.document}.")
    if owner is not None and not isinstance(task.stages[owner].status, AtGate | Passed):
        raise not_in(task, task.pipeline.stages[owner], task.stages[owner])
    return DraftChanged(
        at=given.at,
        by=given.by,
        document=sheet.document,
        answers=sheet.answers,
        shown=sheet.shown,
        text=sheet.text,
    )
