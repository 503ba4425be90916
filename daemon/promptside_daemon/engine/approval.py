"""Whether a gate can be approved now, and whether an approval can be taken back (ST-5, CW-23)."""

from __future__ import annotations

from typing import Any

from promptside_daemon.engine import gate
from promptside_daemon.engine.events import ApprovalTakenBack, GateApproved
from promptside_daemon.engine.gate import Sheet
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.pipeline import Stage
from promptside_daemon.engine.standing import must_be_open, not_in, not_now
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    AwaitsInput,
    Completed,
    Failed,
    FormState,
    Passed,
    Paused,
    Queued,
    RetryDue,
    Running,
    Task,
)
from promptside_protocol import forms
from promptside_protocol.commands import Approve
from promptside_protocol.errors import Refused, refused

TOLD = 3
"""Changes of others that a refusal names."""


def approve(task: Task, command: Approve, given: Given) -> GateApproved:
    """The approval of the gate that waits, or of a stage whose approval became void."""
    stage, form = _gate(task, command.stage, given)
    sheet = vouched(task, form, command.shown, given.sheet, act="approved")
    if not command.shown and sheet.difference and not isinstance(form.definition, forms.TextDefinition):
        name = form.document.rsplit("/", 1)[-1]
        raise refused(
            "file-differs",
            f"{name} was changed outside of any editor that Promptside knows; such answers don't count.",
            f"promptside open {task.id}",
            sheet.difference,
        )
    if sheet.notes:
        many = sheet.notes > 1
        raise refused(
            "notes",
            f"There {'are' if many else 'is'} {sheet.notes} note{'s' if many else ''} for the agent in this document.",
            f"Send {'them' if many else 'it'} with promptside redo {task.id}, or remove "
            f"{'them' if many else 'it'} to approve.",
        )
    missing = gate.lacks(stage, form, sheet.answers)
    if missing:
        raise refused("gate-lacks", f"Not approved: {forms.together(missing)}", f"promptside open {task.id}")
    return GateApproved(
        at=given.at,
        by=given.by,
        stage=stage.id,
        answers=sheet.answers,
        shown=sheet.shown,
        text=sheet.text,
        note=command.note,
        all_at_once=_all_at_once(form, command),
    )


def vouched(task: Task, form: FormState, shown: str, sheet: Sheet | None, *, act: str) -> Sheet:
    """The document as it was read for an order, if it is what the person saw and can be read."""
    if sheet is None or sheet.document != form.document:
        raise refused(
            "no-document", "The document that waits could not be read.", f"promptside open {task.id}"
        )
    if shown and shown not in (sheet.shown, sheet.before):
        if sheet.since:
            raise refused(
                "other-bytes",
                f"{_first(sheet.since)} Look again, then {'approve' if act == 'approved' else 'send'}.",
                f"promptside open {task.id}",
                sheet.difference,
            )
        raise refused(
            "other-bytes",
            f"This document is not what the daemon has. Nothing was {act}.",
            "Look at it again, then try once more.",
            sheet.difference,
        )
    if sheet.errors:
        line, text = sheet.errors[0]
        count = f"{len(sheet.errors)} lines" if len(sheet.errors) > 1 else "1 line"
        raise refused(
            "form-grammar",
            f"The document has {count} that can't be read (line {line}: {text.rstrip('.')}).",
            f"Mend it with promptside open {task.id}, then try again.",
        )
    return sheet


def _first(sentences: tuple[str, ...]) -> str:
    more = len(sentences) - TOLD
    return " ".join([*sentences[:TOLD], *([f"And {more} more."] if more > 0 else [])])


def take_back(task: Task, given: Given) -> ApprovalTakenBack:
    """The newest approval can be taken back while the stage after it has not given anything."""
    if isinstance(task.life, Archived | Failed | Paused):
        raise not_now(task)
    index = task.current - 1
    before = task.stages[index] if index >= 0 else None
    if before is None or not isinstance(before.status, Passed):
        raise refused("no-approval", "There is no approval to take back.")
    if before.status.by is None or before.form is None:
        raise refused("no-approval", "That stage passed by itself; there is no approval to take back.")
    run = task.run
    if run is not None and (
        run.form is not None or not isinstance(run.status, Ahead | AwaitsInput | Queued | Running | RetryDue)
    ):
        raise refused(
            "next-has-run",
            f"{task.pipeline.stages[task.current].name} has run since. The approval stands.",
            f"promptside back {task.id} {before.id}",
        )
    return ApprovalTakenBack(at=given.at, by=given.by, stage=before.id)


def _gate(task: Task, wanted: str, given: Given) -> tuple[Stage, FormState]:
    """The gate that is approved; one that was approved before is refused with who did it (M6)."""
    run = gate.waiting(task, wanted)
    if run is None and wanted:
        raise refused("no-stage", f"There is no stage {wanted} in {task.pipeline.name}.")
    stood = _approved_before(task, wanted)
    if stood is not None and (run is None or not (isinstance(run.status, AtGate) or gate.is_void(run))):
        raise _already(*stood, given)
    must_be_open(task)
    if run is None:
        raise not_now(task)
    stage = task.pipeline.stages[task.pipeline.index(run.id)]
    if run.form is None or not (isinstance(run.status, AtGate) or gate.is_void(run)):
        raise not_in(task, stage, run)
    return stage, run.form


def _approved_before(task: Task, wanted: str) -> tuple[Stage, Passed] | None:
    """The approval that an order comes too late for: the wanted stage's, else the newest with nothing after it."""
    if wanted:
        index = task.pipeline.index(wanted)
    else:
        index = task.current - 1 if isinstance(task.life, Completed) or _just_begun(task) else -1
    status = task.stages[index].status if index >= 0 else None
    if not isinstance(status, Passed) or status.by is None:
        return None
    return task.pipeline.stages[index], status


def _just_begun(task: Task) -> bool:
    run = task.run
    return run is not None and isinstance(run.status, Ahead | AwaitsInput | Queued | Running)


def _already(stage: Stage, passed: Passed, given: Given) -> Refused:
    where = f" from {passed.by.client}" if passed.by and passed.by.client else ""
    when = f" at {given.clock}" if given.clock else ""
    comma = "," if where or when else ""
    return refused("approved", f"{stage.name} was approved already{comma}{when}{where}. Nothing was changed.")


def _all_at_once(form: FormState, command: Approve) -> bool:
    """Whether a checklist was ticked whole by one order that had not seen it (`--check all`): the record says so."""
    definition = form.definition
    if not isinstance(definition, forms.ChecklistDefinition) or command.shown or len(definition.items) < 2:
        return False

    def ticked(answers: dict[str, Any], item: str) -> bool:
        value = answers.get(item)
        return isinstance(value, dict) and bool(value.get("ticked"))

    whole = all(ticked(command.answers, item.id) for item in definition.items)
    return whole and not any(ticked(form.answers, item.id) for item in definition.items)
