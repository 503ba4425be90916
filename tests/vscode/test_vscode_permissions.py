"""A permission that is given for good in the panel, is listed, and taken back (ST-14, UX 9)."""

import contextlib
from collections.abc import Callable

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.panel import page_of
from vscode_rig.stories import TITLE, sample, waits
from vscode_rig.workbench import Workbench

RULE = "Bash(python3 -m unittest)"
PIPELINE = """\
title = "Only this"
[[stage]]
id = "implementation"
name = "Implementation"
output = "text"
gate = { type = "require_approval" }
permission = "ask"
tools = "all"
rules = ["Edit(./**)", "Write(./**)"]
prompt = "Do it."
"""


def test_permission_given_for_good_is_taken_back(user: User, open_window: Callable[..., Workbench]) -> None:
    """The list says where it comes from; once it is taken back, the agent asks again."""
    sample(user)
    pipelines = user.data / "config/pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "only.toml").write_text(PIPELINE, encoding="utf-8")
    agent = ("--pipeline", "only", "--agent", "rehearsal-fast:standard")
    user.promptside("task", "new", TITLE, "--description", "Name words that are left out.", *agent)
    user.promptside("run", "1", code=None)
    window = open_window()
    waits(window, user, "implementation", "decision")
    window.open_tasks()
    window.see_row("1 permission")
    window.row(TITLE).click()
    frame = page_of(window.page)
    card = frame.locator(".permission")
    expect(card).to_contain_text("The agent wants to run python3 -m unittest in Implementation.")
    window.picture("card")
    card.get_by_role("button", name="Always in this project").click()
    expect(card).to_have_count(0)
    waits(window, user, "implementation")
    (asked,) = [one for one in user.look()["decisions"] if one["kind"] == "permission"]
    assert asked["status"] == "answered"
    (rule,) = user.promptside("rules", "--json").data
    assert rule["rule"] == RULE

    taking_back = window.toast(f"Ask again before {RULE}?")

    def chosen() -> bool:
        """On a busy machine the editor gives the focus back to the panel late, and the list is gone."""
        if taking_back.is_visible():
            return True
        window.typed("Show Permissions Given for Good")
        row = window.page.locator(".quick-input-list .monaco-list-row", has_text=RULE)
        expect(row).to_contain_text("task 1, implementation")
        window.picture("list")
        window.page.keyboard.press("Enter")
        with contextlib.suppress(AssertionError):
            expect(taking_back).to_be_visible(timeout=3000)
        return taking_back.is_visible()

    window.until(chosen)
    window.press(taking_back, "Take Back")
    window.until(lambda: user.promptside("rules", "--json").data == [])
    window.typed("Show Permissions Given for Good")
    window.see_toast("Nothing is permitted for good in this project.")
    window.picture("none")
    user.promptside("redo", "1", "-m", "Once more.", code=None)
    expect(card).to_be_visible()
    window.picture("again")
