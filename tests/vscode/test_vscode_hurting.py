"""View data that hurts: many tasks, a long pipeline, long titles, right-to-left text, a narrow window."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import new_tasks, sample
from vscode_rig.workbench import Workbench

LONG = "Leave out common words " * 9
HEBREW = "להשמיט מילים נפוצות מהספירה, וגם סימני פיסוק"
STAGES = 13


def test_data_that_hurts(user: User, open_window: Callable[..., Workbench]) -> None:
    sample(user)
    _long_pipeline(user.data / "config/pipelines")
    titles = [f"Task number {n}" for n in range(1, 197)]
    new_tasks(user, [*titles, LONG[:200].strip(), HEBREW, "<b>bold</b> $(error) [x](command:y) &amp;"])
    new_tasks(user, ["Thirteen stages"], pipeline="long")
    window = open_window(width=700, height=600, machine={"promptside.notify.toasts": False})
    window.open_tasks()
    window.see_row("Thirteen stages")
    window.see_row("Leave out common words")
    window.see_row("להשמיט")
    window.see_row("<b>bold</b> $(error)")
    window.see_status("200 ready")
    window.picture("many")
    window.expand("Thirteen stages", "Stage 13")
    window.picture("stages")
    rows = window.page.locator(".sidebar .monaco-list-row")
    assert rows.count() < 60, "the tree draws what is not seen"
    side = window.page.locator(".sidebar .monaco-list").first
    box = side.bounding_box()
    assert box is not None
    for row in rows.all():
        there = row.bounding_box()
        assert there is None or there["width"] <= box["width"] + 1
    window.palette("Open Task…")
    expect(window.page.locator(".quick-input-list .monaco-list-row").first).to_be_visible()
    window.picture("pick")
    window.choose("Leave out common words")
    window.see_text("Leave out common words")
    window.picture("document")


def _long_pipeline(into: Path) -> None:
    into.mkdir(parents=True)
    keys = 'input = "user"\noutput = "text"\ngate = { type = "require_approval" }\nprompt = "Do your part."\n'
    stages = [f'[[stage]]\nid = "stage-{n}"\nname = "Stage {n}"\n{keys}\n' for n in range(1, STAGES + 1)]
    (into / "long.toml").write_text('title = "A long one"\n\n' + "".join(stages), encoding="utf-8")
