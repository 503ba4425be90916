"""Keeps the machine awake while agents run, where the person asked for it (DA-12).

The system's own inhibitor does it, holding a `cat` that reads from us: whoever dies, the hold ends with the pipe.
"""

from __future__ import annotations

import logging
import shutil
import subprocess

log = logging.getLogger(__name__)

INHIBITORS = (
    ("systemd-inhibit", "--what=idle:sleep", "--who=Promptside", "--why=An agent is at work", "cat"),
    ("caffeinate", "-i", "cat"),
)


class Awake:
    """The hold; taken and let go as often as one likes."""

    def __init__(self) -> None:
        self._holder: subprocess.Popen[bytes] | None = None

    def hold(self, *, wanted: bool) -> None:
        """Take the hold if it is wanted and not there; let it go if it isn't."""
        if wanted and self._holder is None:
            self._holder = _start()
        elif not wanted and self._holder is not None:
            holder, self._holder = self._holder, None
            if holder.stdin is not None:
                holder.stdin.close()
            holder.wait()


def _start() -> subprocess.Popen[bytes] | None:
    for command in INHIBITORS:
        if shutil.which(command[0]):
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    log.warning("the machine can't be kept awake: neither systemd-inhibit nor caffeinate is there")
    return None
