"""What agents write: by cursor without a gap or a repeat, as growing files, and whole (ED-3, CW-16)."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from rig.lsp_editor import LspEditor, Said
from rig.speaker import Speaker
from rig.user import User


def texts(pages: list[Any]) -> list[str]:
    """What the agent said, in the order in which it was told."""
    return [e["text"] for page in pages for e in page["entries"] if e["role"] == "text"]


async def speaking(editor: LspEditor, speaker: Speaker) -> None:
    """A task whose agent runs."""
    await editor.command("newTask", **speaker.new_task())
    await editor.command("run")
    await editor.task(lambda t: any(a["status"] == "running" for a in t["stages"][0]["attempts"]))


def file_of(shown: Any) -> Path:
    return Path(unquote(shown["uri"].removeprefix("file://")))


def test_ed3_output_comes_only_when_it_was_asked_for(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user) as editor:
            await speaking(editor, speaker)
            speaker.say("one", "two", "read a.txt")
            await editor.note("promptside/activity", lambda p: "a.txt" in p["activity"]["line"])
            assert not editor.notes("promptside/output")
            answer = await editor.ask("promptside/follow", {})
            speaker.say("three")
            await editor.note("promptside/output", lambda p: "three" in texts([p]))
            pages = editor.notes("promptside/output")
            assert texts(pages) == ["one", "two", "three"]
            assert {page["flow"] for page in pages} == {answer["flow"]}
            assert pages[-1]["stage"] == "work"
            cursors = [page["cursor"] for page in pages]
            assert cursors == sorted(set(cursors))
            await editor.ask("promptside/unfollow", {"flow": answer["flow"]})
            speaker.say("four", "read b.txt")
            await editor.note("promptside/activity", lambda p: "b.txt" in p["activity"]["line"])
            assert "four" not in texts(editor.notes("promptside/output"))
            speaker.stop()
            await editor.task(lambda t: t["waiting_for"])

    asyncio.run(story())


def test_ed3_an_editor_that_announces_nothing_is_told_nothing_of_ours(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, {}) as editor:
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await editor.command("run")
            await editor.command("openTask")
            assert not [m for m in editor.heard if str(m.get("method")).startswith("promptside/")]

    asyncio.run(story())


def test_cw16_a_server_that_is_killed_in_mid_stream_leaves_no_gap_and_no_repeat(user: User) -> None:
    """In the middle of a message: of the large one no more than the head can be in the pipe."""
    user.commit_all()
    speaker = Speaker(user)
    before = [f"before {n}" for n in range(40)]
    large = "large " + "x" * 1_000_000
    after = [f"after {n}" for n in range(40)]

    async def story() -> None:
        async with LspEditor(user) as other:
            await speaking(other, speaker)
        killed = LspEditor(user)
        await killed.start(reads=False)
        try:
            assert killed.process.stdout is not None
            await begun(killed)
            speaker.say(*before)
            await unread(killed, lambda held: before[-1].encode() in held)
            await asyncio.to_thread(speaker.say, large, *after)
            await unread(killed, lambda held: len(held) > 100_000)
            killed.process.kill()
            rest = heard_of(killed, await killed.process.stdout.read())
            assert large[:50].encode() in rest
            assert len(rest) < len(large)
        finally:
            await killed.__aexit__()
        seen = killed.notes("promptside/output")
        assert texts(seen) == before
        async with LspEditor(user) as again:
            where = seen[-1]
            await again.task(lambda t: t["id"] == 1)
            wish = {"task": 1, "stage": where["stage"], "attempt": where["attempt"]}
            await again.ask("promptside/follow", {**wish, "cursor": where["cursor"]})
            speaker.stop()
            await again.note("promptside/output", lambda p: p.get("ended"))
            told = texts([*seen, *again.notes("promptside/output")])
            assert [len(text) for text in told if text.startswith("large")] == [len(large)]
            assert told == [*before, large, *after, *told[81:]]
            assert not [text for text in told[81:] if text.startswith(("before", "after", "large"))]

    asyncio.run(story())


async def begun(editor: LspEditor) -> None:
    """Say hello and follow the output, and read nothing."""
    editor.begin("initialize", {"processId": None, "rootUri": None, "capabilities": editor.capabilities})
    editor.tell("initialized", {})
    editor.begin("promptside/follow", {"task": 1, "project": str(editor._folder)})
    assert editor.process.stdin is not None
    await editor.process.stdin.drain()


async def unread(editor: LspEditor, condition: Callable[[bytes], object]) -> None:
    """Wait until what came and was not read fulfils the condition."""
    assert editor.process.stdout is not None
    held = editor.process.stdout._buffer  # type: ignore[attr-defined]  # what lies there is shown nowhere else
    async with asyncio.timeout(60):
        while not condition(bytes(held)):  # noqa: ASYNC110  # nobody tells of it
            await asyncio.sleep(0.01)


def heard_of(editor: LspEditor, came: bytes) -> bytes:
    """Have an editor hear every whole message; what is left is a half one."""
    while True:
        head, _, body = came.partition(b"\r\n\r\n")
        found = re.search(rb"Content-Length: (\d+)", head)
        length = int(found[1]) if found else 0
        if not found or len(body) < length:
            return came
        editor.heard.append(json.loads(body[:length]))
        came = body[length:]


def test_cw16_a_daemon_that_is_killed_is_said_found_again_and_nothing_is_lost(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user) as editor:
            await speaking(editor, speaker)
            await editor.ask("promptside/follow", {})
            speaker.say("one", "two")
            await editor.note("promptside/output", lambda p: "two" in texts([p]))
            daemon = user.daemon()
            await asyncio.to_thread(user.kill, daemon)
            gone = await editor.note("promptside/daemon", lambda p: not p["up"])
            assert "Agents at work go on" in gone["sentence"]
            at = len(editor.heard)
            speaker.say("three")
            await editor.command("daemonStart")
            await editor.note("promptside/daemon", lambda p: p["up"], since=at)
            speaker.say("four")
            speaker.stop()
            await editor.note("promptside/output", lambda p: p.get("ended"))
            told = texts(editor.notes("promptside/output"))
            assert [t for t in told if t in ("one", "two", "three", "four")] == [
                "one",
                "two",
                "three",
                "four",
            ]
            await editor.task(lambda t: (t["waiting_for"] or {}).get("kind") == "gate")

    asyncio.run(story())


def test_ed3_what_does_not_exist_is_said_and_not_waited_for(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user) as editor:
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await editor.ask("promptside/follow", {"task": 1, "stage": "nowhere"})
            page = await editor.note("promptside/output")
            assert "nowhere" in page["error"]
            with pytest.raises(Said, match=r"\$\.task"):
                await editor.ask("promptside/follow", {"task": "one"})

    asyncio.run(story())


def test_ed9_the_output_is_a_file_that_grows_and_can_not_be_written(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user) as editor:
            await speaking(editor, speaker)
            shown = await editor.command("showOutput")
            file = file_of(shown)
            assert file.stat().st_mode & 0o777 == 0o444
            reader = await editor.ask("promptside/follow", {})
            speaker.say("one")
            await editor.note("promptside/output", lambda p: "one" in texts([p]))
            speaker.say("two")
            speaker.stop()
            await editor.note("promptside/output", lambda p: p.get("ended") and p["flow"] == reader["flow"])
            await editor.command("showOutput")
            async with asyncio.timeout(30):
                while "two" not in (text := file.read_text(encoding="utf-8")):
                    await editor.command("openTask")  # a round trip, in which the file grows
            assert text.index("one") < text.index("two")

    asyncio.run(story())


def test_ed3_transcripts_and_prompts_are_virtual_documents_where_there_are_any(user: User) -> None:
    user.commit_all()
    virtual = {"workspace": {"textDocumentContent": {}}}

    async def story() -> None:
        async with LspEditor(user, virtual) as editor:
            assert "promptside" in editor.server_can["workspace"]["textDocumentContent"]["schemes"]
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await editor.command("run")
            await asyncio.to_thread(user.waits, "gate")
            shown = await editor.command("showTranscript")
            assert shown["uri"].startswith("promptside://")
            page = await editor.ask("workspace/textDocumentContent", {"uri": shown["uri"]})
            assert "made up" in page["text"]
            shown = await editor.command("showPrompt")
            page = await editor.ask("workspace/textDocumentContent", {"uri": shown["uri"]})
            assert "Add a login" in page["text"]
            with pytest.raises(Said):
                await editor.ask("workspace/textDocumentContent", {"uri": "promptside://transcript/x"})
        async with LspEditor(user, {}) as plain:
            for name in ("showTranscript", "showPrompt"):
                file = file_of(await plain.command(name, task=1))
                assert file.stat().st_mode & 0o777 == 0o444
                assert file.read_text(encoding="utf-8").strip()

    asyncio.run(story())
