"""`diff`, `undo`: what an attempt changed, and taking it back (GA-12)."""

from __future__ import annotations

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, UsageError
from promptside_cli.orders import give
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import UndoFiles
from promptside_protocol.pages.plain import harmless, one_line
from promptside_protocol.queries import Diff
from promptside_protocol.views import Change


def diff(arguments: Arguments) -> int:
    """`diff`: in a pipe the unified diff alone, so that `git apply` and viewers take it."""
    view = place.task(arguments)
    question = Diff(
        project=view.project,
        task=view.id,
        stage=arguments.one("--stage"),
        attempt=arguments.number("--attempt"),
    )
    found = wire.ask(question)
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    if terminal.tty:
        for change in found.changes:
            terminal.say(summary(terminal, change))
        if not found.changes:
            terminal.say("Nothing was changed.")
    for line in harmless(found.diff).splitlines():
        terminal.say(terminal.paint(line, role_of(line)))
    return DONE


def undo(arguments: Arguments) -> int:
    """`undo`: files; a conversation can't be taken back yet."""
    if arguments.given("--conversation") or arguments.given("--both"):
        raise UsageError("Taking back a conversation comes with a later version.", arguments.verb.usage)
    view = place.task(arguments)
    order = UndoFiles(
        project=view.project,
        task=view.id,
        stage=arguments.one("--stage"),
        attempt=arguments.number("--attempt"),
    )
    return give(arguments, order)


def summary(terminal: Terminal, change: Change) -> str:
    """`modified  src/auth/login.ts  +64 -3`"""
    plus = terminal.paint(f"+{change.added}", "added") if change.added is not None else ""
    minus = terminal.paint(f"-{change.removed}", "removed") if change.removed is not None else ""
    return f"{change.kind:<9}  {one_line(change.path)}  {plus} {minus}".rstrip()


def role_of(line: str) -> str:
    """The role of a line of a unified diff."""
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "muted"
    return {"+": "added", "-": "removed"}.get(line[:1], "")
