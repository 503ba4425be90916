"""Pipeline, prompt and settings files: what is wrong with them while one types, and what an edit can do about it.

Faults and fixes are the daemon's (ED-5); nothing is judged here.
"""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from promptside_protocol.views import FaultView, Fix, TextCheck, TextFault
from promptside_server.board import SOURCE, board
from promptside_server.checked import checked
from promptside_server.places import lines_of, place, span
from promptside_server.server import Server
from promptside_server.shared import give

CODES = {
    "toml": "pipeline-toml",
    "pipeline": "pipeline-file",
    "prompt": "pipeline-prompt",
    "settings": "pipeline-settings",
}
OWNER = "pipelines"


def register(server: Server) -> None:
    """Publish what the daemon finds, and offer its fixes."""
    files = checked(server)

    def told(uri: str, found: TextCheck | None) -> None:
        lines = lines_of(server.document(uri) or "")
        faults = found.faults if found is not None else ()
        board(server).put(uri, OWNER, [diagnostic(server, fault, lines) for fault in faults])

    def actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        found, text = files.check(uri), server.document(uri)
        if found is None or text is None or not _wanted(params.context):
            return []
        lines = lines_of(text)
        return [
            action
            for fault in found.faults
            if (action := _action(server, uri, fault, lines, params.range)) is not None
        ]

    files.listeners.append(told)
    give(
        server,
        types.TEXT_DOCUMENT_CODE_ACTION,
        actions,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix]),
    )


def diagnostic(server: Server, fault: TextFault, lines: list[str]) -> types.Diagnostic:
    """A fault as the editor shows it: the sentence, and the hint behind it."""
    severity = types.DiagnosticSeverity
    return types.Diagnostic(
        range=_range(server, fault, lines),
        message=f"{fault.message} {fault.hint}".rstrip(),
        severity=severity.Error if fault.severity == "error" else severity.Warning,
        source=SOURCE,
        code=CODES[fault.kind],
        related_information=[_related(fault.source)] if fault.source is not None else None,
    )


def _related(source: FaultView) -> types.DiagnosticRelatedInformation:
    """The other file that a fault is in; its line is all that is known of the place."""
    at = types.Position(line=source.line - 1, character=0)
    place = types.Location(uri=from_fs_path(source.file) or "", range=types.Range(start=at, end=at))
    return types.DiagnosticRelatedInformation(location=place, message=source.message)


def _wanted(context: types.CodeActionContext) -> bool:
    return context.only is None or any(
        types.CodeActionKind.QuickFix.value.startswith(kind) for kind in context.only
    )


def _action(
    server: Server, uri: str, fault: TextFault, lines: list[str], asked: types.Range
) -> types.CodeAction | None:
    if fault.fix is None or not _meet(asked, _range(server, fault, lines)):
        return None
    edit = _creation(server, fault.fix) if fault.fix.create else _edit(server, uri, fault.fix, lines)
    if edit is None:
        return None
    return types.CodeAction(
        title=fault.fix.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic(server, fault, lines)],
        edit=edit,
        is_preferred=True,
    )


def _edit(server: Server, uri: str, fix: Fix, lines: list[str]) -> types.WorkspaceEdit:
    within = span(server, lines, (fix.line - 1, fix.column - 1), (fix.end_line - 1, fix.end_column - 1))
    return types.WorkspaceEdit(changes={uri: [types.TextEdit(range=within, new_text=fix.text)]})


def _creation(server: Server, fix: Fix) -> types.WorkspaceEdit | None:
    """A file to be made, for editors that can; one that came meanwhile is left as it is."""
    workspace = server.client_capabilities.workspace
    can = workspace.workspace_edit if workspace is not None else None
    known = can.resource_operations if can is not None else None
    if not known or types.ResourceOperationKind.Create not in known or Path(fix.file).exists():
        return None
    uri = from_fs_path(fix.file) or ""
    start = types.Position(line=0, character=0)
    edit = types.TextEdit(range=types.Range(start=start, end=start), new_text=fix.text)
    return types.WorkspaceEdit(
        document_changes=[
            types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True)),
            types.TextDocumentEdit(
                text_document=types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None),
                edits=[edit],
            ),
        ]
    )


def _range(server: Server, fault: TextFault, lines: list[str]) -> types.Range:
    start = place(server, lines, fault.line - 1, fault.column - 1)
    return types.Range(start=start, end=place(server, lines, fault.end_line - 1, fault.end_column - 1))


def _meet(one: types.Range, other: types.Range) -> bool:
    return (one.start.line, one.start.character) <= (other.end.line, other.end.character) and (
        other.start.line,
        other.start.character,
    ) <= (one.end.line, one.end.character)
