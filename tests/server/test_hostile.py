"""Slow, dead, lying and vanishing editors: the server stays small, answers what it can, and ends when it should."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rig.lsp_buffers import PLAIN, Buffers, line_of
from rig.lsp_editor import OURS, LspEditor, Message, Said, framed, memory
from rig.server_stories import at_options
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


def test_a_message_may_come_byte_by_byte(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            assert editor.process.stdin is not None
            params = {"command": "promptside.nonsense"}
            request = {"jsonrpc": "2.0", "id": "é", "method": "workspace/executeCommand", "params": params}
            for byte in framed(request):
                editor.write(bytes([byte]))
                await editor.process.stdin.drain()
                await asyncio.sleep(0)
            with pytest.raises(Said, match="not defined"):
                await editor.answer("é")

    asyncio.run(story())


def test_what_comes_out_of_turn_is_refused_and_a_second_beginning_changes_nothing(user: User) -> None:
    async def story() -> None:
        editor = LspEditor(user, {})
        await editor.start()
        try:
            editor.tell("initialized", {})
            editor.open(user.base / "a.md", "too early")
            for method, params in (*MALFORMED, ("workspace/executeCommand", {"command": "promptside.next"})):
                assert await refused(editor, method, params) == -32002
            assert await refused(editor, "initialize", {"capabilities": None}) == -32602
            await editor.initialize()
            assert await refused(editor, "initialize", {"processId": None, "capabilities": {}}) == -32600
            for _ in range(3):
                editor.tell("initialized", {})
            assert (await editor.command("daemonStart"))["clients"] == 1
            assert await lives(editor)
            assert not editor.notes("window/showMessage"), "the link lost nothing"
            await editor.ask("shutdown", None)
            for method, params in (("shutdown", None), *MALFORMED):
                assert await refused(editor, method, params) == -32600
            assert editor.process.stdin is not None
            editor.process.stdin.close()
            assert await editor.end() == 0
        finally:
            await editor.__aexit__()

    asyncio.run(story())


MALFORMED: list[tuple[str, Any]] = [
    ("textDocument/hover", None),
    ("textDocument/codeAction", {"textDocument": {"uri": 5}}),
    ("workspace/executeCommand", []),
    ("promptside/follow", 5),
    ("promptside/nothing", {}),
]


async def refused(editor: LspEditor, method: str, params: Any) -> int:
    """The number of the error that a request gets."""
    with pytest.raises(Said) as said:
        await editor.ask(method, params)
    return said.value.code


def test_a_request_that_was_called_off_is_answered_and_others_are_not_harmed(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            for nothing in (None, {}, {"id": []}, {"id": None}, {"id": 4711}, {"id": "never"}):
                editor.tell("$/cancelRequest", nothing)
            run = {"command": "promptside.daemonStart"}
            called_off = editor.begin("workspace/executeCommand", run)
            kept = editor.begin("workspace/executeCommand", run)
            editor.tell("$/cancelRequest", {"id": called_off})
            assert (await editor.answer(kept))["pid"]
            # It may have been faster; then it has its answer. Called off, it has the number that LSP gives.
            message = await editor.until(lambda m: m.get("id") == called_off)
            assert "result" in message or message["error"]["code"] == -32800
            editor.tell("$/cancelRequest", {"id": called_off})
            assert await lives(editor)

    asyncio.run(story())


NOWHERE = (
    "untitled:Untitled-1",
    "http://example.invalid/.promptside/tasks/1-a/01-work.md",
    "promptside://transcript/x",
    "vscode-notebook-cell:/a.md#c1",
    "no uri",
    "",
    "file:///",
    "file:///a%00b/.promptside/tasks/1-a/01-work.md",
    "file:///%ff%fe/.promptside/tasks/1-a/01-work.md",
    "file://another-host/a/.promptside/tasks/1-a/01-work.md",
    f"file:///{'a' * 5000}/.promptside/tasks/1-a/01-work.md",
    "file:///nowhere/.promptside/pipelines/p.toml",
)
ODD_TEXTS = (
    "",
    "\ufeff# Work\r\n\r\n- [ ] A\r\n",
    "a\rb\r\rc",
    "\x00\x0c\u2028\u2029\x85",
    "🦊" * 3,
    "[[stage]",
)
FAR = (10**6, 2**31 - 1)
AT_A_PLACE = ("hover", "completion", "definition", "codeAction", "codeLens", "inlayHint")
OF_A_DOCUMENT = ("foldingRange", "documentSymbol", "documentLink")


def test_places_that_are_none_get_an_answer_and_documents_that_are_odd_harm_no_order(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with Buffers(user, {**PLAIN, **OURS}) as editor:
            file = await at_options(editor)
            uri = editor.visit(file)

            async def asked(where: str, line: int, column: int) -> None:
                place = {"line": line, "character": column}
                params = {
                    "textDocument": {"uri": where},
                    "position": place,
                    "range": {"start": place, "end": place},
                    "context": {"diagnostics": []},
                }
                begun = [editor.begin(f"textDocument/{m}", params) for m in (*AT_A_PLACE, *OF_A_DOCUMENT)]
                for number in begun:
                    answer = await editor.until(lambda m, n=number: m.get("id") == n and "method" not in m)
                    assert answer.get("error", {"code": 0})["code"] in (0, -32601, -32602), (where, answer)

            for line in (0, *FAR):
                for column in (0, *FAR):
                    await asked(uri, line, column)
            for where in NOWHERE:
                await asked(where, 0, 0)
                for version, text in enumerate(ODD_TEXTS):
                    # Opened again without an end: the newest counts.
                    document = {"uri": where, "languageId": "markdown", "version": version, "text": text}
                    editor.tell("textDocument/didOpen", {"textDocument": document})
                    await asked(where, 0, 1)
            await editor.choose(uri, "Select A and approve", line_of(editor.texts[uri], "## A"))

    asyncio.run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


def test_edits_that_no_editor_should_send_leave_the_document_usable(user: User) -> None:
    user.commit_all()
    near, far = {"line": 0, "character": 0}, {"line": 10**6, "character": 10**6}

    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_options(editor)
            uri = editor.visit(file)
            text = editor.texts[uri]
            changes: list[Any] = [
                None,
                [],
                [{}],
                [{"text": None}],
                [{"text": "x", "range": {"start": far, "end": far}}],
                [{"text": "x", "range": {"start": far, "end": near}}],
                [{"text": "x", "range": {"start": {"line": -1, "character": -1}, "end": near}}],
                [{"text": "\ufeff" + text.replace("\n", "\r\n")}],
            ]
            for version in (0, -5, None, "x"):
                for change in changes:
                    identifier = {"uri": uri, "version": version}
                    params = {"textDocument": identifier, "contentChanges": change}
                    editor.tell("textDocument/didChange", params)
            for half in ("\\ud800", "\\udfff\\ud800"):  # a letter of two units that has only one
                body = '{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":'
                body += f'"{uri}","version":9}},"contentChanges":[{{"text":"{half}"}}]}}}}'
                editor.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body.encode()))
                error = await editor.until(lambda m: "id" in m and m["id"] is None)
                assert error["error"]["code"] == -32700
            assert await editor.actions(uri) is not None
            editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
            editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
            assert file.read_text("utf-8") == text, "what was not saved is nobody's"
            uri = editor.visit(file)
            await editor.choose(uri, "Select A and approve", line_of(text, "## A"))

    asyncio.run(story())


@pytest.mark.parametrize("lie", [{"applied": "yes"}, None, []], ids=repr)
def test_whatever_an_editor_answers_the_draft_is_the_daemons(user: User, lie: Any) -> None:
    class Liar(Buffers):
        def _hear(self, message: Message) -> None:
            if "id" in message and "method" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": lie})
                self.send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": "none"}})
                self.heard.append(message)
                self._came.set()
            else:
                super()._hear(message)

    user.commit_all()

    async def story() -> None:
        async with Liar(user, {**PLAIN, **OURS}) as editor:
            file = await at_options(editor)
            uri = editor.visit(file)
            await editor.actions(uri)
            at = len(editor.heard)
            await asyncio.to_thread(user.promptside, "approve", "1", "--select", "A")
            await editor.until(lambda m: m.get("method") == "promptside/task", at)
            assert await lives(editor)
            await editor.command("openTask", task=1)

    asyncio.run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


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


def test_ten_thousand_changes_cost_no_memory_and_the_last_one_counts(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            assert editor.process.stdin is not None
            file = await at_options(editor)
            note = user.project / "a note.md"
            note.write_text("# A note\n", "utf-8")
            other, uri = editor.visit(note), editor.visit(file)
            text = editor.texts[uri]
            await lives(editor)
            before = memory(editor.process.pid)
            for number in range(10_000):
                one = uri if number % 100 == 0 else other
                editor.type(one, text.replace("- [ ] Select A", f"- [{' x'[number % 200 // 100]}] Select A"))
                await editor.process.stdin.drain()
            await lives(editor)
            assert memory(editor.process.pid) - before < 30_000_000  # the same as held would be 60 MB
            editor.type(uri, text)
            await editor.choose(uri, "Select B and approve", line_of(text, "## B"))

    asyncio.run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


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


def test_an_editor_that_asks_on_and_on_and_reads_nothing_is_heard_no_more_until_it_reads(user: User) -> None:
    long = f"promptside/{'x' * 100_000}"  # an answer says which method is not known
    many = 300

    async def story() -> None:
        editor = LspEditor(user)
        await editor.start(reads=False)
        try:
            editor.begin("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
            await idle(editor.process.pid)
            before = memory(editor.process.pid)
            asked = [editor.begin(long, {}) for _ in range(many)]
            await idle(editor.process.pid)
            assert memory(editor.process.pid) - before < many * len(long) / 3
            editor._reading = asyncio.create_task(editor._read())
            for number in asked:
                with pytest.raises(Said, match="Not Found"):
                    await editor.answer(number)
        finally:
            await editor.__aexit__()

    asyncio.run(story())


async def idle(pid: int) -> None:
    """Wait until a server does nothing, although there may be more for it to read."""
    asleep = 0
    async with asyncio.timeout(60):
        while asleep < 30:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            asleep = asleep + 1 if state == "S" else 0
            await asyncio.sleep(0.01)


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
