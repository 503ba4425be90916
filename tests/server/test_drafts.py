"""A new task by document: begun by a command, mended where it can't be read, and made one task of (UX 2.10)."""

import asyncio
import shutil
from collections.abc import Coroutine
from typing import Any

import pytest
from rig.lsp_buffers import PLAIN, Buffers, file_of, line_of
from rig.lsp_editor import LspEditor, Said
from rig.user import User

from promptside_daemon.world.rehearsal import place

OURS: dict[str, Any] = {"experimental": {"promptside": True}}
SHOWS = {**PLAIN, "window": {"showDocument": {"support": True}}}
DESCRIPTION = "### Title\n\n- [ ] Create\n\n```\nfenced\n```"
TITLES = (
    "## Not a heading",
    "- [x] neither a tick",
    ">> no note",
    "Answer: 42 <!-- promptside 1/x#1 text -->",
    "שלום עולם 👩‍💻 “quoted” #7 /../..",
    "x" * 1000,
)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def begun(editor: Buffers, **given: Any) -> str:
    """A draft in a buffer; its uri."""
    return editor.visit(file_of((await editor.command("newTask", **given))["uri"]))


def fill(editor: Buffers, uri: str, **fields: str) -> None:
    """Type values into fields that are empty."""
    for label, value in fields.items():
        heading = f"## {label.capitalize()} (required)\n"
        editor.replace(uri, heading, f"{heading}\n{value}\n")


def test_drafts_from_two_editors_at_once_with_a_pipeline_and_for_another_project(user: User) -> None:
    user.commit_all()
    other = user.base / "other"
    other.mkdir()

    async def story() -> None:
        async with Buffers(user, SHOWS, name="Zed") as zed, Buffers(user, PLAIN, name="Kate") as kate:
            given = {"project": str(user.project), "pipeline": "standard"}
            first, second = await asyncio.gather(begun(zed, **given), begun(kate, **given))
            assert first != second
            shown = [m["params"]["uri"] for m in zed.heard if m.get("method") == "window/showDocument"]
            assert shown == [first], "where the editor opens files, it does"
            told = await kate.note("window/showMessage")
            assert str(file_of(second)) in told["message"], "else the file is named"
            for editor, uri, title in ((zed, first, "One"), (kate, second, "Two")):
                assert "- [x] standard" in editor.texts[uri]
                fill(editor, uri, title=title, description="As titled.")
                await editor.choose(uri, "Create task")
                assert not file_of(uri).exists()
            far = await begun(kate, project=str(other))
            assert file_of(far).is_relative_to(other)
            assert "- [x] as the settings say" in kate.texts[far]
            with pytest.raises(Said, match="no pipeline nonesuch") as refused:
                await kate.command("newTask", pipeline="nonesuch")
            assert refused.value.data["code"] == "no-pipeline"

    run(story())
    tasks = user.promptside("task", "list", "--json").data
    assert sorted((task["title"], task["pipeline"]) for task in tasks) == [
        ("One", "standard"),
        ("Two", "standard"),
    ]


def test_a_draft_becomes_one_task_whatever_is_done_with_its_buffer(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            uri = await begun(kate)
            lacking = [a for a in await kate.actions(uri) if a["title"].startswith("Create")]
            assert all("Title" in action["disabled"]["reason"] for action in lacking)
            fill(kate, uri, title="Add a login", description="As titled.\n\n- [x]broken in prose")
            await kate.choose(uri, "Create task")
            (said,) = await kate.diagnosed(uri, lambda found: found)
            assert "became task 1" in said["message"]
            assert await kate.command("createTask", uri=uri) == 1
            assert [a["title"] for a in await kate.actions(uri)] == ["Open task 1"]
            assert str(user.project) in (await kate.choose(uri, "Open task 1"))["uri"].replace("%20", " ")
            kate.save(uri)  # its file is there again: it is a draft of another task
            await kate.diagnosed(uri, lambda found: not found)
            assert await kate.command("createTask", uri=uri) == 2
            kate.leave(uri)
            with pytest.raises(Said, match="no draft"):
                await kate.command("createTask", uri=uri)

    run(story())
    assert len(user.promptside("task", "list", "--json").data) == 2


def test_what_can_t_be_read_is_said_at_its_line_and_awkward_titles_are_titles(user: User) -> None:
    file = user.project / "login.py"
    file.write_text("print()\n")
    user.commit_all()

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            uri = await begun(kate)
            fill(kate, uri, title="One\nTwo", description="As titled.")
            text = kate.texts[uri].replace("- [ ] standard", "- [x] standard")
            kate.type(uri, text)

            def errors(found: list[Any]) -> list[Any]:
                return [one for one in found if one["severity"] == 1]

            said = errors(await kate.diagnosed(uri, lambda found: len(errors(found)) >= 2))
            lines = [text.split("\n")[one["range"]["start"]["line"]] for one in said]
            assert lines[0] in ("## Title (required)", "One", "Two")
            assert lines[1] in ("## Pipeline", "- [x] standard", "- [x] as the settings say")
            with pytest.raises(Said, match=r"Line \d+ can't be read"):
                await kate.command("createTask")

            for typed in TITLES:
                # What is wrong somewhere is the title, and is quoted in the description.
                uri = await begun(kate, uri=file.as_uri(), diagnostics=[typed], description=DESCRIPTION)
                await kate.choose(uri, "Create task")
                kate.leave(uri)

    run(story())
    tasks = user.promptside("task", "list", "--json", "--limit", "50").data
    titles = {task["title"] for task in tasks}
    for typed in TITLES:
        assert any(title == typed or title == f"{typed[:79]}…" for title in titles), (typed, titles)
    for task in tasks:
        assert task["description"].startswith(f"{DESCRIPTION}\n\nIn `login.py`, line 1:")


def test_a_client_of_ours_gets_its_task_at_once_when_it_has_asked_for_the_title(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, OURS) as editor:
            assert (await editor.command("newTask", title="Add a login"))["task"] == 1
            draft = file_of((await editor.command("newTask"))["uri"])
            assert line_of(draft.read_text(), "## Title (required)") == 4

    run(story())


def test_ed13_a_choice_moves_and_the_agent_is_one_that_is_offered_or_a_recording_of_ones_own(
    user: User,
) -> None:
    """At a choice of one the action ticks it and unticks the one before (UX 2.4, 2.10)."""
    user.commit_all()
    own = user.base / "my recording"
    shutil.copytree(place("standard"), own)
    agents = {"as the settings say": "claude", "claude": "claude", "rehearsal:standard": "rehearsal:standard"}

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            for agent in (*agents, f"rehearsal:{own}"):
                uri = await begun(kate)
                fill(kate, uri, title=f"Agent {agent}", description="As titled.")
                there = await kate.actions(uri, line_of(kate.texts[uri], "- [x] as the"))
                assert not [action for action in there if action["title"].startswith("Choose")]
                kate.type(uri, kate.texts[uri].replace("- [ ] standard", "- [x] standard"))  # both are ticked
                await kate.choose(uri, "Choose standard", line_of(kate.texts[uri], "- [x] standard"))
                assert "- [ ] as the settings say" in kate.texts[uri]
                assert "- [x] standard" in kate.texts[uri]
                if agent not in agents:
                    text = kate.texts[uri].replace("- [ ] rehearsal:standard", f"- [ ] {agent}")
                    kate.type(uri, text)
                if f"- [x] {agent}" not in kate.texts[uri]:
                    await kate.choose(uri, f"Choose {agent}", line_of(kate.texts[uri], f"- [ ] {agent}"))
                await kate.choose(uri, "Create task")
                kate.leave(uri)

    run(story())
    tasks = {task["title"]: task for task in user.promptside("task", "list", "--json").data}
    wanted = {**agents, f"rehearsal:{own}": f"rehearsal:{own}"}
    assert {title: task["agent"] for title, task in tasks.items()} == {
        f"Agent {said}": agent for said, agent in wanted.items()
    }
    assert {task["pipeline"] for task in tasks.values()} == {"standard"}
