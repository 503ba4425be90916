"""`trust`: let what a project brings run, bound to the content that was shown (DA-5)."""

from __future__ import annotations

import os

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, REFUSED, UsageError
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import RevokeTrust, Trust
from promptside_protocol.pages.plain import one_line
from promptside_protocol.queries import FindProject, GetTrust
from promptside_protocol.views import TrustView


def trust(arguments: Arguments) -> int:
    """`trust`: shows everything first, and trusts exactly that; a person at a terminal is asked."""
    if arguments.given("--revoke") and arguments.given("--show"):
        raise UsageError("--revoke and --show exclude each other.", arguments.verb.usage)
    project = _project(arguments)
    terminal = Terminal.of(arguments)
    if arguments.given("--revoke"):
        wire.ask(RevokeTrust(project=project))
        return _end(terminal, project)
    found = wire.ask(GetTrust(project=project))
    _show(terminal, found)
    if arguments.given("--show") or found.state in ("none_needed", "trusted"):
        if terminal.json:
            terminal.document(found)
        return DONE
    if terminal.asks:
        reply = input("Trust exactly this? [y/N]: ")
        if reply.strip().lower() not in ("y", "yes"):
            terminal.say("Nothing was changed.")
            return REFUSED
    wire.ask(Trust(project=project, hash=found.hash))
    return _end(terminal, project)


def _project(arguments: Arguments) -> str:
    word = arguments.word("PATH")
    if not word:
        return place.project_made(arguments)
    path = os.path.abspath(word)  # noqa: PTH100  # `resolve` would follow links
    found = wire.ask(FindProject(path=path))
    return found.path if found is not None else path


def _show(terminal: Terminal, found: TrustView) -> None:
    if terminal.json:
        return
    terminal.say(one_line(found.sentence))
    for item in found.items:
        changed = terminal.paint("  changed", "waiting") if item.changed else ""
        terminal.say(f"  {one_line(item.path)}  {terminal.paint(one_line(item.what), 'muted')}{changed}")


def _end(terminal: Terminal, project: str) -> int:
    found = wire.ask(GetTrust(project=project))
    if terminal.json:
        terminal.document(found)
    else:
        terminal.say(one_line(found.sentence))
    return DONE
