"""The protocol in the editors' languages is what the Structs say now."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import Struct

from promptside_protocol import generate
from promptside_protocol.commands import COMMANDS
from promptside_protocol.notices import NOTICES
from promptside_protocol.queries import QUERIES

CLIENTS = Path(__file__).parents[2] / "clients"
COMMITTED = {
    "ts": CLIENTS / "vscode" / "src" / "protocol.ts",
    "lua": CLIENTS / "neovim" / "lua" / "promptside" / "protocol.lua",
}


@pytest.mark.parametrize("language", generate.LANGUAGES)
def test_the_committed_file_is_not_stale(language: str) -> None:
    path = COMMITTED[language]
    remedy = f"python -m promptside_protocol {language} > {path.relative_to(CLIENTS.parent)}"
    assert path.read_text() == generate.LANGUAGES[language](), f"stale; run: {remedy}"


def test_the_program_prints_a_language_or_says_which_there_are() -> None:
    program = [sys.executable, "-m", "promptside_protocol"]
    done = subprocess.run([*program, "lua"], capture_output=True, check=True)
    assert done.stdout.decode() == generate.lua()
    wrong = subprocess.run([*program, "cobol"], capture_output=True, check=False)
    assert wrong.returncode == 2
    assert b"ts|lua" in wrong.stderr


def test_every_message_is_there_once() -> None:
    names = [kind.__name__ for kind in generate.structs()]
    assert len(names) == len(set(names))
    assert {kind.__name__ for kind in (*COMMANDS.values(), *QUERIES.values(), *NOTICES.values())} <= set(
        names
    )


@pytest.mark.parametrize(
    ("hint", "typescript", "lua"),
    [
        (str, "string", "string"),
        (int, "number", "integer"),
        (float, "number", "number"),
        (bool, "boolean", "boolean"),
        (Any, "unknown", "any"),
        (object, "unknown", "any"),
        (int | None, "number | null", "integer|nil"),
        (int | float, "number", "integer|number"),
        (Literal["a", "b"], '"a" | "b"', '"a"|"b"'),
        (tuple[str, ...], "string[]", "string[]"),
        (tuple[str | None, ...], "(string | null)[]", "(string|nil)[]"),
        (tuple[int, str], "[number, string]", "[integer, string]"),
        (dict[str, tuple[Literal["a"], ...]], 'Record<string, "a"[]>', 'table<string, "a"[]>'),
    ],
)
def test_a_type_in_each_language(hint: Any, typescript: str, lua: str) -> None:
    assert generate._ts(hint) == typescript
    assert generate._lua(hint) == lua


def test_a_type_that_no_language_has_is_said() -> None:
    with pytest.raises(TypeError, match="TypeScript"):
        generate._ts(list[int])


def test_two_structs_of_one_name_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = type("Redo", (Struct,), {"__annotations__": {}}, tag="twin", tag_field="type")
    monkeypatch.setitem(COMMANDS, "twin", twin)
    with pytest.raises(TypeError, match="called Redo"):
        generate.structs()


def test_what_a_client_sends_may_leave_out_defaults_and_what_it_gets_is_whole() -> None:
    text = generate.typescript()
    assert "  feedback?: string;\n" in text
    assert "  /** Guards against approving what came after; empty is the stage that waits. */\n" in text
    view = text[text.index("export interface TaskView {") :]
    assert "?:" not in view[: view.index("}")]
    assert "---@field waiting_for? promptside.WaitingFor\n" in generate.lua()
