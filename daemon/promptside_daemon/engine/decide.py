"""`decide(task, command, given) -> event`: whether an order is possible now, and as which fact.

It refuses with a reason or returns what happened; it changes nothing. `given` is what the loop had read for it.
"""

from __future__ import annotations

from typing import Any, assert_never

from msgspec import Struct, field

from promptside_daemon.engine.events import (
    AnyEvent,
    ApprovalTakenBack,
    DraftChanged,
    FilesUndone,
    GateApproved,
    PermissionAnswered,
    PersonSaid,
    QuestionsAnswered,
    RedoOrdered,
    Reply,
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
from promptside_daemon.engine.gate import Sheet, lacks
from promptside_daemon.engine.pipeline import Limits, Stage
from promptside_daemon.engine.reply import in_words, reply_to
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    AwaitsInput,
    Completed,
    Decision,
    Draft,
    Failed,
    FormState,
    Held,
    Parked,
    Passed,
    Paused,
    Person,
    Queued,
    Ready,
    RetryDue,
    Running,
    Skipped,
    StageRun,
    Stuck,
    Taken,
    Task,
    live_attempt,
)
from promptside_protocol import forms
from promptside_protocol.commands import (
    Abandon,
    Allow,
    Answer,
    Approve,
    Archive,
    Deny,
    EditDraft,
    GoBack,
    Pause,
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
    UndoFiles,
)
from promptside_protocol.commands import Ready as MarkReady
from promptside_protocol.errors import refused


class Given(Struct, frozen=True, kw_only=True):
    """What the loop read for one order before it was decided."""

    at: float
    by: Person
    limits: Limits = field(default_factory=Limits)
    sheet: Sheet | None = None
    """The form document that the order is about."""
    conflicts: tuple[str, ...] = ()
    """Paths that somebody else changed since the attempt that is to be undone."""
    clock: str = ""
    """Local time of what is told in refusals is formatted by the loop: `14:05`."""


def decide(task: Task, command: StageCommand, given: Given) -> AnyEvent:
    """The fact that an order becomes; raises `Refused` with a sentence and what to do instead."""
    at, by = given.at, given.by
    match command:
        case MarkReady():
            if not isinstance(task.life, Draft):
                raise refused("state", f"“{task.title}” is no draft.")
            return TaskReadied(at=at, by=by)
        case Run():
            return _run(task, command, given)
        case Approve():
            return _approve(task, command, given)
        case TakeBack():
            return ApprovalTakenBack(at=at, by=by, stage=_approval(task).id)
        case Redo():
            _, run = _redoable(task)
            return RedoOrdered(
                at=at, by=by, feedback=command.feedback, fresh=command.fresh or not run.attempts
            )
        case Retry():
            _retryable(task)
            return RetryOrdered(at=at, by=by)
        case Skip():
            stage, run = _current(task)
            if isinstance(run.status, Running | Queued):
                raise refused("running", f"Not possible now: {stage.name} is running.", "Stop it first.")
            return StageSkipped(at=at, by=by, reason=command.reason)
        case GoBack():
            return _go_back(task, command, given)
        case Pause():
            _open(task)
            if not isinstance(task.life, Taken):
                raise refused("state", f"“{task.title}” is not under way.")
            return TaskPaused(at=at, by=by)
        case Resume():
            if not isinstance(task.life, Paused):
                raise refused("state", f"“{task.title}” is not paused.")
            if live_attempt(task) is not None:
                raise refused("ending", "The agent is still ending. Try again in a moment.")
            return TaskResumed(at=at, by=by)
        case Stop():
            return _stop(task, given)
        case Say():
            return _say(task, command, given)
        case Abandon():
            if isinstance(task.life, Archived | Completed):
                raise refused("state", f"“{task.title}” is {_life(task)}.")
            return TaskAbandoned(at=at, by=by)
        case Archive():
            if isinstance(task.life, Archived):
                raise refused("state", f"“{task.title}” is archived already.")
            if not isinstance(task.life, Completed | Failed):
                raise refused("state", f"“{task.title}” is not done.", "Abandon it, if it is to be given up.")
            return TaskArchived(at=at, by=by)
        case UndoFiles():
            return _undo(task, command, given)
        case EditDraft():
            return _edit(task, command, given)
        case Answer():
            return _answer(task, command, given)
        case SendAnswers():
            return _send(task, command, given)
        case Allow():
            asked = _permission(task, command.decision)
            return PermissionAnswered(at=at, by=by, decision=asked.id, allowed=True, scope=command.scope)
        case Deny():
            asked = _permission(task, command.decision)
            return PermissionAnswered(at=at, by=by, decision=asked.id, allowed=False, text=command.text)
        case _:
            assert_never(command)


# --- stages ------------------------------------------------------------------------------------------


def _run(task: Task, command: Run, given: Given) -> AnyEvent:
    if isinstance(task.life, Draft):
        raise refused("draft", f"“{task.title}” is a draft.", f"promptside task ready {task.id}")
    stage, run = _current(task)
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


def _approve(task: Task, command: Approve, given: Given) -> AnyEvent:
    _open(task)
    stage, run, form = _gate(task, command.stage)
    sheet = given.sheet
    if sheet is None:
        raise refused("no-document", f"{stage.name} has no document to approve.")
    if command.shown and command.shown not in (sheet.shown, sheet.before):
        raise refused(
            "other-bytes",
            "This document is not what the daemon has. Nothing was approved.",
            "Look at it again, then approve.",
            sheet.difference,
        )
    if not command.shown and sheet.difference and not isinstance(form.definition, forms.TextDefinition):
        name = form.document.rsplit("/", 1)[-1]
        raise refused(
            "file-differs",
            f"{name} was changed outside of any editor that Promptside knows; such answers don't count.",
            f"promptside open {task.id}",
            sheet.difference,
        )
    if sheet.errors:
        line, text = sheet.errors[0]
        count = f"{len(sheet.errors)} line{'s' if len(sheet.errors) > 1 else ''}"
        raise refused(
            "form-grammar",
            f"The document has {count} that can't be read (line {line}: {text})",
            f"Mend it with promptside open {task.id}, then approve.",
        )
    if sheet.notes:
        raise refused(
            "notes",
            f"There {'are' if sheet.notes > 1 else 'is'} {sheet.notes} "
            f"note{'s' if sheet.notes > 1 else ''} for the agent in this document.",
            "Send them with redo, or remove them to approve.",
        )
    missing = lacks(stage, form, sheet.answers)
    if missing:
        raise refused("gate-lacks", f"Not approved: {' '.join(missing)}", f"promptside open {task.id}")
    if isinstance(run.status, Passed) and not run.status.void:
        raise refused("approved", _already(stage, run.status, given))
    return GateApproved(
        at=given.at,
        by=given.by,
        stage=run.id,
        answers=sheet.answers,
        shown=sheet.shown,
        text=sheet.text,
        note=command.note,
    )


def _gate(task: Task, wanted: str) -> tuple[Stage, StageRun, FormState]:
    """The stage whose gate an approval is for: the one that waits, or one whose approval became void."""
    voided = [
        i
        for i, r in enumerate(task.stages)
        if isinstance(r.status, Passed) and r.status.void and r.form is not None
    ]
    index = task.pipeline.index(wanted) if wanted else task.current
    if wanted and index < 0:
        raise refused("no-stage", f"There is no stage {wanted} in {task.pipeline.name}.")
    if not wanted and voided and (task.run is None or not isinstance(task.run.status, AtGate)):
        index = voided[0]
    if index >= len(task.stages):
        raise refused("done", f"“{task.title}” is done.")
    stage, run = task.pipeline.stages[index], task.stages[index]
    if isinstance(run.status, AtGate) and run.form is not None:
        return stage, run, run.form
    if isinstance(run.status, Passed) and run.form is not None:
        return stage, run, run.form
    if index > 0 and isinstance(run.status, Ahead | AwaitsInput | Queued | Running) and not wanted:
        before = task.stages[index - 1]
        if isinstance(before.status, Passed) and before.status.by is not None:
            name = task.pipeline.stages[index - 1].name
            raise refused(
                "approved",
                f"{name} was approved already, from {before.status.by.client}. Nothing was changed.",
            )
    raise refused("state", f"Not possible now: {_doing(task, stage, run)}")


def _already(stage: Stage, passed: Passed, given: Given) -> str:
    where = f" from {passed.by.client}" if passed.by else ""
    when = f", at {given.clock}" if given.clock else ""
    return f"{stage.name} was approved already{when}{where}. Nothing was changed."


def _approval(task: Task) -> StageRun:
    """The approval that can be taken back: the newest, while the stage after it has not run."""
    if isinstance(task.life, Archived | Failed | Paused):
        raise refused("state", f"“{task.title}” is {_life(task)}.")
    index = task.current - 1
    if index < 0 or not isinstance(task.stages[index].status, Passed):
        raise refused("no-approval", "There is no approval to take back.")
    before = task.stages[index]
    if isinstance(before.status, Passed) and before.status.by is None or before.form is None:
        raise refused("no-approval", "That stage passed by itself; there is no approval to take back.")
    if task.run is not None and isinstance(task.run.status, AtGate | Stuck | Parked | Held):
        name = task.pipeline.stages[task.current].name
        raise refused(
            "next-has-run",
            f"{name} has run since. Its approval stands.",
            f"promptside back {task.id} {before.id}",
        )
    return before


def _redoable(task: Task) -> tuple[Stage, StageRun]:
    stage, run = _current(task)
    if isinstance(run.status, AtGate | Stuck | Parked) or (isinstance(run.status, RetryDue) and run.attempts):
        return stage, run
    raise refused("state", f"Not possible now: {_doing(task, stage, run)}")


def _retryable(task: Task) -> None:
    stage, run = _current(task)
    if not isinstance(run.status, Stuck | RetryDue):
        raise refused("state", f"{stage.name} has not failed.", f"promptside redo {task.id} -m “…”")


def _go_back(task: Task, command: GoBack, given: Given) -> AnyEvent:
    if isinstance(task.life, Archived | Failed | Paused | Draft):
        raise refused("state", f"“{task.title}” is {_life(task)}.")
    index = task.pipeline.index(command.stage)
    if index < 0:
        names = ", ".join(s.id for s in task.pipeline.stages[: task.current])
        raise refused("no-stage", f"There is no stage {command.stage}.", f"One of: {names}")
    if index >= task.current:
        name = task.pipeline.stages[index].name
        raise refused("not-earlier", f"{name} is not an earlier stage.", f"promptside redo {task.id}")
    return WentBack(at=given.at, by=given.by, stage=command.stage, reason=command.reason)


def _stop(task: Task, given: Given) -> AnyEvent:
    stage, run = _current(task, paused=True)
    if live_attempt(task) is None and not isinstance(run.status, Queued | RetryDue | Parked):
        raise refused("not-running", f"{stage.name} is not running.")
    return StopOrdered(at=given.at, by=given.by)


def _say(task: Task, command: Say, given: Given) -> AnyEvent:
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None or attempt.started is None:
        raise refused("not-running", "The agent is not running.", f"promptside redo {task.id} -m “…”")
    if attempt.live.ending is not None or attempt.live.finished:
        raise refused("ending", "The agent is ending.", f"promptside redo {task.id} -m “…”")
    if attempt.live.said:
        raise refused("unread", "The agent has not read your last message yet. Try again in a moment.")
    if not command.text.strip():
        raise refused("empty", "There is nothing to say.")
    return PersonSaid(at=given.at, by=given.by, text=command.text)


def _undo(task: Task, command: UndoFiles, given: Given) -> AnyEvent:
    if live_attempt(task) is not None:
        raise refused("running", "The agent is at work in these files.", "Stop it first.")
    index = task.pipeline.index(command.stage) if command.stage else min(task.current, len(task.stages) - 1)
    if index < 0:
        raise refused("no-stage", f"There is no stage {command.stage}.")
    attempts = task.stages[index].attempts
    chosen = next((a for a in reversed(attempts) if command.attempt in (0, a.n)), None)
    if chosen is None or not chosen.checkpoint or not chosen.changes:
        raise refused("nothing", "There is nothing to undo: that attempt changed no file.")
    if given.conflicts:
        raise refused(
            "changed-since",
            f"Somebody else has changed {', '.join(given.conflicts)} since. Nothing was undone.",
            "Undo single files by naming them.",
        )
    return FilesUndone(
        at=given.at, by=given.by, stage=task.stages[index].id, attempt=chosen.n, paths=command.paths
    )


# --- answers -----------------------------------------------------------------------------------------


def _edit(task: Task, command: EditDraft, given: Given) -> AnyEvent:
    if isinstance(task.life, Archived | Failed):
        raise refused("state", f"“{task.title}” is {_life(task)}.")
    if given.sheet is None:
        raise refused("no-document", f"No form that waits is called {command.document}.")
    sheet = given.sheet
    return DraftChanged(
        at=given.at,
        by=given.by,
        document=sheet.document,
        answers=sheet.answers,
        shown=sheet.shown,
        text=sheet.text,
    )


def _answer(task: Task, command: Answer, given: Given) -> AnyEvent:
    _open(task)
    asked = next((d for d in task.decisions if d.id == command.decision), None)
    if asked is None:
        known = ", ".join(d.id for d in task.open_decisions) or "none is open"
        raise refused("no-decision", f"There is no question {command.decision}.", f"Open: {known}")
    _still_open(asked)
    if asked.kind == "permission":
        return _permission_by_word(asked, command, given)
    value, words = reply_to(asked, command)
    shown = given.sheet.shown if given.sheet else ""
    reply = Reply(decision=asked.id, value=value, words=words)
    return QuestionsAnswered(at=given.at, by=given.by, replies=(reply,), shown=shown)


def _permission_by_word(asked: Decision, command: Answer, given: Given) -> AnyEvent:
    word = command.options[0] if command.options else ("deny" if command.text else "")
    if word == "deny":
        return PermissionAnswered(
            at=given.at, by=given.by, decision=asked.id, allowed=False, text=command.text
        )
    if word in ("once", "attempt", "task", "always"):
        if command.text:
            raise refused("text-with-allow", "A word to the agent goes with deny only.")
        return PermissionAnswered(at=given.at, by=given.by, decision=asked.id, allowed=True, scope=word)  # type: ignore[arg-type]  # narrowed by the line above
    raise refused("no-option", f"{asked.id} takes once, attempt, task, always or deny.")


def _send(task: Task, command: SendAnswers, given: Given) -> AnyEvent:
    _open(task)
    waiting = [d for d in task.open_decisions if d.kind != "permission"]
    if not waiting or task.questions is None or given.sheet is None:
        raise refused("no-question", "No question is open.")
    sheet = given.sheet
    if command.shown and command.shown not in (sheet.shown, sheet.before):
        raise refused(
            "other-bytes",
            "This document is not what the daemon has. Nothing was sent.",
            "Look at it again, then send.",
            sheet.difference,
        )
    if sheet.errors:
        line, text = sheet.errors[0]
        raise refused("form-grammar", f"Line {line} can't be read: {text}", f"promptside open {task.id}")
    replies: list[Reply] = []
    for asked in waiting:
        value: Any = sheet.answers.get(asked.id)
        if value in (None, "", []):
            if asked.required:
                raise refused("gate-lacks", f"{asked.id} is required and still empty.")
            continue
        replies.append(Reply(decision=asked.id, value=value, words=in_words(asked, value)))
    return QuestionsAnswered(at=given.at, by=given.by, replies=tuple(replies), shown=sheet.shown, send=True)


def _permission(task: Task, wanted: str) -> Decision:
    _open(task)
    waiting = [d for d in task.open_decisions if d.kind == "permission"]
    if wanted:
        asked = next((d for d in task.decisions if d.id == wanted and d.kind == "permission"), None)
        if asked is None:
            raise refused("no-decision", f"There is no permission {wanted} asked for.")
        _still_open(asked)
        return asked
    if not waiting:
        raise refused("no-decision", "No permission is asked for.")
    if len(waiting) > 1:
        ids = ", ".join(d.id for d in waiting)
        raise refused("which", f"{len(waiting)} permissions are asked for: {ids}.", "Name one.")
    return waiting[0]


def _still_open(asked: Decision) -> None:
    if asked.status in ("open", "parked"):
        return
    if asked.status == "withdrawn":
        raise refused("withdrawn", f"{asked.id} is no longer asked: the attempt that asked it is over.")
    where = f" from {asked.by.client}" if asked.by else ""
    raise refused("answered", f"{asked.id} was answered already{where}: {asked.answer}. Nothing was changed.")


# --- where a task is ---------------------------------------------------------------------------------


def _open(task: Task) -> None:
    """Raise unless the task is under way or can be."""
    if isinstance(task.life, Paused):
        raise refused("paused", f"“{task.title}” is paused.", f"promptside resume {task.id}")
    if isinstance(task.life, Archived | Failed | Completed | Draft):
        raise refused("state", f"“{task.title}” is {_life(task)}.")


def _current(task: Task, *, paused: bool = False) -> tuple[Stage, StageRun]:
    if not (paused and isinstance(task.life, Paused)):
        _open(task)
    stage, run = task.stage, task.run
    if stage is None or run is None:
        raise refused("done", f"“{task.title}” is done.")
    return stage, run


def _life(task: Task) -> str:
    match task.life:
        case Draft():
            return "a draft"
        case Ready():
            return "ready and not started"
        case Taken():
            return "under way"
        case Paused():
            return "paused"
        case Completed():
            return "done"
        case Failed():
            return "broken"
        case Archived(reason=reason):
            return reason or "archived"


def _doing(task: Task, stage: Stage, run: StageRun) -> str:
    match run.status:
        case Ahead():
            return f"{stage.name} has not run yet."
        case AwaitsInput():
            return f"{stage.name} has not been started."
        case Queued() | Running():
            if any(d.status == "open" for d in task.decisions):
                return f"{stage.name} waits for an answer."
            return f"{stage.name} is running. Stop it first, or wait for its end."
        case RetryDue():
            return f"{stage.name} failed and is tried again by itself."
        case Parked():
            return f"{stage.name} waits for an answer."
        case Held():
            return f"{stage.name} is paused."
        case AtGate():
            return f"{stage.name} waits for you at its gate."
        case Passed():
            return f"{stage.name} is approved."
        case Skipped():
            return f"{stage.name} was skipped."
        case Stuck(failure=failure):
            return f"{stage.name} has failed: {failure.sentence}"
