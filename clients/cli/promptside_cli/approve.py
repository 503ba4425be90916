"""`approve`: what waits at the gate, with what it takes given on the line."""

from __future__ import annotations

from promptside_cli import drafts, place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE
from promptside_cli.orders import after
from promptside_protocol.commands import Approve
from promptside_protocol.queries import GetTask
from promptside_protocol.views import GateView


def approve(arguments: Arguments) -> int:
    """`approve`: without `--shown` it vouches for the document as the daemon has it."""
    view = place.task(arguments)
    waiting = view.waiting_for
    gate = waiting.gate if waiting is not None else None
    order = Approve(
        project=view.project,
        task=view.id,
        # Where no gate waits the daemon refuses, and says why better than we could.
        answers=_answers(arguments, gate) if gate is not None else {},
        note=arguments.one("--note"),
        sign_off=arguments.given("--sign-off"),
        shown=arguments.one("--shown"),
        stage=waiting.stage if waiting is not None and gate is not None else "",
        anyway=arguments.given("--anyway"),
    )
    ack = wire.ask(order)
    after(arguments, wire.ask(GetTask(project=view.project, task=view.id)), ack.said)
    return DONE


def _answers(arguments: Arguments, gate: GateView) -> drafts.Answers:
    answers: drafts.Answers = {}
    if arguments.given("--select"):
        answers |= drafts.selected(gate, arguments.all("--select"))
    if arguments.given("--check"):
        answers |= drafts.checked(gate, drafts.checks(gate, arguments.all("--check")))
    return answers | drafts.fields(arguments.all("--field"))
