"""The tree says what is so, and stages are run and decided by the palette alone (ED-7)."""

from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import new_task, sample
from vscode_rig.workbench import Workbench


def test_tree_shows_tasks_live(user: User, open_window: Callable[..., Workbench]) -> None:
    """What is done in the terminal is seen at once, without the window being touched."""
    sample(user)
    window = open_window()
    window.open_tasks()
    expect(window.page.locator(".sidebar", has_text="No task yet").first).to_be_visible()
    window.picture("empty")
    new_task(user)
    window.see_row("Leave common words out")
    window.see_status("1 ready")
    window.picture("ready")
    user.promptside("run", "1", code=None)
    window.see_row("Waiting for You")
    window.see_status("1 waits for you")
    window.row("Leave common words out").click()
    window.see_text("# Questions: Research")
    expect(window.lens("Tick the recommended")).to_be_visible()
    window.picture("waiting")
    # A tick is set where it is clicked; of those that exclude each other the other one goes.
    lines = window.page.locator(".view-line")
    for clicked, other in (("B ·", "A ·"), ("A ·", "B ·")):
        lines.filter(has_text=f"[ ] {clicked}").click(position={"x": 28, "y": 9})
        expect(lines.filter(has_text=f"[x] {clicked}")).to_be_visible()
        expect(lines.filter(has_text=f"[x] {other}")).to_have_count(0)
    # So it does where one is typed.
    lines.filter(has_text="[ ] B ·").click(position={"x": 200, "y": 9})
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "Delete", "x"):
        window.page.keyboard.press(key)
    expect(lines.filter(has_text="[x] B ·")).to_be_visible()
    expect(lines.filter(has_text="[x] A ·")).to_have_count(0)


def test_run_and_approve_by_keyboard(user: User, open_window: Callable[..., Workbench]) -> None:
    """Run, answer, approve, select and redo: what is not possible now is not in the palette."""
    sample(user)
    new_task(user)
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Run Stage")
    window.see_row("1 question")
    window.see_tab("Research 1")
    window.picture("output")
    assert not window.offers("Run Stage")
    window.palette("Tick the Recommended Answers")
    window.palette("Send Answers")
    window.see_row("Research")
    user.waits("gate")
    assert window.offers("Approve")
    window.palette("Approve")
    window.see_row("select 1 of 3")
    assert user.stage("research")["approval"]["client"] == "code-server"
    window.palette("Select Option…")
    window.choose("A ·")
    window.see_row("A selected")
    window.palette("Approve")
    user.until(lambda task: (task["waiting_for"] or {}).get("stage") == "planning")
    window.see_row("Planning")
    window.palette("Redo Stage with Feedback…")
    window.fill("Put the tests first.")
    user.until(lambda task: len(task["stages"][2]["attempts"]) == 2 and task["waiting_for"] is not None)
    window.expand("Leave common words out", "waits for you, attempt 2")
    window.picture("redone")
