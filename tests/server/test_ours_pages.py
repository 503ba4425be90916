"""UX 8, ED-12, ED-16: pages, questions and changed files for clients of ours, with a real daemon and an agent."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from rig.lsp_editor import LspEditor, Said
from rig.speaker import Speaker
from rig.user import User


def words(line: dict[str, Any]) -> str:
    """A line of a page without its roles."""
    return "".join(span["text"] for span in line["spans"])


def with_ref(page: dict[str, Any], ref: str) -> dict[str, Any]:
    """The first line that is about this."""
    found: dict[str, Any] = next(line for line in page["lines"] if line["ref"] == ref)
    return found


async def page(editor: LspEditor, name: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = await editor.ask("promptside/page", {"name": name, "unicode": False, **more})
    return found


async def changed(editor: LspEditor, name: str, since: int) -> None:
    await editor.note("promptside/pageChanged", lambda p: p["name"] == name, since)


async def content(editor: LspEditor, uri: str) -> str:
    found = await editor.ask("workspace/textDocumentContent", {"uri": uri})
    return str(found["text"])


def test_pages_and_changed_files_follow_a_task(user: User) -> None:
    (user.project / "a b.txt").write_text("one\n")
    (user.project / "gone.txt").write_text("old\n")
    user.commit_all()
    speaker = Speaker(user, edits=True)
    other = user.base / "other"
    other.mkdir()

    async def empty(editor: LspEditor) -> None:
        await editor.note("promptside/daemon", lambda p: p["up"], 0)
        shown = await page(editor, "tasks")
        assert [words(line) for line in shown["lines"]] == ["No task yet.", "Next: > New Task…"]
        (new,) = shown["lines"][1]["offers"]
        assert new["command"] == "promptside.newTask"

    async def at_work(editor: LspEditor, project: str) -> None:
        since = len(editor.heard)
        await editor.command("newTask", **speaker.new_task())
        await editor.command("newTask", project=str(other), title="Elsewhere", pipeline="spoken", key="e")
        await changed(editor, "tasks", since)
        await editor.command("run", project=project, task=1)
        await editor.task(lambda t: any(a["status"] == "running" for a in t["stages"][0]["attempts"]))
        shown = await page(editor, "tasks")
        here = [line for line in shown["lines"] if line["ref"].startswith("task/")]
        assert {(line["project"], line["task"]) for line in here} == {(project, 1), (str(other), 1)}
        mine = next(line for line in here if line["project"] == project)
        assert mine["page"] == "task"
        assert mine["uri"].endswith("/task.md")
        assert any(offer["command"] == "promptside.stop" for offer in mine["offers"])
        await page(editor, "task", project=project, task=1)
        since = len(editor.heard)
        speaker.say("read a b.txt")
        await editor.note("promptside/activity", lambda p: "a b.txt" in p["activity"]["line"], since)
        await changed(editor, "task", since)
        shown = await page(editor, "task", project=project, task=1)
        step = with_ref(shown, "path/a b.txt")
        assert step["uri"] == (user.project / "a b.txt").as_uri()
        assert with_ref(shown, "offer/promptside.stop")["offers"], "what can be done stands there"
        assert not any("promptside stop" in words(line) for line in shown["lines"]), (
            "not as the terminal says it"
        )

    async def files(editor: LspEditor, project: str) -> None:
        (user.project / "a b.txt").write_text("two\n")
        (user.project / "new.bin").write_bytes(b"\0\1")
        (user.project / "gone.txt").unlink()
        wish = {"project": project, "task": 1}
        found = await editor.ask("promptside/changes", wish)
        assert found["running"]
        by_path = {file["path"]: file for file in found["files"]}
        assert {path: file["kind"] for path, file in by_path.items()} == {
            "a b.txt": "modified",
            "gone.txt": "deleted",
            "new.bin": "added",
        }
        one = by_path["a b.txt"]
        assert one["after"] == one["uri"] == (user.project / "a b.txt").as_uri(), (
            "it is not over: the file itself"
        )
        assert await content(editor, one["before"]) == "one\n"
        speaker.stop()
        await editor.task(lambda t: t["waiting_for"])
        (user.project / "a b.txt").write_text("three\n")
        found = await editor.command("showChanges", **wish)
        assert not found["running"]
        by_path = {file["path"]: file for file in found["files"]}
        assert await content(editor, by_path["a b.txt"]["after"]) == "two\n"
        assert await content(editor, by_path["gone.txt"]["before"]) == "old\n"
        assert await content(editor, by_path["gone.txt"]["after"]) == ""
        assert await content(editor, by_path["new.bin"]["before"]) == ""
        assert await content(editor, by_path["new.bin"]["after"]) == "(new.bin is no text: 2 B.)\n"
        await editor.task(lambda t: any(a["changes"] for a in t["stages"][0]["attempts"]))
        whole = await editor.ask("promptside/changes", {**wish, "whole": True})
        assert (whole["stage"], whole["attempt"]) == ("", 0)
        assert [file["path"] for file in whole["files"]] == sorted(by_path)
        assert await content(editor, whole["files"][0]["before"]) == "one\n"
        assert await content(editor, whole["files"][0]["after"]) == "two\n"
        with pytest.raises(Said, match="is no address"):
            await content(editor, "promptside://before/1/work")
        asked = {"type": "fileAt", **wish, "path": "../../secret", "side": "before"}
        assert (await editor.ask("promptside/query", asked))["kind"] == "absent"

    async def gate(editor: LspEditor, project: str) -> None:
        shown = await page(editor, "task", project=project, task=1)
        assert with_ref(shown, "stage/work")["uri"].endswith("/01-work.md")
        assert with_ref(shown, "attempt/work/1")["uri"].endswith("/01-work.md")
        history = await page(editor, "history", project=project, task=1)
        assert words(history["lines"][-1]).strip() == "Nothing was decided yet."
        for name in ("rules", "doctor", "pipelines", "projects"):
            assert (await page(editor, name))["lines"], name
        spoken = with_ref(await page(editor, "pipelines"), "pipeline/spoken")
        assert Path(spoken["uri"].removeprefix("file://")).name == "spoken.toml"
        with pytest.raises(Said, match="nothing that can be read"):
            await editor.ask("promptside/query", {"type": "copyPipeline", "name": "standard", "to": "user"})
        with pytest.raises(Said, match="nothing that can be read"):
            await editor.ask("promptside/query", {"type": "approve", "project": project, "task": 1})
        assert [t["id"] for t in await editor.ask("promptside/query", {"type": "tasks"})] == [1, 1]
        assert await editor.ask("promptside/query", {"type": "rules"}) == []
        trusted = await editor.ask("promptside/query", {"type": "trustState"})
        assert trusted["state"] == "none_needed"

    async def of_all_stages(editor: LspEditor) -> dict[str, Any]:
        wish = {"project": str(user.project), "task": 1, "whole": True}
        return {file["path"]: file for file in (await editor.ask("promptside/changes", wish))["files"]}

    async def comments(editor: LspEditor) -> None:
        said = [{"path": "a b.txt", "line": 1, "text": "why two?", "quote": "two"}]
        with pytest.raises(Said, match="comments"):
            await editor.command("redo", comments=[{"path": 3}])
        await editor.command("redo", feedback="Again.", comments=said, anyway=True)
        task = await editor.task(lambda t: len(t["stages"][0]["attempts"]) == 2)
        prompt = Path(task["stages"][0]["attempts"][1]["prompt"])
        text = "Again.\n\nAbout `a b.txt`, line 1:\n\n```\ntwo\n```\n\nwhy two?"
        async with asyncio.timeout(60):
            while not (prompt.exists() and text in prompt.read_text("utf-8")):  # noqa: ASYNC110  # nobody tells of it
                await asyncio.sleep(0.01)
        (user.project / "a b.txt").write_text("five\n")
        (user.project / "new.bin").unlink()
        (user.project / "gone.txt").write_text("back\n")
        await asyncio.to_thread(
            lambda: os.close(os.open(speaker.pipe, os.O_WRONLY))
        )  # nothing more is to be said
        await editor.task(lambda t: len(t["stages"][0]["attempts"]) == 2 and t["waiting_for"])
        await editor.task(lambda t: any(a["changes"] for a in t["stages"][0]["attempts"][1:]))
        files = await of_all_stages(editor)
        assert {path: file["kind"] for path, file in files.items()} == {
            "a b.txt": "modified",
            "gone.txt": "modified",
        }, "what one attempt made and another took away was never there, and what came back was not made"
        sides = {
            path: [await content(editor, file[side]) for side in ("before", "after")]
            for path, file in files.items()
        }
        assert sides == {"a b.txt": ["one\n", "five\n"], "gone.txt": ["old\n", "back\n"]}
        # An editor may compare both sides under one path.
        before, after = (files["a b.txt"][side] for side in ("before", "after"))
        path = after.partition("?")[0].replace("//after/", "//before/")
        assert await content(editor, f"{path}?{before.partition('?')[2]}&of=work/1") == "one\n"
        await editor.command("undo", project=str(user.project), task=1, stage="work", attempt=2)
        await editor.task(lambda t: "taken back" in "".join(a["note"] for a in t["stages"][0]["attempts"]))
        files = await of_all_stages(editor)
        assert {path: file["kind"] for path, file in files.items()} == {
            "a b.txt": "modified",
            "gone.txt": "deleted",
            "new.bin": "added",
        }, "what was taken back is not shown any more"
        assert await content(editor, files["a b.txt"]["after"]) == "two\n"

    async def gone(editor: LspEditor) -> None:
        since = len(editor.heard)
        await editor.ask("promptside/closePage", {"name": "task", "project": str(user.project), "task": 1})
        await asyncio.to_thread(user.promptside, "daemon", "stop")
        await editor.note("promptside/daemon", lambda p: not p["up"], since)
        await changed(editor, "tasks", since)
        shown = await page(editor, "tasks")
        assert shown["stale"]
        assert words(shown["lines"][0]) == shown["stale"]
        (start,) = shown["lines"][1]["offers"]
        assert start["command"] == "promptside.daemonStart"
        assert any(line["ref"] == "task/1" for line in shown["lines"]), "what is known stays to be seen"

    async def story() -> None:
        async with LspEditor(user) as editor:
            project = str(user.project)
            await empty(editor)
            await at_work(editor, project)
            await files(editor, project)
            await gate(editor, project)
            await comments(editor)
            await gone(editor)

    asyncio.run(story())
