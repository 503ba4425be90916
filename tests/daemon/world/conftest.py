"""What the tests of attempts share: agents written as small scripts, and waiting without sleeping."""

import asyncio
import os
import select
import signal
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from promptside_daemon.world.attempt import Attempt, AttemptSpec, Ended, Exit, Limits
from promptside_daemon.world.processes import end_marked, send_signal

DEADLINE_SECONDS = 60.0


Until = Callable[[Callable[[], object]], None]
Gone = Callable[[Attempt], None]
Finish = Callable[[Attempt], Exit]
MakeAttempt = Callable[..., Attempt]


@pytest.fixture
def until() -> Until:
    """Wait for a condition, looking again shortly after; fails at the deadline."""

    def until(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "the condition never came true"
            select.select([], [], [], 0.005)

    return until


@pytest.fixture
def gone() -> Gone:
    """Wait until the keeper is dead."""

    def gone(attempt: Attempt) -> None:
        keeper = attempt.keeper()
        assert keeper is not None
        try:
            handle = os.pidfd_open(keeper.pid)
        except ProcessLookupError:
            return
        ended = select.select([handle], [], [], DEADLINE_SECONDS)[0]
        os.close(handle)
        assert ended, "the keeper never ended"

    return gone


@pytest.fixture
def finish(gone: Gone) -> Finish:
    """Wait until an attempt has ended; how it did."""

    def finish(attempt: Attempt) -> Exit:
        gone(attempt)
        state = attempt.state()
        assert isinstance(state, Ended)
        return state.exit

    return finish


@pytest.fixture
def make_attempt(tmp_path: Path) -> Iterator[MakeAttempt]:
    """Make attempts whose agents are Python scripts run in `work/`; end what is left of them afterwards."""
    made: list[tuple[str, Attempt]] = []
    work = tmp_path / "work"
    work.mkdir()

    def make(
        script: str = "",
        *,
        argv: tuple[str, ...] | None = None,
        cwd: Path | None = None,
        grace: float = 10.0,
        wall: float | None = None,
        interrupt: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> Attempt:
        name = uuid.uuid4().hex
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(script))
        attempt = Attempt(tmp_path / "attempts" / name)
        spec = AttemptSpec(
            id=name,
            argv=argv or (sys.executable, "-I", "-S", str(path)),
            cwd=str(cwd or work),
            limits=Limits(wall_seconds=wall, grace_seconds=grace),
            interrupt=interrupt,
        )
        environment = {"PATH": "/usr/bin:/bin"} if environment is None else environment
        attempt.create(spec, environment, "A prompt")
        made.append((name, attempt))
        return attempt

    yield make
    for name, attempt in made:
        keeper = attempt.keeper()
        if keeper is not None:
            send_signal(keeper, signal.SIGKILL)
        asyncio.run(end_marked(name, grace_seconds=0.0))
        attempt.state()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Where the agents of `make_attempt` run."""
    return tmp_path / "work"
