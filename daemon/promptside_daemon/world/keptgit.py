"""Checkpoints as git trees, made by a git directory of our own that shares the repository's objects.

The repository's configuration, index and hooks take no part. The one thing done to the repository is
`update-ref`: a ref to the tree, so that its objects outlive every `gc`; a tree is in no `git log --all`.
Of a repository inside of the project, submodules too, only the commit is kept: its files are not.
"""

# ruff: noqa: PTH118
# Paths are bytes here: pathlib has none, and names need not be text.

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from . import git
from .git import GitFailed, Repository
from .keptgitdir import copy_rules_above, prepare, save_rules
from .tree import Difference, Entry, Skipped, name

LARGEST = 512 << 20
"""Bytes. A larger file stays out of the person's object store, and is said."""

_TRIES = 8


class KeptGit(Struct, frozen=True, kw_only=True):
    """A project in a repository, and the git directory that we look at it with."""

    repository: Repository
    place: str
    """The project's place below the top, with a slash at the end; empty at the top. Trees begin at the
    project: a checkpoint of one part of a monorepo holds that part alone."""
    keep: Path
    env: Mapping[str, str]
    rules: str
    """The file below `rules` with what is ignored by other than a .gitignore; named by its hash."""

    @property
    def directory(self) -> Path:
        return self.keep / "git"

    @property
    def index(self) -> Path:
        return self.directory / f"index-{_short_hash(self.repository.top / self.place)}"

    def refs(self, task: str) -> str:
        """Two projects in one repository may number their tasks alike, but share no folder `keep`."""
        return f"refs/promptside/{_short_hash(self.keep)}/{task}/"


async def open_kept(project: Path, keep: Path, env: Mapping[str, str] | None) -> KeptGit | None:
    """None where git cannot do it: none there, too old, no repository, one that git refuses for its owner,
    or a project in a folder that its repository ignores."""
    repository = await git.find(project)
    if repository is None or git.cost_of(await git.version(env)):
        return None
    try:
        form = await git.run(repository, "rev-parse", "--show-object-format", env=env)
    except GitFailed:
        return None
    await asyncio.to_thread(prepare, keep / "git", form.text)
    place = repository.place_of(project)
    rules = await save_rules(repository, place, keep, env)
    kept = KeptGit(repository=repository, place=place, keep=keep, env=git.environment(env), rules=rules)
    if place:
        ran = await _git(kept, "check-ignore", "--quiet", "--no-index", "--", f"./{place}", expect=(0, 1))
        if ran.code == 0:
            return None
    return kept


async def take(kept: KeptGit, task: str | None) -> tuple[str, list[Skipped]]:
    """The tree as it is now. With a task a ref holds it; without, git forgets it in its own time.

    Raises GitFailed when files kept changing under our hands, or git cannot write.
    """
    for tries in range(_TRIES):
        try:
            # A damaged index, or one whose objects the person's gc took away, is made anew.
            tree, skipped = await _take_once(kept, fresh=tries >= 2)
            break
        except GitFailed:
            if tries == _TRIES - 1:
                raise
    if task is not None:
        await git.run(
            kept.repository,
            *("update-ref", kept.refs(task) + tree, tree),
            env=kept.env,
            settings=[("core.logAllRefUpdates", "false")],
        )
    return tree, skipped


async def differences(kept: KeptGit, before: str, after: str) -> list[Difference]:
    ran = await _git(kept, "diff-tree", "-r", "-z", "--no-renames", "--raw", "--numstat", before, after)
    fields = iter(ran.stdout.split(b"\0")[:-1])
    entries: dict[bytes, tuple[Entry | None, Entry | None]] = {}
    lines: dict[bytes, tuple[int | None, int | None]] = {}
    for field in fields:
        if field.startswith(b":"):
            old_mode, new_mode, old, new, _ = field[1:].decode().split(" ")
            entries[next(fields)] = _entry(old_mode, old), _entry(new_mode, new)
        else:
            added, removed, path = field.split(b"\t", 2)
            lines[path] = (None, None) if added == b"-" else (int(added), int(removed))
    found = []
    for path, (old_entry, new_entry) in entries.items():
        more, fewer = lines.get(path, (None, None))
        found.append(Difference(path=path, before=old_entry, after=new_entry, added=more, removed=fewer))
    return found


async def diff(kept: KeptGit, before: str, after: str, paths: list[bytes] | None) -> bytes:
    show = ("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", before, after)
    if paths is None:
        return (await _git(kept, *show)).stdout
    parts = []
    for start in range(0, len(paths), 500):  # an argument list has a limit
        some = [os.fsdecode(path) for path in paths[start : start + 500]]
        parts.append((await _git(kept, *show, "--", *some)).stdout)
    return b"".join(parts)


async def entry(kept: KeptGit, tree: str, path: bytes) -> Entry | None:
    """What stands at a path of the tree; None if nothing does."""
    ran = await _git(kept, "ls-tree", "-z", tree, "--", os.fsdecode(path))
    found = ran.stdout.partition(b"\0")[0].partition(b"\t")
    mode, kind, oid = found[0].decode().split(" ") if found[2] == path else ("0", "", "")
    return Entry(int(mode, 8), oid) if kind in ("blob", "commit") else None


async def content(kept: KeptGit, oid: str, most: int) -> tuple[int, bytes | None]:
    """The size of a file of some tree, and its bytes; None where there are more than `most`."""
    size = int((await _git(kept, "cat-file", "-s", oid)).text)
    return size, (await _git(kept, "cat-file", "blob", oid)).stdout if size <= most else None


async def stage(kept: KeptGit, tree: str, paths: Iterable[bytes], into: Path) -> None:
    """Writes files of the tree below a folder of ours; the index for it lies beside that folder."""
    await asyncio.to_thread(into.mkdir, parents=True, exist_ok=True)
    index = into.with_name(f"{into.name}-index")
    await _git(kept, "read-tree", tree, work_tree=into, index=index)
    order = ("checkout-index", "--force", "-z", "--stdin")
    await _git(kept, *order, work_tree=into, index=index, stdin=_listed(paths))


async def ignored(kept: KeptGit, tree: str, rules: str, paths: list[bytes], room: Path) -> set[bytes]:
    """Which of the paths the rules of that tree ignore: the agent may have rewritten those of today."""
    names = (await _git(kept, "ls-tree", "-r", "-z", "--name-only", tree)).stdout.split(b"\0")
    own = [path for path in names if path.rpartition(b"/")[2] == b".gitignore"]
    await stage(kept, tree, own, room / kept.place)
    await asyncio.to_thread(copy_rules_above, kept.repository.top, kept.place, room)
    place = b"./" + os.fsencode(kept.place)
    order = ("check-ignore", "--no-index", "-z", "--stdin")
    asked = _listed(place + path for path in paths)
    ran = await _git(kept, *order, work_tree=room, rules=rules, stdin=asked, expect=(0, 1))
    return {path.removeprefix(place) for path in ran.stdout.split(b"\0") if path}


async def forget(kept: KeptGit, tasks: Iterable[str]) -> None:
    """Removes the refs of tasks; the objects go with the repository's next gc."""
    spaces = [kept.refs(task) for task in tasks]
    if not spaces:
        return
    ran = await git.run(kept.repository, "for-each-ref", "--format=%(refname)", *spaces, env=kept.env)
    orders = b"".join(b"delete %s\0\0" % ref for ref in ran.stdout.splitlines())
    if orders:
        await git.run(kept.repository, "update-ref", "--stdin", "-z", env=kept.env, stdin=orders)


async def _take_once(kept: KeptGit, *, fresh: bool) -> tuple[str, list[Skipped]]:
    # On a copy of the index: the lock file of a killed daemon is in nobody's way, and two may work at once.
    room = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="tmp-", dir=kept.keep))
    index = room / "index"
    try:
        if not fresh:
            await asyncio.to_thread(_copy_if_there, kept.index, index)
        found = await _sorted(kept, index)
        # Not `git add`: for a changed repository inside it runs `git status` in there, and with that
        # whatever that repository names as its fsmonitor. `update-index` starts no second git.
        update = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        if found.gone:
            order = ("update-index", "-z", "--force-remove", "--stdin")
            await _git(kept, *order, index=index, stdin=_listed(found.gone))
        if found.there:
            await _git(kept, *update, index=index, stdin=_listed(found.there), timeout=600)
        skipped = found.skipped
        for path in found.repositories:
            ran = await _git(kept, *update, index=index, stdin=_listed([path]), expect=None)
            if ran.code != 0:
                skipped.append(Skipped(path=_below(kept, path), why="empty repository"))
        tree = await _write_tree(kept, index)
        with contextlib.suppress(FileNotFoundError):  # nothing was ever put into it
            await asyncio.to_thread(os.replace, index, kept.index)
        return tree, skipped
    finally:
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)


class _Sorted(Struct):
    """The paths that may differ from the index, by what is to be done with them."""

    there: list[bytes]
    gone: list[bytes]
    repositories: list[bytes]
    skipped: list[Skipped]


async def _sorted(kept: KeptGit, index: Path) -> _Sorted:
    here = ["--", kept.place] if kept.place else []
    ran = await asyncio.gather(
        _git(kept, "diff-files", "-z", "--name-only", "--ignore-submodules=dirty", index=index),
        _git(kept, "ls-files", "-z", "--others", "--exclude-standard", *here, index=index),
        # What the person added in spite of the rules stands only in their index.
        git.run(
            kept.repository,
            *("ls-files", "-z", "--cached", "--ignored", "--exclude-standard", *here),
            env=kept.env,
            expect=None,
        ),
    )
    paths = {path for one in ran for path in one.stdout.split(b"\0") if path}
    return await asyncio.to_thread(_sort, kept, paths)


def _sort(kept: KeptGit, paths: Iterable[bytes]) -> _Sorted:
    result = _Sorted(there=[], gone=[], repositories=[], skipped=[])
    top = os.fsencode(kept.repository.top)
    never = tuple(os.fsencode(kept.place + ours) for ours in git.NOT_COMMITTED)
    folders = {b"": True}

    def reached(folder: bytes) -> bool:
        """Without a link on the way: what lies behind one is not part of the tree."""
        if folder not in folders:
            above = folder.rpartition(b"/")[0]
            folders[folder] = reached(above) and stat.S_ISDIR(_mode(os.path.join(top, folder)))
        return folders[folder]

    for listed in sorted(paths):
        path = listed.rstrip(b"/")  # a repository inside is listed with a slash
        whole = os.path.join(top, path)
        mode = _mode(whole) if reached(path.rpartition(b"/")[0]) else 0
        if listed.startswith(never):
            result.gone.append(path)
        elif stat.S_ISDIR(mode) and os.path.lexists(os.path.join(whole, b".git")):
            result.repositories.append(path)
        elif mode == 0 or stat.S_ISDIR(mode):
            result.gone.append(path)
        elif why := _unfit(whole, mode):
            result.gone.append(path)
            result.skipped.append(Skipped(path=_below(kept, path), why=why))
        else:
            result.there.append(path)
    return result


def _mode(path: bytes) -> int:
    """Zero where nothing can be seen."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _unfit(path: bytes, mode: int) -> Literal["large", "unreadable", "special"] | None:
    if stat.S_ISLNK(mode):
        return None
    if not stat.S_ISREG(mode):
        return "special"
    if not os.access(path, os.R_OK):
        return "unreadable"
    try:
        return "large" if os.lstat(path).st_size > LARGEST else None
    except OSError:
        return None  # gone in this instant; `update-index` takes it as removed


async def _write_tree(kept: KeptGit, index: Path) -> str:
    if kept.place:
        if not (await _git(kept, "ls-files", "-z", index=index)).stdout:
            return (await _git(kept, "mktree")).text  # a part that is not in the index is an error to git
        return (await _git(kept, "write-tree", f"--prefix={kept.place}", index=index)).text
    return (await _git(kept, "write-tree", index=index)).text


async def _git(
    kept: KeptGit,
    *args: str,
    index: Path | None = None,
    work_tree: Path | None = None,
    rules: str | None = None,
    stdin: bytes = b"",
    timeout: float = 120,  # noqa: ASYNC109  seconds; handed on to what ends the process
    expect: tuple[int, ...] | None = (0,),
) -> git.Ran:
    """git with our own directory: no configuration but ours is read."""
    top = work_tree or kept.repository.top
    env = dict(kept.env) | {
        "GIT_DIR": str(kept.directory),
        "GIT_WORK_TREE": str(top),
        "GIT_OBJECT_DIRECTORY": str(kept.repository.common / "objects"),
        "GIT_INDEX_FILE": str(index or kept.index),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "",
        # `check-ignore` refuses to take paths as they are; it gets them with "./" before, which is no magic.
        "GIT_LITERAL_PATHSPECS": "0" if args[0] == "check-ignore" else "1",
    }
    excludes = str(kept.directory / "rules" / (rules or kept.rules))
    env = git.with_settings(env, [("core.excludesFile", excludes)])
    return await git.call(list(args), cwd=top, env=env, stdin=stdin, timeout=timeout, expect=expect)


def _copy_if_there(source: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)  # with its time: git tells by it which entries it must look at twice


def _entry(mode: str, oid: str) -> Entry | None:
    return Entry(int(mode, 8), oid) if int(mode, 8) else None


def _listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _below(kept: KeptGit, path: bytes) -> str:
    return name(path.removeprefix(os.fsencode(kept.place)))


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
