"""The language server inside the test's own process, with a daemon that is what the test says: no process, no socket.

For tables of cases about what the server makes of what it is told. What a daemon really says is for the stories.
"""

import asyncio
import functools
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from rig.lsp_buffers import Buffers
from rig.lsp_editor import ANSWERS, Message

from promptside_protocol import forms
from promptside_protocol.commands import Ack, EditDraft
from promptside_protocol.errors import refused
from promptside_protocol.notices import Notice, ProjectGone, TaskChanged
from promptside_protocol.queries import Form, GetForm
from promptside_protocol.views import GateView, Metrics, StageView, TaskView, WaitingFor
from promptside_server import server as server_module
from promptside_server.features import register_all
from promptside_server.link import Link
from promptside_server.transport import Input, Output

SILENT = object()
"""The answer of an editor that never gives one."""


_converter = functools.cache(server_module.converter)
"""One for all: it takes longer to make than most stories."""


class Told(Link):
    """A link whose other end is the test."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.met = asyncio.Event()
        self.orders: list[Any] = []
        """Everything that was ordered or asked, in order."""
        self.answers: dict[type[Struct], Callable[[Any], Any]] = {}
        """What the daemon answers, by what it is asked; an order is taken, and no document is a form."""

    async def run(self, name: str) -> None:
        self.turn(up=True)
        self.met.set()

    async def call(self, request: Any) -> Any:
        self.orders.append(request)
        answer = self.answers.get(type(request))
        if answer is not None:
            return answer(request)
        if isinstance(request, GetForm):
            raise refused("no-form", "This document is no form.")
        return Ack(seq=0)

    def hear(self, notice: Notice) -> None:
        """The daemon says this."""
        self._heard(notice)

    def turn(self, *, up: bool) -> None:
        """The daemon is found, or lost."""
        self.up = up
        self._moved(up, "" if up else "The daemon stopped.")


class Mouth:
    """Where the editor's messages come in."""

    def __init__(self) -> None:
        self._take: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []
        self._over = asyncio.Event()

    async def serve(self, take: Callable[[Any], None]) -> None:
        self._take = take
        for body in self._early:
            take(body)
        await self._over.wait()

    def say(self, body: bytes) -> None:
        if self._take is None:
            self._early.append(body)
        else:
            self._take(body)

    def stop(self) -> None:
        self._over.set()


class Ear(Output):
    """Where the server's messages come out."""

    def __init__(self, hear: Callable[[Message], None]) -> None:
        super().__init__()
        self._hear = hear
        self._held = b""

    def write(self, data: bytes) -> None:
        self._held += data
        while b"\r\n\r\n" in self._held:
            head, _, rest = self._held.partition(b"\r\n\r\n")
            length = next(
                int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.startswith(b"Content-Length")
            )
            if len(rest) < length:
                return
            self._held = rest[length:]
            # Whoever is answered is not called from within its own writing.
            asyncio.get_running_loop().call_soon(self._hear, json.loads(rest[:length]))

    async def closed(self) -> None:
        """There is nobody to wait for."""


class Inside(Buffers):
    """An editor, the server and its daemon in one process; a context manager."""

    def __init__(
        self, folder: Path, capabilities: dict[str, Any], answers: dict[str, Any] | None = None
    ) -> None:
        super().__init__(cast("Any", None), capabilities, folder=folder, answers=answers)
        self.daemon: Told
        self._mouth = Mouth()
        self._seq = itertools.count(1)

    async def start(self, *, reads: bool = True) -> None:
        """Make the server."""
        assert reads
        real = server_module.Link, server_module.converter
        server_module.Link, server_module.converter = Told, _converter  # type: ignore[misc]  # put back two lines on
        try:
            server = server_module.Server()
        finally:
            server_module.Link, server_module.converter = real  # type: ignore[misc]  # see above
        register_all(server)
        self.server = server
        assert isinstance(server.link, Told)
        self.daemon = server.link
        serving = server.serve(cast("Input", self._mouth), Ear(self._hear))
        self._reading = asyncio.ensure_future(cast("Any", serving))
        await asyncio.sleep(0)

    async def initialize(self) -> None:
        """The handshake; afterwards the daemon is there."""
        await super().initialize()
        await self.daemon.met.wait()

    async def __aexit__(self, *_: object) -> None:
        self._mouth.stop()
        assert self._reading is not None
        await self._reading

    def write(self, data: bytes) -> None:
        self._mouth.say(data.partition(b"\r\n\r\n")[2])

    def changed(self, task: TaskView) -> TaskView:
        """The daemon tells of a task; with a new sequence number."""
        task = msgspec.structs.replace(task, seq=next(self._seq))
        self.daemon.hear(TaskChanged(flow=1, project=task.project, seq=task.seq, task=task))
        return task

    def removed(self, project: str) -> None:
        """The daemon tells that a project was removed."""
        self.daemon.hear(ProjectGone(flow=1, project=project))

    def ordered(self, kind: type[Struct]) -> list[Any]:
        """The orders of one kind so far."""
        return [order for order in self.daemon.orders if isinstance(order, kind)]

    def form(self, draft: "Draft") -> "Draft":
        """Have the daemon know a form; edits go into it."""
        self.daemon.answers[GetForm] = lambda query: draft.form(query.document)
        self.daemon.answers[EditDraft] = draft.edit
        return draft

    def file(self, path: str, text: str) -> Path:
        """A file of the folder."""
        place = self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        return place

    def _hear(self, message: Message) -> None:
        if "id" in message and "method" in message:
            answer = self._answers.get(message["method"], ANSWERS.get(message["method"]))
            if answer is SILENT:
                self.heard.append(message)
                self._came.set()
                return
            if callable(answer):
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer(message["params"])})
                self.heard.append(message)
                self._came.set()
                return
        super()._hear(message)


class Draft:
    """A form as the daemon keeps it."""

    def __init__(self, definition: forms.Definition, document: str) -> None:
        self.definition = definition
        self.document = document
        self.text = forms.render(definition)
        self.version = 1

    def form(self, document: str = "") -> Form:
        """As the query answers."""
        if document not in ("", self.document):
            raise refused("no-form", "This document is no form.")
        parsed = forms.parse(self.definition, self.text)
        lacking = forms.lacks(self.definition, parsed.answers)
        return Form(
            document=self.document,
            version=self.version,
            text=self.text,
            shown=forms.shown(self.definition, self.text),
            satisfied=not lacking,
            lacks=tuple(lack.text for lack in lacking),
            definition=msgspec.to_builtins(self.definition),
            answers=forms.to_plain(parsed.answers),
        )

    def edit(self, order: EditDraft) -> Ack:
        """As the order does it."""
        if order.text is not None:
            self.text = order.text
        else:
            given = {**forms.to_plain(forms.parse(self.definition, self.text).answers), **order.answers}
            self.text = forms.apply(self.definition, self.text, forms.from_plain(self.definition, given))
        self.version += 1
        return Ack(seq=0)


def view(folder: Path, number: int = 1, **more: Any) -> TaskView:
    """A task of one stage, `work`."""
    given: dict[str, Any] = {
        "seq": 0,
        "id": number,
        "project": str(folder),
        "title": "Add a login",
        "description": "",
        "state": "taken",
        "state_since": 1.0,
        "claimed_by": None,
        "reason": None,
        "pipeline": "short",
        "type": "feature",
        "work_type": "coding",
        "priority": 50,
        "agent": "claude",
        "stages": (stage(),),
        "current": "work",
        "waiting_for": None,
        "directory": f".promptside/tasks/{number}-add-a-login",
        "metrics": Metrics(),
        "created": 1.0,
        **more,
    }
    return TaskView(**given)


def stage(status: Any = "waiting", **more: Any) -> StageView:
    """Its stage."""
    return StageView(
        id="work", name="Work", status=status, format="text", tools=None, rule="everything allowed", **more
    )


def waits(
    kind: Any = "gate", document: str | None = None, since: float | None = None, **more: Any
) -> WaitingFor:
    """What it waits for, since now."""
    if kind == "gate":
        more = {"gate": GateView(type="require_approval", shown=""), **more}
    when = time.time() + 1 if since is None else since
    return WaitingFor(kind=kind, stage="work", since=when, document=document, **more)
