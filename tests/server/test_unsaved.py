"""Files that an editor holds unsaved: named before a writing stage starts, asked about before they change (ED-11)."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_buffers import PLAIN, Buffers
from rig.lsp_editor import LspEditor, Said
from rig.messages_api import Hold, MessagesAPI, Reply, Text, say, use
from rig.short_pipeline import NAME, short
from rig.user import User

AGENT = "rehearsal-fast"
BEFORE, AFTER = "first line\nsecond line\n", "first line\nanother line\n"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def source(user: User) -> Path:
    """A file of the project, which is committed."""
    file = user.project / "src" / "login.txt"
    file.parent.mkdir()
    file.write_text(BEFORE)
    user.commit_all()
    return file


def edits(file: Path) -> tuple[Reply, ...]:
    """What the model does: it changes the second line."""
    change = {"file_path": str(file), "old_string": "second", "new_string": "another"}
    return use("Read", file_path=str(file)), use("Edit", **change), say("Done.")


async def held(user: User, file: Path) -> None:
    """Wait until the agent at work is told of an unsaved file."""
    async with asyncio.timeout(60):
        while not any(  # noqa: ASYNC110  # nobody tells of it
            str(file) in listed.read_text() for listed in user.data.rglob("attempts/*/unsaved.json")
        ):
            await asyncio.sleep(0.01)


async def waits(user: User) -> Any:
    return (await asyncio.to_thread(user.waits, "decision"))["decisions"][0]


async def until_said(user: User, words: str) -> None:
    await asyncio.to_thread(
        user.until, lambda task: any(words in d["why"] for d in task["decisions"]) or None
    )


def test_ed11_a_run_is_refused_and_given_anyway_and_the_edit_waits_until_it_is_allowed(
    user: User, api: MessagesAPI
) -> None:
    """The real claude: the file is opened through a link, saved meanwhile, and changed when the person says so."""
    file = source(user)
    api.add(short(user, *edits(file)))
    user.promptside("task", "new", "Do it", "--pipeline", NAME)
    link = user.base / "linked"
    link.symlink_to(file.parent)

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            mine = kate.visit(link / file.name)
            kate.type(mine, f"{BEFORE}typed\n")
            # An order of the same editor comes behind what it has typed.
            with pytest.raises(Said, match=r"src/login.txt has unsaved changes in kate and Work may write"):
                await kate.command("run", project=str(user.project), task=1)
            ran = await asyncio.to_thread(user.promptside, "run", "1", "--json", code=4)
            assert json.loads(ran.out.splitlines()[-1])["error"]["code"] == "unsaved"
            refused = await asyncio.to_thread(user.promptside, "run", "1", code=4)
            assert "Save it, or run anyway" in refused.err
            assert "promptside run 1 --anyway" in refused.err

            await asyncio.to_thread(user.promptside, "run", "1", "--anyway", code=3)
            asked = await waits(user)
            assert (asked["id"], asked["kind"], asked["tool"], asked["what"]) == (
                "P1",
                "permission",
                "Edit",
                str(file),
            )
            assert asked["why"].startswith("src/login.txt has unsaved changes in kate.")
            assert [option["id"] for option in asked["options"]] == ["once", "attempt", "task", "deny"]
            assert file.read_text() == BEFORE

            kate.type(mine, BEFORE)
            kate.save(mine)
            await until_said(user, "saved or closed meanwhile")
            assert (await waits(user))["id"] == "P1", "whether it may be changed is the person's to say"
            await asyncio.to_thread(user.promptside, "answer", "1", "P1", "--option", "once")
            await asyncio.to_thread(user.waits, "gate")

    run(story())
    assert file.read_text() == AFTER


def test_ed11_what_is_typed_while_the_agent_works_holds_its_edit_and_an_editor_that_goes_is_said(
    user: User, api: MessagesAPI
) -> None:
    file = source(user)
    hold = Hold()
    _, change, end = edits(file)
    wait = Reply(blocks=(Text("I look.", hold=hold), *use("Read", file_path=str(file)).blocks))
    api.add(short(user, wait, change, change, end))
    user.promptside("task", "new", "Do it", "--pipeline", NAME)

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            await asyncio.to_thread(user.promptside, "run", "1", "--detach")
            await asyncio.to_thread(hold.wait_until_reached)
            mine = kate.visit(file)
            kate.type(mine, f"{BEFORE}typed\n")
            await held(user, file)
            hold.release()
            await waits(user)
        await until_said(user, "kate was closed")
        await asyncio.to_thread(user.promptside, "answer", "1", "P1", "--option", "deny")
        await asyncio.to_thread(user.waits, "gate")

    run(story())
    # The second time nobody held it any more, and the stage may write in its tree.
    assert file.read_text() == AFTER
    task = user.task()
    assert [d["status"] for d in task["decisions"]] == ["denied"]


def test_ed11_without_a_real_agent_who_is_asked_and_who_is_not(user: User) -> None:
    """Buttons, code actions, reading stages, documents of ours, saved again, closed, another client."""
    short(user)
    file = source(user)
    at = {"project": str(user.project)}
    asking = {**PLAIN, "window": {"showMessage": {"messageActionItem": {}}}}

    async def story() -> None:
        answers = {"window/showMessageRequest": {"title": "Run anyway"}}
        async with (
            LspEditor(user) as ours,
            Buffers(user, PLAIN, name="Kate") as kate,
            Buffers(user, asking, name="Zed", answers=answers) as zed,
        ):
            for pipeline in (NAME, NAME, NAME, "standard"):
                await ours.command("newTask", **at, title="T", pipeline=pipeline, agent=AGENT)

            async def new_in(editor: Buffers, number: int) -> None:
                await editor.command("doctor")  # whatever: the mirror of an editor follows by itself
                await ours.task(lambda t: t["id"] == number)

            uri = kate.visit(file)
            await new_in(kate, 4)
            kate.type(uri, BEFORE + "x")
            kate.type(uri, BEFORE)
            await kate.command("run", **at, task=1)  # as it was: nothing is unsaved
            await ours.task(lambda t: t["id"] == 1 and t["waiting_for"])

            kate.type(uri, BEFORE + "x")
            with pytest.raises(Said, match="has unsaved changes in kate"):
                await kate.command("run", **at, task=2)
            (card,) = user.project.glob(".promptside/tasks/2-*/task.md")
            actions = [a["title"] for a in await kate.actions(kate.visit(card))]
            assert "Run Work anyway" in actions
            assert "Run Work anyway: T" in [a["title"] for a in await kate.actions(uri)]
            kate.type(kate.visit(card), "typed into a document of Promptside's")
            await kate.command("run", **at, task=4)  # Research reads only
            await ours.task(lambda t: t["id"] == 4 and t["waiting_for"])

            other = zed.visit(file)
            zed.type(other, BEFORE + "y")
            with pytest.raises(Said, match=r"in kate and zed"):
                await zed.command("run", **at, task=2)
            await ours.task(lambda t: t["id"] == 2 and t["waiting_for"])  # Zed's person has said so
            zed.leave(other)
            with pytest.raises(Said):  # task 2 has run; with the order goes what Zed holds no more
                await zed.command("run", **at, task=2)
            kate.save(uri)
            await kate.command("run", **at, task=3)
            await ours.task(lambda t: t["id"] == 3 and t["waiting_for"])

    run(story())
