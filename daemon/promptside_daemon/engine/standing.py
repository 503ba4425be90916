"""Where a task stands, in the words of a refusal, and the refusals that many orders share (M5)."""

from __future__ import annotations

from typing import assert_never

from promptside_daemon.engine.pipeline import Stage
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    AwaitsInput,
    Completed,
    Draft,
    Failed,
    Held,
    Parked,
    Passed,
    Paused,
    Queued,
    Ready,
    RetryDue,
    Running,
    Skipped,
    StageRun,
    Stuck,
    Taken,
    Task,
    left_changes,
)
from promptside_protocol.errors import Refused, refused


def must_be_open(task: Task) -> None:
    """Refuse unless the task is under way or can be."""
    if isinstance(task.life, Paused):
        raise refused("paused", f"“{task.title}” is paused.", f"promptside resume {task.id}")
    if isinstance(task.life, Draft):
        raise refused("draft", f"“{task.title}” is a draft.", f"promptside task ready {task.id}")
    if isinstance(task.life, Archived | Failed | Completed):
        raise not_now(task)


def current(task: Task) -> tuple[Stage, StageRun]:
    """The stage that an order for “the stage” is about; refuses where there is none."""
    must_be_open(task)
    return current_if_any(task)


def current_if_any(task: Task) -> tuple[Stage, StageRun]:
    """The same in a task of any state."""
    stage, run = task.stage, task.run
    if stage is None or run is None:
        raise refused("state", f"“{task.title}” is done.")
    return stage, run


def not_now(task: Task) -> Refused:
    """The refusal that names the state of the task."""
    return refused("state", f"“{task.title}” is {life(task)}.")


def not_in(task: Task, stage: Stage, run: StageRun) -> Refused:
    """The refusal that names the state of the stage."""
    return refused("state", f"Not possible now: {doing(task, stage, run)}", _instead(task, run))


def life(task: Task) -> str:
    """What a task is, behind “is”."""
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
        case _:
            assert_never(task.life)


def doing(task: Task, stage: Stage, run: StageRun) -> str:
    """What a stage does, as a sentence."""
    match run.status:
        case Ahead():
            return f"{stage.name} has not run yet."
        case AwaitsInput():
            return f"{stage.name} has not been started."
        case Queued():
            return f"{stage.name} waits for a free agent."
        case Running():
            if any(d.status == "open" for d in task.decisions):
                return f"{stage.name} waits for an answer."
            return f"{stage.name} is running."
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
        case _:
            assert_never(run.status)


def after_approval(task: Task) -> str:
    """What an approval led to: what runs, what waits to be started, or that all is done and where."""
    stage, run = task.stage, task.run
    if stage is None or run is None:
        last = next((one.form.document for one in reversed(task.stages) if one.form is not None), "")
        changed = any(left_changes(attempt) for one in task.stages for attempt in one.attempts)
        said = f"All stages are done; what they came to is in {last}." if last else "All stages are done."
        return f"{said} The changes are in the project's files, for you to look through." if changed else said
    match run.status:
        case AwaitsInput() if stage.input in ("both", "user"):
            return f"{stage.name} waits for you to start it, with a word of yours or without."
        case AwaitsInput():
            return f"{stage.name} waits for you to start it."
        case Queued() | Running() if not task.open_decisions:
            return f"{stage.name} starts."
        case _:
            return doing(task, stage, run)


def _instead(task: Task, run: StageRun) -> str:
    match run.status:
        case Running() if any(d.status == "open" for d in task.decisions):
            return f"promptside open {task.id}"
        case Running() | Queued() | RetryDue():
            return "Stop it first, or wait for its end."
        case Parked() | AtGate():
            return f"promptside open {task.id}"
        case Ahead() | AwaitsInput():
            return f"promptside run {task.id}"
        case Stuck():
            return f"promptside retry {task.id}, or promptside redo {task.id} -m “…”"
        case _:
            return ""
