"""Code lenses of form documents: the state first, then what can be done, at most five on the first line."""

from __future__ import annotations

import getpass
import time
from bisect import bisect_right
from typing import Any

from lsprotocol import types

from promptside_protocol import forms
from promptside_protocol.forms.grammar import ANSWER, TICK, heading
from promptside_protocol.pages.plain import one_line
from promptside_protocol.pages.waiting import gate_need, need
from promptside_protocol.pages.words import duration, money
from promptside_protocol.views import TaskView
from promptside_server.dangers import GO_BACK
from promptside_server.documents import Reading, documents
from promptside_server.offered import (
    APPROVE,
    LACK,
    REDO,
    SAY,
    SEND,
    TAKE_BACK,
    Act,
    document_acts,
    item_acts,
)
from promptside_server.server import Server
from promptside_server.shared import give

MOST = 5
ON_TOP = (APPROVE, SEND, REDO, SAY, TAKE_BACK)
OUTPUT = "promptside.showOutput"
SHORT = {TAKE_BACK: "Take back"}
"""Titles that are shorter beside the state."""
CHOICES = 3
"""More of them are not listed: one lens goes to where they stand."""


def register(server: Server) -> None:
    """Answer for lenses; have them asked for again when a document changes."""
    known = documents(server)

    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        reading = await known.ready(params.text_document.uri)
        return _lenses(server, reading) if reading is not None else []

    def changed(_: str) -> None:
        if server.editor.lens_refresh:
            server.workspace_code_lens_refresh(None)

    give(server, types.TEXT_DOCUMENT_CODE_LENS, lenses, types.CodeLensOptions(resolve_provider=False))
    known.on_change.append(changed)


def _lenses(server: Server, reading: Reading) -> list[types.CodeLens]:
    acts = [act for act in document_acts(reading) if act.blocked is None]
    if reading.task.state == "archived":  # it is over: its state is of no use to anybody
        return [_act_lens(reading, 0, act) for act in acts if act.command]
    task = reading.task
    at = {"project": task.project, "task": task.id}
    state, elsewhere = state_of(reading), task.waiting_for is not None and not reading.waits
    # Who has just approved a stage's document is told there what the task waits for now.
    found = [] if elsewhere and state == _task_state(task) else [_lens(0, state, LACK, {"uri": reading.uri})]
    found += [_lens(0, _waits_elsewhere(task), "promptside.openTask", at)] if elsewhere else []
    tops = [act for command in ON_TOP for act in acts if act.command == command]
    others = [act for act in acts if act not in tops and act.primary]
    top = [*tops, *others, *(act for act in acts if not act.command)]
    attempt = _attempt(reading)
    shown = attempt is not None and OUTPUT in server.protocol.fm.commands
    room = MOST - len(found) - (2 if shown else 1)
    found += [_act_lens(reading, 0, act, SHORT.get(act.command, "")) for act in top[:room]]
    if shown:
        found.append(_lens(0, "Show output", OUTPUT, at))
    if attempt is not None:
        found.append(_lens(0, attempt, LACK, {"uri": reading.uri}))
    found += _groups(reading)
    for ref, section in reading.sections.items():
        found += _item(reading, ref, section.start)
    return found


def state_of(reading: Reading) -> str:
    """`Select 1 of 3`, `2 of 3 reviewed`; after the decision who took it."""
    task = reading.task
    if reading.waits and task.waiting_for is not None:
        if isinstance(reading.definition, forms.QuestionsDefinition):
            given = reading.given
            required = [q.id for q in reading.definition.items if q.required]
            done = sum(ref in given for ref in required)
            return f"{done} of {len(required)} required answered"
        if task.waiting_for.gate is not None:
            return _sentence(gate_need(task.waiting_for.gate))
    stage = next((s for s in task.stages if s.artifact == reading.document), None)
    if stage is None:
        return _task_state(task)
    if stage.approval is not None:
        clock = time.strftime("%H:%M", time.localtime(stage.approval.at))
        return stage.reason or f"Approved by {_who(stage.approval.by)}, {clock}"
    return _sentence(stage.reason or stage.status)


def _who(by: str) -> str:
    """“you” for the person whose editor this is, else the name."""
    return "you" if by in ("", getpass.getuser()) else by


def _task_state(task: TaskView) -> str:
    if task.waiting_for is not None:
        return f"Waits for you: {need(task.waiting_for)}"
    stage = next((s for s in task.stages if s.id == task.current), None)
    return f"{stage.name}: {stage.status}" if stage is not None else _sentence(task.state)


def _waits_elsewhere(task: TaskView) -> str:
    """`Planning waits for you: your approval`, so that nobody takes it for what stands above."""
    waiting = task.waiting_for
    assert waiting is not None, "it is asked where the task waits"
    stage = next((s.name for s in task.stages if s.id == waiting.stage), waiting.stage)
    return f"{one_line(stage)} waits for you: {need(waiting)}"


def _attempt(reading: Reading) -> str | None:
    stage = next((s for s in reading.task.stages if s.artifact == reading.document), None)
    last = stage.attempts[-1] if stage is not None and stage.attempts else None
    if last is None:
        return None
    words = [f"Attempt {last.n}"]
    words += [duration(last.duration_s)] if last.duration_s is not None else []
    recorded = reading.task.metrics.recorded
    words += [money(last.cost_usd, recorded=recorded)] if last.cost_usd is not None else []
    words += ["read-only proved"] if last.proof is not None and last.proof.verdict == "proved" else []
    return ", ".join(words)


def _groups(reading: Reading) -> list[types.CodeLens]:
    """`1 of 2` at the heading of each group of a checklist."""
    definition, given = reading.definition, reading.given
    if not isinstance(definition, forms.ChecklistDefinition) or not reading.waits:
        return []
    headings = [0, *(at for at, line in enumerate(reading.lines) if heading(line) is not None)]
    groups: dict[int, list[bool]] = {}
    for ref, section in reading.sections.items():
        above = headings[bisect_right(headings, section.start) - 1]
        groups.setdefault(above, []).append(bool((given.get(ref) or {}).get("ticked")))
    args = {"uri": reading.uri}
    return [_lens(at, f"{sum(done)} of {len(done)}", LACK, args) for at, done in groups.items() if at]


def _item(reading: Reading, ref: str, line: int) -> list[types.CodeLens]:
    """The item's own lenses."""
    if not reading.waits:
        return []
    definition, given = reading.definition, reading.given
    offered = item_acts(reading, ref)
    acts = [act for act in offered if act.answers is not None and not act.command]
    match definition:
        case forms.OptionsDefinition():
            title = "Selected, undo" if given.get(ref) else "Select this"
            return [_act_lens(reading, line, act, title) for act in acts[:1]]
        case forms.ChecklistDefinition():
            ticked = bool((given.get(ref) or {}).get("ticked"))
            title = "Reviewed, undo" if ticked else "Reviewed"
            found = [_act_lens(reading, line, act, title) for act in acts[:1]]
            item = reading.points.get(ref)
            if item is not None and item.path:
                place = f"{item.path}:{item.line}" if item.line is not None else item.path
                where = {"project": reading.task.project, "path": item.path, "line": item.line or 1}
                found.append(_lens(line, f"Open {place}", "promptside.openFile", where))
            fixes = [act for act in offered if act.command == GO_BACK and act.blocked is None]
            return [*found, *(_act_lens(reading, line, act, "Have it fixed") for act in fixes)]
        case forms.FieldsDefinition(fields=fields):
            field = next((f for f in fields if f.key == ref), None)
            if field is None or not field.required or reading.parsed is None:
                return []
            lacking = {lack.ref for lack in forms.lacks(definition, reading.parsed.answers)}
            if ref not in lacking:
                return []  # that it is required stands in its heading
            return [_lens(line, "required, empty", LACK, {"uri": reading.uri, "line": line + 1})]
        case forms.QuestionsDefinition():
            if 0 < len(acts) <= CHOICES:
                return [_act_lens(reading, line, act, act.title.partition(":")[0]) for act in acts]
            title = "Answered" if ref in given else "Answer…"
            return [_lens(line, title, LACK, {"uri": reading.uri, "line": _slot(reading, ref)})]
        case _:
            return []


def _slot(reading: Reading, ref: str) -> int:
    """The line (from 1) where the answer to a question goes."""
    section, lines = reading.sections[ref], reading.lines
    places = range(section.start + 1, section.end)
    return next(
        (at + 1 for at in places if ANSWER.match(lines[at]) or TICK.match(lines[at])), section.start + 1
    )


def _act_lens(reading: Reading, line: int, act: Act, title: str = "") -> types.CodeLens:
    if act.note_at is not None:
        return _lens(line, title or act.title, "promptside.note", {"uri": reading.uri, "line": act.note_at})
    if act.command:
        return _lens(line, title or act.title, act.command, act.args)
    args = {
        "project": reading.task.project,
        "task": reading.task.id,
        "document": reading.document,
        "answers": act.answers or {},
    }
    return _lens(line, title or act.title, "promptside.editDraft", args)


def _lens(line: int, title: str, command: str, args: dict[str, Any]) -> types.CodeLens:
    at = types.Position(line, 0)
    return types.CodeLens(
        range=types.Range(start=at, end=at),
        command=types.Command(title=title, command=command, arguments=[args]),
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
