"""An approval that lacks something or comes too late: blocked with its reason, and refused (ED-7; M4, M6, M10)."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator

from playwright.sync_api import FrameLocator, Locator, expect
from rig.user import User
from vscode_rig.panel import page_of
from vscode_rig.stories import TITLE, bring_to, new_task, now, sample, waits
from vscode_rig.workbench import Workbench

EDITOR = """\
#!{python}
import sys
from pathlib import Path
file = Path(sys.argv[1])
text = file.read_text()
file.write_text(text.replace("[x] Select A", "[ ] Select A").replace("[ ] Select B", "[x] Select B"))
"""
"""Another editor of the person's, who is of another mind in it."""


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


def test_what_was_seen_is_not_what_is_there(user: User, open_window: Callable[..., Workbench]) -> None:
    """A decision that was changed, or made, elsewhere since the window was told is refused, and stands."""
    sample(user)
    new_task(user)
    bring_to(user, "high-level-approaches")
    window = open_window()
    window.open_tasks()
    window.see_row(TITLE)
    window.palette("Open Pipeline Panel")
    frame = page_of(window.page)
    frame.get_by_role("radio").first.check()
    expect(approve(frame, "A")).not_to_have_attribute("aria-disabled", "true")
    editor = user.base / "editor"
    editor.write_text(EDITOR.format(python=sys.executable), encoding="utf-8")
    editor.chmod(0o700)
    window.until(lambda: selected(user) == ["A"])
    with behind(user):
        user.promptside("open", "1", code=None, more={"EDITOR": str(editor)})
        assert selected(user) == ["B"]
        approve(frame, "A").click()
    window.see_toast("Look again, then approve.")
    window.picture("changed")
    assert now(user) == ("high-level-approaches", "gate")
    expect(approve(frame, "B")).to_be_visible()

    with behind(user):
        user.promptside("approve", "1", code=None)
        approve(frame, "B").click()
    window.see_toast("High-Level Approaches was approved already")
    window.picture("too-late")
    waits(window, user, "planning")
    approaches, planning = user.look()["stages"][1:3]
    assert approaches["approval"]["client"] == "terminal"
    assert planning["approval"] is None


def approve(frame: FrameLocator, option: str) -> Locator:
    """The panel's button, which says what is approved."""
    return frame.get_by_role("button", name=re.compile(f"^Approve {option}"))


def selected(user: User) -> list[str]:
    """What is selected, as the daemon has it."""
    return list(user.look()["waiting_for"]["gate"]["selected"])


@contextlib.contextmanager
def behind(user: User) -> Iterator[None]:
    """Meanwhile the window is told nothing: the program that it hears of the daemon from has been held up."""
    programs = [pid for pid, words in user.processes().items() if re.search(r"promptside.* lsp\b", words)]
    assert programs
    for pid in programs:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in programs:
            os.kill(pid, signal.SIGCONT)
