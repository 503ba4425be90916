"""Inlay hints in the place of lenses, for editors that have none: the state, and what an item still needs."""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol import forms
from promptside_server.documents import Reading, documents
from promptside_server.features.lenses import state_of
from promptside_server.server import Server
from promptside_server.shared import give


def register(server: Server) -> None:
    """Answer for inlay hints where there are no lenses; have them asked for again when a document changes."""
    known = documents(server)

    async def hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        reading = await known.ready(params.text_document.uri)
        if reading is None or server.editor.lenses:
            return []
        first, last = params.range.start.line, params.range.end.line
        return [hint for hint in _hints(server, reading) if first <= hint.position.line <= last]

    def changed(_: str) -> None:
        if server.editor.inlay_refresh and not server.editor.lenses:
            server.workspace_inlay_hint_refresh(None)

    give(server, types.TEXT_DOCUMENT_INLAY_HINT, hints)
    known.on_change.append(changed)


def _hints(server: Server, reading: Reading) -> list[types.InlayHint]:
    codec = server.workspace.position_codec
    lines = reading.lines

    def hint(line: int, text: str) -> types.InlayHint:
        place = types.Position(line, codec.client_num_units(lines[line]))
        return types.InlayHint(position=place, label=text, padding_left=True)

    found = [hint(0, state_of(reading))]
    if reading.waits and reading.definition is not None and reading.parsed is not None:
        lacking = forms.lacks(reading.definition, reading.parsed.answers)
        found += [
            hint(reading.sections[lack.ref].start, lack.text)
            for lack in lacking
            if lack.ref in reading.sections
        ]
    return found
