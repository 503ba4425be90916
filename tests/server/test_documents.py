"""Buffers and drafts: edits go out as orders, come in as edits, and never over each other (ED-10, UX 2.1)."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers, line_of
from rig.lsp_editor import OURS, Said
from rig.server_stories import at_checklist, at_options, at_text, until_text, visited, written
from rig.user import User

LIVE = {**PLAIN, **OURS}


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_ed10_one_ticks_c1_and_the_other_c2_and_both_stand(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, LIVE) as one, Buffers(user, LIVE) as two:
            file = await at_checklist(one)
            first, second = await visited(file, one, two)
            refs = checks(one.texts[first])
            await one.choose(first, f"Tick {refs[0]}", line_of(one.texts[first], f"**{refs[0]}**"))
            await two.choose(second, f"Tick {refs[1]}", line_of(two.texts[second], f"**{refs[1]}**"))
            one.save(first)
            await until_text(two, second, f"- [x] **{refs[0]}**")
            two.save(second)
            await until_text(one, first, f"- [x] **{refs[1]}**")
            assert one.texts[first] == two.texts[second]

    run(story())


def test_ed10_what_is_typed_reaches_the_other_editor_before_it_is_saved(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, LIVE) as one, Buffers(user, LIVE) as two:
            file = await at_options(one)
            first, second = await visited(file, one, two)
            one.replace(first, "- [ ] Select A", "- [x] Select A")
            await until_text(two, second, "- [x] Select A")

    run(story())


def test_m10_on_the_same_item_the_later_sees_what_the_earlier_did(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as one, Buffers(user, PLAIN) as two:
            file = await at_checklist(one)
            first, second = await visited(file, one, two)
            ref = checks(one.texts[first])[0]
            old = note_of(one.texts[first], ref)
            two.type(second, two.texts[second].replace(old, f"{old} mine", 1))
            one.type(first, one.texts[first].replace(old, f"{old} theirs", 1))
            one.save(first)
            await two.diagnosed(second, lambda said: any(d["code"] == "form-elsewhere" for d in said))
            assert "theirs" in two.texts[second]
            two.save(second)
            await two.actions(second)
            assert "Note: theirs" in file.read_text("utf-8")

    run(story())


def gate(task: Any) -> Any:
    return task["waiting_for"]["gate"]


def test_cw23_a_stale_approval_is_refused_with_the_difference(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, MINIMAL) as one, Buffers(user, MINIMAL) as two:
            file = await at_options(one)
            first, second = await visited(file, one, two)
            one.replace(first, "- [ ] Select A", "- [x] Select A")
            one.save(first)
            await asyncio.to_thread(user.until, lambda task: gate(task)["selected"] == ["A"])
            await two.actions(second)
            with pytest.raises(Said) as refused:
                await two.command("approve", task=1)
            assert refused.value.data["code"] == "other-bytes"

    run(story())
    assert user.task()["waiting_for"]["kind"] == "gate"


def test_a_text_is_approved_as_it_stands_in_the_buffer_unsaved(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_text(editor)
            uri = editor.visit(file)
            editor.type(uri, editor.texts[uri].replace("\n\n<!-- prom", "\n\nMind the tests.\n\n<!-- prom"))
            await editor.choose(uri, "Approve")
            editor.leave(uri)
            await written(file, "Mind the tests.")

    run(story())
    assert user.stage("research")["status"] == "approved"


def test_what_a_person_corrected_in_an_option_reaches_the_draft(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_options(editor)
            uri = editor.visit(file)
            heading = next(line for line in editor.texts[uri].split("\n") if line.startswith("## A"))
            editor.replace(uri, heading, f"{heading}, but smaller")
            editor.save(uri)
            await editor.choose(uri, "Select A and approve", line_of(editor.texts[uri], "## A"))
            editor.leave(uri)
            await written(file, "- [x] Select A")
            assert ", but smaller" in file.read_text("utf-8")

    run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


def test_an_editor_that_takes_no_edits_reads_the_file(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, MINIMAL) as editor:
            file = await at_options(editor)
            uri = editor.visit(file)
            await editor.choose(uri, "Select A", line_of(editor.texts[uri], "## A"))
            await written(file, "- [x] Select A")
            assert not [m for m in editor.heard if m.get("method") == "workspace/applyEdit"]
            editor.reload(uri)
            titles = [a["title"] for a in await editor.actions(uri)]
            assert "Approve A" in titles

    run(story())


def test_crlf_and_letters_of_two_units_before_the_tick(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_options(editor)
            text = file.read_text("utf-8").replace("## A", "🦊🦊 prose\n\n## A", 1).replace("\n", "\r\n")
            heading = next(line for line in text.split("\r\n") if line.startswith("## B"))
            uri = editor.visit(file)
            editor.type(uri, text.replace(heading, f"{heading} 🦊"))
            said = await editor.diagnosed(uri, bool)
            await editor.choose(uri, "Select B", line_of(editor.texts[uri], "## B"))
            assert "- [x] Select B\r\n" in editor.texts[uri]
            assert editor.texts[uri].count("\n") == editor.texts[uri].count("\r\n")
            editor.save(uri)
            await editor.diagnosed(uri, lambda found: found != said and not found)
            await editor.choose(uri, "Approve B")

    run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


def test_five_hundred_documents_are_no_burden(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            file = await at_options(editor)
            for number in range(500):
                place = file.parent / f"9-note-{number}.md"
                place.write_text(f"# Note {number}\n", "utf-8")
                editor.visit(place)
            uri = editor.visit(file)
            await editor.choose(uri, "Select A and approve", line_of(editor.texts[uri], "## A"))

    run(story())
    assert user.stage("high-level-approaches")["status"] == "approved"


def checks(text: str) -> list[str]:
    """The ids of a checklist."""
    return [line.split("**")[1] for line in text.split("\n") if line.startswith("- [")]


def note_of(text: str, ref: str) -> str:
    """From the tick of an item to the end of its note's line."""
    start = text.index(f"**{ref}**")
    end = text.index("Note:", start) + len("Note:")
    return text[start:end]
