"""What is told of an agent at work: its newest lines, and how far its own list of steps has come."""

from typing import Any

import pytest

from promptside_daemon.world.activity import Activities
from promptside_daemon.world.claude.readings import ToolUsed
from promptside_daemon.world.redact import Redactor


def todos(*states: str) -> tuple[str, dict[str, Any]]:
    return "TodoWrite", {"todos": [{"content": "It", "status": state} for state in states]}


def new() -> tuple[str, dict[str, Any]]:
    return "TaskCreate", {"subject": "It"}


def now(number: int, status: str) -> tuple[str, dict[str, Any]]:
    return "TaskUpdate", {"taskId": str(number), "status": status}


STEPS: dict[str, tuple[list[tuple[str, dict[str, Any]]], tuple[int, int]]] = {
    "no list": ([("Read", {"file_path": "a"})], (0, 0)),
    "a list": ([todos("completed", "in_progress", "pending")], (1, 3)),
    "the next one counts": ([todos("completed", "pending"), todos("completed", "completed")], (2, 2)),
    "an emptied list": ([todos("completed"), todos()], (0, 0)),
    "one by one": ([new(), new(), new(), now(1, "completed"), now(2, "in_progress")], (1, 3)),
    "done twice is done once": ([new(), new(), now(1, "completed"), now(1, "completed")], (1, 2)),
    "opened again": ([new(), new(), now(1, "completed"), now(1, "pending")], (0, 2)),
    "dropped": ([new(), new(), now(1, "deleted")], (0, 1)),
    "dropped after it was done": ([new(), new(), now(1, "completed"), now(1, "deleted")], (0, 1)),
    "of a list whose beginning was not read": ([now(4, "completed")], (0, 0)),
    "nonsense": ([("TodoWrite", {"todos": "all"}), ("TaskUpdate", {"taskId": "1"})], (0, 0)),
    "nonsense in a list": ([("TodoWrite", {"todos": [1, {"status": ["completed"]}]})], (0, 1)),
}


@pytest.mark.parametrize("case", STEPS)
def test_ed4_steps_of_the_agents_own_list_are_counted(case: str) -> None:
    uses, (step, steps) = STEPS[case]
    activities = Activities("/project")
    for at, (name, given) in enumerate(uses):
        activities.acted(1, "a1", ToolUsed(at=at, id=str(at), name=name, input=given), Redactor(()))
    (activity,) = activities.current()
    assert (activity.step, activity.steps) == (step, steps)


def test_ed4_what_a_subagent_plans_is_no_step_and_an_attempts_list_ends_with_it() -> None:
    activities = Activities("/project")
    name, given = todos("completed", "pending")
    redactor = Redactor(())
    activities.acted(1, "a1", ToolUsed(at=1, id="1", name=name, input=given, parent="agent"), redactor)
    assert activities.current()[0].steps == 0
    activities.acted(1, "a1", ToolUsed(at=2, id="2", name=name, input=given), redactor)
    assert activities.current()[0].steps == 2
    activities.forget("a1")
    activities.acted(1, "a1", ToolUsed(at=3, id="3", name="Read", input={}), redactor)
    assert activities.current()[0].steps == 0
