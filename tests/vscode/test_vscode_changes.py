"""What an attempt changed is looked at, commented line by line, sent back as one redo, and taken back (ED-12)."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import bring_to, new_task, sample
from vscode_rig.workbench import Workbench


def test_changes_are_shown_and_taken_back(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    new_task(user)
    bring_to(user, "implementation")
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Show Changes")
    expect(window.page.locator(".multiDiffEntry").first).to_be_visible()
    window.picture("multi-diff")
    changed = user.project / "README.md"
    assert "stop" in changed.read_text()
    window.page.keyboard.press("Control+Shift+G")
    row = window.row("README.md")
    row.hover()
    window.picture("source-control")
    row.locator("[aria-label^='Take This File Back']").first.click()
    window.press(window.see_toast("will be as before attempt 1"), "Take Back")
    expect(window.toast("will be as before")).to_have_count(0)
    window.until(lambda: "stop" not in changed.read_text())


def test_comments_go_as_one_redo(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    new_task(user)
    bring_to(user, "implementation")
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.open_file("README.md")
    window.palette("Comment on This Line for the Agent")
    words = window.page.locator(".review-widget .monaco-editor").first
    expect(words).to_be_visible()
    words.click()
    window.page.keyboard.type("Say what a stop list is first.")
    window.page.locator(".review-widget .monaco-button", has_text="Keep for the Redo").first.click()
    expect(
        window.page.locator(".review-widget .comment-body", has_text="Say what a stop list")
    ).to_be_visible()
    window.picture("comment")
    window.palette("Send Comments as One Redo")
    user.until(lambda task: len(task["stages"][3]["attempts"]) == 2)
    prompt = user.stage("implementation")["attempts"][1]["prompt"]
    assert "Say what a stop list is first." in Path(prompt).read_text(encoding="utf-8")
