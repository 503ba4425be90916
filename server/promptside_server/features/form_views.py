"""Forms for clients of ours: whole, ready to be drawn, told on each change; and answers to them as orders (UX 8).

Where the document is open in the editor, the form is what stands in the buffer: panel and buffer say the same.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from promptside_protocol import forms
from promptside_protocol.commands import EditDraft
from promptside_protocol.errors import PromptsideError, Refused, refused
from promptside_protocol.forms.form import kind_of
from promptside_protocol.forms.grammar import Page
from promptside_protocol.queries import GetForm
from promptside_protocol.views import Offer, TaskView
from promptside_server.documents import Reading, documents, uri_of
from promptside_server.features.commands import offer as give_command
from promptside_server.features.commands import refusal, typed
from promptside_server.features.diagnostics import absent
from promptside_server.held import name_of
from promptside_server.mending import restored, without_notes
from promptside_server.offered import APPROVE, SEND, about, errors_of, hindered
from promptside_server.ours import Answered, CloseForm, FormNews, GiveAnswer, OpenForm
from promptside_server.pace import Pace
from promptside_server.server import Server
from promptside_server.target import fill

PAUSE_SECONDS = 0.1
RESTORE = "promptside.restore"

Key = tuple[str, int, str]
"""Project, task and document of a form that is open; an empty document is whatever the task waits with."""


def register(server: Server) -> None:
    """Three requests, two commands that put a form right, and the news."""
    views = FormViews(server)

    async def open_form(params: Any) -> FormNews:
        try:
            return await views.open(_given(params))
        except PromptsideError as error:
            raise refusal(error) from error

    async def close_form(params: Any) -> None:
        try:
            await views.close(_given(params))
        except PromptsideError as error:
            raise refusal(error) from error

    async def answer(params: Any) -> Answered:
        try:
            return await views.answer(_given(params))
        except PromptsideError as error:
            raise refusal(error) from error

    server.feature("promptside/openForm")(open_form)
    server.feature("promptside/closeForm")(close_form)
    server.feature("promptside/answer")(answer)
    give_command(server, "restore", views.restore)
    give_command(server, "removeNotes", views.remove_notes)
    server.on_task.append(views.task)
    server.on_gone.append(views.gone)
    server.on_link.append(views.link)
    documents(server).on_change.append(views.document)


class FormViews:
    """The forms that the client shows."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._told: dict[Key, FormNews | None] = {}
        """Each form that is open, as it was told last."""
        self._changed: dict[Key, None] = {}
        self._pace = Pace(server, self._tell, every=PAUSE_SECONDS)
        self._order = asyncio.Lock()
        """What is told later is newer."""
        self._answering = asyncio.Lock()

    async def open(self, given: dict[str, Any]) -> FormNews:
        """The form as it is now; from then on each change is told."""
        key = await self._key(typed("openForm", await self._placed(OpenForm, given), OpenForm))
        if self._server.mirror.task(key[0], key[1]) is None:
            await self._server.caught_up()
        async with self._order:
            news = await self._news(key)
            self._told[key] = news
        return news

    async def close(self, given: dict[str, Any]) -> None:
        """No more word of it."""
        key = await self._key(typed("closeForm", await self._placed(CloseForm, given), CloseForm))
        self._told.pop(key, None)
        self._changed.pop(key, None)

    async def answer(self, given: dict[str, Any]) -> Answered:
        """Change the draft; the buffer of an open document, and every other client, follow from that."""
        wish: GiveAnswer = typed("answer", await self._placed(GiveAnswer, given), GiveAnswer)
        project, number, document = await self._key(wish)
        async with self._answering:
            return await self._answer(wish, project, GetForm(project=project, task=number, document=document))

    async def _answer(self, wish: GiveAnswer, project: str, query: GetForm) -> Answered:
        form = await self._server.link.call(query)
        definition: forms.Definition = msgspec.convert(form.definition, forms.Definition)
        if wish.attempt not in (0, definition.attempt):
            words = f"Attempt {definition.attempt} took the place of attempt {wish.attempt}, after you opened this."
            raise refused("changed-elsewhere", f"{words} Look again.")
        wanted = {**wish.answers, **({wish.id: wish.value} if wish.id else {})}
        if not wanted:
            raise refused("no-text", "There is no answer to give.", 'Give {"id": …, "value": …}.')
        answers: dict[str, Any] = {}
        for ref, value in wanted.items():
            answers |= forms.full_answer(definition, form.text, ref, value)
        order = EditDraft(
            project=project, task=query.task, document=form.document, version=wish.version, answers=answers
        )
        ack = await self._server.link.call(order)
        await self._server.mirrored(project, ack)
        return Answered(seq=ack.seq, task=ack.task)

    async def restore(self, given: dict[str, Any]) -> None:
        """Put the document right, or one item of it."""
        reading = await self._meant(given)
        text = restored(reading, str(given.get("item") or ""))
        if text is None:
            raise refused("no-document", f"There is no {given.get('item')!r} in {reading.document}.")
        await self._write(reading, text)

    async def remove_notes(self, given: dict[str, Any]) -> None:
        """Take the notes to the agent out."""
        reading = await self._meant(given)
        await self._write(reading, without_notes(reading.text))

    async def _meant(self, given: dict[str, Any]) -> Reading:
        """The form that a command is about, as it stands now."""
        place = {key: value for key, value in given.items() if key in ("project", "task", "uri")}
        key = await self._key(typed("openForm", await self._placed(OpenForm, place), OpenForm))
        task = self._server.mirror.task(key[0], key[1])
        reading = await self._reading(task, key[2]) if task is not None else None
        if reading is None:
            raise refused("no-document", "There is no document to put right here.")
        return reading

    async def _write(self, reading: Reading, text: str) -> None:
        """Into the buffer, which goes on to the daemon as what is typed does; else into the draft."""
        known = documents(self._server)
        if known.buffer(reading.uri) is not None:
            if await known.show(reading.uri, text):
                await known.send(reading.uri)
            return
        assert reading.form is not None, "only a form is put right"
        form, task = reading.form, reading.task
        order = EditDraft(
            project=task.project, task=task.id, document=form.document, version=form.version, text=text
        )
        await self._server.mirrored(task.project, await self._server.link.call(order))

    def task(self, task: TaskView) -> None:
        self._wake([key for key in self._told if key[:2] == (task.project, task.id)])

    def document(self, uri: str) -> None:
        place = documents(self._server).place(uri)
        if place is not None:
            self.task(place[0])

    def gone(self, project: str) -> None:
        self._wake([key for key in self._told if key[0] == project])

    def link(self, up: bool, _sentence: str) -> None:
        if up:
            self._wake(list(self._told))

    def _wake(self, keys: list[Key]) -> None:
        if keys:
            self._changed |= dict.fromkeys(keys)
            self._pace.wake()

    def _tell(self) -> None:
        if self._server.link.up:  # else all are told when it is back: asking would start the daemon again
            self._server.do(self._tell_all())

    async def _tell_all(self) -> None:
        async with self._order:
            for key in tuple(self._changed):
                self._changed.pop(key, None)
                try:
                    news = await self._news(key)
                except Refused:
                    news = FormNews(project=key[0], task=key[1], document=key[2])
                except PromptsideError:
                    continue  # the daemon is away; when it is back, all are told
                if key not in self._told or news == self._told[key]:
                    continue
                if self._server.protocol.tell("promptside/form", news):
                    self._told[key] = news
                else:
                    self._wake([key])

    async def _placed(self, kind: type[msgspec.Struct], given: dict[str, Any]) -> dict[str, Any]:
        """With project and task, unless a document names them."""
        return given if given.get("uri") else await fill(self._server, kind, given)

    async def _key(self, wish: OpenForm | CloseForm | GiveAnswer) -> Key:
        if not wish.uri:
            return wish.project, wish.task, ""
        place = documents(self._server).place(wish.uri)
        if place is None:
            await self._server.caught_up()
            place = documents(self._server).place(wish.uri)
        if place is None:
            raise refused("no-document", "This is no document of a task.", "Give a project and a task.")
        return place[0].project, place[0].id, place[1]

    async def _news(self, key: Key) -> FormNews:
        project, number, document = key
        task = self._server.mirror.task(project, number)
        reading = await self._reading(task, document) if task is not None else None
        form = _view(reading) if reading is not None else None
        return FormNews(project=project, task=number, document=document, form=form)

    async def _reading(self, task: TaskView, document: str) -> Reading | None:
        """What stands in the buffer of the form, else in the daemon's draft; None if no form waits."""
        wanted = document or (task.waiting_for.document if task.waiting_for is not None else None)
        if not wanted:
            return None
        uri = self._server.seen_as(uri_of(task.project, wanted))
        known = documents(self._server)
        reading = await known.ready(uri) if known.buffer(uri) is not None else None
        if (
            reading is not None
            and reading.form is not None
            and not reading.apart
            and "" not in reading.conflicts
        ):
            return reading
        form = await self._server.link.call(GetForm(project=task.project, task=task.id, document=wanted))
        definition: forms.Definition = msgspec.convert(form.definition, forms.Definition)
        return Reading(
            uri=uri,
            task=task,
            document=form.document,
            text=form.text,
            form=form,
            definition=definition,
            parsed=forms.parse(definition, form.text),
            sections=kind_of(definition).read(definition, Page(form.text)).found,
            tried=known.tried(task, form, definition.attempt),
            conflicts=dict(reading.conflicts) if reading is not None else {},
        )


def _view(reading: Reading) -> forms.FormView | None:
    form, definition = reading.form, reading.definition
    if form is None or definition is None:
        return None
    place = forms.FormPlace(
        project=reading.task.project,
        document=form.document,
        uri=reading.uri,
        version=form.version,
        waits=reading.waits,
        original=form.original,
        elsewhere=reading.conflicts,
    )
    view = forms.form_view(definition, reading.text, place)
    offers = [*_offers(reading, {item.id for item in view.items}), *_mends(reading)]
    return msgspec.structs.replace(view, offers=tuple(offers), problems=tuple(_problems(reading, view)))


def _problems(reading: Reading, view: forms.FormView) -> list[forms.FormProblem]:
    """With files that are none; and after an approval that was refused here, what lacks is a warning."""
    found = [
        msgspec.structs.replace(problem, severity="warning")
        if reading.tried and problem.code == "gate-lacks" and problem.item
        else problem
        for problem in view.problems
    ]
    found += [
        forms.FormProblem(
            line=line + 1, severity="warning", code="form-file", text=f"{path} does not exist.", item=ref
        )
        for ref, line, path in absent(reading)
    ]
    return found


def _mends(reading: Reading) -> list[Offer]:
    """What makes a document that can't be read one that can, by item and as a whole; and its notes taken out."""
    if not reading.waits or reading.parsed is None:
        return []
    at = {"uri": reading.uri}
    errors = errors_of(reading)
    refs = dict.fromkeys(problem.ref or reading.item_at(problem.line - 1) for problem in errors)
    found = [
        Offer(
            command=RESTORE,
            title=f"Restore {name_of(reading.definition, ref)}",
            args={**at, "item": ref},
            place=ref,
        )
        for ref in refs
        if ref and reading.definition is not None and restored(reading, ref) is not None
    ]
    if errors and restored(reading) is not None:
        found.append(Offer(command=RESTORE, title="Restore the document", args=at))
    if reading.parsed.notes:
        words = "Remove the notes" if len(reading.parsed.notes) > 1 else "Remove the note"
        found.append(Offer(command="promptside.removeNotes", title=words, args=at))
    return found


def _offers(reading: Reading, items: set[str]) -> list[Offer]:
    """The daemon's offers that are about this document, blocked also by what stands in the buffer."""
    found = []
    for offer in reading.task.offers:
        of_this = about(reading.task, offer) in (
            ("", reading.document) if reading.waits else (reading.document,)
        )
        if not of_this or (offer.place and offer.place not in items):
            continue
        if reading.waits and offer.command in (APPROVE, SEND):
            hindrance = hindered(reading, "sent" if offer.command == SEND else "approved")
            satisfied = reading.form is not None and reading.form.satisfied
            blocked = hindrance or (None if not satisfied else offer.blocked)
            offer = msgspec.structs.replace(offer, blocked=blocked)  # noqa: PLW2901  # the same offer, as it is here
        found.append(offer)
    return found


def _given(params: Any) -> dict[str, Any]:
    given = params if isinstance(params, dict) else {}
    return {
        key: value for key, value in given.items() if not (key in ("project", "task", "uri") and not value)
    }
