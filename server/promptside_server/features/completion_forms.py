"""Completion in form documents: paths of the project behind `Files:`, and the choices of a question."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from lsprotocol import types

from promptside_protocol import forms
from promptside_server.documents import Reading, documents
from promptside_server.server import Server
from promptside_server.shared import give

MOST = 2000
"""Paths that are offered; more are found by typing on."""
OPTIONS = types.CompletionOptions(trigger_characters=["/", "-"])
BULLET = re.compile(r"^[-*+][ \t]+`?(.*)$")
LEFT_OUT = frozenset({".git", "node_modules", ".venv", "__pycache__"})


def register(server: Server) -> None:
    """Answer for completion."""
    known = documents(server)

    async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        reading = await known.ready(params.text_document.uri)
        if reading is None or params.position.line >= len(reading.lines):
            return []
        line = reading.lines[params.position.line]
        bullet = BULLET.match(line)
        if bullet is None or not _takes_paths(reading, params.position.line):
            return []
        codec = server.workspace.position_codec
        start = codec.client_num_units(line[: bullet.start(1)])
        end = codec.client_num_units(line)
        place = types.Range(
            start=types.Position(params.position.line, start), end=types.Position(params.position.line, end)
        )
        paths = await asyncio.to_thread(files_of, Path(reading.task.project), bullet[1].strip("`"))
        return [
            types.CompletionItem(
                label=path,
                kind=types.CompletionItemKind.File,
                text_edit=types.TextEdit(range=place, new_text=path),
                filter_text=path,
            )
            for path in paths
        ]

    give(server, types.TEXT_DOCUMENT_COMPLETION, complete, OPTIONS)


def files_of(root: Path, begun: str) -> list[str]:
    """Files of a project that have this in their paths, shallow ones first."""
    found: list[str] = []
    for place, directories, names in os.walk(root):
        directories[:] = sorted(d for d in directories if d not in LEFT_OUT and d != ".promptside")
        base = os.path.relpath(place, root)
        for name in sorted(names):
            path = name if base == "." else f"{base}/{name}"
            if begun in path:
                found.append(path)
        if len(found) >= MOST:
            break
    return sorted(found, key=lambda path: (path.count("/"), path))[:MOST]


def _takes_paths(reading: Reading, line: int) -> bool:
    ref = reading.item_at(line)
    match reading.definition:
        case forms.QuestionsDefinition(items=items):
            return any(q.id == ref and q.kind == "files" for q in items)
        case forms.FieldsDefinition(fields=fields):
            return any(f.key == ref and f.key == "affected_files" for f in fields)
        case _:
            return False
