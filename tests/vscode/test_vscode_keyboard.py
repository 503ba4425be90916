"""A whole run of `standard` with the keyboard only: palette, tree, Ctrl+Enter in documents and panel (ST-11, ST-13)."""

import contextlib
import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect
from rig.user import User
from vscode_rig.panel import page_of
from vscode_rig.stories import TITLE, sample, waits
from vscode_rig.workbench import Workbench

WRITTEN = {"## Title": TITLE, "## Description": "Let me name words."}


class Keyboard:
    """A person without a mouse, in the window and in the panel that is open in it."""

    def __init__(self, window: Workbench, user: User) -> None:
        self.window = window
        self.user = user
        self.keys = window.page.keyboard
        self.main = page_of(window.page).locator(".main")

    def draft(self) -> None:
        """A task, as its draft wants it; then it is created and run."""
        self.window.typed("New Task…")
        self.window.see_text("# New task")
        lenses = self.window.page.locator(".codelens-decoration")
        expect(
            lenses.filter(has_text="Title and Description are required and still empty.").first
        ).to_be_visible()
        self.window.see_status("Ln 6, Col 1")
        (file,) = (self.user.project / ".promptside/drafts").iterdir()
        headings = file.read_text(encoding="utf-8").splitlines()
        line = 6
        for heading, words in WRITTEN.items():
            below = next(at for at, one in enumerate(headings, 2) if one.startswith(heading))
            for _ in range(below - line):
                self.keys.press("ArrowDown")
            self.keys.insert_text(words)
            self.window.see_text(words)
            line = below
        agent = headings.index("- [ ] rehearsal:standard") + 1  # of lines, as the editor counts
        for _ in range(agent - line):
            self.keys.press("ArrowDown")
        self.window.until(self.choosing)
        self.keys.press("Enter")
        line = self.window.page.locator(".view-line")
        expect(line.filter(has_text="[x] rehearsal:standard")).to_be_visible()
        self.keys.press("End")
        self.keys.press("Shift+Home")
        self.keys.insert_text(
            "- [x] rehearsal-fast:standard"
        )  # a recording of one's own, or one that waits for nobody
        expect(line.filter(has_text="[x] rehearsal-fast:standard")).to_be_visible()
        self.keys.press("Control+Home")
        expect(self.window.lens("Create and run")).to_be_visible()
        self.window.picture("draft")
        assert self.window.offers("Create Task and Run")
        self.keys.press("Control+Enter")

    def panel(self, stage: str, name: str, button: str, kind: str = "gate") -> Locator:
        """The stage waits, and the panel has it; what can be done first."""
        waits(self.window, self.user, stage, kind)
        expect(self.main.locator(".stage h2")).to_have_text(name)
        return self.main.get_by_role("group", name="Decide").get_by_role(
            "button", name=re.compile(f"^{button}")
        )

    def enter(self, button: Locator) -> None:
        """Ctrl+Enter, where the panel says that it can be done."""
        expect(button).not_to_have_attribute("aria-disabled", "true")
        self.keys.press("Control+Enter")

    def answer(self) -> None:
        """Ctrl+Enter goes to the first that is lacking, as soon as that is known; a blank there ticks it."""
        expect(self.main.locator(".form input").first).to_be_visible()
        focused = self.main.locator("input:focus")

        def lacking() -> bool:
            self.keys.press("Control+Enter")
            with contextlib.suppress(AssertionError):
                expect(focused).not_to_be_checked(timeout=1000)
                return True
            return False

        self.window.until(lacking)
        self.keys.press("Space")
        expect(focused).to_be_checked()

    def choosing(self) -> bool:
        """The light bulb's list is open; what is told of the document meanwhile may close it again."""
        self.keys.press("Control+.")
        offered = self.window.page.locator(".action-widget", has_text="Choose rehearsal:standard")
        with contextlib.suppress(AssertionError):
            expect(offered).to_be_visible(timeout=3000)
        return offered.is_visible()

    def tree(self) -> None:
        """Goes to the task in the tree; a tree that is empty yet takes no focus."""
        row = self.window.page.locator(".sidebar .monaco-list-row.focused", has_text=TITLE)

        def there() -> bool:
            self.window.typed("Focus on Tasks View")
            self.window.see_row(TITLE)
            self.keys.press("Home")
            self.keys.press("ArrowDown")
            with contextlib.suppress(AssertionError):
                expect(row).to_be_visible(timeout=1500)
            return row.is_visible()

        self.window.until(there)

    def document(self, name: str) -> None:
        """Goes from the panel to the document that waits, and into it."""
        self.window.typed("Open Task…")
        group = self.window.page.locator(".editor-group-container.active")
        expect(group.locator(".tab.active", has_text=name)).to_be_visible()
        expect(group.locator(".monaco-editor.focused")).to_be_visible()


def test_standard_with_the_keyboard_only(user: User, open_window: Callable[..., Workbench]) -> None:
    """From the draft to the last approval; what a stage says opens beside."""
    sample(user)
    window = open_window()
    person = Keyboard(window, user)
    person.draft()
    send = person.panel("research", "Research", "Send answers", "decision")
    window.see_tab("Research 1")
    window.picture("questions")
    person.answer()
    window.picture("answered")
    person.enter(send)
    person.enter(person.panel("research", "Research", "Approve"))
    approve = person.panel("high-level-approaches", "High-Level Approaches", "Approve")
    window.see_tab("High-Level Approaches 1")
    person.answer()
    expect(approve).to_contain_text("Approve A")
    window.picture("options")
    person.enter(approve)
    person.panel("planning", "Planning", "Approve")
    person.document("03-planning.md")
    window.picture("planning")
    window.typed("Redo Stage with Feedback…")
    window.pick("Put the tests first.")
    window.until(lambda: len(user.look()["stages"][2]["attempts"]) == 2)
    window.see_tab("Planning 2")
    waits(window, user, "planning")
    expect(window.lens("Attempt 2")).to_be_visible()
    window.picture("planning-2")
    person.keys.press("Control+Enter")
    waits(window, user, "implementation", "decision")
    window.typed("Allow…")
    window.pick("task")
    waits(window, user, "implementation")
    person.tree()
    person.keys.press("Enter")
    person.panel("implementation", "Implementation", "Approve")
    window.picture("implementation")
    person.keys.press("Control+Enter")
    person.enter(person.panel("refinement", "Refinement", "Run", "input"))
    person.enter(person.panel("refinement", "Refinement", "Approve"))
    approve = person.panel("security-review", "Security Review", "Approve")
    window.see_tab("Security Review 1")
    for _ in range(5):
        person.answer()
    window.picture("checklist")
    person.enter(approve)
    person.enter(person.panel("pr-preparation", "PR Preparation", "Approve"))
    window.until(lambda: user.look()["state"] == "completed")
    expect(person.main.locator(".stage h2")).to_have_text("Done")
    window.picture("done")
    for stage in user.look()["stages"]:
        assert stage["status"] in ("approved", "skipped"), stage["id"]
