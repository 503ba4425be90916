"""The pipeline panel that is open in a window, by what is read, clicked and typed in it."""

import re

from playwright.sync_api import FrameLocator, Locator, Page, expect

from vscode_rig.workbench import Workbench


def page_of(page: Page) -> FrameLocator:
    """The page that a webview draws, inside the frames that the editor puts around it."""
    return page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")


class Panel:
    """The panel that is open, or is about to be."""

    def __init__(self, window: Workbench) -> None:
        self.window = window
        self.page = window.page
        self.frame = page_of(window.page)
        self.main = self.frame.locator(".main")

    def open(self) -> None:
        """By the palette."""
        self.window.palette("Open Pipeline Panel")
        expect(self.frame.locator(".host")).to_be_visible()

    def at(self, stage: str) -> None:
        """The stage that is drawn."""
        expect(self.frame.locator(".stage h2")).to_have_text(stage)

    def see(self, words: str) -> None:
        expect(self.main).to_contain_text(words)

    def stage(self, name: str) -> Locator:
        """A stage of the rail."""
        named = re.compile(f"^Stage . of ., {re.escape(name)}")
        return self.frame.get_by_role("navigation", name="Stages").get_by_role("button", name=named)

    def button(self, title: str) -> Locator:
        """One of those that decide."""
        named = re.compile(f"^{re.escape(title)}")
        return self.frame.get_by_role("group", name="Decide").get_by_role("button", name=named)

    def press(self, title: str) -> None:
        """What can be decided now."""
        button = self.button(title)
        expect(button).not_to_have_attribute("aria-disabled", "true")
        button.click()

    def blocked(self, title: str, reason: str) -> None:
        """What can't be decided now, with its reason beside it."""
        expect(self.button(title)).to_have_attribute("aria-disabled", "true")
        status = self.frame.get_by_role("group", name="Decide").get_by_role("status")
        expect(status).to_contain_text(reason)
