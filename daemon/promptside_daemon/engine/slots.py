"""Which of the stages that want to start may: one pure function over all projects, fair between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct


class Want(Struct, frozen=True, kw_only=True):
    """A stage that wants a slot, since when."""

    project: str
    task: int
    stage: str
    since: float
    priority: int = 50


def slots(wants: Iterable[Want], running: Iterable[str], limit: int) -> Sequence[Want]:
    """The wants that are granted now, in order.

    `running` has the project of each live attempt. The project with the fewest comes first, so that a queue of
    hundreds in one never starves another; within a project higher priority, then who waits longest.
    """
    load = Counter(running)
    free = limit - load.total()
    waiting = sorted(wants, key=lambda w: (-w.priority, w.since, w.project, w.task))
    granted: list[Want] = []
    while free > 0 and waiting:
        chosen = min(waiting, key=lambda w: load[w.project])
        waiting.remove(chosen)
        granted.append(chosen)
        load[chosen.project] += 1
        free -= 1
    return granted
