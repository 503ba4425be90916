"""Lines that a person types, read without holding up what else goes on.

The terminal's own line editing stays in force: a line comes when Enter was pressed.
"""

from __future__ import annotations

import asyncio
import os
import sys

from promptside_cli.terminal import Terminal


class Keyboard:
    """Reads the terminal that stdin is."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._fd = sys.stdin.fileno()
        self._lines: list[str] = []
        self._half = b""

    def forget(self) -> None:
        """Drop what was typed before the question was seen: it can't be the answer to it."""
        import termios  # noqa: PLC0415  # only where there is a terminal

        termios.tcflush(self._fd, termios.TCIFLUSH)
        self._lines.clear()
        self._half = b""

    async def line(self, prompt: str) -> str | None:
        """The next line without its end; None when the person closed the input (Ctrl-D)."""
        self._terminal.out.write(prompt)
        self._terminal.out.flush()
        if self._lines:
            return self._lines.pop(0)
        loop = asyncio.get_running_loop()
        came: asyncio.Future[bytes] = loop.create_future()
        while True:
            loop.add_reader(self._fd, self._ready, came)
            try:
                data = await came
            finally:
                loop.remove_reader(self._fd)
            if not data:
                self._terminal.say()
                return None
            *whole, self._half = (self._half + data).split(b"\n")
            self._lines += [line.decode(errors="replace") for line in whole]
            if self._lines:
                return self._lines.pop(0)
            came = loop.create_future()

    def _ready(self, came: asyncio.Future[bytes]) -> None:
        if came.done():
            return
        try:
            came.set_result(os.read(self._fd, 65536))
        except OSError:
            came.set_result(b"")  # the terminal is gone: nobody will answer
