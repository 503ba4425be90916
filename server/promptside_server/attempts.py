"""An attempt by stage and number, as the mirror has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from promptside_protocol.errors import refused
from promptside_protocol.views import AttemptView

if TYPE_CHECKING:
    from promptside_server.server import Server


def find_attempt(server: Server, project: str, number: int, stage: str, n: int) -> tuple[str, AttemptView]:
    """The stage's id and the attempt; an empty stage and 0 take the newest."""
    task = server.mirror.task(project, number)
    if task is None:
        raise refused("no-task", f"There is no task {number} in {project}.")
    stages = [s for s in task.stages if stage in ("", s.id)]
    if not stages:
        raise refused("no-stage", f"There is no stage {stage} in {task.pipeline}.")
    found = [(s.id, a) for s in stages for a in s.attempts if n in (0, a.n)]
    if not found:
        raise refused("no-attempt", "There is no such attempt yet.", "Run the stage first.")
    return max(found, key=lambda one: one[1].started or float("inf"))
