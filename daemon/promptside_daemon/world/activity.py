"""What agents do right now, for status lines: derived as transcripts are read, never stored."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from promptside_daemon.world.claude import readings
from promptside_daemon.world.claude.harmless import one_line
from promptside_daemon.world.claude.readings import Reading
from promptside_daemon.world.claude.toollines import call_line
from promptside_daemon.world.redact import Redactor
from promptside_protocol.views import Activity, Step

LAST = 5
"""How many steps are told."""
BRIEF = 2000
"""Characters of a field of a tool's input; a line that tells of it shows fewer."""


class Steps(Struct, kw_only=True):
    """The list of steps that an agent keeps for itself, whole (TodoWrite) or one by one (TaskCreate, TaskUpdate)."""

    total: int = 0
    done: int = 0
    over: dict[str, bool] = {}
    """By number: whether it is done, or was dropped."""

    def took(self, name: str, given: dict[str, Any]) -> None:
        """Take note of a tool's use."""
        if name == "TodoWrite":
            todos = given.get("todos")
            listed = todos if isinstance(todos, list) else []
            states = [one.get("status") for one in listed if isinstance(one, dict)]
            self.total, self.done, self.over = len(states), states.count("completed"), {}
        elif name == "TaskCreate":
            self.total += 1
        elif name == "TaskUpdate" and given.get("status") in (
            "completed",
            "deleted",
            "pending",
            "in_progress",
        ):
            number, status = str(given.get("taskId")), given["status"]
            before = self.over.pop(number, None)
            self.done -= before is True
            self.total += before is False
            if status in ("completed", "deleted"):
                self.over[number] = status == "completed"
                self.done += status == "completed"
                self.total -= status == "deleted"


class Activities:
    """The newest steps of each live attempt of a project."""

    def __init__(self, project: str) -> None:
        self.project = project
        self._now: dict[str, Activity] = {}
        self._steps: dict[str, Steps] = {}
        self._moved = asyncio.Event()
        self.place: Callable[[int, str], tuple[str, int]] = lambda _task, _attempt: ("", 0)
        """Stage and number of an attempt."""

    def acted(self, task: int, attempt: str, reading: Reading, redactor: Redactor) -> None:
        """Take note of one reading; what is told of it holds no secret (DA-6)."""
        stage, n = self.place(task, attempt)
        old = self._now.get(attempt) or Activity(
            project=self.project, task=task, stage=stage, attempt=n, cursor=0, line=""
        )
        match reading:
            case readings.ToolUsed(name=name, input=given, at=at):
                if reading.parent is None:  # what a subagent plans for itself is no step of the stage
                    self._steps.setdefault(attempt, Steps()).took(name, given)
                said = call_line(name, redactor.data(brief(given)), self.project)
                line = one_line(said.text)
                path = one_line(said.path or "")
                step = Step(role="tool", text=line, path=path, line=said.line, at=time.time())
                self._set(attempt, old, at, line, (*old.last, step)[-LAST:], old.context_percent)
            case readings.ContextFill(tokens=tokens, window=window, at=at) if window:
                self._set(attempt, old, at, old.line, old.last, round(100 * tokens / window))
            case _:
                pass  # nothing that a status line would tell

    def forget(self, attempt: str) -> None:
        """The attempt is over."""
        self._now.pop(attempt, None)
        self._steps.pop(attempt, None)

    def current(self) -> tuple[Activity, ...]:
        """What all live attempts do."""
        return tuple(self._now.values())

    @property
    def moved(self) -> asyncio.Event:
        """Set at the next change."""
        return self._moved

    def _set(
        self,
        attempt: str,
        old: Activity,
        at: int,
        line: str,
        last: tuple[Step, ...],
        percent: int | None,
    ) -> None:
        steps = self._steps.get(attempt) or Steps()
        self._now[attempt] = Activity(
            project=old.project,
            task=old.task,
            stage=old.stage,
            attempt=old.attempt,
            cursor=at,
            line=line,
            context_percent=percent,
            step=min(max(steps.done, 0), max(steps.total, 0)),
            steps=max(steps.total, 0),
            last=last,
        )
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


def brief(given: dict[str, Any]) -> dict[str, Any]:
    """A tool's input for a line about it, without the megabytes that may be in it."""
    return {key: value[:BRIEF] if isinstance(value, str) else value for key, value in given.items()}
