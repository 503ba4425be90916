"""A whole `standard` run with the keyboard only: palette, Ctrl+Enter, chords (ED-7, ST-11, ST-13)."""

from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import TITLE, look, sample, waits
from vscode_rig.workbench import Workbench


def test_standard_with_the_keyboard_only(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    window = open_window()
    keys = window.page.keyboard
    window.typed("New Task…")
    window.see_text("# New task")
    window.below("## Title", TITLE)
    window.below("## Description", "Let me name words that are left out.")
    window.below("## Agent", "rehearsal-fast:standard")
    keys.press("Escape")
    keys.press("Control+Home")
    expect(window.lens("Create and run")).to_be_visible()
    window.picture("draft")
    keys.press("Control+Enter")
    waits(window, user, "research", "decision")
    window.see_tab("Research 1")
    window.picture("output-beside")

    def go(stage: str, heading: str) -> None:
        waits(window, user, stage)
        window.see_status("1 waits for you")
        window.typed("Go to What Waits for You")
        window.see_text(heading)

    window.typed("Go to What Waits for You")
    window.see_text("# Questions: Research")
    window.typed("Take the Recommended Answers")
    expect(window.lens("1 of 1 required answered")).to_be_visible()
    keys.press("Control+Enter")
    go("research", "# Research")
    keys.press("Control+Enter")
    go("high-level-approaches", "# High-Level Approaches")
    window.typed("Select Option…")
    window.pick("A ·")
    expect(window.lens("Approve A")).to_be_visible()
    keys.press("Control+Enter")
    go("planning", "# Planning")
    window.typed("Redo Stage with Feedback…")
    window.pick("Put the tests first.")
    window.until(lambda: len(look(user)["stages"][2]["attempts"]) == 2)
    window.see_tab("Planning 2")
    go("planning", "# Planning")
    window.typed("Approve")
    waits(window, user, "implementation", "decision")
    window.typed("Allow…")
    window.pick("task")
    waits(window, user, "implementation")
    window.typed("Approve")
    waits(window, user, "refinement", "input")
    window.typed("Run Stage")
    window.pick("")
    waits(window, user, "refinement")
    window.typed("Approve")
    go("security-review", "# Security Review")
    for item in ("W1", "W2", "I1", "I2", "I3"):
        window.go_to(f"**{item}**")
        for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "Delete"):
            keys.press(key)
        keys.insert_text("x")
    window.picture("checklist")
    expect(window.lens("Approve")).to_be_visible()
    keys.press("Control+Enter")
    go("pr-preparation", "# PR Preparation")
    keys.press("Control+Enter")
    window.until(lambda: look(user)["state"] == "completed")
    window.picture("done")
    for stage in look(user)["stages"]:
        assert stage["status"] in ("approved", "skipped"), stage["id"]
