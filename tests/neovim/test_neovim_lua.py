"""The Lua units, run by busted inside the real Neovim; and the tools that read the Lua."""

import subprocess
from pathlib import Path

from nvim_editor import PLUGIN, nvim_binary
from rig.editor_tools import node, stylua


def test_the_lua_specs_pass(tmp_path: Path) -> None:
    here = Path(__file__).parent / "spec"
    done = subprocess.run(
        [str(nvim_binary()), "-u", "NONE", "-i", "NONE", "-n", "-l", str(here / "busted.lua"), str(here)],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures" in done.stdout, done.stdout


def test_luacheck_finds_nothing() -> None:
    done = subprocess.run(["luacheck", "-q", "."], cwd=PLUGIN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stylua_would_change_nothing() -> None:
    done = subprocess.run(
        [str(node()), str(stylua()), "--check", "."], cwd=PLUGIN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
