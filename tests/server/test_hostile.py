"""Slow, dead, lying and vanishing editors: the server stays small, answers what it can, and ends when it should."""

import asyncio
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.lsp_editor import LspEditor, Said, memory
from rig.speaker import Speaker
from rig.user import User

from promptside_server.transport import Framer, TooLong

BACKWARDS = (
    b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///n",'
    b' "version": 1}, "contentChanges": [{"text": "x", "range": {"start": {"line": 9, "character": 9},'
    b' "end": {"line": 0, "character": 0}}}]}}'
)
"""A change that ends before it begins, in a document that was never opened."""


async def lives(editor: LspEditor) -> bool:
    """Whether it still answers."""
    with pytest.raises(Said, match="not defined"):
        await editor.ask("workspace/executeCommand", {"command": "promptside.nonsense"})
    return True


# --- lying -------------------------------------------------------------------------------------------------


def test_garbage_between_messages_is_passed_over(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            editor.write(b"\x00\xff hello?\r\n\r\n GET / HTTP/1.1\r\n\r\n")
            assert await lives(editor)

    asyncio.run(story())


@pytest.mark.parametrize("lie", [-7, 5, 300])
def test_a_wrong_length_costs_a_message_or_two_and_not_the_session(user: User, lie: int) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            body = json.dumps({"jsonrpc": "2.0", "method": "$/setTrace", "params": {"value": "off"}}).encode()
            editor.write(b"Content-Length: %d\r\n\r\n%b" % (len(body) + lie, body))
            for _ in range(4):  # what a length that is too long swallows is found again
                editor.tell("$/setTrace", {"value": "off"})
            assert await lives(editor)

    asyncio.run(story())


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"{}",
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "1.0", "id": 5, "method": "initialize"}',
        b'{"jsonrpc": "2.0", "id": 5}',
        b'{"jsonrpc": "2.0", "id": [], "method": "initialize", "params": {}}',
        b'{"jsonrpc": "2.0", "method": []}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": 5}',
        b'{"jsonrpc": "2.0", "id": "never asked", "result": {}}',
        b'{"jsonrpc": "2.0", "id": "never asked", "error": "no"}',
        b'{"jsonrpc": "2.0", "method": "promptside/follow"}',
        b"[" * 100_000,
        BACKWARDS,
        '{"jsonrpc": "2.0", "method": "\udcff"}'.encode(errors="surrogateescape"),
    ],
)
def test_no_message_ends_the_session(user: User, body: bytes) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            editor.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            assert await lives(editor)

    asyncio.run(story())


def test_a_request_with_parameters_that_can_not_be_read_is_answered(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            with pytest.raises(Said, match="textDocument/codeAction") as said:
                await editor.ask("textDocument/codeAction", {"textDocument": 5})
            assert said.value.code == -32602

    asyncio.run(story())


def test_a_huge_message_is_passed_over_and_held_nowhere(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            await lives(editor)
            assert editor.process.stdin is not None
            size = 100 << 20
            editor.write(b"Content-Length: %d\r\n\r\n" % size)
            before = memory(editor.process.pid)
            for _ in range(100):
                editor.write(b"x" * (1 << 20))
                await editor.process.stdin.drain()
            assert await lives(editor)
            assert memory(editor.process.pid) - before < size / 4
            refused = await editor.until(lambda m: "id" in m and m["id"] is None)
            assert refused["error"]["code"] == -32600

    asyncio.run(story())


@given(st.lists(st.binary(max_size=80)), st.integers(min_value=1, max_value=40))
def test_what_is_framed_is_found_whole_in_whatever_pieces_it_comes(bodies: list[bytes], piece: int) -> None:
    stream = b"".join(b"Content-Length: %d\r\nX: y\r\n\r\n%b" % (len(b), b) for b in bodies)
    framer = Framer()
    found: list[bytes | TooLong] = []
    for at in range(0, len(stream), piece):
        framer.feed(stream[at : at + piece])
        while (body := framer.next()) is not None:
            found.append(body)
    assert found == bodies


@given(st.lists(st.binary(max_size=200)))
def test_no_bytes_break_the_framer_and_none_pile_up(pieces: list[bytes]) -> None:
    framer = Framer(limit=64)
    for piece in pieces:
        framer.feed(piece * 50)
        while framer.next() is not None:
            pass
        assert len(framer._held) <= 4096 + 64


# --- many --------------------------------------------------------------------------------------------------


def test_five_hundred_documents_are_open_and_orders_go_on(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user) as editor:
            for number in range(500):
                path = user.project / ".promptside" / "tasks" / f"{number}-x" / "01-work.md"
                editor.open(path, "# Work\n\n- [ ] A\n" * 100)
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await editor.command("run", task=1)
            await editor.task(lambda t: t["waiting_for"])

    asyncio.run(story())


# --- slow --------------------------------------------------------------------------------------------------


def test_p3_an_editor_that_never_reads_costs_no_memory_and_misses_nothing_when_it_reads_again(
    user: User,
) -> None:
    user.commit_all()
    speaker = Speaker(user)
    lines = [f"{n:06d} {'x' * 1000}" for n in range(12_000)]

    async def story() -> None:
        slow = LspEditor(user)
        async with LspEditor(user) as other:
            await other.command("newTask", **speaker.new_task())
            await other.command("run")
            await slow.start(reads=False)
            try:
                await stuck(slow)
                async with asyncio.timeout(30):
                    while (await other.command("daemonStart"))["clients"] < 2:
                        pass  # a round trip to the daemon, which the slow one has not reached yet
                await other.ask("promptside/follow", {})
                speaker.say(lines[0])
                await other.note("promptside/output", lambda p: texts([p]))
                before = memory(slow.process.pid)
                await asyncio.to_thread(speaker.say, *lines[1:])
                speaker.stop()
                await other.note("promptside/output", lambda p: p.get("ended"))
                after = memory(slow.process.pid)
                assert after - before < 6_000_000, "what the editor did not read was kept"
                assert texts(other.notes("promptside/output")) == lines
                slow._reading = asyncio.create_task(slow._read())
                await slow.note("promptside/output", lambda p: p.get("ended"))
                assert texts(slow.notes("promptside/output")) == lines
            finally:
                await slow.__aexit__()

    asyncio.run(story())


async def stuck(slow: LspEditor) -> None:
    """Say hello, follow the output, and read nothing."""
    slow.begin(
        "initialize",
        {
            "processId": None,
            "rootUri": None,
            "capabilities": slow.capabilities,
            "clientInfo": {"name": "Slow"},
        },
    )
    slow.tell("initialized", {})
    slow.begin("promptside/follow", {"task": 1, "project": str(slow._folder)})
    assert slow.process.stdin is not None
    await slow.process.stdin.drain()


def texts(pages: list[Any]) -> list[str]:
    return [e["text"] for page in pages for e in page["entries"] if e["role"] == "text"]


# --- dead and vanishing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "last", [b"", b"Content-Le", b"Content-Length: 100\r\n\r\n{", b"Content-Length: 5\r\n"]
)
def test_the_server_ends_when_its_input_does_also_in_mid_message(user: User, last: bytes) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            await editor.command("daemonStart")
            assert editor.process.stdin is not None
            editor.write(last)
            editor.process.stdin.close()
            assert await editor.end() == 0
        assert user.daemon()  # the daemon lives on

    asyncio.run(story())


def test_the_server_ends_when_nobody_reads_its_output_any_more(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            await lives(editor)
            editor.process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # no public way
            await editor.end()

    asyncio.run(story())


def test_exit_ends_it_with_zero_after_shutdown_and_with_one_without(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            await editor.ask("shutdown", None)
            editor.tell("exit", None)
            assert await editor.end() == 0
        async with LspEditor(user) as rude:
            rude.tell("exit", None)
            assert await rude.end() == 1

    asyncio.run(story())


def test_the_server_ends_when_its_parent_dies_although_its_input_stays_open(user: User) -> None:
    async def story() -> None:
        parent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import sys; sys.stdin.read()",
            stdin=asyncio.subprocess.PIPE,
            env=user.environment,
        )
        async with LspEditor(user, process_id=parent.pid) as editor:
            assert await lives(editor)
            parent.kill()
            await parent.wait()
            await editor.end()

    asyncio.run(story())


def test_a_parent_of_another_machine_or_container_says_nothing(user: User) -> None:
    async def story() -> None:
        gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
        await gone.wait()
        async with LspEditor(user, process_id=gone.pid) as editor:
            await editor.command("daemonStart")
            assert await lives(editor)

    asyncio.run(story())
