"""The editor's death, told by the system: an inherited pipe may stay open when the editor is gone."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable


def watch(pid: int, gone: Callable[[], None]) -> Callable[[], None]:
    """Call `gone` when the process ends; gives back what stops the watching.

    A number that names no process here is of another machine or container, and says nothing.
    """
    descriptor = _handle(pid)
    if descriptor is None:
        return _nothing
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)

    def ended() -> None:
        loop.remove_reader(descriptor)
        gone()

    loop.add_reader(descriptor, ended)
    return stop


def _handle(pid: int) -> int | None:
    """A descriptor that can be read when the process has ended."""
    try:
        if sys.platform == "linux":
            return os.pidfd_open(pid)
        if sys.platform == "darwin":
            # Written from kqueue(2), not tried there.
            queue = select.kqueue()
            flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
            note = select.kevent(pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)
            queue.control([note], 0, 0)
            descriptor = os.dup(queue.fileno())
            queue.close()
            return descriptor
    except OSError:
        return None
    return None


def _nothing() -> None:
    """There is nothing to stop."""
