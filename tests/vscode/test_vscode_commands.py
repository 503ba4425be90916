"""What only the palette and the keys have: pipelines, attempts, the terminal, the keys of the tree (UX 3.1, 3.7)."""

import shutil
import subprocess
from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import bring_to, new_task, sample
from vscode_rig.workbench import Workbench


def test_pipelines_are_edited(user: User, open_window: Callable[..., Workbench]) -> None:
    """Of a shipped pipeline a copy is opened; a new one has a name of its own; a prompt is a file."""
    sample(user)
    new_task(user)
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Edit Stage Prompt…")
    window.choose("Research")
    window.choose("In this project")
    window.see_tab("research.md.j2")
    window.see_text("You are a senior engineer")
    window.palette("New Pipeline…")
    own = window.page.locator(".quick-input-list .monaco-list-row", has_text="standard")
    title = window.page.locator(".quick-input-titlebar", has_text="New pipeline from")
    expect(own.or_(title).first).to_be_visible()
    if own.first.is_visible():
        own.first.click()
    expect(title).to_be_visible()
    window.fill("with-a-review")
    window.choose("In this project")
    window.see_tab("with-a-review.toml")
    pipelines = user.project / ".promptside/pipelines"
    assert (pipelines / "standard.toml").is_file()
    assert (pipelines / "with-a-review.toml").is_file()
    window.picture("pipeline")


def test_attempts_and_tree_by_key(user: User, open_window: Callable[..., Workbench]) -> None:
    """Compare attempts, what a rehearsal can't, and a tree that needs no mouse."""
    sample(user)
    new_task(user)
    bring_to(user, "high-level-approaches")
    user.promptside("redo", "1", "-m", "Shorter, please.", code=None)
    user.until(lambda task: task["waiting_for"] is not None and len(task["stages"][1]["attempts"]) == 2)
    window = open_window()
    window.open_tasks()
    window.see_row("select 1 of 3")
    window.palette("Compare Attempts…")
    window.see_tab("attempt 1 ↔ 2")
    window.picture("compare")
    window.palette("Continue in a Terminal")
    window.see_toast("A rehearsal has no session to continue.")

    window.palette("Focus on Tasks View")
    page = window.page
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Delete")
    dialog = page.locator(".monaco-dialog-box")
    expect(dialog).to_contain_text("Abandon “Leave common words out”?")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("Space")
    window.see_tab("02-high-level-approaches.md")
    expect(window.lens("Select 1")).to_be_visible()
    page.keyboard.press("Control+Enter")
    window.see_toast("Select 1 option")
    window.palette("Focus on Tasks View")
    page.keyboard.press("n")
    window.see_text("# New task")
    assert user.task()["state"] == "taken"


def test_one_inbox_over_all_projects(user: User, open_window: Callable[..., Workbench]) -> None:
    """What waits in another project is shown too, under its name; several waits are one message (ED-16)."""
    sample(user)
    other = user.base / "other"
    shutil.copytree(user.project, other, ignore=shutil.ignore_patterns(".git"))
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message=Begin"]):
        subprocess.run(["git", *words], cwd=other, env=user.environment, check=True)
    agent = ["--agent", "rehearsal-fast:standard"]
    user.promptside("task", "new", "Elsewhere", "--description", "x", *agent, cwd=other)
    user.promptside("run", "1", code=None, cwd=other)
    new_task(user, title="First of two")
    window = open_window()
    window.see_status("1 waits for you")
    window.page.keyboard.press("Control+Shift+E")
    user.promptside("run", "1", code=None)
    toast = window.see_toast("The agent has 1 question about “First of two”. It waits.")
    window.picture("toast")
    window.press(toast, "Later")
    window.open_tasks()
    expect(window.row("Elsewhere")).to_contain_text("other")
    expect(window.row("First of two")).to_contain_text("a project")
    window.picture("inbox")
    window.page.keyboard.press("Control+k")
    window.page.keyboard.press("j")
    crumbs = window.page.locator(".breadcrumbs-control")
    expect(crumbs.filter(has_text="1-first-of-two").first).to_be_visible()
    window.page.locator(".editor-instance .view-lines").first.click()
    window.page.keyboard.press("Control+k")
    window.page.keyboard.press("j")
    expect(crumbs.filter(has_text="1-elsewhere").first).to_be_visible()
