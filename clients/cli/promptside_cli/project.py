"""`project add`, `list`, `remove`, `rename` (ST-1)."""

from __future__ import annotations

import os
from pathlib import Path

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import AddProject, RemoveProject, RenameProject
from promptside_protocol.queries import Projects


def add(arguments: Arguments) -> int:
    """`project add`: without a path, the git top level of the directory."""
    path = _path(arguments) or str(place.git_top(Path(place.directory(arguments))))
    wire.ask(AddProject(project=path, name=arguments.one("--name")))
    return list_projects(arguments)


def list_projects(arguments: Arguments) -> int:
    """`project list`"""
    found = wire.ask(Projects())
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    from promptside_protocol.pages.projects import projects_page  # noqa: PLC0415  # data needs no page

    terminal.page(projects_page(found, terminal.look()))
    return DONE


def remove(arguments: Arguments) -> int:
    """`project remove`: by path also when the directory is gone."""
    wire.ask(RemoveProject(project=_path(arguments) or place.project(arguments)))
    return list_projects(arguments)


def rename(arguments: Arguments) -> int:
    """`project rename`"""
    wire.ask(RenameProject(project=place.project(arguments), name=arguments.word("NAME")))
    return list_projects(arguments)


def _path(arguments: Arguments) -> str:
    word = arguments.word("PATH")
    return os.path.abspath(word) if word else ""  # noqa: PTH100  # `resolve` would follow links
