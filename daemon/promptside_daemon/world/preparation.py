"""The quick, throw-away run that refines a person's input before a stage (ST-12).

It has a keeper and a directory of its own inside the attempt's, so that it too survives the daemon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from promptside_daemon.engine.task import Failure
from promptside_daemon.world import processes
from promptside_daemon.world.attempt import Attempt, AttemptSpec, Ended, Limits, NotStarted, StartFailedError
from promptside_daemon.world.claude import argv, messages
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.version import Version
from promptside_daemon.world.follow import LineReader

SECONDS = 300.0


class Preparation:
    """One run, from wherever it stands to its text."""

    def __init__(self, directory: Path, binary: str, version: Version, cwd: str) -> None:
        self._hand = Attempt(directory)
        self._binary = binary
        self._version = version
        self._cwd = cwd

    async def run(self, prompt: str, environment: Mapping[str, str]) -> str | Failure:
        """The refined input, or why there is none."""
        hand = self._hand
        mark = environment["PROMPTSIDE_ATTEMPT"]
        driven = argv.driven(
            argv.Launch(
                binary=self._binary,
                version=self._version,
                directory=str(hand.directory),
                session=argv.ThrowAway(),
                tools=(),
                permission="deny",
                read_only=True,
                attended=False,
                trusted=False,
            )
        )
        spec = AttemptSpec(
            id=mark, argv=driven.argv, cwd=self._cwd, limits=Limits(wall_seconds=SECONDS, grace_seconds=1.0)
        )
        hand.create(spec, environment, prompt)
        hand.send(1, messages.user_message(prompt, order=f"{mark}/preparation").rstrip(b"\n"))
        hand.close()
        try:
            await asyncio.to_thread(hand.start)
        except StartFailedError as error:
            return Failure(
                kind="start", sentence=f"The preparation could not be started: {error}.", retryable=True
            )
        keeper = hand.keeper()
        if keeper is not None:
            await processes.death(keeper)
        hand.remove_environment()
        return await asyncio.to_thread(self._result)

    def _result(self) -> str | Failure:
        reader, lines = Reader(), LineReader(self._hand.transcript)
        while portion := lines.read():
            for line in portion:
                reader.read(line, 0)
        state = self._hand.state()
        code, signal = (state.exit.code, state.exit.signal) if isinstance(state, Ended) else (None, None)
        stderr = self._hand.stderr.read_text(errors="replace")[-4000:] if self._hand.stderr.exists() else ""
        outcome = reader.judge(exit_code=code, signal=signal, stderr=stderr)
        if outcome.ok and reader.last is not None and not isinstance(state, NotStarted):
            return reader.last.text
        return Failure(
            kind=str(outcome.kind),
            sentence=f"The preparation failed: {outcome.sentence}",
            hint=outcome.hint,
            retryable=outcome.retryable,
            until=outcome.until,
        )
