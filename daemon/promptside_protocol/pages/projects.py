"""The list of projects: what waits in each, and why one can't be read (ST-1)."""

from __future__ import annotations

from collections.abc import Sequence

from promptside_protocol.pages.page import Line, Look, Page, Role, Span, line
from promptside_protocol.pages.plain import cells, one_line, pad
from promptside_protocol.pages.words import mark, offer_line, several
from promptside_protocol.views import Offer, ProjectView

_TRUST = {
    "none_needed": "",
    "untrusted": "not trusted",
    "trusted": "trusted",
    "changed": "changed since it was trusted",
}


def projects_page(projects: Sequence[ProjectView], look: Look) -> Page:
    """One line a project, its path never cut."""
    if not projects:
        empty = (line("No project yet."), _first(look))
        return Page(title="projects", lines=empty)
    width = max(cells(one_line(project.name)) for project in projects)
    return Page(title="projects", lines=tuple(one for p in projects for one in _lines(p, width, look)))


def _first(look: Look) -> Line:
    if look.calls:
        return line(Span("Next: ", "muted"), "promptside project add")
    offer = Offer(command="promptside.addProject", title="Add This Folder as a Project", primary=True)
    return offer_line(offer, look, "Next: ")


def _lines(project: ProjectView, width: int, look: Look) -> list[Line]:
    role: Role = "waiting" if project.waiting else "running" if project.running else "next"
    facts = [several(project.tasks, "task")]
    facts += [f"{project.waiting} waiting"] if project.waiting else []
    facts += [f"{project.running} running"] if project.running else []
    facts += [_TRUST[project.trust]] if _TRUST[project.trust] else []
    ref = f"project/{project.id}"
    lines = [
        line(
            mark("failed" if project.error else role, look),
            " ",
            Span(pad(one_line(project.name), width), "title"),
            "  ",
            Span(one_line(project.path), "path"),
            Span("  " + ", ".join(facts), "muted"),
            ref=ref,
        )
    ]
    if project.error:
        lines.append(line("    ", Span(one_line(project.error), "failed"), ref=ref))
    return lines
