"""A whole `standard` run with the mouse: the tree, lenses, buttons and messages; keys only write words (ED-7)."""

from collections.abc import Callable

from playwright.sync_api import Locator, expect
from rig.user import User
from vscode_rig.stories import TITLE, look, sample, waits
from vscode_rig.workbench import Workbench


def test_standard_with_the_mouse_only(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    window = open_window(machine={"promptside.agent.default": "rehearsal"})
    window.open_tasks()
    window.page.locator(".sidebar .monaco-button", has_text="New Task").click()
    window.see_text("# New task")
    _write(window, "## Title", TITLE)
    _write(window, "## Description", "Let me name words that are left out.")
    _write(window, "## Agent", "rehearsal-fast:standard")
    window.lens("Create and run").click()
    waits(window, user, "research", "decision")
    window.see_tab("Research 1")

    def go(heading: str, lens: str) -> Locator:
        window.row(TITLE).click()
        window.see_text(heading)
        expect(window.lens(lens)).to_be_visible()
        window.picture(heading.strip("# ").lower().replace(" ", "-"))
        return window.lens(lens)

    go("# Questions: Research", "Take the recommended").click()
    go("# Questions: Research", "Send answers").click()
    waits(window, user, "research")
    go("# Research", "Approve").click()
    waits(window, user, "high-level-approaches")
    go("# High-Level Approaches", "Select A").click()
    go("# High-Level Approaches", "Approve A").click()
    waits(window, user, "planning")
    go("# Planning", "Approve").click()
    waits(window, user, "implementation", "decision")
    window.row(TITLE).click(button="right")
    _menu(window, "Allow…")
    window.choose("task")
    waits(window, user, "implementation")
    go("# Implementation", "Approve").click()
    waits(window, user, "refinement", "input")
    window.row(TITLE).click(button="right")
    _menu(window, "Run Stage")
    window.fill("")
    waits(window, user, "refinement")
    go("# Refinement", "Approve").click()
    waits(window, user, "security-review")
    go("# Security Review", "Tick all infos").click()
    window.picture("ticked")
    window.until(lambda: _ticked(user) == 3)
    for item in ("W1", "W2"):
        window.lens(f"Tick {item}").click()
    window.until(lambda: _ticked(user) == 5)
    go("# Security Review", "Approve").click()
    waits(window, user, "pr-preparation")
    go("# PR Preparation", "Approve").click()
    window.until(lambda: look(user)["state"] == "completed")
    window.see_row("Done")
    window.picture("done")


def _ticked(user: User) -> int:
    gate = (look(user)["waiting_for"] or {}).get("gate") or {}
    return sum(item["ticked"] for item in gate.get("items", ()))


def _write(window: Workbench, heading: str, words: str) -> None:
    """Click behind a heading, and write below it."""
    window.page.locator(".editor-instance .view-line", has_text=heading.replace(" ", "\u00a0")).first.click()
    window.page.keyboard.press("End")
    window.page.keyboard.press("Enter")
    window.page.keyboard.insert_text(words)
    window.see_text(words)


def _menu(window: Workbench, title: str) -> None:
    """An entry of the context menu."""
    window.page.locator(".monaco-menu .action-label", has_text=title).first.click()
