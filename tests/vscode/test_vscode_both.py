"""One task in VS Code, Neovim and a terminal at once: after each step all of them have the same of it (ED-10)."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from rig.user import User
from vscode_rig.panel import Panel
from vscode_rig.stories import TITLE, new_task, sample, waits
from vscode_rig.workbench import Workbench

sys.path.insert(0, str(Path(__file__).parents[1] / "neovim"))

from nvim_editor import INSTALLED, nvim_binary, until

LISTEN = """() => window.addEventListener('message', ({ data }) => {
    if (data.type === 'shown') window.heard = data.task;
})"""
"""Keep the view that the panel is told."""


class Beside:
    """A Neovim that is spoken to by its own program: the browser's event loop suffers no second one here."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._socket = user.base / "nvim.sock"
        script = user.base / "init.lua"
        script.write_text(INSTALLED, encoding="utf-8")
        words = [
            "--headless",
            "--listen",
            str(self._socket),
            "-u",
            str(script),
            "-i",
            "NONE",
            "-n",
            "README.md",
        ]
        self._process = subprocess.Popen(
            [nvim_binary(), *words], cwd=user.project, env=user.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self._socket.exists)

    @property
    def view(self) -> Any:
        """The task as the editor knows it."""
        return json.loads(
            self._says("luaeval(\"vim.json.encode(require('promptside.tasks').list()[1] or vim.NIL)\")")
        )

    def do(self, words: str) -> None:
        """`:Promptside …`"""
        self._says(f"execute('Promptside {words}')")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()

    def _says(self, expression: str) -> str:
        return subprocess.run(
            [nvim_binary(), "--server", str(self._socket), "--remote-expr", expression],
            env=self._user.environment, capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip


@pytest.fixture
def nvim(user: User) -> Iterator[Beside]:
    sample(user)
    new_task(user)
    beside = Beside(user)
    yield beside
    beside.close()


def test_one_task_in_three_clients(user: User, nvim: Beside, open_window: Callable[..., Workbench]) -> None:
    window = open_window()
    window.open_tasks()
    window.row(TITLE).click()
    panel = Panel(window)
    panel.at("Research")
    panel.frame.locator("body").evaluate(LISTEN)

    def same(words: str) -> None:
        """Each has the daemon's view whole: Neovim, the window's panel, and the terminal that prints it."""
        row = window.page.locator(f".sidebar .monaco-list-row[aria-label^='{TITLE}, {words}']")
        expect(row).to_be_visible()
        window.until(lambda: _plain(user.look()) == _plain(nvim.view) == _plain(heard()))
        assert _plain(user.task()) == _plain(user.look()) == _plain(nvim.view) == _plain(heard())

    def heard() -> Any:
        return panel.frame.locator("body").evaluate("() => window.heard")

    nvim.do("run")
    waits(window, user, "research", "decision")
    same("waits for you, Research, 1 question")
    window.palette("Tick the Recommended Answers")
    window.until(
        lambda: any(o["command"] == "promptside.send" and not o["blocked"] for o in user.look()["offers"])
    )
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
    nvim.do("approve")
    waits(window, user, "planning")
    same("waits for you, Planning, your approval")
    window.palette("Redo Stage with Feedback…")
    window.fill("Put the tests first.")
    window.until(lambda: len(user.look()["stages"][2]["attempts"]) == 2)
    waits(window, user, "planning")
    same("waits for you, Planning, your approval")
    window.picture("three")


def _plain(value: Any) -> Any:
    """Lua has one empty table, no key whose value is nothing, and fewer digits."""
    match value:
        case dict():
            kept = {str(key): _plain(inner) for key, inner in value.items()}
            return {key: inner for key, inner in kept.items() if inner not in (None, [])} or None
        case list() | tuple():
            return [_plain(inner) for inner in value] or None
        case float():
            return int(value) if value.is_integer() else round(value, 3)
        case _:
            return value
