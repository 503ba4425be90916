"""What a person sees and does in a window of VS Code: the palette, the tree, the status bar, messages, the editor."""

import contextlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from playwright.sync_api import BrowserContext, Locator, Page, ViewportSize, expect, sync_playwright
from playwright.sync_api import TimeoutError as TooLateError
from rig.user import User

from vscode_rig.code_server import CodeServer, program_of

PICTURES = Path(os.environ.get("PROMPTSIDE_PICTURES", "pictures"))
TIMEOUT_MS = int(os.environ.get("PROMPTSIDE_TIMEOUT_MS", "60000"))
SIZE: ViewportSize = {"width": 1280, "height": 800}
expect.set_options(timeout=TIMEOUT_MS)
UNWANTED = (
    # With it the script of the workbench, 19 MB, is parsed anew for each window while its compiled code is being read.
    "BackgroundResourceFetch",
    # The last list of this kind counts: what follows is Playwright's own, as far as a window of ours can meet it.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)
"""Features of Chromium that are switched off."""


@contextlib.contextmanager
def chromium(base: Path) -> Iterator[BrowserContext]:
    """A browser without a screen; it finds nothing but this machine, and keeps what it has loaded."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "Chromium is needed: apt-get install chromium"
    # Playwright's routes would switch the cache off.
    nowhere = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    # An editor that makes its first `Error` would have the whole script parsed once more, for the places in it.
    places = "--js-flags=--no-enable-lazy-source-positions"
    unwanted = f"--disable-features={','.join(UNWANTED)}"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", nowhere, places, unwanted]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            base, executable_path=program, headless=True, args=flags, viewport=SIZE, reduced_motion="reduce"
        )
        yield browser
        browser.close()


class Workbench:
    """One window; everything is done by key or by mouse."""

    def __init__(
        self,
        browser: BrowserContext,
        server: CodeServer,
        opened: Path,
        name: str,
        *,
        width: int = SIZE["width"],
        height: int = SIZE["height"],
    ) -> None:
        self.server = server
        self._name = re.sub(r"\W+", "-", name)
        self.page: Page = browser.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.set_viewport_size({"width": width, "height": height})
        # What an earlier window has left in the browser is somebody else's; only what it has loaded stays.
        storage = {"origin": server.url, "storageTypes": "indexeddb,local_storage,cookies"}
        browser.new_cdp_session(self.page).send("Storage.clearDataForOrigin", storage)
        kind = "workspace" if opened.suffix == ".code-workspace" else "folder"
        self.page.goto(f"{server.url}/?{kind}={opened}")
        self.page.wait_for_selector(".monaco-workbench .activitybar")

    def close(self) -> None:
        self.picture("last")
        (PICTURES / f"{self._name}.log").write_text(self.server.log(), encoding="utf-8")
        self.page.close()

    def picture(self, what: str) -> None:
        """Kept as an artifact of the run."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(PICTURES / f"{self._name}-{what}.png"))

    def reload(self) -> None:
        self.page.reload()
        self.page.wait_for_selector(".monaco-workbench .activitybar")

    # --- doing ----------------------------------------------------------------------------------------------

    def palette(self, title: str) -> None:
        """A command of ours, by its words."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input.input")
        box.wait_for(state="visible")
        box.fill(f">Promptside: {title}")
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=f"Promptside: {title}").first
        row.wait_for()
        row.click()

    def command(self, title: str, *, asks: bool = False) -> None:
        """A command of the editor's own, which may ask something in its turn."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input.input")
        box.wait_for(state="visible")
        box.fill(f">{title}")
        self.page.locator(".quick-input-list .monaco-list-row", has_text=title).first.click()
        if not asks:
            box.wait_for(state="hidden")

    def theme(self, title: str) -> None:
        """Another theme, at once."""
        self.command("Preferences: Color Theme", asks=True)
        box = self.page.locator(".quick-input-widget input.input[placeholder^='Select Color Theme']")
        box.wait_for(state="visible")
        box.fill(title)
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=title).first
        row.click()
        box.wait_for(state="hidden")

    def typed(self, title: str) -> None:
        """A command of ours, with keys only; the palette has what was possible when it was opened.

        A key that comes while a panel takes the focus is nobody's: it is pressed again.
        """
        box = self.page.locator(".quick-input-widget input.input")
        focused = self.page.locator(".quick-input-list .monaco-list-row.focused")

        def there() -> bool:
            self.page.keyboard.press("F1")
            try:
                expect(box).to_be_focused(timeout=5000)
            except AssertionError:
                return False
            self.page.keyboard.insert_text(f"Promptside: {title}")
            expect(focused).to_be_visible()
            try:
                expect(focused).to_contain_text(title, timeout=1500)
            except AssertionError:
                self.page.keyboard.press("Escape")
                expect(box).not_to_be_visible()
                return False
            return True

        self.until(there)
        self.page.keyboard.press("Enter")
        # The box that comes next may be the same one; a closed palette keeps its words.
        self.until(lambda: not box.is_visible() or not box.input_value().startswith(">"))

    def pick(self, words: str) -> None:
        """An entry of a quick pick, with keys only; in a box for words, the words."""
        box = self.page.locator(".quick-input-widget input.input")
        expect(box).to_be_focused()
        if words:
            self.page.keyboard.insert_text(words)
            expect(box).to_have_value(re.compile(re.escape(words) + "$"))
        self.page.keyboard.press("Enter")
        expect(box).not_to_be_visible()

    def go_to(self, words: str) -> None:
        """Put the cursor on the line with these words, by its number as it stands beside it, with keys only."""
        self.see_text(words)
        line = self.page.locator(".editor-instance .view-line", has_text=words.replace(" ", "\u00a0")).first
        there = line.bounding_box()
        assert there is not None
        numbers = [(number.bounding_box(), number) for number in self.page.locator(".line-numbers").all()]
        number = next(one.inner_text() for box, one in numbers if box and abs(box["y"] - there["y"]) < 2)
        self.page.keyboard.press("Control+g")
        self.pick(number)
        self.see_status(f"Ln {number}, Col 1")

    def below(self, heading: str, words: str) -> None:
        """Write below a heading, with keys only."""
        self.go_to(heading)
        self.page.keyboard.press("End")
        self.page.keyboard.press("Enter")
        self.page.keyboard.insert_text(words)
        self.see_text(words)

    def offers(self, title: str) -> bool:
        """Whether the palette has a command now; the palette is closed again."""
        self.page.keyboard.press("F1")
        box = self.page.locator(".quick-input-widget input.input")
        box.wait_for(state="visible")
        box.fill(f">Promptside: {title}")
        rows = self.page.locator(".quick-input-list .monaco-list-row")
        rows.first.wait_for()
        there = any(f"Promptside: {title}" in text for text in rows.all_inner_texts())
        self.page.keyboard.press("Escape")
        box.wait_for(state="hidden")
        return there

    def choose(self, words: str) -> None:
        """An entry of a quick pick."""
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=words).first
        row.wait_for()
        row.click()

    def fill(self, words: str) -> None:
        """An input box."""
        box = self.page.locator(".quick-input-widget input.input")
        box.wait_for(state="visible")
        box.fill(words)
        self.page.keyboard.press("Enter")

    def open_tasks(self) -> None:
        """The view of ours, by its icon, which would close it where it is open; after a reload it comes by itself."""
        title = self.page.locator(".sidebar .composite.title", has_text="Promptside")
        icon = self.page.locator(
            ".activitybar .action-item", has=self.page.locator("[aria-label^=Promptside]")
        )

        def opened() -> bool:
            if not title.is_visible():
                icon.first.click()
                self.page.wait_for_timeout(500)
            return title.is_visible()

        self.until(opened)

    def open_file(self, name: str) -> None:
        """A file, by its name."""
        self.page.keyboard.press("Control+p")
        box = self.page.locator(".quick-input-widget input.input")
        box.wait_for(state="visible")
        box.fill(name)
        self.page.locator(".quick-input-list .monaco-list-row", has_text=name).first.click()
        self.page.locator(".tabs-container .tab.active", has_text=name).wait_for()

    def expand(self, words: str, inside: str) -> None:
        """Open a row of the tree, and see what is in it; a tree that is just being redrawn forgets a click."""
        row = self.row(words)

        def opened() -> bool:
            if row.get_attribute("aria-expanded") != "true":
                row.locator(".monaco-tl-twistie").click()
            return self.row(inside).is_visible()

        self.until(opened)

    def until(self, condition: Callable[[], bool]) -> None:
        """Looks again and again, while the window goes on."""
        due = time.monotonic() + TIMEOUT_MS / 1000
        while not condition():
            assert time.monotonic() < due, "it did not come to that"
            self.page.wait_for_timeout(100)

    # --- seeing ---------------------------------------------------------------------------------------------

    def row(self, words: str) -> Locator:
        """A row of the tree."""
        return self.page.locator(".sidebar .monaco-list-row", has_text=words).first

    def see_row(self, words: str) -> None:
        expect(self.row(words)).to_be_visible()

    def see_status(self, words: str) -> None:
        expect(self.page.locator(".statusbar-item", has_text=words).first).to_be_visible()

    def toast(self, words: str) -> Locator:
        return self.page.locator(".notification-list-item", has_text=words).first

    def see_toast(self, words: str) -> Locator:
        found = self.toast(words)
        expect(found).to_be_visible()
        return found

    def press(self, toast: Locator, button: str) -> None:
        toast.locator(".monaco-button", has_text=button).first.click()

    def editor(self, words: str) -> Locator:
        """The text of an editor; VS Code draws blanks that don't break."""
        return self.page.locator(
            ".editor-instance .view-lines", has_text=re.compile(words.replace(" ", r"\s"))
        ).first

    def see_text(self, words: str) -> None:
        expect(self.editor(words)).to_be_visible()

    def lens(self, words: str) -> Locator:
        return self.page.locator(".codelens-decoration a", has_text=words).first

    def press_lens(self, words: str | re.Pattern[str], then: Callable[[], bool]) -> None:
        """A lens, by mouse, until that is so; the wheel brings what is further down, and a lens that is being
        drawn anew takes no click."""
        self.page.locator(".editor-instance .view-lines").first.hover()
        lens = self.page.locator(".codelens-decoration a", has_text=words).first

        sweep = itertools.cycle((0, 0, 0, 0, *([250] * 12), -9000))

        def done() -> bool:
            if then():
                return True
            if lens.is_visible():
                with contextlib.suppress(TooLateError):  # it was just taken away
                    lens.click(timeout=2000)
            else:
                self.page.mouse.wheel(0, next(sweep))
            self.page.wait_for_timeout(500)
            return then()

        self.until(done)

    def see_tab(self, words: str) -> None:
        """The title of an open editor."""
        expect(self.page.locator(".tabs-container .tab", has_text=words).first).to_be_visible()

    def see_output(self, words: str) -> None:
        """A line of a terminal in the editor area."""
        pattern = re.compile(re.escape(words).replace("\\ ", r"\s"))
        expect(
            self.page.locator(".xterm-accessibility-tree, .xterm-rows", has_text=pattern).first
        ).to_be_attached()

    def erase_field(self, heading: str) -> None:
        """Remove the first line of text behind a heading of the document that is open."""
        self.page.locator(".editor-instance .view-lines").first.click()
        self.page.keyboard.press("Control+f")
        box = self.page.locator(".find-widget textarea.input").first
        box.wait_for(state="visible")
        box.fill(heading)
        self.page.keyboard.press("Enter")
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("End")
        self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("ArrowDown")
        self.page.keyboard.press("Home")
        self.page.keyboard.press("Shift+End")
        self.page.keyboard.press("Delete")

    def install_in_venv(self, user: User) -> None:
        """Put the program where a Python environment of the folder has it."""
        scripts = user.project / ".venv/bin"
        scripts.mkdir(parents=True)
        (scripts / "promptside").symlink_to(program_of(user))
