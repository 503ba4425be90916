"""What the features for pipeline files share: a place's table in the vocabulary, and the tasks of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from promptside_protocol.views import Table, TaskView
from promptside_server.checked import path_of, project_of
from promptside_server.toml_lines import Spot

if TYPE_CHECKING:
    from promptside_server.server import Server

TEMPLATES = frozenset({"prompt", "preparation"})
"""Keys of a stage whose value is a template, or the name of its file."""


def table_of(known: Iterable[Table], at: Spot) -> Table | None:
    """The table of the vocabulary that a place is in: what is below `persona` has names of its own."""
    name = "persona" if at.table.startswith("persona.") else at.table
    return next((table for table in known if table.name == name), None)


def tasks_through(server: Server, uri: str) -> list[TaskView]:
    """The tasks that go through a pipeline, as far as this editor knows."""
    return [task for task in server.mirror.tasks() if is_through(task, uri)]


def is_through(task: TaskView, uri: str) -> bool:
    """By the pipeline's name; a project's own pipeline comes before the person's."""
    path = path_of(uri)
    if path is None or task.pipeline != path.stem:
        return False
    project = project_of(uri)
    if project:
        return task.project == project
    return not (Path(task.project) / ".promptside" / "pipelines" / path.name).exists()
