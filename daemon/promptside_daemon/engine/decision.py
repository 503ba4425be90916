"""The machine of decisions: what the agent asks of a person, how it is answered, parked and withdrawn.

A question and a permission are the same thing here: a Decision that the agent opened (ARCHITECTURE section 4).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from promptside_daemon.engine.closing import park_open, withdraw
from promptside_daemon.engine.effects import Deliver, Effect, KeepRule, WriteDocument
from promptside_daemon.engine.events import (
    AskWithdrawn,
    PermissionAnswered,
    PermissionAsked,
    PermissionSettled,
    QuestionsAnswered,
    QuestionsAsked,
    UnsavedCleared,
)
from promptside_daemon.engine.pipeline import limits_for
from promptside_daemon.engine.stage import Stepped, answers_so_far, in_words, queue, session
from promptside_daemon.engine.task import (
    AllowTool,
    Attempt,
    Chosen,
    Decision,
    DenyTool,
    Ending,
    FormState,
    GiveAnswers,
    Grant,
    Order,
    Outgoing,
    Parked,
    Task,
    find_attempt,
    live_attempt,
    with_attempt_of,
    with_live,
)
from promptside_protocol import forms
from promptside_protocol.commands import Scope
from promptside_protocol.views import Denial, OptionView

PARK_MESSAGE = "The person is away. Your question is kept; you will be resumed with the answer."
DENY_MESSAGE = "The person said no."
LISTED_DENIALS = 100
"""Different denials that are kept with an attempt."""

YES_NO = (OptionView(id="Yes", title="Yes"), OptionView(id="No", title="No"))
SCOPES: dict[Scope, str] = {
    "once": "once",
    "attempt": "for this attempt",
    "task": "for this task",
    "always": "always",
}


# --- asked -------------------------------------------------------------------------------------------


def asked(task: Task, event: QuestionsAsked) -> Stepped:
    """Open a decision for each question of the request, and a document for all that are open."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return task, ()  # of another task
    index, run, attempt = found
    if not _waits(attempt):
        return _sent_away(task, attempt, event.request)
    first = 1 + sum(d.kind != "permission" for d in task.decisions)
    opened = tuple(
        Decision(
            id=f"Q{first + i}",
            kind=q.kind,
            stage=run.id,
            attempt=attempt.n,
            request=event.request,
            asked=event.at,
            text=q.text,
            header=q.header,
            options=q.options or (YES_NO if q.kind == "yes_no" else ()),
            other=q.other,
            required=q.required,
            priority=q.priority,
        )
        for i, q in enumerate(event.questions)
    )
    return _with_questions(replace(task, decisions=(*task.decisions, *opened)), index, attempt)


def permission_asked(task: Task, event: PermissionAsked) -> Stepped:
    """Open a decision for a tool use that no rule settles."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return task, ()  # of another task
    _, run, attempt = found
    if not _waits(attempt):
        return _sent_away(task, attempt, event.request)
    number = 1 + sum(d.kind == "permission" for d in task.decisions)
    opened = Decision(
        id=f"P{number}",
        kind="permission",
        stage=run.id,
        attempt=attempt.n,
        request=event.request,
        asked=event.at,
        text=event.text,
        tool=event.tool,
        what=event.what,
        why=event.why,
        rule=event.rule,
        held=event.held,
    )
    return replace(task, decisions=(*task.decisions, opened)), ()


def unsaved_cleared(task: Task, event: UnsavedCleared) -> Stepped:
    """Say with the permission that its file was saved meanwhile; whether it may be changed is the person's to say."""
    asked = next((d for d in task.open_decisions if d.id == event.decision), None)
    if asked is None or not asked.held:
        return task, ()  # answered or withdrawn in the meantime
    said = replace(asked, why=f"{asked.why} {event.words}".strip())
    return replace(task, decisions=tuple(said if d.id == asked.id else d for d in task.decisions)), ()


def permission_settled(task: Task, event: PermissionSettled) -> Stepped:
    """Answer the agent by rule; a denial is listed with the attempt."""
    found = find_attempt(task, event.attempt)
    if found is None:
        return task, ()  # of another task
    attempt = found[2]
    denial = Denial(tool=event.tool, what=event.what, reason=event.reason)
    if not event.allowed and denial not in attempt.denials and len(attempt.denials) < LISTED_DENIALS:
        task = with_attempt_of(task, replace(attempt, denials=(*attempt.denials, denial)))
    return send(task, attempt.id, _permission_reply(event.request, event.allowed, event.reason))


def withdrawn(task: Task, event: AskWithdrawn) -> Stepped:
    """The agent no longer waits: nothing is to be answered under this request."""
    return withdraw(task, event.request), ()


# --- answered ----------------------------------------------------------------------------------------


def questions_answered(task: Task, event: QuestionsAnswered) -> Stepped:
    """Keep the replies; when a request has all that it needs, the agent gets them."""
    replies = {r.decision: r for r in event.replies}
    settled = [d for d in task.open_questions if d.id in replies]
    decisions = {
        d.id: replace(
            d,
            status="answered",
            answer=replies[d.id].words,
            value=replies[d.id].value,
            answered=event.at,
            by=event.by,
        )
        for d in settled
    }
    task = replace(task, decisions=tuple(decisions.get(d.id, d) for d in task.decisions))
    if event.send:
        task, left = _left_open(task)
        settled += left
    effects: tuple[Effect, ...] = ()
    for request in dict.fromkeys(_asking(d) for d in settled):
        task, more = _handed_over(task, request)
        effects += more
    if not task.open_questions:
        task = replace(task, questions=None)
    elif task.questions is not None:
        values = {r.decision: r.value for r in event.replies}
        form = task.questions
        form = replace(form, answers={**form.answers, **values}, shown=event.shown, version=form.version + 1)
        task = replace(task, questions=form)
        effects += (WriteDocument(document=form.document),)
    task, more = resume_parked(task, event.at)
    return task, effects + more


def permission_answered(task: Task, event: PermissionAnswered) -> Stepped:
    """Allow or deny one tool use, with the grant or rule that the person gave along."""
    decision = next((d for d in task.open_decisions if d.id == event.decision), None)
    if decision is None or decision.kind != "permission":
        return task, ()  # withdrawn in the meantime
    answer = f"denied{': ' + event.text if event.text else ''}"
    closed = replace(
        decision,
        status="answered" if event.allowed else "denied",
        answer=f"allowed {SCOPES[event.scope]}" if event.allowed else answer,
        value=event.scope if event.allowed else "deny",
        answered=event.at,
        by=event.by,
    )
    task = replace(task, decisions=tuple(closed if d.id == decision.id else d for d in task.decisions))
    effects: tuple[Effect, ...] = ()
    if event.allowed:
        task, effects = _granted(task, decision, event)
    if decision.parked:
        task, more = resume_parked(task, event.at)
        return task, effects + more
    attempt = live_attempt(task)
    if attempt is None:
        return task, effects
    reply = _permission_reply(decision.request, event.allowed, event.text or DENY_MESSAGE)
    task, more = send(task, attempt.id, reply)
    return task, effects + more


def chosen(value: Any) -> Chosen:
    """An answer's value as the agent takes it."""
    if isinstance(value, str):
        return Chosen(words=value)
    parts = value if isinstance(value, list | tuple) else []
    other = [str(p["other"]) for p in parts if isinstance(p, dict) and "other" in p]
    return Chosen(options=tuple(p for p in parts if isinstance(p, str)), words=", ".join(other))


# --- parked ------------------------------------------------------------------------------------------


def parking_due(task: Task) -> float | None:
    """When the oldest open question is to be parked; None if nothing is open or parking is off."""
    attempt, stage = live_attempt(task), task.stage
    if attempt is None or attempt.live is None or attempt.live.ending is not None or stage is None:
        return None
    park_s = limits_for(task.limits, stage).park_s
    opened = [d.asked for d in task.decisions if d.status == "open"]
    return min(opened) + park_s if opened and park_s > 0 else None


def park(task: Task, at: float) -> Stepped:
    """End the process of a question that was open for too long; the answer will resume the session."""
    attempt, overdue = live_attempt(task), parking_due(task)
    if attempt is None or overdue is None or overdue > at:
        return task, ()
    requests = dict.fromkeys(d.request for d in task.decisions if d.status == "open")
    task = with_live(park_open(task), attempt, ending=Ending(why="parked"), closed=at)
    effects: tuple[Effect, ...] = ()
    for request in requests:
        task, effects = send(task, attempt.id, _parking_reply(request))
    return task, effects


def resume_parked(task: Task, at: float) -> Stepped:
    """When everything that was parked is answered, go on in the same session with questions and answers."""
    run = task.run
    if run is None or not isinstance(run.status, Parked) or task.open_decisions:
        return task, ()
    n = run.last.n if run.last else 0
    late = tuple(
        (d.text, d.answer)
        for d in task.decisions
        if d.parked and d.stage == run.id and d.attempt == n and d.answered is not None
    )
    order = Order(cause="answered", resume=session(run), answers=in_words(late))
    if not order.resume:
        order = replace(order, answers=answers_so_far(task, run))
    return queue(task, task.current, at, order)


# --- to the agent ------------------------------------------------------------------------------------


def send(task: Task, attempt: str, message: Outgoing) -> Stepped:
    """Put a message into an attempt's outbox under the next number, and have it delivered."""
    found = find_attempt(task, attempt)
    if found is None or found[2].live is None:
        return task, ()  # nobody is there to be told
    live = found[2].live
    number = live.sent + 1
    outbox = (*live.outbox, replace(message, number=number))
    return with_live(task, found[2], sent=number, outbox=outbox), (Deliver(attempt=attempt),)


def _waits(attempt: Attempt) -> bool:
    """Whether a person's answer can still reach this attempt."""
    return attempt.live is not None and attempt.live.ending is None and not attempt.live.finished


def _sent_away(task: Task, attempt: Attempt, request: str) -> Stepped:
    """Asked on the way out: it is told to end, and nobody is bothered."""
    return send(task, attempt.id, _parking_reply(request))


def _parking_reply(request: str) -> DenyTool:
    return DenyTool(number=0, request=request, message=PARK_MESSAGE, interrupt=True)


def _permission_reply(request: str, allowed: bool, message: str) -> Outgoing:
    if allowed:
        return AllowTool(number=0, request=request)
    return DenyTool(number=0, request=request, message=message)


def _granted(task: Task, decision: Decision, event: PermissionAnswered) -> Stepped:
    """What a permission means beyond this one use; one that was parked must hold for the next attempt."""
    if not decision.rule:
        return task, ()
    if event.scope == "always":
        kept = KeepRule(
            rule=decision.rule,
            decision=f"{task.id}/{decision.id}",
            stage=decision.stage,
            by=event.by.user,
            client=event.by.client,
            at=event.at,
        )
        return task, (kept,)
    if event.scope == "once" and not decision.parked:
        return task, ()
    grant = Grant(
        rule=decision.rule,
        scope="attempt" if event.scope == "once" else event.scope,
        stage=decision.stage,
        attempt=decision.attempt + decision.parked,
    )
    return replace(task, grants=(*task.grants, grant)), ()


def _asking(d: Decision) -> tuple[str, int, str]:
    """What asked: requests of different attempts may have the same id."""
    return d.stage, d.attempt, d.request


def _left_open(task: Task) -> tuple[Task, list[Decision]]:
    """The person sent what there is: where nothing required is missing, the rest stays without an answer."""
    needed = {_asking(d) for d in task.open_questions if d.required}
    left = [d for d in task.open_questions if _asking(d) not in needed]
    ids = {d.id for d in left}
    decisions = tuple(replace(d, status="withdrawn") if d.id in ids else d for d in task.decisions)
    return replace(task, decisions=decisions), left


def _handed_over(task: Task, request: tuple[str, int, str]) -> Stepped:
    """Give the agent the answers of a request in which nothing is open any more."""
    own = [d for d in task.decisions if _asking(d) == request]
    attempt = live_attempt(task)
    if attempt is None or any(d.parked or d.status == "open" for d in own):
        return task, ()
    answers = tuple(chosen(d.value) for d in own)
    return send(task, attempt.id, GiveAnswers(number=0, request=request[2], answers=answers))


def _with_questions(task: Task, index: int, attempt: Attempt) -> Stepped:
    """The next round's document: all that is open, with what was answered in the draft before it."""
    stage, number = task.pipeline.stages[index], task.round + 1
    opened = task.open_questions
    definition = forms.questions(
        task=task.id, stage=stage.id, title=stage.name, attempt=attempt.n, round=number, decisions=opened
    )
    before = task.questions.answers if task.questions is not None else {}
    kept = {d.id: before[d.id] for d in opened if d.id in before}
    try:
        text = forms.render(definition, forms.from_plain(definition, kept))
    except forms.FormError:
        kept, text = {}, forms.render(definition)
    form = FormState(
        document=f"{task.directory}/{index + 1:02}-{stage.id}-questions-{number}.md",
        attempt=attempt.n,
        definition=definition,
        answers=kept,
        shown=forms.shown(definition, text),
    )
    return replace(task, questions=form, round=number), (WriteDocument(document=form.document),)
