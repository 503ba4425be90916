"""What waits while its document is closed: one information in the workspace, one message where it has buttons.

Silence by default: a message comes once for each wait that began while the editor ran, never for clients of ours,
which have rules of their own, and not while the document is before the person.
"""

from __future__ import annotations

import asyncio
import logging
import time

from lsprotocol import types

from promptside_protocol.commands import Allow, Deny
from promptside_protocol.errors import PromptsideError
from promptside_protocol.pages.plain import one_line
from promptside_protocol.pages.waiting import need
from promptside_protocol.views import DecisionView, TaskView
from promptside_server.board import SOURCE, board
from promptside_server.documents import documents, uri_of
from promptside_server.features.notes import show
from promptside_server.server import Server
from promptside_server.shared import on

log = logging.getLogger(__name__)

OWNER = "waiting"


def register(server: Server) -> None:
    """Listen for tasks that begin and end to wait, and for their documents being opened and closed."""
    known = documents(server)
    begun = time.time()
    asked: set[tuple[str, int, str, float]] = set()

    def publish(*_: object) -> None:
        found: dict[str, list[types.Diagnostic]] = {}
        for task in server.mirror.waiting():
            if server.has_open(task.project):
                for uri, diagnostic in _said(server, task):
                    found.setdefault(uri, []).append(diagnostic)
        board(server).keep(OWNER, found)

    def changed(task: TaskView) -> None:
        publish()
        if server.editor.ours or not server.has_open(task.project) or task.waiting_for is None:
            return
        waiting = task.waiting_for
        for permission in _permissions(task):
            key = (task.project, task.id, permission.id, permission.asked or 0.0)
            if key not in asked and (permission.asked or 0.0) >= begun:
                asked.add(key)
                if server.editor.ask:
                    server.do(_ask_permission(server, task, permission))
        key = (task.project, task.id, waiting.stage, waiting.since)
        questions = [d for d in waiting.decisions if d.kind != "permission"]
        only_permissions = waiting.kind == "decision" and not questions
        if key in asked or only_permissions or waiting.since < begun or known.waiting_buffer(task):
            return
        asked.add(key)
        words = _sentence(task)
        if server.editor.ask and server.editor.show_document:
            server.do(_ask(server, task, words))
        elif questions:
            server.say(types.MessageType.Info, words)

    server.on_task.append(changed)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, publish)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, publish)


def _said(server: Server, task: TaskView) -> list[tuple[str, types.Diagnostic]]:
    """By document, what waits there and is not said by the document itself."""
    waiting = task.waiting_for
    assert waiting is not None
    page = uri_of(task.project, f"{task.directory}/task.md")
    wanted = uri_of(task.project, waiting.document) if waiting.document is not None else None
    found = []
    for permission in _permissions(task):
        words = f"{one_line(permission.text)} {permission.tool}: {one_line(permission.what)}"
        words = f"{words}. {one_line(permission.why)}" if permission.why else words
        places = {page, wanted} if wanted is not None and server.document(wanted) is not None else {page}
        found += [(place, _diagnostic(words, "permission")) for place in sorted(places)]
    if waiting.kind == "decision" and wanted is None:
        return found
    place = wanted or page
    if wanted is None or server.document(wanted) is None:
        found.append((place, _diagnostic(f"Waits for you: {need(waiting)}.", "gate-waits")))
    return found


def _diagnostic(words: str, code: str) -> types.Diagnostic:
    place = types.Range(start=types.Position(0, 0), end=types.Position(0, 1))
    severity = types.DiagnosticSeverity.Information
    return types.Diagnostic(range=place, severity=severity, code=code, source=SOURCE, message=words)


def _permissions(task: TaskView) -> list[DecisionView]:
    waiting = task.waiting_for
    return [d for d in waiting.decisions if d.kind == "permission"] if waiting is not None else []


def _sentence(task: TaskView) -> str:
    """M1 and M2."""
    waiting = task.waiting_for
    assert waiting is not None
    title = one_line(task.title)
    count = sum(d.kind != "permission" for d in waiting.decisions)
    if waiting.kind == "decision":
        questions = "1 question" if count == 1 else f"{count} questions"
        return f"The agent has {questions} about “{title}”. It waits."
    stage = next((s.name for s in task.stages if s.id == waiting.stage), waiting.stage)
    return f"“{title}” waits for you: {stage}, {need(waiting)}."


async def _ask(server: Server, task: TaskView, words: str) -> None:
    waiting = task.waiting_for
    assert waiting is not None
    document = waiting.document or f"{task.directory}/task.md"
    if await _button(server, words, ("Open", "Later")) == "Open":
        await show(server, uri_of(task.project, document))


async def _ask_permission(server: Server, task: TaskView, asked: DecisionView) -> None:
    """Only what is offered has a button; closing the message decides nothing."""
    offered = {o.id for o in asked.options}
    buttons = [title for title in ("Once", "Always", "Deny") if title.lower() in offered]
    chosen = await _button(server, f"{one_line(asked.text)} {one_line(asked.what)}", tuple(buttons))
    order: Allow | Deny
    match chosen:
        case "Once":
            order = Allow(project=task.project, task=task.id, decision=asked.id, scope="once")
        case "Always":
            order = Allow(project=task.project, task=task.id, decision=asked.id, scope="always")
        case "Deny":
            order = Deny(project=task.project, task=task.id, decision=asked.id)
        case _:
            return
    try:
        await server.link.call(order)
    except PromptsideError as error:
        server.say(types.MessageType.Warning, str(error))


async def _button(server: Server, words: str, titles: tuple[str, ...]) -> str:
    params = types.ShowMessageRequestParams(
        type=types.MessageType.Info,
        message=words,
        actions=[types.MessageActionItem(title=title) for title in titles],
    )
    try:
        answer = await server.window_show_message_request_async(params)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever the editor answers, nothing was chosen
        log.info("the editor did not ask: %s", error)
        return ""
    return answer.title if answer is not None else ""
