"""Folding of form documents: one fold an item."""

from __future__ import annotations

from lsprotocol import types

from promptside_server.documents import documents
from promptside_server.server import Server
from promptside_server.shared import give


def register(server: Server) -> None:
    """Answer for folding ranges."""
    known = documents(server)

    async def folds(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        reading = await known.ready(params.text_document.uri)
        if reading is None:
            return []
        lines = reading.lines
        found = []
        for section in reading.sections.values():
            end = section.end
            while end > section.start + 1 and not lines[end - 1].strip():
                end -= 1
            if end - 1 > section.start:
                found.append(types.FoldingRange(start_line=section.start, end_line=end - 1))
        return found

    give(server, types.TEXT_DOCUMENT_FOLDING_RANGE, folds)
