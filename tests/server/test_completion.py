"""What an editor asks a form document for: completion, hover, links, folds, symbols, hints."""

import asyncio
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.inside import Draft, Inside, stage, view, waits
from rig.lsp_buffers import MINIMAL, PLAIN, line_of

from promptside_protocol import forms
from promptside_protocol.views import AttemptView
from promptside_server.features import completion_forms

DOCUMENT = ".promptside/tasks/1-add-a-login/01-work.md"
AT: dict[str, Any] = {"task": 1, "stage": "work", "attempt": 1, "title": "Work"}
CHOICES = (forms.Choice(id="A", title="Sessions"), forms.Choice(id="B", title="Tokens"))
QUESTIONS = forms.QuestionsDefinition(
    **AT,
    round=1,
    items=(
        forms.Question(id="Q1", kind="one", text="Which login?", options=CHOICES, other=True),
        forms.Question(id="Q2", kind="files", text="Which files?", required=False),
        forms.Question(id="Q3", kind="text", text="Why?"),
    ),
)
OPTIONS = forms.OptionsDefinition(
    **AT,
    options=(
        forms.Option(id="A", title="Session cookies", recommended=True),
        forms.Option(id="B", title="Signed 🦊 tokens"),
    ),
)
CHECKS = forms.ChecklistDefinition(
    **AT,
    items=(
        forms.CheckItem(id="C1", severity="critical", title="No limit", path="src/a b.py", line=2),
        forms.CheckItem(id="I1", severity="info", title="Long words", detail="Some\ndetail."),
    ),
)
FIELDS = forms.FieldsDefinition(
    **AT,
    fields=(
        forms.Field(key="title", label="Title", widget="line", required=True, value="Add login"),
        forms.Field(key="test_plan", label="Test plan", required=True),
        forms.Field(key="breaking", label="Breaking change", widget="boolean", value=False),
    ),
)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def opened(editor: Inside, definition: forms.Definition) -> str:
    """The document of a form that waits; its uri."""
    draft = editor.form(Draft(definition, DOCUMENT))
    kind = "decision" if isinstance(definition, forms.QuestionsDefinition) else "gate"
    work = stage(artifact=DOCUMENT, attempts=(ATTEMPT,))
    editor.changed(view(editor.project, stages=(work,), waiting_for=waits(kind, DOCUMENT)))
    return editor.visit(editor.file(DOCUMENT, draft.text))


ATTEMPT = AttemptView(
    n=1, id="a1", status="done", cause="run", session="", started=1.0, ended=111.0, duration_s=110.0,
    input_tokens=1, output_tokens=1, cost_usd=0.09, model="", prompt="", transcript="", error=None,
)  # fmt: skip


def place(uri: str, line: int, character: int = 0) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}


async def completed(editor: Inside, uri: str, typed: str, old: str) -> Any:
    """What is offered behind `typed`, which is put in the place of a line."""
    editor.replace(uri, f"\n{old}\n", f"\n{typed}\n")
    line = line_of(editor.texts[uri], typed)
    units = len(typed.encode("utf-16-le")) // 2
    return await editor.ask("textDocument/completion", place(uri, line, units))


def labels(answer: Any) -> list[str]:
    items = answer["items"] if isinstance(answer, dict) else answer or []
    return [item["label"] for item in items]


# --- files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with tracked, new, ignored and deleted files."""
    folder = tmp_path / "a project"
    for name in ("src/router.ts", "src/a b.py", "deep/er/src.ts", "gone.ts", "node_modules/x.ts", "new.ts"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("one\ntwo\n")
    (folder / "src" / "größe 漢.ts").write_text("x\n")
    (folder / ".gitignore").write_text("node_modules/\n*.log\n")
    (folder / "it.log").write_text("")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "rm", "--quiet", "--cached", "new.ts")
    (folder / "gone.ts").unlink()
    return folder


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


TYPED: dict[str, tuple[str, list[str]]] = {
    "what begins so, shallow first": (
        "- src",
        ["src/a b.py", "src/größe 漢.ts", "src/router.ts", "deep/er/src.ts"],
    ),
    "a part of a name": ("- rout", ["src/router.ts"]),
    "capitals or not": ("- SRC/R", ["src/router.ts"]),
    "a name with a blank": ("- src/a ", ["src/a b.py"]),
    "in backticks": ("- `src/r", ["src/router.ts"]),
    "another bullet": ("* rout", ["src/router.ts"]),
    "without a bullet": ("rout", ["src/router.ts"]),
    "a file git does not know yet": ("- new", ["new.ts"]),
    "ignored files are none": ("- .log", []),
    "nor are ignored folders": ("- x.ts", []),
    "nor deleted ones": ("- gone", []),
    "nor ours": ("- 01-work", []),
    "a note to the agent is none": (">> src", []),
}


@pytest.mark.parametrize("case", TYPED)
def test_ux27_paths_are_offered_behind_files(project: Path, case: str) -> None:
    typed, wanted = TYPED[case]

    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            uri = opened(editor, QUESTIONS)
            editor.replace(uri, "Files:\n", f"Files:\n{typed}\n")
            line = line_of(editor.texts[uri], "Files:") + 1
            answer = await editor.ask("textDocument/completion", place(uri, line, len(typed)))
            assert labels(answer) == wanted

    run(story())


def test_what_is_chosen_replaces_the_whole_entry(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            uri = opened(editor, QUESTIONS)
            editor.replace(uri, "Files:\n", "Files:\n- größ and more\nrout\n")
            line = line_of(editor.texts[uri], "größ")
            answer = await editor.ask("textDocument/completion", place(uri, line, 6))
            editor.apply({"changes": {uri: [answer[0]["textEdit"]]}})
            assert "\n- src/größe 漢.ts\n" in editor.texts[uri]
            answer = await editor.ask("textDocument/completion", place(uri, line + 1, 4))
            editor.apply({"changes": {uri: [answer[0]["textEdit"]]}})
            assert "\n- src/router.ts\n" in editor.texts[uri]

    run(story())


def test_more_than_can_be_listed_is_said_to_be_more(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_forms, "MOST", 2)

    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            uri = opened(editor, QUESTIONS)
            first = await completed(editor, uri, "Files: src", "Files:")
            assert first["isIncomplete"]
            assert labels(first) == ["src/a b.py", "src/größe 漢.ts"]
            second = await completed(editor, uri, "Files: src/r", "Files: src")
            assert labels(second) == ["src/router.ts"]
            assert not isinstance(second, dict)

    run(story())


def test_outside_of_a_repository_the_folder_is_walked(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            editor.file("src/one.py", "")
            editor.file("node_modules/two.py", "")
            uri = opened(editor, QUESTIONS)
            assert labels(await completed(editor, uri, "Files: .py", "Files:")) == ["src/one.py"]

    run(story())


def test_a_repository_runs_no_program_of_its_own_for_a_completion(project: Path) -> None:
    (project / "spy").write_text(f"#!/bin/sh\ntouch '{project}/ran'\n")
    (project / "spy").chmod(0o755)
    git(project, "config", "core.fsmonitor", f"'{project}/spy'")

    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            uri = opened(editor, QUESTIONS)
            assert labels(await completed(editor, uri, "Files: rout", "Files:")) == ["src/router.ts"]
            assert not (project / "ran").exists()

    run(story())


def test_paths_are_offered_in_a_new_tasks_document(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            text = "# New task\n\n## Title (required)\n\nrout\n\n## Affected files\n\n- rout\n"
            uri = editor.visit(editor.file(".promptside/drafts/task-1.md", text))
            assert labels(await editor.ask("textDocument/completion", place(uri, 8, 6))) == ["src/router.ts"]
            assert not labels(await editor.ask("textDocument/completion", place(uri, 4, 4)))

    run(story())


# --- ids -----------------------------------------------------------------------------------------------------

BOXES: dict[str, tuple[forms.Definition, str, str, list[str]]] = {
    "an option": (OPTIONS, "- [ ] Select B", "- [X] Sel", ["Select B"]),
    "an option without a blank": (OPTIONS, "- [ ] Select B", "- [x]", ["Select B"]),
    "a question": (QUESTIONS, "- [ ] B · Tokens", "- [x] ", ["B · Tokens"]),
    "prose is none": (OPTIONS, "- [ ] Select B", "Sel 1", []),
}


@pytest.mark.parametrize("case", BOXES)
def test_ids_are_offered_behind_the_brackets(tmp_path: Path, case: str) -> None:
    definition, old, typed, wanted = BOXES[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, definition)
            answer = await completed(editor, uri, typed, old)
            assert labels(answer) == wanted
            if wanted:
                editor.apply({"changes": {uri: [answer[0]["textEdit"]]}})
                mended = await editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
                assert mended
                assert f"] {wanted[0]}\n" in editor.texts[uri]

    run(story())


# --- hover ---------------------------------------------------------------------------------------------------

FROM = "From Work, attempt 1, 1 min 50 s, $0.09."
HOVERS: dict[str, tuple[forms.Definition, tuple[str, str], str, list[str]]] = {
    "an option": (
        OPTIONS,
        ("", ""),
        "## A",
        ["A: Session cookies (an option, recommended)", "Answer: none yet", FROM],
    ),
    "a selected option": (
        OPTIONS,
        ("[ ] Select B", "[x] Select B"),
        "## B",
        ["B: Signed 🦊 tokens (an option)", "Answer: selected", FROM],
    ),
    "a point": (
        CHECKS,
        ("", ""),
        "**C1**",
        [
            "C1: No limit (a critical point, src/a b.py:2)",
            "Answer: none yet",
            "Lacks: C1 is not ticked.",
            FROM,
        ],
    ),
    "a point with a note": (
        CHECKS,
        ("[ ] **I1**", "[x] **I1**"),
        "**I1**",
        ["I1: Long words (an information)", "Answer: reviewed", FROM],
    ),
    "a field the agent filled": (
        FIELDS,
        ("", ""),
        "## Title",
        ["Title (a field, required)", "Answer: Add login", FROM],
    ),
    "an empty field": (
        FIELDS,
        ("", ""),
        "## Test plan",
        [
            "Test plan (a field, required)",
            "Answer: none yet",
            "Lacks: Test plan is required and still empty.",
            FROM,
        ],
    ),
    "a question": (
        QUESTIONS,
        ("[ ] B", "[x] B"),
        "## Q1",
        ["Q1: Which login? (a question, choose one, required)", "Answer: B", FROM],
    ),
    "prose says nothing": (OPTIONS, ("", ""), "> Select", []),
}


@pytest.mark.parametrize("case", HOVERS)
def test_hover_says_what_an_item_is_and_what_it_lacks(tmp_path: Path, case: str) -> None:
    definition, (old, new), line, wanted = HOVERS[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, definition)
            if old:
                editor.replace(uri, old, new)
            answer = await editor.ask("textDocument/hover", place(uri, line_of(editor.texts[uri], line), 3))
            if not wanted:
                assert answer is None
                return
            assert answer["contents"]["value"].split("\n") == wanted
            assert answer["contents"]["kind"] == "plaintext"

    run(story())


# --- links ---------------------------------------------------------------------------------------------------

LINKED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "a path": ("See src/router.ts for it.", [("src/router.ts", "src/router.ts")]),
    "a path with a line": ("See `src/router.ts:2`.", [("src/router.ts:2", "src/router.ts#L2")]),
    "a line and a column": ("src/router.ts:2:7: error", [("src/router.ts:2:7", "src/router.ts#L2")]),
    "a name with blanks": ("- [ ] **C1** It `src/a b.py:2`", [("src/a b.py:2", "src/a%20b.py#L2")]),
    "behind wide letters": ("🦊漢 src/router.ts", [("src/router.ts", "src/router.ts")]),
    "an entry of a list": ("- src/a b.py", [("src/a b.py", "src/a%20b.py")]),
    "two": ("`new.ts` and `src/router.ts:1`", [("new.ts", "new.ts"), ("src/router.ts:1", "src/router.ts#L1")]),
    "no such file": ("See src/rooter.ts:2.", []),
    "a folder": ("See `src`.", []),
    "outside": ("See `../outside.ts` and `/etc/hostname`.", []),
    "code that is no path": ("Run `npm test -- --all`, e.g. twice.", []),
    "a name too long for a system": (f"`{'x' * 5000}.ts`", []),
}  # fmt: skip


@pytest.mark.parametrize("case", LINKED)
def test_paths_in_a_document_are_links(project: Path, case: str) -> None:
    line, wanted = LINKED[case]
    (project.parent / "outside.ts").write_text("")

    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            editor.changed(view(project))
            uri = editor.visit(editor.file(DOCUMENT, f"# Work\n\n{line}\n"))
            links = await editor.ask("textDocument/documentLink", {"textDocument": {"uri": uri}})
            units = line.encode("utf-16-le")

            def words(link: Any) -> str:
                start, end = (link["range"][side]["character"] for side in ("start", "end"))
                return units[2 * start : 2 * end].decode("utf-16-le")

            base = project.as_uri() + "/"
            assert [(words(link), link["target"].removeprefix(base)) for link in links] == wanted

    run(story())


# --- folds, symbols, hints -----------------------------------------------------------------------------------

SHAPES: dict[str, tuple[forms.Definition, list[str]]] = {
    "options": (OPTIONS, ["A · Session cookies (recommended)", "B · Signed 🦊 tokens"]),
    "checklist": (CHECKS, ["C1 No limit `src/a b.py:2`", "I1 Long words"]),
    "fields": (FIELDS, ["Title (required)", "Test plan (required)", "Breaking change"]),
}


@pytest.mark.parametrize("case", SHAPES)
def test_items_are_symbols_and_fold(tmp_path: Path, case: str) -> None:
    definition, names = SHAPES[case]

    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            uri = opened(editor, definition)
            document = {"textDocument": {"uri": uri}}
            symbols = await editor.ask("textDocument/documentSymbol", document)
            assert [symbol["name"] for symbol in symbols] == names
            folds = await editor.ask("textDocument/foldingRange", document)
            lines = editor.texts[uri].split("\n")
            for fold in folds:
                assert lines[fold["endLine"]].strip()
                assert fold["startLine"] in {s["range"]["start"]["line"] for s in symbols}

    run(story())


@pytest.mark.parametrize(("lenses", "count"), [(True, 0), (False, 3)])
def test_hints_stand_in_for_lenses_only(tmp_path: Path, lenses: bool, count: int) -> None:
    async def story() -> None:
        has = {"codeLens": {}} if lenses else {}
        capabilities = {**MINIMAL, "textDocument": {**MINIMAL["textDocument"], "inlayHint": {}, **has}}
        async with Inside(tmp_path, capabilities) as editor:
            uri = opened(editor, CHECKS)
            everything = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
            hints = {"textDocument": {"uri": uri}, "range": everything}
            found = await editor.ask("textDocument/inlayHint", hints)
            assert len(found) == count

    run(story())
