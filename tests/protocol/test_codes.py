"""Every code that the source can refuse with is written alike, and stands in the one list with what it means."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from promptside_protocol.codes import CODES, PATTERN

CHECKOUT = Path(__file__).parents[2]
PACKAGES = (
    "daemon/promptside_protocol",
    "daemon/promptside_daemon",
    "server/promptside_server",
    "clients/cli/promptside_cli",
)
MAKERS = {"refused", "Refusal", "refusal", "Stopped", "fail"}
"""What makes a refusal out of a code."""


def constants(node: ast.expr | None) -> list[str]:
    """The code, or each of those that it can be; a code that is handed on is found where it comes from."""
    match node:
        case ast.Constant(value=str(word)):
            return [word]
        case ast.IfExp(body=one, orelse=other):
            return [*constants(one), *constants(other)]
        case _:
            return []


def codes_in(tree: ast.AST) -> Iterator[str]:
    """The codes of calls that make a refusal, and of classes whose refusals all have one."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in MAKERS:
                named = {keyword.arg: keyword.value for keyword in node.keywords}
                yield from constants(named.get("code", node.args[0] if node.args else None))
            case ast.ClassDef(bases=[ast.Name(id="StoreFault")], body=body):
                for inner in body:
                    match inner:
                        case ast.Assign(targets=[ast.Name(id="code")], value=value):
                            yield from constants(value)
                        case _:
                            pass
            case _:
                pass


def in_source() -> dict[str, str]:
    """Every code of the source, with a file that has it."""
    return {
        code: str(file.relative_to(CHECKOUT))
        for package in PACKAGES
        for file in sorted((CHECKOUT / package).rglob("*.py"))
        if file.name != "player.py"  # its `refusal` is the agent's: a tool result that says no
        for code in codes_in(ast.parse(file.read_text()))
    }


SOURCE = in_source()


def test_every_code_is_written_like_the_others() -> None:
    odd = {code: SOURCE.get(code) for code in (*CODES, *SOURCE) if not re.fullmatch(PATTERN, code)}
    assert not odd


def test_every_code_of_the_source_is_in_the_list_and_no_other() -> None:
    missing = {code: file for code, file in SOURCE.items() if code not in CODES}
    assert not missing, "say in promptside_protocol/codes.py what these mean"
    assert CODES.keys() == SOURCE.keys(), "a code that nothing says any more"


def test_each_meaning_is_a_sentence() -> None:
    for code, meaning in CODES.items():
        assert re.fullmatch(r"[A-Z`].*\.", meaning), code
