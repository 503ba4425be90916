"""A running stage as work-done progress; its cancel stops the stage (ED-4)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from rig.inside import SILENT, Inside, stage, view
from rig.lsp_editor import LspEditor
from rig.speaker import Speaker
from rig.user import User

from promptside_protocol.commands import Stop
from promptside_protocol.errors import refused
from promptside_protocol.notices import ActivityChanged
from promptside_protocol.views import Activity, AttemptView, TaskView

CAPABILITIES = {"window": {"workDoneProgress": True}, "experimental": {"promptside": True}}


def test_ed4_a_running_stage_is_a_progress_that_begins_reports_and_ends(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user, CAPABILITIES) as editor:
            await editor.command("newTask", **speaker.new_task())
            await editor.command("run")
            begun = await editor.note("$/progress", lambda p: p["value"]["kind"] == "begin")
            assert begun["value"]["title"] == "Work"
            assert begun["value"]["cancellable"]
            asked = await editor.until(lambda m: m.get("method") == "window/workDoneProgress/create")
            assert asked["params"]["token"] == begun["token"]
            speaker.say("read login.ts")
            await editor.note(
                "$/progress",
                lambda p: p["value"]["kind"] == "report" and p["value"]["message"] == "reading login.ts",
            )
            speaker.stop()
            end = await editor.note("$/progress", lambda p: p["value"]["kind"] == "end")
            assert end["token"] == begun["token"]
            assert end["value"]["message"] == "It waits for you."

    asyncio.run(story())


def test_ed4_cancel_stops_the_stage(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user, CAPABILITIES) as editor:
            await editor.command("newTask", **speaker.new_task())
            await editor.command("run")
            begun = await editor.note("$/progress", lambda p: p["value"]["kind"] == "begin")
            editor.tell("window/workDoneProgress/cancel", {"token": begun["token"]})
            await editor.note("$/progress", lambda p: p["value"]["kind"] == "end")
            task = await editor.task(
                lambda t: any(a["status"] == "stopped" for a in t["stages"][0]["attempts"])
            )
            assert len(task["stages"][0]["attempts"]) == 1

    asyncio.run(story())
    speaker.stop()


def test_ed4_an_editor_that_shows_no_progress_is_asked_for_none(user: User) -> None:
    user.commit_all()

    async def story() -> None:
        async with LspEditor(user) as editor:
            await editor.command("newTask", title="Add a login", agent="rehearsal-fast")
            await editor.command("run")
            await editor.task(lambda t: t["waiting_for"])
            methods = {message.get("method") for message in editor.heard}
            assert "$/progress" not in methods
            assert "window/workDoneProgress/create" not in methods

    asyncio.run(story())


# --- in one process: what can't be brought about with a real agent, or not at that moment ----------------------

SHOWS = {"window": {"workDoneProgress": True}}
CREATE = "window/workDoneProgress/create"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def attempt(n: int, status: Any) -> AttemptView:
    return AttemptView(
        n=n, id=f"a{n}", status=status, cause="run", session="", started=1.0, ended=None, duration_s=None,
        input_tokens=None, output_tokens=None, cost_usd=None, model="", prompt="", transcript="", error=None,
    )  # fmt: skip


def running(folder: Path, number: int = 1, *statuses: str) -> TaskView:
    attempts = tuple(attempt(n + 1, status) for n, status in enumerate(statuses or ("running",)))
    return view(folder, number, stages=(stage("running", attempts=attempts),))


def over(folder: Path, number: int = 1, status: str = "waiting") -> TaskView:
    return view(folder, number, stages=(stage(status, attempts=(attempt(1, "done"),)),))


def acts(editor: Inside, line: str, number: int = 1, n: int = 1, **more: Any) -> None:
    """The daemon tells what an agent does."""
    place = {"project": str(editor.project), "task": number, "stage": "work", "attempt": n, "cursor": 1}
    editor.daemon.hear(ActivityChanged(flow=1, activity=Activity(**place, line=line, **more)))


async def value(editor: Inside, kind: str, since: int = 0) -> Any:
    found = await editor.note("$/progress", lambda p: p["value"]["kind"] == kind, since)
    return {"token": found["token"], **found["value"]}


DOINGS: dict[str, tuple[str, dict[str, int], str, int | None]] = {
    "editing": ("Edit     src/auth/login.ts", {}, "editing src/auth/login.ts", None),
    "running": ("Run      npm test", {}, "running npm test", None),
    "a tool nobody knows": ("Teleport to the moon", {}, "Teleport to the moon", None),
    "two lines are one": ("Run      one\ntwo", {}, "running one", None),
    "with steps": ("Edit     a.py", {"step": 2, "steps": 5}, "editing a.py (2 of 5 steps)", 40),
    "all steps": ("Write    a.py", {"step": 3, "steps": 3}, "writing a.py (3 of 3 steps)", 100),
}


@pytest.mark.parametrize("case", DOINGS)
def test_ed4_what_the_agent_does_is_said_in_words(tmp_path: Path, case: str) -> None:
    line, steps, words, percentage = DOINGS[case]

    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.changed(running(tmp_path))
            begun = await value(editor, "begin")
            assert (begun["title"], begun["message"], begun["cancellable"]) == ("Work", "Add a login", True)
            acts(editor, line, **steps)
            report = await value(editor, "report")
            assert (report["message"], report.get("percentage")) == (words, percentage)

    run(story())


def test_ed4_several_at_once_are_told_apart_and_each_is_stopped_by_its_own_cancel(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.changed(running(tmp_path))
            one = await value(editor, "begin")
            at = len(editor.heard)
            editor.changed(running(tmp_path, 2))
            two = await value(editor, "begin", at)
            assert (one["title"], two["title"]) == ("Work", "Work #2")
            editor.tell("window/workDoneProgress/cancel", {"token": two["token"]})
            editor.tell("window/workDoneProgress/cancel", {"token": "nobody's"})
            acts(editor, "Read     a.py", 2)
            assert (await value(editor, "report"))["token"] == two["token"]
            assert editor.ordered(Stop) == [Stop(project=str(tmp_path), task=2)]
            editor.changed(over(tmp_path, 2))
            end = await value(editor, "end")
            assert (end["token"], end["message"]) == (two["token"], "It waits for you.")
            editor.tell("window/workDoneProgress/cancel", {"token": two["token"]})
            await editor.ask("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": ZERO})
            assert len(editor.ordered(Stop)) == 1, "what has ended is not stopped"

    run(story())


ZERO = {"line": 0, "character": 0}


def test_ed4_a_cancel_that_is_refused_says_why(tmp_path: Path) -> None:
    def late(_: Stop) -> None:
        raise refused("not-now", "Not possible now: Work waits.", "Approve it.")

    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.daemon.answers[Stop] = late
            editor.changed(running(tmp_path))
            begun = await value(editor, "begin")
            editor.tell("window/workDoneProgress/cancel", {"token": begun["token"]})
            said = await editor.note("window/showMessage")
            assert said["message"] == "Not possible now: Work waits. Approve it."

    run(story())


def test_ed4_an_editor_that_never_agrees_to_a_token_is_sent_nothing_for_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS, {CREATE: SILENT}) as editor:
            editor.changed(running(tmp_path))
            asked = await editor.until(lambda m: m.get("method") == CREATE)
            acts(editor, "Read     a.py")
            editor.changed(over(tmp_path))
            editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
            await editor.ask("textDocument/hover", {"textDocument": {"uri": "file:///x"}, "position": ZERO})
            assert not editor.notes("$/progress")

    run(story())


def test_ed4_an_editor_that_refuses_a_token_is_not_asked_for_it_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS, {CREATE: SILENT}) as editor:
            task = running(tmp_path)
            editor.changed(task)
            asked = await editor.until(lambda m: m.get("method") == CREATE)
            error = {"code": -32603, "message": "no"}
            editor.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
            editor.changed(task)
            editor.changed(running(tmp_path, 2))
            await editor.until(lambda m: m.get("method") == CREATE and m["id"] != asked["id"])
            tokens = [m["params"]["token"] for m in editor.heard if m.get("method") == CREATE]
            assert len(tokens) == len(set(tokens)) == 2
            assert not editor.notes("$/progress")

    run(story())


def test_ed4_progress_ends_with_the_daemon_and_begins_again_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.changed(running(tmp_path))
            begun = await value(editor, "begin")
            editor.daemon.turn(up=False)
            end = await value(editor, "end")
            assert (end["token"], end["message"]) == (
                begun["token"],
                "The daemon is away; the agent goes on.",
            )
            at = len(editor.heard)
            acts(editor, "Read     a.py")
            editor.daemon.turn(up=True)
            again = await value(editor, "begin", at)
            assert again["token"] != begun["token"]
            assert again["message"] == "reading a.py"
            assert not [p for p in editor.notes("$/progress") if p["value"]["kind"] == "report"]

    run(story())


def test_ed4_the_next_attempt_is_a_progress_of_its_own(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.changed(running(tmp_path))
            await value(editor, "begin")
            at = len(editor.heard)
            editor.changed(running(tmp_path, 1, "failed", "running"))
            second = await value(editor, "begin", at)
            kinds = [(p["value"]["kind"], p["token"] == second["token"]) for p in editor.notes("$/progress")]
            assert kinds == [("begin", False), ("end", False), ("begin", True)]

    run(story())


def test_ed4_progress_of_a_project_that_is_removed_ends(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, SHOWS) as editor:
            editor.changed(running(tmp_path))
            await value(editor, "begin")
            editor.removed(str(tmp_path))
            assert (await value(editor, "end"))["message"] == "The project was removed."

    run(story())
