"""Links in the documents of a task: `path:line` where such a file is in the project."""

from __future__ import annotations

import re
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from promptside_server.documents import documents
from promptside_server.server import Server
from promptside_server.shared import give

PLACE = re.compile(r"(?<![\w/.-])((?:[\w.@+-]+/)*[\w.@+-]*\.[\w-]+)(?::(\d+))?(?![\w/])")


def register(server: Server) -> None:
    """Answer for document links."""
    known = documents(server)

    def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        reading = known.read(params.text_document.uri)
        if reading is None:
            return []
        codec = server.workspace.position_codec
        root = Path(reading.task.project)
        found = []
        for at, line in enumerate(reading.lines):
            for place in PLACE.finditer(line):
                file = root / place[1]
                if not file.is_file():
                    continue
                start = types.Position(at, codec.client_num_units(line[: place.start()]))
                end = types.Position(at, codec.client_num_units(line[: place.end()]))
                target = from_fs_path(str(file))
                if target is not None and place[2]:
                    target = f"{target}#L{place[2]}"
                found.append(types.DocumentLink(range=types.Range(start=start, end=end), target=target))
        return found

    give(server, types.TEXT_DOCUMENT_DOCUMENT_LINK, links)
