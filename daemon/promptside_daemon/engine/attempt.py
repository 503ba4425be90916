"""The machine of one attempt: what its agent tells, and what its end makes of the stage."""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine import decision, stage
from promptside_daemon.engine.effects import CloseInput, Effect, StopAttempt, WantSlot, WriteDocument
from promptside_daemon.engine.events import AttemptEnded, AttemptStarted, SessionOpened, TurnEnded
from promptside_daemon.engine.stage import STOPPED, Stepped
from promptside_daemon.engine.task import (
    AtGate,
    Attempt,
    Failure,
    FormState,
    Held,
    Order,
    Parked,
    Passed,
    Queued,
    Running,
    SayText,
    StageRun,
    Stuck,
    Task,
    Usage,
    find_attempt,
    with_attempt,
    with_run,
)

REASK = (
    "Your answer does not fit the format that was asked for: {why}\n"
    "Answer once more, with the whole output in that format and nothing else."
)


def started(task: Task, event: AttemptStarted) -> Stepped:
    """Note the checkpoint; an order to end that came meanwhile is carried out now."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # it was over before it was told
    index, run, attempt = found
    ending = found[2].live.ending
    attempt = replace(attempt, started=event.at, checkpoint=event.checkpoint, note=event.note or attempt.note)
    task = with_run(task, index, with_attempt(run, attempt))
    if ending is not None:
        return task, (StopAttempt(attempt=attempt.id, reason=ending.why),)
    return task, ()


def session_opened(task: Task, event: SessionOpened) -> Stepped:
    """Note session and model; every turn tells them again."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return task, ()  # of another task
    index, run, attempt = found
    attempt = replace(attempt, session=event.session, model=event.model)
    return with_run(task, index, with_attempt(run, attempt)), ()


def turn_ended(task: Task, event: TurnEnded) -> Stepped:
    """Go on with what a person said, ask once more for an output that fits, or let the agent end."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # the attempt is over
    index, run, attempt = found
    live = found[2].live
    attempt = replace(attempt, usage=_used(run, attempt, event))
    task = with_run(task, index, with_attempt(run, attempt))
    if live.ending is not None:
        return decision.closing(task, attempt)
    if live.said > 0:
        return stage.with_live(task, attempt, replace(live, said=live.said - 1)), ()
    if event.invalid and not live.reasked:
        task = stage.with_live(task, attempt, replace(live, reasked=True))
        words = REASK.format(why=event.invalid)
        again = find_attempt(task, attempt.id)
        return decision.send(task, again[2] if again else attempt, SayText(number=0, text=words))
    task = stage.with_live(task, attempt, replace(live, finished=True))
    if event.failure is not None:
        found = find_attempt(task, attempt.id)
        failing = replace(found[2] if found else attempt, failure=event.failure)
        return with_run(task, index, with_attempt(task.stages[index], failing)), (
            CloseInput(attempt=attempt.id),
        )
    if event.definition is not None:
        run = task.stages[index]
        form = FormState(
            document=stage.document(task, index),
            attempt=attempt.n,
            definition=event.definition,
            shown=event.shown,
            text=event.text,
            version=run.formed,
            raw=event.invalid,
        )
        task = with_run(task, index, replace(run, form=form, formed=run.formed + 1))
    return task, (CloseInput(attempt=attempt.id),)


def ended(task: Task, event: AttemptEnded) -> Stepped:
    """What the end of the process makes of the attempt, of its stage and of what waited for it."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # it had been settled before
    index, run, attempt = found
    live = found[2].live
    attempt = replace(
        attempt,
        live=None,
        ended=event.at,
        after=event.after,
        changes=event.changes,
        proof=event.proof,
        usage=attempt.usage or event.usage,
        note=event.note or attempt.note,
    )
    why = live.ending.why if live.ending else ""
    failure = _failure(attempt, live.ending.failure if live.ending else None, event, finished=live.finished)
    if why == "parked":
        attempt = replace(attempt, status="parked")
    elif why == "paused":
        attempt = replace(attempt, status="paused")
        task = _parked_by_pause(task)
    elif why in ("stopped", "taken_back", "gone_back", "abandoned", "skipped"):
        attempt = replace(attempt, status="stopped", failure=STOPPED)
    elif failure is not None:
        attempt = replace(attempt, status="failed", failure=failure)
    else:
        attempt = replace(attempt, status="done", failure=None)
    task = with_run(task, index, with_attempt(task.stages[index], attempt))
    if why not in ("parked", "paused"):
        task = decision.withdraw(task)
    current = task.stages[index]
    effects: tuple[Effect, ...] = ()
    if isinstance(current.status, Running) and index == task.current:
        task, effects = _settle(task, index, attempt, why, event.at)
    return _wanted(task, effects)


def _settle(task: Task, index: int, attempt: Attempt, why: str, at: float) -> Stepped:
    run = task.stages[index]
    match why:
        case "parked":
            return _after_park(task, index, at)
        case "paused":
            if any(d.status == "parked" for d in task.decisions):
                return stage.set_status(task, index, Parked(since=at)), ()
            order = Order(cause="resumed", resume=attempt.session, feedback=attempt.order.feedback)
            return stage.set_status(task, index, Held(since=at, order=order)), ()
        case "stopped" | "abandoned":
            return stage.set_status(task, index, Stuck(since=at, failure=STOPPED)), ()
        case _:
            pass  # nobody ended it: what it gave decides
    if attempt.failure is not None:
        return stage.failed(task, index, attempt.failure, attempt.order, at)
    if task.pipeline.stages[index].gate is None:
        task = stage.set_status(task, index, Passed(at=at, shown=run.form.shown if run.form else ""))
        written = (WriteDocument(document=run.form.document),) if run.form else ()
        task, effects = stage.enter(task, index + 1, at)
        return task, (*written, *effects)
    task = stage.set_status(task, index, AtGate(since=at))
    return task, (WriteDocument(document=run.form.document),) if run.form else ()


def _after_park(task: Task, index: int, at: float) -> Stepped:
    """Wait for the answer, unless it came while the process was ending."""
    if any(d.status == "parked" for d in task.decisions):
        return stage.set_status(task, index, Parked(since=at)), ()
    task = stage.set_status(task, index, Parked(since=at))
    return decision.resume_parked(task, at)


def _parked_by_pause(task: Task) -> Task:
    decisions = tuple(replace(d, status="parked") if d.status == "open" else d for d in task.decisions)
    return replace(task, decisions=decisions)


def _wanted(task: Task, effects: tuple[Effect, ...]) -> Stepped:
    """A stage that was queued while this process was ending asks for its slot now."""
    run = task.run
    wants = WantSlot(stage=run.id) if run is not None and isinstance(run.status, Queued) else None
    if wants is not None and wants not in effects:
        effects = (*effects, wants)
    return task, effects


def _failure(
    attempt: Attempt, condemned: Failure | None, event: AttemptEnded, *, finished: bool
) -> Failure | None:
    """Why it failed, the first true reason: we ended it, a breach, its own result, then how the process ended."""
    if condemned is not None:
        return condemned
    if event.proof is not None and event.proof.verdict == "breach":
        paths = ", ".join(event.proof.breach)
        return Failure(
            kind="breach",
            sentence=f"The stage is read-only, but the agent changed {paths}.",
            hint="Undo the changes, then redo the stage.",
        )
    if attempt.failure is not None:
        return attempt.failure
    return None if finished else event.failure


def _used(run: StageRun, attempt: Attempt, event: TurnEnded) -> Usage:
    """Usage summed over turns; the session's cost is cumulative, so what it had before is taken off."""
    earlier = [a for a in run.attempts if a.n < attempt.n and a.session and a.session == attempt.session]
    before = max((a.usage.session_cost for a in earlier if a.usage), default=0.0)
    old = attempt.usage
    new = event.usage
    return replace(
        new,
        input_tokens=new.input_tokens + (old.input_tokens if old else 0),
        output_tokens=new.output_tokens + (old.output_tokens if old else 0),
        turns=new.turns + (old.turns if old else 0),
        cost_usd=max(new.session_cost - before, 0.0),
    )
