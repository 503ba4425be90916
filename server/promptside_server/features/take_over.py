"""Going on with an agent's conversation in a terminal: the editor is told what to run there, no more (ED-14).

The program in that terminal gives the order itself, so that a terminal that never came up has locked nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from lsprotocol import types
from msgspec import Struct

from promptside_protocol.commands import TakeOver
from promptside_protocol.errors import refused
from promptside_protocol.pages.plain import cut, one_line
from promptside_server.features.commands import offer
from promptside_server.server import Server
from promptside_server.target import fill

COMMAND = "promptside.takeOver"
PASSED_ON = ("PROMPTSIDE_HOME", "PROMPTSIDE_CLAUDE")
"""Variables of ours by which the terminal finds the same daemon and the same agent."""


class ToRun(Struct, frozen=True, kw_only=True):
    """What a terminal of the editor's is to run; `env` is laid over its own."""

    title: str
    command: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}


class TakenOver(Struct, frozen=True, kw_only=True):
    """The answer to a client that can open a terminal."""

    terminal: ToRun


def register(server: Server) -> None:
    """One command; its answer is for clients that can open a terminal."""

    async def take_over(given: dict[str, Any]) -> TakenOver:
        filled = await fill(server, TakeOver, given, str(given.get("uri") or ""))
        project, number = str(filled["project"]), int(filled["task"])
        task = server.mirror.task(project, number)
        if task is None:
            raise refused("no-task", f"There is no task {number} in {project}.")
        found = next((one for one in task.offers if one.command == COMMAND), None)
        if found is None or found.blocked is not None:
            words = task.terminal.words if task.terminal is not None else "There is no session to continue."
            raise refused("no-session", (found.blocked if found is not None else None) or words)
        if not server.editor.ours:
            server.say(types.MessageType.Info, f"Type this in a terminal: {found.hint}")
        title = cut(one_line(task.title), 40, unicode=True)
        rest = ("-m", "promptside_cli", "take-over", str(number), "--project", project)
        return TakenOver(
            terminal=ToRun(
                title=f"#{number} {title}",
                command=(sys.executable, *rest),
                cwd=project,
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
            )
        )

    offer(server, COMMAND.removeprefix("promptside."), take_over)
