"""A Neovim of one's own: the real one, with our plugin and the person's `promptside lsp`."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from unittest import mock

import pytest
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED
from promptside_protocol import connect
from promptside_protocol.blocking import request
from promptside_protocol.commands import AnyCommand, NewTask, Run, Skip

sys.path.insert(0, str(Path(__file__).parent))

from nvim_editor import Neovim, Terminal


@pytest.fixture
def sample(user: User) -> User:
    """A person in a copy of the shipped sample project."""
    project = SHIPPED / "standard" / "project"
    copytree(project, user.project, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__"))
    user.commit_all()
    return user


@pytest.fixture
def editors(sample: User) -> Iterator[Callable[..., Neovim]]:
    """Opens editors of the person; they are left at the end."""
    opened: list[Neovim] = []

    def open_editor(**options: Any) -> Neovim:
        opened.append(Neovim(sample, **options))
        return opened[-1]

    yield open_editor
    for editor in opened:
        editor.close()


@pytest.fixture
def nvim(editors: Callable[..., Neovim]) -> Neovim:
    """An editor on the sample project, which has no task yet."""
    return editors()


@pytest.fixture
def terminals(sample: User) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals of the person; they are closed at the end."""
    opened: list[Terminal] = []

    def open_terminal(**options: Any) -> Terminal:
        opened.append(Terminal(sample, **options))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


@pytest.fixture
def order(sample: User) -> Callable[[AnyCommand], int]:
    """Gives an order as the person's terminal would, without a program for each; the task's number."""

    def give(command: AnyCommand) -> int:
        with mock.patch.dict(os.environ, sample.environment, clear=True):
            return request(connect.hello("terminal"), command).task

    return give


@pytest.fixture
def new_task(sample: User, order: Callable[[AnyCommand], int]) -> Callable[..., int]:
    """A task of the sample, which a recording plays unless another agent is named."""

    def make(title: str = "Leave common words out", **given: Any) -> int:
        wish: dict[str, Any] = {"agent": "rehearsal-fast:standard", **given}
        return order(NewTask(project=str(sample.project), key=uuid.uuid4().hex, title=title, **wish))

    return make


@pytest.fixture
def at_stage(
    sample: User, order: Callable[[AnyCommand], int], new_task: Callable[..., int]
) -> Callable[[int], None]:
    """A task of the sample that runs from behind its first stages on."""

    def begin(skipped: int) -> None:
        at: dict[str, Any] = {"project": str(sample.project), "task": new_task()}
        for _ in range(skipped):
            order(Skip(**at, reason="Not here."))
        order(Run(**at))

    return begin
