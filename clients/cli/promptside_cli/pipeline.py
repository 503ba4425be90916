"""`pipeline list`, `show`, `check`, `copy` (ST-2, ST-3)."""

from __future__ import annotations

from pathlib import Path

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, FAILED
from promptside_cli.terminal import Terminal
from promptside_protocol.queries import CheckPipeline, CopyPipeline, GetPipeline, Pipelines


def list_pipelines(arguments: Arguments) -> int:
    """`pipeline list`"""
    found = wire.ask(Pipelines(project=place.known_project(arguments) or ""))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    from promptside_protocol.pages.pipelines import pipelines_page  # noqa: PLC0415  # data needs no page

    terminal.page(pipelines_page(found))
    return DONE


def show(arguments: Arguments) -> int:
    """`pipeline show`"""
    found = wire.ask(GetPipeline(name=_name(arguments), project=place.known_project(arguments) or ""))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    from promptside_protocol.pages.pipelines import pipeline_page  # noqa: PLC0415  # data needs no page

    terminal.page(pipeline_page(found))
    return DONE


def check(arguments: Arguments) -> int:
    """`pipeline check`: 1 when there is an error; a warning is none."""
    name = _name(arguments)
    faults = wire.ask(CheckPipeline(name=name, project=place.known_project(arguments) or ""))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(faults)
    else:
        from promptside_protocol.pages.pipelines import fault_lines  # noqa: PLC0415  # data needs no page

        for drawn in fault_lines(faults):
            terminal.line(drawn)
        if not faults:
            terminal.say(f"{name}: nothing is wrong.")
    return FAILED if any(fault.severity == "error" for fault in faults) else DONE


def copy(arguments: Arguments) -> int:
    """`pipeline copy`"""
    to = arguments.one("--to", "project")
    project = place.project(arguments) if to == "project" else place.known_project(arguments) or ""
    made = wire.ask(
        CopyPipeline(name=_name(arguments), to=to, project=project, new_name=arguments.one("--as"))
    )
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(made)
    else:
        terminal.say(made.path)
    return DONE


def _name(arguments: Arguments) -> str:
    """A name as it is, a file by its absolute path: the daemon's directory is another than ours."""
    word = arguments.word("NAME")
    looks_like_file = "/" in word or word.endswith(".toml")
    return str(Path(word).absolute()) if looks_like_file else word
