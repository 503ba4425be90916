"""`gc`: what retention removes, and removing it (DA-9)."""

from __future__ import annotations

from promptside_cli import wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import CollectGarbage
from promptside_protocol.pages.words import several, size
from promptside_protocol.queries import GetGarbage


def collect(arguments: Arguments) -> int:
    """`gc`"""
    removes = not arguments.given("--dry-run")
    found = wire.ask(GetGarbage())
    if removes and found.attempts:
        wire.ask(CollectGarbage())
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    for attempt in found.attempts:
        terminal.say(f"  {attempt}")
    verb = "Removed" if removes else "Would be removed"
    terminal.say(f"{verb}: {several(len(found.attempts), 'attempt')}, {size(found.bytes)}. Facts stay.")
    return DONE
