"""A player of recordings at work, with a host that reads it as the daemon does and answers it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from promptside_daemon.world.claude import messages
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import Asked, PermissionAsked, Reading, TurnEnded

T = TypeVar("T")


class Playing:
    """A player at work, and what its lines have told so far."""

    def __init__(self, command: tuple[str, ...], cwd: Path, *, structured: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", *command], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.lines: list[bytes] = []
        self._reader = Reader(wants_structured=structured)
        self._at = 0

    def send(self, line: bytes) -> None:
        """One message to the player."""
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def readings(self) -> Iterator[Reading]:
        """What comes until it waits for nobody any more."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._at += len(line)
            yield from self._reader.read(line.rstrip(b"\n"), self._at)

    def turn(self) -> tuple[list[Reading], TurnEnded]:
        """A whole turn; what is asked is answered as it was when it was recorded."""
        seen: list[Reading] = []
        for reading in self.readings():
            seen.append(reading)
            match reading:
                case Asked():
                    chosen = [
                        tuple(o.id for o in d.options if o.recommended) for d in messages.decisions(reading)
                    ]
                    answers = [messages.Answered(chosen=ids) for ids in chosen]
                    self.send(messages.answer_questions(reading, answers))
                case PermissionAsked():
                    self.send(messages.allow(reading.request, reading.input))
                case TurnEnded():
                    return seen, reading
                case _:
                    pass
        raise AssertionError("the player ended without a result")

    def until(self, kind: type[T]) -> T:
        """The next reading of a kind."""
        return next(reading for reading in self.readings() if isinstance(reading, kind))

    def end(self) -> int:
        """Close its input; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        for _ in self.readings():
            pass
        return self.process.wait()
