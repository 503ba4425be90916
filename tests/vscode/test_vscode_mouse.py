"""A whole `standard` run with the mouse: the tree, lenses, buttons and messages; keys only write words (ED-7)."""

import re
from collections.abc import Callable

from rig.user import User
from vscode_rig.stories import TITLE, look, now, sample, waits
from vscode_rig.workbench import Workbench

REVIEWED = re.compile(r"^\W*Reviewed$")


def test_standard_with_the_mouse_only(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    window = open_window(machine={"promptside.agent.default": "rehearsal"})
    window.open_tasks()
    window.page.locator(".sidebar .monaco-button", has_text="New Task").click()
    window.see_text("# New task")
    _write(window, "## Title", TITLE)
    _write(window, "## Description", "Let me name words that are left out.")
    _write(window, "## Agent", "rehearsal-fast:standard")
    window.press_lens("Create and run", lambda: now(user) == ("research", "decision"))
    window.see_tab("Research 1")

    def go(heading: str, lens: str | re.Pattern[str], then: Callable[[], bool]) -> None:
        window.row(TITLE).click()
        window.see_text(heading)
        window.picture(heading.strip("# ").lower().replace(": ", "-").replace(" ", "-"))
        window.press_lens(lens, then)

    def next_is(stage: str, kind: str = "gate") -> Callable[[], bool]:
        return lambda: now(user) == (stage, kind)

    go("# Questions: Research", "Take the recommended", window.lens("1 of 1 required answered").is_visible)
    window.press_lens("Send answers", next_is("research"))
    go("# Research", "Approve", next_is("high-level-approaches"))
    go("# High-Level Approaches", "Select this", window.lens("Approve A").is_visible)
    window.press_lens("Approve A", next_is("planning"))
    go("# Planning", "Approve", next_is("implementation", "decision"))
    window.row(TITLE).click(button="right")
    _menu(window, "Allow…")
    window.choose("task")
    waits(window, user, "implementation")
    go("# Implementation", "Approve", next_is("refinement", "input"))
    window.row(TITLE).click(button="right")
    _menu(window, "Run Stage")
    window.fill("")
    waits(window, user, "refinement")
    go("# Refinement", "Approve", next_is("security-review"))
    for count in range(1, 6):
        go("# Security Review", REVIEWED, lambda wanted=count: _ticked(user) >= wanted)
    window.page.mouse.wheel(0, -9000)
    go("# Security Review", "Approve", next_is("pr-preparation"))
    go("# PR Preparation", "Approve", lambda: look(user)["state"] == "completed")
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
