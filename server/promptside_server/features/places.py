"""From where one is in the source: a new task of what is selected or wrong there, and word of it to an agent (ED-13).

An action carries the place; the text is quoted when it is chosen, as it stands then.
"""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.views import TaskView
from promptside_server.context import MESSAGES, is_ours
from promptside_server.documents import path_of
from promptside_server.features.actions import OPTIONS, Action, drawn
from promptside_server.offered import REDO, RUN, SAY, Act
from promptside_server.server import Server
from promptside_server.shared import give

KIND = "refactor.promptside"
TASKS = 3
"""Tasks to which a selection can be said; of more, the ones that changed last."""
WIDTH = 40


def register(server: Server) -> None:
    """Answer for code actions in every file that is no document of ours."""

    def actions(params: types.CodeActionParams) -> list[Action]:
        path = path_of(params.text_document.uri)
        wanted = params.context.only
        if path is None or is_ours(path) or not (wanted is None or any(_fits(one) for one in wanted)):
            return []
        place, said = _place(params)
        selected = params.range.start != params.range.end
        if not selected and not said:
            return []
        begin = Act(title="New task from this", command="promptside.newTask", args=place)
        found = [(begin, said or None)]
        if selected:
            project = server.mirror.project_of(path)
            tasks = [task for task in server.mirror.tasks(project or "") if task.project == project]
            found += [(act, None) for act in said_to(tasks, place)]
        made = [drawn(server, act, KIND, diagnostics) for act, diagnostics in found]
        return [action for action in made if action is not None]

    give(server, types.TEXT_DOCUMENT_CODE_ACTION, actions, OPTIONS)


def said_to(tasks: list[TaskView], place: dict[str, Any]) -> list[Act]:
    """To whom a selection can be said now, and how: each is an offer of its task."""
    found = []
    for task in tasks:
        title = cut(one_line(task.title), WIDTH, unicode=True)
        given = {"project": task.project, "task": task.id, **place}
        for offer in task.offers:
            words = {
                SAY: f"Say this to the agent of “{title}”",
                REDO: f"Redo with this selection: “{title}”",
                RUN: f"{offer.title} with this selection: “{title}”",
            }.get(offer.command)
            if words is not None and offer.blocked is None:
                found.append(Act(title=words, command=offer.command, args={**given, **offer.args}))
                break
        if len(found) == TASKS:
            break
    return found


def _place(params: types.CodeActionParams) -> tuple[dict[str, Any], list[types.Diagnostic]]:
    """The arguments of a command about this place, and the diagnostics that are meant."""
    start, end = params.range.start, params.range.end
    said = list(params.context.diagnostics[:MESSAGES])
    if start == end and said:
        start = end = said[0].range.start  # the line is quoted, as one that nobody has selected
    place: dict[str, Any] = {
        "uri": params.text_document.uri,
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        },
    }
    if said:
        place["diagnostics"] = [d.message for d in said]
    return place, said


def _fits(wanted: Any) -> bool:
    name = str(getattr(wanted, "value", wanted))
    return not name or name == KIND or KIND.startswith(f"{name}.") or name == "quickfix"
