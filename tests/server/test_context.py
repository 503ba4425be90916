"""Start from where one is: what is selected, or wrong there, goes to the agent and into a new task (ED-13)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_buffers import PLAIN, Buffers, file_of
from rig.lsp_editor import LspEditor, Said
from rig.messages_api import Hold, MessagesAPI, Reply, Text, say
from rig.short_pipeline import NAME, short
from rig.user import User

from promptside_server.context import CHARACTERS

AGENT = "rehearsal-fast"
CODE = "def login(name):\n    if not name:\n        return None\n    return name\n"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def source(user: User, text: str = CODE) -> Path:
    file = user.project / "src" / "login.py"
    file.parent.mkdir()
    file.write_text(text)
    user.commit_all()
    return file


def at(uri: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    """What a thin client adds to a command."""
    places = [{"line": line, "character": character} for line, character in (start, end)]
    return {"uri": uri, "range": dict(zip(("start", "end"), places, strict=True))}


async def actions(editor: Buffers, place: dict[str, Any], diagnostics: list[Any] | None = None) -> list[Any]:
    params = {
        "textDocument": {"uri": place["uri"]},
        "range": place["range"],
        "context": {"diagnostics": diagnostics or []},
    }
    found: list[Any] = await editor.ask("textDocument/codeAction", params)
    return found


def prompt(user: User, stage: str, attempt: int = 1, task: int = 1) -> str:
    stages = {one["id"]: one for one in user.task(task)["stages"]}
    return Path(stages[stage]["attempts"][attempt - 1]["prompt"]).read_text()


def test_ed13_a_new_task_from_a_selection_and_from_what_is_wrong_there(user: User) -> None:
    file = source(user)

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            uri = kate.visit(file)
            assert await actions(kate, at(uri, (1, 2), (1, 2))) == [], "a cursor is no reason for a menu"
            (action,) = await actions(kate, at(uri, (1, 4), (2, 19)))
            assert (action["title"], action["kind"]) == ("New task from this", "refactor.promptside")
            draft = file_of((await kate.perform(action))["uri"]).read_text()
            assert "From `src/login.py`, lines 2-3, selected in the editor:" in draft
            assert "```markdown\nif not name:\n        return None\n```" in draft
            assert "- src/login.py:2-3" in draft

            wrong = {
                "range": at(uri, (3, 11), (3, 15))["range"],
                "message": "Returning Any from function\ndeclared to return None",
                "source": "mypy",
                "severity": 1,
            }
            (action,) = await actions(kate, at(uri, (3, 12), (3, 12)), [wrong])
            draft = file_of((await kate.perform(action))["uri"]).read_text()
            assert "## Title (required)\n\nReturning Any from function declared to return None\n" in draft
            assert "> Returning Any from function\n> declared to return None" in draft
            assert "In `src/login.py`, line 4:\n\n```\n    return name\n```" in draft
            assert "- src/login.py:4" in draft

    run(story())


def test_ed13_run_and_redo_are_told_the_selection_and_where_the_person_is(user: User) -> None:
    file = source(user, "".join(f"line {number} ````\n" for number in range(2000)))

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate, LspEditor(user) as ours:
            uri = kate.visit(file)
            await kate.command("newTask", title="Add a login", agent=AGENT)
            await ours.task(lambda t: t["id"] == 1)
            # A client of ours tells where its cursor is; it has not the file open.
            await ours.command("run", **at(uri, (7, 0), (7, 0)))
            await ours.task(lambda t: t["waiting_for"] and t["current"] == "research")
            kate.type(uri, kate.texts[uri].replace("line 1 ", "line one "))
            titles = {a["title"]: a for a in await actions(kate, at(uri, (0, 0), (2, 0)))}
            assert list(titles) == ["New task from this", "Redo with this selection: “Add a login”"]
            await kate.perform(titles["Redo with this selection: “Add a login”"])
            await ours.task(lambda t: len(t["stages"][0]["attempts"]) == 2 and t["waiting_for"])
            await ours.command("redo", feedback="Shorter.", **at(uri, (0, 0), (1999, 0)))
            await ours.task(lambda t: len(t["stages"][0]["attempts"]) == 3 and t["waiting_for"])
            with pytest.raises(Said, match="do differently"):
                await ours.command("redo", **at(uri, (7, 0), (7, 0)))

    run(story())
    assert "The person is in `src/login.py`, line 8." in prompt(user, "research")
    second = prompt(user, "research", 2)
    assert "From `src/login.py`, lines 1-2, selected in the editor, not saved yet:" in second
    assert "`````markdown\nline 0 ````\nline one ````\n`````" in second
    third = prompt(user, "research", 3)
    assert third.startswith("Shorter.\n\nFrom `src/login.py`, lines 1-1999")
    whole = len("".join(f"line {number} ````\n" for number in range(1999))) - 1
    assert f"of {whole} characters. The rest is in the file.)" in third
    assert len(third) < CHARACTERS + 500


def test_ed13_a_selection_is_said_to_the_real_agent_while_it_works(user: User, api: MessagesAPI) -> None:
    file = source(user)
    hold = Hold()
    api.add(short(user, Reply(blocks=(Text("I look.", hold=hold),)), say("Done.")))
    user.promptside("task", "new", "Do it", "--pipeline", NAME)

    async def story() -> None:
        async with Buffers(user, PLAIN, name="Kate") as kate:
            uri = kate.visit(file)
            await asyncio.to_thread(user.promptside, "run", "1", "--detach")
            await asyncio.to_thread(hold.wait_until_reached)
            titles: dict[str, Any] = {}
            async with asyncio.timeout(60):
                while "Say this to the agent of “Do it”" not in titles:
                    titles = {a["title"]: a for a in await actions(kate, at(uri, (0, 4), (0, 9)))}
            await kate.perform(titles["Say this to the agent of “Do it”"])
            hold.release()
            await asyncio.to_thread(user.waits, "gate")

    run(story())
    said = [request.everything for request in api.requests if "selected in the editor" in request.everything]
    assert said, "the agent was told"
    assert "From `src/login.py`, line 1, selected in the editor:" in said[-1]
