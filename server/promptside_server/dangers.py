"""Orders that throw something away: what they are asked about, and what they are called where nobody can ask.

An editor that shows messages with buttons asks first (M34, M35); closing the message is no. One without them lists
the order under a title that says what becomes of the work: choosing it from the menu is the confirmation. There is
no second step, since LSP has no way to ask for one. Stopping and skipping are not asked about: a retry, or going
back, takes the work up where it was. Clients of ours ask by themselves, in their own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from promptside_protocol.pages.plain import cut, one_line
from promptside_protocol.pages.words import several
from promptside_protocol.views import TaskView

ABANDON, GO_BACK, UNDO = "promptside.abandon", "promptside.goBack", "promptside.undo"


class Danger(Struct, frozen=True, kw_only=True):
    """What is said of an order before it is given."""

    title: str
    """Its name where nobody can ask: what it does, and what becomes of the files."""
    question: str
    button: str


def danger(task: TaskView, command: str, args: Mapping[str, Any]) -> Danger | None:
    """What to say of an order; None if nothing is lost by it, or if the person said why it is given."""
    match command:
        case "promptside.abandon":
            return _abandon(task)
        case "promptside.goBack" if not args.get("reason"):
            return _go_back(task, str(args.get("stage", "")))
        case "promptside.undo":
            return _undo(task, str(args.get("stage", "")), args.get("attempt"))
        case _:
            return None


def _abandon(task: TaskView) -> Danger:
    name = cut(one_line(task.title), 60, unicode=True)
    running = next((s.name for s in task.stages if s.id == task.current and s.status == "running"), "")
    stopped = f"{one_line(running)} is stopped" if running else ""
    return Danger(
        title=f"Abandon “{name}”: {', '.join(p for p in ('branch and files stay', stopped) if p)}",
        question=f"Abandon “{name}”? Branch and files stay{f'; {stopped}' if stopped else ''}.",
        button="Abandon",
    )


def _go_back(task: TaskView, stage: str) -> Danger:
    ids = [s.id for s in task.stages]
    names = {s.id: one_line(s.name) for s in task.stages}
    name = names.get(stage, stage)
    last = ids.index(task.current) + 1 if task.current in ids else len(ids)
    later = [names[one] for one in ids[ids.index(stage) + 1 : last]] if stage in ids else []
    again = f"{' and '.join(later)} {'run' if len(later) > 1 else 'runs'} again" if later else "files stay"
    kept = (
        f" {again}; what {'they have' if len(later) > 1 else 'it has'} written is kept as earlier attempts."
    )
    return Danger(
        title=f"Go back to {name}: {again}",
        question=f"Go back to {name}?{kept if later else ''} Files stay.",
        button="Go back",
    )


def _undo(task: TaskView, stage: str, attempt: object) -> Danger:
    run = next((s for s in task.stages if s.id == (stage or task.current)), None)
    done = next((a for a in reversed(run.attempts) if attempt in (0, None, a.n)), None) if run else None
    files = several(len(done.changes), "file") if done is not None and done.changes else "its files"
    name = (
        f"attempt {done.n} of {one_line(run.name)}" if run is not None and done is not None else "the attempt"
    )
    return Danger(
        title=f"Undo what {name} changed: {files} as before",
        question=f"Undo what {name} changed? {files[:1].upper()}{files[1:]} will be as before it.",
        button="Undo",
    )
