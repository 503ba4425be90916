"""Folders as people open them: several, nested projects, through links, below the root, and gone again (ED-15)."""

import asyncio
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rig.lsp_buffers import PLAIN, Buffers, file_of
from rig.lsp_editor import LspEditor
from rig.server_stories import written
from rig.user import User

AGENT = "rehearsal-fast"
OURS: dict[str, Any] = {"experimental": {"promptside": True}}


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def repository(path: Path) -> Path:
    """A directory that is the top of a git repository, as far as anybody looks."""
    (path / ".git").mkdir(parents=True)
    return path


def folded(editor: LspEditor, added: list[Path], removed: list[Path]) -> None:
    """Open and close folders."""
    event = {
        key: [{"uri": path.as_uri(), "name": path.name} for path in paths]
        for key, paths in (("added", added), ("removed", removed))
    }
    editor.tell("workspace/didChangeWorkspaceFolders", {"event": event})


async def waiting(editor: LspEditor, project: Path, title: str) -> None:
    """A task that waits at its first gate; the client is ours."""
    ack = await editor.command("newTask", project=str(project), title=title, agent=AGENT)
    await editor.command("run", project=str(project), task=ack["task"])
    await editor.task(lambda t: t["project"] == str(project) and t["waiting_for"])


def named(editor: Buffers, where: Path) -> bool:
    """Whether the list of diagnostics says of a document below this that it waits."""
    start = where.as_uri()
    return any(
        uri.startswith(f"{start}/") and any("Waits for you" in one["message"] for one in said)
        for uri, said in editor.said.items()
    )


async def listed(editor: Buffers, where: Path, *, there: bool = True) -> None:
    at = 0
    while named(editor, where) is not there:
        await editor.until(lambda m: m.get("method") == "textDocument/publishDiagnostics", at)
        at = len(editor.heard)


def test_ed15_folders_that_come_and_go_and_the_project_that_a_command_means(user: User) -> None:
    """Two roots, one in the other; each command is for the project of the document that the person is in."""
    outer = repository(user.base / "mono")
    inner = repository(outer / "packages" / "core")
    package = outer / "packages" / "web"
    package.mkdir()
    for place in (outer, inner, package):
        (place / "main.py").write_text("print()\n")
    far = repository(user.base / "far")

    async def story() -> None:
        async with (
            LspEditor(user, OURS, folder=outer) as ours,
            Buffers(user, PLAIN, name="Kate", folder=package) as kate,
        ):
            # What is not yet a project is made one at its nearest top, also within another one.
            ours.open(package / "main.py")
            assert (await ours.command("newTask", title="Web", agent=AGENT))["task"] == 1
            ours.open(inner / "main.py")
            assert (await ours.command("newTask", title="Core", agent=AGENT))["task"] == 1
            projects = await asyncio.to_thread(user.promptside, "project", "list", "--json")
            assert sorted(one["path"] for one in projects.data) == [str(outer), str(inner)]

            for place, title in ((outer / "main.py", "Web"), (inner / "main.py", "Core")):
                ours.open(place)
                await ours.command("run")
                await ours.task(lambda t, title=title: t["title"] == title and t["waiting_for"])
            # The same by what the client says, whatever was before the person last.
            await ours.command("approve", uri=(package / "main.py").as_uri())
            await ours.task(lambda t: t["title"] == "Web" and t["stages"][0]["approval"])
            core = [n["task"] for n in ours.notes("promptside/task") if n["task"]["title"] == "Core"]
            assert not core[-1]["stages"][0]["approval"]

            # A file of the editor's own, somewhere else, is no place to work in: the window's folder is meant.
            settings = user.base / "editor" / "settings.json"
            settings.parent.mkdir()
            settings.write_text("{}\n")
            ours.open(settings)
            ack = await ours.command("newTask", title="From the settings", agent=AGENT)
            assert (await ours.task(lambda t: t["title"] == "From the settings"))["project"] == str(outer)
            await ours.command("abandon", project=str(outer), task=ack["task"])
            projects = await asyncio.to_thread(user.promptside, "project", "list", "--json")
            assert len(projects.data) == 2
            # What the client names is meant wherever it is.
            elsewhere = repository(user.base / "elsewhere")
            (elsewhere / "main.py").write_text("print()\n")
            where = (elsewhere / "main.py").as_uri()
            await ours.command("newTask", title="Elsewhere", agent=AGENT, uri=where)
            assert (await ours.task(lambda t: t["title"] == "Elsewhere"))["project"] == str(elsewhere)

            # An editor in a folder below the root sees the task of that root, not the one of its neighbour.
            await listed(kate, outer / ".promptside")
            assert not named(kate, inner)
            folded(kate, [inner], [])
            await listed(kate, inner)
            await waiting(ours, far, "Far")
            assert not named(kate, far)
            folded(kate, [far], [package, inner])
            await listed(kate, far)
            await listed(kate, inner, there=False)
            await listed(kate, outer / ".promptside", there=False)
            await written(far / ".promptside" / "DESK.md", "Far")

            # A folder that is removed while it is open: what is left says what is the matter, and nothing ends.
            shutil.rmtree(far)
            await kate.command("redo", project=str(far), task=1, feedback="Again.")
            failed = await ours.task(lambda t: t["title"] == "Far" and t["stages"][0]["status"] == "failed")
            assert "is not there any more" in failed["stages"][0]["reason"]
            folded(kate, [outer], [far])
            await listed(kate, outer / ".promptside")

    run(story())


def test_ed15_a_folder_that_is_opened_through_a_link_is_named_as_the_editor_names_it(user: User) -> None:
    root = repository(user.base / "real")
    (root / "main.py").write_text("print()\n")
    link = user.base / "by another name"
    link.symlink_to(root)
    shows = {**PLAIN, "window": {"showDocument": {"support": True}}}

    async def story() -> None:
        async with LspEditor(user, OURS, folder=root) as ours, Buffers(user, shows, folder=link) as kate:
            await waiting(ours, root, "Add a login")
            await listed(kate, link)
            assert not named(kate, root), "one file has one name"
            shown = await kate.command("next")
            assert file_of(shown["uri"]).is_relative_to(link)
            assert kate.heard[-1].get("error") is None
            uri = kate.visit(file_of(shown["uri"]))
            assert uri == shown["uri"]
            await kate.diagnosed(uri, lambda said: not any("Waits" in d["message"] for d in said))
            assert "Approve" in [action["title"] for action in await kate.actions(uri)]
            await kate.choose(uri, "Approve")
            await ours.task(lambda t: t["stages"][0]["approval"])
            draft = await kate.command("newTask")
            assert file_of(draft["uri"]).is_relative_to(link)

    run(story())
