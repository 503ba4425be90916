"""Every order as an LSP command: typed, and without arguments for what the person means (ED-1, ED-16)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from rig.lsp_editor import LspEditor, Said
from rig.user import User

from promptside_protocol.commands import COMMANDS

REFUSED = -32803
INVALID = -32602
AGENT = "rehearsal-fast"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def waiting(editor: LspEditor, title: str = "Add a login", **more: Any) -> int:
    """A task that waits at the gate of its first stage."""
    ack = await editor.command("newTask", title=title, agent=AGENT, **more)
    number: int = ack["task"]
    await editor.command("run", task=number)
    await editor.task(lambda t: t["id"] == number and (t["waiting_for"] or {}).get("kind") == "gate")
    return number


def test_ed1_every_order_is_announced_as_a_command(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            announced = set(editor.server_can["executeCommandProvider"]["commands"])
            assert {f"promptside.{tag}" for tag in COMMANDS} <= announced
            assert {f"promptside.{own}" for own in ("next", "openTask", "showOutput")} <= announced

    run(story())


def test_ed1_a_wrong_argument_is_named_by_its_path(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            with pytest.raises(Said, match=r"\$\.title") as wrong:
                await editor.command("newTask", title=5)
            assert wrong.value.code == INVALID
            with pytest.raises(Said, match=r"\$\.range\.start") as place:
                await editor.command("newTask", uri="file:///x", range={"start": 7, "end": 7})
            assert place.value.code == INVALID
            params = {"command": "promptside.run", "arguments": [1, 2]}
            with pytest.raises(Said, match="one object"):
                await editor.ask("workspace/executeCommand", params)

    run(story())


def test_ed1_a_refusal_carries_its_sentence_and_is_shown_where_no_client_of_ours_shows_it(
    user: User,
) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, {}, name="Kate") as editor:
            await editor.command("newTask", title="Add a login", agent=AGENT)
            with pytest.raises(Said) as refused:
                await editor.command("approve")
            assert refused.value.code == REFUSED
            assert refused.value.data["code"] == "state"
            shown = await editor.note("window/showMessage")
            assert shown["message"].startswith(str(refused.value))

    run(story())


def test_ed1_without_arguments_the_only_task_that_waits_is_meant_and_the_editor_stands_in_the_approval(
    user: User,
) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, name="Visual Studio Code - Insiders") as editor:
            number = await waiting(editor)
            await editor.command("newTask", title="Another", agent=AGENT)
            await editor.command("approve")
            task = await editor.task(lambda t: t["id"] == number and t["stages"][0]["approval"])
            assert task["stages"][0]["approval"]["client"] == "vscode"

    run(story())


def test_ed1_the_task_of_the_document_that_the_person_is_in_comes_first(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user) as editor:
            first = await waiting(editor, "First")
            second = await waiting(editor, "Second")
            with pytest.raises(Said, match="2 tasks could be meant") as which:
                await editor.command("approve")
            assert which.value.data["code"] == "which"
            view = await editor.task(lambda t: t["id"] == first and t["waiting_for"])
            editor.open(Path(view["project"]) / view["waiting_for"]["document"])
            await editor.command("approve")
            await editor.task(lambda t: t["id"] == first and t["stages"][0]["approval"])
            assert not any(
                news["task"]["stages"][0]["approval"]
                for news in editor.notes("promptside/task")
                if news["task"]["id"] == second
            )

    run(story())


def test_ed1_where_the_editor_has_buttons_the_person_is_asked_which_task_is_meant(user: User) -> None:
    user.commit_all()
    capabilities = {
        "window": {"showMessage": {"messageActionItem": {}}},
        "experimental": {"promptside": True},
    }

    async def story() -> None:
        answers = {"window/showMessageRequest": {"title": "2 Second"}}
        async with LspEditor(user, capabilities, answers=answers) as editor:
            await waiting(editor, "First")
            second = await waiting(editor, "Second")
            await editor.command("approve")
            await editor.task(lambda t: t["id"] == second and t["stages"][0]["approval"])

    run(story())


def test_ed1_words_for_the_agent_are_asked_for_and_an_empty_word_is_one(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user) as editor:
            await waiting(editor)
            with pytest.raises(Said, match="do differently"):
                await editor.command("redo")
            await editor.command("redo", feedback="")
            await editor.task(lambda t: len(t["stages"][0]["attempts"]) == 2)

    run(story())


WITHOUT_A_TASK = {
    "renameProject": "no-name",
    "addProject": None,
    "revokeTrust": None,
    "trust": "nothing",
    "removeRule": "no-rule",
    "newTask": None,
    "collectGarbage": None,
}
"""What orders come to that need no task: a code, or None where they are taken."""
AT_A_GATE: tuple[tuple[str, str | None], ...] = (
    ("ready", "state"),
    ("run", "waits"),
    ("retry", "state"),
    ("resume", "state"),
    ("stop", "not-running"),
    ("interrupt", "no-text"),
    ("redo", "no-text"),
    ("deny", "no-text"),
    ("allow", "no-decision"),
    ("answer", "no-decision"),
    ("send", "no-question"),
    ("editDraft", "no-document"),
    ("undo", "nothing"),
    ("archive", "state"),
    ("takeBack", "no-approval"),
    ("goBack", "no-stage"),
    ("approve", None),
    ("pause", None),
    ("resume", None),
    ("skip", None),
    ("goBack", "which"),
    ("takeBack", "no-approval"),
    ("takeOver", "no-session"),
    ("giveBack", "not-taken-over"),
    ("abandon", None),
)
"""What they come to one after the other, with the only task at its first gate."""
OWN = {
    "next": None,
    "openTask": None,
    "showOutput": None,
    "showTranscript": None,
    "showPrompt": None,
    "doctor": None,
    "daemonStart": None,
    "createTask": "no-draft",
}


@pytest.mark.parametrize("cursor", [False, True], ids=["bare", "cursor"])
def test_ed1_every_command_works_without_arguments_or_says_what_it_needs(user: User, cursor: bool) -> None:
    """Also with what a client of ours adds to each: where its cursor is."""
    file = user.project / "login.py"
    file.write_text("print()\n")
    user.commit_all()
    place = {"line": 0, "character": 3}
    more = {"uri": file.as_uri(), "range": {"start": place, "end": place}} if cursor else {}
    of_a_task = [tag for tag, kind in COMMANDS.items() if "task" in kind.__struct_fields__]
    assert {*WITHOUT_A_TASK, *of_a_task, "removeProject", "shutdown"} == set(COMMANDS)
    assert {tag for tag, _ in AT_A_GATE} == set(of_a_task)

    async def story() -> None:
        async with LspEditor(user) as editor:

            async def comes_to(tag: str) -> str | None:
                try:
                    await editor.command(tag, **more)
                except Said as said:
                    code: str = said.data["code"] if said.code == REFUSED else f"{said.code} {said}"
                    return code
                return None

            for tag in of_a_task:
                assert (tag, await comes_to(tag)) == (tag, "no-task")
            await editor.command("addProject", **more)
            for tag, expected in WITHOUT_A_TASK.items():
                assert (tag, await comes_to(tag)) == (tag, expected)
            await waiting(editor)
            for name, expected in OWN.items():
                assert (name, await comes_to(name)) == (name, expected)
            came = []
            for tag, _ in AT_A_GATE:
                if tag == "skip":
                    await editor.task(lambda t: t["waiting_for"] and t["current"] == t["stages"][1]["id"])
                came.append((tag, await comes_to(tag)))
            assert came == list(AT_A_GATE)
            async with asyncio.timeout(60):
                while (said := await comes_to("removeProject")) == "running":
                    pass  # the agent of what was abandoned is still ending
            assert said is None
            assert await comes_to("shutdown") is None

    run(story())


def test_ed16_next_goes_round_over_what_waits_and_opens_its_document(user: User) -> None:
    user.commit_all()
    capabilities = {"window": {"showDocument": {"support": True}}, "experimental": {"promptside": True}}

    async def story() -> None:
        async with LspEditor(user, capabilities) as editor:
            with pytest.raises(Said, match="Nothing waits"):
                await editor.command("next")
            await waiting(editor, "First")
            await waiting(editor, "Second")
            seen = []
            for _ in range(3):
                shown = await editor.command("next")
                assert shown["shown"]
                path = Path(unquote(shown["uri"].removeprefix("file://")))
                assert path.is_file()
                editor.open(path)
                seen.append(shown["uri"])
            assert seen[0] != seen[1]
            assert seen[2] == seen[0]
            assert (await editor.command("openTask", task=2))["uri"] == seen[1]

    run(story())


def test_ed9_doctor_and_the_daemon_are_commands_too(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            assert (await editor.command("daemonStart"))["pid"] == user.daemon()
            shown = await editor.command("doctor")
            file = Path(unquote(shown["uri"].removeprefix("file://")))
            assert "git" in file.read_text(encoding="utf-8")
            assert file.stat().st_mode & 0o777 == 0o444

    run(story())
