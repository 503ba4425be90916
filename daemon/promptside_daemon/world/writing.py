"""When a document's file is written: one at a time, the newest draft, and not under the hands of who has it open.

A client that takes edits and holds a document is sent what changes; the file is brought in line when it lets go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from msgspec import Struct

from promptside_daemon.engine.task import Task
from promptside_daemon.world.documents import Documents, find_form
from promptside_daemon.world.taskfile import task_file
from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import HeldDocument

log = logging.getLogger(__name__)


class _Wish(Struct, kw_only=True):
    """A document that is to be written; of several wishes the newest task counts."""

    task: Task
    only_if_missing: bool
    catch_up: bool
    done: asyncio.Future[None]


class Writer:
    """Writes the documents of one project, and knows which of them are held open."""

    def __init__(
        self, documents: Documents, find: Callable[[int], Awaitable[Task]], written: Callable[[Task], None]
    ) -> None:
        self._documents = documents
        self._find = find
        self._written = written
        self._wishes: dict[str, _Wish] = {}
        self._held: dict[int, dict[str, HeldDocument]] = {}
        self._working: set[asyncio.Task[None]] = set()
        self._writing: asyncio.Task[None] | None = None

    # --- writing ----------------------------------------------------------------------------------------

    def write(
        self, task: Task, document: str, *, only_if_missing: bool = False, catch_up: bool = False
    ) -> asyncio.Future[None]:
        """Have a document written; done when that was tried, whatever came of it.

        `catch_up` is for a file that may be behind, because somebody held it: a person's words in it stay.
        """
        waiting = self._wishes.get(document)
        if waiting is None:
            done = asyncio.get_running_loop().create_future()
            wish = _Wish(task=task, only_if_missing=only_if_missing, catch_up=catch_up, done=done)
            self._wishes[document] = wish
        else:
            wish = waiting
            wish.task = task
            wish.only_if_missing = wish.only_if_missing and only_if_missing
            wish.catch_up = wish.catch_up and catch_up
        if self._writing is None:
            self._writing = self._do(self._write_all())
        return wish.done

    async def _write_all(self) -> None:
        try:
            while self._wishes:
                document = next(iter(self._wishes))
                wish = self._wishes.pop(document)
                try:
                    await asyncio.to_thread(self._write_one, wish, document, self._hold(document))
                except (OSError, PromptsideError) as error:
                    # The draft is in the database; the file is only its rendering.
                    log.warning("%s could not be written: %s", document, error)
                finally:
                    wish.done.set_result(None)
                self._written(wish.task)
        finally:
            self._writing = None

    def _write_one(self, wish: _Wish, document: str, held: HeldDocument | None) -> None:
        task = wish.task
        if document == f"{task.directory}/task.md":
            if not wish.catch_up and (not wish.only_if_missing or self._documents.on_disk(document) is None):
                self._documents.put(document, task_file(task))
            return
        form = find_form(task, document)
        if form is not None:
            self._documents.write(
                task, form, only_if_missing=wish.only_if_missing, catch_up=wish.catch_up, held=held
            )

    # --- holding ----------------------------------------------------------------------------------------

    def hold(self, connection: int, documents: Iterable[HeldDocument]) -> None:
        """Take what a client holds now; a file that nobody holds any more, or that was saved, is looked after."""
        before = self._held.pop(connection, {})
        now = {held.document: held for held in documents}
        if now:
            self._held[connection] = now
        for document, held in before.items():
            if document not in now or (held.unsaved and not now[document].unsaved):
                self._do(self._catch_up(held.task, document))

    def is_held(self, document: str) -> bool:
        """Whether a client that takes edits has it open."""
        return self._hold(document) is not None

    def _hold(self, document: str) -> HeldDocument | None:
        """How a document is held; with unsaved changes if any of its holders has some."""
        found = [held[document] for held in self._held.values() if document in held]
        return max(found, key=lambda held: held.unsaved, default=None)

    async def _catch_up(self, number: int, document: str) -> None:
        try:
            task = await self._find(number)
        except PromptsideError as error:
            log.info("%s is held for no task: %s", document, error)
            return
        if document.startswith(f"{task.directory}/"):
            await self.write(task, document, catch_up=True)

    # --- its end ----------------------------------------------------------------------------------------

    async def idle(self) -> None:
        """Return when everything that is wanted by now is written."""
        while self._working:
            await asyncio.wait(self._working)

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        doing = asyncio.create_task(work)
        self._working.add(doing)
        doing.add_done_callback(self._done)
        return doing

    def _done(self, doing: asyncio.Task[None]) -> None:
        self._working.discard(doing)
        if not doing.cancelled() and doing.exception() is not None:
            log.error("a document could not be written", exc_info=doing.exception())
