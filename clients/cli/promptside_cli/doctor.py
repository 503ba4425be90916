"""`doctor`: what is there, what is missing, what to do (DA-8)."""

from __future__ import annotations

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, FAILED
from promptside_cli.terminal import Terminal
from promptside_protocol.queries import DoctorQuery


def doctor(arguments: Arguments) -> int:
    """`doctor`: 1 when something that is needed is missing."""
    found = wire.ask(DoctorQuery(project=place.known_project(arguments) or ""))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
    else:
        from promptside_protocol.pages.doctor import doctor_page  # noqa: PLC0415  # data needs no page

        terminal.page(doctor_page(found, terminal.look()))
    return DONE if found.ok else FAILED
