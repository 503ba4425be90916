"""Completion in form documents: paths of the project behind `Files:`, and what a tick of an item can say.

Nothing is offered in prose and in notes to the agent.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from lsprotocol import types

from promptside_protocol import forms
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import ANSWER, LINE_END, NOTE, TICK, Page, Section
from promptside_server.documents import documents, path_of
from promptside_server.places import in_characters, lines_of, span
from promptside_server.server import Server
from promptside_server.shared import give

MOST = 500
"""Paths that are offered at once; the others come by typing on."""
GIT_SECONDS = 5.0
OPTIONS = types.CompletionOptions(trigger_characters=["/", "-", "]"])
ENTRY = re.compile(r"^(Files:[ \t]*|[-*+][ \t]+)?(`?)(.*)$")
BOX = re.compile(r"^( {0,3}[-*+] \[[ xX]\][ \t]*)(.*)$")
LEFT_OUT = frozenset({".git", ".promptside", "node_modules", ".venv", "__pycache__"})


def register(server: Server) -> None:
    """Answer for completion."""
    known = documents(server)

    async def complete(params: types.CompletionParams) -> types.CompletionList | None:
        uri = params.text_document.uri
        found = _draft(server, uri)
        if found is None:
            reading = await known.ready(uri)
            if reading is None or reading.definition is None:
                return None
            found = (Path(reading.task.worktree or reading.task.project), reading.definition, reading.text)
        root, definition, text = found
        lines = lines_of(text)
        if params.position.line >= len(lines):
            return None
        line, column = in_characters(server, lines, params.position)
        sections = kind_of(definition).read(definition, Page(text)).found
        section = next((s for s in sections.values() if s.start < line < s.end), None)
        if section is None or NOTE.match(lines[line]):
            return None
        if _takes_paths(definition, section, lines, line):
            return await _paths(server, root, lines, line, column)
        return _ticks(server, definition, section, lines, line, column)

    give(server, types.TEXT_DOCUMENT_COMPLETION, complete, OPTIONS)


async def files_of(root: Path, begun: str) -> tuple[list[str], bool]:
    """Files of a project with this in their paths, shallow ones first, and whether there are more.

    What git ignores is left out; outside of a repository, what nobody edits.
    """
    listed = await _listed(root)
    if listed is None:
        listed = await asyncio.to_thread(_walked, root)
    begun = begun.lower()
    found = [path for path in listed if begun in path.lower() and not path.startswith(".promptside/")]
    found.sort(key=lambda path: (not path.lower().startswith(begun), path.count("/"), path))
    there = [path for path in found[:MOST] if os.path.lexists(root / path)]  # git also lists what was deleted
    return there, len(found) > MOST


async def _listed(root: Path) -> list[str] | None:
    """What git knows, or would; None if this is no repository, or git is slow or not there."""
    # A repository's own settings must not run a program: fsmonitor would.
    words = ("-c", "core.fsmonitor=false", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        git = await asyncio.create_subprocess_exec(
            "git",
            *words,
            "--deduplicate",
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(GIT_SECONDS):
            out, _ = await git.communicate()
    except TimeoutError:
        return None
    finally:
        if git.returncode is None:
            git.kill()
    if git.returncode != 0:
        return None
    # A name that is no UTF-8 can't stand in a document.
    names = out.split(b"\0")
    return [name.decode("utf-8", "replace") for name in names if name and b"\n" not in name]


def _walked(root: Path) -> list[str]:
    found: list[str] = []
    for place, directories, names in os.walk(root):
        directories[:] = sorted(d for d in directories if d not in LEFT_OUT)
        base = os.path.relpath(place, root)
        found += (name if base == "." else f"{base}/{name}" for name in names)
        if len(found) > 20 * MOST:
            break
    return found


def _draft(server: Server, uri: str) -> tuple[Path, forms.Definition, str] | None:
    """A new task's document: it has no task yet that could be asked."""
    from promptside_server.drafts import DRAFTS, definition_of  # noqa: PLC0415  # which is made of features

    file, text = path_of(uri), server.document(uri)
    if file is None or text is None or not file.parent.as_posix().endswith(f"/{DRAFTS}"):
        return None
    return file.parents[2], definition_of(uri, ()), text


def _takes_paths(definition: forms.Definition, section: Section, lines: list[str], line: int) -> bool:
    """Whether an entry of a list of files stands, or can stand, in this line."""
    match definition:
        case forms.QuestionsDefinition(items=items):
            if not any(q.id == section.ref and q.kind == "files" for q in items):
                return False
            inside = range(section.start + 1, section.end)
            first = next((at for at in inside if (f := ANSWER.match(lines[at])) and f[1] == "Files"), None)
            return first is not None and line >= first
        case forms.FieldsDefinition():
            return section.ref == "affected_files"
        case _:
            return False


async def _paths(
    server: Server, root: Path, lines: list[str], line: int, column: int
) -> types.CompletionList | None:
    entry = ENTRY.match(lines[line])
    assert entry is not None, "it fits anything"
    if column < entry.start(2):
        return None
    start = entry.start(3)
    mark = "" if entry[1] else "- "
    begun = lines[line][start : max(column, start)]
    paths, more = await files_of(root, begun)
    place = span(server, lines, (line, start), (line, len(lines[line].rstrip("`"))))
    items = [
        types.CompletionItem(
            label=path,
            kind=types.CompletionItemKind.File,
            text_edit=types.TextEdit(range=place, new_text=f"{mark}{path}"),
            filter_text=path,
            sort_text=f"{rank:04}",
        )
        for rank, path in enumerate(paths)
    ]
    # An editor that is not told so would go on with these when more is typed.
    return types.CompletionList(is_incomplete=more, items=items)


def _ticks(
    server: Server,
    definition: forms.Definition,
    section: Section,
    lines: list[str],
    line: int,
    column: int,
) -> types.CompletionList | None:
    """What can stand behind the brackets in this item: what the document had there when it was new."""
    box = BOX.match(lines[line])
    if box is None or column < box.end(1):
        return None
    whole = forms.render(definition)
    fresh = kind_of(definition).read(definition, Page(whole)).found.get(section.ref)
    if fresh is None:
        return None
    clean = LINE_END.split(whole)[fresh.start : fresh.end]
    here = {
        t[4].strip()
        for at in range(section.start, section.end)
        if at != line and (t := TICK.match(lines[at]))
    }
    words = [tick[4].strip() for one in clean if (tick := TICK.match(one))]
    start = box.end(1)
    gap = "" if box[1].endswith((" ", "\t")) else " "
    place = span(server, lines, (line, start), (line, len(lines[line])))
    return types.CompletionList(
        is_incomplete=False,
        items=[
            types.CompletionItem(
                label=word,
                kind=types.CompletionItemKind.EnumMember,
                text_edit=types.TextEdit(range=place, new_text=f"{gap}{word}"),
                filter_text=f"{gap}{word}",
            )
            for word in words
            if word not in here
        ],
    )
