"""Documents that an editor holds open: who writes the file, and that it is there before anybody is told (UX 2.1)."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from rig.bench import STAGE, Bench, at_gate, last, rests, stage

from promptside_daemon.engine.task import Task
from promptside_daemon.rpc.who import Who
from promptside_protocol.commands import Approve, EditDraft, Redo
from promptside_protocol.errors import Refused
from promptside_protocol.notices import Notice, TaskChanged
from promptside_protocol.queries import (
    Document,
    DocumentView,
    Form,
    GetForm,
    HeldDocument,
    Hold,
    Watch,
)

CHECKLIST = STAGE + 'output = "checklist"\ngate = { type = "require_all_checked" }\n'
ITEMS = (
    "said = prompt(); init(); result('', structured_output={'items': [{'severity': 'info', 'title': 'A'},"
    " {'severity': 'critical', 'title': 'B ' + said[:7]}]}); end()"
)
TEXT = "said = prompt(); init(); result('The output of ' + said[:7]); end()"


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def checklist(bench: Bench) -> None:
    bench.pipeline("small", CHECKLIST)
    bench.claude(ITEMS)


async def gate(bench: Bench) -> tuple[Task, Path]:
    """A task whose stage waits at its gate, and the document."""
    await bench.started()
    task = await bench.rests()
    assert at_gate(task), last(task).failure
    form = stage(task).form
    assert form is not None
    return task, bench.root / form.document


def editor(bench: Bench, connection: int, client: str = "vscode") -> Who:
    """Somebody with an editor, on a connection of their own."""
    return msgspec.structs.replace(bench.who, client=client, connection=connection)


async def hold(bench: Bench, who: Who, document: Path, *, unsaved: bool = False) -> None:
    name = str(document.relative_to(bench.root))
    held = HeldDocument(project=str(bench.root), task=1, document=name, unsaved=unsaved)
    await bench.daemon.ask(Hold(documents=(held,)), who)


async def form(bench: Bench, shown: str = "") -> Form:
    found = await bench.daemon.ask(GetForm(project=str(bench.root), task=1, shown=shown), bench.who)
    assert isinstance(found, Form)
    return found


async def tick(bench: Bench, ref: str, who: Who, *, ticked: bool = True) -> None:
    document = (await form(bench)).document
    answers = {ref: {"ticked": ticked}}
    edit = EditDraft(project=str(bench.root), task=1, document=document, answers=answers)
    await bench.daemon.order(edit, who)


async def redone(bench: Bench) -> None:
    """A second attempt, at its gate."""
    await bench.order(Redo(project=str(bench.root), task=1, feedback="Again, "))
    await bench.until(lambda task: len(stage(task).attempts) == 2 and rests(task))
    await bench.project.world.writer.idle()


# --- held ----------------------------------------------------------------------------------------------------


def test_ed10_a_held_file_is_left_alone_until_the_last_holder_lets_go(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        first, second = editor(bench, 1), editor(bench, 2)
        await hold(bench, first, document)
        await hold(bench, second, document)
        await tick(bench, "C1", first)
        assert "[x]" not in document.read_text()
        bench.daemon.gone(first)
        await bench.project.world.writer.idle()
        assert "[x]" not in document.read_text()
        await bench.daemon.ask(Hold(), second)
        await bench.project.world.writer.idle()
        assert document.read_text().count("[x]") == 1
        assert document.read_text() == (await form(bench)).text

    play(bench, story)


def test_ed10_a_holder_that_vanishes_leaves_a_file_that_is_made_up_for(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await hold(bench, editor(bench, 1), document)
        await tick(bench, "C1", bench.who)
        bench.daemon.gone(editor(bench, 1))
        await bench.project.world.writer.idle()
        assert document.read_text().count("[x]") == 1
        await tick(bench, "I1", bench.who)
        assert document.read_text().count("[x]") == 2  # nobody holds it: it is there with the acknowledgement

    play(bench, story)


def test_m10_a_new_attempt_waits_for_unsaved_changes_and_keeps_what_was_saved(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        who = editor(bench, 1)
        await hold(bench, who, document, unsaved=True)
        await redone(bench)
        assert "#1 checklist" in document.read_text()
        document.write_text(document.read_text().replace("# Work", "# My own words"))
        await hold(bench, who, document, unsaved=False)
        await bench.project.world.writer.idle()
        assert "#2 checklist" in document.read_text()
        kept = bench.directory(last(await bench.task())) / "documents"
        assert any("My own words" in file.read_text() for file in kept.iterdir())

    play(bench, story)


def test_a_new_attempt_takes_the_place_of_a_held_file_without_unsaved_changes(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await hold(bench, editor(bench, 1), document)
        await redone(bench)
        assert "#2 checklist" in document.read_text()

    play(bench, story)


def test_words_in_a_text_that_nobody_was_told_of_are_not_written_over_when_it_is_let_go(bench: Bench) -> None:
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await hold(bench, editor(bench, 1), document)
        shown = await form(bench)
        text = shown.text.replace("The output", "A newer text")
        await bench.order(EditDraft(project=str(bench.root), task=1, document=shown.document, text=text))
        document.write_text("# Mine\n")
        bench.daemon.gone(editor(bench, 1))
        await bench.project.world.writer.idle()
        assert document.read_text() == "# Mine\n"

    play(bench, story)


# --- written before it is told ---------------------------------------------------------------------------------


def test_the_file_is_there_before_the_edit_is_acknowledged_or_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await bench.project.world.writer.idle()
        at_it, go_on = threading.Event(), threading.Event()
        documents = bench.project.world.documents
        put = documents.put

        def slowly(name: str, text: str) -> None:
            at_it.set()
            assert go_on.wait(60)
            put(name, text)

        monkeypatch.setattr(documents, "put", slowly)
        head = bench.project.store.head
        notice = asyncio.ensure_future(anext(changes(bench, head)))
        edit = asyncio.ensure_future(tick(bench, "C1", bench.who))
        assert await asyncio.to_thread(at_it.wait, 60)
        asked = asyncio.ensure_future(bench.project.store.load(1))
        facts = asyncio.ensure_future(bench.project.store.facts_since(head, 10))
        # The fact is on the disk by now: it was recorded first.
        rows = await bench.project.store._database.read(
            "look", "select count(*) from journal where seq > ?", head
        )
        assert rows[0][0] == 1
        assert bench.project.store.head == head
        assert not any(one.done() for one in (notice, edit, asked, facts))
        go_on.set()
        await edit
        assert "[x]" in document.read_text()
        assert (await notice).task.waiting_for is not None
        row = await asked
        assert row is not None
        assert row.seq > head
        assert len(await facts) == 1

    play(bench, story)


def test_who_opens_the_document_the_moment_it_is_announced_finds_what_was_announced(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        flow = changes(bench, 0)
        await bench.started()
        announced = None
        while announced is None:
            announced = (await anext(flow)).task.waiting_for
        assert announced.document is not None
        document = bench.root / announced.document
        assert document.exists()
        for turn in range(20):
            edit = asyncio.ensure_future(tick(bench, "C1", bench.who, ticked=turn % 2 == 0))
            waiting = (await anext(flow)).task.waiting_for
            assert waiting is not None
            assert document.read_text().count("[x]") == (turn + 1) % 2
            await edit
        await flow.aclose()

    play(bench, story)


async def changes(bench: Bench, cursor: int) -> AsyncGenerator[TaskChanged, None]:
    """What a client is told of the task."""
    flow: AsyncGenerator[Notice, None] = bench.daemon.flow(
        Watch(project=str(bench.root), cursors={str(bench.root): cursor}), bench.who, 1
    )
    async for notice in flow:
        if isinstance(notice, TaskChanged):
            yield notice


# --- what others did since (M10) -------------------------------------------------------------------------------


def test_m10_a_stale_approval_says_who_did_what_when_and_what_differs(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        await gate(bench)
        seen = (await form(bench)).shown
        await tick(bench, "C1", editor(bench, 1))
        await tick(bench, "I1", editor(bench, 2, "neovim"))
        await tick(bench, "I1", editor(bench, 2, "neovim"), ticked=False)
        found = await form(bench, seen)
        assert found.seen is not None
        assert found.seen.answers == {}
        assert [(change.ref, change.client) for change in found.seen.changes] == [("C1", "vscode")]
        with pytest.raises(Refused) as stale:
            await bench.order(Approve(project=str(bench.root), task=1, shown=seen))
        said = stale.value.refusal
        assert said.code == "other-bytes"
        assert said.message.startswith("C1 was ticked in VS Code at ")
        assert said.message.endswith(", after you opened this. Look again, then approve.")
        assert "-- [x] **C1**" in said.difference
        assert "I1" not in said.message

    play(bench, story)


def test_m11_a_hash_that_nobody_knows_is_refused_with_all_answers(bench: Bench) -> None:
    checklist(bench)

    async def story(bench: Bench) -> None:
        await gate(bench)
        await tick(bench, "C1", editor(bench, 1))
        assert (await form(bench, "f" * 64)).seen is None
        with pytest.raises(Refused) as unknown:
            await bench.order(Approve(project=str(bench.root), task=1, shown="f" * 64))
        assert unknown.value.refusal.difference == "C1 is ticked.\nI1 is not ticked."
        assert "is not what the daemon has" in unknown.value.refusal.message

    play(bench, story)


# --- older attempts --------------------------------------------------------------------------------------------


def test_the_document_of_an_older_attempt_is_what_it_was_last(bench: Bench) -> None:
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        shown = await form(bench)
        text = shown.text.replace("The output", "What I made of it")
        await bench.order(EditDraft(project=str(bench.root), task=1, document=shown.document, text=text))
        await redone(bench)
        old = await left(bench, 1)
        assert "What I made of it" in old.text
        assert (old.attempt, old.kind, old.approved) == (1, "text", False)
        await bench.order(Approve(project=str(bench.root), task=1))
        new = await left(bench)
        assert (new.attempt, new.approved) == (2, True)
        assert new.text == document.read_text()
        with pytest.raises(Refused, match="no such attempt"):
            await left(bench, 7)

    play(bench, story)


async def left(bench: Bench, attempt: int = 0) -> DocumentView:
    found = await bench.daemon.ask(Document(project=str(bench.root), task=1, attempt=attempt), bench.who)
    assert isinstance(found, DocumentView)
    return found


# --- notes to the agent ------------------------------------------------------------------------------------------


def test_st8_notes_that_went_with_a_redo_are_told_once_and_stand_nowhere_any_more(bench: Bench) -> None:
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        task, document = await gate(bench)
        own = bench.root / task.directory / "task.md"
        own.write_text(own.read_text().replace("\n", "\n>> In task.md\n>> and on\n", 1) + ">> Not said\n")
        shown = await form(bench)
        text = shown.text.replace("\n", "\n>> Shorter.\n", 1)
        await bench.order(EditDraft(project=str(bench.root), task=1, document=shown.document, text=text))
        assert ">> Shorter." in document.read_text()
        await bench.order(Redo(project=str(bench.root), task=1, feedback="Shorter.\n\nIn task.md\nand on"))
        assert ">>" not in document.read_text()
        assert "In task.md" not in own.read_text()
        assert ">> Not said" in own.read_text()
        task = await bench.until(lambda task: len(stage(task).attempts) == 2 and rests(task))
        assert last(task).order.feedback.count("Shorter.") == 1
        assert "In task.md" in last(task).order.feedback
        assert ">>" not in (await left(bench, 1)).text

    play(bench, story)
