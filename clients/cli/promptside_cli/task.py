"""`task new`, `task list`, `task show`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, UsageError
from promptside_cli.terminal import Terminal, unfolded
from promptside_protocol.commands import NewTask
from promptside_protocol.queries import Decisions, GetTask, Projects, Tasks

PRIORITIES = {"high": 90, "medium": 50, "low": 10}


def new(arguments: Arguments) -> int:
    """`task new`: writes it down, in a project that is made where there is none; starts nothing."""
    priority = _priority(arguments)
    description = _description(arguments)
    project = place.project_made(arguments)
    order = NewTask(
        project=project,
        key=os.urandom(16).hex(),
        title=arguments.word("TITLE"),
        description=description,
        pipeline=arguments.one("--pipeline"),
        kind=arguments.one("--type", "feature"),  # type: ignore[arg-type]  # one of the choices in the table
        work_type=arguments.one("--work-type", "coding"),  # type: ignore[arg-type]  # see above
        priority=priority,
        criteria=arguments.all("--criterion"),
        files=arguments.all("--file"),
        draft=arguments.given("--draft"),
        agent=arguments.one("--agent"),
    )
    made = wire.ask(order)
    view = wire.ask(GetTask(project=project, task=made.task))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(view)
        return DONE
    from promptside_protocol.pages.task import heading  # noqa: PLC0415  # data needs no page

    terminal.line(heading(view, terminal.look()))
    terminal.say(f"Next: promptside {'task ready' if view.state == 'draft' else 'run'} {view.id}")
    return DONE


def list_tasks(arguments: Arguments) -> int:
    """`task list`"""
    everywhere = arguments.given("--all-projects")
    state = arguments.one("--state")
    question = Tasks(
        project="" if everywhere else place.project(arguments),
        state=state,
        work_type=arguments.one("--work-type"),
        limit=arguments.number("--limit"),
        offset=arguments.number("--offset"),
    )
    found = wire.ask(question)
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(found)
        return DONE
    from promptside_protocol.pages.tasks import tasks_page  # noqa: PLC0415  # data needs no page

    names = {one.path: one.name for one in wire.ask(Projects())} if everywhere else None
    # What is over stays folded here, as there is no key to unfold it; `--state completed` shows it.
    open_groups = frozenset({"ready", "pending", "draft", state})
    terminal.page(tasks_page(found, terminal.look(), unfolded=open_groups, projects=names))
    return DONE


def show(arguments: Arguments) -> int:
    """`task show`"""
    view = place.task(arguments)
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(view)
        return DONE
    from msgspec.structs import replace  # noqa: PLC0415  # data needs no page

    from promptside_protocol.pages.task import task_page  # noqa: PLC0415  # see above

    # The view carries the last decisions; a person who asks for the task wants the whole record.
    whole = wire.ask(Decisions(project=view.project, task=view.id))
    terminal.page(unfolded(task_page(replace(view, decisions=whole), terminal.look())))
    return DONE


def _priority(arguments: Arguments) -> int:
    word = arguments.one("--priority", "medium")
    if word in PRIORITIES:
        return PRIORITIES[word]
    digits = word.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(word)
    raise UsageError(f"--priority takes a number, high, medium or low, not “{word}”.", arguments.verb.usage)


def _description(arguments: Arguments) -> str:
    name = arguments.one("--description-file")
    if not name:
        return arguments.one("--description")
    if arguments.given("--description"):
        raise UsageError("--description and --description-file exclude each other.", arguments.verb.usage)
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"{name} can't be read: {reason}.", arguments.verb.usage) from error
