"""What is said of a form as it is typed: at the right line, as grave as it is, and no longer (UX 2.2, 2.11)."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.inside import Draft, Inside, stage, view, waits
from rig.lsp_buffers import PLAIN, line_of
from rig.lsp_editor import Said

from promptside_protocol import forms
from promptside_protocol.commands import Ack, Approve, EditDraft, Redo, SendAnswers
from promptside_protocol.errors import refused
from promptside_protocol.queries import GetForm
from promptside_protocol.views import TaskView, WaitingFor

DOCUMENT = ".promptside/tasks/1-add-a-login/02-work.md"
BEFORE = ".promptside/tasks/1-add-a-login/01-before.md"
ROUND = ".promptside/tasks/1-add-a-login/02-work-questions-1.md"
AT: dict[str, Any] = {"task": 1, "stage": "work", "attempt": 2, "title": "Work 🦊 漢字"}
ERROR, WARNING, INFORMATION, HINT = 1, 2, 3, 4

OPTIONS = forms.OptionsDefinition(
    **AT,
    options=(
        forms.Option(id="A", title="🦊 cookies", description="Wide 漢字 and 🦊."),
        forms.Option(id="B", title="Tokens"),
    ),
)
CHECKS = forms.ChecklistDefinition(
    **AT,
    items=(
        forms.CheckItem(id="C1", severity="critical", title="No 🦊 limit", path="a.py", line=1),
        forms.CheckItem(id="I1", severity="info", title="Long"),
    ),
)
FIELDS = forms.FieldsDefinition(
    **AT,
    fields=(
        forms.Field(key="title", label="Title", widget="line", required=True, value="Add"),
        forms.Field(key="test_plan", label="Test plan", required=True),
    ),
)
CHOICES = (forms.Choice(id="A", title="Sessions"), forms.Choice(id="B", title="Tokens"))
QUESTIONS = forms.QuestionsDefinition(
    **AT,
    round=1,
    items=(
        forms.Question(id="Q1", kind="one", text="Which?", options=CHOICES, other=True),
        forms.Question(id="Q2", kind="files", text="Which files?", required=False),
    ),
)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def task(folder: Path, waiting: WaitingFor | None) -> TaskView:
    before = msgspec.structs.replace(stage("approved", artifact=BEFORE), id="before", name="Before")
    return view(folder, stages=(before, stage(artifact=DOCUMENT)), waiting_for=waiting)


def opened(editor: Inside, draft: Draft) -> str:
    """The document of a form that waits; its uri."""
    editor.form(draft)
    kind = "decision" if isinstance(draft.definition, forms.QuestionsDefinition) else "gate"
    editor.changed(task(editor.project, waits(kind, draft.document)))
    return editor.visit(editor.file(draft.document, draft.text))


def brief(said: list[Any]) -> list[tuple[int, int, str, str]]:
    """Line, severity, code and words."""
    return [(d["range"]["start"]["line"], d["severity"], d["code"], d["message"]) for d in said]


def lacks(said: list[Any]) -> bool:
    """Whether the document itself says it by now; while it was closed, the list said that it waits."""
    return any(d["code"] == "gate-lacks" for d in said)


async def now(editor: Inside, uri: str) -> list[Any]:
    """What is said of a document when all that was typed has been taken in: an answer comes after it."""
    await editor.actions(uri)
    return editor.said.get(uri, [])


# --- what lacks ----------------------------------------------------------------------------------------------

LACKING: dict[str, tuple[forms.Definition, list[tuple[str, int, str]], str, str]] = {
    "options": (
        OPTIONS,
        [("# Work", INFORMATION, "Select 1 option to approve.")],
        "- [ ] Select B",
        "- [x] Select B",
    ),
    "checklist": (
        CHECKS,
        [
            ("# Work", INFORMATION, "C1 and I1 are not ticked."),
            ("**C1**", HINT, "C1 is not ticked."),
            ("**I1**", HINT, "I1 is not ticked."),
        ],
        "",
        "",
    ),
    "fields": (
        FIELDS,
        [
            ("# Work", INFORMATION, "Test plan is required and still empty."),
            ("## Test plan", HINT, "Test plan is required and still empty."),
        ],
        "## Test plan (required)\n",
        "## Test plan (required)\n\nTry it.\n",
    ),
    "questions": (
        QUESTIONS,
        [
            ("# Questions", INFORMATION, "Q1 is required and still empty."),
            ("## Q1", HINT, "Q1 is required and still empty."),
        ],
        "- [ ] A",
        "- [x] A",
    ),
}


@pytest.mark.parametrize("case", LACKING)
def test_ux22_what_lacks_is_an_information_and_goes_when_it_is_there(tmp_path: Path, case: str) -> None:
    definition, wanted, old, new = LACKING[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(definition, DOCUMENT))
            text = editor.texts[uri]
            expected = [
                (line_of(text, line) if not line.startswith("# ") else 0, severity, "gate-lacks", words)
                for line, severity, words in wanted
            ]
            assert brief(await editor.diagnosed(uri, lacks)) == expected
            title = len(text.split("\n")[0].encode("utf-16-le")) // 2
            assert editor.said[uri][0]["range"]["end"]["character"] == title
            assert all(d["source"] == "promptside" for d in editor.said[uri])
            if old:
                editor.replace(uri, old, new)
                assert await now(editor, uri) == []
                editor.type(uri, text)
                assert brief(await now(editor, uri)) == expected

    run(story())


def test_ux22_what_does_not_wait_lacks_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(CHECKS, DOCUMENT))
            await editor.diagnosed(uri, lacks)
            editor.changed(task(tmp_path, None))
            await editor.diagnosed(uri, lambda said: not said)
            editor.leave(uri)
            assert editor.said[uri] == []

    run(story())


def lacking(order: Any) -> Ack:
    raise refused("gate-lacks", "Not approved: Test plan is required and still empty.")


def test_ux22_after_a_refused_approval_it_is_a_warning_until_mended_in_that_editor_only(
    tmp_path: Path,
) -> None:
    """The refusal belongs to the editor in which it was given: nobody is scolded for somebody else's."""

    async def story() -> None:
        draft = Draft(FIELDS, DOCUMENT)
        async with Inside(tmp_path, PLAIN) as editor, Inside(tmp_path, PLAIN) as other:
            uri, theirs = opened(editor, draft), opened(other, draft)
            await editor.diagnosed(uri, lacks)
            editor.daemon.answers[Approve] = lacking
            assert [d["severity"] for d in editor.said[uri]] == [INFORMATION, HINT]
            with pytest.raises(Said, match="Not approved"):
                await editor.command("approve", project=str(tmp_path), task=1)
            said = await editor.diagnosed(uri, lambda found: any(d["severity"] == WARNING for d in found))
            assert [d["severity"] for d in said] == [INFORMATION, WARNING]
            assert said[1]["range"]["start"]["line"] == line_of(editor.texts[uri], "## Test plan")
            assert [d["severity"] for d in await now(other, theirs)] == [INFORMATION, HINT]
            editor.replace(uri, "## Test plan (required)\n", "## Test plan (required)\n\nTry it.\n")
            editor.save(uri)
            await editor.diagnosed(uri, lambda found: not found)
            editor.replace(uri, "Try it.", "")
            said = await editor.diagnosed(uri, lacks)
            assert [d["severity"] for d in said] == [INFORMATION, HINT], "it was mended, and is new"

    run(story())


def test_ux22_what_has_no_item_is_a_warning_on_line_1(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(OPTIONS, DOCUMENT))
            await editor.diagnosed(uri, lacks)
            editor.daemon.answers[Approve] = lacking
            with pytest.raises(Said):
                await editor.command("approve", project=str(tmp_path), task=1)
            said = await editor.diagnosed(uri, lambda found: any(d["severity"] == WARNING for d in found))
            assert brief(said) == [(0, WARNING, "gate-lacks", "Select 1 option to approve.")]

    run(story())


def test_ux22_a_redo_and_an_approval_that_is_taken_scold_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(CHECKS, DOCUMENT))
            await editor.diagnosed(uri, lacks)
            at = {"project": str(tmp_path), "task": 1}
            editor.daemon.answers[Redo] = lacking
            with pytest.raises(Said):
                await editor.command("redo", **at, feedback="again")
            await editor.command("approve", **at)
            assert {d["severity"] for d in await now(editor, uri)} == {INFORMATION, HINT}

    run(story())


def test_ux22_the_next_attempt_begins_without_the_warnings_of_the_one_before(tmp_path: Path) -> None:
    async def story() -> None:
        draft = Draft(FIELDS, DOCUMENT)
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, draft)
            await editor.diagnosed(uri, lacks)
            editor.daemon.answers[Approve] = lacking
            with pytest.raises(Said):
                await editor.command("approve", project=str(tmp_path), task=1)
            await editor.diagnosed(uri, lambda found: any(d["severity"] == WARNING for d in found))
            again = Draft(msgspec.structs.replace(FIELDS, attempt=3), DOCUMENT)
            editor.form(again)
            editor.changed(task(tmp_path, waits("gate", DOCUMENT)))
            editor.type(uri, again.text)
            said = await editor.diagnosed(uri, lambda found: all(d["severity"] >= INFORMATION for d in found))
            assert [d["severity"] for d in said] == [INFORMATION, HINT]

    run(story())


# --- what can't be read --------------------------------------------------------------------------------------


def without(text: str, start: str, end: str) -> str:
    """The text without what is from the one to the other."""
    return text[: text.index(start)] + text[text.index(end) :]


Spoil = Callable[[str], str]
B = "## B · Tokens\n\n- [ ] Select B"
BROKEN: dict[str, tuple[forms.Definition, Spoil, str, str, str, str]] = {
    "brackets without a blank": (
        OPTIONS,
        lambda t: t.replace("- [ ] Select B", "- [] Select B"),
        "- [] Select B",
        "form-tick",
        "Not a tick",
        "Write the tick right",
    ),
    "no blank before them": (
        OPTIONS,
        lambda t: t.replace("- [ ] Select B", "-[x] Select B"),
        "-[x] Select B",
        "form-tick",
        "Not a tick",
        "Write the tick right",
    ),
    "no blank behind them": (
        OPTIONS,
        lambda t: t.replace("- [ ] Select B", "- [x]Select B"),
        "- [x]Select B",
        "form-tick",
        "Not a tick",
        "Write the tick right",
    ),
    "another letter, among wide ones": (
        CHECKS,
        lambda t: t.replace("- [ ] **C1**", "- [y] **C1**"),
        "- [y] **C1** No 🦊",
        "form-tick",
        "Not a tick",
        "Restore",
    ),
    "an item that is gone": (
        OPTIONS,
        lambda t: without(t, "## B", "<!-- promptside"),
        "# Work",
        "form-missing",
        "B is missing from the document.",
        "Restore B",
    ),
    "an item that is there twice": (
        OPTIONS,
        lambda t: t.replace(B, f"{B}\n\n## A · the same 🦊 again\n\n- [ ] Select A"),
        "## A · the same 🦊 again",
        "form-twice",
        "A is here twice (first in line 5).",
        "Restore",
    ),
    "a code block that is open": (
        OPTIONS,
        lambda t: t.replace("## B", "```py 🦊\n\n## B"),
        "```py 🦊",
        "form-fence",
        "This code block is not closed. Nothing below it is read: B.",
        "Restore",
    ),
    "the attempt before": (
        OPTIONS,
        lambda t: t.replace("1/work#2", "1/work#1"),
        "<!-- promptside",
        "form-other",
        "This is attempt 1; attempt 2 waits for you.",
        "Restore the document",
    ),
    "marks of a merge": (
        OPTIONS,
        lambda t: t.replace("## A", "<<<<<<< ours 漢\n## A"),
        "<<<<<<< ours 漢",
        "form-conflict",
        "There are merge conflict markers in this document.",
        "Restore the document",
    ),
    "two of one": (
        OPTIONS,
        lambda t: t.replace("[ ] Select", "[x] Select"),
        "- [x] Select B",
        "form-surplus",
        "2 are selected; this gate takes 1. Untick one.",
        "Untick",
    ),
    "two answers": (
        QUESTIONS,
        lambda t: t.replace("- [ ] A", "- [x] A").replace("- [ ] B", "- [x] B"),
        "## Q1",
        "form-many",
        "Q1: 2 are ticked, one is wanted.",
        "Restore",
    ),
    "nothing behind Other": (
        QUESTIONS,
        lambda t: t.replace("- [ ] Other:", "- [x] Other:"),
        "- [x] Other:",
        "form-other",
        "Q1: Other is ticked, but nothing is written behind it.",
        "Restore",
    ),
    "two lines of one": (
        FIELDS,
        lambda t: t.replace("\nAdd\n", "\nAdd 🦊\nMore 漢\n"),
        "More 漢",
        "form-line",
        "Title is one line; this is two.",
        "Restore",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_ux211_what_cannot_be_read_is_an_error_at_its_line_and_goes(tmp_path: Path, case: str) -> None:
    definition, spoil, marked, code, words, action = BROKEN[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(definition, DOCUMENT))
            clean, before = editor.texts[uri], brief(await editor.diagnosed(uri, lacks))
            spoilt = spoil(clean)
            assert spoilt != clean
            editor.type(uri, spoilt)
            errors = [d for d in await now(editor, uri) if d["severity"] == ERROR]
            assert [d["code"] for d in errors] == [code]
            (error,) = errors
            assert error["message"].startswith(words)
            line = error["range"]["start"]["line"]
            shown = spoilt.split("\n")[line]
            assert shown.startswith(marked)
            assert error["range"]["start"]["character"] == 0
            assert error["range"]["end"] == {"line": line, "character": len(shown.encode("utf-16-le")) // 2}
            titles = [a["title"] for a in await editor.actions(uri, line) if "disabled" not in a]
            assert any(title.startswith(action) for title in titles), titles
            editor.type(uri, clean)
            assert brief(await now(editor, uri)) == before

    run(story())


TOLD: dict[str, tuple[forms.Definition, str, str, str, tuple[int, str, str]]] = {
    "text behind Other": (
        QUESTIONS,
        "- [ ] Other:",
        "- [ ] Other: mine",
        "- [ ] Other",
        (WARNING, "form-choice", "Q1: there is text behind Other, but it is not ticked."),
    ),
    "a choice that is none": (
        QUESTIONS,
        "- [ ] Other:",
        "- [ ] Other:\n- [x] D · mine",
        "- [x] D",
        (WARNING, "form-choice", "'D · mine' is not one of the choices."),
    ),
    "a file that is not there": (
        QUESTIONS,
        "Files:",
        "Files:\n- src/🦊 rooter.ts",
        "- src/🦊",
        (WARNING, "form-file", "src/🦊 rooter.ts does not exist."),
    ),
    "a heading that is no field": (
        FIELDS,
        "Add\n",
        "Add\n\n## Notes 🦊\n",
        "## Notes",
        (WARNING, "form-heading", "'Notes 🦊' is not a field;"),
    ),
    "a note": (
        CHECKS,
        "  - Note:\n\n## Info",
        "  - Note:\n\n>> use 🦊\n\n## Info",
        ">> use",
        (INFORMATION, "gate-notes", "1 note for the agent."),
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_ux2_what_is_odd_is_said_at_its_line(tmp_path: Path, case: str) -> None:
    definition, old, new, marked, (severity, code, words) = TOLD[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(definition, DOCUMENT))
            editor.replace(uri, old, new)
            found = [d for d in await now(editor, uri) if d["code"] == code]
            assert [(d["severity"], d["message"][: len(words)]) for d in found] == [(severity, words)]
            assert found[0]["range"]["start"]["line"] == line_of(editor.texts[uri], marked)

    run(story())


def test_ux211_without_its_last_line_a_document_is_still_the_document(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(OPTIONS, DOCUMENT))
            before = brief(await editor.diagnosed(uri, lacks))
            editor.type(uri, without(editor.texts[uri], "<!-- promptside", "-->").replace("-->\n", ""))
            assert brief(await now(editor, uri)) == before

    run(story())


def test_lines_of_any_end_are_counted_as_the_editor_counts_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, Draft(CHECKS, DOCUMENT))
            editor.type(uri, editor.texts[uri].replace("\n", "\r\n").replace("- [ ] **I1**", "- [] **I1**"))
            (error,) = [d for d in await now(editor, uri) if d["severity"] == ERROR]
            assert error["range"]["start"]["line"] == line_of(editor.texts[uri], "**I1**")

    run(story())


# --- what an order carries of a document -----------------------------------------------------------------------

CARRIED: dict[str, tuple[str, dict[str, Any], list[str], str | None]] = {
    "an approval, the gate's document": ("approve", {}, [DOCUMENT], DOCUMENT),
    "an approval of the gate by its stage": ("approve", {"stage": "work"}, [DOCUMENT, BEFORE], DOCUMENT),
    "an approval of a stage before, its own document": (
        "approve",
        {"stage": "before"},
        [DOCUMENT, BEFORE],
        BEFORE,
    ),
    "an approval of a stage before that is not open": ("approve", {"stage": "before"}, [DOCUMENT], None),
    "an approval while nothing is open": ("approve", {}, [], None),
    "an approval with answers": ("approve", {"answers": {"B": True}}, [DOCUMENT], DOCUMENT),
    "an approval that says what was seen": ("approve", {"shown": "mine"}, [DOCUMENT], "mine"),
    "answers while a gate waits": ("send", {}, [DOCUMENT], None),
    "answers, the questions' document": ("send", {}, [ROUND], ROUND),
    "an approval while questions wait": ("approve", {}, [ROUND], None),
}


@pytest.mark.parametrize("case", CARRIED)
def test_cw23_an_order_carries_what_was_seen_of_the_document_it_is_about(tmp_path: Path, case: str) -> None:
    name, given, visited, about = CARRIED[case]

    async def story() -> None:
        drafts = {
            DOCUMENT: Draft(OPTIONS, DOCUMENT),
            BEFORE: Draft(msgspec.structs.replace(CHECKS, stage="before"), BEFORE),
            ROUND: Draft(QUESTIONS, ROUND),
        }
        async with Inside(tmp_path, PLAIN) as editor:
            editor.daemon.answers[GetForm] = lambda query: drafts[query.document].form(query.document)
            editor.daemon.answers[EditDraft] = lambda order: drafts[order.document].edit(order)
            kind = "decision" if ROUND in visited else "gate"
            editor.changed(task(tmp_path, waits(kind, ROUND if ROUND in visited else DOCUMENT)))
            for path in visited:
                uri = editor.visit(editor.file(path, drafts[path].text))
                await editor.actions(uri)
                text = editor.texts[uri]
                editor.type(uri, text.replace("- [ ] ", "- [x] ", 1))
            await editor.command(name, project=str(tmp_path), task=1, **given)
            kinds: dict[str, Any] = {"approve": Approve, "send": SendAnswers}
            (order,) = editor.ordered(kinds[name])
            draft = drafts.get(about or "")
            seen = forms.shown(draft.definition, draft.text) if draft is not None else about or ""
            assert order.shown == seen
            assert order.answers == given.get("answers", {})
            if draft is not None:
                assert "- [x] " in draft.text, "what was typed was sent before"
                others = [d for d in drafts.values() if d is not draft]
                assert all(d.version == 1 for d in others), "nothing else was"

    run(story())


def test_cw23_a_redo_sends_what_stands_there_and_vouches_for_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        draft = Draft(OPTIONS, DOCUMENT)
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, draft)
            await editor.actions(uri)
            editor.replace(uri, "## A", ">> smaller\n\n## A")
            await editor.command("redo", project=str(tmp_path), task=1)
            assert ">> smaller" in draft.text
            (order,) = editor.ordered(Redo)
            assert order == Redo(project=str(tmp_path), task=1, feedback=order.feedback)

    run(story())
