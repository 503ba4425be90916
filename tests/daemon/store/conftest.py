"""Builders for what the store takes: small appends whose body says which version of the task they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import Append, Fact, Summary

Change = Callable[..., Append]
Opened = Callable[..., AbstractAsyncContextManager[ProjectStore]]


@pytest.fixture
def change() -> Change:
    def build(task: int, expected: int, *kinds: str, state: str = "taken", **others: Any) -> Append:
        """An append to `task` with a fact of each kind; a new task gets a key of its own."""
        version = expected + 1
        work_type = others.pop("work_type", "coding")
        waiting, running = others.pop("waiting", 0), others.pop("running", 0)
        others.setdefault("key", "" if expected else f"key of {task}")
        return Append(
            task=task,
            expected_version=expected,
            events=tuple(
                Fact(at=float(version), kind=kind, body=f"{task}:{version}".encode())
                for kind in kinds or ("Changed",)
            ),
            summary=Summary(
                state=state,
                waiting=waiting,
                running=running,
                title=f"Task {task}",
                priority=50,
                work_type=work_type,
                created=1.0,
                changed=float(version),
            ),
            body=f"{task}:{version}".encode(),
            **others,
        )

    return build


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "projects" / "a1b2c3" / "project.db"


@pytest.fixture
def opened() -> Opened:
    @asynccontextmanager
    async def open_it(path: Path, busy_s: float = 5.0) -> AsyncIterator[ProjectStore]:
        store = await ProjectStore.open(path, busy_s)
        try:
            yield store
        finally:
            await store.close()

    return open_it
