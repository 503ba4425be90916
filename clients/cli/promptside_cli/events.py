"""What happened between two views of a task, as lines for scripts; the views are all a client gets told."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from promptside_protocol.views import StageView, TaskView


class Happened(Struct, frozen=True, kw_only=True):
    """One thing that is different now."""

    event: str
    stage: StageView | None = None
    attempt: int = 0


def between(before: TaskView | None, after: TaskView) -> list[Happened]:
    """What is different, stages first and in their order; never empty where anything is."""
    old = {stage.id: stage for stage in before.stages} if before is not None else {}
    found = [one for stage in after.stages for one in _of_stage(old.get(stage.id), stage)]
    if after.waiting_for is not None and _wants(before) != _wants(after):
        waiting = after.waiting_for
        stage = next((s for s in after.stages if s.id == waiting.stage), None)
        found.append(Happened(event=f"{waiting.kind}_waiting", stage=stage))
    if (before is None or before.state != after.state) and (before is not None or after.state != "taken"):
        found.append(Happened(event=f"task_{after.state}"))
    if not found and before is not None and before.seq != after.seq:
        found.append(Happened(event="task_changed"))
    return found


def as_line(happened: Happened, view: TaskView) -> dict[str, Any]:
    """`{"event": "gate_waiting", "seq": 481, "task": 12, "stage": …, "attempt": 1, "waiting_for": {…}}`."""
    line: dict[str, Any] = {
        "event": happened.event,
        "seq": view.seq,
        "project": view.project,
        "task": view.id,
        "state": view.state,
    }
    stage = happened.stage
    if stage is not None:
        line |= {
            "stage": stage.id,
            "status": stage.status,
            "attempt": happened.attempt or len(stage.attempts),
        }
        if stage.status == "failed" and stage.attempts:
            line["error"] = stage.attempts[-1].error
    if happened.event.endswith("_waiting"):
        line["waiting_for"] = view.waiting_for
    return line


def _of_stage(before: StageView | None, after: StageView) -> list[Happened]:
    was = before.status if before is not None else "future"
    known = len(before.attempts) if before is not None else 0
    found: list[Happened] = []
    if before is not None and known:
        last = after.attempts[known - 1]
        ended = before.attempts[-1].status == "running" and last.status != "running"
        found += [Happened(event="attempt_ended", stage=after, attempt=last.n)] if ended else []
    for attempt in after.attempts[known:]:
        found.append(Happened(event="attempt_started", stage=after, attempt=attempt.n))
        if attempt.status != "running":
            found.append(Happened(event="attempt_ended", stage=after, attempt=attempt.n))
    if after.status != was and after.status in ("approved", "skipped", "failed"):
        found.append(Happened(event=f"stage_{after.status}", stage=after))
    if was in ("approved", "skipped") and after.status not in ("approved", "skipped"):
        found.append(Happened(event="stage_reopened", stage=after))
    return found


def _wants(view: TaskView | None) -> object:
    """What identifies a wait: a draft that changes is the same wait, another question is not."""
    waiting = view.waiting_for if view is not None else None
    if waiting is None:
        return None
    return waiting.kind, waiting.stage, waiting.since, tuple(decision.id for decision in waiting.decisions)
