"""`view(task)`: the task as clients see it. The one translation on the way out."""

from __future__ import annotations

from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine import gate, terminal
from promptside_daemon.engine.attempt import LISTED_PATHS
from promptside_daemon.engine.offers import offers
from promptside_daemon.engine.pipeline import (
    RequireAllChecked,
    RequireApproval,
    RequireFields,
    RequireSelection,
    Stage,
    limits_for,
)
from promptside_daemon.engine.reply import scopes
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    Attempt,
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
from promptside_protocol import forms
from promptside_protocol.views import (
    Approval,
    AttemptView,
    DecisionView,
    GateView,
    ItemView,
    Metrics,
    OptionView,
    StageStatus,
    StageView,
    TaskState,
    TaskView,
    TerminalView,
    TerminalWorkView,
    WaitingFor,
)

DESCRIPTION_LIMIT = 2000
START = "Start it, with what you have to say about it or without."
SETTLED_LIMIT = 20
SETTLED_TEXT_LIMIT = 500


class Places(Struct, frozen=True):
    """Where a project's attempts are; views name their files by absolute path."""

    attempts: str


def view(task: Task, seq: int, places: Places) -> TaskView:
    """The whole task, small and plain, as of `seq`."""
    state, since, by, reason = _life(task)
    run = task.run
    return TaskView(
        seq=seq,
        id=task.id,
        project=task.project,
        title=task.title,
        description=task.description[:DESCRIPTION_LIMIT],
        state=state,
        state_since=since,
        claimed_by=by,
        reason=reason,
        pipeline=task.pipeline.name,
        type=task.kind,
        work_type=task.work_type,
        priority=task.priority,
        agent=task.agent,
        stages=tuple(_stage(task, i, s, places) for i, s in enumerate(task.stages)),
        current=run.id if run is not None else None,
        waiting_for=waiting_for(task),
        decisions=_recent(task),
        offers=offers(task),
        directory=task.directory,
        metrics=_metrics(task),
        error=_error(task),
        terminal=_terminal(task),
        created=task.created,
    )


def waiting_for(task: Task) -> WaitingFor | None:
    """What the task waits for from a person; None while it runs, is done, or is put away."""
    run, stage = task.run, task.stage
    if not isinstance(task.life, Taken) or run is None or stage is None:
        return None
    open_now = task.open_decisions
    if open_now:
        return WaitingFor(
            kind="decision",
            stage=run.id,
            since=min(d.asked for d in open_now),
            document=task.questions.document if task.questions else None,
            decisions=tuple(decision_view(d) for d in open_now),
        )
    match run.status:
        case AtGate(since=since, why=why) if run.form is not None:
            return WaitingFor(
                kind="gate",
                stage=run.id,
                since=since,
                document=run.form.document,
                gate=gate_view(stage, run.form),
                reason=why or _raw(stage, run.form),
            )
        case AwaitsInput(since=since):
            return WaitingFor(kind="input", stage=run.id, since=since, reason=START)
        case Stuck(since=since, failure=failure):
            return WaitingFor(kind="person", stage=run.id, since=since, reason=failure.sentence)
        case _:
            return None


def gate_view(stage: Stage, form: FormState) -> GateView:
    """What a gate takes, with the draft's answers in it."""
    definition, answers = form.definition, form.answers
    missing = gate.lacks(stage, form, answers)
    common: dict[str, Any] = {"shown": form.shown, "lacks": missing, "version": form.version}
    common["selected"] = gate.selected(form)
    options: tuple[OptionView, ...] = ()
    items: tuple[ItemView, ...] = ()
    if isinstance(definition, forms.OptionsDefinition):
        options = tuple(
            OptionView(id=o.id, title=o.title, description=o.description, recommended=o.recommended)
            for o in definition.options
        )
    if isinstance(definition, forms.ChecklistDefinition):
        items = tuple(
            ItemView(
                id=i.id,
                text=i.title,
                severity=i.severity,
                ticked=bool(_item(answers, i.id).get("ticked")),
                note=str(_item(answers, i.id).get("note", "")),
                path=i.path,
                line=i.line,
            )
            for i in definition.items
        )
    match stage.gate:
        case RequireSelection(min=low, max=high):
            return GateView(type="require_selection", min=low, max=high, options=options, **common)
        case RequireAllChecked():
            return GateView(type="require_all_checked", items=items, **common)
        case RequireFields(fields=names):
            return GateView(type="require_fields", fields=names, **common)
        case RequireApproval() | None:
            return GateView(type="require_approval", options=options, items=items, **common)
        case _:
            assert_never(stage.gate)


def decision_view(d: Decision) -> DecisionView:
    """A decision; a permission's options are the scopes it can be given for."""
    options = d.options
    if d.kind == "permission":
        given = (*scopes(d), "deny")
        options = tuple(OptionView(id=i, title=t) for i, t in PERMISSION_OPTIONS if i in given)
    return DecisionView(
        id=d.id,
        kind=d.kind,
        priority=d.priority,
        required=d.required,
        text=d.text,
        stage=d.stage,
        attempt=d.attempt,
        header=d.header,
        options=options,
        other=d.other,
        tool=d.tool,
        what=d.what,
        why=d.why,
        status=d.status,
        answer=d.answer,
        asked=d.asked,
        answered=d.answered,
        by=d.by.user if d.by else "",
        client=d.by.client if d.by else "",
        by_agent=d.by_agent,
    )


PERMISSION_OPTIONS = (
    ("once", "Once"),
    ("attempt", "For this attempt"),
    ("task", "For this task"),
    ("always", "Always in this project"),
    ("deny", "Deny"),
)


def _life(task: Task) -> tuple[TaskState, float, str | None, str | None]:
    match task.life:
        case Draft(since=since):
            return "draft", since, None, None
        case Ready(since=since):
            return "ready", since, None, None
        case Taken(since=since, by=by):
            return "taken", since, by.user, None
        case Paused(since=since, by=by):
            return "paused", since, by.user, None
        case Completed(since=since):
            return "completed", since, None, None
        case Failed(since=since, reason=reason):
            return "failed", since, None, reason
        case Archived(since=since, reason=reason):
            return "archived", since, None, reason or None
        case _:
            assert_never(task.life)


def _stage(task: Task, index: int, run: StageRun, places: Places) -> StageView:
    stage = task.pipeline.stages[index]
    status, since, reason = _status(task, index, run)
    approval = None
    if isinstance(run.status, Passed) and run.status.by is not None:
        approval = Approval(
            by=run.status.by.user,
            client=run.status.by.client,
            at=run.status.at,
            shown=run.status.shown,
            note=run.status.note,
            all_at_once=run.status.all_at_once,
            edited=run.form is not None and gate.edited(run.form),
            selected=gate.selected(run.form) if run.form is not None else (),
        )
    return StageView(
        id=run.id,
        name=stage.name,
        status=status,
        stopped=isinstance(run.status, Stuck) and run.status.failure.kind == "stopped",
        format=stage.output,
        tools=stage.tools,
        rule=rule(stage),
        attempts=tuple(_attempt(a, places) for a in run.attempts),
        artifact=run.form.document if run.form is not None else None,
        since=since,
        approval=approval,
        reason=_at_it(task, run) or run.mark or reason,
        retry_at=run.status.at if isinstance(run.status, RetryDue) else None,
        input=run.input,
    )


def _at_it(task: Task, run: StageRun) -> str:
    """That a person is at it in a terminal; said where they are."""
    lock = task.taken_over
    return terminal.words(lock) if lock is not None and lock.stage == run.id else ""


def _terminal(task: Task) -> TerminalView | None:
    lock = task.taken_over
    if lock is None:
        return None
    return TerminalView(
        since=lock.since,
        by=lock.by.user,
        client=lock.by.client,
        stage=lock.stage,
        attempt=lock.attempt,
        session=lock.session,
        words=terminal.words(lock),
    )


def _status(task: Task, index: int, run: StageRun) -> tuple[StageStatus, float | None, str]:
    here = index == task.current and isinstance(task.life, Draft | Ready | Taken | Paused)
    match run.status:
        case Ahead():
            return ("current" if here else "future"), None, ""
        case AwaitsInput(since=since):
            return "waiting", since, ""
        case Queued(since=since):
            return "running", since, "Waits for a free slot."
        case Running(since=since):
            return ("waiting" if task.open_decisions else "running"), since, ""
        case RetryDue(since=since, order=order, n=n):
            of = limits_for(task.limits, task.pipeline.stages[index]).retries
            follows = f"Retry {n} of {of} follows." if n else "It goes on by itself when the limit ends."
            return "running", since, f"{order.failure} {follows}"
        case Parked(since=since):
            return "waiting", since, ""
        case Held(since=since):
            return "current", since, "Paused."
        case AtGate(since=since, why=why):
            return "waiting", since, why
        case Passed(at=at, void=void):
            return "approved", at, void
        case Skipped(at=at, reason=reason):
            return "skipped", at, reason
        case Stuck(since=since, failure=failure):
            return "failed", since, failure.sentence
        case _:
            assert_never(run.status)


def _attempt(a: Attempt, places: Places) -> AttemptView:
    directory = f"{places.attempts}/{a.id}"
    used = a.usage
    return AttemptView(
        n=a.n,
        id=a.id,
        status=a.status,
        cause=a.order.cause,
        session=a.session,
        started=a.started,
        ended=a.ended,
        duration_s=a.ended - a.started if a.ended is not None and a.started is not None else None,
        input_tokens=used.input_tokens if used else None,
        output_tokens=used.output_tokens if used else None,
        cost_usd=used.cost_usd if used else None,
        model=a.model,
        prompt=f"{directory}/prompt.md",
        transcript=f"{directory}/transcript.ndjson",
        error=a.failure.sentence if a.failure else None,
        hint=a.failure.hint if a.failure else "",
        changes=left_changes(a),
        proof=a.proof,
        denials=a.denials,
        resumed=bool(a.order.resume),
        note=" ".join(n for n in (a.note, _unlisted(a), _undone(a)) if n),
        terminals=tuple(
            TerminalWorkView(
                by=w.by.user,
                client=w.by.client,
                since=w.since,
                until=w.until,
                session=w.session,
                transcript=w.transcript,
                changes=w.changes,
                unlisted=w.unlisted,
            )
            for w in a.terminals
        ),
        feedback=a.order.feedback if a.order.cause == "redo" else "",
    )


def _undone(a: Attempt) -> str:
    if not a.undone:
        return ""
    if not left_changes(a) and not a.unlisted:
        return "What it changed was taken back."
    more = len(a.undone) - LISTED_PATHS
    return f"Taken back: {', '.join(a.undone[:LISTED_PATHS])}{f' and {more} more' if more > 0 else ''}."


def _unlisted(a: Attempt) -> str:
    if not a.unlisted:
        return ""
    return f"It changed {len(a.changes) + a.unlisted} paths, of which {len(a.changes)} are listed here."


def rule(stage: Stage) -> str:
    """What a stage may do, in words (UX section 9)."""
    if stage.read_only or stage.tools == ():
        return "read-only"
    return "everything allowed" if stage.permission == "allow" else "edits allowed, asks for the rest"


def _recent(task: Task) -> tuple[DecisionView, ...]:
    settled = [d for d in task.decisions if d.status not in ("open", "parked")][-SETTLED_LIMIT:]
    short = {d.id: _cut(decision_view(d)) for d in settled}
    shown = short | {d.id: decision_view(d) for d in task.open_decisions}
    return tuple(shown[d.id] for d in task.decisions if d.id in shown)


def _cut(d: DecisionView) -> DecisionView:
    """A settled decision: a command of many kilobytes was shown whole while it was open."""
    return replace(d, text=_short(d.text), what=_short(d.what), answer=_short(d.answer), options=())


def _short(text: str) -> str:
    return text if len(text) <= SETTLED_TEXT_LIMIT else f"{text[:SETTLED_TEXT_LIMIT]}…"


def _metrics(task: Task) -> Metrics:
    attempts = [a for run in task.stages for a in run.attempts]
    used = [a.usage for a in attempts if a.usage is not None]
    return Metrics(
        input_tokens=sum(u.input_tokens for u in used),
        output_tokens=sum(u.output_tokens for u in used),
        cost_usd=sum(u.cost_usd for u in used),
        duration_s=sum(
            a.ended - a.started for a in attempts if a.ended is not None and a.started is not None
        ),
        agent_runs=len(attempts),
        loc_added=sum(a.loc_added for a in attempts) if attempts else None,
        loc_removed=sum(a.loc_removed for a in attempts) if attempts else None,
        recorded=task.agent.startswith("rehearsal"),
    )


def _error(task: Task) -> str | None:
    if isinstance(task.life, Failed):
        return task.life.reason
    run = task.run
    return run.status.failure.sentence if run is not None and isinstance(run.status, Stuck) else None


def _raw(stage: Stage, form: FormState) -> str:
    """Why an output is shown as it came (M30)."""
    if not form.raw:
        return ""
    return f"The agent's answer does not fit {stage.output} ({form.raw}), also after asking again. It is shown as text."


def _item(answers: dict[str, Any], key: str) -> dict[str, Any]:
    value = answers.get(key)
    return value if isinstance(value, dict) else {}
