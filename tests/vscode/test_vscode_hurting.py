"""View data that hurts: many tasks, a long pipeline, long titles, right-to-left text, a narrow window."""

import re
from collections.abc import Callable

from playwright.sync_api import FrameLocator, Locator, expect
from rig.many_tasks import HEBREW, LONG, MARKED, NAMES, STAGES, long_pipeline, many_tasks
from rig.user import User
from vscode_rig.panel import page_of
from vscode_rig.workbench import Workbench

THEMES = {
    "vscode-light": "Light Modern",
    "vscode-high-contrast": "Dark High Contrast",
    "vscode-dark": "Dark Modern",
}
"""The class that the editor gives the panel's page, and the theme."""
MANY = 200
ROW_HEIGHT = 22
DRAWN_ROWS = 60
"""More than a window holds, and fewer than there are."""


def test_data_that_hurts(user: User, open_window: Callable[..., Workbench]) -> None:
    """200 tasks in the view and in the choice; the panel of a long title, wide and narrow, in each theme."""
    user.commit_all()
    long = long_pipeline(user)
    many_tasks(user, [*(f"Task number {n}" for n in range(1, MANY - 2)), MARKED])
    many_tasks(user, [HEBREW, LONG], pipeline=long)
    window = open_window(width=700, height=600, machine={"promptside.notify.toasts": False})
    window.open_tasks()
    window.see_status(f"{MANY} ready")
    the_view(window)
    the_choice(window)
    panel = the_panel(window)
    title = panel.locator("h1 .title")
    expect(title).to_have_text(HEBREW)
    expect(title).to_have_css("direction", "rtl")
    fits(panel)
    window.picture("rtl")

    for words in ("run", "approve", "run"):
        user.promptside(words, str(MANY), code=None)
    window.see_status("1 waits for you")
    badge = window.page.locator(
        ".activitybar .action-item", has=window.page.locator("[aria-label^=Promptside]")
    )
    expect(badge.locator(".badge-content")).to_have_text("1")
    window.palette("Go to What Waits for You")
    window.see_tab("02-")
    window.picture("document")
    window.palette("Open Pipeline Panel")
    window.page.mouse.move(450, 550)
    the_long_one(window, panel)
    for name, theme in THEMES.items():
        window.theme(theme)
        window.page.mouse.move(450, 550)
        expect(panel.locator("body")).to_have_class(re.compile(rf"(^|\s){name}(\s|$)"))
        window.picture(f"panel-{name}")


def the_view(window: Workbench) -> None:
    """Titles as they are, each in one line; only what is seen is drawn."""
    window.see_row(LONG[:40])
    window.see_row(HEBREW)
    window.see_row(MARKED)
    window.page.mouse.move(450, 500)
    window.picture("many")
    window.expand(LONG[:40], NAMES[2])
    window.see_row(NAMES[3])
    window.picture("stages")
    rows = window.page.locator(".sidebar .monaco-list-row")
    assert rows.count() < DRAWN_ROWS, "the tree draws what is not seen"
    side = window.page.locator(".sidebar").bounding_box()
    assert side is not None
    for row in rows.all():
        box = row.bounding_box()
        assert box is None or (box["width"] <= side["width"] and box["height"] == ROW_HEIGHT)


def the_choice(window: Workbench) -> None:
    """Everything can be chosen, by what it is called."""
    window.palette("Open Task…")
    box = window.page.locator(".quick-input-widget input.input")
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    expect(rows.filter(has_text=f"#{MANY}")).to_be_visible()
    assert rows.count() < DRAWN_ROWS
    window.picture("choice")
    box.fill("number 19")
    expect(rows.filter(has_text="Task number 19").first).to_be_visible()
    box.fill("נפוצות")
    expect(rows).to_have_count(1)
    window.picture("choice-rtl")
    rows.first.click()


def the_panel(window: Workbench) -> FrameLocator:
    panel = page_of(window.page)
    expect(panel.locator(".host .stage h2")).to_be_visible()
    return panel


def the_long_one(window: Workbench, panel: FrameLocator) -> None:
    """Its title in three lines, its stages as a strip and as a column, and the one that is drawn in sight."""
    title = panel.locator("h1 .title")
    expect(title).to_have_text(LONG)
    expect(panel.locator(".stage h2")).to_have_text(NAMES[2])
    stages = panel.get_by_role("navigation", name="Stages").get_by_role("button")
    expect(stages).to_have_count(STAGES)
    expect(panel.locator(".rail ol")).to_have_css("display", "flex")
    lines(title, 3)
    expect(panel.locator("h1 .no")).to_be_in_viewport()
    fits(panel)
    window.picture("strip")
    stages.last.click()
    expect(panel.get_by_role("button", name=f"Back to {NAMES[2]}")).to_be_visible()
    expect(panel.locator(".stage h2")).to_have_text(f"Stage {STAGES}")
    expect(stages.last).to_be_in_viewport()
    fits(panel)
    window.picture("strip-end")
    window.page.keyboard.press("Control+b")
    expect(window.page.locator(".part.sidebar")).to_be_hidden()
    expect(panel.locator(".rail ol")).to_have_css("display", "block")
    expect(stages.last).to_be_in_viewport()
    lines(title, 3)
    fits(panel)
    window.picture("column-end")
    stages.nth(1).click()
    expect(panel.locator(".stage h2")).to_have_text(NAMES[2])


def lines(title: Locator, most: int) -> None:
    """The title is cut, or breaks, at that."""
    height = title.evaluate("title => title.clientHeight / parseFloat(getComputedStyle(title).lineHeight)")
    assert height == most


def fits(panel: FrameLocator) -> None:
    """Nothing has to be scrolled sideways, but the strip of stages."""
    too_wide = panel.locator("html").evaluate(
        """html => [html, ...html.querySelectorAll('.head, .main, .body, .bar')]
            .filter(one => one.scrollWidth > one.clientWidth).map(one => one.className || one.tagName)"""
    )
    assert too_wide == []
