"""What an order needs beside its task and was not given: the only thing that can be meant, else the person is asked.

Nothing is guessed: with several choices and no way to ask, the refusal names them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from promptside_protocol.commands import (
    Answer,
    EditDraft,
    GoBack,
    RemoveRule,
    RenameProject,
    Trust,
)
from promptside_protocol.errors import refused
from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.queries import GetTrust, Rules
from promptside_protocol.views import TaskView
from promptside_server.server import Server
from promptside_server.target import pick

WIDTH = 60


async def complete(
    server: Server, kind: type[msgspec.Struct], filled: dict[str, Any], task: TaskView | None
) -> dict[str, Any]:
    """The arguments with what was missing."""
    found: dict[str, Any] = {}
    if kind is GoBack and not filled.get("stage") and task is not None:
        found["stage"] = await _stage(server, task)
    elif kind is Answer and not filled.get("decision") and task is not None:
        found["decision"] = await _decision(server, task)
    elif kind is EditDraft and not filled.get("document") and task is not None:
        found["document"] = _document(task)
    elif kind is RemoveRule and not filled.get("rule"):
        found["rule"] = await _rule(server, filled["project"])
    elif kind is Trust and not filled.get("hash"):
        found["hash"] = await _hash(server, filled["project"])
    elif kind is RenameProject and not filled.get("name"):
        raise refused("no-name", "Say what the project is to be called.", 'Give {"name": …}.')
    return filled | found


async def _stage(server: Server, task: TaskView) -> str:
    ids = [stage.id for stage in task.stages]
    earlier = task.stages[: ids.index(task.current) if task.current in ids else len(ids)]
    if not earlier:
        raise refused("no-stage", f"“{one_line(task.title)}” is at its first stage.")
    if len(earlier) == 1:
        return earlier[0].id
    names = ", ".join(stage.id for stage in earlier)
    several = refused("which", f"Which stage to go back to? One of {names}.", 'Give {"stage": …}.')
    choices = {stage.name: stage.id for stage in earlier}
    return await pick(server, "Which stage do you want to go back to?", choices, several)


async def _decision(server: Server, task: TaskView) -> str:
    opened = [d for d in task.decisions if d.status in ("open", "parked")]
    if not opened:
        raise refused("no-decision", "The agent asks nothing.")
    if len(opened) == 1:
        return opened[0].id
    ids = ", ".join(d.id for d in opened)
    several = refused("which", f"{len(opened)} questions are open: {ids}.", 'Give {"decision": …}.')
    choices = {f"{d.id} {cut(one_line(d.text), WIDTH, unicode=True)}": d.id for d in opened}
    return await pick(server, "Which question do you mean?", choices, several)


def _document(task: TaskView) -> str:
    waiting = task.waiting_for
    if waiting is None or waiting.document is None:
        raise refused("no-document", f"“{one_line(task.title)}” waits with no form.")
    return waiting.document


async def _rule(server: Server, project: str) -> int:
    rules = await server.link.call(Rules(project=project))
    if not rules:
        raise refused("no-rule", "Nothing is permitted for good in this project.")
    if len(rules) == 1:
        return rules[0].id
    names = "; ".join(f"{rule.id} {one_line(rule.rule)}" for rule in rules[:20])
    several = refused("which", f"{len(rules)} permissions were given for good: {names}.", 'Give {"rule": …}.')
    choices = {f"{rule.id} {cut(one_line(rule.rule), WIDTH, unicode=True)}": rule.id for rule in rules}
    return await pick(server, "Which permission do you want to take back?", choices, several)


async def _hash(server: Server, project: str) -> str:
    """That of what is shown to the person here and now: what is trusted is what was seen (DA-5, M23)."""
    found = await server.link.call(GetTrust(project=project))
    if not found.items:
        raise refused("nothing", "This project brings nothing of its own that would run.")
    names = ", ".join(f"{one_line(item.what)} {one_line(item.path)}" for item in found.items)
    words = f"This project brings its own: {names}. They can run programs on your machine. Read them first."
    how = f'promptside trust --show, then promptside trust, or give {{"hash": "{found.hash}"}}'
    unasked = refused("show-first", words, how)
    return await pick(server, words, {"Trust": found.hash}, unasked)
