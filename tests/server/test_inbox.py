"""One inbox over all projects: the desk and `next` have what waits anywhere, this window's first (ED-16)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from rig.lsp_buffers import PLAIN, Buffers, file_of, line_of
from rig.lsp_editor import LspEditor
from rig.server_stories import written
from rig.user import User

AGENT = "rehearsal-fast"
OURS: dict[str, Any] = {"experimental": {"promptside": True}}
ELSEWHERE = "## Waiting in other projects"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


async def waiting(editor: LspEditor, project: Path, title: str) -> Path:
    """A task that waits at its first gate; the document that it waits with."""
    project.mkdir(exist_ok=True)
    ack = await editor.command("newTask", project=str(project), title=title, agent=AGENT)
    await editor.command("run", project=str(project), task=ack["task"])
    task = await editor.task(lambda t: t["project"] == str(project) and t["waiting_for"])
    file = project / task["waiting_for"]["document"]
    await written(file)
    return file


def test_ed16_the_desk_and_next_go_over_all_projects(user: User) -> None:
    user.commit_all()
    desk = user.project / ".promptside" / "DESK.md"
    other = user.base / "other (old)"

    async def story() -> None:
        async with LspEditor(user, OURS) as ours, Buffers(user, PLAIN, name="Kate") as kate:
            far = await waiting(ours, other, "Far (away) #7")
            near = await waiting(ours, user.project, "Near")
            await written(desk, ELSEWHERE)
            await written(desk, str(near.relative_to(desk.parent)))
            text = desk.read_text()
            assert (
                text.index("Near")
                < text.index(ELSEWHERE)
                < text.index("Far (away) #7")
                < text.index(str(far))
            )

            # An editor that can't be made to open a file is told which.
            assert file_of((await kate.command("next"))["uri"]) == near
            assert (await kate.note("window/showMessage"))["message"] == f"Open {near}"
            kate.visit(near)
            assert file_of((await kate.command("next"))["uri"]) == far
            assert kate.heard[-1]["result"]["shown"] is False
            await kate.note("window/showMessage", lambda p: p["message"] == f"Open {far}")
            kate.visit(far)
            assert file_of((await kate.command("next"))["uri"]) == near

            # Its line has what can be done with it, and leads to its document.
            uri = kate.visit(desk)
            line = line_of(text, ELSEWHERE) + 1
            for at in (line, line + 1):
                titles = {action["title"]: action for action in await kate.actions(uri, at)}
                assert {"Open its document", "Approve", "New task…"} <= titles.keys()
            links = await kate.ask("textDocument/documentLink", {"textDocument": {"uri": uri}})
            assert [file_of(one["target"]) for one in links] == [near, near, far, far]
            await kate.choose(uri, "Approve", line)
            await ours.task(lambda t: t["project"] == str(other) and t["stages"][0]["approval"])

    run(story())


def test_ed16_an_editor_that_opens_files_goes_to_another_project(user: User) -> None:
    user.commit_all()
    shows = {**PLAIN, "window": {"showDocument": {"support": True}}}

    async def story() -> None:
        async with LspEditor(user, OURS) as ours, Buffers(user, shows, name="Zed") as zed:
            far = await waiting(ours, user.base / "other", "Far")
            shown = await zed.command("next")
            assert (file_of(shown["uri"]), shown["shown"]) == (far, True)
            asked = [m["params"]["uri"] for m in zed.heard if m.get("method") == "window/showDocument"]
            assert [file_of(uri) for uri in asked] == [far]

    run(story())
