"""The one place that runs the person's git: never through a shell, never at a terminal.

The person's own settings hold; no program that a repository's settings name is ever started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from .gitguards import guards_against

OLDEST = (2, 38)
NOT_COMMITTED = (
    ".promptside/tasks/",
    ".promptside/worktrees/",
    ".promptside/drafts/",
    ".promptside/DESK.md",
)


class Repository(Struct, frozen=True, kw_only=True):
    """Where a checkout lies. In a linked worktree or a submodule `directory` is outside of `top`."""

    top: Path
    directory: Path
    """The git directory of this checkout: HEAD, index."""
    common: Path
    """The git directory that all checkouts share: objects, refs, config, info/exclude."""

    def place_of(self, project: Path) -> str:
        """Where the project lies below the top, with a slash at the end; empty at the top."""
        place = project.resolve().relative_to(self.top)
        return f"{place.as_posix()}/" if place.parts else ""


class Ran(Struct, frozen=True, kw_only=True):
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace").strip()

    @property
    def complaint(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()


class GitFailed(Exception):
    """git is not there, took too long, or ended with a status that was not expected."""


async def version(env: Mapping[str, str] | None = None) -> tuple[int, ...] | None:
    """The version as numbers; None where git is not on the PATH or does not answer."""
    try:
        ran = await call(["version"], cwd=Path("/"), env=environment(env))
    except GitFailed:
        return None
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", ran.text)
    return tuple(int(part) for part in found.groups("0")) if found else None


def cost_of(found: tuple[int, ...] | None) -> str | None:
    """What a missing or old git costs, as a sentence for the person; None where nothing is lost."""
    if found is not None and found >= OLDEST:
        return None
    wanted = ".".join(map(str, OLDEST))
    here = "it is not on the PATH" if found is None else f"{'.'.join(map(str, found))} is here"
    return (
        f"git {wanted} or newer is needed; {here}. Until then checkpoints are copies of the files "
        "(large files and the usual folders of dependencies are left out), and nothing is committed, "
        "branched or merged. Everything else works."
    )


async def find(directory: Path) -> Repository | None:
    """The checkout that holds the directory, found as git finds it, but from the files alone:
    asking git would believe `core.worktree` of a repository that nobody trusts yet."""
    return await asyncio.to_thread(_find, directory)


async def top_level(directory: Path) -> Path | None:
    repository = await find(directory)
    return repository.top if repository else None


async def head(repository: Repository, env: Mapping[str, str] | None = None) -> str | None:
    """The commit that is checked out; None before the first commit."""
    ran = await run(repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", env=env, expect=(0, 1))
    return ran.text or None


async def branch(repository: Repository, env: Mapping[str, str] | None = None) -> str | None:
    """The short name of the branch, also before its first commit; None where HEAD is detached."""
    ran = await run(repository, "symbolic-ref", "--quiet", "--short", "HEAD", env=env, expect=(0, 1))
    return ran.text or None


async def keep_out(repository: Repository, project: Path) -> bool:
    """Names our task documents and worktrees in `info/exclude`, once (DA-11). True if it wrote.

    Raises OSError where the file cannot be read or written.
    """
    return await asyncio.to_thread(_keep_out, repository, project)


async def run(
    repository: Repository,
    *args: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,  # noqa: ASYNC109  seconds; the process has to be ended, not only the wait
    network: bool = False,
    settings: Iterable[tuple[str, str]] = (),
    expect: tuple[int, ...] | None = (0,),
) -> Ran:
    """Runs git at the top of the person's checkout. `expect=None` takes every status.

    Without `network` no transport is allowed at all, so that a missing object of a partial clone is an
    error and not a connection. Paths are taken as they are, without pathspec magic. Hooks never run. Ours
    win over `settings`.
    """
    base = environment(env)
    base["GIT_WORK_TREE"] = str(repository.top)  # over `core.worktree`
    base["GIT_ALLOW_PROTOCOL"] = "file:http:https:ssh" if network else ""
    base["GIT_NO_LAZY_FETCH"] = "0" if network else "1"
    listed = await call(["config", "--list", "-z", "--show-scope"], cwd=repository.top, env=base)
    guards, far = guards_against(listed.stdout)
    if network and far:
        raise GitFailed(
            f"{repository.top} names a program of its own for talking to a remote ({far[0]}), which is not "
            "run: remove the setting, or put it into your own git settings"
        )
    return await call(
        _tamed(*args),
        cwd=repository.top,
        env=with_settings(base, [*settings, *guards]),
        stdin=stdin,
        timeout=timeout,
        expect=expect,
    )


def patterns(place: str) -> list[str]:
    """Ignore rules, as they stand at the top, for what a project at this place never commits."""
    quoted = re.sub(r"([\\*?\[ ])", r"\\\1", place)
    return [f"/{quoted}{name}" for name in NOT_COMMITTED]


def environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every git of ours gets: the person's environment without what points git elsewhere (a daemon
    started from a hook has GIT_DIR set), and with every way to ask at a terminal or in a window closed."""
    given = os.environ if env is None else env
    base = {key: value for key, value in given.items() if not key.startswith("GIT_") or key in _PERSONAL}
    # The person's GIT_SSH counts less than `core.sshCommand`, GIT_SSH_COMMAND more: so it is always set.
    ssh = base.get("GIT_SSH_COMMAND") or shlex.quote(base.get("GIT_SSH", "ssh"))
    if "GIT_SSH_COMMAND" not in base and "GIT_SSH" not in base:
        ssh = "ssh -o BatchMode=yes"
    return base | {
        "GIT_SSH_COMMAND": ssh,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_PAGER": "cat",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "LC_ALL": "C",
    }


def with_settings(env: Mapping[str, str], settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The environment with git settings that win over every file. Unlike `-c` this takes any name."""
    numbered = dict(env)
    count = 0
    for key, value in settings:
        numbered[f"GIT_CONFIG_KEY_{count}"] = key
        numbered[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    numbered["GIT_CONFIG_COUNT"] = str(count)
    return numbered


async def call(
    args: list[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float = 60,  # noqa: ASYNC109  seconds; the process has to be ended, not only the wait
    expect: tuple[int, ...] | None = (0,),
) -> Ran:
    """Runs git with exactly this environment. A session of its own: it has no terminal to open, and is
    ended with all it started when the time is over or the caller gives up."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            "git",
            "--no-pager",
            *args,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except OSError as error:
        raise GitFailed(f"git could not be started in {cwd}: {error.strerror}") from error
    except asyncio.CancelledError:
        # asyncio would end the process that it has just started, and none of what that has started.
        with contextlib.suppress(OSError):
            await _end(await starting)
        raise
    try:
        async with asyncio.timeout(timeout):
            stdout, stderr = await process.communicate(stdin or None)
    except TimeoutError as error:
        raise GitFailed(f"git {args[0]} did not end within {timeout:g} s in {cwd}") from error
    finally:
        await _end(process)
    ran = Ran(code=process.returncode or 0, stdout=stdout, stderr=stderr)
    if expect is not None and ran.code not in expect:
        raise GitFailed(f"git {args[0]} ended with status {ran.code} in {cwd}: {ran.complaint}")
    return ran


# What a person may say about git through the environment.
_PERSONAL = frozenset({
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
})  # fmt: skip

_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv")
# For a repository inside, a submodule or not, these start a `git status` in there, under that repository's
# settings: the filters that those name are in no list of ours. Looking at its commit alone starts nothing.
_COMMIT_ALONE = ("--ignore-submodules=dirty",)
_TAMED = {
    "diff": _NO_PROGRAMS + _COMMIT_ALONE,
    "diff-files": _NO_PROGRAMS + _COMMIT_ALONE,
    "diff-index": _NO_PROGRAMS + _COMMIT_ALONE,
    "diff-tree": _NO_PROGRAMS,
    "format-patch": _NO_PROGRAMS,
    "log": _NO_PROGRAMS,
    "show": _NO_PROGRAMS,
    "status": _COMMIT_ALONE,
    "checkout": ("--quiet",),  # else it shows what is changed, and looks inside for it
    "switch": ("--quiet",),
}
_NEVER = frozenset({"add", "describe", "rm", "stash", "submodule"})


def _tamed(verb: str, *rest: str) -> list[str]:
    """The arguments with what keeps the verb from starting programs, where it has an option for that."""
    if verb in _NEVER or (verb == "commit" and not {"-a", "--all"}.isdisjoint(rest)):
        raise ValueError(f"git {verb} looks into repositories inside; take update-index, and commit from it")
    return [verb, *_TAMED.get(verb, ()), *rest]


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _find(directory: Path) -> Repository | None:
    start = directory.resolve()
    for top in (start, *start.parents):
        entry = top / ".git"
        try:
            if entry.is_dir():
                git_directory = entry
            elif entry.is_file():
                with entry.open("rb") as file:
                    text = os.fsdecode(file.read(8192))
                if not text.startswith("gitdir: "):
                    continue
                git_directory = (top / text.removeprefix("gitdir: ").rstrip("\r\n")).resolve()
            else:
                continue
            common = git_directory
            with contextlib.suppress(FileNotFoundError):
                shared = os.fsdecode((git_directory / "commondir").read_bytes()).rstrip("\r\n")
                common = (git_directory / shared).resolve()
            if (git_directory / "HEAD").is_file() and (common / "objects").is_dir():
                return Repository(top=top, directory=git_directory, common=common)
        except OSError:
            continue
    return None


def _keep_out(repository: Repository, project: Path) -> bool:
    wanted = [os.fsencode(pattern) for pattern in patterns(repository.place_of(project))]
    path = repository.common / "info" / "exclude"
    try:
        present = path.read_bytes()
    except FileNotFoundError:
        present = b""
    missing = [line for line in wanted if line not in present.splitlines()]
    if not missing:
        return False
    path.parent.mkdir(exist_ok=True)
    lead = b"\n" if present and not present.endswith(b"\n") else b""
    with path.open("ab") as file:
        file.write(lead + b"".join(line + b"\n" for line in missing))
    return True
