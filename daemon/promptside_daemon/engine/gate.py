"""The machine of a gate: an output waits, its draft changes, a person approves, takes back or sends it back.

What a gate lacks is computed in one place, for `decide`, for offers and for diagnostics alike (ST-5).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine.effects import Effect, WriteDocument
from promptside_daemon.engine.events import ApprovalTakenBack, ArtifactChanged, DraftChanged, GateApproved
from promptside_daemon.engine.pipeline import RequireApproval, Stage
from promptside_daemon.engine.stage import Stepped, end_live, enter
from promptside_daemon.engine.task import (
    Ahead,
    AtGate,
    AwaitsInput,
    Ending,
    FormState,
    Passed,
    Queued,
    Taken,
    Task,
    with_run,
)
from promptside_protocol import forms


class Sheet(Struct, frozen=True, kw_only=True):
    """A form document as the loop read it for one order: the draft with the order's answers laid over it."""

    document: str
    answers: dict[str, object]
    shown: str
    """Hash of the document with these answers."""
    before: str
    """Hash of the draft before them."""
    text: str = ""
    """Hash under which the bytes are kept in the attempt directory."""
    errors: tuple[tuple[int, str], ...] = ()
    """Lines that can't be read, and why."""
    notes: int = 0
    difference: str = ""
    """Where the file on disk is not the draft; empty if it is, or isn't there."""


def lacks(stage: Stage, form: FormState, answers: dict[str, object]) -> tuple[str, ...]:
    """What a gate still lacks with these answers, in sentences; empty: it can be approved."""
    if form.raw and not isinstance(stage.gate, RequireApproval | None):
        return (f"The output does not fit {stage.output} and can't be approved as it is. Redo it.",)
    return tuple(
        lack.text for lack in forms.lacks(form.definition, forms.from_plain(form.definition, answers))
    )


def approved(task: Task, event: GateApproved) -> Stepped:
    """Pass the stage and reach the next one."""
    index = task.pipeline.index(event.stage)
    run = task.stages[index]
    if run.form is None:
        return task, ()  # decided before the stage was left; kept as a fact only
    form = replace(
        run.form, answers=event.answers, shown=event.shown, text=event.text, version=run.form.version + 1
    )
    passed = Passed(
        at=event.at, by=event.by, shown=event.shown, note=event.note, all_at_once=event.all_at_once
    )
    task = with_run(task, index, replace(run, form=form, status=passed))
    if index != task.current:
        return task, (WriteDocument(document=form.document),)  # approved again after the artifact changed
    task, effects = enter(task, index + 1, event.at)
    return task, (WriteDocument(document=form.document), *effects)


def taken_back(task: Task, event: ApprovalTakenBack) -> Stepped:
    """Let the gate wait again; the stage that the approval started is stopped and kept as such."""
    index = task.pipeline.index(event.stage)
    effects: tuple[Effect, ...] = ()
    if index + 1 < len(task.stages):
        task, effects = end_live(task, Ending(why="taken_back"), "approval taken back")
        follower = task.stages[index + 1]
        task = with_run(task, index + 1, replace(follower, status=Ahead(), form=None, retries=0))
    task = with_run(task, index, replace(task.stages[index], status=AtGate(since=event.at)))
    by = event.by
    return replace(task, current=index, life=Taken(since=event.at, by=by)), effects


def draft_changed(task: Task, event: DraftChanged) -> Stepped:
    """Keep the newest answers of the form that waits, at its gate or as questions."""
    effects = (WriteDocument(document=event.document),)
    if task.questions is not None and task.questions.document == event.document:
        return replace(task, questions=_edited(task.questions, event)), effects
    for index, run in enumerate(task.stages):
        if run.form is not None and run.form.document == event.document:
            return with_run(task, index, replace(run, form=_edited(run.form, event))), effects
    return task, ()  # the form went away while the edit was on its way


def artifact_changed(task: Task, event: ArtifactChanged) -> Stepped:
    """An approved document changed: what has not started waits again, what runs is marked (CW-23)."""
    index = task.pipeline.index(event.stage)
    run = task.stages[index]
    if not isinstance(run.status, Passed) or run.form is None:
        return task, ()  # not approved any more
    name = run.form.document.rsplit("/", 1)[-1]
    follower = task.stages[index + 1] if index + 1 < len(task.stages) else None
    unstarted = follower is not None and isinstance(follower.status, Queued | AwaitsInput | Ahead)
    if unstarted and task.current == index + 1:
        task = with_run(task, index + 1, replace(task.stages[index + 1], status=Ahead()))
        run = replace(run, status=AtGate(since=event.at), form=replace(run.form, shown=event.shown))
        return replace(with_run(task, index, run), current=index), ()
    void = f"{name} was changed after you approved it. The approval no longer holds."
    task = with_run(task, index, replace(run, status=replace(run.status, void=void)))
    if follower is not None:
        marked = replace(task.stages[index + 1], mark=f"built on an older {name}")
        task = with_run(task, index + 1, marked)
    return task, ()


def _edited(form: FormState, event: DraftChanged) -> FormState:
    return replace(form, answers=event.answers, shown=event.shown, text=event.text, version=form.version + 1)
