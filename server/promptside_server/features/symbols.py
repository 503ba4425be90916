"""Document symbols of form documents: the items, by their titles."""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol.forms.grammar import heading
from promptside_server.documents import documents
from promptside_server.server import Server
from promptside_server.shared import give


def register(server: Server) -> None:
    """Answer for document symbols."""
    known = documents(server)

    async def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        reading = await known.ready(params.text_document.uri)
        if reading is None:
            return []
        codec = server.workspace.position_codec
        lines = reading.lines
        found = []
        for section in reading.sections.values():
            title = heading(section.title)
            name = title[1] if title else section.title.lstrip(" -*+[]xX").replace("**", "")
            first = types.Position(section.start, 0)
            last = types.Position(section.end - 1, codec.client_num_units(lines[section.end - 1]))
            width = types.Position(section.start, codec.client_num_units(lines[section.start]))
            found.append(
                types.DocumentSymbol(
                    name=name or section.ref,
                    kind=types.SymbolKind.Key,
                    range=types.Range(start=first, end=last),
                    selection_range=types.Range(start=first, end=width),
                )
            )
        return found

    give(server, types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, symbols)
