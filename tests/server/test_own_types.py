"""The server's own messages in the editors' languages are what the Structs say now."""

import subprocess
import sys
from pathlib import Path

import pytest

from promptside_server import generate
from promptside_server.ours import NOTIFICATIONS, REQUESTS

CLIENTS = Path(__file__).parents[2] / "clients"
COMMITTED = {
    "ts": CLIENTS / "vscode" / "src" / "ours.ts",
    "lua": CLIENTS / "neovim" / "lua" / "promptside" / "ours.lua",
}


@pytest.mark.parametrize("language", generate.LANGUAGES)
def test_the_committed_file_is_not_stale(language: str) -> None:
    path = COMMITTED[language]
    remedy = f"python -m promptside_server.generate {language} > {path.relative_to(CLIENTS.parent)}"
    assert path.read_text() == generate.LANGUAGES[language](), f"stale; run: {remedy}"


def test_every_message_is_there() -> None:
    kinds = [*NOTIFICATIONS.values(), *(kind for pair in REQUESTS.values() for kind in pair if kind)]
    for kind in kinds:
        assert f"export interface {kind.__name__} {{" in generate.typescript()
        assert f"---@class promptside.ours.{kind.__name__}\n" in generate.lua()


def test_the_program_prints_a_language_or_says_which_there_are() -> None:
    program = [sys.executable, "-m", "promptside_server.generate"]
    done = subprocess.run([*program, "ts"], capture_output=True, check=True)
    assert done.stdout.decode() == generate.typescript()
    wrong = subprocess.run([*program, "cobol"], capture_output=True, check=False)
    assert wrong.returncode == 2
    assert b"ts|lua" in wrong.stderr
