"""What waits while its document is closed: one information in the workspace, one message where it has buttons.

Silence by default: a message comes once for each wait that began while the editor ran, what begins together is one
message, never for clients of ours, which have rules of their own, and never while its document is open. A button
does what it says about that wait only; when the task has moved on since, that is said and nothing is done.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from lsprotocol import types
from msgspec import Struct

from promptside_protocol.commands import Allow, Deny, Retry, Scope, StartCommand
from promptside_protocol.errors import PromptsideError, Refused
from promptside_protocol.pages.plain import one_line
from promptside_protocol.pages.waiting import need
from promptside_protocol.pages.words import several
from promptside_protocol.views import DecisionView, TaskView
from promptside_server.board import SOURCE, board
from promptside_server.documents import uri_of
from promptside_server.features.commands import sentence
from promptside_server.features.notes import show
from promptside_server.features.unsaved import unsaved
from promptside_server.server import Server
from promptside_server.shared import on

log = logging.getLogger(__name__)

OWNER = "waiting"
TOGETHER_SECONDS = 0.2
"""What begins to wait within so long is one message."""
NAMED = 3
"""How many of them it names."""
SCOPES: tuple[tuple[str, Scope], ...] = (("Once", "once"), ("For this task", "task"), ("Always", "always"))
"""The buttons of a permission; the others are code actions. Three and `Deny` is what fits into a message."""
OVER = "“{}” does not wait for that any more. Nothing was done."

Key = tuple[str, int, str, float]
Deed = Callable[[], Coroutine[Any, Any, None]]


class Wait(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person; small, since a message may never be answered."""

    project: str
    task: int
    what: str
    """Stage and kind, or the id of a permission."""
    since: float
    title: str
    words: str
    """The whole message."""
    short: str
    """The same among others."""
    place: str
    """The uri of the document where it is answered."""
    kind: types.MessageType = types.MessageType.Info
    urgent: bool = True
    """Whether it is also said where there are no buttons: a gate is not, its diagnostic is enough."""
    opens: str = "Open"
    scopes: tuple[str, ...] = ()
    """What a permission can be given for."""
    retry: bool = False

    @property
    def key(self) -> Key:
        """What makes it the same wait."""
        return self.project, self.task, self.what, self.since


def register(server: Server) -> None:
    """Listen for tasks that begin and end to wait, and for their documents being opened and closed."""
    messages = Messages(server)

    def publish(*_: object) -> None:
        found: dict[str, list[types.Diagnostic]] = {}
        for task in server.mirror.waiting():
            if server.has_open(task.project):
                for uri, diagnostic in _said(server, task):
                    found.setdefault(uri, []).append(diagnostic)
        board(server).keep(OWNER, found)

    def changed(task: TaskView) -> None:
        publish()
        messages.changed(task)

    server.on_folders.append(publish)
    server.on_task.append(changed)
    server.on_gone.append(publish)
    on(server, types.TEXT_DOCUMENT_DID_OPEN, publish)
    on(server, types.TEXT_DOCUMENT_DID_CLOSE, publish)


class Messages:
    """What has been said, and what will be said together in a moment."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._begun = time.time()
        self._known: set[Key] = set()
        self._fresh: list[Wait] = []

    def changed(self, task: TaskView) -> None:
        """Take note of what has begun to wait."""
        if self._server.editor.ours or not self._server.has_open(task.project):
            return
        fresh = [w for w in waits_of(task) if w.since >= self._begun and w.key not in self._known]
        self._known.update(wait.key for wait in fresh)
        if fresh and not self._fresh:
            asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self._say)
        self._fresh += fresh

    def _say(self) -> None:
        fresh, self._fresh = self._fresh, []
        fresh = [w for w in fresh if self._waits(w) and self._server.document(w.place) is None]
        if not fresh:
            return
        words, kind = _together(fresh)
        buttons = self._buttons(fresh)
        if self._server.editor.ask and buttons:
            # An editor may leave it unanswered for ever: nothing waits for this.
            self._server.do(self._ask(kind, words, buttons))
        elif urgent := [wait for wait in fresh if wait.urgent]:
            words, kind = _together(urgent)
            self._server.say(kind, words)

    def _buttons(self, waits: list[Wait]) -> dict[str, Deed | None]:
        """What can be chosen, by title; None decides nothing. Empty if nothing could be done by it."""
        shows = self._server.editor.show_document
        found: dict[str, Deed | None] = {}
        if len(waits) > 1:
            if shows:
                found["Open"] = partial(self._open, waits)
        elif waits[0].scopes:
            (wait,) = waits
            at: dict[str, Any] = {"project": wait.project, "task": wait.task, "decision": wait.what}
            for title, scope in SCOPES:
                if scope in wait.scopes:
                    found[title] = partial(self._order, Allow(**at, scope=scope))
            found["Deny"] = partial(self._order, Deny(**at))
            return found
        else:
            (wait,) = waits
            if shows:
                found[wait.opens] = partial(self._open, waits)
            if wait.retry:
                found["Retry"] = partial(self._retry, wait)
        return {**found, "Later": None} if found else {}

    async def _ask(self, kind: types.MessageType, words: str, buttons: dict[str, Deed | None]) -> None:
        params = types.ShowMessageRequestParams(
            type=kind,
            message=words,
            actions=[types.MessageActionItem(title=title) for title in buttons],
        )
        try:
            answer = await self._server.window_show_message_request_async(params)
            deed = buttons.get(answer.title) if answer is not None else None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever the editor answers, nothing was chosen
            log.info("the editor did not ask: %s", error)
            return
        if deed is not None:
            await deed()

    async def _open(self, waits: list[Wait]) -> None:
        """Go where the one is that has waited longest."""
        there = [wait for wait in sorted(waits, key=lambda w: w.since) if self._waits(wait)]
        if there:
            await show(self._server, there[0].place)
        else:
            self._over(waits[0])

    async def _retry(self, wait: Wait) -> None:
        if self._waits(wait):
            await self._order(Retry(project=wait.project, task=wait.task))
        else:
            self._over(wait)

    async def _order(self, order: Allow | Deny | Retry) -> None:
        """The daemon says whether it is still possible."""
        if isinstance(order, StartCommand):
            await unsaved(self._server).tell()
        try:
            await self._server.link.call(order)
        except PromptsideError as error:
            if not (isinstance(error, Refused) and unsaved(self._server).held_back(order, error)):
                self._server.say(types.MessageType.Warning, sentence(error))

    def _over(self, wait: Wait) -> None:
        self._server.say(types.MessageType.Warning, OVER.format(wait.title))

    def _waits(self, wait: Wait) -> bool:
        task = self._server.mirror.task(wait.project, wait.task)
        return task is not None and wait.key in {one.key for one in waits_of(task)}


def waits_of(task: TaskView) -> list[Wait]:
    """Everything that a task waits for, each a wait of its own: questions, every permission, a gate, a failure."""
    waiting = task.waiting_for
    if waiting is None:
        return []
    title = one_line(task.title)
    at: dict[str, Any] = {"project": task.project, "task": task.id, "title": title}
    page = uri_of(task.project, f"{task.directory}/task.md")
    document = uri_of(task.project, waiting.document) if waiting.document is not None else page
    stage = next((s.name for s in task.stages if s.id == waiting.stage), waiting.stage)
    found = [
        Wait(
            **at,
            what=asked.id,
            since=asked.asked or waiting.since,
            words=_wish(asked),
            short=f"“{title}” (a permission)",
            place=page,
            scopes=tuple(option.id for option in asked.options),
        )
        for asked in waiting.decisions
        if asked.kind == "permission"
    ]
    match waiting.kind:
        case "decision":
            asks = [d for d in waiting.decisions if d.kind != "permission"]
            if asks:
                count = several(len(asks), "question")
                found.append(
                    Wait(
                        **at,
                        what=f"{waiting.stage}/questions",
                        since=min(asked.asked or waiting.since for asked in asks),
                        words=f"The agent has {count} about “{title}”. It waits.",
                        short=f"“{title}” ({count})",
                        place=document,
                        opens="Answer",
                    )
                )
        case "person":
            if (failed := _failure(task, stage)) is not None:
                words, retry = failed
                wait = Wait(
                    **at,
                    what=f"{waiting.stage}/failed",
                    since=waiting.since,
                    words=words,
                    short=f"“{title}” ({stage} failed)",
                    place=page,
                    kind=types.MessageType.Warning,
                    retry=retry,
                )
                found.append(wait)
        case _:
            wanted = need(waiting)
            found.append(
                Wait(
                    **at,
                    what=f"{waiting.stage}/{waiting.kind}",
                    since=waiting.since,
                    words=f"“{title}” waits for you: {stage}, {wanted}.",
                    short=f"“{title}” ({stage}, {wanted})",
                    place=document,
                    urgent=False,
                )
            )
    return found


def _failure(task: TaskView, name: str) -> tuple[str, bool] | None:
    """What is said of a stage that failed (M16, M19, M20), and whether it can be retried; None if you stopped it."""
    waiting = task.waiting_for
    assert waiting is not None
    stage = next((s for s in task.stages if s.id == waiting.stage), None)
    attempts = stage.attempts if stage is not None else ()
    last = attempts[-1] if attempts else None
    if stage is not None and stage.stopped:
        return None
    times = 0
    while times < len(attempts) and attempts[-1 - times].status == "failed":
        times += 1
    reason = one_line(waiting.reason).rstrip(".") or "no reason was given"
    words = [f"“{one_line(task.title)}”: {name} failed{f' {times} times' if times > 1 else ''}: {reason}."]
    if last is not None and last.changes:
        words.append("The agent has stopped; its changes are in the project.")
    if last is not None and last.hint:
        words.append(one_line(last.hint))
    retry = any(o.command == "promptside.retry" and o.blocked is None for o in task.offers)
    return " ".join(words), retry


def _together(waits: list[Wait]) -> tuple[str, types.MessageType]:
    """One message for all that began together."""
    if len(waits) == 1:
        return waits[0].words, waits[0].kind
    shorts = list(dict.fromkeys(wait.short for wait in waits))
    named = ", ".join(shorts[:NAMED])
    more = f" and {len(shorts) - NAMED} more" if len(shorts) > NAMED else ""
    warns = any(wait.kind == types.MessageType.Warning for wait in waits)
    kind = types.MessageType.Warning if warns else types.MessageType.Info
    return f"{len(waits)} things wait for you: {named}{more}.", kind


def _wish(asked: DecisionView) -> str:
    words = f"{one_line(asked.text)} {asked.tool}: {one_line(asked.what)}."
    return f"{words} {one_line(asked.why)}" if asked.why else words


def _said(server: Server, task: TaskView) -> Iterable[tuple[str, types.Diagnostic]]:
    """By document, what waits there and is not said by the document itself."""
    waiting = task.waiting_for
    assert waiting is not None
    page = uri_of(task.project, f"{task.directory}/task.md")
    wanted = uri_of(task.project, waiting.document) if waiting.document is not None else None
    opened = wanted is not None and server.document(wanted) is not None
    for asked in waiting.decisions:
        if asked.kind == "permission":
            places = {page, wanted} if wanted is not None and opened else {page}
            yield from ((place, _diagnostic(_wish(asked), "permission")) for place in sorted(places))
    if not opened and (wanted is not None or waiting.kind != "decision"):
        yield wanted or page, _diagnostic(f"Waits for you: {need(waiting)}.", "gate-waits")


def _diagnostic(words: str, code: str) -> types.Diagnostic:
    place = types.Range(start=types.Position(0, 0), end=types.Position(0, 1))
    severity = types.DiagnosticSeverity.Information
    return types.Diagnostic(range=place, severity=severity, code=code, source=SOURCE, message=words)
