"""The machine of taking over: a person goes on in a terminal with the conversation of an attempt (ED-14).

While it lasts the task is paused and locked: the CLI has no lock of its own, and two processes of one
conversation would both write it.
"""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.closing import end
from promptside_daemon.engine.events import ConversationReturned, ConversationTaken
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.stage import Stepped, session, set_status
from promptside_daemon.engine.standing import current_if_any, doing, must_be_open
from promptside_daemon.engine.task import (
    Ahead,
    AwaitsInput,
    Held,
    Paused,
    Queued,
    RetryDue,
    Running,
    StageRun,
    Taken,
    TakenOver,
    Task,
    TerminalWork,
    find_stage,
    live_attempt,
    with_attempt,
    with_run,
)
from promptside_protocol.commands import EditDraft, GiveBack, StageCommand
from promptside_protocol.errors import refused

LISTED_CHANGES = 200
"""Changed paths that are kept with a terminal's work."""


# --- decided -----------------------------------------------------------------------------------------


def must_be_here(task: Task, command: StageCommand) -> None:
    """Refuse what would start, end or change anything while a person works on it in a terminal."""
    if task.taken_over is not None and not isinstance(command, GiveBack | EditDraft):
        raise refused("taken-over", words(task.taken_over), f"promptside give-back {task.id}")


def words(taken: TakenOver) -> str:
    """Who is at it, as a sentence; one daemon serves one person."""
    return f"You work on it in a terminal since {taken.clock}."


def take_over(task: Task, given: Given) -> ConversationTaken:
    """The conversation of the current stage, if there is one that can be gone on with."""
    if not isinstance(task.life, Paused):
        must_be_open(task)
    stage, run = current_if_any(task)
    if task.agent.startswith("rehearsal"):
        raise refused("no-session", "A rehearsal has no session to continue.")
    attempt = live_attempt(task)
    if attempt is not None and attempt.live is not None and not (attempt.session or attempt.order.resume):
        raise refused("starting", "The agent is still starting.", "Try again in a moment.")
    last, found = run.last, session(run)
    if last is None or not found or isinstance(run.status, Ahead | AwaitsInput):
        raise refused("no-session", f"There is no session to continue: {doing(task, stage, run)}")
    return ConversationTaken(
        at=given.at,
        by=given.by,
        stage=run.id,
        attempt=last.n,
        session=last.session or last.order.resume or found,
        clock=given.clock,
        pid=given.terminal.pid,
        pid_started=given.terminal.pid_started,
    )


def give_back(task: Task, given: Given) -> ConversationReturned:
    """What was done in the terminal; refused to everybody else while the terminal is still there."""
    if task.taken_over is None:
        raise refused("not-taken-over", f"Nobody works on “{task.title}” in a terminal.")
    if given.terminal.pid:
        raise refused(
            "terminal-open",
            f"{words(task.taken_over)} It is still open (process {given.terminal.pid}).",
            "Leave it there, and it gives back by itself.",
        )
    return ConversationReturned(
        at=given.at, by=given.by, changes=given.terminal.changes, transcript=given.terminal.transcript
    )


# --- stepped -----------------------------------------------------------------------------------------


def taken(task: Task, event: ConversationTaken) -> Stepped:
    """Hold everything as pausing does, and lock it."""
    run, life = task.run, task.life
    if run is None or task.taken_over is not None or not isinstance(life, Taken | Paused):
        return task, ()  # decided before it was done
    lock = TakenOver(
        since=event.at,
        clock=event.clock,
        by=event.by,
        stage=event.stage,
        attempt=event.attempt,
        session=event.session,
        was_paused=isinstance(life, Paused),
        pid=event.pid,
        pid_started=event.pid_started,
    )
    task = replace(
        task, taken_over=lock, life=life if lock.was_paused else Paused(since=event.at, by=life.by)
    )
    if isinstance(run.status, Queued | RetryDue):
        return set_status(task, task.current, Held(since=event.at, order=run.status.order)), ()
    if isinstance(run.status, Running):
        return end(task, "paused")
    return task, ()


def returned(task: Task, event: ConversationReturned) -> Stepped:
    """Note what was done, and unlock: the stage stands where it stood, and what was held stays held."""
    lock, life = task.taken_over, task.life
    if lock is None:
        return task, ()  # given back before
    task = replace(_noted(task, lock, event), taken_over=None)
    run = task.run
    if lock.was_paused or not isinstance(life, Paused) or run is None or _is_held(run):
        return task, ()
    return replace(task, life=Taken(since=event.at, by=life.by)), ()


def _is_held(run: StageRun) -> bool:
    """Whether going on means to resume: what was under way when the person took over."""
    return isinstance(run.status, Held | Running | Queued | RetryDue)


def _noted(task: Task, lock: TakenOver, event: ConversationReturned) -> Task:
    found = find_stage(task, lock.stage)
    attempt = next((a for a in found[1].attempts if a.n == lock.attempt), None) if found is not None else None
    if found is None or attempt is None:
        return task  # nothing that the work could stand with
    work = TerminalWork(
        by=lock.by,
        since=lock.since,
        until=event.at,
        session=lock.session,
        transcript=event.transcript,
        changes=event.changes[:LISTED_CHANGES],
        unlisted=max(len(event.changes) - LISTED_CHANGES, 0),
    )
    attempt = replace(attempt, terminals=(*attempt.terminals, work))
    return with_run(task, found[0], with_attempt(found[1], attempt))
