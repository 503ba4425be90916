"""A running stage as work-done progress; its cancel stops the stage (ED-4)."""

import asyncio

from rig.lsp_editor import LspEditor
from rig.speaker import Speaker
from rig.user import User

CAPABILITIES = {"window": {"workDoneProgress": True}, "experimental": {"promptside": True}}


def test_ed4_a_running_stage_is_a_progress_that_begins_reports_and_ends(user: User) -> None:
    user.commit_all()
    speaker = Speaker(user)

    async def story() -> None:
        async with LspEditor(user, CAPABILITIES) as editor:
            await editor.command("newTask", **speaker.new_task())
            await editor.command("run")
            begun = await editor.note("$/progress", lambda p: p["value"]["kind"] == "begin")
            assert begun["value"]["title"] == "Work: Say something"
            assert begun["value"]["cancellable"]
            asked = await editor.until(lambda m: m.get("method") == "window/workDoneProgress/create")
            assert asked["params"]["token"] == begun["token"]
            speaker.say("read login.ts")
            await editor.note(
                "$/progress",
                lambda p: p["value"]["kind"] == "report" and "login.ts" in p["value"]["message"],
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
