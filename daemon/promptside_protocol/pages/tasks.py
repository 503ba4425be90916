"""The list of tasks, in groups by what a person would do with them: what waits comes first (UX 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from promptside_protocol.pages.page import Fold, Line, Look, Page, Role, Span, line
from promptside_protocol.pages.plain import cells, cut, one_line, pad
from promptside_protocol.pages.waiting import need
from promptside_protocol.pages.words import day, duration, mark, money, offer_line
from promptside_protocol.views import Offer, StageView, TaskView

GROUPS: tuple[tuple[str, str, bool], ...] = (
    ("waiting", "Waiting for you", True),
    ("running", "Running", True),
    ("underway", "Under way", True),
    ("failed", "Failed", True),
    ("paused", "Paused", True),
    ("ready", "Ready", False),
    ("pending", "Pending", False),
    ("draft", "Draft", False),
    ("completed", "Done", False),
    ("archived", "Archived", False),
)
"""Id, heading, and whether it begins unfolded."""


class _Row(Struct, frozen=True):
    task: TaskView
    role: Role
    title: str
    stage: str
    words: str


def tasks_page(
    tasks: Sequence[TaskView],
    look: Look,
    *,
    unfolded: frozenset[str] = frozenset(),
    projects: Mapping[str, str] | None = None,
) -> Page:
    """All tasks; groups in `unfolded` begin open. With `projects` (path to name) each line names its own."""
    grouped: dict[str, list[_Row]] = {name: [] for name, _, _ in GROUPS}
    for task in tasks:
        grouped[group_of(task)].append(_row(task, look, projects))
    lines: list[Line] = []
    for name, title, open_first in GROUPS:
        rows = grouped[name]
        if not rows:
            continue
        alone = len(rows) == len(tasks)  # nothing else is there to be seen
        is_open = open_first or alone or name in unfolded
        fold: Fold = "open" if is_open else "closed"
        lines.append(
            line(Span(title, "title"), Span(f" ({len(rows)})", "muted"), fold=fold, ref=f"group/{name}")
        )
        lines += _drawn(rows, look)
    if not tasks:
        lines = [line("No task yet."), _first(look)]
    return Page(title="tasks", lines=tuple(lines))


def _first(look: Look) -> Line:
    if look.calls:
        return line(Span("Next: ", "muted"), 'promptside task new "..."')
    offer = Offer(
        command="promptside.newTask", title="New Task…", primary=True, hint='promptside task new "..."'
    )
    return offer_line(offer, look, "Next: ")


def group_of(task: TaskView) -> str:
    """The group a task belongs to; what waits for a person does so in whatever state it is."""
    match task.state:
        case "taken":
            if task.waiting_for is not None:
                return "waiting"
            running = any(stage.status in ("running", "checking") for stage in task.stages)
            return "running" if running else "underway"
        case "expired":
            return "paused"
        case _:
            return task.state


def _row(task: TaskView, look: Look, projects: Mapping[str, str] | None) -> _Row:
    group = group_of(task)
    stage = next((s for s in task.stages if s.id == task.current), None)
    words = _words(task, stage, group, look)
    if projects is not None:
        words = "   ".join(
            part for part in (words, one_line(projects.get(task.project, task.project))) if part
        )
    return _Row(
        task=task,
        role=_role(group, stage),
        title=one_line(task.title),
        stage=one_line(stage.name) if stage is not None else "",
        words=words,
    )


def _role(group: str, stage: StageView | None) -> Role:
    match group:
        case "waiting":
            return (
                "failed"
                if stage is not None and stage.status == "failed" and not stage.stopped
                else "waiting"
            )
        case "running" | "failed" | "paused":
            return group
        case "completed":
            return "done"
        case "archived":
            return "skipped"
        case _:
            return "next"


def _words(task: TaskView, stage: StageView | None, group: str, look: Look) -> str:
    if task.waiting_for is not None and group == "waiting":
        return need(task.waiting_for)
    if task.terminal is not None:
        return one_line(task.terminal.words).removesuffix(".")
    if group == "running" and stage is not None and stage.attempts:
        last = stage.attempts[-1]
        spent = [duration(look.now - last.started)] if last.started is not None else []
        if last.cost_usd is not None:
            spent.append(money(last.cost_usd, recorded=task.metrics.recorded))
        return ", ".join(spent)
    if group == "underway" and stage is not None:
        return one_line(stage.reason) or "next"
    if group in ("failed", "archived"):
        return one_line(task.reason or task.error or "")
    if group == "completed":
        spent_in_all = money(task.metrics.cost_usd, recorded=task.metrics.recorded)
        return f"{spent_in_all}, {day(task.state_since, look)}"
    return f"priority {task.priority}" if group == "ready" and task.priority != 50 else ""


def _drawn(rows: list[_Row], look: Look) -> list[Line]:
    number = max(len(str(row.task.id)) for row in rows) + 1
    stage = min(max(cells(row.stage) for row in rows), 24)
    words = min(max(cells(row.words) for row in rows), 40)
    room = max(look.width - 2 - number - 1 - 2 - stage - 2 - words, 20)
    title = min(max(cells(row.title) for row in rows), room)
    lines: list[Line] = []
    for row in rows:
        name = pad(cut(row.title, title, unicode=look.unicode), title)
        at = pad(cut(row.stage, stage, unicode=look.unicode), stage)
        lines.append(
            line(
                mark(row.role, look),
                " ",
                Span(f"#{row.task.id}".ljust(number) + " ", "muted"),
                name,
                Span(f"  {at}", "muted") if at else "",
                f"  {cut(row.words, words, unicode=look.unicode)}" if row.words else "",
                fold="inside",
                ref=f"task/{row.task.id}",
                offers=row.task.offers,
                project=row.task.project,
            )
        )
    return lines
