"""The language server: pygls, the link to the daemon, the mirror, and the features that draw from it.

It holds no state that can't be asked for again, and takes no decision: a command goes to the daemon as it came.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from promptside_protocol import __version__
from promptside_protocol.commands import Ack
from promptside_protocol.notices import Notice, ProjectGone
from promptside_protocol.queries import Projects
from promptside_protocol.views import TaskView
from promptside_server import parent
from promptside_server.editor import Editor
from promptside_server.link import Link
from promptside_server.lsp import Protocol, converter
from promptside_server.mirror import Mirror
from promptside_server.preferred import Preferred
from promptside_server.transport import Input, Output, open_stdio

log = logging.getLogger(__name__)

MIRROR_SECONDS = 2.0
"""How long an order's answer waits for the news of what it did."""


class Server(LanguageServer):
    """One editor's server. Features register themselves and listen for what changes."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(
            "promptside",
            __version__,
            protocol_cls=Protocol,
            converter_factory=converter,
            # pygls splits lines where editors don't (form feeds, U+2028): increments would drift in such a document.
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
        )
        self.protocol.announcing.append(lambda _: self._watch_editor())
        self.mirror = Mirror()
        self.editor = Editor()
        self.preferred = Preferred()
        self.link = Link(self._heard, self._moved, lambda: self.mirror.cursors)
        self.on_task: list[Callable[[TaskView], None]] = []
        """Called with each task that changed."""
        self.on_notice: list[Callable[[Notice], None]] = []
        """Called with every notice, also those of flows that a feature opened."""
        self.on_gone: list[Callable[[str], None]] = []
        """Called with the path of a project that is none any more; the mirror knows nothing of it by then."""
        self.on_folders: list[Callable[[], None]] = []
        """Called when folders were opened or closed."""
        self.on_link: list[Callable[[bool, str], None]] = []
        """Called when the daemon was found or lost: whether it is there, and the sentence."""
        self._begun = False
        self._doing: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._placed: tuple[tuple[str, ...], list[tuple[Path, Path]]] | None = None
        self._source: Input | None = None
        self._unwatch: Callable[[], None] | None = None

    async def serve(self, source: Input, output: Output) -> int:
        """Be a language server until the input ends, nobody reads the output, or the editor dies."""
        self._source = source
        self.protocol.set_writer(output)
        reads = asyncio.ensure_future(self.protocol.serve(source))
        gone = asyncio.ensure_future(output.gone())
        try:
            await asyncio.wait({reads, gone}, return_when=asyncio.FIRST_COMPLETED)
            if reads.done():
                reads.result()
            return self.protocol.exit_code or 0
        finally:
            reads.cancel()
            gone.cancel()
            await self.end()
            await output.closed()

    def begin(self) -> None:
        """Called when the client is ready: now the daemon is looked for; once, also if it says so again."""
        if self._begun:
            return
        self._begun = True
        self.do(self.link.run(self.editor.client))

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something in the background; its failure is logged, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._doing.add(task)
        task.add_done_callback(self._done)
        return task

    async def end(self) -> None:
        """Let go of everything; daemon and agents go on."""
        if self._unwatch is not None:
            self._unwatch()
        for task in list(self._doing):
            task.cancel()
        await asyncio.gather(*self._doing, return_exceptions=True)

    def document(self, uri: str) -> str | None:
        """The text of a buffer that the editor has open; None if it hasn't."""
        known = self.workspace.text_documents
        found = known.get(unquote(uri)) or known.get(unquote(self.seen_as(uri)))  # pygls keeps what uris mean
        return found.source if found is not None else None

    def folders(self) -> list[Path]:
        """The folders that the editor has open, without links; none that are there no more."""
        return [real for _, real in self._folders() if real.is_dir()]

    def has_open(self, project: str) -> bool:
        """Whether a project is before the person: a folder of it, one above it, or no folder at all.

        A folder in a project within the project is not one of it.
        """
        root, folders = Path(project), self._folders()
        inner = [p for p in map(Path, self.mirror.projects()) if p != root and p.is_relative_to(root)]
        return not folders or any(
            root.is_relative_to(f) or (f.is_relative_to(root) and not any(f.is_relative_to(p) for p in inner))
            for _, f in folders
        )

    def waiting(self) -> list[TaskView]:
        """What waits for the person in all projects: this window's first, each longest first (ED-16)."""
        return sorted(self.mirror.waiting(), key=lambda task: not self.has_open(task.project))

    def seen_as(self, uri: str) -> str:
        """A file as this editor names it: below the folder that it has open, also where that is a link."""
        links = [(named, real) for named, real in self._folders() if named != real]
        name = to_fs_path(uri) if links and uri.startswith("file:") else None
        if name is None:
            return uri
        path = Path(name)
        if any(path.is_relative_to(named) for named, _ in links):
            return uri
        for named, real in links:
            if path.is_relative_to(real):
                return from_fs_path(str(named / path.relative_to(real))) or uri
        return uri

    def _folders(self) -> list[tuple[Path, Path]]:
        """Each folder as the editor names it, and where it is; looked up anew when the editor opens others."""
        uris = tuple(folder.uri for folder in self.workspace.folders.values())
        if self._placed is None or self._placed[0] != uris:
            paths = [to_fs_path(uri) for uri in uris]
            named = [Path(path) for path in paths or [self.workspace.root_path] if path]
            self._placed = (uris, [(path, path.resolve()) for path in named])
        return self._placed[1]

    async def caught_up(self) -> None:
        """Wait until the daemon has told of all there is: before that, nothing can be said to be missing."""
        projects = await self.link.call(Projects())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MIRROR_SECONDS):
                while any(one.error is None and one.path not in self.mirror.caught_up for one in projects):
                    self._news.clear()
                    await self._news.wait()

    async def mirrored(self, project: str, ack: Ack) -> None:
        """Wait until what an order did is known here: the next order finds what this one made."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MIRROR_SECONDS):
                while ack.task:
                    task = self.mirror.task(project, ack.task)
                    if task is not None and task.seq >= ack.seq:
                        return
                    self._news.clear()
                    await self._news.wait()

    def say(self, kind: types.MessageType, message: str) -> None:
        """A message for the person; for what has no place in a document."""
        self.window_show_message(types.ShowMessageParams(type=kind, message=message))

    def refolded(self) -> None:
        """Other folders are open now: what is shown of which project changes."""
        for tell in self.on_folders:
            _guarded(tell)

    def _watch_editor(self) -> None:
        """From its first message on: one that dies before it says that it is ready would not be missed any more."""
        if self.process_id is not None:
            self._unwatch = parent.watch(self.process_id, self._orphaned)

    def _orphaned(self) -> None:
        log.warning("the editor has died")
        if self._source is not None:
            self._source.stop()

    def _heard(self, notice: Notice) -> None:
        changed = self.mirror.take(notice)
        self._news.set()
        for listen in self.on_notice:
            _guarded(listen, notice)
        if changed is not None:
            for tell in self.on_task:
                _guarded(tell, changed)
        if isinstance(notice, ProjectGone):
            self.forget(notice.project)

    def forget(self, project: str) -> None:
        """A project was removed, here or elsewhere."""
        self.mirror.forget(project)
        for tell in self.on_gone:
            _guarded(tell, project)

    def _moved(self, up: bool, sentence: str) -> None:
        for tell in self.on_link:
            _guarded(tell, up, sentence)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._doing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("something in the background failed", exc_info=task.exception())


async def serve() -> int:
    """Be a language server on standard input and output."""
    from promptside_server.features import register_all  # noqa: PLC0415  # they import us

    logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_news)
    server = Server()
    register_all(server)
    source, output = await open_stdio()
    return await server.serve(source, output)


def _guarded(listener: Callable[..., None], *news: Any) -> None:
    """A feature's fault is logged; the others hear the news all the same, and the link stays."""
    try:
        listener(*news)
    except Exception:
        log.exception("%s failed at %s", listener, type(news[0]).__name__ if news else "new folders")


def _is_news(record: logging.LogRecord) -> bool:
    """Keep the log free of tracebacks of orders that were refused: the person was told."""
    return not (record.exc_info and isinstance(record.exc_info[1], JsonRpcException))
