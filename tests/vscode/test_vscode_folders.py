"""Several folders in one window: each task says whose it is, and each command finds its project (ED-15, ED-16)."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.workbench import Workbench

AGENT = ("--agent", "rehearsal-fast")


def test_two_folders_and_a_third(user: User, open_window: Callable[..., Workbench]) -> None:
    """The tree and the status item have both; a command means what is open, else what waits, else what is chosen."""
    first, second, third = (project(user, name) for name in ("first", "second", "third"))
    task(user, first, "Of the first")
    task(user, second, "Of the second")
    task(user, third, "Of the third")
    user.promptside("run", "1", cwd=first, code=None)
    window = open_window(workspace=workspace(user, first, second))
    window.see_status("1 waits for you")
    window.palette("Focus on Tasks View")
    expect(window.page.locator(".sidebar .monaco-list:focus")).to_be_visible()
    expect(window.row("Of the first")).to_contain_text("The First")
    expect(window.row("Of the second")).to_contain_text("second")
    expect(window.row("Of the third")).to_have_count(0)

    # Nothing is open: the only task that waits is meant.
    window.palette("Approve")
    window.until(lambda: approved(user, first) == ["research"])
    user.promptside("run", "1", cwd=second, code=None)
    window.see_status("2 wait for you")
    window.picture("two-wait")
    # Both wait: it is asked which, and each is named with its project.
    window.palette("Approve")
    window.choose("second")
    window.until(lambda: approved(user, second) == ["research"])
    # What is not about a task asks for the project, where nothing says which.
    window.command("View: Close All Editors")
    window.palette("Show Pipelines")
    window.choose("The First")
    window.see_tab("Pipelines")
    window.command("View: Close All Editors")
    window.palette("New Task…")
    window.picture("which")
    window.choose("second")
    window.see_text("# New task")
    assert [file.name for file in (second / ".promptside/drafts").iterdir()] == ["task-1.md"]
    assert not (first / ".promptside/drafts").exists()
    # The document that is open comes before anything else.
    expect(window.row("Of the first")).to_contain_text("select 1 of 2")
    window.row("Of the first").click()
    window.see_tab("02-high-level-approaches.md")
    window.palette("Redo Stage with Feedback…")
    window.fill("Shorter, please.")
    window.until(lambda: attempts(user, first) == [1, 2])
    assert attempts(user, second) == [1, 1]

    # Folders come and go.
    workspace(user, first, third)
    expect(window.row("Of the third")).to_contain_text("third")
    window.picture("third")
    workspace(user, first, second)
    expect(window.row("Of the third")).to_have_count(0)


def project(user: User, name: str) -> Path:
    """A repository beside the others."""
    made = user.base / name
    made.mkdir()
    (made / "main.py").write_text("print()\n")
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=Begin"]):
        subprocess.run(["git", *words], cwd=made, env=user.environment, check=True)
    return made


def task(user: User, where: Path, title: str) -> None:
    user.promptside("task", "new", title, "--description", "Words.", *AGENT, cwd=where)


def workspace(user: User, *folders: Path) -> Path:
    """The file of a window with these folders, the first of which has a name there."""
    file = user.base / "several.code-workspace"
    listed = [{"path": str(folder)} for folder in folders]
    listed[0]["name"] = "The First"
    file.write_text(json.dumps({"folders": listed}))
    return file


def stages(user: User, where: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = user.promptside("task", "show", "1", "--json", cwd=where).data["stages"]
    return found


def approved(user: User, where: Path) -> list[str]:
    return [stage["id"] for stage in stages(user, where) if stage["approval"]]


def attempts(user: User, where: Path) -> list[int]:
    """How many attempts each stage had that has run."""
    return [len(stage["attempts"]) for stage in stages(user, where) if stage["attempts"]]
