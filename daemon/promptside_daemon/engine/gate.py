"""The machine of a gate: an output waits, its draft changes, a person approves, takes back or sends it back.

What a gate lacks is computed in one place, for `decide`, for offers and for diagnostics alike (ST-5).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine.closing import end
from promptside_daemon.engine.effects import Effect, WriteDocument
from promptside_daemon.engine.events import ApprovalTakenBack, ArtifactChanged, DraftChanged, GateApproved
from promptside_daemon.engine.pipeline import RequireApproval, Stage
from promptside_daemon.engine.stage import Stepped, enter, set_status, take, unreached
from promptside_daemon.engine.task import (
    Ahead,
    AtGate,
    AwaitsInput,
    Completed,
    FormState,
    Held,
    Passed,
    Queued,
    StageRun,
    Task,
    find_stage,
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
    """Where the file on disk is not the draft; empty if it is, or isn't there. For an order that shows an older
    draft: where that differs from this one."""
    since: tuple[str, ...] = ()
    """What others did since what such an order shows, in sentences (M10)."""


class Untold(Struct, frozen=True, kw_only=True):
    """Notes to the agent that no order has carried yet, and the document as it is without them."""

    notes: tuple[str, ...] = ()
    document: str = ""
    """Empty where there are no notes."""
    shown: str = ""
    text: str = ""
    """Hash under which the bytes are kept in the attempt directory."""


def edited(form: FormState) -> bool:
    """Whether a person changed what the agent wrote; to choose or to tick is no change."""
    written = isinstance(form.definition, forms.TextDefinition | forms.FieldsDefinition)
    return written and form.began not in ("", form.shown)  # what was kept before that was noted is not known


def selected(form: FormState) -> tuple[str, ...]:
    """The options that are chosen; empty for other forms."""
    if not isinstance(form.definition, forms.OptionsDefinition):
        return ()
    return tuple(option.id for option in form.definition.options if form.answers.get(option.id) is True)


def lacks(stage: Stage, form: FormState, answers: dict[str, object]) -> tuple[str, ...]:
    """What a gate still lacks with these answers, in sentences; empty: it can be approved."""
    if form.raw and not isinstance(stage.gate, RequireApproval | None):
        return (f"The output does not fit {stage.output} and can't be approved as it is. Redo it.",)
    return tuple(
        lack.text for lack in forms.lacks(form.definition, forms.from_plain(form.definition, answers))
    )


def waiting(task: Task, wanted: str = "") -> StageRun | None:
    """The stage that an approval is for: the wanted one, else the one that waits, else one whose approval is void."""
    if wanted:
        found = find_stage(task, wanted)
        return found[1] if found is not None else None
    if task.run is not None and isinstance(task.run.status, AtGate):
        return task.run
    return next((run for run in task.stages if is_void(run)), task.run)


def is_void(run: StageRun) -> bool:
    """Whether what was approved here has changed since (CW-23)."""
    return isinstance(run.status, Passed) and bool(run.status.void)


def approved(task: Task, event: GateApproved) -> Stepped:
    """Pass the stage and reach the next one."""
    found = find_stage(task, event.stage)
    if found is None or found[1].form is None or not isinstance(found[1].status, AtGate | Passed):
        return task, ()  # decided before the stage was left
    index, run = found
    form = replace(
        found[1].form,
        answers=event.answers,
        shown=event.shown,
        text=event.text,
        version=found[1].form.version + 1,
    )
    passed = Passed(
        at=event.at, by=event.by, shown=event.shown, note=event.note, all_at_once=event.all_at_once
    )
    task = with_run(task, index, replace(run, form=form, status=passed))
    written = (WriteDocument(document=form.document),)
    if index != task.current:
        return task, written  # approved again after the artifact changed
    task, effects = enter(task, index + 1, event.at)
    return task, (*written, *effects)


def taken_back(task: Task, event: ApprovalTakenBack) -> Stepped:
    """Let the gate wait again; the stage that the approval started is stopped and kept as such."""
    found = find_stage(task, event.stage)
    if found is None or found[0] != task.current - 1 or not isinstance(found[1].status, Passed):
        return task, ()  # decided before it was approved, or after more had followed
    index = found[0]
    effects: tuple[Effect, ...] = ()
    if index + 1 < len(task.stages):
        task, effects = end(task, "taken_back")
        task = with_run(task, index + 1, unreached(task.stages[index + 1]))
    task = set_status(task, index, AtGate(since=event.at))
    return replace(take(task, event.by, event.at), current=index), effects


def draft_changed(task: Task, event: DraftChanged) -> Stepped:
    """Keep the newest answers of a form: of the questions, of the gate that waits, or of one that was passed."""
    effects = (WriteDocument(document=event.document),)
    if task.questions is not None and task.questions.document == event.document:
        return replace(task, questions=_edited(task.questions, event)), effects
    for index, run in enumerate(task.stages):
        if run.form is not None and run.form.document == event.document:
            task = with_run(task, index, replace(run, form=_edited(run.form, event)))
            return _changed(task, index, event.shown, event.at), effects
    return task, ()  # the form went away while the edit was on its way


def artifact_changed(task: Task, event: ArtifactChanged) -> Stepped:
    """The file of an approved document says something else now."""
    found = find_stage(task, event.stage)
    if found is None:
        return task, ()  # of another pipeline
    return _changed(task, found[0], event.shown, event.at), ()


def _changed(task: Task, index: int, shown: str, at: float) -> Task:
    """An approved document changed: what has not started waits again, what runs is marked (CW-23)."""
    run = task.stages[index]
    status = run.status
    if not isinstance(status, Passed) or status.by is None or run.form is None:
        return task  # nobody vouched for it, or nobody does any more
    if index + 1 >= len(task.stages) or isinstance(task.life, Completed):
        return task  # nothing is built on it any more
    if shown == status.shown:
        return set_status(task, index, replace(status, void=""))  # it is again what was approved
    name = run.form.document.rsplit("/", 1)[-1]
    void = f"{name} was changed after you approved it. The approval no longer holds."
    follower = task.stages[index + 1]
    if task.current == index + 1 and _unstarted(follower):
        task = with_run(task, index + 1, unreached(follower))
        form = replace(run.form, shown=shown)
        run = replace(run, status=AtGate(since=at, why=void), form=form)
        return replace(with_run(task, index, run), current=index)
    task = set_status(task, index, replace(status, void=void))
    return with_run(task, index + 1, replace(follower, mark=f"built on an older {name}"))


def _unstarted(run: StageRun) -> bool:
    match run.status:
        case Ahead() | AwaitsInput():
            return True
        case Queued(order=order) | Held(order=order):
            return order.cause == "first"
        case _:
            return False


def _edited(form: FormState, event: DraftChanged) -> FormState:
    return replace(form, answers=event.answers, shown=event.shown, text=event.text, version=form.version + 1)
