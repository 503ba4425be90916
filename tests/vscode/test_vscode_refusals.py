"""An approval that lacks something: it is said before, blocked with its reason, and refused by the engine (ED-7)."""

from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import bring_to, new_task, sample
from vscode_rig.workbench import Workbench


def test_missing_field_is_refused(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    new_task(user)
    bring_to(user, "pr-preparation")
    window = open_window()
    window.open_tasks()
    window.row("Leave common words out").click()
    window.see_text("# PR Preparation")
    expect(window.lens("Approve")).to_be_visible()
    window.erase_field("## Title")
    expect(window.lens("field to fill")).to_be_visible()
    expect(window.lens("Approve")).to_have_count(0)
    window.picture("lacks")
    window.palette("Approve")
    window.see_toast("Title")
    window.picture("refused")
    assert user.task()["waiting_for"]["stage"] == "pr-preparation"
    assert user.stage("pr-preparation")["approval"] is None
    window.page.keyboard.press("F8")
    window.picture("problem")
