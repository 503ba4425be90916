"""The quick, throw-away run that refines a person's input before a stage (ST-12).

It has a keeper and a directory of its own inside the attempt's, so that it too survives the daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from promptside_daemon.engine.task import Failure
from promptside_daemon.world import processes
from promptside_daemon.world.attempt import Attempt, AttemptSpec, Ended, Limits, StartFailedError
from promptside_daemon.world.claude import argv, messages
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.version import Version
from promptside_daemon.world.follow import LineReader
from promptside_daemon.world.redact import Redactor
from promptside_daemon.world.stderr import tail

SECONDS = 300.0


class Preparation:
    """One run, from wherever it stands to its text."""

    def __init__(self, directory: Path, binary: str, version: Version, cwd: str, redactor: Redactor) -> None:
        self.hand = Attempt(directory)
        self._binary = binary
        self._version = version
        self._cwd = cwd
        self._redactor = redactor

    async def run(self, prompt: str, environment: Mapping[str, str]) -> str | Failure:
        """The refined input, or why there is none."""
        try:
            await asyncio.to_thread(self._begin, prompt, environment)
        except StartFailedError as error:
            return Failure(
                kind="start", sentence=f"The preparation could not be started: {error}.", retryable=True
            )
        keeper = self.hand.keeper()
        if keeper is not None:
            await processes.death(keeper)
        self.hand.remove_environment()
        return await asyncio.to_thread(self._result)

    def _begin(self, prompt: str, environment: Mapping[str, str]) -> None:
        """Bring it under way; where it is already, nothing is changed."""
        mark = environment[processes.MARK]
        driven = argv.driven(
            argv.Launch(
                binary=self._binary,
                version=self._version,
                directory=str(self.hand.directory),
                session=argv.ThrowAway(),
                tools=(),
                permission="deny",
                read_only=True,
                attended=False,
                trusted=False,
            )
        )
        limits = Limits(wall_seconds=SECONDS, grace_seconds=1.0)
        spec = AttemptSpec(id=mark, argv=driven.argv, cwd=self._cwd, limits=limits)
        self.hand.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, content in driven.files.items():
            (self.hand.directory / name).write_bytes(content)
        self.hand.create(spec, environment, prompt)
        lines = [*driven.first, messages.user_message(prompt, order=f"{mark}/preparation")]
        for number, line in enumerate(lines, 1):
            self.hand.send(number, line.rstrip(b"\n"))
        self.hand.close()
        self.hand.start()

    def _result(self) -> str | Failure:
        reader, lines = Reader(), LineReader(self.hand.transcript)
        while portion := lines.read():
            for line in portion:
                reader.read(line, 0)
        state = self.hand.state()
        code, signal = (state.exit.code, state.exit.signal) if isinstance(state, Ended) else (None, None)
        outcome = reader.judge(exit_code=code, signal=signal, stderr=tail(self.hand.stderr))
        if outcome.ok and reader.last is not None:
            return reader.last.text
        return Failure(
            kind=str(outcome.kind),
            sentence=f"The preparation failed: {self._redactor.text(outcome.sentence)}",
            hint=outcome.hint,
            retryable=outcome.retryable,
            until=outcome.until,
        )
