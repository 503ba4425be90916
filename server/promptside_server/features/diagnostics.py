"""Diagnostics of form documents: what the gate lacks, what can't be read, and what others changed meanwhile.

What lacks is an information in sum and a hint at each item; after an approval that was refused here, a warning.
"""

from __future__ import annotations

import os
from pathlib import Path

from lsprotocol import types

from promptside_protocol import forms
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
    scolded = any(p.code == "gate-lacks" and p.ref for p in problems)
    for problem in problems:
        if problem.code == "gate-lacks" and not reading.waits:
            continue
        severity = SEVERITY[problem.severity]
        if reading.tried and problem.code == "gate-lacks" and (problem.ref or not scolded):
            severity = types.DiagnosticSeverity.Warning
        found.append(said(problem.line - 1, severity, problem.code, problem.text))
    if reading.parsed is None and (notes := notes_of(reading)):
        words = "1 note for the agent." if len(notes) == 1 else f"{len(notes)} notes for the agent."
        found.append(said(notes[0].line - 1, types.DiagnosticSeverity.Information, "gate-notes", words))
    found += [
        said(line, types.DiagnosticSeverity.Warning, "form-file", f"{path} does not exist.")
        for _, line, path in absent(reading)
    ]
    for ref, text in reading.conflicts.items():
        line = reading.sections[ref].start if ref in reading.sections else 0
        found.append(said(line, types.DiagnosticSeverity.Warning, "form-elsewhere", text))
    if reading.apart:
        words = f"This document is not what the daemon has (line {reading.apart})."
        found.append(said(reading.apart - 1, types.DiagnosticSeverity.Warning, "form-bytes", words))
    if reading.refusal:
        found.append(said(0, types.DiagnosticSeverity.Warning, "form-refused", reading.refusal))
    return found


def absent(reading: Reading) -> list[tuple[str, int, str]]:
    """Paths in answers that are no file of the project: the question, the line (from 0), and the path.

    The daemon takes them all the same.
    """
    definition, parsed = reading.definition, reading.parsed
    if not isinstance(definition, forms.QuestionsDefinition) or parsed is None or not reading.waits:
        return []
    assert isinstance(parsed.answers, forms.QuestionsAnswers), "answers are of the form's kind"
    root = Path(reading.task.project)
    found = []
    for question in definition.items:
        paths = parsed.answers.values.get(question.id) if question.kind == "files" else None
        section = reading.sections.get(question.id)
        if not isinstance(paths, tuple) or section is None:
            continue
        for path in paths:
            if "\0" not in path and not os.path.lexists(root / path):
                lines = enumerate(reading.lines[section.start : section.end], section.start)
                at = next((at for at, line in lines if path in line), section.start)
                found.append((question.id, at, path))
    return found
