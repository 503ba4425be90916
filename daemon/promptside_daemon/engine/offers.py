"""What a person can do here and now, each blocked if and only if `decide` would refuse it.

There is no second rule book: an offer asks `decide` with an example of its own order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from promptside_daemon.engine.decide import Given, decide
from promptside_daemon.engine.gate import Sheet
from promptside_daemon.engine.task import (
    AtGate,
    AwaitsInput,
    Completed,
    Draft,
    Failed,
    FormState,
    Parked,
    Paused,
    Person,
    Queued,
    Ready,
    RetryDue,
    Running,
    Stuck,
    Taken,
    Task,
    live_attempt,
)
from promptside_protocol import forms
from promptside_protocol.commands import (
    Abandon,
    Allow,
    Approve,
    Archive,
    Deny,
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
from promptside_protocol.errors import Refused
from promptside_protocol.views import Offer

SOMEBODY = Person(user="", client="")


def offers(task: Task) -> tuple[Offer, ...]:
    """All offers of a task, the primary one first."""
    found = [_offer(task, *candidate) for candidate in _candidates(task)]
    return tuple(sorted(found, key=lambda o: not o.primary))


Candidate = tuple[StageCommand, str, str, dict[str, Any]]
"""An example order, its title, its words in the terminal, and the offer's flags."""


def _candidates(task: Task) -> Iterator[Candidate]:
    at: dict[str, Any] = {"project": task.project, "task": task.id}
    t = task.id
    run, stage = task.run, task.stage
    if isinstance(task.life, Draft):
        yield MarkReady(**at), "Mark ready", f"task ready {t}", {"primary": True}
    if isinstance(task.life, Paused):
        yield Resume(**at), "Resume", f"resume {t}", {"primary": True}
    if isinstance(task.life, Completed | Failed):
        yield Archive(**at), "Archive", f"task archive {t}", {}
    if run is not None and stage is not None and isinstance(task.life, Ready | Taken):
        yield from _stage_candidates(task, at)
    if isinstance(task.life, Ready | Taken | Paused | Draft):
        yield Abandon(**at), "Abandon…", f"task abandon {t}", {"danger": True}


def _stage_candidates(task: Task, at: dict[str, Any]) -> Iterator[Candidate]:
    t, run, stage = task.id, task.run, task.stage
    if run is None or stage is None:
        return
    status = run.status
    for asked in task.open_decisions:
        if asked.kind == "permission":
            place = {"place": asked.id}
            words = f"answer {t} {asked.id} --option"
            yield Allow(**at, decision=asked.id), "Allow once", f"{words} once", {**place, "primary": True}
            if asked.rule:
                always = Allow(**at, decision=asked.id, scope="always")
                yield always, "Always in this project", f"{words} always", place
            yield Deny(**at, decision=asked.id), "Deny…", f"{words} deny", {**place, "needs_text": True}
    if any(d.kind != "permission" for d in task.open_decisions):
        yield SendAnswers(**at), "Send answers", f"open {t}", {"primary": not task.open_decisions[0].tool}
    if isinstance(status, AtGate):
        yield Approve(**at, stage=run.id), "Approve", f"approve {t}{_how(run.form)}", {"primary": True}
    if isinstance(status, AwaitsInput) or isinstance(task.life, Ready):
        yield Run(**at), f"Run {stage.name}", f"run {t}", {"primary": True}
    if isinstance(status, Stuck | RetryDue):
        yield Retry(**at), "Retry", f"retry {t}", {"primary": isinstance(status, Stuck)}
    if isinstance(status, AtGate | Stuck | Parked):
        yield Redo(**at), "Redo…", f"redo {t} -m “…”", {"needs_text": True}
    if isinstance(status, Running | Queued | RetryDue | Parked):
        yield Stop(**at), "Stop", f"stop {t}", {"danger": True}
        yield Pause(**at), "Pause", f"pause {t}", {}
    if isinstance(status, Running):
        yield Say(**at, text="…"), "Interrupt with feedback…", f"say {t} “…”", {"needs_text": True}
    if not isinstance(status, Running | Queued):
        yield Skip(**at), f"Skip {stage.name}…", f"skip {t}", {"danger": True, "needs_text": True}
    if task.current > 0:
        yield TakeBack(**at), "Take back the approval", f"take-back {t}", {}
        earlier = task.stages[task.current - 1].id
        yield GoBack(**at, stage=earlier), "Go back to…", f"back {t} {earlier}", {"danger": True}
    last = run.last
    if last is not None and last.changes and live_attempt(task) is None:
        yield UndoFiles(**at), "Undo what the attempt changed…", f"undo {t} --files", {"danger": True}


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
        decide(task, command, _given(task, command))
    except Refused as refusal:
        return refusal.refusal.message
    return None


def _given(task: Task, command: StageCommand) -> Given:
    form: FormState | None = None
    if isinstance(command, SendAnswers):
        form = task.questions
    elif task.run is not None:
        form = task.run.form
    sheet = None
    if form is not None:
        sheet = Sheet(document=form.document, answers=form.answers, shown=form.shown, before=form.shown)
    return Given(at=0.0, by=SOMEBODY, sheet=sheet)


def _arguments(command: StageCommand) -> dict[str, Any]:
    """What tells this order from its command's plainest form, apart from where it goes."""
    keys = ("decision", "scope", "stage")
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
