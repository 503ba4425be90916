"""A whole run in an editor that knows nothing of us: from a new task to a pull request's text (ED-9, UX 5).

Everything that is done here is a standard request on a document, by a pytest-lsp client; what the server may use
in return is what that client announced.
"""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from lsprotocol import types
from rig.lsp_buffers import file_of
from rig.lsp_client import ONLY, USUAL, LspClient, lsp_client
from rig.messages_api import MessagesAPI
from rig.server_stories import rewritten, written
from rig.stages import in_stage
from rig.standard_replies import replies
from rig.standard_texts import PULL_REQUEST, REDO_FEEDBACK, REFINEMENT_INPUT, TITLE
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

ATTEMPTS = [1, 1, 2, 1, 1, 1, 1]
AFTER: dict[str, str] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "rehearsals" / "standard-after.json").read_text("utf-8")
)
"""The files that the agent has written in the end."""
ALWAYS = {types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, types.WINDOW_SHOW_MESSAGE}
"""What a server may use unasked."""


@pytest.fixture
def sample(user: User) -> Path:
    """The person's project is the shipped sample."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SHIPPED / "standard" / "project", user.project, dirs_exist_ok=True, ignore=ignore)
    user.commit_all()
    return user.project


def test_ed9_a_whole_run_with_commands_code_actions_and_diagnostics_only(user: User, sample: Path) -> None:
    async def story() -> None:
        async with lsp_client(user, ONLY, "Kate") as editor:
            await whole_run(editor, sample, agent="rehearsal-fast:standard")
            assert editor.heard <= ALWAYS

    asyncio.run(story())
    is_done(user, sample, client="kate")


@pytest.mark.timeout(300)  # eight runs of the real agent, on a machine that may be busy
def test_ed9_a_whole_run_with_the_real_agent(user: User, api: MessagesAPI, sample: Path) -> None:
    scripts = replies(sample)
    for stage in dict.fromkeys(name.partition(".")[0] for name in scripts):
        api.add(in_stage(stage, *scripts[f"{stage}.1"], *scripts.get(f"{stage}.2", ())))

    async def story() -> None:
        async with lsp_client(user, USUAL, "Zed") as editor:
            await whole_run(editor, sample)
            assert editor.heard <= {*ALWAYS, types.WORKSPACE_APPLY_EDIT}

    asyncio.run(story())
    is_done(user, sample, client="zed")
    assert {path: (sample / path).read_text("utf-8") for path in AFTER} == AFTER
    asked = [request.everything for request in api.requests]
    for words in (REDO_FEEDBACK, REFINEMENT_INPUT):
        assert any(words in one for one in asked)


def is_done(user: User, project: Path, client: str) -> None:
    """The task is completed, with two attempts where it was sent back, and its last form is filled."""
    task = user.task()
    assert task["state"] == "completed"
    assert [stage["status"] for stage in task["stages"]] == ["approved"] * 7
    assert [len(stage["attempts"]) for stage in task["stages"]] == ATTEMPTS
    assert {stage["approval"]["client"] for stage in task["stages"]} == {client}
    form = (project / task["stages"][-1]["artifact"]).read_text("utf-8")
    assert PULL_REQUEST["title"] in form
    assert PULL_REQUEST["test_plan"].splitlines()[0] in form


class Person:
    """Goes where the list of diagnostics says that something waits, and answers there."""

    def __init__(self, editor: LspClient) -> None:
        self.editor = editor

    async def waits(self, name: str, words: str = "Waits for you") -> str:
        """Wait until the list names this document, and visit it; its uri."""
        editor = self.editor

        def named() -> str | None:
            for uri, said in editor.lsp.diagnostics.items():
                if uri.endswith(name) and any(words in one.message for one in said):
                    return uri
            return None

        uri = str(await editor.until(named))
        await written(file_of(uri))
        return uri if uri in editor.texts else editor.visit(file_of(uri))

    async def answer(self, uri: str, title: str, before: str) -> None:
        """Choose an action that answers an item, then save, or read what the daemon wrote."""
        text = self.editor.texts[uri]
        await self.editor.choose(uri, title, before)
        if self.editor.takes_edits:
            self.editor.save(uri)
        else:
            await rewritten(file_of(uri), text)
            self.editor.type(uri, file_of(uri).read_bytes().decode())

    async def note(self, uri: str, words: str, title: str = "") -> None:
        """Write a note to the agent below the title, by an action that begins it where there is one, and save."""
        editor = self.editor
        if title and editor.takes_edits:
            await editor.choose(uri, title)
            editor.replace(uri, ">> ", f">> {words}")
        else:
            head = editor.texts[uri].partition("\n")[0]
            editor.replace(uri, f"{head}\n", f"{head}\n>> {words}\n")
        editor.save(uri)
        await editor.until(lambda: any(one.code == "gate-notes" for one in editor.said(uri)))

    async def approve(self, name: str) -> None:
        """Approve the document that waits, and close it."""
        uri = await self.waits(name)
        await self.editor.choose(uri, "Approve")
        self.editor.leave(uri)


async def whole_run(editor: LspClient, project: Path, agent: str = "") -> None:
    """Nothing here but documents, code actions and commands."""
    person = Person(editor)
    desk = project / ".promptside" / "DESK.md"
    page = editor.visit(desk)  # it is not there yet
    await written(desk, "New task…")
    begun = await editor.choose(page, "New task…")
    draft = editor.visit(file_of(begun["uri"]))
    for label, value in (
        ("Title (required)", TITLE),
        ("Description (required)", "As titled."),
    ):
        editor.replace(draft, f"## {label}\n", f"## {label}\n\n{value}\n")
    if agent:
        editor.replace(
            draft, "- [x] as the settings say\n- [ ] claude", "- [ ] as the settings say\n- [ ] claude"
        )
        editor.replace(draft, "- [ ] rehearsal:standard", f"- [x] {agent}")
    editor.save(draft)
    await editor.choose(draft, "Create and run")
    editor.leave(draft)

    questions = await person.waits("01-research-questions-1.md")
    await written(desk, f"      {file_of(questions).relative_to(desk.parent)}\n")
    await person.answer(questions, "Tick the recommended", "# Questions")
    await editor.choose(questions, "Send answers")
    editor.leave(questions)
    await person.approve("01-research.md")

    options = await person.waits("02-high-level-approaches.md")
    editor.replace(options, "- [ ] Select A", "- [x] Select A")
    editor.save(options)
    await editor.choose(options, "Approve A")
    editor.leave(options)

    plan = await person.waits("03-planning.md")
    await person.note(plan, REDO_FEEDBACK, "Redo…")
    await editor.choose(plan, "Redo with 1 note")
    editor.leave(plan)
    await written(file_of(plan), "#2 text -->")
    await person.approve("03-planning.md")

    card = await person.waits("task.md", "The agent wants to")
    await editor.choose(card, "Always in this project")
    await person.approve("04-implementation.md")

    await person.waits("task.md", "your input")
    await person.note(card, REFINEMENT_INPUT)
    await editor.choose(card, "Run Refinement with 1 note")
    assert (REFINEMENT_INPUT in editor.texts[card]) != editor.takes_edits  # nothing is said twice
    await person.approve("05-refinement.md")

    review = await person.waits("06-security-review.md")
    first, *others = [line for line in editor.texts[review].split("\n") if line.startswith("- [ ] **")]
    editor.replace(review, first, first.replace("[ ]", "[x]"))
    editor.save(review)
    for line in others:
        ref = line.split("**")[1]
        await person.answer(review, f"Tick {ref}", f"**{ref}**")
    await editor.until(lambda: not editor.said(review))
    await editor.choose(review, "Approve")
    editor.leave(review)
    await person.approve("07-pr-preparation.md")
    await written(desk, "## Done (1)")
