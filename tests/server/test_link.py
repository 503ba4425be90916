"""The way to the daemon, against daemons that are away, come late, or can't be started (CW-16)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_editor import LspEditor, Said
from rig.user import User

from promptside_protocol import client, connect
from promptside_protocol.client import Connection
from promptside_protocol.commands import Ack, Run
from promptside_protocol.errors import PromptsideError, Refusal, Refused
from promptside_protocol.notices import CaughtUp, FlowFailed, Notice
from promptside_protocol.queries import Following, Status, Watch, Welcome
from promptside_server import link as module
from promptside_server.editor import word_for
from promptside_server.link import Link

ORDER = Run(project="/project", task=1)
DEADLINE_SECONDS = 60.0


class FakeDaemon:
    """A daemon that a test has in its hand; `notices` is what it says."""

    def __init__(self) -> None:
        self.welcome = Welcome(version="1", protocol=1, pid=1, session="person")
        self.asked: list[Any] = []
        self.notices: asyncio.Queue[Notice | Connection | PromptsideError] = asyncio.Queue()

    async def call(self, request: Any) -> Any:
        self.asked.append(request)
        if isinstance(request, Watch):
            return Following(flow=len([a for a in self.asked if isinstance(a, Watch)]))
        return Ack(seq=1)

    def __aiter__(self) -> "FakeDaemon":
        return self

    async def __anext__(self) -> Notice | Connection:
        said = await self.notices.get()
        if isinstance(said, PromptsideError):
            raise said
        return said


class World:
    """What the link finds: `daemon` if it is there, and why it can't be started."""

    def __init__(self) -> None:
        self.daemon: FakeDaemon | None = FakeDaemon()
        self.starts = 0
        self.heard: list[Notice] = []
        self.moves: asyncio.Queue[tuple[bool, str]] = asyncio.Queue()
        self.cursors: dict[str, int] = {}
        self.link = Link(
            self.heard.append, lambda up, why: self.moves.put_nowait((up, why)), lambda: self.cursors
        )
        self._greetings: list[str] = []

    @contextlib.asynccontextmanager
    async def connect(self, greeting: Any) -> AsyncIterator[FakeDaemon]:
        self.starts += 1
        self._greetings.append(greeting.client)
        if self.daemon is None:
            raise connect.unreachable("It can't be started.")
        yield self.daemon

    @property
    def greeted_as(self) -> str:
        return self._greetings[-1]

    async def moved(self) -> tuple[bool, str]:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.moves.get()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["World"]:
        task = asyncio.create_task(self.link.run("neovim"))
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made: list[World] = []

    def connected(greeting: Any) -> Any:
        return made[0].connect(greeting)

    def dial() -> None:
        return None

    monkeypatch.setattr(client, "connect", connected)
    monkeypatch.setattr(connect, "dial", dial)

    async def make() -> World:
        return World()

    made.append(asyncio.run(make()))
    return made[0]


def test_da10_it_says_hello_in_the_editors_name_and_opens_the_flow_of_tasks(world: World) -> None:
    async def story() -> None:
        async with world.running():
            assert await world.moved() == (True, "")
            assert world.greeted_as == "neovim"
            assert world.daemon is not None
            assert world.daemon.asked == [Watch(activity=True)]

    asyncio.run(story())


def test_cw16_an_order_waits_for_a_daemon_that_is_away_and_is_refused_and_never_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ORDER_SECONDS", 0.05)

    async def story() -> None:
        with pytest.raises(PromptsideError) as refused:
            await world.link.call(ORDER)  # nobody looks for the daemon yet
        assert refused.value.refusal.code == "unreachable"
        async with world.running():
            await world.moved()
            assert await world.link.call(Status())
            assert world.daemon is not None
            assert ORDER not in world.daemon.asked

    asyncio.run(story())


def test_cw16_an_order_is_refused_at_once_when_the_daemon_can_not_be_started(world: World) -> None:
    there, world.daemon = world.daemon, None

    async def story() -> None:
        async with world.running():
            assert await world.moved() == (False, "It can't be started.")
            before = world.starts
            async with asyncio.timeout(DEADLINE_SECONDS):
                with pytest.raises(PromptsideError, match="can't be started"):
                    await world.link.call(ORDER)
            assert world.starts == before + 1, "an order tries to start it, and only once"
            world.daemon = there
            assert await world.link.call(ORDER) == Ack(seq=1)
            assert await world.moved() == (True, "")

    asyncio.run(story())


def test_cw16_lost_and_found_are_told_once_each_and_what_it_says_goes_on(world: World) -> None:
    async def story() -> None:
        async with world.running():
            await world.moved()
            assert world.daemon is not None
            for said in (
                Connection(state="lost"),
                Connection(state="connected"),
                CaughtUp(flow=1, project="/project", seq=4),
                Connection(state="lost"),
            ):
                world.daemon.notices.put_nowait(said)
            assert await world.moved() == (False, module.STOPPED)
            assert await world.moved() == (True, "")
            assert await world.moved() == (False, module.STOPPED)
            assert not world.link.up
            assert world.heard == [CaughtUp(flow=1, project="/project", seq=4)]

    asyncio.run(story())


def test_cw16_a_flow_of_tasks_that_failed_is_opened_again_where_the_mirror_stands(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.0)

    async def story() -> None:
        async with world.running():
            await world.moved()
            assert world.daemon is not None
            world.cursors["/project"] = 7
            failed = FlowFailed(flow=1, refusal=Refusal(code="bug", message="A fault."))
            world.daemon.notices.put_nowait(failed)
            assert (await world.moved())[0] is False
            assert await world.moved() == (True, "")
            assert world.daemon.asked[-1] == Watch(activity=True, cursors={"/project": 7})
            other = FlowFailed(flow=99, refusal=Refusal(code="bug", message="A fault."))
            world.daemon.notices.put_nowait(other)
            world.daemon.notices.put_nowait(Connection(state="lost"))
            await world.moved()
            assert world.heard == [other]

    asyncio.run(story())


def test_cw16_a_link_that_fails_in_the_middle_tries_again(world: World) -> None:
    async def story() -> None:
        async with world.running():
            await world.moved()
            assert world.daemon is not None
            world.daemon.notices.put_nowait(Refused(Refusal(code="protocol", message="Too old.")))
            assert await world.moved() == (False, "Too old.")
            assert await world.link.call(ORDER) == Ack(seq=1)
            assert world.link.up

    asyncio.run(story())


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Neovim", "neovim"),
        ("Visual Studio Code", "vscode"),
        ("Visual Studio Code - Insiders", "vscode"),
        ("Eglot", "emacs"),
        ("emacs", "emacs"),
        ("helix", "helix"),
        ("Sublime Text LSP", "sublime"),
        ("kakoune-lsp", "kakoune"),
        ("  ", "editor"),
        ("A/B “C”", "a-b-c"),
    ],
)
def test_an_editor_stands_in_approvals_under_one_word(name: str, word: str) -> None:
    assert word_for(name) == word


def test_cw16_a_daemon_that_was_stopped_is_said_once_and_started_by_the_next_order(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, {}, name="Kate") as editor:
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await asyncio.to_thread(user.promptside, "daemon", "stop")
            shown = await editor.note("window/showMessage")
            assert shown["type"] == 2
            await editor.command("run")
            found = await editor.note("window/showMessage", lambda p: "there again" in p["message"])
            assert found["type"] == 3
            warnings = [m for m in editor.notes("window/showMessage") if m["type"] == 2]
            assert len(warnings) == 1

    asyncio.run(story())


def test_cw16_where_no_daemon_can_be_started_the_editor_is_told_why(user: User, tmp_path: Path) -> None:
    user.data.mkdir()
    (user.data / "run").write_text("A file, where the directory of the socket would be.")

    async def story() -> None:
        async with LspEditor(user) as editor:
            told = await editor.note("promptside/daemon", lambda p: not p["up"])
            assert told["sentence"]
            with pytest.raises(Said) as refused:
                await editor.command("newTask", project=str(user.project), title="Add a login")
            assert refused.value.code == -32803
            assert refused.value.data["code"] == "unreachable"

    asyncio.run(story())
