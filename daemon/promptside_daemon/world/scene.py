"""Where a rehearsal plays: its sample project is laid out in an empty folder, so that what it claims is in the files.

In a folder with other files nothing is laid out, and nothing there is ever written over: the person is told.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from promptside_daemon.world import git
from promptside_daemon.world.git import GitFailed

SAMPLE = "project"
"""In a rehearsal's directory: the project that it was recorded in."""
OURS = frozenset({".promptside", ".git"})
"""What a folder may hold and yet be empty; of a repository only one without a commit."""
COMMITTER = (
    *("-c", "user.name=Promptside", "-c", "user.email=rehearsal@promptside.invalid"),
    *("-c", "commit.gpgSign=false", "-c", f"core.hooksPath={os.devnull}"),
)
ELSEWHERE = (
    "This was recorded in another project: its edits are made only where they fit, and what it says of files and "
    "tests is about that project. In an empty folder it brings its project along."
)
LAID_OUT = "The folder was empty: the project that this was recorded in lies here now"


class Scene(Struct, frozen=True, kw_only=True):
    """What a person should know of where a rehearsal plays; `elsewhere` where that is not its own project."""

    remark: str = ""
    elsewhere: bool = False


NOWHERE = Scene()
"""Of a rehearsal that brings no project, and of one that plays where it was recorded."""


async def set_up(root: Path, rehearsal: Path, env: Mapping[str, str]) -> Scene:
    """Lay the rehearsal's project out if the folder is empty; a checkpoint taken before it would call it a change.

    Not for two tasks of one folder at once.
    """
    sample = rehearsal / SAMPLE
    if not await asyncio.to_thread(sample.is_dir):
        return NOWHERE
    files = await asyncio.to_thread(_files, sample)
    if await _is_empty(root, env):
        await asyncio.to_thread(_lay_out, sample, files, root)
        return Scene(remark=f"{LAID_OUT}{await _committed(root, files, env)}")
    there = await asyncio.to_thread(lambda: sum((root / name).is_file() for name in files))
    return NOWHERE if 2 * there > len(files) else Scene(remark=ELSEWHERE, elsewhere=True)


def _files(sample: Path) -> list[str]:
    found = (path for path in sorted(sample.rglob("*")) if path.is_file())
    return [str(path.relative_to(sample)) for path in found if "__pycache__" not in path.parts]


async def _is_empty(root: Path, env: Mapping[str, str]) -> bool:
    names = {path.name for path in await asyncio.to_thread(lambda: list(root.iterdir()))}
    if not names <= OURS:
        return False
    repository = await git.find(root) if ".git" in names else None
    try:
        return repository is None or await git.head(repository, env) is None
    except GitFailed:
        return False


def _lay_out(sample: Path, files: list[str], root: Path) -> None:
    """Copied beside first: a full disk must not leave a folder that is neither empty nor the project."""
    ours = root / ".promptside"
    ours.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ours) as room:
        for name in files:
            target = Path(room) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sample / name, target)
        for path in sorted(Path(room).iterdir()):
            path.rename(root / path.name)


async def _committed(root: Path, files: list[str], env: Mapping[str, str]) -> str:
    """The end of the sentence: where no repository holds the folder, it becomes one, with one commit."""
    if await git.find(root) is not None:
        return "."
    plain = git.environment(env)
    try:
        await git.call(["init", "--quiet", "--template="], cwd=root, env=plain)
        repository = await git.find(root)
        if repository is not None:
            await git.keep_out(repository, root)
        await git.call([*COMMITTER, "add", "--", *files], cwd=root, env=plain)
        words = ["commit", "--quiet", "-m", "The sample project of the rehearsal"]
        await git.call([*COMMITTER, *words], cwd=root, env=plain)
    except (GitFailed, OSError) as error:
        return f". It is not in a git repository: {error}."
    return ", in a new git repository with one commit."
