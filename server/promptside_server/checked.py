"""Pipeline, prompt and settings files that the editor has open, each with what the daemon says of its newest text.

The daemon judges; here it is only asked soon after somebody stops typing, once at a time for each file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from lsprotocol import types
from pygls.uris import to_fs_path

from promptside_protocol import paths
from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import CheckText, Vocabulary
from promptside_protocol.views import TextCheck, VocabularyView
from promptside_server.shared import on

if TYPE_CHECKING:
    from promptside_server.server import Server

log = logging.getLogger(__name__)

Kind = Literal["pipeline", "prompt", "settings"]
PAUSE_SECONDS = 0.15
"""Between the last key and the question; a person who types goes on sooner."""


class Checked:
    """What is known of the open files."""

    def __init__(self, server: Server) -> None:
        self.listeners: list[Callable[[str, TextCheck | None], None]] = []
        """Called with each file's new judgement; None when the file was closed."""
        self._server = server
        self._kinds: dict[str, Kind] = {}
        self._found: dict[str, TextCheck] = {}
        self._stages: dict[str, TextCheck] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._asking: set[str] = set()
        self._vocabularies: dict[str, VocabularyView] = {}

    def kind(self, uri: str) -> Kind | None:
        """What an open file is; None if it is none of ours."""
        return self._kinds.get(uri)

    def files(self) -> list[str]:
        """The open files of ours."""
        return list(self._kinds)

    def check(self, uri: str) -> TextCheck | None:
        """What the daemon said last of a file."""
        return self._found.get(uri)

    def outline(self, uri: str) -> TextCheck | None:
        """The last word on a file in which stages could be read."""
        return self._stages.get(uri)

    async def vocabulary(self, uri: str) -> VocabularyView | None:
        """What can be written in a file; None while the daemon is away."""
        project = project_of(uri)
        if project not in self._vocabularies and self._server.link.up:
            try:
                self._vocabularies[project] = await self._server.link.call(Vocabulary(project=project))
            except PromptsideError as error:
                log.warning("no vocabulary: %s", error)
        return self._vocabularies.get(project)

    def opened(self, uri: str) -> None:
        """A file was opened."""
        if (kind := kind_of(uri)) is not None:
            self._kinds[uri] = kind
            self._ask(uri)

    def changed(self, uri: str) -> None:
        """A file was typed in; asking waits for a pause."""
        if uri in self._kinds:
            self._cancel(uri)
            loop = asyncio.get_running_loop()
            self._timers[uri] = loop.call_later(PAUSE_SECONDS, self._ask, uri)

    def everything(self) -> None:
        """Something else changed on which the files depend: a prompt was saved, the daemon is back."""
        self._vocabularies.clear()
        for uri in self._kinds:
            self._ask(uri)

    def closed(self, uri: str) -> None:
        """A file was closed: nothing is said of it any more."""
        self._cancel(uri)
        if self._kinds.pop(uri, None) is not None:
            self._found.pop(uri, None)
            self._stages.pop(uri, None)
            self._tell(uri, None)

    def _ask(self, uri: str) -> None:
        self._cancel(uri)
        if uri not in self._asking and self._server.link.up:
            self._asking.add(uri)
            self._server.do(self._asked(uri))

    async def _asked(self, uri: str) -> None:
        """Ask until the text is the one that was judged: the newest text wins."""
        try:
            while (kind := self._kinds.get(uri)) is not None:
                text = self._server.document(uri)
                if text is None:
                    return
                try:
                    query = CheckText(path=str(path_of(uri)), kind=kind, text=text)
                    found = await self._server.link.call(query)
                except PromptsideError as error:
                    log.warning("%s was not checked: %s", uri, error)
                    return
                if self._server.document(uri) == text and uri in self._kinds:
                    self._found[uri] = found
                    if found.stages or uri not in self._stages:
                        self._stages[uri] = found
                    self._tell(uri, found)
                    return
                if uri in self._timers:
                    return  # somebody types: the pause is waited for
        finally:
            self._asking.discard(uri)

    def _tell(self, uri: str, found: TextCheck | None) -> None:
        for listen in self.listeners:
            listen(uri, found)

    def _cancel(self, uri: str) -> None:
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()


_checked: WeakKeyDictionary[Server, Checked] = WeakKeyDictionary()


def checked(server: Server) -> Checked:
    """The open files of one editor; the first who asks has them listened for."""
    found = _checked.get(server)
    if found is None:
        found = _checked[server] = Checked(server)
        _listen(server, found)
    return found


def _listen(server: Server, files: Checked) -> None:
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        files.opened(params.text_document.uri)

    def changed(params: types.DidChangeTextDocumentParams) -> None:
        files.changed(params.text_document.uri)

    def saved(params: types.DidSaveTextDocumentParams) -> None:
        if kind_of(params.text_document.uri) is not None:
            files.everything()

    def closed(params: types.DidCloseTextDocumentParams) -> None:
        files.closed(params.text_document.uri)

    def moved(up: bool, _: str) -> None:
        if up:
            files.everything()

    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    on(server, types.TEXT_DOCUMENT_DID_CHANGE, changed)
    on(server, types.TEXT_DOCUMENT_DID_SAVE, saved)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, closed)
    server.on_link.append(moved)


# --- which files are ours ---------------------------------------------------------------------------


def kind_of(uri: str) -> Kind | None:
    """What a file is, by where it is: in `.promptside/` of a project, or in the person's configuration."""
    path = path_of(uri)
    if path is None:
        return None
    if path.name == "config.toml" and _is_ours(path.parent):
        return "settings"
    if path.suffix == ".toml" and _holds_pipelines(path.parent):
        return "pipeline"
    if path.name.endswith(".md.j2") and any(
        directory.name == "prompts" and _holds_pipelines(directory.parent) for directory in path.parents
    ):
        return "prompt"
    return None


def path_of(uri: str) -> Path | None:
    """The file of a URI; None of an untitled or virtual document."""
    if not uri.startswith("file:"):
        return None
    path = to_fs_path(uri)
    return Path(path) if path else None


def project_of(uri: str) -> str:
    """The project whose `.promptside/` a file is in; empty for the person's own."""
    path = path_of(uri)
    for directory in path.parents if path else ():
        if directory == paths.config_dir():
            return ""
        if directory.name == ".promptside":
            return str(directory.parent)
    return ""


def _is_ours(directory: Path) -> bool:
    return directory.name == ".promptside" or directory == paths.config_dir()


def _holds_pipelines(directory: Path) -> bool:
    return directory.name == "pipelines" and _is_ours(directory.parent)
