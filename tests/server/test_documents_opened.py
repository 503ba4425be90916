"""What a buffer is opened with, and what becomes of it: older than the draft, unknown, of another attempt (UX 2.1)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers, file_of, line_of
from rig.lsp_editor import Message, Said
from rig.server_stories import approve, at_checklist, at_options, at_text, until_text, waits, written
from rig.user import User

VIRTUAL = {**PLAIN, "workspace": {**PLAIN["workspace"], "textDocumentContent": {}}}


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def opened_with(editor: Buffers, file: Path, text: str) -> str:
    """Open a buffer as an editor does that has read its file a moment ago, when this stood in it."""
    uri = editor.open(file, text)
    editor.texts[uri], editor.versions[uri] = text, 1
    return uri


def test_ed10_what_others_ticked_before_this_server_asked_is_never_unticked(user: User) -> None:
    """The buffer was read before somebody ticked C1; its person ticks another, and saves."""

    async def story() -> None:
        async with Buffers(user, PLAIN) as one, Buffers(user, PLAIN) as two:
            file = await at_checklist(one)
            older = file.read_text("utf-8")
            refs = [line.split("**")[1] for line in older.split("\n") if line.startswith("- [")]
            first = one.visit(file)
            one.replace(first, f"- [ ] **{refs[0]}**", f"- [x] **{refs[0]}**")
            one.save(first)
            await one.actions(first)
            await written(file, f"- [x] **{refs[0]}**")
            mine = older.replace(f"- [ ] **{refs[1]}**", f"- [x] **{refs[1]}**")
            second = opened_with(two, file, older)
            two.type(second, mine)
            two.save(second)
            await until_text(two, second, f"- [x] **{refs[0]}**")
            assert f"- [x] **{refs[1]}**" in two.texts[second]
            await until_text(one, first, f"- [x] **{refs[1]}**")
            assert f"- [x] **{refs[0]}**" in one.texts[first]

    run(story())
    items = {item["id"]: item["ticked"] for item in user.task()["waiting_for"]["gate"]["items"]}
    assert sum(items.values()) == 2


def test_ed10_an_older_text_that_nobody_typed_into_becomes_the_newer(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as one, Buffers(user, PLAIN) as two:
            file = await at_options(one)
            older = file.read_text("utf-8")
            first = one.visit(file)
            one.replace(first, "- [ ] Select A", "- [x] Select A")
            one.save(first)
            await one.actions(first)
            file.write_text(older, "utf-8")  # so that the file is no reason to read it again
            second = opened_with(two, file, older)
            await until_text(two, second, "- [x] Select A")

    run(story())


def test_ed10_while_it_is_open_the_file_is_left_alone_and_is_written_when_it_is_closed(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as one, Buffers(user, MINIMAL) as two:
            file = await at_options(one)
            older = file.read_text("utf-8")
            first = one.visit(file)
            await one.actions(first)
            second = two.visit(file)
            await two.choose(second, "Select A", line_of(two.texts[second], "## A"))
            await until_text(one, first, "- [x] Select A")
            assert file.read_text("utf-8") == older
            one.leave(first)
            await written(file, "- [x] Select A")

    run(story())


def test_an_editor_that_refuses_an_edit_takes_none_and_its_file_is_written(user: User) -> None:
    class Refusing(Buffers):
        def apply(self, edit: Any) -> bool:
            return False

    async def story() -> None:
        async with Refusing(user, PLAIN) as one, Buffers(user, MINIMAL) as two:
            file = await at_options(one)
            first = one.visit(file)
            await one.actions(first)
            second = two.visit(file)
            await two.choose(second, "Select A", line_of(two.texts[second], "## A"))
            await written(file, "- [x] Select A")
            assert asked_to_apply(one)

    run(story())


def asked_to_apply(editor: Buffers) -> list[Message]:
    return [message for message in editor.heard if message.get("method") == "workspace/applyEdit"]


def test_m11_what_the_daemon_never_had_is_said_and_is_taken_only_when_the_person_says_so(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_options(editor)
            file.write_text(file.read_text("utf-8").replace("- [ ] Select B", "- [x] Select B"), "utf-8")
            uri = editor.visit(file)
            (said,) = [
                d
                for d in await editor.diagnosed(
                    uri, lambda found: any(d["code"] == "form-bytes" for d in found)
                )
                if d["code"] == "form-bytes"
            ]
            line = line_of(editor.texts[uri], "Select B")
            assert said["range"]["start"]["line"] == line
            assert f"(line {line + 1})" in said["message"]
            editor.save(uri)
            with pytest.raises(Said) as refused:
                await editor.command("approve", task=1)
            assert refused.value.data["code"] == "other-bytes"
            shown = await editor.choose(uri, "Show difference")
            difference = file_of(shown["uri"]).read_text("utf-8")
            assert "+- [x] Select B" in difference
            await editor.choose(uri, "Take mine")
            await editor.choose(uri, "Approve B")

    run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


def test_m11_the_daemons_can_be_taken_instead(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, VIRTUAL) as editor:
            file = await at_options(editor)
            theirs = file.read_text("utf-8")
            file.write_text(theirs.replace("- [ ] Select B", "- [] Select B"), "utf-8")
            uri = editor.visit(file)
            await editor.diagnosed(uri, lambda found: any(d["code"] == "form-bytes" for d in found))
            shown = await editor.choose(uri, "Show difference")
            content = await editor.ask("workspace/textDocumentContent", {"uri": shown["uri"]})
            assert "+- [] Select B" in content["text"]
            await editor.choose(uri, "Take Promptside's")
            assert editor.texts[uri] == theirs

    run(story())


def test_an_older_attempts_document_is_shown_read_only(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, VIRTUAL) as editor, Buffers(user, PLAIN) as plain:
            file = await at_text(editor)
            first = file.read_text("utf-8")
            await editor.command("redo", project=str(editor.project), task=1, feedback="Shorter.")
            await written(file, "#2 text")
            content = await editor.ask("workspace/textDocumentContent", {"uri": "promptside://1/research/1"})
            assert content["text"] == first
            await waits(plain, "01-research.md")
            shown = await plain.command("showDocument", task=1, stage="research", attempt=1)
            copy = file_of(shown["uri"])
            assert copy.read_text("utf-8") == first
            assert copy.stat().st_mode & 0o222 == 0
            await approve(editor)

    run(story())
