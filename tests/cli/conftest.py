"""A task as clients see it, and a terminal that writes into strings."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from promptside_cli.terminal import Terminal
from promptside_protocol.views import AttemptView, Metrics, StageView, TaskView

STAGES = ("research", "planning", "implementation")


class Screen(io.StringIO):
    """A stream that is a terminal, or isn't."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    encoding = "utf-8"  # type: ignore[assignment]  # of a stream it is what the terminal takes

    def isatty(self) -> bool:
        return self.tty


@pytest.fixture
def attempt() -> Callable[..., AttemptView]:
    def make(n: int = 1, **more: Any) -> AttemptView:
        plain = AttemptView(
            n=n,
            id=f"a{n}",
            status="done",
            cause="first",
            session="s",
            started=1000.0,
            ended=1100.0,
            duration_s=100.0,
            input_tokens=10,
            output_tokens=5,
            cost_usd=0.1,
            model="m",
            prompt="/p",
            transcript="/t",
            error=None,
        )
        return replace(plain, **more)

    return make


@pytest.fixture
def task() -> Callable[..., TaskView]:
    """A task of three stages; `research={…}` changes a stage, everything else the task."""

    def make(**more: Any) -> TaskView:
        stages = tuple(
            replace(
                StageView(id=one, name=one.title(), status="future", format="text", tools=(), rule=""),
                **more.pop(one, {}),
            )
            for one in STAGES
        )
        plain = TaskView(
            seq=1,
            id=12,
            project="/p",
            title="Add login",
            description="",
            state="taken",
            state_since=1000.0,
            claimed_by=None,
            reason=None,
            pipeline="standard",
            type="feature",
            work_type="coding",
            priority=50,
            agent="claude",
            stages=stages,
            current="research",
            waiting_for=None,
            directory=".promptside/tasks/12-add-login",
            metrics=Metrics(),
            created=900.0,
        )
        return replace(plain, **more)

    return make


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    def make(*, tty: bool = False, json: bool = False, color: str = "never", term: str = "xterm") -> Terminal:
        monkeypatch.setenv("TERM", term)
        monkeypatch.delenv("NO_COLOR", raising=False)
        return Terminal(json=json, color=color, stdout=Screen(tty=tty), stderr=Screen(tty=tty))

    return make
