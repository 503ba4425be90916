"""Which open buffer is which form of which task, what stands in it, and how its edits reach the draft and come back.

The draft is the daemon's. A buffer is never overwritten while it holds an edit that was not sent (UX 2.1).
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never
from urllib.parse import unquote
from weakref import WeakKeyDictionary

import msgspec
from lsprotocol import types
from msgspec import Struct
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from promptside_protocol import forms
from promptside_protocol.commands import EditDraft
from promptside_protocol.errors import PromptsideError, Refused
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import LINE_END, TRAILER, Page, Section
from promptside_protocol.forms.widgets import proposed
from promptside_protocol.queries import Form, GetForm
from promptside_protocol.views import TaskView

if TYPE_CHECKING:
    from promptside_server.server import Server

log = logging.getLogger(__name__)

TASKS = ".promptside/tasks/"
ANSWER_SECONDS = 10.0
"""How long an editor may take to say whether it took an edit over."""
STALE = "The file was changed elsewhere. Read it again."
"""For a buffer without unsaved edits: most editors read it again by themselves."""
ELSEWHERE = "{} was changed elsewhere after you opened this. Look again, then approve."


class Held(Struct, kw_only=True):
    """A form as the daemon had it last, and as the buffer was when both were the same."""

    form: Form
    definition: forms.Definition
    base: Form
    base_definition: forms.Definition
    seq: int = 0
    """What the task was at when the form was asked for."""
    conflicts: dict[str, str] = {}
    """By item: what is said where an edit met somebody else's."""
    refusal: str = ""
    """Why an edit of this buffer was not taken."""
    tried: bool = False
    """Whether an approval was asked for: from then on what lacks is a warning, until mended."""


class Reading(Struct, frozen=True, kw_only=True):
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
        self.unsaved: set[str] = set()
        self.on_change: list[Callable[[str], None]] = []
        """Called with each open document of which something else is to be shown now."""

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
        found = kind_of(held.definition).read(held.definition, Page(text)).found
        return Reading(
            uri=uri,
            task=task,
            document=document,
            text=text,
            form=held.form,
            definition=held.definition,
            parsed=forms.parse(held.definition, text),
            sections=found,
            conflicts=dict(held.conflicts),
            refusal=held.refusal,
            tried=held.tried,
        )

    async def ready(self, uri: str) -> Reading | None:
        """As `read`, but what is known of the form is as new as what is known of its task."""
        place = self.place(uri)
        if place is not None and self._server.link.up:
            async with self._lock(uri):
                held = self._held.get(uri)
                if held is None or held.seq < place[0].seq:
                    await self._fetch(uri)
        return self.read(uri)

    def typed(self, uri: str) -> None:
        """The buffer changed: an edit of the person, or the file read again."""
        held = self._held.get(uri)
        if held is not None and self._server.document(uri) == held.form.text:
            self.unsaved.discard(uri)
            _agree(held)
        else:
            self.unsaved.add(uri)

    def forget(self, uri: str) -> None:
        """The buffer was closed."""
        self._held.pop(uri, None)
        self._locks.pop(uri, None)
        self.unsaved.discard(uri)

    def tell(self, uri: str) -> None:
        """Have a document drawn anew."""
        for listen in self.on_change:
            listen(uri)

    async def _fetch(self, uri: str) -> Held | None:
        place = self.place(uri)
        if place is None:
            return None
        task, document = place
        try:
            form = await self._server.link.call(
                GetForm(project=task.project, task=task.id, document=document)
            )
        except Refused:
            self._held.pop(uri, None)  # task.md, an older attempt: a document without a form
            return None
        except PromptsideError as error:
            log.info("the form of %s can't be had: %s", document, error)
            return self._held.get(uri)
        definition: forms.Definition = msgspec.convert(form.definition, forms.Definition)
        if self.buffer(uri) is None:
            return None  # it was closed meanwhile
        held = self._held.get(uri)
        if held is None:
            held = Held(form=form, definition=definition, base=form, base_definition=definition)
            self._held[uri] = held
        else:
            held.form, held.definition = form, definition
        held.seq = task.seq
        if not form.lacks:
            held.tried = False
        return held

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
                _agree(held)
                return
            if definition.attempt != held.base_definition.attempt:
                return  # what stands here is of an attempt before; it waits until the person let it go
            broken = any(p.severity == "error" for p in forms.parse(definition, text).problems)
            if form.version != base.version or (broken and not whole):
                await self._send_items(uri, held, text, broken=broken)
                return
            try:
                await self._edit(uri, form, text=text)
            except Refused as refusal:
                if refusal.refusal.code == "changed-elsewhere":
                    continue
                raise
            if await self._fetch(uri) is not None:
                _agree(held)
            return

    async def _send_items(self, uri: str, held: Held, text: str, *, broken: bool) -> None:
        """Send only the answers that are this buffer's, and take in what others answered."""
        definition, base, theirs = held.definition, held.base, held.form
        merged = _merged(held, text)
        wanted, there = forms.to_plain(merged.answers), theirs.answers
        changed = {
            ref: wanted[ref] if ref in wanted else cleared(definition, ref)
            for ref in dict.fromkeys([*wanted, *there])
            if wanted.get(ref) != there.get(ref)
        }
        if changed:
            await self._edit(uri, theirs, answers=changed)
            if await self._fetch(uri) is None:
                return
        conflicts = {c.ref: ELSEWHERE.format(name_of(definition, c.ref)) for c in merged.conflicts}
        target = text
        if theirs.answers != base.answers:
            target = forms.apply(definition, text, forms.from_plain(definition, held.form.answers))
        if not broken and forms.shown(definition, target) != held.form.shown:
            if _same_prose(held, theirs):
                await self._edit(uri, held.form, text=target)
                await self._fetch(uri)
            else:
                conflicts[""] = ELSEWHERE.format("The text")
        if target == text or await self.show(uri, target):
            _agree(held)
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
        form, base = held.form, held.base
        if forms.shown(held.definition, text) == form.shown:
            _agree(held)
            return
        again = held.definition.attempt != held.base_definition.attempt
        late = uri not in self.unsaved and _attempt_in(text) != held.definition.attempt
        if form.version == base.version and not again and not late:
            return  # what differs is this buffer's, and was not sent yet
        if late or forms.shown(held.base_definition, text) == base.shown:
            target, conflicts = form.text, {}
        elif again:
            return
        else:
            merged = _merged(held, text)
            target = forms.apply(held.definition, text, merged.answers)
            conflicts = {c.ref: ELSEWHERE.format(name_of(held.definition, c.ref)) for c in merged.conflicts}
            if isinstance(held.definition, forms.TextDefinition):
                held.conflicts = {"": ELSEWHERE.format("The text")}
                return
        if target != text and not self._server.editor.ours and uri not in self.unsaved:
            held.conflicts = {
                "": STALE
            }  # the daemon wrote the file; an edit here would meet it when it is saved
        elif target == text or await self.show(uri, target):
            held.base, held.base_definition, held.conflicts = form, held.definition, conflicts

    async def show(self, uri: str, target: str) -> bool:
        """Have the editor put this text into a buffer, line by line; false if it can't or does not."""
        document = self.buffer(uri)
        if document is None or not self._server.editor.edits:
            return False
        edits = self.edits(uri, target)
        version = document.version
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        capability = self._server.client_capabilities.workspace
        if capability and capability.workspace_edit and capability.workspace_edit.document_changes:
            part = types.TextDocumentEdit(text_document=identifier, edits=list(edits))
            edit = types.WorkspaceEdit(document_changes=[part])
        else:
            edit = types.WorkspaceEdit(changes={uri: edits})
        asked = self._server.workspace_apply_edit_async(
            types.ApplyWorkspaceEditParams(edit=edit, label="Promptside")
        )
        try:
            return (await asyncio.wait_for(asked, ANSWER_SECONDS)).applied
        except TimeoutError:
            return False
        except Exception as error:  # noqa: BLE001  # whatever an editor answers, it did not take the edit
            log.info("the editor did not take an edit of %s: %s", uri, error)
            return False

    def edits(self, uri: str, target: str) -> list[types.TextEdit]:
        """What to change in a buffer so that it is this text."""
        document = self._server.workspace.text_documents[unquote(uri)]
        old, new = _lines(document.source), _lines(target)
        last = types.Position(len(old) - 1, document.position_codec.client_num_units(old[-1]))
        found = []
        for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                start = types.Position(i1, 0) if i1 < len(old) else last
                end = types.Position(i2, 0) if i2 < len(old) else last
                found.append(
                    types.TextEdit(range=types.Range(start=start, end=end), new_text="".join(new[j1:j2]))
                )
        return found

    # --- orders on a document ---------------------------------------------------------------------------

    async def carried(self, task: TaskView) -> dict[str, Any]:
        """What an order on a task's document has to carry: the buffer as the person sees it."""
        uri = self.waiting_buffer(task)
        reading = await self.ready(uri) if uri is not None else None
        if uri is None or reading is None or reading.definition is None:
            return {}
        seen = forms.shown(reading.definition, reading.text)
        if uri in self._held:
            self._held[uri].tried = True
        try:
            await self.send(uri)
        except PromptsideError as error:
            log.info("the buffer could not be sent before an order: %s", error)  # the order will be refused
        return {"answers": {}, "shown": seen}


def cleared(definition: forms.Definition, ref: str) -> Any:
    """The answer to an item that takes away what was answered."""
    match definition:
        case forms.OptionsDefinition():
            return False
        case forms.ChecklistDefinition():
            return {"ticked": False, "note": ""}
        case forms.FieldsDefinition(fields=fields):
            return next((proposed(f) for f in fields if f.key == ref), None)
        case forms.QuestionsDefinition(items=items):
            kind = next((i.kind for i in items if i.id == ref), "text")
            return "" if kind in ("text", "long_text", "code") else []
        case forms.TextDefinition():
            return None
        case _:
            assert_never(definition)


def name_of(definition: forms.Definition, ref: str) -> str:
    """What an item is called: a field by its label, the others by their ids."""
    if isinstance(definition, forms.FieldsDefinition):
        return next((f.label for f in definition.fields if f.key == ref), ref)
    return ref


def path_of(uri: str) -> Path | None:
    """The file behind a uri; None if it is none."""
    name = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(name).resolve() if name else None


def uri_of(project: str, document: str) -> str:
    """The uri of a document of a project."""
    found: str | None = from_fs_path(str(Path(project) / document))
    assert found is not None, "a path has a uri"
    return found


_documents: WeakKeyDictionary[Server, Documents] = WeakKeyDictionary()


def documents(server: Server) -> Documents:
    """The one set of documents of an editor."""
    found = _documents.get(server)
    if found is None:
        found = _documents[server] = Documents(server)
    return found


async def carried(server: Server, task: TaskView) -> dict[str, Any]:
    """What an order on a task's document has to carry: `answers` and `shown` of the open buffer, or nothing."""
    return await documents(server).carried(task)


def _agree(held: Held) -> None:
    held.base, held.base_definition, held.conflicts = held.form, held.definition, {}


def _merged(held: Held, text: str) -> forms.Merged:
    definition = held.definition
    base = forms.from_plain(held.base_definition, held.base.answers)
    mine = forms.edited(definition, base, forms.parse(definition, text))
    return forms.merge(definition, base, mine, forms.from_plain(definition, held.form.answers))


def _same_prose(held: Held, theirs: Form) -> bool:
    """Whether others changed nothing but answers."""
    definition = held.definition
    answered = forms.apply(definition, held.base.text, forms.from_plain(definition, theirs.answers))
    return forms.shown(definition, answered) == theirs.shown


def _attempt_in(text: str) -> int | None:
    """The attempt that a document's last line names: one read before the daemon wrote the next is an old one."""
    found = next((f for line in reversed(LINE_END.split(text)) if (f := TRAILER.match(line.rstrip()))), None)
    return int(found[3]) if found is not None else None


def _lines(text: str) -> list[str]:
    """Lines with their ends, as editors count them; the last has none."""
    ends = [*LINE_END.findall(text), ""]
    return [line + end for line, end in zip(LINE_END.split(text), ends, strict=True)]
