"""Edits of form documents: out as orders, in as `workspace/applyEdit`.

From an editor that does not know us an edit goes when it saves, or with the next order on the document. The daemon
leaves the file alone while it is open here; one that it wrote all the same is left to the editor to be read again.
"""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import unquote

from lsprotocol import types

from promptside_protocol.errors import PromptsideError
from promptside_protocol.views import TaskView
from promptside_server.documents import TASKS, documents
from promptside_server.server import Server
from promptside_server.shared import on

PAUSE_SECONDS = 0.3
"""Typing is over when nothing came for so long."""


def register(server: Server) -> None:
    """Listen for buffers that open, change, are saved and closed, and for tasks that change."""
    known = documents(server)
    due: dict[str, asyncio.TimerHandle] = {}

    async def send(uri: str, *, whole: bool) -> None:
        with contextlib.suppress(PromptsideError):  # said at the document
            await known.send(uri, whole=whole)

    def opened(params: types.DidOpenTextDocumentParams) -> None:
        uri = params.text_document.uri
        if TASKS in unquote(uri):
            known.opened(uri, params.text_document.text)  # also while its task is not known here yet
        if known.place(uri) is not None:
            server.do(known.refresh(uri))

    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if known.place(uri) is None:
            return
        typed = known.typed(uri)
        known.tell(uri)
        server.do(known.refresh(uri) if not typed else known.hold(uri))
        if server.editor.ours and typed:
            if uri in due:
                due[uri].cancel()
            loop = asyncio.get_running_loop()
            due[uri] = loop.call_later(PAUSE_SECONDS, lambda: server.do(send(uri, whole=False)))

    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        uri = params.text_document.uri
        if known.place(uri) is None:
            return
        known.saved(uri)
        if uri in due:
            due.pop(uri).cancel()
        await send(uri, whole=False)

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if uri in due:
            due.pop(uri).cancel()
        known.forget(uri)

    def task_changed(task: TaskView) -> None:
        for uri in known.open_of(task):
            server.do(known.refresh(uri))

    def gone(_: str) -> None:
        for uri in known.open():
            if known.place(uri) is None:
                known.forget(uri)
                known.tell(uri)

    def moved(up: bool, _: str) -> None:
        if up:
            for uri in known.open():
                if known.place(uri) is not None:
                    server.do(known.refresh(uri))

    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    on(server, types.TEXT_DOCUMENT_DID_CHANGE, changed)
    on(server, types.TEXT_DOCUMENT_DID_SAVE, saved)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, closed)
    server.on_task.append(task_changed)
    server.on_gone.append(gone)
    server.on_link.append(moved)
