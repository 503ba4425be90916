"""The program that the Claude CLI runs before a tool changes a file (ED-11)."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from promptside_daemon.world.claude.unsaved_hook import MARK, verdict
from promptside_daemon.world.launch import UNSAVED, _before_edits


def asked(answer: str) -> Any:
    """What the reason says; None if nothing was said."""
    if not answer:
        return None
    said = json.loads(answer)["hookSpecificOutput"]
    assert said["permissionDecision"] == "ask"
    return json.loads(said["permissionDecisionReason"].removeprefix(MARK))


def use(cwd: Path, **given: Any) -> dict[str, object]:
    return {"cwd": str(cwd), "tool_name": "Edit", "tool_input": given}


def test_a_held_file_is_found_by_whatever_name(tmp_path: Path) -> None:
    file = tmp_path / "src" / "a.py"
    file.parent.mkdir()
    file.touch()
    (tmp_path / "link").symlink_to(file.parent)
    (tmp_path / "hard.py").hardlink_to(file)
    held = {str(file): "kate"}
    names = [str(file), "src/a.py", "link/a.py", "./src/../link/a.py", "hard.py"]
    for name in names:
        for key in ("file_path", "notebook_path"):
            found = asked(verdict(held, use(tmp_path, **{key: name})))
            assert found == {"file": str(file), "client": "kate"}, name
    for name in ["src/b.py", "/nowhere", "", None, 7]:
        assert asked(verdict(held, use(tmp_path, file_path=name))) is None
    assert asked(verdict(held, {"tool_input": "no object"})) is None


@pytest.mark.parametrize("listed", [None, "", "not JSON", "[]"], ids=["absent", "empty", "broken", "other"])
def test_what_is_wrong_with_it_is_in_nobody_s_way(tmp_path: Path, listed: str | None) -> None:
    if listed is not None:
        (tmp_path / UNSAVED).write_text(listed)
    assert ran(tmp_path, b"{}") == b""


def test_it_is_run_by_a_shell_from_a_directory_with_blanks_and_quotes(tmp_path: Path) -> None:
    directory = tmp_path / "an 'attempt'"
    directory.mkdir()
    file = tmp_path / "a.py"
    (directory / UNSAVED).write_text(json.dumps({str(file): "kate"}))
    said = ran(directory, json.dumps(use(tmp_path, file_path="a.py")).encode())
    assert asked(said.decode()) == {"file": str(file), "client": "kate"}
    assert ran(directory, b"no JSON") == b""


def ran(directory: Path, given: bytes) -> bytes:
    """What the hook says; it never fails."""
    command = ["/bin/sh", "-c", _before_edits(directory / UNSAVED)]
    environment = {"PATH": os.defpath}
    return subprocess.run(command, input=given, env=environment, capture_output=True, check=True).stdout
