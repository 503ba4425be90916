"""What a person can do here and now, each blocked if and only if `decide` would refuse it.

There is no second rule book: an offer asks `decide` with an example of its own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from promptside_daemon.engine.decide import Given, decide
from promptside_daemon.engine.gate import Sheet, is_void, waiting
from promptside_daemon.engine.pipeline import Stage
from promptside_daemon.engine.reply import scopes
from promptside_daemon.engine.task import (
    AtGate,
    AwaitsInput,
    Completed,
    Decision,
    Draft,
    Failed,
    FormState,
    Held,
    Parked,
    Paused,
    Person,
    Queued,
    Ready,
    RetryDue,
    Running,
    StageRun,
    Stuck,
    Taken,
    Task,
    left_changes,
)
from promptside_protocol import forms
from promptside_protocol.commands import (
    Abandon,
    Allow,
    Approve,
    Archive,
    Deny,
    GiveBack,
    GoBack,
    Pause,
    Redo,
    Resume,
    Retry,
    Run,
    Say,
    Scope,
    SendAnswers,
    Skip,
    StageCommand,
    Stop,
    TakeBack,
    TakeOver,
    UndoFiles,
)
from promptside_protocol.commands import Ready as MarkReady
from promptside_protocol.errors import Refused
from promptside_protocol.views import Offer

SOMEBODY = Person(user="", client="")

DETAIL_LIMIT = 1000
"""Characters of an item's detail that go with an offer: every client gets it with every change."""

ALLOW: dict[Scope, str] = {
    "once": "Allow once",
    "attempt": "Allow for this attempt",
    "task": "Allow for this task",
    "always": "Always in this project",
}


def offers(task: Task) -> tuple[Offer, ...]:
    """All offers of a task, the primary ones first."""
    found = [_offer(task, *candidate) for candidate in _candidates(task)]
    return tuple(sorted(found, key=lambda o: not o.primary))


Candidate = tuple[StageCommand, str, str, dict[str, Any]]
"""An example order, its title, its words in the terminal, and the offer's flags."""


def _candidates(task: Task) -> Iterator[Candidate]:
    at: dict[str, Any] = {"project": task.project, "task": task.id}
    t = task.id
    if task.taken_over is not None:
        yield GiveBack(**at), "Give back to the agent", f"give-back {t}", {"primary": True}
        return
    if isinstance(task.life, Draft):
        yield MarkReady(**at), "Mark ready", f"task ready {t}", {"primary": True}
    if isinstance(task.life, Paused):
        yield Resume(**at), "Resume", f"resume {t}", {"primary": True}
    if isinstance(task.life, Completed | Failed):
        yield Archive(**at), "Archive", f"task archive {t}", {"primary": True}
    if isinstance(task.life, Taken):
        for asked in task.open_decisions:
            yield from _permission(task, asked, at)
        if task.open_questions:
            primary = {"primary": task.open_decisions[0].kind != "permission"}
            yield SendAnswers(**at), "Send answers", f"open {t}", primary
    if isinstance(task.life, Ready | Taken):
        yield from _stage(task, at)
    if isinstance(task.life, Paused) and task.run is not None and isinstance(task.run.status, Held | Parked):
        yield Stop(**at), "Stop", f"stop {t}", {"danger": True}
    if isinstance(task.life, Taken | Paused) and task.run is not None and task.run.attempts:
        yield TakeOver(**at), "Continue in a terminal", f"take-over {t}", {}
    if isinstance(task.life, Ready | Taken | Completed) and task.current > 0:
        yield TakeBack(**at), "Take back the approval", f"take-back {t}", {}
        earlier = task.stages[task.current - 1].id
        yield GoBack(**at, stage=earlier), "Go back to…", f"back {t} {earlier}", {"danger": True}
    if isinstance(task.life, Taken | Completed):
        yield from _undo(task, at)
    if isinstance(task.life, Ready | Taken | Paused | Draft):
        yield Abandon(**at), "Abandon…", f"task abandon {t}", {"danger": True}


def _permission(task: Task, asked: Decision, at: dict[str, Any]) -> Iterator[Candidate]:
    if asked.kind != "permission":
        return
    words = f"answer {task.id} {asked.id} --option"
    for scope in scopes(asked):
        flags = {"place": asked.id, "primary": scope == "once"}
        yield Allow(**at, decision=asked.id, scope=scope), ALLOW[scope], f"{words} {scope}", flags
    yield Deny(**at, decision=asked.id), "Deny…", f"{words} deny", {"place": asked.id, "needs_text": True}


def _stage(task: Task, at: dict[str, Any]) -> Iterator[Candidate]:
    t, run, stage = task.id, task.run, task.stage
    if run is None or stage is None:
        return
    status = run.status
    if isinstance(status, AtGate):
        yield Approve(**at, stage=run.id), "Approve", f"approve {t}{_how(run.form)}", {"primary": True}
        yield from _fixes(task, stage, run, at)
    for index, earlier in enumerate(task.stages):
        if is_void(earlier):
            name = task.pipeline.stages[index].name
            flags = {"place": earlier.id}
            yield Approve(**at, stage=earlier.id), f"Approve {name} again", f"approve {t}", flags
    if isinstance(status, AwaitsInput) or isinstance(task.life, Ready):
        yield Run(**at), f"Run {stage.name}", f"run {t}", {"primary": True}
    if isinstance(status, Stuck | RetryDue):
        yield Retry(**at), "Retry", f"retry {t}", {"primary": isinstance(status, Stuck)}
    if isinstance(status, AtGate | Stuck | Parked | RetryDue):
        yield Redo(**at), "Redo…", f"redo {t} -m “…”", {"needs_text": True}
    if isinstance(status, Running | Queued | RetryDue | Parked):
        yield Stop(**at), "Stop", f"stop {t}", {"danger": True}
    if isinstance(task.life, Taken):
        yield Pause(**at), "Pause", f"pause {t}", {}
    if isinstance(status, Running):
        yield Say(**at, text="…"), "Interrupt with feedback…", f"say {t} “…”", {"needs_text": True}
    yield Skip(**at), f"Skip {stage.name}…", f"skip {t}", {"danger": True, "needs_text": True}


def _fixes(task: Task, stage: Stage, run: StageRun, at: dict[str, Any]) -> Iterator[Candidate]:
    """Sending an item of a checklist back to the stage that the pipeline names for it (UX 2.5)."""
    if not stage.fix or run.form is None or not isinstance(run.form.definition, forms.ChecklistDefinition):
        return
    for item in run.form.definition.items:
        answer = run.form.answers.get(item.id) or {}
        if not answer.get("ticked"):
            reason = _in_words(item, str(answer.get("note", "")))
            order = GoBack(**at, stage=stage.fix, reason=reason)
            words = f"back {task.id} {stage.fix} --reason “{item.id} …”"
            yield order, f"Have {item.id} fixed", words, {"place": item.id}


def _in_words(item: forms.CheckItem, note: str) -> str:
    """An item as the feedback of the stage that is to fix it."""
    place = f" ({item.path}{f':{item.line}' if item.line is not None else ''})" if item.path else ""
    parts = (f"Fix {item.id}: {item.title}{place}", item.detail.strip()[:DETAIL_LIMIT], note)
    return "\n\n".join(part for part in parts if part)


def _undo(task: Task, at: dict[str, Any]) -> Iterator[Candidate]:
    """For the newest attempt that changed anything, wherever the task is by now."""
    changed = [(a.queued, run.id, a) for run in task.stages for a in run.attempts if left_changes(a)]
    if not changed:
        return
    _, stage, last = max(changed, key=lambda one: (one[0], one[2].n))
    yield (
        UndoFiles(**at, stage=stage, attempt=last.n),
        "Undo what the attempt changed…",
        f"undo {task.id} --attempt {last.n} --files",
        {"place": stage, "danger": True},
    )


def _offer(task: Task, command: StageCommand, title: str, words: str, flags: dict[str, Any]) -> Offer:
    return Offer(
        command=f"promptside.{command.__struct_config__.tag}",
        title=title,
        args=_arguments(command),
        blocked=_blocked(task, command),
        hint=f"promptside {words}",
        **flags,
    )


def _blocked(task: Task, command: StageCommand) -> str | None:
    try:
        decide(task, command, example(task, command))
    except Refused as refusal:
        return refusal.refusal.message
    return None


def example(task: Task, command: StageCommand) -> Given:
    """What an order would be given if the person sent the draft as it is."""
    form: FormState | None = None
    if isinstance(command, SendAnswers):
        form = task.questions
    elif isinstance(command, Approve):
        run = waiting(task, command.stage)
        form = run.form if run is not None else None
    sheet = None
    if form is not None:
        sheet = Sheet(document=form.document, answers=form.answers, shown=form.shown, before=form.shown)
    return Given(at=0.0, by=SOMEBODY, sheet=sheet)


def _arguments(command: StageCommand) -> dict[str, Any]:
    """What tells this order from its command's plainest form, apart from where it goes."""
    keys = ("decision", "scope", "stage", "attempt", "reason")
    return {k: v for k in keys if (v := getattr(command, k, "")) and not (k == "scope" and v == "once")}


def _how(form: FormState | None) -> str:
    if form is None:
        return ""
    match form.definition:
        case forms.OptionsDefinition(options=options):
            best = next((o.id for o in options if o.recommended), options[0].id if options else "A")
            return f" --select {best}"
        case forms.ChecklistDefinition(items=items) if items:
            return f" --check {items[0].id} …"
        case _:
            return ""
