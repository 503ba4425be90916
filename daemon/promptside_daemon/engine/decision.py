"""The machine of decisions: what the agent asks of a person, how it is answered, parked and withdrawn.

A question and a permission are the same thing here: a Decision that the agent opened (ARCHITECTURE section 4).
"""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.effects import CloseInput, Deliver, Effect, KeepRule, WriteDocument
from promptside_daemon.engine.events import (
    AskWithdrawn,
    PermissionAnswered,
    PermissionAsked,
    PermissionSettled,
    QuestionsAnswered,
    QuestionsAsked,
)
from promptside_daemon.engine.pipeline import limits_for
from promptside_daemon.engine.stage import Stepped, queue, session, with_live
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
    Live,
    Order,
    Outgoing,
    Parked,
    Task,
    find_attempt,
    live_attempt,
    with_attempt,
    with_run,
)
from promptside_protocol import forms
from promptside_protocol.views import Denial

PARK_MESSAGE = "The person is away. Your question is kept; you will be resumed with the answer."
DENY_MESSAGE = "The person said no."


def asked(task: Task, event: QuestionsAsked) -> Stepped:
    """Open a decision for each question of the request, and a document for all of them."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None or found[2].live.ending is not None:
        return task, ()  # nobody waits for an answer any more
    index, run, attempt = found
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
            options=q.options,
            other=q.other,
        )
        for i, q in enumerate(event.questions)
    )
    task = replace(task, decisions=(*task.decisions, *opened))
    return _with_questions(task, index, attempt, event.at)


def permission_asked(task: Task, event: PermissionAsked) -> Stepped:
    """Open a decision for a tool use that no rule settles."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None or found[2].live.ending is not None:
        return task, ()  # nobody waits for an answer any more
    _, run, attempt = found
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
    )
    return replace(task, decisions=(*task.decisions, opened)), ()


def permission_settled(task: Task, event: PermissionSettled) -> Stepped:
    """Answer the agent by rule; a denial is listed with the attempt."""
    found = find_attempt(task, event.attempt)
    if found is None or found[2].live is None:
        return task, ()  # the attempt is over
    index, run, attempt = found
    if not event.allowed:
        denial = Denial(tool=event.tool, what=event.what, reason=event.reason)
        attempt = replace(attempt, denials=(*attempt.denials, denial))
        task = with_run(task, index, with_attempt(run, attempt))
    return send(task, attempt, _permission_reply(event.request, event.allowed, event.reason))


def questions_answered(task: Task, event: QuestionsAnswered) -> Stepped:
    """Keep the replies; when a request has all that it needs, the agent gets them."""
    replies = {r.decision: r for r in event.replies}
    decisions = tuple(
        replace(
            d,
            status="answered",
            answer=replies[d.id].words,
            value=replies[d.id].value,
            answered=event.at,
            by=event.by,
        )
        if d.id in replies and d.status in ("open", "parked")
        else d
        for d in task.decisions
    )
    parked = any(d.id in replies and d.status == "parked" for d in task.decisions)
    task = replace(task, decisions=decisions)
    effects: tuple[Effect, ...] = ()
    if task.questions is not None:
        values = {r.decision: r.value for r in event.replies}
        form = task.questions
        form = replace(form, answers={**form.answers, **values}, shown=event.shown, version=form.version + 1)
        task = replace(task, questions=form)
        effects = (WriteDocument(document=form.document),)
    for request in {d.request for d in decisions if d.id in replies}:
        task, more = _complete(task, request, event.at, send_rest=event.send, parked=parked)
        effects += more
    return task, effects


def permission_answered(task: Task, event: PermissionAnswered) -> Stepped:
    """Allow or deny one tool use, with the grant or rule that the person gave along."""
    decision = next((d for d in task.decisions if d.id == event.decision), None)
    if decision is None or decision.status not in ("open", "parked"):
        return task, ()  # withdrawn in the meantime
    words = {"once": "once", "attempt": "for this attempt", "task": "for this task", "always": "always"}[
        event.scope
    ]
    answer = f"allowed {words}" if event.allowed else f"denied{': ' + event.text if event.text else ''}"
    closed = replace(
        decision,
        status="answered" if event.allowed else "denied",
        answer=answer,
        value=event.scope if event.allowed else "deny",
        answered=event.at,
        by=event.by,
    )
    task = replace(task, decisions=tuple(closed if d.id == decision.id else d for d in task.decisions))
    effects: tuple[Effect, ...] = ()
    parked = decision.status == "parked"
    if event.allowed and event.scope == "always":
        effects = (
            KeepRule(
                rule=decision.rule,
                decision=f"{task.id}/{decision.id}",
                stage=decision.stage,
                by=event.by.user,
                client=event.by.client,
                at=event.at,
            ),
        )
    elif event.allowed and (parked or event.scope != "once"):
        n = decision.attempt + 1 if parked else decision.attempt
        scope = "attempt" if event.scope == "once" else event.scope
        grant = Grant(rule=decision.rule, scope=scope, stage=decision.stage, attempt=n)
        task = replace(task, grants=(*task.grants, grant))
    if parked:
        task, more = resume_parked(task, event.at)
        return task, effects + more
    attempt = live_attempt(task)
    if attempt is None:
        return task, effects
    message = event.text or DENY_MESSAGE
    task, more = send(task, attempt, _permission_reply(decision.request, event.allowed, message))
    return task, effects + more


def withdrawn(task: Task, event: AskWithdrawn) -> Stepped:
    """The agent no longer waits: nothing is to be answered under this request."""
    return withdraw(task, lambda d: d.request == event.request), ()


def park(task: Task, at: float) -> Stepped:
    """End the process of a question that was open for too long; the answer will resume the session."""
    attempt = live_attempt(task)
    if attempt is None or attempt.live is None or attempt.live.ending is not None:
        return task, ()
    overdue = parking_due(task)
    if overdue is None or overdue > at:
        return task, ()
    requests = {d.request: None for d in task.decisions if d.status == "open"}
    task = replace(
        task,
        decisions=tuple(replace(d, status="parked") if d.status == "open" else d for d in task.decisions),
    )
    task = with_live(task, attempt, replace(attempt.live, ending=Ending(why="parked")))
    effects: tuple[Effect, ...] = ()
    for request in requests:
        current = live_attempt(task)
        if current is not None:
            denial = DenyTool(number=0, request=request, message=PARK_MESSAGE, interrupt=True)
            task, more = send(task, current, denial)
            effects = more
    return task, effects


def parking_due(task: Task) -> float | None:
    """When the oldest open question is to be parked; None if nothing is open or parking is off."""
    attempt = live_attempt(task)
    stage = task.stage
    if attempt is None or attempt.live is None or attempt.live.ending is not None or stage is None:
        return None
    park_s = limits_for(task.limits, stage).park_s
    opened = [d.asked for d in task.decisions if d.status == "open"]
    return min(opened) + park_s if opened and park_s > 0 else None


def withdraw(task: Task, which: object = None) -> Task:
    """Close what is open without an answer; all of it, or what `which` chooses."""
    choose = which if callable(which) else lambda _: True
    decisions = tuple(
        replace(d, status="withdrawn") if d.status in ("open", "parked") and choose(d) else d
        for d in task.decisions
    )
    task = replace(task, decisions=decisions)
    if not any(d.kind != "permission" for d in task.open_decisions):
        task = replace(task, questions=None)
    return task


def send(task: Task, attempt: Attempt, message: Outgoing) -> Stepped:
    """Put a message into the outbox under the next number, and have it delivered."""
    found = find_attempt(task, attempt.id)
    if found is None or found[2].live is None:
        return task, ()
    live: Live = found[2].live
    number = live.sent + 1
    outbox = (*live.outbox, replace(message, number=number))
    return with_live(task, found[2], replace(live, sent=number, outbox=outbox)), (
        Deliver(attempt=attempt.id),
    )


def closing(task: Task, attempt: Attempt) -> Stepped:
    """No more turns: end of input."""
    return task, (CloseInput(attempt=attempt.id),)


def chosen(value: object) -> Chosen:
    """An answer's value as the agent takes it."""
    if isinstance(value, str):
        return Chosen(words=value)
    parts = value if isinstance(value, list) else []
    other = [str(p["other"]) for p in parts if isinstance(p, dict)]
    return Chosen(options=tuple(p for p in parts if isinstance(p, str)), words=", ".join(other))


def _with_questions(task: Task, index: int, attempt: Attempt, at: float) -> Stepped:
    number = task.round + 1
    stage = task.pipeline.stages[index]
    opened = [d for d in task.decisions if d.status == "open" and d.kind != "permission"]
    definition = forms.questions(
        task=task.id, stage=stage.id, title=stage.name, attempt=attempt.n, round=number, decisions=opened
    )
    form = FormState(
        document=f"{task.directory}/{index + 1:02}-{stage.id}-questions-{number}.md",
        attempt=attempt.n,
        definition=definition,
        shown=forms.shown(definition, forms.render(definition)),
    )
    return replace(task, questions=form, round=number), (WriteDocument(document=form.document),)


def _complete(task: Task, request: str, at: float, *, send_rest: bool, parked: bool) -> Stepped:
    """Hand a request's answers over if nothing (required) is open in it any more."""
    own = [d for d in task.decisions if d.request == request]
    missing = [d for d in own if d.status in ("open", "parked")]
    if any(d.required for d in missing) or (missing and not send_rest):
        return task, ()
    closed = {d.id for d in missing}
    task = replace(
        task,
        decisions=tuple(replace(d, status="withdrawn") if d.id in closed else d for d in task.decisions),
    )
    if parked:
        return resume_parked(task, at)
    attempt = live_attempt(task)
    if attempt is None:
        return task, ()
    answers = tuple(chosen(None if d.id in closed else d.value) for d in own)
    task = replace(task, questions=None) if not _questions_open(task) else task
    return send(task, attempt, GiveAnswers(number=0, request=request, answers=answers))


def resume_parked(task: Task, at: float) -> Stepped:
    """When everything that was parked is answered, go on in the same session with questions and answers."""
    index = task.current
    run = task.run
    if run is None or not isinstance(run.status, Parked) or task.open_decisions:
        return task, ()
    n = run.last.n if run.last else 0
    settled = [d for d in task.decisions if d.stage == run.id and d.attempt == n and d.answered is not None]
    lines = [f"You asked: {d.text}\nThe answer: {d.answer}" for d in settled]
    order = Order(cause="answered", resume=session(run), answers="\n\n".join(lines))
    return queue(replace(task, questions=None), index, at, order)


def _questions_open(task: Task) -> bool:
    return any(d.kind != "permission" for d in task.open_decisions)


def _permission_reply(request: str, allowed: bool, message: str) -> Outgoing:
    if allowed:
        return AllowTool(number=0, request=request)
    return DenyTool(number=0, request=request, message=message)
