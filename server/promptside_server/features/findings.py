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
from promptside_server.places import lines_of, span
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

    by_file: dict[str, list[Finding]] = {}

    def publish(*_: object) -> None:
        nonlocal by_file
        by_file = _by_file(server)
        found: dict[str, list[types.Diagnostic]] = {}
        for uri, findings in by_file.items():
            lines = _lines_of(server, uri)
            if lines is not None:  # else the file is not there any more: the review says where it was
                named = _several(findings)
                found[uri] = [_diagnostic(server, lines, finding, named=named) for finding in findings]
        board(server).keep(OWNER, found)

    def actions(params: types.CodeActionParams) -> list[Action]:
        uri = params.text_document.uri
        findings = by_file.get(_key(uri), []) if by_file else []
        lines = _lines_of(server, uri) if findings else None
        if lines is None:
            return []
        first, last = params.range.start.line, params.range.end.line
        found: list[Action] = []
        for finding in findings:
            if first <= _line(finding, lines) <= last:
                words = _words(finding, named=_several(findings))
                here = [d for d in params.context.diagnostics if d.source == SOURCE and d.message == words]
                found += _actions(server, finding, here, named=_several(findings))
        return found

    server.on_folders.append(publish)
    server.on_task.append(publish)
    server.on_gone.append(publish)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, publish)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)


def _by_file(server: Server) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for task in server.mirror.waiting():
        waiting = task.waiting_for
        gate = waiting.gate if waiting is not None else None
        if waiting is None or gate is None or waiting.document is None or not server.has_open(task.project):
            continue
        root = Path(task.project).resolve()
        keys: dict[str, str] = {}
        """By path, since many items speak of one file, and to follow links takes long; empty for what is outside."""
        for item in gate.items:
            if item.path and not item.ticked and "\0" not in item.path:
                if item.path not in keys:
                    # What the agent wrote must not lead outside, neither by `..` nor by a link.
                    file = (root / item.path).resolve()
                    inside = file.is_relative_to(root) and file != root
                    keys[item.path] = (
                        _key(uri_of(task.project, str(file.relative_to(root)))) if inside else ""
                    )
                if keys[item.path]:
                    found.setdefault(keys[item.path], []).append(Finding(task, item, waiting.document))
    return found


def _key(uri: str) -> str:
    """A file's uri however the editor writes it."""
    file = path_of(uri)
    return uri_of("/", str(file)) if file is not None else uri


def _several(findings: list[Finding]) -> bool:
    """Whether a file has findings of more than one task, which are then told apart."""
    return len({(finding.task.project, finding.task.id) for finding in findings}) > 1


def _line(finding: Finding, lines: list[str]) -> int:
    """The line from 0; the file may have become shorter since it was looked at."""
    return min(max((finding.item.line or 1) - 1, 0), len(lines) - 1)


def _words(finding: Finding, *, named: bool) -> str:
    task = f"#{finding.task.id} " if named else ""
    return f"{task}{finding.item.id} {one_line(finding.item.text)}"


def _diagnostic(server: Server, lines: list[str], finding: Finding, *, named: bool) -> types.Diagnostic:
    line = _line(finding, lines)
    return types.Diagnostic(
        range=span(server, lines, (line, 0), (line, len(lines[line]))),
        severity=SEVERITY[finding.item.severity],
        code="finding",
        source=SOURCE,
        message=_words(finding, named=named),
    )


def _lines_of(server: Server, uri: str) -> list[str] | None:
    """The file's lines, as the editor has them if it is open; None if there is no such file."""
    text = server.document(uri)
    if text is None:
        file = path_of(uri)
        try:
            text = file.read_text("utf-8", "replace") if file is not None else None
        except OSError:
            return None
    return lines_of(text) if text is not None else None


def _actions(
    server: Server, finding: Finding, diagnostics: list[types.Diagnostic], *, named: bool
) -> list[Action]:
    task, item = finding.task, finding.item
    at = {"project": task.project, "task": task.id}
    task_name = f" (#{task.id})" if named else ""
    answer = {item.id: {"ticked": True, "note": item.note}}
    acts = [
        Act(
            title=f"Mark {item.id} reviewed{task_name}",
            command="promptside.editDraft",
            args={**at, "document": finding.document, "answers": answer},
        )
    ]
    acts += [
        Act(
            title=f"{offer.title}{task_name}",
            command=offer.command,
            args={**at, **offer.args},
            blocked=offer.blocked,
        )
        for offer in task.offers
        if offer.place == item.id
    ]
    found = [drawn(server, act, types.CodeActionKind.QuickFix, diagnostics or None) for act in acts]
    review = Act(
        title=f"Open the review{task_name}",
        command="promptside.openFile",
        args={"project": task.project, "path": finding.document},
    )
    return [action for action in [*found, drawn(server, review, KIND)] if action is not None]
