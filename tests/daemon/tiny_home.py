"""A home of its own for real tiny daemons, and their end: whatever a test started there is gone behind it."""

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from rig.scratch import scratch

from promptside_protocol import blocking, connect, errors
from promptside_protocol.commands import Shutdown

SCRIPT = Path(__file__).with_name("tiny_daemon.py")


@contextlib.contextmanager
def tiny_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """PROMPTSIDE_HOME in a directory whose name is short enough for a socket; clients start tiny daemons."""
    directory = scratch("ps-")
    monkeypatch.setenv("PROMPTSIDE_HOME", str(directory))
    monkeypatch.setenv("HOME", str(directory))
    for name in tuple(os.environ):
        if name.startswith("TINY_") or name == connect.MARK:
            monkeypatch.delenv(name)
    monkeypatch.setattr(connect, "DAEMON", (sys.executable, "-P", str(SCRIPT), "run"))
    try:
        yield directory
    finally:
        end_daemon()
        shutil.rmtree(directory)


def end_daemon() -> None:
    """Ask the daemon of this home to stop, or kill it if it doesn't answer, and wait until it is dead."""
    left = connect.standing()
    assert left is None or left.pid != os.getpid()
    with contextlib.suppress(errors.PromptsideError):
        blocking.request(connect.hello("test"), Shutdown(), start=False)
    if left is not None:
        wait_for_death(left.pid)


def kill_daemon() -> int:
    """kill -9 the daemon of this home; its number."""
    left = connect.standing()
    assert left is not None
    os.kill(left.pid, signal.SIGKILL)
    wait_for_death(left.pid, seconds=30)
    return left.pid


def wait_for_death(pid: int, seconds: float = 30) -> None:
    """Wait until a process is dead; kill it when it takes too long."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if not select.select([descriptor], [], [], seconds)[0]:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            select.select([descriptor], [], [], 30)
    finally:
        os.close(descriptor)


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    """Look again and again until something is so, or fail; for what no system call can wait for."""
    due = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < due, "it never became so"
        select.select([], [], [], 0.01)  # not to eat the machine between two looks


def tiny_daemon() -> ModuleType:
    """The module of the tiny daemon, whose core tests may use in their own process."""
    spec = importlib.util.spec_from_file_location("tiny_daemon", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
