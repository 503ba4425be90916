"""A run's course: whether it begins with an order, where it rests with which exit code, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from promptside_cli.events import as_line, between
from promptside_cli.run import denied, to_be_ordered, verdict
from promptside_protocol.views import AttemptView, DecisionView, Denial, GateView, TaskView, WaitingFor

Task = Callable[..., TaskView]
Try = Callable[..., AttemptView]


def waits(kind: Any = "gate", stage: str = "research", **more: Any) -> WaitingFor:
    gate = GateView(type="require_approval", shown="h") if kind == "gate" else None
    return WaitingFor(kind=kind, stage=stage, since=5.0, gate=gate, **more)


WAITING = {"status": "waiting"}
RUNNING = {"status": "running"}
FAILED = {"status": "failed"}
PASSED = {"status": "approved"}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"research": RUNNING}, None),
        ({"research": {"status": "current"}}, None),
        ({"research": {"status": "checking"}}, None),
        ({"research": WAITING, "waiting_for": waits()}, 3),
        ({"research": RUNNING, "waiting_for": waits("decision")}, 3),
        ({"research": {"status": "current"}, "waiting_for": waits("input")}, 3),
        ({"research": FAILED, "waiting_for": waits("person")}, 1),
        ({"research": WAITING, "waiting_for": waits("person")}, 3),
        ({"state": "completed", "current": None}, 0),
        ({"state": "failed"}, 1),
        ({"state": "archived"}, 1),
        ({"state": "paused"}, 3),
        ({"state": "ready"}, None),
    ],
)
def test_where_a_task_rests(task: Task, changes: dict[str, Any], code: int | None) -> None:
    """The table of exit codes in CLI.md."""
    assert verdict(task(**changes)) == code


def test_one_stage_is_enough_when_it_passed(task: Task) -> None:
    """`run --stage`"""
    after = {"current": "planning", "waiting_for": waits("input", "planning")}
    assert verdict(task(research=PASSED, **after), "research") == 0
    assert verdict(task(research={"status": "skipped"}, **after), "research") == 0
    assert verdict(task(research=PASSED, **after)) == 3
    assert verdict(task(research=WAITING, waiting_for=waits()), "research") == 3


@pytest.mark.parametrize(
    ("changes", "more", "ordered"),
    [
        ({"state": "ready"}, {}, True),
        ({"state": "draft"}, {}, True),
        ({"state": "paused"}, {}, True),
        ({"state": "archived"}, {}, True),
        ({"state": "completed"}, {}, False),
        ({"research": RUNNING}, {}, False),
        ({"waiting_for": waits()}, {}, False),
        ({"waiting_for": waits()}, {"has_input": True}, True),
        ({"waiting_for": waits("decision")}, {}, False),
        ({"waiting_for": waits("input")}, {}, True),
        ({"waiting_for": waits("input")}, {"asks": True}, False),
        ({"waiting_for": waits("person")}, {}, True),
    ],
)
def test_whether_a_run_begins_with_an_order(
    task: Task, changes: dict[str, Any], more: dict[str, bool], ordered: bool
) -> None:
    given = {"has_input": False, "asks": False, **more}
    assert to_be_ordered(task(**changes), **given) is ordered


def test_what_was_denied_since(task: Task, attempt: Try) -> None:
    """ST-14: unattended runs list what was denied in their result."""
    old, new = Denial(tool="Bash", what="a", reason="r"), Denial(tool="Write", what="b", reason="no")
    before = task(research={"attempts": (attempt(denials=(old,)),)})
    view = task(research={"attempts": (attempt(denials=(old, new)), attempt(2, denials=(old,)))})
    assert denied(before, view) == [
        {"stage": "research", "attempt": 1, "tool": "Write", "what": "b", "reason": "no"},
        {"stage": "research", "attempt": 2, "tool": "Bash", "what": "a", "reason": "r"},
    ]


# --- events ------------------------------------------------------------------------------------------------


def names(before: TaskView | None, after: TaskView) -> list[tuple[str, str, int]]:
    return [(h.event, h.stage.id if h.stage else "", h.attempt) for h in between(before, after)]


def test_what_happened_between_two_views(task: Task, attempt: Try) -> None:
    ready = task(state="ready")
    started = task(seq=2, research={**RUNNING, "attempts": (attempt(status="running"),)})
    waiting = task(seq=3, research={**WAITING, "attempts": (attempt(),)}, waiting_for=waits())
    passed = task(
        seq=4,
        current="planning",
        research={**PASSED, "attempts": (attempt(),)},
        planning={**RUNNING, "attempts": (attempt(status="running"),)},
    )
    assert names(None, ready) == [("task_ready", "", 0)]
    assert names(ready, started) == [("attempt_started", "research", 1), ("task_taken", "", 0)]
    assert names(started, waiting) == [("attempt_ended", "research", 1), ("gate_waiting", "research", 0)]
    assert names(waiting, passed) == [("stage_approved", "research", 0), ("attempt_started", "planning", 1)]
    stopped = {"status": "future", "attempts": (attempt(status="stopped"),)}
    back = task(seq=5, research={**WAITING, "attempts": (attempt(),)}, planning=stopped, waiting_for=waits())
    assert names(passed, back) == [
        ("stage_reopened", "research", 0),
        ("attempt_ended", "planning", 1),
        ("gate_waiting", "research", 0),
    ]
    assert names(waiting, waiting) == []


def test_nothing_is_left_out_when_views_were(task: Task, attempt: Try) -> None:
    """CW-16: a task comes whole, so what lay between is told from it."""
    after = task(
        seq=9,
        state="completed",
        current=None,
        research={**PASSED, "attempts": (attempt(status="failed"), attempt(2))},
    )
    assert names(task(), after) == [
        ("attempt_started", "research", 1),
        ("attempt_ended", "research", 1),
        ("attempt_started", "research", 2),
        ("attempt_ended", "research", 2),
        ("stage_approved", "research", 0),
        ("task_completed", "", 0),
    ]


def test_a_draft_that_changes_is_the_same_wait(task: Task) -> None:
    before = task(research=WAITING, waiting_for=waits())
    after = replace(before, seq=2, waiting_for=waits(document="d"))
    assert names(before, after) == [("task_changed", "", 0)]


def test_another_question_is_another_wait(task: Task) -> None:
    asked = [DecisionView(id=i, kind="one", priority=1, required=True, text="?") for i in ("Q1", "Q2")]
    before = task(waiting_for=waits("decision", decisions=tuple(asked)))
    after = replace(before, seq=2, waiting_for=waits("decision", decisions=(asked[1],)))
    assert names(before, after) == [("decision_waiting", "research", 0)]


def test_the_line_of_an_event(task: Task, attempt: Try) -> None:
    """UX 6: `{"event":"gate_waiting","task":12,"stage":…,"attempt":1,"waiting_for":{…},"seq":481}`"""
    view = task(seq=481, research={**WAITING, "attempts": (attempt(),)}, waiting_for=waits())
    line = as_line(between(task(), view)[-1], view)
    assert line == {
        "event": "gate_waiting",
        "seq": 481,
        "project": "/p",
        "task": 12,
        "state": "taken",
        "stage": "research",
        "status": "waiting",
        "attempt": 1,
        "waiting_for": view.waiting_for,
    }
    failed = task(seq=2, research={**FAILED, "attempts": (attempt(status="failed", error="no luck"),)})
    ended = next(h for h in between(task(), failed) if h.event == "stage_failed")
    assert as_line(ended, failed)["error"] == "no luck"
