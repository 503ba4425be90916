"""A whole run of `standard` with the mouse: all that it takes is in the view and in the panel (ED-7, ST-11)."""

from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.panel import Panel
from vscode_rig.stories import TITLE, new_task, sample
from vscode_rig.workbench import Workbench


def test_standard_with_the_mouse_only(user: User, open_window: Callable[..., Workbench]) -> None:
    """From a task that is ready to the text of the pull request; words are typed where words are wanted."""
    sample(user)
    new_task(user)
    window = open_window()
    window.open_tasks()
    window.row(TITLE).click()
    panel = Panel(window)
    panel.at("Research")
    panel.press("Run Research")
    expect(panel.button("Send answers")).to_have_attribute("aria-disabled", "true")
    window.picture("questions")
    panel.frame.get_by_role("button", name="Tick the recommended").click()
    panel.press("Send answers")
    user.waits("gate")
    panel.press("Approve")
    panel.at("High-Level Approaches")
    panel.blocked("Approve", "Select 1 option")
    panel.frame.get_by_role("radio").first.click()
    panel.see("1 of 1 selected")
    window.picture("options")
    panel.press("Approve")
    panel.at("Planning")
    panel.press("Redo")
    panel.frame.get_by_label("What should the agent do differently?").fill("Put the tests first.")
    panel.frame.get_by_role("button", name="Redo with this").click()
    user.until(lambda task: len(task["stages"][2]["attempts"]) == 2 and task["waiting_for"] is not None)
    panel.see("Attempt 2")
    # An earlier stage is looked at beside the one that waits.
    panel.stage("Research").click()
    panel.at("Research")
    window.picture("earlier")
    panel.stage("Planning").click()
    panel.press("Approve")
    panel.at("Implementation")
    window.picture("permission")
    panel.frame.locator(".permission").get_by_role("button", name="Allow for this task").click()
    user.until(lambda task: (task["waiting_for"] or {}).get("kind") == "gate")
    panel.press("Approve")
    panel.at("Refinement")
    window.picture("input")
    panel.press("Run Refinement")
    user.until(lambda task: (task["waiting_for"] or {}).get("kind") == "gate")
    panel.press("Approve")
    panel.at("Security Review")
    ticks = panel.frame.get_by_role("checkbox")
    expect(ticks).not_to_have_count(0)
    for tick in ticks.all():
        tick.check()
    user.until(lambda task: not task["waiting_for"]["gate"]["lacks"])
    window.picture("checklist")
    panel.press("Approve")
    panel.at("PR Preparation")
    window.picture("fields")
    panel.press("Approve")
    user.until(lambda task: task["state"] == "completed")
    expect(panel.button("Archive")).to_be_visible()
    window.picture("done")
