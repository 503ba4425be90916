"""A whole run in an editor that knows nothing of us, with standard requests only (ED-9, UX 5)."""

import asyncio
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers, file_of, line_of
from rig.server_stories import rewritten, written
from rig.standard_texts import PULL_REQUEST, REDO_FEEDBACK, REFINEMENT_INPUT, TITLE
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

AGENT = "rehearsal-fast:standard"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


@pytest.fixture
def sample(user: User) -> Path:
    """The person's project is the shipped sample."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SHIPPED / "standard" / "project", user.project, dirs_exist_ok=True, ignore=ignore)
    user.commit_all()
    return user.project


class Person:
    """Somebody at a plain editor, who goes where its list of diagnostics says that something waits."""

    def __init__(self, editor: Buffers, project: Path) -> None:
        self.editor = editor
        self.project = project
        self.tasks = project / ".promptside" / "tasks"

    def file(self, pattern: str) -> Path:
        """The one document of the only task with such a name."""
        (found,) = self.tasks.glob(f"*/{pattern}")
        return found

    async def waits(self, name: str, words: str = "Waits for you") -> str:
        """Wait until the list of diagnostics names this document, and visit it; its uri."""
        heard = self.editor

        def named() -> str | None:
            for uri, said in heard.said.items():
                if uri.endswith(name) and any(d["message"].startswith(words) for d in said):
                    return uri
            return None

        at = 0
        while (uri := named()) is None:
            await heard.until(lambda m: m.get("method") == "textDocument/publishDiagnostics", at)
            at = len(heard.heard)
        await written(file_of(uri))
        return uri if uri in heard.texts else heard.visit(file_of(uri))

    async def answer(self, uri: str, title: str, before: str) -> None:
        """Choose an action that answers an item, then save."""
        text = self.editor.texts[uri]
        await self.editor.choose(uri, title, line_of(text, before))
        if self.editor.takes_edits:
            self.editor.save(uri)
        else:
            await rewritten(file_of(uri), text)
            self.editor.reload(uri)

    async def approve(self, name: str, title: str = "Approve") -> None:
        """Approve the document that waits, and close it."""
        uri = await self.waits(name)
        await self.editor.choose(uri, title)
        self.editor.leave(uri)


@pytest.mark.parametrize("capabilities", [PLAIN, MINIMAL], ids=["plain", "minimal"])
def test_ed9_a_whole_run_from_a_new_task_to_a_pull_request_text(
    user: User, sample: Path, capabilities: dict[str, Any]
) -> None:
    async def story() -> None:
        async with Buffers(user, capabilities, name="Kate") as editor:
            await whole_run(editor, sample)

    run(story())
    task = user.task()
    assert task["state"] == "completed"
    assert [stage["status"] for stage in task["stages"]] == ["approved"] * 7
    assert [len(stage["attempts"]) for stage in task["stages"]] == [1, 1, 2, 1, 1, 1, 1]
    assert {stage["approval"]["client"] for stage in task["stages"]} == {"kate"}
    assert PULL_REQUEST["title"] in (sample / task["stages"][-1]["artifact"]).read_text("utf-8")


async def whole_run(editor: Buffers, project: Path) -> None:
    """Nothing here but documents, code actions and commands."""
    person = Person(editor, project)
    draft = editor.visit(file_of(await editor.command("draftTask", project=str(project))))
    for label, value in (
        ("Title (required)", TITLE),
        ("Description (required)", "As titled."),
        ("Agent", AGENT),
    ):
        editor.replace(draft, f"## {label}\n", f"## {label}\n\n{value}\n")
    editor.save(draft)
    await editor.choose(draft, "Create and run")
    editor.leave(draft)

    questions = await person.waits("01-research-questions-1.md")
    await person.answer(questions, "Take the recommended", "# Questions")
    await editor.choose(questions, "Send answers")
    editor.leave(questions)
    await person.approve("01-research.md")

    options = await person.waits("02-high-level-approaches.md")
    await editor.choose(options, "Select A and approve", line_of(editor.texts[options], "## A"))
    editor.leave(options)

    plan = await person.waits("03-planning.md")
    if editor.takes_edits:
        await editor.choose(plan, "Redo…")
        editor.replace(plan, ">> ", f">> {REDO_FEEDBACK}")
    else:
        head = editor.texts[plan].partition("\n")[0]
        editor.replace(plan, f"{head}\n", f"{head}\n>> {REDO_FEEDBACK}\n")
    editor.save(plan)
    await editor.diagnosed(plan, lambda said: any(d["code"] == "gate-notes" for d in said))
    await editor.choose(plan, "Redo with 1 note")
    editor.leave(plan)
    await written(file_of(plan), "#2 text -->")
    await person.approve("03-planning.md")

    card = await person.waits("task.md", "The agent wants to")
    await editor.choose(card, "Always in this project")
    await person.approve("04-implementation.md")

    await editor.diagnosed(card, lambda said: any("your input" in d["message"] for d in said))
    head = editor.texts[card].partition("\n")[0]
    editor.replace(card, f"{head}\n", f"{head}\n>> {REFINEMENT_INPUT}\n")
    await editor.choose(card, "Run Refinement with 1 note")
    await person.approve("05-refinement.md")

    review = await person.waits("06-security-review.md")
    for line in [line for line in editor.texts[review].split("\n") if line.startswith("- [ ] **")]:
        ref = line.split("**")[1]
        await person.answer(review, f"Tick {ref}", f"**{ref}**")
    await editor.diagnosed(review, lambda said: not said)
    await editor.choose(review, "Approve")
    editor.leave(review)
    await person.approve("07-pr-preparation.md")
