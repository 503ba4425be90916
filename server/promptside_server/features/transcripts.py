"""What an attempt said and left, whole and read-only: the transcript as text, the prompt, and its document."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from lsprotocol import types
from msgspec import Struct
from pygls.exceptions import JsonRpcInvalidParams

from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.queries import Document, Output
from promptside_server import readonly, shared
from promptside_server.attempts import find_attempt
from promptside_server.features.commands import offer, refusal, typed
from promptside_server.lsp import announce_content
from promptside_server.plain import Plain
from promptside_server.server import Server
from promptside_server.target import fill

CHARACTERS = 16 * 1024 * 1024
"""What one document shows of a transcript; the whole is `promptside log --raw`."""


class ShowAttempt(Struct, frozen=True, kw_only=True):
    """Of one attempt; empty and 0 take the newest."""

    project: str
    task: int
    stage: str = ""
    attempt: int = 0


class Page(Struct, frozen=True, kw_only=True):
    """A virtual document: `promptside://transcript/12/research-1.log?project=…`.

    The document that an attempt left has the shortest address, `promptside://12/research/1`; with the project where
    several have a task of this number.
    """

    kind: str
    project: str
    task: int
    stage: str
    attempt: int

    @property
    def name(self) -> str:
        """The last part of its address, which is what a tab is labelled with."""
        ending = "log" if self.kind == "transcript" else "md"
        return f"{self.stage}-{self.attempt}.{ending}"

    @property
    def uri(self) -> str:
        if self.kind == "document":
            address = f"{readonly.SCHEME}://{self.task}/{self.stage}/{self.attempt}"
            return f"{address}?project={quote(self.project)}"
        return f"{readonly.SCHEME}://{self.kind}/{self.task}/{self.name}?project={quote(self.project)}"


def register(server: Server) -> None:
    """Three commands, and the virtual documents that they open."""
    pages = Pages(server)
    for name in ("transcript", "prompt", "document"):
        _offer(server, pages, name)
    shared.answer(server, types.WORKSPACE_TEXT_DOCUMENT_CONTENT, pages.content)
    server.protocol.announcing.append(lambda told: announce_content(told, readonly.SCHEME))


def _offer(server: Server, pages: Pages, kind: str) -> None:
    name = f"show{kind.capitalize()}"

    async def perform(given: dict[str, Any]) -> readonly.Shown:
        wish: ShowAttempt = typed(name, await fill(server, ShowAttempt, given), ShowAttempt)
        stage, attempt = find_attempt(server, wish.project, wish.task, wish.stage, wish.attempt)
        page = Page(kind=kind, project=wish.project, task=wish.task, stage=stage, attempt=attempt.n)
        return await pages.show(page)

    offer(server, name, perform)


class Pages:
    """Texts of attempts, by their address."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def show(self, page: Page) -> readonly.Shown:
        """Open it: virtually where the editor can, else as a file."""
        if self._server.editor.contents or self._server.editor.ours:
            return await readonly.show(self._server, page.uri)
        path = readonly.place(page.project, f"{page.task}-{page.kind}-{page.name}")
        text = await self.text(page)
        await asyncio.to_thread(readonly.write, path, text)
        return await readonly.show(self._server, readonly.uri_of(path))

    async def content(
        self, params: types.TextDocumentContentParams
    ) -> types.TextDocumentContentResult | None:
        """The answer to the editor that opens one; None if the address is another feature's."""
        page = page_at(params.uri) or left_at(self._server, params.uri)
        if page is None:
            return None
        try:
            return types.TextDocumentContentResult(text=await self.text(page))
        except PromptsideError as error:
            raise refusal(error) from error

    async def text(self, page: Page) -> str:
        """The text of a page."""
        if page.kind == "document":
            wanted = Document(project=page.project, task=page.task, stage=page.stage, attempt=page.attempt)
            return (await self._server.link.call(wanted)).text
        if page.kind == "prompt":
            _, attempt = find_attempt(self._server, page.project, page.task, page.stage, page.attempt)
            return await asyncio.to_thread(_read, Path(attempt.prompt))
        plain, parts, size, cursor = Plain(), list[str](), 0, 0
        while True:
            query = Output(
                project=page.project, task=page.task, stage=page.stage, attempt=page.attempt, cursor=cursor
            )
            found = await self._server.link.call(query)
            parts.append(plain.add(found.entries))
            size += len(parts[-1])
            if not found.entries or found.cursor == cursor:
                return "".join(parts)
            if size > CHARACTERS:
                return "".join(parts) + "\n# More than is shown here: promptside log --raw\n"
            cursor = found.cursor


def page_at(uri: str) -> Page | None:
    """The page of an address; None if it is none of ours."""
    parts = urlsplit(uri)
    if parts.scheme != readonly.SCHEME or parts.netloc not in ("transcript", "prompt"):
        return None
    number, _, name = parts.path.lstrip("/").partition("/")
    stage, _, attempt = name.rpartition(".")[0].rpartition("-")
    if not (number.isdigit() and attempt.isdigit() and stage):
        raise JsonRpcInvalidParams(f"{uri} is no address of an attempt.")
    return Page(
        kind=parts.netloc,
        project=_project_in(parts.query),
        task=int(number),
        stage=stage,
        attempt=int(attempt),
    )


def left_at(server: Server, uri: str) -> Page | None:
    """The document of an attempt by its address; None if it is none of such."""
    parts = urlsplit(uri)
    stage, _, attempt = parts.path.strip("/").partition("/")
    if parts.scheme != readonly.SCHEME or not parts.netloc.isdigit():
        return None
    if not (stage and attempt.isdigit()):
        raise JsonRpcInvalidParams(f"{uri} is no address of an attempt's document.")
    number = int(parts.netloc)
    project = _project_in(parts.query)
    if not project:
        known = [task.project for task in server.mirror.numbered(number)]
        near = [one for one in known if server.has_open(one)] or known
        if len(near) != 1:
            raise JsonRpcInvalidParams(f"{uri} names no project, and {len(near)} have a task {number}.")
        project = near[0]
    return Page(kind="document", project=project, task=number, stage=stage, attempt=int(attempt))


def _project_in(query: str) -> str:
    """The project that an address names; VS Code also writes the `=` as `%3D`."""
    return (parse_qs(query) or parse_qs(unquote(query))).get("project", [""])[0]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise refused("gone", f"{path} can't be read: {error.strerror}.") from error
