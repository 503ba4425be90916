"""A document that is not what the daemon has: where, what differs, and which of the two it is to be (M10, M11)."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from lsprotocol import types

from promptside_protocol.errors import refused
from promptside_server import readonly, shared
from promptside_server.documents import Reading, documents
from promptside_server.features.actions import Action, drawn
from promptside_server.features.commands import offer
from promptside_server.offered import Act
from promptside_server.server import Server

HOST = "difference"
QUICK_FIX = types.CodeActionKind.QuickFix.value


def register(server: Server) -> None:
    """Three commands, their actions, and the document that shows what differs."""
    known = documents(server)

    def named(given: dict[str, Any]) -> str:
        uri = str(given.get("uri") or server.protocol.active)
        if server.document(uri) is None or known.place(uri) is None:
            raise refused("no-document", "No document of a task is open here.", "Open the document first.")
        return uri

    async def show_difference(given: dict[str, Any]) -> readonly.Shown:
        uri = named(given)
        await known.ready(uri)
        reading = known.read(uri)
        assert reading is not None, "its place and its buffer are known"
        if server.editor.contents or server.editor.ours:
            return await readonly.show(server, _address(reading))
        name = reading.document.rpartition("/")[2]
        path = readonly.place(reading.task.project, f"{reading.task.id}-{name}.diff")
        await asyncio.to_thread(readonly.write, path, known.difference(uri))
        return await readonly.show(server, readonly.uri_of(path))

    async def take_mine(given: dict[str, Any]) -> None:
        await known.take_mine(named(given))

    async def take_theirs(given: dict[str, Any]) -> None:
        if not await known.take_theirs(named(given)):
            raise refused("no-edits", "This editor does not take the text.", "Read the file again.")

    async def actions(params: types.CodeActionParams) -> list[Action]:
        reading = await known.ready(params.text_document.uri)
        found = [drawn(server, act, QUICK_FIX) for act in acts(reading)] if reading is not None else []
        return [action for action in found if action is not None]

    def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult | None:
        uri = _shown_by(params.uri)
        return types.TextDocumentContentResult(text=known.difference(uri)) if uri is not None else None

    offer(server, "showDifference", show_difference)
    offer(server, "takeMine", take_mine)
    offer(server, "takeTheirs", take_theirs)
    shared.give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions)
    shared.answer(server, types.WORKSPACE_TEXT_DOCUMENT_CONTENT, content)


def acts(reading: Reading) -> list[Act]:
    """What can be done where a buffer and the draft are not the same, and neither follows from the other."""
    at = {"uri": reading.uri}
    found = [Act(title="Show difference", command="promptside.showDifference", args=at)]
    if reading.apart:
        found.append(Act(title="Take mine", command="promptside.takeMine", args=at))
        found.append(Act(title="Take Promptside's", command="promptside.takeTheirs", args=at))
    return found if reading.apart or reading.conflicts else []


def _address(reading: Reading) -> str:
    name = reading.document.rpartition("/")[2]
    return (
        f"{readonly.SCHEME}://{HOST}/{reading.task.id}/{quote(name)}.diff?uri={quote(reading.uri, safe='')}"
    )


def _shown_by(address: str) -> str | None:
    """The buffer that a difference is of; None if this is no address of one."""
    parts = urlsplit(address)
    if parts.scheme != readonly.SCHEME or parts.netloc != HOST:
        return None
    return parse_qs(parts.query).get("uri", [""])[0]
