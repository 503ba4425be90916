"""Code actions of form documents: all offers everywhere in the document, and at an item its own.

This is what works in every editor; an item's answer goes into the buffer as an edit where the editor takes one
with an action, else to the daemon as an order.
"""

from __future__ import annotations

import re
from typing import Any

from lsprotocol import types

from promptside_protocol.forms import Problem
from promptside_protocol.forms.form import apply, from_plain
from promptside_server.board import SOURCE
from promptside_server.documents import Reading, documents
from promptside_server.mending import mends, restored
from promptside_server.offered import (
    REDO,
    WRITE_A_NOTE,
    Act,
    document_acts,
    item_acts,
)
from promptside_server.server import Server
from promptside_server.shared import give

KIND = "source.promptside"
ITEM_KIND = "refactor.promptside"
NEARLY_A_TICK = re.compile(r"^( {0,3})(?:[-*+] *)?\[([^\]\n]{0,2})\][ \t]*(.*)$")
OPTIONS = types.CodeActionOptions(
    code_action_kinds=[KIND, types.CodeActionKind.QuickFix, types.CodeActionKind.Refactor]
)

Action = types.CodeAction | types.Command


def register(server: Server) -> None:
    """Answer for code actions."""
    known = documents(server)

    async def actions(params: types.CodeActionParams) -> list[Action]:
        reading = await known.ready(params.text_document.uri)
        return _actions(server, reading, params) if reading is not None else []

    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)


def literals(server: Server) -> bool:
    """Whether the editor takes more than commands as code actions."""
    documents_of_client = server.client_capabilities.text_document
    action = documents_of_client.code_action if documents_of_client is not None else None
    return action is not None and action.code_action_literal_support is not None


def drawn(
    server: Server, act: Act, kind: str, diagnostics: list[types.Diagnostic] | None = None
) -> Action | None:
    """An act that is an order, as a code action; None where it can't be shown."""
    title = act.sure if act.sure and not (server.editor.ask or server.editor.ours) else act.title
    command = types.Command(title=title, command=act.command, arguments=[act.args])
    if act.blocked is not None:
        if not (server.editor.disabled_actions and literals(server)):
            return None
        disabled = types.CodeActionDisabled(reason=act.blocked)
        return types.CodeAction(title=title, kind=kind, disabled=disabled)
    if not literals(server):
        return command
    return types.CodeAction(
        title=title, kind=kind, command=command, is_preferred=act.primary or None, diagnostics=diagnostics
    )


def _actions(server: Server, reading: Reading, params: types.CodeActionParams) -> list[Action]:
    first, last = params.range.start.line, params.range.end.line
    wanted = params.context.only
    ours = [d for d in params.context.diagnostics if d.source == SOURCE]
    found: list[Action] = []
    refs = list(dict.fromkeys(reading.item_at(line) for line in range(first, min(last, first + 400) + 1)))
    for ref in [ref for ref in refs if ref]:
        line = reading.sections[ref].start
        here = [d for d in ours if line <= d.range.start.line < reading.sections[ref].end]
        kind = types.CodeActionKind.QuickFix if here else ITEM_KIND
        found += [a for act in item_acts(reading, ref) if (a := _as_action(server, reading, act, kind, here))]
    found += _mends(server, reading, first, last, ours)
    there = {action.title for action in found}
    acts = [*(act for act in mends(reading) if act.title not in there), *document_acts(reading)]
    acts.sort(key=_weight)
    found += [a for act in acts if (a := _as_action(server, reading, act, KIND))]
    if wanted:
        found = [a for a in found if isinstance(a, types.Command) or _fits(a, wanted)]
    return found


def _weight(act: Act) -> int:
    """Some editors propose the first action: what is wanted next, else what only changes the buffer, is in front."""
    if act.blocked is None and (act.primary or (act.command == REDO and act.note_at is None)):
        return 0
    if act.answers is not None:
        return 1
    return 2 if act.note_at is not None or act.text is not None else 3


def _as_action(
    server: Server,
    reading: Reading,
    act: Act,
    kind: str,
    diagnostics: list[types.Diagnostic] | None = None,
) -> Action | None:
    if act.note_at is not None:
        return _note(server, reading, act, kind)
    if act.text is not None:
        return _text(server, reading, act.title, act.text, kind, diagnostics)
    if act.answers is None or act.blocked is not None:
        return drawn(server, act, kind, diagnostics)
    if not literals(server):
        at = {"project": reading.task.project, "task": reading.task.id}
        args = {**at, "document": reading.document, "answers": act.answers}
        return types.Command(title=act.title, command="promptside.editDraft", arguments=[args])
    assert reading.definition is not None, "only a form has answers"
    answers = from_plain(reading.definition, {**reading.given, **act.answers})
    target = apply(reading.definition, reading.text, answers)
    return types.CodeAction(
        title=act.title,
        kind=kind,
        edit=_edit(server, reading, target),
        diagnostics=diagnostics,
    )


def _note(server: Server, reading: Reading, act: Act, kind: str) -> Action | None:
    """An act that begins a note; where the editor can't be made to write one, the bare order if it needs none."""
    assert act.note_at is not None
    lines = reading.lines
    at = min(act.note_at, len(lines))
    end = "\r\n" if "\r\n" in reading.text else "\n"
    if literals(server):
        place = types.Position(at, 0)
        new = types.TextEdit(range=types.Range(start=place, end=place), new_text=f">> {end}")
        if at == len(lines):
            width = server.workspace.position_codec.client_num_units(lines[-1])
            place = types.Position(at - 1, width)
            new = types.TextEdit(range=types.Range(start=place, end=place), new_text=f"{end}>> ")
        return types.CodeAction(
            title=act.title, kind=kind, edit=types.WorkspaceEdit(changes={reading.uri: [new]})
        )
    if server.editor.edits:
        args = {"uri": reading.uri, "line": at}
        return types.Command(title=act.title, command="promptside.note", arguments=[args])
    if act.command == REDO:
        args = {**act.args, "feedback": ""}
        return types.Command(title=act.title, command=act.command, arguments=[args])
    return drawn(server, Act(title=act.title, blocked=WRITE_A_NOTE), kind) if act.command else None


def _mends(
    server: Server, reading: Reading, first: int, last: int, ours: list[types.Diagnostic]
) -> list[Action]:
    """What puts right what can't be read in these lines."""
    parsed, form = reading.parsed, reading.form
    if parsed is None or form is None or reading.definition is None:
        return []
    found: list[Action] = []
    errors = [p for p in parsed.problems if p.severity in ("error", "warning") and p.code.startswith("form-")]
    here = [p for p in errors if first <= p.line - 1 <= last]
    refs: dict[str, None] = {}
    for problem in here:
        diagnostics = [
            d for d in ours if d.range.start.line == problem.line - 1 and d.message == problem.text
        ]
        refs |= {problem.ref or reading.item_at(problem.line - 1): None}
        mended = _mended(reading, problem)
        if mended is not None:
            title, line = mended
            lines = list(reading.lines)
            lines[problem.line - 1] = line
            end = "\r\n" if "\r\n" in reading.text else "\n"
            found.append(
                _text(server, reading, title, end.join(lines), types.CodeActionKind.QuickFix, diagnostics)
            )
    if not any(p.severity == "error" for p in here):
        return found
    for ref in refs:
        text = restored(reading, ref) if ref else None
        if text is not None:
            found.append(_text(server, reading, f"Restore {ref}", text, types.CodeActionKind.QuickFix))
    whole = restored(reading)
    if whole is not None:
        found.append(_text(server, reading, "Restore the document", whole, types.CodeActionKind.QuickFix))
    return found


def _mended(reading: Reading, problem: Problem) -> tuple[str, str] | None:
    """The line as it was surely meant."""
    line = reading.lines[problem.line - 1]
    if problem.code == "form-tick" and (nearly := NEARLY_A_TICK.match(line)) is not None:
        mark = nearly[2].strip().lower()
        if mark in ("", "x") and nearly[3]:
            return "Write the tick right", f"{nearly[1]}- [{mark or ' '}] {nearly[3]}"
    if problem.code == "form-heading" and line.startswith("## "):
        return "Make it a ### heading", f"#{line}"
    if problem.code == "form-choice" and "[ ] Other:" in line:
        return "Tick it", line.replace("[ ]", "[x]", 1)
    return None


def _text(
    server: Server,
    reading: Reading,
    title: str,
    text: str,
    kind: str,
    diagnostics: list[types.Diagnostic] | None = None,
) -> Action:
    if literals(server):
        return types.CodeAction(
            title=title, kind=kind, edit=_edit(server, reading, text), diagnostics=diagnostics
        )
    task = reading.task
    args: dict[str, Any] = {
        "project": task.project,
        "task": task.id,
        "document": reading.document,
        "text": text,
    }
    return types.Command(title=title, command="promptside.editDraft", arguments=[args])


def _edit(server: Server, reading: Reading, text: str) -> types.WorkspaceEdit:
    return types.WorkspaceEdit(changes={reading.uri: documents(server).edits(reading.uri, text)})


def _fits(action: types.CodeAction, wanted: Any) -> bool:
    kind = str(action.kind.value if isinstance(action.kind, types.CodeActionKind) else action.kind)
    for one in wanted:
        name = str(one.value if isinstance(one, types.CodeActionKind) else one)
        if kind == name or kind.startswith(f"{name}.") or not name:
            return True
    return False
