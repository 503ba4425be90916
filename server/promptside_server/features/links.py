"""Links in the documents of a task: `path:line` where such a file is in the project, or in the task's worktree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from promptside_server.documents import documents
from promptside_server.places import span
from promptside_server.server import Server
from promptside_server.shared import give

QUOTED = re.compile(r"`([^`\0]+?)(?::(\d+)(?::\d+)?)?`")
"""A path as documents write it; it may hold blanks."""
PLAIN = re.compile(r"(?<![\w/.`-])((?:[\w.@+-]+/)*[\w.@+-]*\.[\w-]+)(?::(\d+)(?::\d+)?)?(?![\w/])")
ENTRY = re.compile(r"^[-*+][ \t]+`?([^`\0]+?)`?[ \t]*$")
"""An entry of a list of files."""
MOST = 1000
"""Places that are looked at in one document."""


def register(server: Server) -> None:
    """Answer for document links."""
    known = documents(server)

    def links(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        reading = known.read(params.text_document.uri)
        if reading is None:
            return []
        root = Path(reading.task.worktree or reading.task.project)
        lines = reading.lines
        found: list[types.DocumentLink] = []
        there: dict[str, str | None] = {}
        for at, line in enumerate(lines):
            for place, path, number in _places(line):
                if path not in there:
                    if len(there) == MOST:
                        return found
                    there[path] = _target(root, path)
                target = there[path]
                if target is not None:
                    found.append(
                        types.DocumentLink(
                            range=span(server, lines, (at, place[0]), (at, place[1])),
                            target=f"{target}#L{number}" if number else target,
                        )
                    )
        return found

    give(server, types.TEXT_DOCUMENT_DOCUMENT_LINK, links)


def _places(line: str) -> Iterator[tuple[tuple[int, int], str, str | None]]:
    """What may be a path in a line: from where to where, the path, and the number behind it."""
    taken: list[tuple[int, int]] = []
    for found in QUOTED.finditer(line):
        taken.append(found.span())
        yield (found.start() + 1, found.end() - 1), found[1], found[2]
    if not taken and (entry := ENTRY.match(line)) is not None and " " in entry[1]:
        yield entry.span(1), entry[1], None
    for found in PLAIN.finditer(line):
        if not any(start <= found.start() < end for start, end in taken):
            yield found.span(), found[1], found[2]


def _target(root: Path, path: str) -> str | None:
    """The uri of a file inside; a document's words must not lead elsewhere."""
    try:
        file = (root / path).resolve()
        inside = file.is_relative_to(root.resolve()) and file.is_file()
    except (OSError, ValueError):
        return None  # too long, or no name at all
    target: str | None = from_fs_path(str(file)) if inside else None
    return target
