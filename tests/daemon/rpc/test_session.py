"""Sessions over a real socket: whatever a client does, the daemon and its other clients live."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from promptside_daemon.rpc import server as server_module
from promptside_daemon.rpc import session as session_module
from promptside_daemon.rpc.server import Server
from promptside_daemon.rpc.session import UNREAD_BYTES
from promptside_daemon.rpc.who import Peer
from promptside_protocol import PROTOCOL, __version__, errors, frames
from promptside_protocol.notices import DaemonSays, EventHappened
from promptside_protocol.queries import Following, Welcome

AGENT = Path(__file__).with_name("agent_client.py")
HELLO: dict[str, Any] = {
    "client": "raw",
    "version": __version__,
    "protocol": PROTOCOL,
    "environment": {"LANG": "C"},
}
SAY = {"project": "/project", "task": 1, "text": "hi"}


class Raw:
    """A client that says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.framer = frames.Framer()
        self.unread: list[frames.Frame] = []
        self.last = 0

    async def receive(self) -> frames.Frame:
        while not self.unread:
            data = await self.reader.read(65_536)
            assert data, "the daemon closed the connection"
            self.unread += self.framer.feed(data)
        return self.unread.pop(0)

    def send(self, method: str, params: Any) -> int:
        self.last += 1
        frame = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.writer.write(msgspec.json.encode(frame) + b"\n")
        return self.last

    async def ask(self, method: str, params: Any) -> Any:
        """The answer to a request, or the error; notices that come before are dropped."""
        number = self.send(method, params)
        while True:
            match await self.receive():
                case frames.Response(id=found, result=result) if found == number:
                    return msgspec.json.decode(result)
                case frames.Failure(id=found) as failure if found in (number, None):
                    return frames.error_of(failure)
                case _:
                    pass

    async def code(self, method: str, params: Any) -> str:
        error = await self.ask(method, params)
        assert isinstance(error, errors.PromptsideError), error
        return error.refusal.code


class Wire:
    """A server on a socket in the test's own process, and its clients."""

    def __init__(self, path: Path, core: Any) -> None:
        self.path = path
        self.core = core
        self.ended = asyncio.Event()
        self.reasons: list[str] = []
        self.server = Server(core, parting=self._parting, changed=lambda: None, log_path="/log")
        self._clients: list[Raw] = []

    async def _parting(self, reason: str) -> None:
        self.reasons.append(reason)
        await self.ended.wait()

    async def connect(self) -> Raw:
        client = Raw(*await asyncio.open_unix_connection(self.path, limit=2**25))
        self._clients.append(client)
        return client

    async def client(self) -> Raw:
        client = await self.connect()
        welcome = await client.ask("hello", HELLO)
        assert welcome["session"] == "person"
        return client

    async def close(self) -> None:
        for client in self._clients:
            client.writer.close()
            with contextlib.suppress(OSError):
                await client.writer.wait_closed()
        await until_so(lambda: self.server.clients == 0)
        await self.server.wind_up("It stops.", DaemonSays(state="stopping", message="It stops."))
        await self.server.close()


async def until_so(true: Callable[[], bool]) -> None:
    """Let everything else go on until something is so that nobody tells."""
    while not true():  # noqa: ASYNC110  # see above; it gives way, it doesn't wait
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def serving(tiny: ModuleType, home: Path) -> AsyncIterator[Wire]:
    wire = Wire(home / "s", tiny.tiny_daemon().TinyCore(home / "tiny"))
    await wire.server.listen(wire.path)
    try:
        yield wire
    finally:
        wire.core.release.set()
        wire.ended.set()
        await wire.close()


@pytest.fixture
def run(tiny: ModuleType, home: Path) -> Callable[[Callable[[Wire], Awaitable[None]]], None]:
    def run(test: Callable[[Wire], Awaitable[None]]) -> None:
        async def go() -> None:
            async with serving(tiny, home) as wire:
                await test(wire)

        asyncio.run(go())

    return run


Run = Callable[[Callable[[Wire], Awaitable[None]]], None]


def test_hello_comes_first_and_once(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.connect()
        assert await client.code("status", {}) == "no-hello"
        assert await client.code("shutdown", {}) == "no-hello"
        assert await client.code("hello", {"client": "x"}) == "invalid-params"
        welcome = msgspec.convert(await client.ask("hello", HELLO), Welcome)
        assert welcome == Welcome(version=__version__, protocol=PROTOCOL, pid=os.getpid(), session="person")
        assert await client.code("hello", HELLO) == "hello-twice"
        assert (await client.ask("interrupt", SAY))["seq"] == 1

    run(test)


def test_an_order_bears_who_gave_it(run: Run) -> None:
    """DA-10, CW-23"""

    async def test(wire: Wire) -> None:
        client = await wire.client()
        await client.ask("interrupt", SAY)
        (who,) = wire.core.whos
        assert (who.client, who.pid, who.session, who.attempt) == ("raw", os.getpid(), "person", "")
        assert who.environment == {"LANG": "C"}
        assert who.user

    run(test)


@pytest.mark.parametrize(
    ("method", "params", "number", "words"),
    [
        ("fly", {}, errors.METHOD_NOT_FOUND, "doesn't know “fly”"),
        ("interrupt", {}, errors.INVALID_PARAMS, "missing required field `project`"),
        ("interrupt", SAY | {"task": "one"}, errors.INVALID_PARAMS, "$.task"),
        ("approve", SAY | {"answers": []}, errors.INVALID_PARAMS, "$.answers"),
        ("interrupt", SAY | {"type": "redo"}, errors.INVALID_PARAMS, "$.type"),
        ("interrupt", [], errors.INVALID_PARAMS, "array"),
        ("interrupt", SAY | {"text": "refuse"}, errors.REFUSED, "Nobody runs."),
        ("interrupt", SAY | {"text": "bug"}, errors.INTERNAL_ERROR, "the daemon goes on"),
        ("task", {"project": "/p", "task": 7}, errors.INTERNAL_ERROR, "the daemon goes on"),
    ],
)
def test_what_goes_wrong_is_told_and_the_session_goes_on(
    run: Run, method: str, params: Any, number: int, words: str
) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        error = await client.ask(method, params)
        assert error.number == number
        assert words in str(error)
        assert (await client.ask("interrupt", SAY))["task"] == 0

    run(test)


def test_fields_of_a_newer_client_are_passed_over(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        assert (await client.ask("interrupt", SAY | {"since_version_9": 1}))["seq"] == 1

    run(test)


@pytest.mark.parametrize(
    ("bytes_sent", "number"),
    [
        (b"\x00\xff garbage\n", errors.PARSE_ERROR),
        (b"[" * 100_000 + b"\n", errors.INVALID_REQUEST),
        (b"[]\n", errors.INVALID_REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"status"}\n', errors.INVALID_REQUEST),
        (b"x" * 10_000_000 + b"\n", errors.PARSE_ERROR),
    ],
)
def test_garbage_is_answered_and_the_session_goes_on(run: Run, bytes_sent: bytes, number: int) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        client.writer.write(bytes_sent)
        frame = await client.receive()
        assert isinstance(frame, frames.Failure)
        assert (frame.id, frame.error.code) == (None, number)
        assert (await client.ask("interrupt", SAY))["seq"] == 1

    run(test)


def test_a_line_over_the_limit_is_answered_while_it_still_comes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = frames.Framer
    monkeypatch.setattr(frames, "Framer", lambda: real(limit=100_000))

    async def test(wire: Wire) -> None:
        client = await wire.client()
        client.writer.write(b"x" * 1_000_000)
        frame = await client.receive()
        assert isinstance(frame, frames.Failure)
        assert "100,000 bytes" in frame.error.message
        client.writer.write(b"\n")
        assert (await client.ask("interrupt", SAY))["seq"] == 1

    run(test)


def test_ten_megabytes_both_ways(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        assert (await client.ask("interrupt", SAY | {"text": "x" * 10_000_000}))["seq"] == 1
        page = await client.ask("output", {"project": "/p", "task": 1, "limit": 10_000_000})
        assert len(page["entries"][0]["text"]) == 10_000_000

    run(test)


@pytest.mark.parametrize("last_words", [b"", b'{"jsonrpc":"2.0","id":9,"meth', b"garbage\n"])
def test_a_client_that_dies_in_mid_message_bothers_nobody(run: Run, last_words: bytes) -> None:
    async def test(wire: Wire) -> None:
        dying, other = await wire.client(), await wire.client()
        await dying.ask("watch", {"project": "/flood"})
        dying.writer.write(last_words)
        await dying.writer.drain()
        dying.writer.transport.abort()
        await until_so(lambda: wire.server.clients == 1)
        await until_so(lambda: wire.core.open_flows == 0)
        assert (await other.ask("interrupt", SAY))["seq"] == 1

    run(test)


def test_an_order_of_a_client_that_is_gone_is_still_done(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        client.send("interrupt", SAY | {"text": "late"})
        await until_so(lambda: len(wire.core.whos) == 1)
        client.writer.transport.abort()
        wire.core.release.set()
        await until_so(lambda: wire.server.clients == 0)
        assert wire.core.lines() == ["say late"]

    run(test)


def test_who_only_writes_gets_its_answers_before_the_end(run: Run) -> None:
    """`… | nc -U daemon.sock`"""

    async def test(wire: Wire) -> None:
        client = await wire.client()
        client.send("decisions", {"project": "/p", "task": 7})
        await until_so(lambda: len(wire.core.whos) == 1)
        client.writer.write_eof()
        for _ in range(100):
            await asyncio.sleep(0)
        wire.core.release.set()
        assert isinstance(await client.receive(), frames.Response)
        assert await client.reader.read() == b""

    run(test)


def test_a_client_that_never_reads_lags_and_costs_nothing(run: Run) -> None:
    """Backpressure: the flow stands still, the others don't, and nothing is lost when it reads at last."""

    async def test(wire: Wire) -> None:
        slow, other = await wire.client(), await wire.client()
        slow.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        slow.reader._limit = 1  # type: ignore[attr-defined]  # it stops reading its socket, too
        slow.send("watch", {"project": "/flood"})
        await until_so(lambda: any(found._flows for found in wire.server._sessions))
        session = next(found for found in wire.server._sessions if found._flows)
        transport = session._writer.transport
        await until_so(lambda: transport.get_write_buffer_size() > UNREAD_BYTES)
        told = wire.core.told
        for _ in range(200):
            await other.ask("status", {})
        assert wire.core.told == told
        assert transport.get_write_buffer_size() < UNREAD_BYTES + 10_000
        seq = 0
        while seq < told + 2000:
            frame = await slow.receive()
            if isinstance(frame, frames.Notification):
                notice = msgspec.json.decode(frame.params, type=EventHappened)
                seq += 1
                assert notice.seq == seq

    run(test)


def test_an_answer_comes_through_a_flow_that_never_ends(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        following = msgspec.convert(await client.ask("watch", {"project": "/flood"}), Following)
        for _ in range(5):
            await client.ask("status", {})
        await client.ask("unfollow", {"flow": following.flow})
        await until_so(lambda: wire.core.open_flows == 0)
        assert await client.ask("unfollow", {"flow": 99}) == {}

    run(test)


def test_requests_that_wait_are_bounded_and_hold_up_nobody_else(run: Run) -> None:
    async def test(wire: Wire) -> None:
        greedy, other = await wire.client(), await wire.client()
        for _ in range(1000):
            greedy.send("decisions", {"project": "/p", "task": 7})
        await until_so(lambda: len(wire.core.whos) == session_module.REQUESTS)
        for _ in range(50):
            await other.ask("status", {})
        assert len(wire.core.whos) == session_module.REQUESTS + 50
        wire.core.release.set()
        for _ in range(1000):
            assert isinstance(await greedy.receive(), frames.Response)

    run(test)


def test_flows_of_one_client_are_bounded(run: Run) -> None:
    async def test(wire: Wire) -> None:
        client = await wire.client()
        for _ in range(session_module.FLOWS):
            await client.ask("watch", {})
        assert await client.code("watch", {}) == "too-many-flows"
        await client.ask("unfollow", {"flow": 1})
        await until_so(lambda: wire.core.open_flows == session_module.FLOWS - 1)
        assert "flow" in await client.ask("watch", {})

    run(test)


def test_a_process_of_another_user_is_turned_away(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-4: the directory keeps them out; if it should not, the system says who it is."""
    stranger = Peer(pid=os.getpid(), uid=os.getuid() + 1)
    monkeypatch.setattr(session_module, "peer_of", lambda _: stranger)

    async def test(wire: Wire) -> None:
        client = await wire.connect()
        client.send("hello", HELLO)
        with contextlib.suppress(ConnectionError):
            assert await client.reader.read() == b""

    run(test)


def test_the_socket_is_its_owners_only(run: Run) -> None:
    """DA-4"""

    async def test(wire: Wire) -> None:
        assert wire.path.stat().st_mode & 0o777 == 0o600

    run(test)


# --- an end ---------------------------------------------------------------------------------------------


def test_an_end_finishes_what_was_taken_and_takes_nothing_more(run: Run) -> None:
    """DA-7: and who asked for it hears of it last of all."""

    async def test(wire: Wire) -> None:
        client, follower, stopper = await wire.client(), await wire.client(), await wire.client()
        late = client.send("interrupt", SAY | {"text": "late"})
        await follower.ask("watch", {})
        await until_so(lambda: bool(wire.core.whos))
        asked = stopper.send("shutdown", {"reason": "because"})
        await until_so(lambda: wire.reasons == ["because"])
        says = DaemonSays(state="stopping", message="It stops.")
        ending = asyncio.create_task(wire.server.wind_up("It stops.", says))
        await until_so(lambda: wire.core.open_flows == 0)
        assert not wire.path.exists()
        assert await client.code("interrupt", SAY) == "stopping"
        assert await client.code("status", {}) == "stopping"
        assert not ending.done()
        wire.core.release.set()
        answer = await client.receive()
        assert isinstance(answer, frames.Response)
        assert answer.id == late
        await ending
        assert wire.core.lines() == ["say late"]

        assert all(not isinstance(frame, frames.Response) for frame in stopper.unread)
        wire.ended.set()
        await wire.server.close()
        told = await stopper.receive()
        assert isinstance(told, frames.Notification)
        assert msgspec.json.decode(told.params, type=DaemonSays) == says
        ack = await stopper.receive()
        assert isinstance(ack, frames.Response)
        assert ack.id == asked
        assert await stopper.reader.read() == b""

    run(test)


def test_an_end_does_not_wait_for_ever(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "DRAIN_SECONDS", 0.01)
    monkeypatch.setattr(server_module, "PART_SECONDS", 0.01)

    async def test(wire: Wire) -> None:
        stuck, deaf = await wire.client(), await wire.client()
        stuck.send("interrupt", SAY | {"text": "late"})
        deaf.send("output", {"project": "/p", "task": 1, "limit": 50_000_000})
        await until_so(lambda: len(wire.core.whos) == 2)
        await wire.server.wind_up("It stops.", DaemonSays(state="stopping", message="It stops."))
        await wire.server.close()
        await until_so(lambda: wire.server.clients <= 1)

    run(test)


# --- agents ---------------------------------------------------------------------------------------------

OWN = {"project": "/project", "task": 1}
ASKED = [
    ["task", OWN],
    ["task", {"project": "/project"}],
    ["output", OWN],
    ["decisions", OWN],
    ["task", OWN | {"task": 2}],
    ["task", {"project": "/other", "task": 1}],
    ["approve", OWN],
    ["answer", OWN | {"decision": "P1", "options": ["always"]}],
    ["interrupt", SAY],
    ["tasks", {}],
    ["watch", {}],
    ["followOutput", OWN],
    ["unfollow", {"flow": 1}],
    ["status", {}],
    ["shutdown", {"reason": "upgrade"}],
]
ALLOWED = 4


async def as_agent(wire: Wire, how: str, environment: dict[str, str]) -> tuple[Any, list[Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(AGENT),
        str(wire.path),
        how,
        json.dumps(ASKED),
        env={"PATH": os.environ["PATH"], **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    wire.core.keepers = lambda: {} if environment else {process.pid: "attempt-1"}
    out, _ = await process.communicate()
    welcome, *outcomes = json.loads(out)
    return welcome, outcomes


@pytest.mark.parametrize(
    ("how", "environment"),
    [
        ("plain", {"PROMPTSIDE_ATTEMPT": "attempt-1"}),
        ("scrubbed", {"PROMPTSIDE_ATTEMPT": "attempt-1"}),
        ("scrubbed", {}),
        ("orphaned", {"PROMPTSIDE_ATTEMPT": "attempt-1"}),
        ("orphaned", {}),
    ],
)
def test_an_agent_reads_its_own_task_and_nothing_else(
    run: Run, how: str, environment: dict[str, str]
) -> None:
    """DA-13: by its mark or its ancestors; without the mark, by the keeper that is one of them."""

    async def test(wire: Wire) -> None:
        welcome, outcomes = await as_agent(wire, how, environment)
        assert welcome["session"] == "attempt"
        assert outcomes[0]["id"] == outcomes[1]["id"] == 1
        assert all(isinstance(outcome, dict | list) for outcome in outcomes[:ALLOWED])
        assert outcomes[ALLOWED:] == ["agent"] * (len(ASKED) - ALLOWED)
        assert wire.core.lines() == []
        assert wire.reasons == []

    run(test)


def test_an_agent_of_an_attempt_that_nobody_knows_reads_nothing(run: Run) -> None:
    async def test(wire: Wire) -> None:
        welcome, outcomes = await as_agent(wire, "plain", {"PROMPTSIDE_ATTEMPT": "of another daemon"})
        assert welcome["session"] == "attempt"
        assert outcomes == ["agent"] * len(ASKED)

    run(test)


def test_who_connects_and_is_gone_before_hello_is_nobody(run: Run) -> None:
    """A connection can be handed on; only a process that is there can be looked at."""

    async def test(wire: Wire) -> None:
        ours, theirs = socket.socketpair()
        script = (
            "import socket, sys\n"
            "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            "socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b'x'], [s.fileno()])\n"
        )
        with ours, theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", script, str(wire.path), str(theirs.fileno()), pass_fds=[theirs.fileno()]
            )
            assert await process.wait() == 0
            _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
        handed_on = socket.socket(fileno=descriptor)
        client = Raw(*await asyncio.open_unix_connection(sock=handed_on))
        wire._clients.append(client)
        assert await client.code("hello", HELLO) == "unknown-peer"
        assert await client.code("interrupt", SAY) == "no-hello"

    run(test)
