"""Where everything of one test run lies: a mark on every process that comes of it, and short enough for a socket.

Two runs at once, or the workers of one, never meet here.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

MARK = "PROMPTSIDE_TEST_RUN"
SHORT = 50
"""As long as the name of a directory may be for a socket to fit below it."""
ENDING_SECONDS = 30.0
"""How long what was told to end may take, on a busy machine."""


def begin() -> None:
    """A place for this run, which every process inherits."""
    there = tempfile.gettempdir()
    made = tempfile.mkdtemp(prefix="pst-", dir=there if len(there) < SHORT else "/tmp")
    os.environ[MARK] = str(Path(made).resolve())


def scratch(prefix: str) -> Path:
    """A directory for one test; that it is this one's is noted, in case something stays behind."""
    root = Path(os.environ[MARK])
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    with (root / "made").open("a", encoding="utf-8") as notes:
        notes.write(f"{made.name} {os.environ.get('PYTEST_CURRENT_TEST', 'some test')}\n")
    return made


def end(*places: Path) -> list[str]:
    """What still lives of this run when its time is over, each with its test; it is ended, and the place removed.

    `places` are more directories that only this run has.
    """
    root = Path(os.environ.pop(MARK))
    marks = [f"{place}/".encode() for place in (root, *places)]
    due = time.monotonic() + ENDING_SECONDS
    while (left := _marked(marks)) and time.monotonic() < due:
        select.select([], [], [], 0.1)
    said = [f"{pid} {what}: {_test_of(pid, what, root)}" for pid, (what, _) in left.items()]
    for pid, (_, started) in left.items():
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            if _started(pid) == started:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
    shutil.rmtree(root, ignore_errors=True)
    return said


def _marked(marks: list[bytes]) -> dict[int, tuple[str, str]]:
    """Every living process that has a mark in its words, its environment or its place: its words and its start."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
            place = os.fsencode(os.readlink(entry / "cwd")) + b"/"  # noqa: PTH115  # it may be gone
            everything = words + b"\0" + (entry / "environ").read_bytes() + b"\0" + place
        except OSError:
            continue  # it ended while we looked, or is somebody else's
        # What inherited the mark itself has it at the end of a word, without a slash.
        if any(mark in everything.replace(b"\0", b"/") for mark in marks):
            shown = (words.replace(b"\0", b" ") + b"in " + place).decode(errors="replace")
            found[int(entry.name)] = shown, _started(int(entry.name))
    return {pid: one for pid, one in found.items() if one[1]}


def _started(pid: int) -> str:
    """When a process started; empty if it is dead, also when nobody has asked for its end yet."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def _test_of(pid: int, words: str, root: Path) -> str:
    """The test that a process comes of, as far as it can be told."""
    with contextlib.suppress(OSError):
        for pair in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if pair.startswith(b"PYTEST_CURRENT_TEST="):
                return pair.decode(errors="replace").partition("=")[2]
    notes = root / "made"
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else ():
        name, _, test = line.partition(" ")
        if f"/{name}/" in words:
            return test
    return "of a test that its directory may name"
