"""Notes to the agent: `>> ` is begun in a document, since LSP has no way to ask for words (UX 2.2)."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from promptside_protocol.views import TaskView
from promptside_server.documents import Documents, documents, path_of
from promptside_server.mending import without_notes
from promptside_server.offered import in_words, notes_of
from promptside_server.server import Server


def register(server: Server) -> None:
    """The commands that begin a note, and that go where something is wanted."""
    known = documents(server)

    async def note(*arguments: Any) -> bool:
        given = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        uri = str(given.get("uri", ""))
        return await _begin(server, known, uri, int(given.get("line", 1)))

    async def show_lack(*arguments: Any) -> bool:
        given = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        uri = str(given.get("uri", ""))
        reading = known.read(uri)
        problems = reading.parsed.problems if reading is not None and reading.parsed is not None else ()
        line = int(given.get("line") or next((p.line for p in problems if p.line > 1), 1))
        return await show(server, uri, line - 1)

    async def open_file(*arguments: Any) -> bool:
        given = arguments[0] if arguments and isinstance(arguments[0], dict) else {}
        from promptside_server.documents import uri_of  # noqa: PLC0415  # only for this

        uri = uri_of(str(given.get("project", "")), str(given.get("path", "")))
        return await show(server, uri, int(given.get("line") or 1) - 1)

    server.command("promptside.note")(note)
    server.command("promptside.showLack")(show_lack)
    server.command("promptside.openFile")(open_file)


async def begin_note(server: Server, task: TaskView) -> bool:
    """Begin a note to the agent in the open document of a task; false if there is none, or it can't be edited."""
    known = documents(server)
    uri = known.waiting_buffer(task) or next(iter(known.open_of(task)), None)
    return uri is not None and await _begin(server, known, uri, 1)


def written(server: Server, task: TaskView) -> tuple[str, str]:
    """The open document of a task that has notes to the agent, the one that waits first, and its notes in words."""
    known = documents(server)
    first = known.waiting_buffer(task)
    for uri in dict.fromkeys([*([first] if first is not None else []), *known.open_of(task)]):
        reading = known.read(uri)
        if reading is not None and (said := notes_of(reading)):
            return uri, in_words(said)
    return "", ""


async def spent(server: Server, uri: str, words: str) -> None:
    """Notes that reached the agent are taken out of their document, so that nothing is said twice."""
    known = documents(server)
    reading = known.read(uri)
    if reading is not None and in_words(notes_of(reading)) == words:
        await known.show(uri, without_notes(reading.text))


async def show(server: Server, uri: str, line: int = 0) -> bool:
    """Have the editor open a file; false if it doesn't."""
    uri = server.seen_as(uri)
    if not server.editor.show_document:
        file = path_of(uri)
        server.say(types.MessageType.Info, f"Open {file}:{line + 1}" if file is not None else uri)
        return False
    place = types.Range(start=types.Position(line, 0), end=types.Position(line, 0))
    params = types.ShowDocumentParams(uri=uri, take_focus=True, selection=place)
    return (await server.window_show_document_async(params)).success


async def _begin(server: Server, known: Documents, uri: str, line: int) -> bool:
    text = server.document(uri)
    if text is None:
        return False
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    line = min(line, len(lines))
    begun = await known.show(uri, end.join([*lines[:line], ">> ", *lines[line:]]))
    if begun and server.editor.show_document:
        place = types.Range(start=types.Position(line, 3), end=types.Position(line, 3))
        params = types.ShowDocumentParams(uri=uri, take_focus=True, selection=place)
        await server.window_show_document_async(params)
    return begun
