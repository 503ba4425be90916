"""`answer`, `decision list`: questions of the agent and permissions it asks for (CW-4, ST-14)."""

from __future__ import annotations

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, UsageError
from promptside_cli.orders import give
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import Answer
from promptside_protocol.queries import Decisions


def answer(arguments: Arguments) -> int:
    """`answer`: one of the four ways, or `--text` with the option that takes a word."""
    ways = [name for name in ("--option", "--text", "--file", "--recommended") if arguments.given(name)]
    if not ways:
        raise UsageError("What is the answer?", arguments.verb.usage)
    if len(ways) > 1 and set(ways) != {"--option", "--text"}:
        raise UsageError(f"{ways[0]} and {ways[1]} exclude each other.", arguments.verb.usage)
    view = place.task(arguments)
    order = Answer(
        project=view.project,
        task=view.id,
        decision=arguments.word("DECISION"),
        options=arguments.all("--option"),
        text=arguments.one("--text"),
        files=arguments.all("--file"),
        recommended=arguments.given("--recommended"),
    )
    return give(arguments, order)


def list_decisions(arguments: Arguments) -> int:
    """`decision list`: every one of them, the open ones with their choices."""
    view = place.task(arguments)
    found = wire.ask(Decisions(project=view.project, task=view.id))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    from msgspec.structs import replace  # noqa: PLC0415  # data needs no page

    from promptside_protocol.pages.task import decision_lines  # noqa: PLC0415  # see above
    from promptside_protocol.pages.waiting import question  # noqa: PLC0415  # see above

    settled = replace(view, decisions=found, stages=tuple(replace(s, approval=None) for s in view.stages))
    waiting = [drawn for one in found if one.status in ("open", "parked") for drawn in question(one)]
    for drawn in (*decision_lines(settled, terminal.look()), *waiting):
        terminal.line(drawn)
    if not found:
        terminal.say("The agent has asked nothing.")
    return DONE
