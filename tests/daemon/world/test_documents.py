"""Documents beside the code: whose words stand in a file, what an order takes of them, and what is in the way."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rig.bench import STAGE, Bench, at_gate, last, rests, stage

from promptside_daemon.engine.task import AtGate, FormState, Passed, Task
from promptside_daemon.world.documents import DOCUMENT_LIMIT, Documents
from promptside_protocol import forms
from promptside_protocol.commands import Approve, EditDraft, Redo
from promptside_protocol.errors import PromptsideError, Refused
from promptside_protocol.queries import Form, GetForm

TWO = STAGE + STAGE.replace('"work"', '"second"').replace('"Work"', '"Second"').replace(
    '"user"', '"previous"'
)
CHECKLIST = STAGE + 'output = "checklist"\ngate = { type = "require_all_checked" }\n'
TEXT = "prompt(); init(); result('The output'); end()"
ITEMS = (
    "prompt(); init(); result('', structured_output={'items': [{'severity': 'info', 'title': 'A'},"
    " {'severity': 'critical', 'title': 'B'}]}); end()"
)


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def approve(bench: Bench, **more: object) -> Approve:
    return Approve(project=str(bench.root), task=1, **more)  # type: ignore[arg-type]  # the caller names fields


async def gate(bench: Bench) -> tuple[Task, Path]:
    """A task whose first stage waits at its gate, and the document, written."""
    await bench.started()
    task = await bench.rests()
    assert at_gate(task), last(task).failure
    await written(bench)
    form = stage(task).form
    assert form is not None
    return task, bench.root / form.document


async def written(bench: Bench) -> None:
    """Wait until every document is written."""
    await bench.project.world.writer.idle()


async def form(bench: Bench) -> Form:
    found = await bench.daemon.ask(GetForm(project=str(bench.root), task=1), bench.who)
    assert isinstance(found, Form)
    return found


# --- text: the content is the file's -----------------------------------------------------------------------


def test_a_text_is_approved_as_the_person_left_it_and_these_bytes_are_kept(bench: Bench) -> None:
    bench.pipeline("small", TWO)
    bench.claude("said = prompt(); init(); result(said if 'Mine' in said else 'The output'); end()")

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        document.write_text(document.read_text().replace("The output", "Mine"))
        shown = (await form(bench)).shown
        await bench.order(approve(bench, shown=shown))
        task = await bench.until(lambda task: task.current == 1 and rests(task))
        approved = stage(task).form
        assert approved is not None
        assert approved.shown == shown
        assert "Mine" in bench.project.world.documents.draft(task, approved)
        assert "Mine" in document.read_text()

    play(bench, story)


def test_bytes_that_the_person_has_not_seen_are_refused_with_the_difference(bench: Bench) -> None:
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        shown = (await form(bench)).shown
        document.write_text(document.read_text().replace("The output", "Somebody else's"))
        with pytest.raises(Refused) as found:
            await bench.order(approve(bench, shown=shown))
        assert found.value.refusal.code == "other-bytes"
        assert "Somebody else's" in found.value.refusal.difference
        assert isinstance(stage(await bench.task()).status, AtGate)

    play(bench, story)


def test_formatting_on_save_is_no_change(bench: Bench) -> None:
    bench.claude("prompt(); init(); result('One\\n\\n* two\\n* three'); end()")

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        shown = (await form(bench)).shown
        document.write_text(document.read_text().replace("* ", "- ") + "\n\n")
        await bench.order(approve(bench, shown=shown))

    play(bench, story)


def test_an_edit_and_an_approval_in_one_breath_are_taken_in_their_order(bench: Bench) -> None:
    """The file lags behind the draft then, and is not taken for somebody else's."""
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        task, document = await gate(bench)
        shown = await form(bench)
        text = shown.text.replace("The output", "A newer text")
        edit = EditDraft(project=str(bench.root), task=1, document=shown.document, text=text)
        await asyncio.gather(bench.order(edit), bench.order(approve(bench)))
        task = await bench.task()
        approved = stage(task).form
        assert approved is not None
        assert "A newer text" in bench.project.world.documents.draft(task, approved)
        await written(bench)
        assert "A newer text" in document.read_text()

    play(bench, story)


def test_a_write_that_a_crash_cut_off_is_made_up_for(bench: Bench) -> None:
    bench.claude(TEXT)
    place: list[Path] = []

    async def first(bench: Bench) -> None:
        _, document = await gate(bench)
        place.append(document)
        bench.project.world._write = lambda *_, **__: None  # type: ignore[method-assign]
        shown = await form(bench)
        text = shown.text.replace("The output", "A newer text")
        await bench.order(EditDraft(project=str(bench.root), task=1, document=shown.document, text=text))

    async def second(bench: Bench) -> None:
        await bench.rests()
        assert "A newer text" in (await form(bench)).text

    play(bench, first)
    assert "The output" in place[0].read_text()
    play(bench, second)
    assert "A newer text" in place[0].read_text()


def test_a_persons_words_survive_a_restart(bench: Bench) -> None:
    bench.claude(TEXT)
    place: list[Path] = []

    async def first(bench: Bench) -> None:
        place.append((await gate(bench))[1])

    play(bench, first)
    place[0].write_text("# Mine\n")

    async def second(bench: Bench) -> None:
        await bench.rests()
        assert (await form(bench)).text == "# Mine\n"

    play(bench, second)
    assert place[0].read_text() == "# Mine\n"


def test_what_a_redo_replaces_is_kept_beside_it(bench: Bench) -> None:
    bench.claude("said = prompt(); init(); result('The output of ' + said[:10]); end()")

    async def story(bench: Bench) -> None:
        task, document = await gate(bench)
        document.write_text("# My own words\n")
        await bench.order(Redo(project=str(bench.root), task=1, feedback="Go again"))
        task = await bench.until(lambda task: len(stage(task).attempts) == 2 and rests(task))
        await written(bench)
        assert "Go again" in document.read_text()
        kept = bench.directory(last(task)) / "documents"
        assert any("My own words" in file.read_text() for file in kept.iterdir())

    play(bench, story)


# --- forms: the answers are the draft's --------------------------------------------------------------------


def test_ticks_that_came_through_no_client_count_for_nothing(bench: Bench) -> None:
    bench.pipeline("small", CHECKLIST)
    bench.claude(ITEMS)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        document.write_text(document.read_text().replace("[ ]", "[x]"))
        with pytest.raises(Refused) as found:
            await bench.order(approve(bench))
        assert found.value.refusal.code == "file-differs"
        assert "[x]" in found.value.refusal.difference
        assert (await form(bench)).satisfied is False

    play(bench, story)


def test_an_answer_of_the_order_is_laid_over_the_draft(bench: Bench) -> None:
    bench.pipeline("small", CHECKLIST)
    bench.claude(ITEMS)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        before = await form(bench)
        ticked = {item["id"]: {"ticked": True} for item in before.definition["items"]}
        with pytest.raises(Refused, match="Not approved"):
            await bench.order(approve(bench, shown=before.shown))
        one = dict(list(ticked.items())[:1])
        edit = EditDraft(project=str(bench.root), task=1, document=before.document, answers=one)
        await bench.order(edit)
        after = await form(bench)
        assert after.shown != before.shown
        assert after.version == before.version + 1
        with pytest.raises(Refused) as found:
            await bench.order(approve(bench, shown=before.shown, answers=ticked))
        assert found.value.refusal.code == "other-bytes"
        await bench.order(approve(bench, shown=after.shown, answers=ticked))
        assert isinstance(stage(await bench.task()).status, Passed)
        await written(bench)
        assert document.read_text().count("[x]") == 2

    play(bench, story)


# --- approved, and changed since (CW-23) -------------------------------------------------------------------


def test_an_approved_text_that_changes_is_noticed_and_when_it_is_put_back(bench: Bench) -> None:
    bench.pipeline("small", TWO)
    bench.claude("said = prompt()\nif 'second' in said.lower(): end()\ninit(); result('The output'); end()")

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        approved = document.read_text()
        await bench.order(approve(bench))
        await bench.until(lambda task: stage(task, 1).attempts)
        document.write_text(approved.replace("The output", "Changed"))
        task = await bench.until(lambda task: getattr(stage(task).status, "void", ""))
        assert "01-work.md" in stage(task, 1).mark
        document.write_text(approved)
        await bench.until(lambda task: not getattr(stage(task).status, "void", "x"))

    play(bench, story)


def test_a_draft_that_changes_after_the_approval_stays_noticed_however_often_its_file_is_looked_at(
    bench: Bench,
) -> None:
    bench.pipeline("small", TWO)
    bench.claude("said = prompt()\nif 'second' in said.lower(): end()\ninit(); result('The output'); end()")

    async def story(bench: Bench) -> None:
        await gate(bench)
        shown = await form(bench)
        await bench.order(approve(bench))
        await bench.until(lambda task: stage(task, 1).attempts)

        async def edit(text: str) -> None:
            document = shown.document
            await bench.order(EditDraft(project=str(bench.root), task=1, document=document, text=text))

        await edit(shown.text.replace("The output", "Changed"))
        assert getattr(stage(await bench.task()).status, "void", "")
        await written(bench)
        assert not await bench.project.world.notice(await bench.task())
        await edit(shown.text)
        assert not getattr(stage(await bench.task()).status, "void", "x")
        await written(bench)
        assert not await bench.project.world.notice(await bench.task())

    play(bench, story)


def test_a_change_before_the_next_stage_has_begun_makes_the_gate_wait_again(bench: Bench) -> None:
    bench.pipeline("small", TWO.replace('input = "previous"', 'input = "both"'))
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await bench.order(approve(bench))
        document.write_text(document.read_text() + "More\n")
        task = await bench.until(lambda task: task.current == 0)
        assert isinstance(stage(task).status, AtGate)

    play(bench, story)


def test_an_approved_file_that_is_gone_counts_as_unchanged(bench: Bench) -> None:
    bench.pipeline("small", TWO)
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        await bench.order(approve(bench))
        document.unlink()
        await bench.until(lambda task: task.current == 1 and rests(task))
        assert "artifact_changed" not in await bench.kinds()

    play(bench, story)


# --- what is in the way ------------------------------------------------------------------------------------


def a_directory(document: Path) -> None:
    document.unlink()
    document.mkdir()


def a_pipe(document: Path) -> None:
    document.unlink()
    os.mkfifo(document)


def a_link_out(document: Path) -> None:
    outside = document.parents[4] / "outside.md"
    outside.write_text("Outside")
    document.unlink()
    document.symlink_to(outside)


def a_file_for_a_directory(document: Path) -> None:
    shutil.rmtree(document.parents[2])
    document.parents[2].write_text("a file")


def the_whole_directory_elsewhere(document: Path) -> None:
    elsewhere = document.parents[4] / "elsewhere"
    document.parents[2].rename(elsewhere)
    document.parents[2].symlink_to(elsewhere)


@pytest.mark.parametrize(
    "spoil",
    [a_directory, a_pipe, a_link_out, a_file_for_a_directory, the_whole_directory_elsewhere, Path.unlink],
)
def test_a_document_that_can_not_be_used_leaves_the_daemons_own(
    bench: Bench, spoil: Callable[[Path], None]
) -> None:
    bench.claude(TEXT)

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        spoil(document)
        assert "The output" in (await form(bench)).text
        await bench.order(approve(bench))
        assert isinstance(stage(await bench.task()).status, Passed)

    play(bench, story)
    outside = bench.base / "outside.md"
    assert not outside.exists() or outside.read_text() == "Outside"


@pytest.mark.parametrize(
    ("content", "code"), [(b"caf\xe9\n", "not-utf8"), (b"x" * (DOCUMENT_LIMIT + 1), "too-large")]
)
def test_a_text_that_can_not_be_taken_is_refused_and_stays(bench: Bench, content: bytes, code: str) -> None:
    bench.claude(TEXT)
    place: list[Path] = []

    async def story(bench: Bench) -> None:
        _, document = await gate(bench)
        place.append(document)
        document.write_bytes(content)
        with pytest.raises(PromptsideError) as found:
            await bench.order(approve(bench))
        assert found.value.refusal.code == code

    play(bench, story)
    assert place[0].read_bytes() == content


def test_a_link_in_place_of_a_document_is_replaced_never_followed(tmp_path: Path) -> None:
    documents = Documents(tmp_path / "project", tmp_path / "kept" / "attempts")
    documents.root.mkdir()
    (documents.root / "other.txt").write_text("other")
    (documents.root / "a.md").symlink_to(documents.root / "other.txt")
    documents.put("a.md", "text")
    assert (documents.root / "other.txt").read_text() == "other"
    assert not (documents.root / "a.md").is_symlink()
    assert [file.name for file in documents.root.iterdir() if file.name.endswith(".new")] == []


def test_nothing_is_written_outside_of_the_project(tmp_path: Path) -> None:
    documents = Documents(tmp_path / "project", tmp_path / "kept" / "attempts")
    documents.root.mkdir()
    (tmp_path / "outside").mkdir()
    (documents.root / ".promptside").symlink_to(tmp_path / "outside")
    for document in ("../a.md", ".promptside/tasks/1-a/01.md", "/etc/a.md"):
        with pytest.raises(Refused, match="leads out"):
            documents.put(document, "text")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_to_the_project_itself_is_no_way_out(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    documents = Documents(tmp_path / "link", tmp_path / "kept" / "attempts")
    documents.put(".promptside/tasks/1-a/01.md", "text")
    assert documents.on_disk(".promptside/tasks/1-a/01.md") == "text"
    assert (real / ".promptside/tasks/1-a/01.md").read_text() == "text"


def test_kept_texts_are_found_by_their_hash_and_are_private(tmp_path: Path) -> None:
    documents = Documents(tmp_path, tmp_path / "kept" / "attempts")
    digest = documents.keep("a1", "words")
    assert documents.kept("a1", digest) == "words"
    (file,) = (documents.attempts / "a1" / "documents").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_definition_renders_where_nothing_was_kept(bench: Bench) -> None:
    """Retention takes what was kept of finished tasks; the answers are in the state."""
    bench.pipeline("small", CHECKLIST)
    bench.claude(ITEMS)

    async def story(bench: Bench) -> None:
        task, _ = await gate(bench)
        state = stage(task).form
        assert isinstance(state, FormState)
        shutil.rmtree(bench.directory(last(task)) / "documents")
        text = bench.project.world.documents.draft(task, state)
        assert forms.shown(state.definition, text) == state.shown

    play(bench, story)
