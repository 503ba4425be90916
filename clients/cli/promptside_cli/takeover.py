"""`take-over`, `give-back`: a person goes on with the agent's conversation in this terminal (ED-14).

The task is locked by the daemon before anything starts here, and given back when the agent's program ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, FAILED, Stopped
from promptside_cli.orders import after, give
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import GiveBack, TakeOver
from promptside_protocol.queries import GetTask, GetTerminal, Watch
from promptside_protocol.views import TaskView

if TYPE_CHECKING:
    from promptside_protocol.queries import Terminal as Launch

ENDING = (signal.SIGHUP, signal.SIGTERM)
"""What a terminal that is closed sends: it goes to the agent's program, and its end is waited for."""


def take_over(arguments: Arguments) -> int:
    """`take-over`"""
    terminal = Terminal.of(arguments)
    if not terminal.asks:
        raise Stopped(
            "no-terminal", "The agent's program needs a terminal of its own.", "Call this in a terminal."
        )
    view = place.task(arguments)
    for number in ENDING:
        signal.signal(number, _leave)
    wire.ask(TakeOver(project=view.project, task=view.id, holds=True))
    try:
        asyncio.run(_until_it_is_still(terminal, view))
        launch = wire.ask(GetTerminal(project=view.project, task=view.id))
        code = _run(terminal, launch)
    finally:
        wire.ask(GiveBack(project=view.project, task=view.id))
    with suppress(OSError):  # the terminal may be gone; what matters is done
        after(arguments, wire.ask(GetTask(project=view.project, task=view.id)))
    return DONE if code == 0 else FAILED


def give_back(arguments: Arguments) -> int:
    """`give-back`: for a terminal that was killed before it could"""
    view = place.task(arguments)
    return give(arguments, GiveBack(project=view.project, task=view.id))


async def _until_it_is_still(terminal: Terminal, view: TaskView) -> None:
    """Wait until the agent's own process is gone: two of one conversation would both write it."""
    async with wire.session() as daemon:
        await daemon.call(Watch(project=view.project, cursors={view.project: view.seq}))
        if not _at_work(await daemon.call(GetTask(project=view.project, task=view.id))):
            return
        terminal.say("The agent is being paused …" if terminal.unicode else "The agent is being paused ...")
        async for _ in wire.notices(daemon):
            if not _at_work(await daemon.call(GetTask(project=view.project, task=view.id))):
                return


def _leave(number: int, _: FrameType | None) -> None:
    """The terminal was closed before anything started in it: what was taken is given back on the way out."""
    raise SystemExit(128 + number)


def _at_work(view: TaskView) -> bool:
    return any(attempt.status == "running" for stage in view.stages for attempt in stage.attempts)


def _run(terminal: Terminal, launch: Launch) -> int:
    """Hand the terminal over to the agent's program, until it ends."""
    terminal.say("Leave it with /exit; what you did is handed back to the task.")
    try:
        program = subprocess.Popen(launch.command, cwd=launch.cwd, env={**os.environ, **launch.environment})
    except OSError as error:
        raise Stopped("no-claude", f"{launch.command[0]} can't be started: {error.strerror}.") from error
    with _passing_on(program):
        return program.wait()


@contextmanager
def _passing_on(program: subprocess.Popen[bytes]) -> Iterator[None]:
    """While the program has the terminal, its keys are not ours, and who wants us to end has to end it first."""

    def passed_on(number: int, _: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            program.send_signal(number)

    def ignored(_number: int, _frame: FrameType | None) -> None:
        """The terminal tells all of its processes; the program does with it what it does."""

    before = {number: signal.signal(number, passed_on) for number in ENDING}
    before |= {number: signal.signal(number, ignored) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        # A terminal that is gone must not end us before the task is given back: only the keys are ours again.
        signal.signal(signal.SIGINT, before[signal.SIGINT])
        signal.signal(signal.SIGQUIT, before[signal.SIGQUIT])
