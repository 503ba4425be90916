"""Diagnostics of form documents: what the gate lacks, what can't be read, and what others changed meanwhile.

What lacks is an information, and a warning only after an approval was asked for.
"""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol.forms import Problem
from promptside_server.board import SOURCE, board
from promptside_server.documents import Reading, documents
from promptside_server.offered import notes_of
from promptside_server.server import Server
from promptside_server.shared import on

OWNER = "form"
SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def register(server: Server) -> None:
    """Publish whenever a document changed, or what is known of it."""
    known = documents(server)

    def changed(uri: str) -> None:
        reading = known.read(uri)
        board(server).put(uri, OWNER, found_in(server, reading) if reading is not None else [])

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        board(server).put(params.text_document.uri, OWNER, [])

    known.on_change.append(changed)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, closed)


def found_in(server: Server, reading: Reading) -> list[types.Diagnostic]:
    """What is to be said about a buffer."""
    lines = reading.lines

    def said(line: int, severity: types.DiagnosticSeverity, code: str, text: str) -> types.Diagnostic:
        line = min(max(line, 0), len(lines) - 1)
        width = server.workspace.position_codec.client_num_units(lines[line])
        place = types.Range(start=types.Position(line, 0), end=types.Position(line, width))
        return types.Diagnostic(range=place, severity=severity, code=code, source=SOURCE, message=text)

    found: list[types.Diagnostic] = []
    problems = reading.parsed.problems if reading.parsed is not None else ()
    for problem in problems:
        if problem.code == "gate-lacks" and not reading.waits:
            continue
        found.append(said(problem.line - 1, _severity(problem, reading), problem.code, problem.text))
    if reading.parsed is None and (notes := notes_of(reading)):
        words = "1 note for the agent." if len(notes) == 1 else f"{len(notes)} notes for the agent."
        found.append(said(notes[0].line - 1, types.DiagnosticSeverity.Information, "gate-notes", words))
    for ref, text in reading.conflicts.items():
        line = reading.sections[ref].start if ref in reading.sections else 0
        found.append(said(line, types.DiagnosticSeverity.Warning, "form-elsewhere", text))
    if reading.refusal:
        found.append(said(0, types.DiagnosticSeverity.Warning, "form-refused", reading.refusal))
    return found


def _severity(problem: Problem, reading: Reading) -> types.DiagnosticSeverity:
    if reading.tried and problem.code == "gate-lacks" and problem.severity != "error":
        return types.DiagnosticSeverity.Warning
    return SEVERITY[problem.severity]
