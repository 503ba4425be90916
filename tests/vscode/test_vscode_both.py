"""One task in VS Code, Neovim and a terminal at once: after each step all of them have the same of it (ED-10)."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import TITLE, look, new_task, sample, waits
from vscode_rig.workbench import Workbench

sys.path.insert(0, str(Path(__file__).parents[1] / "neovim"))

from nvim_editor import Neovim


class Beside:
    """A Neovim in a thread of its own: it and the browser each have an event loop."""

    def __init__(self, user: User) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._nvim = self._thread.submit(Neovim, user).result()

    def does(self, what: Callable[[Neovim], Any]) -> Any:
        return self._thread.submit(what, self._nvim).result()

    def close(self) -> None:
        self.does(Neovim.close)
        self._thread.shutdown()


@pytest.fixture
def nvim(user: User) -> Iterator[Beside]:
    sample(user)
    beside = Beside(user)
    yield beside
    beside.close()


def test_one_task_in_three_clients(user: User, nvim: Beside, open_window: Callable[..., Workbench]) -> None:
    new_task(user)
    window = open_window()
    window.open_tasks()

    def same(words: str) -> None:
        """Neovim has the daemon's view whole; the window says it in its row; the terminal prints it."""
        window.until(lambda: _plain(nvim.does(lambda one: one.view)) == _plain(look(user)))
        row = window.page.locator(f".sidebar .monaco-list-row[aria-label^='{TITLE}, {words}']")
        expect(row).to_be_visible()
        assert _plain(user.task()) == _plain(look(user)) == _plain(nvim.does(lambda one: one.view))

    same("ready")
    nvim.does(lambda one: one.do("run"))
    waits(window, user, "research", "decision")
    same("waits for you, Research, 1 question")
    window.palette("Take the Recommended Answers")
    window.until(lambda: all(offer["blocked"] is None for offer in look(user)["offers"] if offer["primary"]))
    same("waits for you, Research, 1 question")
    window.palette("Send Answers")
    waits(window, user, "research")
    same("waits for you, Research, your approval")
    user.promptside("approve", "1", code=None)
    waits(window, user, "high-level-approaches")
    same("waits for you, High-Level Approaches, select 1 of 3")
    window.palette("Select Option…")
    window.choose("A ·")
    same("waits for you, High-Level Approaches, A selected")
    nvim.does(lambda one: one.do("approve"))
    waits(window, user, "planning")
    same("waits for you, Planning, your approval")
    window.palette("Redo Stage with Feedback…")
    window.fill("Put the tests first.")
    window.until(lambda: len(look(user)["stages"][2]["attempts"]) == 2)
    waits(window, user, "planning")
    same("waits for you, Planning, your approval")
    window.picture("three")
    user.promptside("task", "abandon", "1")
    same("archived") if look(user)["state"] == "archived" else None


def _plain(value: Any) -> Any:
    """Lua has one empty table, and no key whose value is nothing."""
    match value:
        case dict():
            kept = {str(key): _plain(inner) for key, inner in value.items()}
            return {key: inner for key, inner in kept.items() if inner not in (None, [])} or None
        case list() | tuple():
            return [_plain(inner) for inner in value] or None
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
