"""What a person needs before a first run: how the plugin is installed, and what it says where something is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from nvim_editor import PLUGIN, Neovim, Terminal, until
from rig.user import User

Open = Callable[..., Neovim]
Screen = Callable[..., Terminal]


def script(folder: Path, text: str) -> str:
    """A PATH whose first `promptside` is this."""
    folder.mkdir()
    program = folder / "promptside"
    program.write_text(text)
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


@pytest.mark.parametrize("way", ["runtimepath", "packadd", "pack/start"])
def test_each_way_of_installing_gives_command_help_and_server(
    editors: Open, sample: User, tmp_path: Path, way: str
) -> None:
    """The plugin lies in a subdirectory of the repository; nothing else is called."""
    packed = tmp_path / "data" / "nvim" / "site" / "pack" / "promptside"
    packed = packed / ("start" if way == "pack/start" else "opt") / "promptside"
    packed.parent.mkdir(parents=True)
    packed.symlink_to(PLUGIN)
    lines = {
        "runtimepath": f"vim.opt.runtimepath:prepend('{PLUGIN}')",
        "packadd": "vim.cmd.packadd('promptside')",
        "pack/start": "",
    }
    nvim = editors(
        installed=False, init=lines[way], XDG_DATA_HOME=str(tmp_path / "data" if way != "runtimepath" else "")
    )
    nvim.do("")
    nvim.see("New Task…")
    found = nvim.lua(
        "return { vim.fn.exists(':Promptside'), #vim.api.nvim_get_runtime_file('doc/promptside.txt', false),"
        " vim.lsp.is_enabled('promptside'), #vim.lsp.get_clients({ name = 'promptside' }) }"
    )
    assert found == [2, 1, True, 1]


def test_a_program_that_is_missing_or_broken_is_one_sentence_with_what_to_do(
    terminals: Screen, tmp_path: Path
) -> None:
    """Never “Press ENTER”, though the editor's own words for it would take three lines."""
    said = {
        "none": (
            "/usr/bin:/bin",
            "promptside was not found. Install it with “pipx install .” in your clone of it",
        ),
        "python": (
            script(tmp_path / "a", "#!/nowhere/python3\n"),
            "Install it anew: “pipx reinstall promptside”",
        ),
        "ends": (
            script(tmp_path / "b", "#!/bin/sh\necho No module named promptside_cli >&2\nexit 1\n"),
            "does not start (exit code 1): No module named promptside_cli",
        ),
    }
    for path, words in said.values():
        terminal = terminals(PATH=path)
        terminal.see("README.md")
        terminal.type(":Promptside\r")
        until(
            lambda terminal=terminal, words=words: words in " ".join(terminal.screen.split()),
            lambda terminal=terminal, words=words: f"{words}\n{terminal.screen}",
        )
        terminal.see("g? help")
        terminal.type(":quit\r")
        terminal.close()


OLD = """#!/usr/bin/env python3
import json, sys
while head := sys.stdin.buffer.readline():
    if not head.startswith(b"Content-Length:"):
        continue
    sys.stdin.buffer.readline()
    asked = json.loads(sys.stdin.buffer.read(int(head.split(b":")[1])))
    if "id" not in asked:
        continue
    answer = {"error": {"code": -32601, "message": "Method Not Found: " + asked["method"]}}
    if asked["method"] == "initialize":
        answer = {"result": {"capabilities": {}}}
    text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(text) + text)
    sys.stdout.buffer.flush()
"""


def test_a_program_that_is_older_is_to_be_updated(editors: Open, tmp_path: Path) -> None:
    """It runs, but knows nothing of what this plugin asks of it."""
    nvim = editors(PATH=script(tmp_path / "old", OLD))
    nvim.do("")
    text = nvim.see("is older than this plugin. Update it: “pipx install --force .”")
    assert str(tmp_path / "old" / "promptside") in text
    nvim.never_blocked()


@pytest.mark.parametrize(("ours", "older"), [(0, "the plugin"), (99, "the program promptside")])
def test_a_daemon_of_another_version_is_said_with_what_to_update(
    editors: Open, ours: int, older: str
) -> None:
    """M28"""
    nvim = editors(init=f"require('promptside.protocol').PROTOCOL = {ours}")
    nvim.do("")
    text = nvim.see(f"This plugin speaks version {ours}, the daemon version ")
    assert f"Update {older}; until then you can read, not decide." in text


def test_without_python_or_with_an_old_neovim_that_comes_first(editors: Open, tmp_path: Path) -> None:
    nvim = editors(PATH=str(tmp_path))
    nvim.do("")
    nvim.hear("Promptside needs Python 3.11 or newer, which was not found. Install Python first.")
    old = editors(
        file="",
        init="local has = vim.fn.has; vim.fn.has = function(what) return what == 'nvim-0.11' and 0 or has(what) end",
    )
    old.do("next")
    assert "Promptside needs Neovim 0.11 or later." in old.lua("return vim.fn.execute('messages')")
    old.never_blocked()


def test_what_stands_in_the_way_is_said_with_one_thing_to_do(editors: Open, user: User) -> None:
    """An empty folder without a project, and without `claude`: first what can be done, then what is lacking."""
    nvim = editors(file="")
    nvim.do("")
    assert nvim.see("A task of your own needs an agent. The Claude CLI is not there").splitlines()[:4] == [
        " No task yet.",
        " Next: > Rehearse a pipeline: no agent, no cost",
        "       > New Task…",
        "",
    ]
    assert nvim.api.current.line.strip() == "Next: > Rehearse a pipeline: no agent, no cost"
    nvim.goto("> Check the set-up")
    nvim.keys("<CR>")
    until(lambda: nvim.name == "promptside://doctor", lambda: nvim.name)
    nvim.see("Install it (npm install -g @anthropic-ai/claude-code)")
    nvim.never_blocked()


def test_a_project_that_is_not_trusted_says_so_until_it_is(nvim: Neovim, sample: User) -> None:
    """M23"""
    sample.promptside("task", "new", "Leave common words out", "--agent", "rehearsal-fast:standard")
    sample.promptside("pipeline", "copy", "standard", "--to", "project")
    nvim.do("")
    nvim.see("This project brings its own pipeline")
    nvim.goto("> Read it, then trust it or not")
    nvim.answer("Show")
    nvim.keys("<CR>")
    nvim.see(".promptside/pipelines/standard.toml")
    nvim.see(":Promptside trust!")
    nvim.keys("q")
    nvim.do("trust!")
    nvim.hear("Trusted, in this version.")
    nvim.do("")
    until(lambda: "brings its own" not in nvim.text, lambda: nvim.text)


def test_health_gives_advice_where_something_is_amiss(editors: Open, sample: User) -> None:
    nvim = editors(init="vim.o.autoread = false; vim.g.promptside = { output = 3, colour = 'red' }")
    nvim.api.command("checkhealth promptside")
    text = nvim.see("It becomes one with its first task: :Promptside new")
    for words in (
        "there is no setting colour.",
        "output is no string.",
        "promptside-configuration",
        ":set autoread",
        "from PATH",
        "lenses are asked for",
        "the same protocol as this plugin",
        "Install it (npm install -g @anthropic-ai/claude-code)",
    ):
        assert words in text, text


def test_a_rehearsal_is_a_task_that_is_filled_in(nvim: Neovim) -> None:
    nvim.do("")
    nvim.see("> Rehearse a pipeline")
    nvim.goto("> Rehearse a pipeline")
    nvim.keys("<CR>")
    nvim.see("# New task")
    nvim.see("- [x] rehearsal:standard")
    nvim.lens("Create and run")
    assert nvim.lua("return vim.bo.modified") is False
    nvim.keys(",a")
    until(lambda: nvim.view and nvim.view["stages"][0]["status"] == "running", lambda: nvim.said)
    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    assert nvim.view["agent"] == "rehearsal:standard"
    nvim.do("stop!")
    nvim.waits("research", "person")


def test_a_terminal_that_ended_is_closed_and_the_cursor_is_where_it_was(nvim: Neovim) -> None:
    nvim.api.command("botright split elsewhere")
    nvim.api.command("wincmd p")
    before = nvim.api.current.window
    nvim.lua("require('promptside.terminal').run({ 'version' }, {})")
    until(lambda: "has ended" in nvim.lua("return vim.wo.winbar"), lambda: nvim.text)
    nvim.keys("q")
    assert nvim.api.current.window == before


def test_the_demo_plays_in_a_terminal(nvim: Neovim, sample: User) -> None:
    nvim.do("demo")
    until(lambda: nvim.lua("return vim.bo.buftype") == "terminal", lambda: nvim.said)
    until(lambda: "A recorded agent plays" in nvim.text, lambda: nvim.text)
    nvim.api.command("bwipeout!")
    until(lambda: not any(" demo" in words for words in sample.processes().values()), sample.processes)
