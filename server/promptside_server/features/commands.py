"""Every order of the protocol as an LSP command: one forwarder, and no opinion about any of them.

Orders about a document carry what the person sees of it, also what is not saved yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from promptside_protocol import forms
from promptside_protocol.commands import (
    COMMANDS,
    Ack,
    Approve,
    Command,
    Deny,
    EditDraft,
    NewTask,
    Redo,
    RemoveProject,
    Run,
    Say,
    SendAnswers,
    StartCommand,
    TakeOver,
)
from promptside_protocol.errors import PromptsideError, Refused, refused
from promptside_protocol.queries import GetForm
from promptside_protocol.views import TaskView
from promptside_server.comments import with_comments
from promptside_server.context import Context, context, place_in
from promptside_server.dangers import Danger, danger
from promptside_server.documents import Order, documents, uri_of
from promptside_server.features.asking import asks, yes
from promptside_server.features.notes import begin_note, spent, written
from promptside_server.features.unsaved import unsaved
from promptside_server.missing import complete
from promptside_server.offered import NOTED
from promptside_server.server import Server
from promptside_server.target import fill

REQUEST_FAILED = -32803
"""LSP's number for a request that failed for a reason that a person understands."""

TEXT: dict[type[msgspec.Struct], tuple[str, str]] = {
    Redo: ("feedback", "Say what the agent should do differently"),
    Say: ("text", "Say what the agent should know"),
    Deny: ("text", "Say why, or what the agent should do in its place"),
}
"""Where an order has the word of the person, and what to ask for when it is missing."""
SOURCE_GOES: dict[type[msgspec.Struct], str] = {Run: "input", Redo: "feedback", Say: "text"}
"""Where in an order stands what the person has selected (ED-13)."""

OF_A_DOCUMENT: tuple[Order, ...] = (Approve, SendAnswers, Redo)
"""Orders that carry what the person sees."""


class Asked(Refused):
    """Refused, and the person is asked already whether it is meant all the same."""


Handler = Callable[[dict[str, Any]], Awaitable[Any]]


def register(server: Server) -> None:
    """One LSP command for each Struct, named by its tag."""
    for tag, kind in COMMANDS.items():
        if kind is not TakeOver:  # which is for the program in the terminal to give
            _register(server, tag, kind)


def offer(server: Server, name: str, perform: Handler) -> None:
    """An LSP command `promptside.<name>` that takes one object; refusals are told as LSP has it."""

    async def command(*arguments: Any) -> Any:
        try:
            return await perform(_object(name, arguments))
        except PromptsideError as error:
            if not server.editor.ours and not isinstance(error, Asked):
                server.say(types.MessageType.Warning, sentence(error))
            raise refusal(error) from error

    server.command(f"promptside.{name}")(command)
    server.protocol.plain[f"promptside.{name}"] = command


def typed(name: str, given: dict[str, Any], kind: type[msgspec.Struct]) -> Any:
    """Arguments as their Struct; what doesn't fit is named by its path."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise JsonRpcInvalidParams(f"promptside.{name}: {error}.") from error


def refusal(error: PromptsideError) -> JsonRpcException:
    """An error of the daemon as LSP has it: the sentence, and the rest as data."""
    return JsonRpcException(message=str(error), code=REQUEST_FAILED, data=msgspec.to_builtins(error.refusal))


def sentence(error: PromptsideError) -> str:
    """A refusal in one line: why, and what to do in its place."""
    hint = error.refusal.hint.partition("\n")[0]
    if not hint:
        return str(error)
    return f"{error} {hint}" if hint.endswith((".", "…", "?")) else f"{error} ({hint})"


def _register(server: Server, tag: str, kind: type[msgspec.Struct]) -> None:
    async def perform(given: dict[str, Any]) -> Any:
        given = with_comments(tag, given)
        place = place_in(tag, given)
        if kind is NewTask and given.get("title") is None:
            from promptside_server.drafts import begin  # noqa: PLC0415  # which gives commands of its own

            return await begin(server, given, place)
        filled = await fill(server, kind, given, place.uri)
        if kind is NewTask:
            filled = {"key": uuid.uuid4().hex, **server.preferred.of_a_task(), **filled}
        view = _view(server, filled)
        filled = await complete(server, kind, filled, view)
        if kind is EditDraft and not {"answers", "text"} & filled.keys():
            return await _send_buffer(server, filled)
        about = next((one for one in OF_A_DOCUMENT if one is kind), None)
        stage = str(filled.get("stage") or "")
        if view is not None and about is not None and given.get("shown") != "":
            # Also where a client says what it showed: that may be the buffer, with what was typed just now.
            filled = {**await documents(server).carried(view, about, stage), **filled}
        project = str(filled.get("project") or "")
        source = context(server, place, project) if kind in SOURCE_GOES else Context()
        if kind in TEXT:
            field, wish = TEXT[kind]
            if filled.get(field) is None and not filled.get("fresh"):
                filled["uri"], filled[field] = written(server, view) if view is not None else ("", "")
                if (
                    about is Redo
                    and view is not None
                    and filled["uri"] == documents(server).waiting_buffer(view)
                ):
                    filled["uri"], filled[field] = "", ""  # the daemon has these with the draft
                elif not filled[field] and not source.says:
                    if view is not None and await begin_note(server, view):
                        return None
                    raise refused("no-text", f"{wish}.", f'Give {{"{field}": …}}.')
        order = typed(tag, {**filled, "type": tag}, kind)
        if source.text:
            field = SOURCE_GOES[kind]
            words = "\n\n".join(part for part in (getattr(order, field), source.text) if part)
            order = msgspec.structs.replace(order, **{field: words})
        lost = danger(view, f"promptside.{tag}", filled) if view is not None else None
        if lost is not None and asks(server) and not given.get("confirmed"):
            # The answer to this request does not wait for the person's: some editors wait for it with their hands tied.
            server.do(_when_sure(server, lost, order))
            return None
        if isinstance(order, StartCommand):
            await unsaved(server).tell()
        try:
            ack = await server.link.call(order)
        except Refused as error:
            if view is not None and about is not None:
                documents(server).refused(server.mirror.task(view.project, view.id) or view, about, stage)
            if unsaved(server).held_back(order, error):
                raise Asked(error.refusal) from error
            raise await _with_difference(server, view, error) from error
        if isinstance(order, RemoveProject):
            server.forget(order.project)
        elif isinstance(order, Command):
            await server.mirrored(order.project, ack)
        word = NOTED.get(f"promptside.{tag}")
        if word is not None and filled.get("uri"):
            await spent(server, str(filled["uri"]), str(filled.get(word) or ""))
        if isinstance(ack, Ack) and ack.said and not server.editor.ours:
            server.say(types.MessageType.Info, ack.said)
        return ack

    offer(server, tag, perform)


async def _when_sure(server: Server, lost: Danger, order: Any) -> None:
    if not await yes(server, lost):
        return
    try:
        await server.link.call(order)
    except PromptsideError as error:
        if isinstance(error, Refused) and unsaved(server).held_back(order, error):
            return
        server.say(types.MessageType.Warning, sentence(error))


async def _send_buffer(server: Server, filled: dict[str, Any]) -> Ack:
    """The draft becomes what the open buffer of the document says."""
    uri = uri_of(filled["project"], filled["document"])
    if server.document(uri) is None:
        raise refused("no-document", f"{filled['document']} is not open here.", "Open it, or give answers.")
    await documents(server).send(server.seen_as(uri))
    return Ack(seq=0, task=filled["task"])


def _view(server: Server, filled: dict[str, Any]) -> TaskView | None:
    place, number = filled.get("project"), filled.get("task")
    if isinstance(place, str) and isinstance(number, int):
        return server.mirror.task(place, number)
    return None


async def _with_difference(server: Server, task: TaskView | None, error: Refused) -> Refused:
    """The refusal of a document that is not the daemon's, with what differs, where it is open here (M11)."""
    known = documents(server)
    uri = known.waiting_buffer(task) if task is not None else None
    if error.refusal.code != "other-bytes" or error.refusal.difference or task is None or uri is None:
        return error
    reading = known.read(uri)
    if reading is None or reading.definition is None:
        return error
    try:
        theirs = await server.link.call(GetForm(project=task.project, task=task.id))
    except PromptsideError:
        return error
    difference = forms.difference(reading.definition, theirs.text, reading.text)
    return Refused(msgspec.structs.replace(error.refusal, difference=difference))


def _object(name: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    match arguments:
        case () | (None,):
            return {}
        case (dict() as given,):
            return dict(given)
        case _:
            raise JsonRpcInvalidParams(f"promptside.{name} takes one object as its only argument.")
