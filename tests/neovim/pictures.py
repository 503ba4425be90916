"""The pictures of docs/neovim.md: Neovim in a terminal, its cells drawn by a browser.

`python tests/neovim/pictures.py` writes docs/pictures/neovim-*.png; needs tmux, playwright and a Chromium (`CHROMIUM`).
"""

import html
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

# ruff: noqa: E402  # the tests' own modules are found by the path above
from nvim_editor import Terminal
from playwright.sync_api import sync_playwright
from rig.scratch import begin, end
from rig.user import User, new_user

from promptside_daemon.world.rehearsal import SHIPPED

PICTURES = HERE.parents[1] / "docs" / "pictures"
INIT = "vim.o.termguicolors = true; vim.o.laststatus = 2; vim.o.ruler = false; vim.o.showcmd = false"
STYLE = """
body { margin: 0; background: #14161b; }
pre { margin: 0; padding: 12px 14px; width: max-content; color: #e0e2ea; background: #14161b;
  font: 14px/19px "DejaVu Sans Mono", "Liberation Mono", monospace; }
"""
SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)m")
BASIC = ("#07080d", "#ffc0b9", "#b3f6c0", "#fce094", "#a6dbff", "#ffcaff", "#8cf8f7", "#eef1f8")


class Pen:
    """What the next cells look like, as the terminal's sequences set it."""

    def __init__(self) -> None:
        self.ink = self.paper = ""
        self.bold = self.slanted = self.under = self.swapped = False

    def read(self, codes: list[int]) -> None:
        """Take over one sequence."""
        rest = iter(codes or [0])
        for code in rest:
            match code:
                case 0:
                    self.__init__()  # type: ignore[misc]  # everything as at the beginning
                case 1:
                    self.bold = True
                case 3:
                    self.slanted = True
                case 4:
                    self.under = True
                case 7:
                    self.swapped = True
                case 22:
                    self.bold = False
                case 23:
                    self.slanted = False
                case 24:
                    self.under = False
                case 27:
                    self.swapped = False
                case 39:
                    self.ink = ""
                case 49:
                    self.paper = ""
                case 38 | 48:
                    colour = _extended(rest)
                    if code == 38:
                        self.ink = colour
                    else:
                        self.paper = colour
                case _ if 30 <= code <= 37:
                    self.ink = BASIC[code - 30]
                case _ if 40 <= code <= 47:
                    self.paper = BASIC[code - 40]
                case _:
                    pass

    def style(self) -> str:
        """The same in CSS."""
        ink, paper = self.ink or "#e0e2ea", self.paper or "#14161b"
        if self.swapped:
            ink, paper = paper, ink
        words = [f"color:{ink}", f"background:{paper}"]
        words += ["font-weight:bold"] if self.bold else []
        words += ["font-style:italic"] if self.slanted else []
        words += ["text-decoration:underline"] if self.under else []
        return ";".join(words)


def _extended(rest: Iterator[int]) -> str:
    if next(rest, 5) == 2:
        return f"rgb({next(rest, 0)},{next(rest, 0)},{next(rest, 0)})"
    grey = next(rest, 7)
    return BASIC[grey % 8] if grey < 16 else f"rgb({grey},{grey},{grey})"


def drawn(cells: str) -> str:
    """A captured screen as HTML."""
    pen, lines = Pen(), []
    for line in cells.rstrip("\n").split("\n"):
        parts, at = [], 0
        for found in [*SEQUENCE.finditer(line), None]:
            text = line[at : found.start() if found else None]
            if text:
                parts.append(f'<span style="{pen.style()}">{html.escape(text)}</span>')
            if found:
                at = found.end()
                pen.read([int(code or 0) for code in found[1].replace(":", ";").split(";")])
        lines.append("".join(parts))
    return f"<style>{STYLE}</style><pre>" + "\n".join(lines) + "</pre>"


@contextmanager
def person() -> Iterator[User]:
    """Somebody in a copy of the sample project."""
    begin()
    people = new_user()
    user = next(people)
    project = SHIPPED / "standard" / "project"
    shutil.copytree(project, user.project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    user.commit_all()
    try:
        yield user
    finally:
        next(people, None)
        end()


def main() -> None:
    """Take all of them."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with person() as user, sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 600})
        screen = Terminal(user, "README.md", INIT, columns=100, lines=30, COLORTERM="truecolor")

        def take(name: str) -> None:
            page.set_content(drawn(screen.coloured))
            page.locator("pre").screenshot(path=PICTURES / f"neovim-{name}.png")

        try:
            _play(user, screen, take)
        finally:
            screen.close()
            browser.close()


def _play(user: User, screen: Terminal, take: Callable[[str], None]) -> None:
    agent = ("--agent", "rehearsal-fast:standard")
    user.promptside("task", "new", "Leave common words out of the list", *agent)
    user.promptside("task", "new", "Count words of several files at once", *agent)
    user.promptside("task", "new", "Say which encoding was taken", *agent)
    for number in (1, 2):
        for _ in range(number - 1):
            user.promptside("skip", str(number), "--reason", "Known.")
    user.promptside("run", "2", code=3)
    screen.see("README.md")
    screen.type(":Promptside\r")
    screen.see("Waiting for you (1)", "Ready (2)")
    screen.type(":Promptside run 1\r")
    screen.see("Waiting for you (2)", "Ask      Where should")
    screen.type(":Promptside open 1\r")
    screen.see("> Open document")
    take("task")
    screen.keys("Enter")
    screen.see("# Questions: Research", "0 of 1 required answered")
    screen.type("/A file that is named\r")
    screen.keys("Enter")
    screen.see("1 of 1 required answered")
    screen.type(":nohlsearch\r")
    screen.type(",a")
    screen.see("waits for you: Research")
    screen.type(":Promptside approve\r")
    screen.see("Approved.")
    user.until(lambda task: (task["waiting_for"] or {}).get("stage") == "high-level-approaches")
    screen.type(":only\r:Promptside next\r")
    screen.see("# High-Level Approaches", "Select 1 of 3")
    screen.type("/] Select A\r")
    screen.keys("Enter")
    screen.see("Approve A")
    screen.type(":nohlsearch\r")
    take("options")
    screen.type(",a")
    screen.see("Approved.")
    user.until(lambda task: (task["waiting_for"] or {}).get("stage") == "planning")
    user.promptside("approve", "1", code=None)
    user.until(lambda task: (task["waiting_for"] or {}).get("kind") == "decision")
    screen.type(":Promptside open 1\r")
    screen.see("> Allow once")
    take("permission")
    screen.type(":Promptside allow task\r")
    user.until(lambda task: (task["waiting_for"] or {}).get("stage") == "implementation")
    screen.see("Waits for you: your approval")
    screen.type(":only\r:Promptside changes!\r")
    screen.see("def without")
    screen.type("/def without\r:nohlsearch\r")
    screen.type(":Promptside comment Say what happens to upper case.\r")
    screen.see(">> Say what happens")
    take("changes")
    screen.type(":tabonly\r:only\r:Promptside\r")
    screen.see("Waiting for you (2)")
    screen.type("g?")
    screen.see("this list")
    take("keys")


if __name__ == "__main__":
    main()
