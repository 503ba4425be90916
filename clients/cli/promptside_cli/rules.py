"""`rules`, `rules remove`: permissions given with “always” (ST-14)."""

from __future__ import annotations

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, UsageError
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import RemoveRule
from promptside_protocol.queries import Rules


def list_rules(arguments: Arguments) -> int:
    """`rules`"""
    return _show(arguments, place.project(arguments))


def remove(arguments: Arguments) -> int:
    """`rules remove`: shows what is left."""
    word = arguments.word("ID")
    if not word.isascii() or not word.isdigit():
        raise UsageError(f"A rule goes by its number, not “{word}”.", arguments.verb.usage)
    project = place.project(arguments)
    wire.ask(RemoveRule(project=project, rule=int(word)))
    return _show(arguments, project)


def _show(arguments: Arguments, project: str) -> int:
    rules = wire.ask(Rules(project=project))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(rules)
        return DONE
    from promptside_protocol.pages.rules import rules_page  # noqa: PLC0415  # data needs no page

    terminal.page(rules_page(rules, terminal.look()))
    return DONE
