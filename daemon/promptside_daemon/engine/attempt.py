"""The machine of one attempt: what its agent tells, what a person tells it, and what its end makes of the stage."""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine import decision, retry, stage
from promptside_daemon.engine.closing import REASONS, end, withdraw
from promptside_daemon.engine.effects import CloseInput, Effect, StopAttempt, WantSlot, WriteDocument
from promptside_daemon.engine.events import (
    AttemptEnded,
    AttemptStarted,
    FilesRestored,
    PersonSaid,
    SessionOpened,
    StopOrdered,
    TurnEnded,
)
from promptside_daemon.engine.stage import Stepped
from promptside_daemon.engine.task import (
    AtGate,
    Attempt,
    Failure,
    FormState,
    Held,
    Interrupt,
    Live,
    Order,
    Parked,
    Passed,
    Queued,
    RetryDue,
    Running,
    SayText,
    StageRun,
    Stuck,
    Task,
    Usage,
    find_attempt,
    find_stage,
    live_attempt,
    with_attempt,
    with_attempt_of,
    with_live,
    with_run,
)

STOPPED = Failure(kind="stopped", sentence="Stopped by you.", hint="Redo it with feedback, or retry it.")
NO_RESULT = Failure(
    kind="no_result",
    sentence="The agent ended without a result.",
    hint="See its output and its errors.",
    retryable=True,
)

REASK = (
    "Your answer does not fit the format that was asked for: {why}\n"
    "Answer once more, with the whole output in that format and nothing else."
)

CLOSE_S = 60.0
"""How long an agent may take to end when nothing more is asked of it."""

LISTED_CHANGES = 200
"""Changed paths that are kept with an attempt; `promptside diff` has them all."""

LISTED_PATHS = 5
"""Paths that a sentence names."""

SENTENCE_LIMIT = 1000
"""Characters of a failure's sentence: it goes to every client with every change."""


# --- while it lives ----------------------------------------------------------------------------------


def started(task: Task, event: AttemptStarted) -> Stepped:
    """Note the checkpoint; an order to end that came meanwhile is carried out now."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None or found[2].started is not None:
        return task, ()  # it was over, or known, before it was told
    attempt = found[2]
    ending = found[2].live.ending
    attempt = replace(attempt, started=event.at, checkpoint=event.checkpoint, note=event.note or attempt.note)
    task = with_attempt_of(task, attempt)
    if ending is not None:
        return task, (StopAttempt(attempt=attempt.id, reason=REASONS[ending.why]),)
    return task, ()


def session_opened(task: Task, event: SessionOpened) -> Stepped:
    """Note session and model."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return task, ()  # of another task
    return with_attempt_of(task, replace(found[2], session=event.session, model=event.model)), ()


def said(task: Task, event: PersonSaid) -> Stepped:
    """Break the turn off and go on with the person's words; what the turn had asked is asked no more."""
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None or attempt.live.ending or attempt.live.finished:
        return task, ()  # it ended while the words were on their way
    task = withdraw(with_live(task, attempt, said=attempt.live.said + 1))
    task, effects = decision.send(task, attempt.id, Interrupt(number=0))
    task, _ = decision.send(task, attempt.id, SayText(number=0, text=event.text))
    return task, effects


def stopped(task: Task, event: StopOrdered) -> Stepped:
    """End what runs; what waits to run fails at once, and no retry follows."""
    index, run = task.current, task.run
    task, effects = end(task, "stopped")
    if run is None:
        return task, effects
    match run.status:
        case Queued(order=order) | RetryDue(order=order) | Held(order=order):
            stuck = Stuck(since=event.at, failure=STOPPED, order=order)
        case Parked():
            last = run.last.order if run.last else Order()
            stuck = Stuck(
                since=event.at, failure=STOPPED, order=retry.once_more(task, index, last, failure="")
            )
        case _:
            return task, effects  # its end makes it fail
    return stage.set_status(task, index, stuck), effects


def turn_ended(task: Task, event: TurnEnded) -> Stepped:
    """Go on with what a person said, ask once more for an output that fits, or let the agent end."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # the attempt is over
    index, run, attempt = found
    live = found[2].live
    attempt = replace(attempt, usage=_used(task, attempt, event))
    task = with_attempt_of(task, attempt)
    if live.finished:
        return task, ()  # its input is closed: nobody asked for another turn
    if live.ending is not None:
        return _close(task, attempt, event.at)
    task = withdraw(task)  # what its turn had asked is over with it
    if live.said > 0:
        return with_live(task, attempt, said=live.said - 1), ()
    if event.failure is not None:
        return _close(task, replace(attempt, failure=event.failure), event.at, finished=True)
    if event.definition is None:
        return _close(task, replace(attempt, failure=NO_RESULT), event.at, finished=True)
    if event.invalid and not live.reasked:
        words = REASK.format(why=event.invalid)
        task = with_live(task, attempt, reasked=True)
        return decision.send(task, attempt.id, SayText(number=0, text=words))
    version = run.form.version + 1 if run.form is not None else run.formed
    form = FormState(
        document=stage.document(task, index),
        attempt=attempt.n,
        definition=event.definition,
        shown=event.shown,
        began=event.shown,
        text=event.text,
        version=version,
        raw=event.invalid,
    )
    task = with_run(task, index, replace(task.stages[index], form=form))
    return _close(task, attempt, event.at, finished=True)


def overdue(task: Task) -> float | None:
    """When an agent that was let go should have ended; None if none is on its way out."""
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None or attempt.live.closed is None:
        return None
    return attempt.live.closed + CLOSE_S


def woke(task: Task, at: float) -> Stepped | None:
    """Stop an agent that stays though nothing is asked of it any more; None if there is none."""
    time, attempt = overdue(task), live_attempt(task)
    if time is None or time > at or attempt is None:
        return None
    return with_live(task, attempt, closed=at), (
        StopAttempt(attempt=attempt.id, reason="it did not end by itself"),
    )


# --- its end -----------------------------------------------------------------------------------------


def ended(task: Task, event: AttemptEnded) -> Stepped:
    """What the end of the process makes of the attempt, of its stage and of what waited for it."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # it had been settled before
    index, _, attempt = found
    attempt = _settled(attempt, found[2].live, event)
    task = with_run(task, index, with_attempt(task.stages[index], attempt))
    if attempt.status not in ("parked", "paused"):
        task = withdraw(task)
    effects: tuple[Effect, ...] = ()
    if isinstance(task.stages[index].status, Running) and index == task.current:
        task, effects = _follows(task, index, attempt, event.at)
    return _wanted(task, effects)


def _settled(attempt: Attempt, live: Live, event: AttemptEnded) -> Attempt:
    """The attempt as it stays: the first true reason decides."""
    ending = live.ending
    breach = _breach(event)
    condemned = ending.failure if ending is not None else None
    failure: Failure | None = None
    if ending is not None and ending.why not in ("condemned", "paused", "parked"):
        failure = breach or (condemned if condemned is not None and not condemned.retryable else STOPPED)
        attempt = replace(attempt, status="stopped")
    elif failure := breach or condemned:
        attempt = replace(attempt, status="failed")
    elif live.finished:
        failure = attempt.failure
        attempt = replace(attempt, status="failed" if failure is not None else "done")
    elif ending is not None:
        attempt = replace(attempt, status="parked" if ending.why == "parked" else "paused")
    else:
        failure = event.failure or NO_RESULT
        attempt = replace(attempt, status="failed")
    unlisted = max(len(event.changes) - LISTED_CHANGES, 0)
    return replace(
        attempt,
        live=None,
        ended=event.at,
        failure=_short(failure) if failure is not None else None,
        changes=event.changes[:LISTED_CHANGES],
        unlisted=unlisted,
        loc_added=sum(c.added or 0 for c in event.changes),
        loc_removed=sum(c.removed or 0 for c in event.changes),
        proof=event.proof,
        usage=attempt.usage or event.usage,
        note=event.note or attempt.note,
    )


def _follows(task: Task, index: int, attempt: Attempt, at: float) -> Stepped:
    """What becomes of the stage that ran."""
    run = task.stages[index]
    match attempt.status:
        case "parked":
            return decision.resume_parked(stage.set_status(task, index, Parked(since=at)), at)
        case "paused":
            return _held(task, index, attempt, at)
        case "stopped":
            failure = attempt.failure or STOPPED
            again = retry.once_more(task, index, attempt.order, failure="")
            return stage.set_status(task, index, Stuck(since=at, failure=failure, order=again)), ()
        case "failed":
            return retry.failed(task, index, attempt.failure or NO_RESULT, attempt.order, at)
        case "running" | "done":
            return _done(task, index, run, at)


def _held(task: Task, index: int, attempt: Attempt, at: float) -> Stepped:
    """Paused in the middle: a question waits on, an answer or the order to resume goes on, else it is held."""
    if any(d.parked and d.stage == task.stages[index].id and d.attempt == attempt.n for d in task.decisions):
        return decision.resume_parked(stage.set_status(task, index, Parked(since=at)), at)
    order = attempt.order
    if attempt.session:
        order = Order(cause="resumed", resume=attempt.session)
    return stage.queue(task, index, at, order)


def _done(task: Task, index: int, run: StageRun, at: float) -> Stepped:
    """An output: it waits at its gate; without one it passes, unless it did not fit and must be seen."""
    if run.form is None:
        failure = NO_RESULT
        last = run.last.order if run.last else Order()
        return retry.failed(task, index, failure, last, at)
    written = WriteDocument(document=run.form.document)
    if task.pipeline.stages[index].gate is None and not run.form.raw:
        task = stage.set_status(task, index, Passed(at=at, shown=run.form.shown))
        task, effects = stage.enter(task, index + 1, at)
        return task, (written, *effects)
    return stage.set_status(task, index, AtGate(since=at)), (written,)


def restored(task: Task, event: FilesRestored) -> Stepped:
    """Note which of its changes are taken back."""
    task = replace(task, undoing=None)
    found = find_stage(task, event.stage)
    of = next((a for a in found[1].attempts if a.n == event.attempt), None) if found is not None else None
    if of is None:
        return task, ()
    undone = tuple(c.path for c in of.changes if c.path in event.paths or c.path in of.undone)
    return with_attempt_of(task, replace(of, undone=undone)), ()


def _wanted(task: Task, effects: tuple[Effect, ...]) -> Stepped:
    """A stage that was queued while this process was ending asks for its slot now."""
    run = task.run
    wants = WantSlot(stage=run.id) if run is not None and isinstance(run.status, Queued) else None
    if wants is not None and wants not in effects:
        effects = (*effects, wants)
    return task, effects


def _close(task: Task, attempt: Attempt, at: float, *, finished: bool = False) -> Stepped:
    """No more turns: end of input."""
    task = with_live(task, attempt, finished=finished, closed=at)
    return task, (CloseInput(attempt=attempt.id),)


def _breach(event: AttemptEnded) -> Failure | None:
    """A read-only stage that changed a file has failed, whatever else is true of it (ST-16)."""
    if event.proof is None or event.proof.verdict != "breach":
        return None
    paths = ", ".join(event.proof.breach[:LISTED_PATHS])
    more = len(event.proof.breach) - LISTED_PATHS
    return Failure(
        kind="breach",
        sentence=f"The stage is read-only, but the agent changed {paths}{f' and {more} more' if more > 0 else ''}.",
        hint="Undo the changes, then redo the stage.",
    )


def _short(failure: Failure) -> Failure:
    if len(failure.sentence) <= SENTENCE_LIMIT:
        return failure
    return replace(failure, sentence=f"{failure.sentence[:SENTENCE_LIMIT].rsplit(' ', 1)[0]} …")


def _used(task: Task, attempt: Attempt, event: TurnEnded) -> Usage:
    """Usage summed over turns; the session's cost is cumulative, so what it had before is taken off."""
    earlier = [
        a.usage.session_cost
        for run in task.stages
        for a in run.attempts
        if a.id != attempt.id and a.usage is not None and a.session and a.session == attempt.session
    ]
    old = attempt.usage or Usage()
    new = event.usage
    return replace(
        new,
        input_tokens=new.input_tokens + old.input_tokens,
        output_tokens=new.output_tokens + old.output_tokens,
        turns=new.turns + old.turns,
        cost_usd=max(new.session_cost - max(earlier, default=0.0), 0.0),
    )
