"""Which open buffer is which form of which task, what stands in it, and how its edits reach the draft and come back.

The draft is the daemon's. A buffer is never overwritten while it holds an edit that was not sent (UX 2.1).
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import msgspec
from lsprotocol import types
from msgspec import Struct
from pygls.workspace import TextDocument

from promptside_protocol import forms
from promptside_protocol.commands import Approve, EditDraft, Redo, SendAnswers
from promptside_protocol.errors import PromptsideError, Refused
from promptside_protocol.forms.grammar import LINE_END, Section
from promptside_protocol.queries import Form, GetForm, HeldDocument
from promptside_protocol.views import TaskView
from promptside_server.applying import applied, edits_to
from promptside_server.files import Files, on_disk, path_of, uri_of
from promptside_server.held import (
    LET_GO,
    STALE,
    Held,
    begun,
    cleared,
    conflicts_of,
    elsewhere,
    first_difference,
    merged,
    same_prose,
)
from promptside_server.holding import Holding

if TYPE_CHECKING:
    from promptside_server.server import Server

__all__ = ["TASKS", "Documents", "Order", "Reading", "documents", "path_of", "uri_of"]

log = logging.getLogger(__name__)

TASKS = ".promptside/tasks/"
Order = type[Approve] | type[SendAnswers] | type[Redo]
"""The orders that are about a document."""


class Reading(Struct, frozen=True, kw_only=True, dict=True):
    """A buffer of a task's document as it is now."""

    uri: str
    task: TaskView
    document: str
    """Its path, relative to the project."""
    text: str
    form: Form | None = None
    definition: forms.Definition | None = None
    parsed: forms.Parsed | None = None
    sections: dict[str, Section] = {}
    conflicts: dict[str, str] = {}
    refusal: str = ""
    tried: bool = False
    apart: int = 0
    """The first line (from 1) in which the buffer is not what the daemon has, where it never had what stands here."""

    @cached_property
    def given(self) -> dict[str, Any]:
        """The answers in the buffer, by item."""
        return forms.to_plain(self.parsed.answers) if self.parsed is not None else {}

    @cached_property
    def points(self) -> dict[str, forms.CheckItem]:
        """The items of a checklist, by their ids."""
        match self.definition:
            case forms.ChecklistDefinition(items=items):
                return {item.id: item for item in items}
            case _:
                return {}

    @property
    def waits(self) -> bool:
        """Whether the task waits with this document."""
        return self.task.waiting_for is not None and self.task.waiting_for.document == self.document

    @property
    def lines(self) -> list[str]:
        """The buffer's lines, as editors count them."""
        return LINE_END.split(self.text)

    def item_at(self, line: int) -> str:
        """The item that a line (from 0) belongs to; empty for the document."""
        return next((s.ref for s in self.sections.values() if s.start <= line < s.end), "")


class Documents:
    """The form documents of one editor."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._held: dict[str, Held] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._files = Files()
        self._holding = Holding(server)
        self.on_change: list[Callable[[str], None]] = []
        """Called with each open document of which something else is to be shown now."""
        self._tried: dict[tuple[str, int, str], int] = {}
        """Documents that an order about was refused here, by project, task and path, and their attempt when known."""

    # --- which is which ---------------------------------------------------------------------------------

    def place(self, uri: str) -> tuple[TaskView, str] | None:
        """The task and the document that a file is, if it is one."""
        file = path_of(uri)
        if file is None or TASKS not in file.as_posix():
            return None
        task = self._server.mirror.owner(file)
        return (task, file.relative_to(task.project).as_posix()) if task is not None else None

    def open(self) -> list[str]:
        """The uris of all open buffers."""
        return [document.uri for document in self._server.workspace.text_documents.values()]

    def buffer(self, uri: str) -> TextDocument | None:
        """The open buffer of a file; pygls keeps them by what the uri means, not by how it is written."""
        found: TextDocument | None = self._server.workspace.text_documents.get(unquote(uri))
        return found

    def open_of(self, task: TaskView) -> list[str]:
        """The open documents of a task."""
        found = []
        for uri in self.open():
            place = self.place(uri)
            if place is not None and (place[0].project, place[0].id) == (task.project, task.id):
                found.append(uri)
        return found

    def waiting_buffer(self, task: TaskView) -> str | None:
        """The open buffer of the document that a task waits with."""
        wanted = task.waiting_for.document if task.waiting_for is not None else None
        return next((uri for uri in self.open_of(task) if wanted and self._document(uri) == wanted), None)

    def _document(self, uri: str) -> str:
        place = self.place(uri)
        return place[1] if place is not None else ""

    # --- what stands there ------------------------------------------------------------------------------

    def read(self, uri: str) -> Reading | None:
        """A buffer with what is known of its form."""
        place, text = self.place(uri), self._server.document(uri)
        if place is None or text is None:
            return None
        task, document = place
        held = self._held.get(uri)
        if held is None:
            return Reading(uri=uri, task=task, document=document, text=text)
        sections, parsed = held.understood(text)
        return Reading(
            uri=uri,
            task=task,
            document=document,
            text=text,
            form=held.form,
            definition=held.definition,
            parsed=parsed,
            sections=sections,
            conflicts=dict(held.conflicts),
            refusal=held.refusal,
            tried=held.tried,
            apart=first_difference(text, held.form.text) if held.apart else 0,
        )

    async def ready(self, uri: str) -> Reading | None:
        """As `read`, but what is known of the form is as new as what is known of its task."""
        place = self.place(uri)
        self._settle(uri)
        if place is not None and self._server.link.up:
            async with self._lock(uri):
                held = self._held.get(uri)
                if held is None or held.seq < place[0].seq:
                    await self._fetch(uri)
        return self.read(uri)

    def opened(self, uri: str, text: str) -> None:
        """A buffer was opened with this text, which is not this person's edit, whatever was typed since."""
        self._held.pop(uri, None)
        self._files.opened(uri, text)

    def typed(self, uri: str) -> bool:
        """The buffer changed; false if that may be its file, read again."""
        text = self._server.document(uri)
        if text is None:
            return False
        self._settle(uri)
        known = self._held.get(uri)
        agreed = known is not None and text == known.form.text
        if known is not None and agreed:
            known.agree()
        return self._files.typed(uri, text, agreed=agreed)

    def saved(self, uri: str) -> None:
        """The file is what the buffer is."""
        self._files.saved(uri)

    def _settle(self, uri: str) -> None:
        if self._files.settle(uri):
            self._held.pop(uri, None)  # what stands there was not typed here

    def forget(self, uri: str) -> None:
        """The buffer was closed."""
        self._held.pop(uri, None)
        self._locks.pop(uri, None)
        self._files.closed(uri)
        self._server.do(self._holding.let_go(uri))

    async def hold(self, uri: str) -> None:
        """Have the daemon know that this buffer is open here, and whether it is saved."""
        place = self.place(uri)
        if place is not None and self.buffer(uri) is not None:
            task, document = place
            unsaved = uri in self._files.unsaved
            held = HeldDocument(project=task.project, task=task.id, document=document, unsaved=unsaved)
            await self._holding.hold(uri, held)

    def tell(self, uri: str) -> None:
        """Have a document drawn anew."""
        for listen in self.on_change:
            listen(uri)

    async def _fetch(self, uri: str, *, since: bool = True) -> Held | None:
        """The form as it is now; with `since`, also what others did since the buffer was the same."""
        place = self.place(uri)
        if place is None:
            return None
        task, document = place
        await self.hold(uri)  # first: from then on nobody writes the file under it
        held = self._held.get(uri)
        query = GetForm(project=task.project, task=task.id, document=document)
        try:
            seen = held.base.shown if held is not None and since else ""
            form = await self._server.link.call(msgspec.structs.replace(query, shown=seen))
            definition: forms.Definition = msgspec.convert(form.definition, forms.Definition)
            if held is None:
                held = await self._begun(uri, query, form, definition)
        except Refused:
            self._held.pop(uri, None)  # task.md, an older attempt: a document without a form
            return None
        except PromptsideError as error:
            log.info("the form of %s can't be had: %s", document, error)
            return self._held.get(uri)
        if self.buffer(uri) is None:
            return None  # it was closed meanwhile
        held.tried = held.tried and held.definition.attempt == definition.attempt
        held.form, held.definition = form, definition
        self._held[uri] = held
        held.seq = task.seq
        if not form.lacks:
            held.tried = False
        return held

    async def _begun(self, uri: str, query: GetForm, form: Form, definition: forms.Definition) -> Held:
        """What the buffer was opened with may be older than what the daemon has by now (M10)."""
        text = self._server.document(uri) or ""
        opened = self._files.begun_with(uri, text)
        for one in dict.fromkeys((opened, on_disk(uri) if uri in self._files.unsaved else opened)):
            shown = forms.shown(definition, one) if one is not None else form.shown
            if one is None or shown == form.shown:
                return begun(form, definition, form.text, None)
            known = await self._server.link.call(msgspec.structs.replace(query, shown=shown))
            if known.seen is not None:
                return begun(form, definition, one, known)
            if known.shown == shown:
                return begun(form, definition, form.text, None)  # it came to be so just now
        return begun(form, definition, opened, None)

    def _lock(self, uri: str) -> asyncio.Lock:
        return self._locks.setdefault(uri, asyncio.Lock())

    # --- out: an edit is an order -----------------------------------------------------------------------

    async def send(self, uri: str, *, whole: bool = True) -> None:
        """Have the draft say what the buffer says; without `whole`, lines that can't be read stay here."""
        try:
            async with self._lock(uri):
                await self._send(uri, whole=whole)
        except PromptsideError as error:
            held = self._held.get(uri)
            if held is not None:
                held.refusal = str(error)
            raise
        finally:
            self.tell(uri)

    async def _send(self, uri: str, *, whole: bool) -> None:
        for _ in range(3):  # somebody else may be quicker, but not for ever
            held, text = await self._fetch(uri), self._server.document(uri)
            if held is None or text is None:
                return
            definition, form, base = held.definition, held.form, held.base
            held.refusal = ""
            if forms.shown(definition, text) == form.shown:
                held.agree()
                return
            if held.replaced:
                # What stands here is of an attempt before; it waits until the person has let it go.
                held.conflicts = {
                    "": STALE if uri not in self._files.unsaved else elsewhere(held, "", LET_GO)
                }
                return
            if held.apart:
                return  # the person says first which of the two it is to be
            broken = any(p.severity == "error" for p in forms.parse(definition, text).problems)
            try:
                if form.version != base.version or (broken and not whole):
                    await self._send_items(uri, held, text, broken=broken)
                else:
                    await self._edit(uri, form, text=text)
                    await self._sent(uri, held, text)
            except Refused as refusal:
                if refusal.refusal.code == "changed-elsewhere":
                    continue
                raise
            return

    async def _sent(self, uri: str, held: Held, text: str) -> None:
        """The draft has become this text; what others answered while it was on its way is taken in."""
        held.base_definition = held.definition
        held.base = msgspec.structs.replace(
            held.form, text=text, shown=forms.shown(held.definition, text), version=held.form.version + 1
        )
        now = await self._fetch(uri), self._server.document(uri)
        if now[0] is None or now[1] is None:
            return
        if held.form.shown == held.base.shown:
            held.agree()
        elif held.form.seen is not None:
            seen = held.form.seen
            held.base = msgspec.structs.replace(held.base, version=seen.version, answers=seen.answers)
            await self._take(uri, held, now[1])

    async def _send_items(self, uri: str, held: Held, text: str, *, broken: bool) -> None:
        """Send only the answers that are this buffer's, and take in what others answered."""
        definition, base, theirs = held.definition, held.base, held.form
        found = merged(held, text)
        conflicts = conflicts_of(held, found)
        wanted, there = forms.to_plain(found.answers), theirs.answers
        changed = {
            ref: wanted[ref] if ref in wanted else cleared(definition, ref)
            for ref in dict.fromkeys([*wanted, *there])
            if wanted.get(ref) != there.get(ref)
        }
        if changed:
            await self._edit(uri, theirs, answers=changed)
            if await self._fetch(uri, since=False) is None or self._server.document(uri) != text:
                return  # what was typed meanwhile is sent in its turn
        target = text
        if theirs.answers != base.answers or held.form.version > theirs.version + bool(changed):
            target = forms.apply(definition, text, forms.from_plain(definition, held.form.answers))
        rest = not broken and forms.shown(definition, target) != held.form.shown
        if rest and not same_prose(held, theirs):
            conflicts[""] = elsewhere(held, "")
            rest = False
        if rest:
            await self._edit(uri, held.form, text=target)
        if target == text or await self.show(uri, target):
            if rest:
                await self._sent(uri, held, target)
            else:
                held.agree()
        held.conflicts = conflicts

    async def _edit(self, uri: str, form: Form, **what: Any) -> None:
        place = self.place(uri)
        if place is not None:
            project, task = place[0].project, place[0].id
            order = EditDraft(
                project=project, task=task, document=form.document, version=form.version, **what
            )
            await self._server.link.call(order)

    # --- in: what others did ----------------------------------------------------------------------------

    async def refresh(self, uri: str) -> None:
        """The task changed: take in what others answered, unless this buffer holds an edit of its own there."""
        async with self._lock(uri):
            held, text = await self._fetch(uri), self._server.document(uri)
            if held is not None and text is not None:
                await self._take(uri, held, text)
        self.tell(uri)

    async def _take(self, uri: str, held: Held, text: str) -> None:
        form, definition = held.form, held.definition
        if forms.shown(definition, text) == form.shown:
            held.agree()
            return
        if held.apart or (form.version == held.base.version and not held.replaced):
            return  # what differs is this buffer's, and was not sent yet
        unsent, conflicts = held.unsent(text), dict[str, str]()
        if unsent and held.replaced:
            held.conflicts = {"": elsewhere(held, "", LET_GO)}
            return
        if unsent and isinstance(definition, forms.TextDefinition):
            held.conflicts = {"": elsewhere(held, "")}
            return
        target = form.text
        if unsent:
            found = merged(held, text)
            target, conflicts = forms.apply(definition, text, found.answers), conflicts_of(held, found)
        ours = self._server.editor.ours
        if target != text and not ours and uri not in self._files.unsaved and on_disk(uri) == form.text:
            held.conflicts = {"": STALE}  # an edit here would meet the file when it is saved
        elif target == text or await self.show(uri, target):
            held.agree()
            held.conflicts = conflicts
        else:
            held.conflicts = conflicts or {"": elsewhere(held, "")}

    async def show(self, uri: str, target: str) -> bool:
        """Have the editor put this text into a buffer, line by line; false if it can't or does not."""
        document = self.buffer(uri)
        if document is None or not self._server.editor.edits:
            return False
        version = document.version
        taken = await applied(self._server, uri, document, target)
        now = self.buffer(uri)
        if not taken and now is not None and now.version == version:
            await self._holding.let_go(uri, refused=True)  # nothing was typed meanwhile: it takes none
        return taken

    def edits(self, uri: str, target: str) -> list[types.TextEdit]:
        """What to change in a buffer so that it is this text."""
        return edits_to(self._server.workspace.text_documents[unquote(uri)], target)

    # --- which of the two it is to be -------------------------------------------------------------------

    async def take_mine(self, uri: str) -> None:
        """The draft becomes what this buffer says, whatever the daemon has (M11)."""
        async with self._lock(uri):
            held, text = await self._fetch(uri, since=False), self._server.document(uri)
            if held is not None and text is not None:
                await self._edit(uri, held.form, text=text)
                await self._sent(uri, held, text)
        self.tell(uri)

    async def take_theirs(self, uri: str) -> bool:
        """The buffer becomes what the daemon has; false if the editor does not take it."""
        async with self._lock(uri):
            held = await self._fetch(uri, since=False)
            taken = held is not None and await self.show(uri, held.form.text)
            if held is not None and taken:
                held.agree()
        self.tell(uri)
        return taken

    def difference(self, uri: str) -> str:
        """What stands in a buffer and not in the draft, and the other way about, as a unified difference."""
        held, text = self._held.get(uri), self._server.document(uri)
        if held is None or text is None:
            return ""
        name = self._document(uri).rpartition("/")[2]
        ours, theirs = LINE_END.split(held.form.text), LINE_END.split(text)
        return "\n".join(
            difflib.unified_diff(ours, theirs, f"{name} (Promptside)", f"{name} (here)", lineterm="")
        )

    # --- orders on a document ---------------------------------------------------------------------------

    async def carried(self, task: TaskView, order: Order, stage: str = "") -> dict[str, Any]:
        """What an order carries of the document that it is about: the buffer as the person sees it.

        A redo carries nothing; its notes are sent with the draft.
        """
        uri = self.buffer_of(task, order, stage)
        reading = await self.ready(uri) if uri is not None else None
        if uri is None or reading is None or reading.definition is None:
            return {}
        seen = forms.shown(reading.definition, reading.text)
        try:
            await self.send(uri)
        except PromptsideError as error:
            log.info("the buffer could not be sent before an order: %s", error)  # the order will be refused
        return {} if order is Redo else {"shown": seen}

    def refused(self, task: TaskView, order: Order, stage: str = "") -> None:
        """An approval that this editor gave was refused: what its buffer lacks is a warning until it is mended."""
        wanted = _document_of(task, order, stage)
        if wanted is None or order is Redo:
            return
        self._tried[task.project, task.id, wanted] = 0
        uri = self.buffer_of(task, order, stage)
        if uri is not None and uri in self._held:
            self._held[uri].tried = True
        self.tell(uri or self._server.seen_as(uri_of(task.project, wanted)))

    def tried(self, task: TaskView, form: Form, attempt: int) -> bool:
        """Whether an approval of this form was refused here, open or not, and something lacks since."""
        key = (task.project, task.id, form.document)
        if key in self._tried and (not form.lacks or self._tried[key] not in (0, attempt)):
            del self._tried[key]
        if key in self._tried:
            self._tried[key] = attempt
        return key in self._tried

    def buffer_of(self, task: TaskView, order: Order, stage: str = "") -> str | None:
        """The open buffer of the document that an order is about."""
        wanted = _document_of(task, order, stage)
        return next((uri for uri in self.open_of(task) if wanted and self._document(uri) == wanted), None)


def _document_of(task: TaskView, order: Order, stage: str) -> str | None:
    """The document that an order is about.

    An approval is about a gate, also one of before whose approval became void; answers are about questions.
    """
    waiting = task.waiting_for
    if order is Approve and stage and (waiting is None or stage != waiting.stage):
        return next((s.artifact for s in task.stages if s.id == stage), None)
    if waiting is None or (order, waiting.kind) in ((Approve, "decision"), (SendAnswers, "gate")):
        return None
    return waiting.document


_documents: WeakKeyDictionary[Server, Documents] = WeakKeyDictionary()


def documents(server: Server) -> Documents:
    """The one set of documents of an editor."""
    found = _documents.get(server)
    if found is None:
        found = _documents[server] = Documents(server)
    return found
