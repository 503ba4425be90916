"""Items of a checklist that waits, at the file and line they speak of (ED-5): read there, and reviewed there."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from msgspec import Struct

from promptside_protocol.pages.plain import one_line
from promptside_protocol.views import ItemView, TaskView
from promptside_server.board import SOURCE, board
from promptside_server.documents import path_of, uri_of
from promptside_server.features.actions import KIND, OPTIONS, Action, drawn
from promptside_server.offered import Act
from promptside_server.server import Server
from promptside_server.shared import give, on

OWNER = "findings"
SEVERITY = {
    "critical": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


class Finding(Struct, frozen=True):
    """An item that is not ticked yet, and has a place in a file."""

    task: TaskView
    item: ItemView
    document: str


def register(server: Server) -> None:
    """Publish with every change of a task, and answer for actions in the files."""

    def publish(*_: object) -> None:
        found: dict[str, list[types.Diagnostic]] = {}
        for uri, findings in _by_file(server).items():
            found[uri] = [_diagnostic(server, uri, finding) for finding in findings]
        board(server).keep(OWNER, found)

    def actions(params: types.CodeActionParams) -> list[Action]:
        here = _by_file(server).get(params.text_document.uri, [])
        first, last = params.range.start.line, params.range.end.line
        found: list[Action] = []
        for finding in here:
            if first <= _line(finding) <= last:
                found += _actions(server, finding)
        return found

    server.on_task.append(publish)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, publish)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)


def _by_file(server: Server) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for task in server.mirror.waiting():
        waiting = task.waiting_for
        gate = waiting.gate if waiting is not None else None
        if waiting is None or gate is None or waiting.document is None or not server.has_open(task.project):
            continue
        for item in gate.items:
            inside = item.path and not Path(item.path).is_absolute() and ".." not in Path(item.path).parts
            if inside and not item.ticked:
                uri = uri_of(task.project, item.path)
                found.setdefault(uri, []).append(Finding(task, item, waiting.document))
    return found


def _line(finding: Finding) -> int:
    return max((finding.item.line or 1) - 1, 0)


def _diagnostic(server: Server, uri: str, finding: Finding) -> types.Diagnostic:
    line = _line(finding)
    width = server.workspace.position_codec.client_num_units(_text_of(server, uri, line))
    return types.Diagnostic(
        range=types.Range(start=types.Position(line, 0), end=types.Position(line, width)),
        severity=SEVERITY[finding.item.severity],
        code="finding",
        source=SOURCE,
        message=f"{finding.item.id} {one_line(finding.item.text)}",
    )


def _text_of(server: Server, uri: str, line: int) -> str:
    text = server.document(uri)
    if text is None:
        file = path_of(uri)
        try:
            text = file.read_text("utf-8", "replace") if file is not None else ""
        except OSError:
            text = ""
    lines = text.split("\n")
    return lines[line].rstrip("\r") if line < len(lines) else ""


def _actions(server: Server, finding: Finding) -> list[Action]:
    task, item = finding.task, finding.item
    at = {"project": task.project, "task": task.id}
    answer = {item.id: {"ticked": True, "note": item.note}}
    mark = {**at, "document": finding.document, "answers": answer}
    review = {"project": task.project, "path": finding.document}
    acts = [
        Act(title=f"Mark {item.id} reviewed", command="promptside.editDraft", args=mark),
        Act(title="Open the review", command="promptside.openFile", args=review),
    ]
    kinds = (types.CodeActionKind.QuickFix, KIND)
    return [a for act, kind in zip(acts, kinds, strict=True) if (a := drawn(server, act, kind)) is not None]
