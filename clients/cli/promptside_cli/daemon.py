"""`daemon run`, `status`, `stop`, `logs` (DA-1)."""

from __future__ import annotations

import os
import sys

from promptside_cli import wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, UNREACHABLE
from promptside_cli.terminal import Terminal
from promptside_protocol import paths
from promptside_protocol.commands import Shutdown
from promptside_protocol.errors import Unreachable
from promptside_protocol.pages.plain import harmless
from promptside_protocol.pages.words import duration, several
from promptside_protocol.queries import Status


def run(_: Arguments) -> int:
    """`daemon run`: becomes the daemon, in the foreground; with `-P` it takes no module from where we are."""
    words = [sys.executable, "-P", "-m", "promptside_daemon", "run", "--foreground"]
    os.execv(sys.executable, words)  # noqa: S606  # no shell


def status(arguments: Arguments) -> int:
    """`daemon status`: starts none; 5 where none runs."""
    found = wire.ask(Status(), start=False)
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    terminal.say(
        f"The daemon runs: process {found.pid}, version {found.version}, up {duration(found.uptime_s)}."
    )
    terminal.say(f"{several(len(found.attempts), 'agent')} at work, {several(found.clients, 'client')}.")
    terminal.say(f"Log: {found.log or paths.log_dir()}")
    return DONE


def stop(arguments: Arguments) -> int:
    """`daemon stop`: done also where none runs."""
    terminal = Terminal.of(arguments)
    try:
        wire.ask(Shutdown(), start=False)
    except Unreachable:
        if wire.listens():
            raise
        words = "No daemon runs."
    else:
        words = "The daemon stopped. Agents at work go on."
    if terminal.json:
        terminal.document({"stopped": True})
    else:
        terminal.say(words)
    return DONE


def logs(arguments: Arguments) -> int:
    """`daemon logs`: also when no daemon runs, for that is when one wants them."""
    path = paths.log_dir() / "daemon.log"
    terminal = Terminal.of(arguments)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        terminal.fail("no-log", f"There is no log at {path}.")
        return UNREACHABLE
    if terminal.json:
        terminal.document({"path": str(path), "lines": text.splitlines()})
    else:
        sys.stdout.write(harmless(text))
    return DONE
