"""Every status × every state of a task × every event: `step` is total, and what it returns is a valid task."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from engine_builders import (
    faults,
    happenings,
    lives,
    reencoded,
    tasks,
    with_life,
)

from promptside_daemon.engine import task as t
from promptside_daemon.engine.events import AnyEvent
from promptside_daemon.engine.step import step
from promptside_daemon.engine.task import Task

TASKS = tasks()


@pytest.mark.parametrize("name", TASKS)
def test_every_event_leaves_a_valid_task(name: str) -> None:
    task = TASKS[name]
    assert faults(task) == []
    for event in happenings(task):
        after, effects = step(task, event)
        assert faults(after) == [], event
        assert isinstance(effects, tuple)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_the_same_after_the_database(name: str) -> None:
    for event in happenings(TASKS[name]):
        after, _ = step(TASKS[name], event)
        assert reencoded(after) == after, event


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("life", lives(), ids=lambda life: type(life).__name__)
def test_no_event_fails_in_any_state(name: str, life: t.Life) -> None:
    task = with_life(TASKS[name], life)
    for event in happenings(task):
        after, _ = step(task, event)
        assert isinstance(after, Task)


@pytest.mark.parametrize("name", TASKS)
def test_a_step_is_the_same_every_time(name: str) -> None:
    for event in happenings(TASKS[name]):
        assert step(TASKS[name], event) == step(reencoded(TASKS[name]), event)


def test_every_status_and_every_event_is_among_them() -> None:
    def kinds(union: Any) -> set[type]:
        return set(get_args(union))

    statuses = {type(run.status) for task in TASKS.values() for run in task.stages}
    assert statuses == kinds(t.Status)
    assert {type(task.life) for task in TASKS.values()} == kinds(t.Life)
    assert {type(event) for event in happenings(TASKS["asking everything"])} == kinds(AnyEvent)
    asked = {d.status for task in TASKS.values() for d in task.decisions}
    assert asked == {"open", "parked", "withdrawn"}
