"""What this editor holds with changes that are not saved: told to the daemon, which starts nothing over it unsaid.

An order that was refused for it can be given all the same: by a button where the editor has them, else by a code
action in the task's documents and in the unsaved file (ED-11, M14).
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import msgspec
from lsprotocol import types
from msgspec import Struct

from promptside_protocol.commands import AnyCommand, StartCommand, title
from promptside_protocol.errors import PromptsideError, Refused
from promptside_protocol.queries import Unsaved
from promptside_protocol.views import TaskView
from promptside_server.context import is_ours
from promptside_server.documents import documents, path_of
from promptside_server.features.actions import KIND, OPTIONS, Action, drawn
from promptside_server.offered import Act
from promptside_server.server import Server
from promptside_server.shared import give, on

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""Keys that are typed together are told once."""
BYTES = 4 * 1024 * 1024
"""A file that is larger is not compared with its buffer: what was typed in is unsaved until it is saved."""
ANYWAY = "Run anyway"


class Refusal(Struct, frozen=True, kw_only=True):
    """An order that was refused for what is unsaved."""

    order: StartCommand
    seq: int
    """What its task was at: when that changes, the order is another one."""


class Buffers:
    """The unsaved files of one editor."""

    def __init__(self, server: Server) -> None:
        self.refused: dict[tuple[str, int], Refusal] = {}
        self._server = server
        self._typed: dict[str, bool] = {}
        """Buffers that are to be compared with their files, and whether anything was typed in them."""
        self._dirty: dict[str, str] = {}
        """Path by uri."""
        self._told: tuple[str, ...] | None = None
        self._telling = asyncio.Lock()
        self._due: asyncio.TimerHandle | None = None

    def holds(self, uri: str) -> bool:
        """Whether a buffer is unsaved, as far as was looked."""
        return unquote(uri) in self._dirty or unquote(uri) in self._typed

    def changed(self, uri: str, *, typed: bool = True) -> None:
        """Something was typed, or the file was read anew."""
        path = path_of(uri)
        if path is not None and not is_ours(path):
            self._typed[unquote(uri)] = typed
            self._soon()

    def saved(self, uri: str) -> None:
        """The buffer is its file, or is gone."""
        self._typed.pop(unquote(uri), None)
        self._dirty.pop(unquote(uri), None)
        self._soon(0.0)

    def found(self) -> None:
        """The daemon is there: it knows nothing of this editor yet."""
        self._told = None
        self._soon(0.0)

    async def tell(self) -> None:
        """Have the daemon know what is so now; where it is away, it is told when it is back."""
        async with self._telling:
            while self._typed:
                uri, typed = self._typed.popitem()
                path, text = path_of(uri), self._server.document(uri)
                alike = path is None or text is None or await asyncio.to_thread(_alike, path, text, typed)
                if alike or self._server.document(uri) is None:
                    self._dirty.pop(uri, None)
                else:
                    self._dirty[uri] = str(path)
            files = tuple(sorted(set(self._dirty.values())))
            if files == self._told or not self._server.link.up:
                return
            self._told = files
            try:
                await self._server.link.call(Unsaved(files=files))
            except PromptsideError as error:
                self._told = None
                log.info("what is unsaved could not be told: %s", error)

    def _soon(self, pause: float = PAUSE_SECONDS) -> None:
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(pause, self._now)

    def _now(self) -> None:
        self._due = None
        self._server.do(self.tell())

    # --- an order that was refused --------------------------------------------------------------------------

    def held_back(self, order: AnyCommand, error: Refused) -> bool:
        """Keep an order that was refused for what is unsaved; true if the person is asked about it."""
        if error.refusal.code != "unsaved" or not isinstance(order, StartCommand):
            return False
        task = self._server.mirror.task(order.project, order.task)
        if task is None:
            return False
        self.refused[task.project, task.id] = Refusal(order=order, seq=task.seq)
        if not self._server.editor.ask or self._server.editor.ours:
            return False
        self._server.do(self._ask(order, error))
        return True

    def acts(self, uri: str) -> list[Act]:
        """What can be done all the same, in a document of its task or in a file that is unsaved."""
        place = documents(self._server).place(uri)
        found = []
        for (project, number), refusal in self.refused.items():
            task = self._server.mirror.task(project, number)
            here = place is not None and (place[0].project, place[0].id) == (project, number)
            inside = unquote(uri) in self._dirty and _inside(self._dirty[unquote(uri)], project)
            if task is not None and task.seq == refusal.seq and (here or inside):
                found.append(_anyway(task, refusal.order, named=not here))
        return found

    async def _ask(self, order: StartCommand, error: Refused) -> None:
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=str(error),
            actions=[types.MessageActionItem(title=one) for one in (ANYWAY, "Cancel")],
        )
        answer = await self._server.window_show_message_request_async(params)
        if answer is None or answer.title != ANYWAY:
            return
        try:
            await self._server.link.call(anyway(order))
        except PromptsideError as refused:
            self._server.say(types.MessageType.Warning, str(refused))


def register(server: Server) -> None:
    """Listen for buffers, tell the daemon, and offer what was held back."""
    held = unsaved(server)

    def opened(params: types.DidOpenTextDocumentParams) -> None:
        held.changed(params.text_document.uri, typed=False)

    def changed(params: types.DidChangeTextDocumentParams) -> None:
        held.changed(params.text_document.uri)

    def saved(params: Any) -> None:
        held.saved(params.text_document.uri)

    def moved(up: bool, _: str) -> None:
        if up:
            held.found()

    def actions(params: types.CodeActionParams) -> list[Action]:
        found = [drawn(server, act, KIND) for act in held.acts(params.text_document.uri)]
        return [action for action in found if action is not None]

    def task_changed(task: TaskView) -> None:
        refusal = held.refused.get((task.project, task.id))
        if refusal is not None and refusal.seq != task.seq:
            del held.refused[task.project, task.id]

    on(server, types.TEXT_DOCUMENT_DID_OPEN, opened)
    on(server, types.TEXT_DOCUMENT_DID_CHANGE, changed)
    on(server, types.TEXT_DOCUMENT_DID_SAVE, saved)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, saved)
    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)
    server.on_link.append(moved)
    server.on_task.append(task_changed)


def anyway(order: StartCommand) -> Any:
    """The same order, over what is unsaved."""
    return msgspec.structs.replace(order, anyway=True)


def _anyway(task: TaskView, order: StartCommand, *, named: bool) -> Act:
    tag = str(order.__struct_config__.tag)
    offer = next((o for o in task.offers if o.command == f"promptside.{tag}"), None)
    words = (offer.title if offer is not None else title(type(order))).rstrip("…")
    given = {key: value for key, value in msgspec.to_builtins(anyway(order)).items() if key != "type"}
    words = f"{words} anyway"
    return Act(title=f"{words}: {task.title}" if named else words, command=f"promptside.{tag}", args=given)


def _inside(path: str, project: str) -> bool:
    return Path(path).is_relative_to(project)


def _alike(path: Path, text: str, typed: bool) -> bool:  # it goes through a thread's arguments
    """Whether a file says what its buffer says; line ends and a mark at the beginning are the editor's.

    Where that can't be told, what was only opened is.
    """
    try:
        if path.stat().st_size > BYTES:
            return not typed
        there = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return not text
    except (OSError, UnicodeDecodeError):
        return not typed
    return _plain(there) == _plain(text.removeprefix("\ufeff"))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


_buffers: WeakKeyDictionary[Server, Buffers] = WeakKeyDictionary()


def unsaved(server: Server) -> Buffers:
    """The unsaved files of this editor."""
    found = _buffers.get(server)
    if found is None:
        found = _buffers[server] = Buffers(server)
    return found
