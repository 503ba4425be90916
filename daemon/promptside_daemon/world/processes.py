"""Find processes, tell their deaths, and end those of an attempt.

A process is always a number *and* its start: a number alone may have passed to another process (DA-3).
"""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from msgspec import Struct

MARK = "PROMPTSIDE_ATTEMPT"
# How soon to look again for marked processes that were born while others were being killed.
RESCAN_SECONDS = 0.05


class Process(Struct, frozen=True, kw_only=True):
    """A process, told apart from any other that had or will have its number."""

    pid: int
    started: str


def find(pid: int) -> Process | None:
    """The process that has this number now; none if it is dead, reaped or not."""
    entry = _entry(pid)
    return None if entry is None or entry.dead else Process(pid=pid, started=entry.started)


def alive(process: Process) -> bool:
    return find(process.pid) == process


def reap(process: Process) -> None:
    """Let the system forget a dead child of ours; of any other process nothing is changed."""
    entry = _entry(process.pid)
    if entry is not None and entry.dead and entry.started == process.started:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)


def ancestors(pid: int) -> list[int]:
    """The numbers of its parent, its parent's parent and so on, nearest first."""
    line: list[int] = []
    entry = _entry(pid)
    while entry is not None and entry.parent > 0 and entry.parent not in line:
        line.append(entry.parent)
        entry = _entry(entry.parent)
    return line


def mark_of(pid: int) -> str | None:
    """The attempt a process was started for, if its environment says so (which it may hide)."""
    return _mark(pid)


def marked(attempt: str) -> list[Process]:
    """Every living process that carries the mark of the attempt, except this one."""
    found = [find(pid) for pid in _marked_pids(attempt) if pid != os.getpid()]
    return [process for process in found if process is not None]


def send_signal(process: Process, number: signal.Signals) -> bool:
    """Signal exactly this process; false if it is gone, or another user's."""
    try:
        if sys.platform == "linux":
            descriptor = os.pidfd_open(process.pid)
            try:
                if alive(process):
                    signal.pidfd_send_signal(descriptor, number)
                    return True
            finally:
                os.close(descriptor)
        elif alive(process):
            os.kill(process.pid, number)
            return True
    except (ProcessLookupError, PermissionError):
        pass
    return False


def on_death(process: Process, tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` once, from the running loop, when the process is dead. Returns what calls that off.

    It need not be a child of ours; one that is stays in the system's table until `reap`.
    """
    loop = asyncio.get_running_loop()
    watch = _watch_death(process)
    if watch is None:
        return loop.call_soon(tell).cancel

    def cancel() -> None:
        if watch.fileno() >= 0:
            loop.remove_reader(watch.fileno())
            watch.close()

    def died() -> None:
        cancel()
        tell()

    loop.add_reader(watch.fileno(), died)
    return cancel


async def death(process: Process) -> None:
    """Wait until the process is dead."""
    dead = asyncio.Event()
    cancel = on_death(process, dead.set)
    try:
        await dead.wait()
    finally:
        cancel()


async def end_marked(attempt: str, grace_seconds: float = 5.0) -> list[Process]:
    """End every process that carries the mark: SIGTERM, the grace, then SIGKILL until none is left.

    For an attempt whose keeper is gone without its exit.json. What can't be killed (another user's process,
    or one that hangs in the kernel) is waited for as long as the grace again, and then returned.
    """
    loop = asyncio.get_running_loop()
    for process in marked(attempt):
        send_signal(process, signal.SIGTERM)
        send_signal(process, signal.SIGCONT)
    due = loop.time() + grace_seconds
    while (left := marked(attempt)) and loop.time() < due:
        await _deaths(left, due - loop.time())
    last: list[Process] = []
    while left := marked(attempt):
        for process in left:
            send_signal(process, signal.SIGKILL)
        if left != last:
            last, due = left, loop.time() + grace_seconds
        elif loop.time() >= due:
            return left
        await _deaths(left, RESCAN_SECONDS)
    return []


async def _deaths(processes: list[Process], seconds: float) -> None:
    """Wait until all of them are dead, and not longer than that many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for process in processes:
                group.create_task(death(process))


class _Entry(Struct, frozen=True):
    """What the system's table says of a process."""

    parent: int
    started: str
    dead: bool


class _Watch(Protocol):
    """Something that becomes readable when a process dies."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


if sys.platform == "linux":
    # The number of a process and its ticks since boot are unique only within one run of the machine.
    _BOOT = Path("/proc/sys/kernel/random/boot_id")

    class _PidFd:
        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor

        def fileno(self) -> int:
            return self._descriptor

        def close(self) -> None:
            os.close(self._descriptor)
            self._descriptor = -1

    def _entry(pid: int) -> _Entry | None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The name stands in parentheses and may itself hold any; what follows the last one is numbers.
        fields = stat[stat.rindex(b")") + 2 :].split()
        boot = _BOOT.read_text().strip()
        return _Entry(int(fields[1]), f"{boot}/{int(fields[19])}", dead=fields[0] in {b"Z", b"X"})

    def _mark(pid: int) -> str | None:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return None  # gone, or another user's
        for pair in environment.split(b"\0"):
            name, _, value = pair.partition(b"=")
            if name == MARK.encode():
                return value.decode(errors="replace")
        return None

    def _marked_pids(attempt: str) -> Iterator[int]:
        for name in os.listdir("/proc"):  # noqa: PTH208  names are wanted, not hundreds of paths
            if name.isdigit() and _mark(int(name)) == attempt:
                yield int(name)

    def _watch_death(process: Process) -> _Watch | None:
        try:
            watch = _PidFd(os.pidfd_open(process.pid))
        except ProcessLookupError:
            return None
        if alive(process):
            return watch
        watch.close()
        return None

elif sys.platform == "darwin":
    # Written from ps(1) and kqueue(2), not tried. The system hides the environment of its own programs
    # (/bin/sleep) from everybody, so a mark can be missed there; README says what may escape.

    def _ps(*arguments: str) -> list[list[str]]:
        environment = {"LC_ALL": "C", "TZ": "UTC"}
        done = subprocess.run(["/bin/ps", *arguments], env=environment, capture_output=True, check=False)
        return [line.split() for line in done.stdout.decode(errors="replace").splitlines()]

    def _entry(pid: int) -> _Entry | None:
        for parent, state, *started in _ps("-p", str(pid), "-o", "ppid=,stat=,lstart="):
            return _Entry(int(parent), " ".join(started), dead=state.startswith("Z"))
        return None

    def _mark(pid: int) -> str | None:
        for _, *words in _ps("-E", "-ww", "-p", str(pid), "-o", "pid=,command="):
            return next(
                (word[len(MARK) + 1 :] for word in reversed(words) if word.startswith(f"{MARK}=")), None
            )
        return None

    def _marked_pids(attempt: str) -> Iterator[int]:
        for pid, *words in _ps("-E", "-ww", "-ax", "-o", "pid=,command="):
            if f"{MARK}={attempt}" in words:
                yield int(pid)

    def _watch_death(process: Process) -> _Watch | None:
        queue = select.kqueue()
        flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
        event = select.kevent(process.pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)
        try:
            queue.control([event], 0)
        except ProcessLookupError:
            queue.close()
            return None
        if alive(process):
            return queue
        queue.close()
        return None

else:
    raise ImportError(f"Promptside runs on Linux and macOS; it can't watch processes on {sys.platform}")
