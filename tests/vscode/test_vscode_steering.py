"""Steering by palette, tree and panel, and what is unsaved before an agent writes (ED-7, ED-11; M14, M34, M35)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, expect
from playwright.sync_api import TimeoutError as TooLateError
from rig.user import User
from vscode_rig.stories import TITLE, bring_to, new_task, now, sample, slow, waits
from vscode_rig.workbench import Workbench


def menu(window: Workbench, row: Locator, title: str) -> None:
    """An entry of a row's menu, by mouse; a tree that is just being redrawn opens none."""
    entry = window.page.get_by_role("menuitem", name=title, exact=True)

    def opened() -> bool:
        if not entry.is_visible():
            row.click(button="right")
            window.page.wait_for_timeout(300)
        return entry.is_visible()

    window.until(opened)
    entry.click()
    expect(entry).to_have_count(0)


def labelled(window: Workbench, words: str) -> Locator:
    """The row of the tree that says this first, to those who hear it."""
    return window.page.locator(f".sidebar .monaco-list-row[aria-label^='{words}']").first


def dialog(window: Workbench) -> Locator:
    """What is asked before anything else can be done."""
    return window.page.locator(".monaco-dialog-box")


def attempts(user: User, stage: str) -> list[Any]:
    """The attempts of a stage, as the daemon has them."""
    found: list[Any] = next(one for one in user.look()["stages"] if one["id"] == stage)["attempts"]
    return found


def status(user: User, stage: str) -> str:
    """What a stage is at, as the daemon has it."""
    found: str = next(one for one in user.look()["stages"] if one["id"] == stage)["status"]
    return found


def in_the_tree(window: Workbench) -> bool:
    """Goes there by the palette; whether the keys are the tree's then: what was open may take them back."""
    window.palette("Focus on Tasks View")
    try:
        window.page.wait_for_function("document.activeElement.closest('.sidebar') !== null", timeout=3000)
    except TooLateError:
        return False
    return True


def test_a_task_is_steered_while_its_stages_run(user: User, open_window: Callable[..., Workbench]) -> None:
    """Paused, resumed, spoken to, stopped, skipped, taken back, gone back, abandoned: what each says, and does."""
    sample(user)
    new_task(user, agent=f"rehearsal:{slow(user, 'research', 'planning')}")
    window = open_window(settings={"promptside.output.open": "never"})
    window.open_tasks()
    window.see_row(TITLE)
    row = window.row(TITLE)
    menu(window, row, "Run Stage")
    expect(labelled(window, f"{TITLE}, running, Research")).to_be_visible()
    window.until(lambda: status(user, "research") == "running")
    menu(window, row, "Pause Task")
    expect(labelled(window, f"{TITLE}, paused, Research")).to_be_visible()
    window.picture("paused")
    assert not window.offers("Pause Task")
    window.palette("Resume Task")
    expect(labelled(window, f"{TITLE}, running, Research")).to_be_visible()
    window.until(lambda: [one["status"] for one in attempts(user, "research")] == ["paused", "running"])

    menu(window, row, "Interrupt with Feedback…")
    window.fill("English words only.")
    inbox = Path(attempts(user, "research")[-1]["transcript"]).parent / "inbox"
    window.until(lambda: any("English words only." in told.read_text() for told in inbox.glob("*.json")))
    window.palette("Show Output Beside")
    window.see_output("Interrupted.")
    assert status(user, "research") == "running"
    # What is not possible now is said before any word is asked for.
    window.palette("Skip Stage…")
    window.see_toast("Not possible now: Research is running.")
    window.palette("Stop Stage")
    expect(labelled(window, f"{TITLE}, waits for you, Research")).to_be_visible()
    menu(window, row, "Skip Stage…")
    window.fill("All of it is known.")
    waits(window, user, "high-level-approaches")
    skipped = next(one for one in user.look()["stages"] if one["id"] == "research")
    assert (skipped["status"], skipped["reason"]) == ("skipped", "All of it is known.")

    window.palette("Select Option…")
    window.choose("A ·")
    expect(labelled(window, f"{TITLE}, waits for you, High-Level Approaches, A selected")).to_be_visible()
    menu(window, row, "Approve")
    expect(labelled(window, f"{TITLE}, running, Planning")).to_be_visible()
    window.palette("Take Back Approval")
    waits(window, user, "high-level-approaches")
    expect(labelled(window, f"{TITLE}, waits for you, High-Level Approaches, A selected")).to_be_visible()
    assert user.stage("high-level-approaches")["approval"] is None
    menu(window, row, "Approve")
    expect(labelled(window, f"{TITLE}, running, Planning")).to_be_visible()

    window.expand(TITLE, "Security Review")
    research = labelled(window, "Research, skipped")
    menu(window, research, "Go Back to Stage…")
    asked = dialog(window)
    expect(asked).to_contain_text("Go back to Research?")
    expect(asked).to_contain_text(
        "High-Level Approaches and Planning run again; their documents are kept as earlier attempts. Files stay."
    )
    window.picture("back")
    window.page.keyboard.press("Escape")
    expect(asked).to_have_count(0)
    assert status(user, "planning") == "running"
    window.palette("Go Back to Stage…")
    window.choose("High-Level Approaches")
    expect(asked).to_contain_text("Planning runs again; its document is kept as an earlier attempt.")
    asked.get_by_role("button", name="Go back").click()
    waits(window, user, "high-level-approaches")

    window.row(TITLE).click()
    window.see_tab("high-level-approaches.md")
    # The document takes the focus when it is there: before, it would take it away from the tree.
    expect(window.page.locator(".editor-instance .monaco-editor.focused")).to_be_visible()
    window.see_text("# High-Level Approaches")
    window.until(lambda: in_the_tree(window))
    window.page.keyboard.press("Home")
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("Delete")
    expect(asked).to_contain_text(f"Abandon “{TITLE}”?")
    expect(asked).to_contain_text("Branch and files stay.")
    window.picture("abandon")
    asked.get_by_role("button", name="Abandon").click()
    window.until(lambda: user.look()["state"] == "archived")
    expect(labelled(window, "Archived, 1 task")).to_be_visible()
    assert user.look()["reason"] == "abandoned"


def test_what_is_unsaved_is_said_before_and_while_an_agent_writes(
    user: User, open_window: Callable[..., Workbench]
) -> None:
    """Asked before the stage starts; a clean buffer follows the file, one with changes is kept and said."""
    sample(user)
    new_task(user)
    bring_to(user, "planning")
    window = open_window(settings={"promptside.output.open": "never"})
    window.open_tasks()
    window.see_row(TITLE)
    counting = user.project / "wordcount/counting.py"
    window.open_file("README.md")
    window.see_text("Counts the words of texts")
    window.page.keyboard.press("Control+k")
    window.page.keyboard.press("Enter")  # what is in preview would give way to the next file
    window.open_file("counting.py")
    window.see_text("What a word is")
    window.page.keyboard.press("Control+Home")
    window.page.keyboard.type("# mine")
    window.see_text("# mine")

    menu(window, labelled(window, TITLE), "Approve")
    asked = window.see_toast("wordcount/counting.py has unsaved changes in code-server and Implementation")
    expect(asked).to_contain_text("Save it, or run anyway and keep your version in the editor.")
    window.picture("asked")
    window.press(asked, "Cancel")
    expect(asked).to_have_count(0)
    assert now(user) == ("planning", "gate")
    assert user.stage("planning")["approval"] is None

    menu(window, labelled(window, TITLE), "Approve")
    window.press(asked, "Run Anyway")
    written = window.see_toast("The agent has written to counting.py, and you have unsaved changes in it.")
    window.picture("written")
    window.see_text("# mine")
    window.press(written, "Take the File")
    window.see_text("stop_words")
    expect(window.editor("# mine")).to_have_count(0)
    waits(window, user, "implementation", "decision")
    (permission,) = user.look()["waiting_for"]["decisions"]
    user.promptside("answer", "1", permission["id"], "--option", "always", code=None)
    waits(window, user, "implementation")
    window.page.keyboard.type("# mine")
    window.see_text("# mine")
    assert "# mine" not in counting.read_text(encoding="utf-8")
    menu(window, labelled(window, TITLE), "Redo Stage with Feedback…")
    window.fill("Shorter, please.")
    window.press(window.see_toast("wordcount/counting.py has unsaved changes"), "Save and Run")
    window.until(lambda: len(attempts(user, "implementation")) == 2)
    assert "# mine" in counting.read_text(encoding="utf-8")

    # The file that was clean all the time is the agent's, and nobody was asked.
    window.page.locator(".tabs-container .tab", has_text="README.md").click()
    window.see_text("Common words can be left out")
    expect(window.page.locator(".tabs-container .tab.dirty", has_text="README.md")).to_have_count(0)
    window.picture("followed")
