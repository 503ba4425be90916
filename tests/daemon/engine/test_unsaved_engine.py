"""No writing stage starts over unsaved files unsaid, and nothing else is held up by them (ED-11, M14)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from engine_builders import given, lives, orders, tasks, with_life

from promptside_daemon.engine import events as e
from promptside_daemon.engine.decide import decide
from promptside_daemon.engine.given import UnsavedFile
from promptside_daemon.engine.step import step
from promptside_daemon.engine.task import Decision, Queued, Task
from promptside_daemon.engine.unsaved import named
from promptside_protocol.commands import StartCommand
from promptside_protocol.errors import Refused

TASKS = tasks()
FILES = (UnsavedFile(path="src/login.ts", client="neovim"),)


def code(task: Task, command: Any, files: tuple[UnsavedFile, ...]) -> str:
    """What an order comes to; empty if it is taken."""
    try:
        decide(task, command, given(task, command, unsaved=files))
    except Refused as refused:
        return refused.refusal.code
    return ""


def loose(task: Task) -> Task:
    """The same with all tools in every stage."""
    stages = tuple(msgspec.structs.replace(stage, tools=None) for stage in task.pipeline.stages)
    return msgspec.structs.replace(task, pipeline=msgspec.structs.replace(task.pipeline, stages=stages))


def writes(task: Task, command: Any) -> bool:
    """Whether an order that is taken makes a stage start that may write."""
    after, _ = step(task, decide(task, command, given(task, command)))
    run, stage = after.run, after.stage
    starts = run is not None and isinstance(run.status, Queued) and run != task.run
    return starts and stage is not None and not stage.read_only


def test_what_starts_a_writing_stage_says_so_or_is_refused_and_nothing_else_is() -> None:
    refused = set()
    for task in (*TASKS.values(), *(loose(task) for task in TASKS.values())):
        for life in (task.life, *lives()):
            now = with_life(task, life)
            for command in orders(now):
                without, there = code(now, command, ()), code(now, command, FILES)
                if not isinstance(command, StartCommand) or without or not writes(now, command):
                    assert there == without, (command, task)
                    continue
                insists = command.anyway
                assert there == ("" if insists else "unsaved"), (command, task)
                assert code(now, msgspec.structs.replace(command, anyway=True), FILES) == ""
                refused.add(type(command).__name__)
    assert {"Run", "Approve", "Redo", "Retry", "Skip", "Resume", "GoBack"} == refused


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "f1 has unsaved changes in kate"),
        (2, "f1 (in kate) and f2 (in kate) have unsaved changes"),
        (3, "f1 (in kate), f2 (in kate) and f3 (in kate) have unsaved changes"),
        (5, "f1 (in kate), f2 (in kate), f3 (in kate) and 2 more have unsaved changes"),
    ],
)
def test_the_files_are_named(count: int, words: str) -> None:
    files = tuple(UnsavedFile(path=f"f{number + 1}", client="kate") for number in range(count))
    assert named(files) == words


def test_what_was_saved_meanwhile_is_said_and_decides_nothing() -> None:
    task = next(t for t in TASKS.values() if any(d.kind == "permission" for d in t.open_decisions))
    (asked,) = (d for d in task.open_decisions if d.kind == "permission")
    words = e.UnsavedCleared(at=1e6, decision=asked.id, words="It was saved meanwhile.")
    assert step(task, words)[0].decisions == task.decisions, "it is not about an unsaved file"
    held = msgspec.structs.replace(asked, held="/p/a", why="a is unsaved.")
    open_now: tuple[Decision, ...] = tuple(held if d.id == asked.id else d for d in task.decisions)
    after, effects = step(msgspec.structs.replace(task, decisions=open_now), words)
    (said,) = (d for d in after.open_decisions if d.id == asked.id)
    assert (said.status, said.why) == (held.status, "a is unsaved. It was saved meanwhile.")
    assert effects == ()
