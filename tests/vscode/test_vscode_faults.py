"""What goes wrong is said, with one next step, and nothing is lost by it (ED-7, principle 5)."""

from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import new_task, sample
from vscode_rig.workbench import Workbench


def test_reload_in_mid_stage(user: User, open_window: Callable[..., Workbench]) -> None:
    """The window comes back with the stage at work, and its output from the beginning."""
    sample(user)
    new_task(user, agent="rehearsal:standard")
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Run Stage")
    window.see_tab("Research 1")
    window.reload()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Show Output Beside")
    window.see_tab("Research 1")
    window.see_row("1 question")
    window.see_output("I look at the project first.")
    window.picture("after")
    assert user.stage("research")["attempts"][0]["ended"] is None
    assert len(user.stage("research")["attempts"]) == 1


def test_daemon_killed_in_mid_stage(user: User, open_window: Callable[..., Workbench]) -> None:
    """It is said that the daemon is gone, what is shown stays, and one click brings it back; the agent went on."""
    sample(user)
    new_task(user, agent="rehearsal:standard")
    window = open_window()
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Run Stage")
    window.see_tab("Research 1")
    window.see_output("Read")
    user.kill(user.daemon())
    expect(window.page.locator(".sidebar", has_text="The Promptside daemon stopped").first).to_be_visible()
    window.see_row("Leave common words out")
    window.picture("killed")
    window.palette("Start Daemon")
    window.see_row("1 question")
    window.see_status("1 waits for you")
    assert len(user.stage("research")["attempts"]) == 1
    window.picture("again")


def test_folder_without_trust(user: User, open_window: Callable[..., Workbench]) -> None:
    """Restricted mode shows, and runs nothing."""
    sample(user)
    new_task(user)
    window = open_window(trust=False)
    window.page.keyboard.press("Escape")
    window.open_tasks()
    window.see_row("Leave common words out")
    window.palette("Run Stage")
    window.see_toast("This folder is not trusted")
    window.picture("restricted")
    assert user.task()["state"] == "ready"


def test_setup_is_checked(user: User, open_window: Callable[..., Workbench]) -> None:
    """What is missing stands in a page of the editor, with what to do."""
    sample(user)
    window = open_window()
    window.open_tasks()
    expect(window.page.locator(".sidebar", has_text="No task yet").first).to_be_visible()
    window.palette("Check Set-up")
    window.see_text("git")
    window.picture("page")
