"""Which project and which task a call is about: the project that holds the directory, or `--project`."""

from __future__ import annotations

import os
from pathlib import Path

from promptside_cli import wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import Stopped
from promptside_protocol.commands import AddProject
from promptside_protocol.queries import FindProject, GetTask
from promptside_protocol.views import TaskView


def directory(arguments: Arguments) -> str:
    """The directory the call is about, absolute."""
    return os.path.abspath(arguments.one("--project", "."))  # noqa: PTH100  # `resolve` would follow links


def project(arguments: Arguments) -> str:
    """The path of the project; refused where no project holds the directory."""
    found = known_project(arguments)
    if found is None:
        where = directory(arguments)
        raise Stopped("no-project", f"No project holds {where}.", "promptside project add, or --project PATH")
    return found


def known_project(arguments: Arguments) -> str | None:
    """The path of the project that holds the directory, if one does."""
    found = wire.ask(FindProject(path=directory(arguments)))
    return found.path if found is not None else None


def project_made(arguments: Arguments) -> str:
    """The project's path; where none holds the directory, the git top level or it becomes one (CLI.md)."""
    found = known_project(arguments)
    if found is not None:
        return found
    top = git_top(Path(directory(arguments)))
    wire.ask(AddProject(project=str(top)))
    return str(top)


def git_top(start: Path) -> Path:
    """The nearest directory upwards with a `.git`, else `start`; a worktree has a file of that name."""
    return next((place for place in (start, *start.parents) if (place / ".git").exists()), start)


def task(arguments: Arguments) -> TaskView:
    """The task that a call names."""
    return wire.ask(GetTask(project=project(arguments), task=arguments.task))
