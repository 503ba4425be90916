"""What thin clients reach beside orders: a terminal to open, pipelines to edit, their settings, what waits nearest."""

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.fake_claude import fake_claude
from rig.lsp_buffers import PLAIN, Buffers, file_of
from rig.lsp_editor import LspEditor, Said
from rig.server_stories import written
from rig.speaker import STAGE
from rig.user import User

from promptside_server.preferred import Preferred, preferred

AGENT = "rehearsal-fast"
OURS: dict[str, Any] = {"experimental": {"promptside": True}}
SHOWS = {**OURS, "window": {"showDocument": {"support": True}}}
ASKING = """
prompt()
init()
ask("Bash", {"command": "ls"})
result("Done.")
end()
"""

TAKES_OVER = """
import sys
from promptside_protocol import blocking, commands, connect
order = commands.TakeOver(project=sys.argv[1], task=3)
blocking.request(connect.hello("terminal"), order, start=False)
"""


def take_over(user: User) -> None:
    """As the program in a terminal does it, without one."""
    words = [sys.executable, "-c", TAKES_OVER, str(user.project)]
    subprocess.run(words, env=user.environment, check=True)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def waiting(editor: LspEditor, project: Path, title: str) -> dict[str, Any]:
    """A task that waits at its first gate."""
    project.mkdir(exist_ok=True)
    ack = await editor.command("newTask", project=str(project), title=title, agent=AGENT)
    await editor.command("run", project=str(project), task=ack["task"])
    wanted = str(project), ack["task"]
    task: dict[str, Any] = await editor.task(
        lambda t: (t["project"], t["id"]) == wanted and t["waiting_for"] is not None
    )
    await written(project / task["waiting_for"]["document"])
    return task


def test_ed14_an_editor_is_told_what_its_terminal_is_to_run(user: User) -> None:
    """The order is the program's in the terminal; here nothing is locked, and other editors are told the words."""
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user, OURS) as ours:
            await ours.command("newTask", title="Later", agent=AGENT)
            with pytest.raises(Said, match="There is no session to continue") as nothing:
                await ours.command("takeOver", task=1)
            assert nothing.value.data["code"] == "no-session"
            await waiting(ours, user.project, "Rehearsed")
            with pytest.raises(Said, match="A rehearsal has no session to continue"):
                await ours.command("takeOver", task=2)

            program = fake_claude(user.base, "prompt(); init(); result('Done.'); end()")
            user.environment["PROMPTSIDE_CLAUDE"] = str(program)
            pipelines = user.data / "config" / "pipelines"
            pipelines.mkdir(parents=True)
            (pipelines / "spoken.toml").write_text(STAGE)
        async with LspEditor(user, OURS) as ours, Buffers(user, PLAIN, name="Kate") as kate:
            await ours.command("newTask", title="Real", agent="claude", pipeline="spoken")
            await ours.command("run", task=3)
            await ours.task(lambda t: t["id"] == 3 and t["waiting_for"])
            wish = (await ours.command("takeOver", task=3))["terminal"]
            assert wish["title"] == "#3 Real"
            assert wish["command"][1:] == [
                *("-m", "promptside_cli", "take-over", "3", "--project"),
                str(user.project),
            ]
            assert wish["cwd"] == str(user.project)
            assert wish["env"]["PROMPTSIDE_HOME"] == str(user.data)
            await kate.command("takeOver", task=3)
            said = await kate.note("window/showMessage")
            assert said["message"] == "Type this in a terminal: promptside take-over 3"
            assert user.task(3)["terminal"] is None

            take_over(user)
            task = await ours.task(lambda t: t["id"] == 3 and t["terminal"])
            document = user.project / task["stages"][0]["artifact"]
            words = task["terminal"]["words"]
            assert words.startswith("You work on it in a terminal since ")
            with pytest.raises(Said, match=words):
                await ours.command("redo", task=3, feedback="Shorter.")
            with pytest.raises(Said, match=words):
                await ours.command("takeOver", task=3)
            uri = kate.visit(document)
            await kate.choose(uri, "Give back to the agent")
            await ours.task(lambda t: t["id"] == 3 and t["waiting_for"] and not t["terminal"])

    run(story())


@pytest.mark.parametrize(
    ("given", "agent", "pipeline"),
    [
        ({"agent": {"default": "claude"}, "pipeline": {"default": "mine"}}, "claude", "mine"),
        ({"promptside": {"agent": {"default": "rehearsal"}}}, "rehearsal", ""),
        ({"promptside": {"agent": {"default": ""}, "pipeline": None}}, "", ""),
        ({"agent": "claude", "pipeline": {"default": 7}}, "", ""),
        (None, "", ""),
        ([], "", ""),
    ],
)
def test_settings_are_read_in_the_forms_that_editors_send(given: Any, agent: str, pipeline: str) -> None:
    assert preferred(given) == Preferred(agent=agent, pipeline=pipeline)


def test_an_editors_settings_count_where_the_project_says_nothing(user: User) -> None:
    """Given at the start, changed later; the project's own, once it is trusted, come before them."""
    user.commit_all()
    pipelines = user.data / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    for name in ("early", "later", "own"):
        (pipelines / f"{name}.toml").write_text(STAGE)
    (user.data / "config" / "config.toml").write_text('[pipeline]\ndefault = "nowhere"\n')
    early = {"agent": {"default": AGENT.partition("-")[0]}, "pipeline": {"default": "early"}}

    async def story() -> None:
        async with LspEditor(user, OURS, options=early) as editor:

            async def made(**more: Any) -> tuple[str, str]:
                ack = await editor.command("newTask", title="Look", **more)
                task = await editor.task(lambda t: t["id"] == ack["task"])
                return task["agent"], task["pipeline"]

            assert await made() == ("rehearsal", "early")
            editor.tell("workspace/didChangeConfiguration", {"settings": None})
            later = {"promptside": {"pipeline": {"default": "later"}}}
            editor.tell("workspace/didChangeConfiguration", {"settings": later})
            assert await made() == ("claude", "later")
            assert await made(pipeline="standard", agent=AGENT) == (AGENT, "standard")
            draft = file_of((await editor.command("newTask"))["uri"])
            draft.write_text(filled(draft.read_text()))
            number = await editor.command("createTask", uri=draft.as_uri())
            task = await editor.task(lambda t: t["id"] == number)
            assert task["pipeline"] == "later"
            (user.project / ".promptside" / "config.toml").write_text('[pipeline]\ndefault = "own"\n')
            assert (await made())[1] == "later"
            user.promptside("trust", "--show")
            user.promptside("trust")
            assert (await made())[1] == "own"

    run(story())


def filled(text: str) -> str:
    """A draft with its title and description written in."""
    lines = []
    for line in text.split("\n"):
        lines.append(line)
        if line.startswith(("## Title", "## Description")):
            lines += ["", "Look again"]
    return "\n".join(lines)


def test_a_pipeline_is_made_ones_own_and_opened(user: User) -> None:
    """A shipped one is copied beside the project, prompts and all; what is there is only opened."""
    user.commit_all()
    own = user.project / ".promptside" / "pipelines"

    async def story() -> None:
        async with LspEditor(user, SHOWS) as editor:
            shown = await editor.command("editPipeline")
            assert (file_of(shown["uri"]), shown["shown"]) == (own / "standard.toml", True)
            assert (own / "prompts" / "standard" / "research.md.j2").is_file()
            (own / "standard.toml").write_text((own / "standard.toml").read_text() + "\n# mine\n")
            await editor.command("editPipeline", name="standard")
            assert (own / "standard.toml").read_text().endswith("# mine\n")

            shown = await editor.command("newPipeline", name="careful")
            assert file_of(shown["uri"]) == own / "careful.toml"
            assert '"prompts/careful/research.md.j2"' in (own / "careful.toml").read_text()
            shown = await editor.command("editPrompt", pipeline="careful", stage="research")
            assert file_of(shown["uri"]) == own / "prompts" / "careful" / "research.md.j2"
            assert user.promptside("pipeline", "check", "careful").out == "careful: nothing is wrong.\n"
            listed = user.promptside("pipeline", "show", "careful", "--json").data
            assert listed["stages"][0]["prompt"] == str(own / "prompts" / "careful" / "research.md.j2")

            for name, given, code in (
                ("newPipeline", {"name": "careful"}, "copy"),
                ("newPipeline", {"name": "Not so"}, "copy"),
                ("copyPipeline", {"name": "standard", "to": "project", "as": "careful"}, "copy"),
                ("editPipeline", {"name": "nowhere"}, "pipeline"),
                ("editPrompt", {"pipeline": "careful", "stage": "nowhere"}, "no-stage"),
                ("editPrompt", {"pipeline": "careful"}, "which"),
                ("editPipeline", {}, "which"),
            ):
                with pytest.raises(Said) as refused:
                    await editor.command(name, **given)
                assert refused.value.data["code"] == code, name
            made = await editor.command("copyPipeline", name="standard", to="user", **{"as": "everywhere"})
            assert made == {"path": str(user.data / "config" / "pipelines" / "everywhere.toml")}
        user.promptside("pipeline", "copy", "everywhere", "--as", "here")
        assert (own / "here.toml").is_file()

    run(story())


def test_ed16_next_goes_to_what_waits_nearest(user: User) -> None:
    """The document's task, then its project, then the others; from the very document that waits, to the next."""
    user.commit_all()
    other = user.base / "other"

    async def story() -> None:
        async with LspEditor(user, OURS) as editor:
            tasks = [
                await waiting(editor, user.project, "Near, older"),
                await waiting(editor, user.project, "Near"),
            ]
            tasks += [await waiting(editor, other, "Far"), await waiting(editor, other, "Far, newer")]
            documents = [Path(t["project"], t["waiting_for"]["document"]) for t in tasks]
            own = [Path(t["project"], t["directory"], "task.md") for t in tasks]
            (other / "code.py").write_text("x\n")
            for uri, expected in (
                (own[3], documents[3]),
                (own[1], documents[1]),
                (other / "code.py", documents[2]),
                (user.project / "code.py", documents[0]),
                (documents[0], documents[1]),
                (documents[1], documents[2]),
                (documents[3], documents[0]),
                (Path("/nowhere/x.py"), documents[0]),
            ):
                shown = await editor.command("next", uri=uri.as_uri())
                assert file_of(shown["uri"]) == expected, uri
            for number, place in ((1, user.project), (2, other), (1, other)):
                shown = await editor.command("next", project=str(place), task=number)
                assert file_of(shown["uri"]) == documents[2 * (place == other) + number - 1]
            shown = await editor.command("next", project=str(other))
            assert file_of(shown["uri"]) == documents[2]

    run(story())


def test_pages_have_their_rules_anew_and_addresses_may_be_quoted(user: User) -> None:
    """A permission for good that another client gives or removes; VS Code's own way to write an address."""
    program = fake_claude(user.base, ASKING)
    user.environment["PROMPTSIDE_CLAUDE"] = str(program)
    pipelines = user.data / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "asking.toml").write_text(
        STAGE.replace('tools = ["Read"]\npermission = "deny"', 'permission = "ask"')
    )
    user.commit_all()
    project = str(user.project)

    async def story() -> None:
        async with LspEditor(user, OURS) as editor:

            async def changed(since: int) -> None:
                await editor.note("promptside/pageChanged", lambda p: p["name"] == "rules", since)

            await editor.command("newTask", title="Look", pipeline="asking", agent="claude")
            await editor.command("run", task=1)
            await editor.task(lambda t: (t["waiting_for"] or {}).get("kind") == "decision")
            await editor.ask("promptside/page", {"name": "rules"})
            since = len(editor.heard)
            user.promptside("answer", "1", "P1", "--option", "always")
            await changed(since)
            page = await editor.ask("promptside/page", {"name": "rules"})
            assert "Bash(ls)" in str(page)
            await editor.task(lambda t: (t["waiting_for"] or {}).get("kind") == "gate")
            page = await editor.ask("promptside/page", {"name": "task"})
            waits = next(line for line in page["lines"] if "Waits for you" in str(line["spans"]))
            assert file_of(waits["uri"]).name == "01-work.md"
            await editor.ask("promptside/page", {"name": "rules"})
            since = len(editor.heard)
            user.promptside("rules", "remove", "1")
            await changed(since)
            page = await editor.ask("promptside/page", {"name": "rules"})
            assert "Bash(ls)" not in str(page)

            for address in (
                f"promptside://transcript/1/work-1.log?project%3D{project.replace(' ', '%20')}",
                f"promptside://1/work/1?project%3D{project.replace(' ', '%20')}",
            ):
                found = await editor.ask("workspace/textDocumentContent", {"uri": address})
                assert "Done" in found["text"], address

    run(story())
