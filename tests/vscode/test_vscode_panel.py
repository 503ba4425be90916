"""The pipeline panel: a picture for each state, the same after a reload; what is blocked says why (ED-7)."""

import re
from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.panel import Panel
from vscode_rig.stories import TITLE, bring_to, new_task, sample, slow
from vscode_rig.workbench import Workbench

THEMES = {"light": "Light Modern", "high-contrast": "Dark High Contrast", "dark": "Dark Modern"}
"""The end of the class that the editor gives the page, and the theme's title."""


def opened(window: Workbench, *, side_bar: bool = False) -> Panel:
    """The panel, opened by the palette; without the side bar, unless it is wanted."""
    panel = Panel(window)
    panel.open()
    if not side_bar:
        window.command("View: Toggle Primary Side Bar Visibility")
        expect(window.page.locator(".part.sidebar")).to_be_hidden()
    return panel


def reload(window: Workbench) -> None:
    """The window anew, as a person does it: the editor keeps its state first."""
    with window.page.expect_navigation():
        window.command("Developer: Reload Window", asks=True)
    window.page.wait_for_selector(".monaco-workbench .activitybar")


def test_panel_before_and_while_a_stage_runs(user: User, open_window: Callable[..., Workbench]) -> None:
    """No task, one that is ready, a stage ahead, one at work, a daemon that is gone; as it was after a reload."""
    sample(user)
    window = open_window()
    window.open_tasks()
    expect(window.page.locator(".sidebar", has_text="No task yet").first).to_be_visible()
    panel = opened(window, side_bar=True)
    expect(panel.frame.get_by_role("heading", name="No task yet")).to_be_visible()
    window.picture("empty")
    new_task(user, agent=f"rehearsal:{slow(user, 'research')}")
    window.see_row(TITLE)
    panel = open_task(window)
    expect(panel.button("Run Research")).to_be_visible()
    window.picture("ready")
    panel.stage("Security Review").click()
    panel.at("Security Review")
    panel.see("a checklist")
    window.picture("ahead")
    panel.button("Back to Research").click()
    panel.frame.locator("body").press("Control+Enter")
    expect(panel.button("Stop")).to_be_visible()
    panel.see("Last actions")
    window.picture("running")
    reload(window)
    panel.at("Research")
    expect(panel.frame.locator(".head h1")).to_contain_text(TITLE)
    user.kill(user.daemon())
    expect(panel.frame.get_by_role("heading", name="The Promptside daemon is not running")).to_be_visible()
    window.picture("down")
    panel.frame.get_by_role("button", name="Start it").click()
    panel.at("Research")


def open_task(window: Workbench) -> Panel:
    """The panel of the only task, without the side bar; what was there before it goes."""
    window.page.keyboard.press("Control+k")
    window.page.keyboard.press("Control+w")
    expect(window.page.locator("iframe.webview")).to_have_count(0)
    return opened(window)


def test_panel_at_gates(user: User, open_window: Callable[..., Workbench]) -> None:
    """Blocked with its reason; narrow as a strip; paused; sent back; the same stage and place after a reload."""
    sample(user)
    new_task(user)
    bring_to(user, "high-level-approaches")
    window = open_window()
    window.open_tasks()
    window.see_row(TITLE)
    panel = opened(window)
    panel.at("High-Level Approaches")
    panel.blocked("Approve", "Select 1 option")
    panel.button("Approve").focus()
    panel.page.keyboard.press("Enter")
    assert user.stage("high-level-approaches")["status"] == "waiting"
    panel.frame.get_by_role("radio").first.check()
    expect(panel.button("Approve A")).not_to_have_attribute("aria-disabled", "true")
    for name, theme in THEMES.items():
        panel.window.theme(theme)
        expect(panel.frame.locator("body")).to_have_class(re.compile(rf"(^|\s)vscode-{name}(\s|$)"))
        window.picture(f"options-{name}")
    panel.page.set_viewport_size({"width": 600, "height": 800})
    strip = panel.frame.locator(".rail ol")
    expect(strip).to_have_css("display", "flex")
    window.picture("narrow")
    panel.page.set_viewport_size({"width": 1280, "height": 500})
    # What is drawn, and how far down, is the same after a reload.
    panel.stage("Research").click()
    panel.at("Research")
    expect(panel.frame.locator(".main .document")).to_be_visible()
    panel.frame.locator(".main").evaluate("main => main.scrollTo(0, 120)")
    expect(panel.frame.locator(".main")).to_have_js_property("scrollTop", 120)
    reload(window)
    panel.at("Research")
    expect(panel.frame.locator(".main")).to_have_js_property("scrollTop", 120)
    panel.page.set_viewport_size({"width": 1280, "height": 800})
    window.picture("record")
    panel.button("Back to High-Level Approaches").click()
    panel.frame.get_by_role("button", name="Pause this task").click()
    panel.see("Paused since")
    window.picture("paused")
    panel.button("Resume").click()
    panel.button("Redo").click()
    panel.page.keyboard.type("Offer one without a file.")
    window.picture("redo")
    panel.page.keyboard.press("Control+Enter")
    user.until(lambda task: len(task["stages"][1]["attempts"]) == 2)
    attempt = user.stage("high-level-approaches")["attempts"][1]
    assert attempt["cause"] == "redo"


def test_panel_when_done_and_when_stopped(user: User, open_window: Callable[..., Workbench]) -> None:
    """What came of it and what was decided; a stage that does not go on by itself, and a word for the next attempt."""
    sample(user)
    new_task(user)
    bring_to(user, "pr-preparation")
    window = open_window()
    window.open_tasks()
    window.see_row(TITLE)
    panel = opened(window)
    panel.at("PR Preparation")
    panel.button("Approve").click()
    panel.see("What you decided")
    panel.at("Done")
    window.picture("done")
    panel.frame.get_by_role("button", name="More actions").click()
    panel.frame.get_by_role("menuitem", name="Show decisions").wait_for()
    window.picture("menu")
    panel.page.keyboard.press("Escape")
    panel.window.command("View: Close All Editors")
    user.promptside("task", "archive", "1")
    new_task(user, agent="rehearsal:standard", title="Another")
    user.promptside("run", "2", "--detach", code=None)
    user.promptside("stop", "2", code=None)
    panel = opened(window, side_bar=True)
    asked = panel.frame.get_by_label("What should the agent do differently?")
    asked.fill("Say a word.")
    window.picture("failed")
    panel.button("Retry with this").click()
    user.until(lambda task: len(task["stages"][0]["attempts"]) > 1, 2)
