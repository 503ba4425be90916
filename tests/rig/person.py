"""A person at a pseudoterminal: waits for what is shown, then types."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

DEADLINE_S = 60.0


class Person:
    """Made of the words of a program, which gets the terminal; `close` ends it."""

    def __init__(self, words: list[str], where: Path, environment: dict[str, str]) -> None:
        self.screen = ""
        self._seen = 0
        # A letter of several bytes may come in two pieces.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, b"\x28\x00\x64\x00\x00\x00\x00\x00")  # 40 rows, 100 columns
        self.process = subprocess.Popen(
            words,
            cwd=where,
            env=environment,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # no thread runs here
        )
        os.close(child)

    def sees(self, wanted: str) -> str:
        """Wait until this is shown, behind what was waited for before; all that came up to it."""
        due = time.monotonic() + DEADLINE_S
        while wanted not in plain(self.screen)[self._seen :]:
            left = due - time.monotonic()
            assert left > 0, f"never saw {wanted!r} in:\n{plain(self.screen)[self._seen :]}"
            if not self._read(left):
                assert wanted in plain(self.screen)[self._seen :], plain(self.screen)
        shown = plain(self.screen)
        begin = self._seen
        self._seen = shown.index(wanted, begin) + len(wanted)
        return shown[begin : self._seen]

    def types(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def leaves(self) -> int:
        """Wait for the end; the exit code."""
        due = time.monotonic() + DEADLINE_S
        while self._read(max(due - time.monotonic(), 0)):
            assert time.monotonic() < due, plain(self.screen)
        return self.process.wait(DEADLINE_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self._fd)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the other end is closed: Linux says so
            return False
        self.screen += self._decoder.decode(data)
        return bool(data)


def plain(screen: str) -> str:
    """What was written without colours and movements, lines as lines."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen).replace("\r", "")
