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
    Approve,
    Command,
    Deny,
    NewTask,
    Redo,
    RemoveProject,
    Say,
    SendAnswers,
)
from promptside_protocol.errors import PromptsideError, Refused, refused
from promptside_protocol.queries import GetForm
from promptside_protocol.views import TaskView
from promptside_server.documents import carried, documents
from promptside_server.features.notes import begin_note
from promptside_server.offered import notes_of
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

OF_A_DOCUMENT = frozenset((Approve, SendAnswers, Redo))
"""Orders that carry what the person sees."""

Handler = Callable[[dict[str, Any]], Awaitable[Any]]


def register(server: Server) -> None:
    """One LSP command for each Struct, named by its tag."""
    for tag, kind in COMMANDS.items():
        _register(server, tag, kind)


def offer(server: Server, name: str, perform: Handler) -> None:
    """An LSP command `promptside.<name>` that takes one object; refusals are told as LSP has it."""

    async def command(*arguments: Any) -> Any:
        try:
            return await perform(_object(name, arguments))
        except PromptsideError as error:
            if not server.editor.ours:
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
        filled = await fill(server, kind, given)
        if kind is NewTask:
            filled.setdefault("key", uuid.uuid4().hex)
        view = _view(server, filled)
        if view is not None and kind in OF_A_DOCUMENT and not {"answers", "shown"} & given.keys():
            seen = await carried(server, view)
            filled = {**{key: seen[key] for key in seen if key in kind.__struct_fields__}, **filled}
        if kind in TEXT:
            field, wish = TEXT[kind]
            if filled.get(field) is None and not filled.get("fresh"):
                filled[field] = _notes(server, view)
                if not filled[field]:
                    if view is not None and await begin_note(server, view):
                        return None
                    raise refused("no-text", f"{wish}.", f'Give {{"{field}": …}}.')
        order = typed(tag, {**filled, "type": tag}, kind)
        try:
            ack = await server.link.call(order)
        except Refused as error:
            raise await _with_difference(server, view, error) from error
        if isinstance(order, RemoveProject):
            server.mirror.forget(order.project)
        elif isinstance(order, Command):
            await server.mirrored(order.project, ack)
        return ack

    offer(server, tag, perform)


def _view(server: Server, filled: dict[str, Any]) -> TaskView | None:
    place, number = filled.get("project"), filled.get("task")
    if isinstance(place, str) and isinstance(number, int):
        return server.mirror.task(place, number)
    return None


def _notes(server: Server, task: TaskView | None) -> str:
    """The notes to the agent that the open document holds; empty if there are none."""
    known = documents(server)
    uri = known.waiting_buffer(task) if task is not None else None
    reading = known.read(uri) if uri is not None else None
    return "\n\n".join(note.text for note in notes_of(reading)) if reading is not None else ""


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
