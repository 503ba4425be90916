"""Tasks of the made-up rehearsal, brought to where a test of the language server begins."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from rig.lsp_buffers import Buffers, file_of

from promptside_daemon.world.rehearsal import SHIPPED

FAST = "rehearsal-fast"


async def started(editor: Buffers, agent: str = FAST) -> int:
    """A task that runs; its number."""
    project = str(editor.project)
    ack = await editor.command("newTask", project=project, title="Add a login", agent=agent, key="k")
    await editor.command("run", project=project, task=ack["task"])
    number: int = ack["task"]
    return number


async def at_text(editor: Buffers) -> Path:
    """The gate of a text waits; its file."""
    await started(editor)
    return await waits(editor, "01-research.md")


async def at_options(editor: Buffers) -> Path:
    """The gate of options waits; its file."""
    await at_text(editor)
    await approve(editor)
    return await waits(editor, "02-high-level-approaches.md")


async def at_checklist(editor: Buffers) -> Path:
    """The gate of the shipped sample's checklist waits, with two points and more; its file."""
    await sample_at(editor, 5)
    return await waits(editor, "06-security-review.md")


async def sample_at(editor: Buffers, skipped: int) -> None:
    """The shipped sample runs from behind its first stages on."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SHIPPED / "standard" / "project", editor.project, dirs_exist_ok=True, ignore=ignore)
    at = {"project": str(editor.project), "task": 1}
    title = {"title": "Leave common words out", "agent": f"{FAST}:standard", "key": "k"}
    await editor.command("newTask", project=at["project"], **title)
    for _ in range(skipped):
        await editor.command("skip", **at, reason="Not here.")
    await editor.command("run", **at)


async def visited(file: Path, *editors: Buffers) -> list[str]:
    """Open a document that waits in each editor; their uris, when every server has its form as it was opened.

    Edits of two editors are only then told apart: a server that asks for the form later has a newer one.
    """
    found = []
    for editor in editors:
        await waits(editor, file.name)
        uri = editor.visit(file)
        await editor.actions(uri)
        found.append(uri)
    return found


async def approve(editor: Buffers, **more: Any) -> None:
    """As the terminal would: without a buffer."""
    await editor.command("approve", project=str(editor.project), task=1, shown="", **more)


async def waits(editor: Buffers, name: str) -> Path:
    """Wait until the list of diagnostics says that this document waits, and the file is there."""

    def named() -> bool:
        return any(
            uri.endswith(name) and any("waits" in str(d.get("code")) for d in said)
            for uri, said in editor.said.items()
        )

    at = 0
    while not named():
        await editor.until(lambda m: m.get("method") == "textDocument/publishDiagnostics", at)
        at = len(editor.heard)
    uri = next(uri for uri in editor.said if uri.endswith(name))
    await written(file_of(uri))
    return file_of(uri)


async def written(file: Path, mark: str = "") -> None:
    """Wait until the daemon has written a document: it tells that the task waits a moment before."""
    async with asyncio.timeout(60):
        while not file.exists() or mark not in file.read_text("utf-8"):  # noqa: ASYNC110  # nobody tells of it
            await asyncio.sleep(0.01)


async def rewritten(file: Path, old: str) -> None:
    """Wait until the daemon has written something else into a file."""
    async with asyncio.timeout(60):
        while file.read_bytes().decode() == old:  # noqa: ASYNC110  # see above
            await asyncio.sleep(0.01)


async def until_text(editor: Buffers, uri: str, wanted: str) -> None:
    """Wait until the server has put this into a buffer."""
    await editor.turned(uri, lambda text: wanted in text)
