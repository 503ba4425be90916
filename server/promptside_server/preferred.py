"""What the person set in this editor: the daemon takes it where the project's own settings say nothing."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Preferred(Struct, frozen=True, kw_only=True):
    """Settings below `promptside.`, by the names of the daemon's own; empty is not set."""

    agent: str = ""
    pipeline: str = ""

    def of_a_task(self) -> dict[str, str]:
        """As a new task takes them."""
        return {"usual_agent": self.agent, "usual_pipeline": self.pipeline}


def preferred(given: Any) -> Preferred:
    """Settings as an editor gives them, with `promptside` around them or without; what can't be meant is not set."""
    table = _inner(given, "promptside") or given
    return Preferred(agent=_default(table, "agent"), pipeline=_default(table, "pipeline"))


def _default(table: Any, name: str) -> str:
    found = _inner(_inner(table, name), "default")
    return found.strip() if isinstance(found, str) else ""


def _inner(table: Any, name: str) -> Any:
    """A key of an object, which pygls may have made a tuple with names of."""
    return table.get(name) if isinstance(table, dict) else getattr(table, name, None)
