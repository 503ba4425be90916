"""Takes the pictures of docs/vscode.md, in the real editor; collected only when it is named.

pytest tests/vscode/pictures.py
"""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.panel import page_of
from vscode_rig.stories import bring_to, new_task, sample
from vscode_rig.workbench import Workbench

PICTURES = Path(__file__).parents[2] / "docs/pictures"
LOOK = {"workbench.colorTheme": "Default Light Modern", "breadcrumbs.enabled": False}


def test_pictures(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    window = open_window(
        settings=LOOK, machine={"promptside.agent.default": "rehearsal"}, width=1180, height=640
    )
    page = window.page

    def take(name: str) -> None:
        page.mouse.move(1000, 600)
        PICTURES.mkdir(exist_ok=True)
        page.screenshot(path=str(PICTURES / f"vscode-{name}.png"))

    window.open_tasks()
    page.locator(".sidebar .monaco-button", has_text="New Task").click()
    window.see_text("# New task")
    expect(page.locator(".codelens-decoration", has_text="Title and Description").first).to_be_visible()
    take("new-task")
    page.keyboard.press("Control+w")

    new_task(user, agent="rehearsal:standard")
    window.see_row("Leave common words out")
    window.open_file("counting.py")
    window.palette("Run Stage")
    window.see_output("Ask")
    window.see_row("1 question")
    take("output")
    window.row("Leave common words out").click()
    expect(window.lens("Tick the recommended")).to_be_visible()
    take("questions")

    new_task(user, title="Count lines too")
    bring_to(user, "implementation")
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+w")
    window.row("Leave common words out").click()
    window.row("Leave common words out").locator(".monaco-tl-twistie").click()
    window.see_text("# Implementation")
    expect(window.lens("Approve")).to_be_visible()
    take("gate")
    window.palette("Show Changes")
    expect(page.locator(".multiDiffEntry").first).to_be_visible()
    expect(page.locator(".multiDiffEntry .view-line").first).to_be_visible()
    take("changes")
    window.open_file("README.md")
    page.keyboard.press("Control+g")
    window.fill(":12")
    window.palette("Comment on This Line for the Agent")
    words = page.locator(".review-widget .monaco-editor").first
    expect(words).to_be_visible()
    words.click()
    page.keyboard.type("Say what a stop list is before you use the word.")
    take("comment")


def test_picture_of_the_panel(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    new_task(user)
    bring_to(user, "high-level-approaches")
    window = open_window(
        settings={"workbench.colorTheme": "Default Dark Modern", "breadcrumbs.enabled": False},
        width=1280,
        height=800,
    )
    window.open_tasks()
    window.palette("Open Pipeline Panel")
    frame = page_of(window.page)
    frame.get_by_role("radio").first.click()
    expect(frame.locator(".main")).to_contain_text("1 of 1 selected")
    window.page.mouse.move(1200, 780)
    PICTURES.mkdir(exist_ok=True)
    window.page.screenshot(path=str(PICTURES / "vscode-panel.png"))
