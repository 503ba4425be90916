"""The person's git, run where nobody can answer and where the repository cannot be trusted."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from promptside_daemon.world import git
from promptside_daemon.world.git import GitFailed, Repository


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = A Person\n\temail = person@example.org\n")
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


@pytest.fixture
def project(tmp_path: Path, env: dict[str, str]) -> Path:
    top = tmp_path / "pro ject"
    top.mkdir()
    plain(top, env, "init", "-q", "-b", "main")
    return top


def plain(cwd: Path, env: dict[str, str], *args: str) -> str:
    return subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout


def found(directory: Path) -> Repository:
    repository = asyncio.run(git.find(directory))
    assert repository is not None
    return repository


def canary(folder: Path, name: str) -> str:
    """A program that leaves a file when it is run, and then does what a filter would."""
    program = folder / name
    program.write_text(f'#!/bin/sh\ntouch "{folder}/ran-{name}"\ncat\n')
    program.chmod(0o755)
    return str(program)


def ran(folder: Path) -> list[str]:
    return sorted(path.name.removeprefix("ran-") for path in folder.glob("ran-*"))


def test_head_and_branch_before_and_after_the_first_commit(project: Path, env: dict[str, str]) -> None:
    repository = found(project)
    assert asyncio.run(git.head(repository, env)) is None
    assert asyncio.run(git.branch(repository, env)) == "main"
    plain(project, env, "commit", "-q", "--allow-empty", "-m", "x")
    commit = plain(project, env, "rev-parse", "HEAD").strip()
    assert asyncio.run(git.head(repository, env)) == commit
    plain(project, env, "checkout", "-q", "--detach")
    assert asyncio.run(git.branch(repository, env)) is None


def test_top_level_from_below_from_a_worktree_and_from_nowhere(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    below = project / "a" / "b"
    below.mkdir(parents=True)
    assert asyncio.run(git.top_level(below)) == project
    assert asyncio.run(git.top_level(tmp_path)) is None
    plain(project, env, "commit", "-q", "--allow-empty", "-m", "x")
    plain(project, env, "worktree", "add", "-q", str(tmp_path / "linked"))
    linked = found(tmp_path / "linked")
    assert linked.top == tmp_path / "linked"
    assert linked.common == project / ".git"
    assert linked.directory != linked.common
    assert asyncio.run(git.branch(linked, env)) == "linked"


def test_the_repository_does_not_say_where_its_top_is(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    plain(project, env, "config", "core.worktree", str(tmp_path))
    assert asyncio.run(git.top_level(project)) == project
    (project / "new").touch()
    status = asyncio.run(git.run(found(project), "status", "--porcelain", env=env))
    assert status.text == "?? new"


@pytest.mark.parametrize("where", ["top", "part"])
def test_da_11_documents_and_worktrees_are_kept_out_once(
    project: Path, env: dict[str, str], where: str, tmp_path: Path
) -> None:
    """DA-11"""
    holder = project if where == "top" else project / "a part [1]"
    for name in ("tasks", "worktrees"):
        (holder / ".promptside" / name).mkdir(parents=True)
        (holder / ".promptside" / name / "file").touch()
    (holder / ".promptside" / "config.toml").touch()
    exclude = project / ".git" / "info" / "exclude"
    exclude.write_bytes(b"mine")
    repository = found(holder)
    assert asyncio.run(git.keep_out(repository, holder)) is True
    once = exclude.read_bytes()
    assert once.startswith(b"mine\n")
    assert asyncio.run(git.keep_out(repository, holder)) is False
    assert exclude.read_bytes() == once
    untracked = plain(project, env, "status", "--porcelain", "-uall")
    assert "config.toml" in untracked
    assert "file" not in untracked


def test_da_11_in_a_linked_worktree_and_without_an_info_folder(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    """DA-11"""
    plain(project, env, "commit", "-q", "--allow-empty", "-m", "x")
    plain(project, env, "worktree", "add", "-q", str(tmp_path / "linked"))
    shutil.rmtree(project / ".git" / "info")
    linked = tmp_path / "linked"
    assert asyncio.run(git.keep_out(found(linked), linked)) is True
    (linked / ".promptside" / "tasks").mkdir(parents=True)
    (linked / ".promptside" / "tasks" / "file").touch()
    assert plain(linked, env, "status", "--porcelain", "-uall") == ""


def test_version_and_what_an_old_one_costs(env: dict[str, str], tmp_path: Path) -> None:
    here = asyncio.run(git.version(env))
    assert here is not None
    assert git.cost_of(here) is None
    assert git.cost_of((2, 38, 0)) is None
    old = git.cost_of((2, 37, 9))
    assert old is not None
    assert "2.37.9 is here" in old
    assert asyncio.run(git.version(env | {"PATH": str(tmp_path)})) is None
    missing = git.cost_of(None)
    assert missing is not None
    assert "not on the PATH" in missing


def trapped(project: Path, env: dict[str, str], traps: Path) -> list[str]:
    """A repository whose settings, in the file and in one it includes, name a program wherever they can."""
    traps.mkdir()
    (project / "file.txt").write_text("one\n")
    (project / "file.bin").write_text("one\n")
    inner = project / "inner"
    inner.mkdir()
    plain(inner, env, "init", "-q")
    (inner / "file").write_text("one\n")
    (inner / ".gitattributes").write_text("* filter=inner\n")
    plain(inner, env, "add", ".")
    plain(inner, env, "commit", "-q", "-m", "x")
    plain(inner, env, "config", "filter.inner.clean", canary(traps, "inner-filter"))
    plain(project, env, "config", "submodule.inner.ignore", "none")
    (project / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = x\n')
    plain(project, env, "add", ".")
    plain(project, env, "commit", "-q", "-m", "x")
    names = [
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "sequence.editor",
        "credential.helper", "credential.https://example.org.helper", "diff.external", "diff.evil.textconv",
        "diff.evil.command", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "gpg.program",
        "merge.evil.driver", "remote.origin.uploadpack", "core.alternateRefsCommand", "pager.log",
        "pager.diff", "hook.evil.command", "filter.a=b.clean", "trailer.evil.cmd",
    ]  # fmt: skip
    for name in names:
        target = [] if name != "filter.evil.clean" else ["--file", ".git/included"]
        program = canary(traps, name.replace("/", "-"))
        plain(project, env, "config", *target, name, program)
    plain(project, env, "config", "alias.status", f"!{canary(traps, 'alias')}")
    plain(project, env, "config", "include.path", "included")
    plain(project, env, "config", "filter.evil.required", "true")
    plain(project, env, "config", "hook.evil.event", "reference-transaction")
    plain(project, env, "config", "commit.gpgSign", "true")
    plain(project, env, "config", "log.showSignature", "true")
    for hook in ("reference-transaction", "post-index-change", "pre-commit", "post-checkout", "post-commit"):
        path = Path(canary(traps, f"hook-{hook}"))
        shutil.copy(path, project / ".git" / "hooks" / hook)
    (project / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    for changed in (project / "file.txt", project / "file.bin", inner / "file"):
        changed.write_text("two\n")
    return names


def test_the_traps_work(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    """Else the next tests would show nothing."""
    traps = tmp_path / "traps"
    trapped(project, env, traps)
    tame = ["-c", "filter.evil.clean=", "-c", "filter.evil.process=", "-c", "filter.evil.required=false"]
    subprocess.run(["git", *tame, "status"], cwd=project, env=env, capture_output=True, check=False)
    subprocess.run(["git", "status"], cwd=project, env=env, capture_output=True, check=False)
    subprocess.run(
        ["git", "update-ref", "refs/x/y", "HEAD"], cwd=project, env=env, capture_output=True, check=False
    )
    seen = ran(traps)
    assert {"core.fsmonitor", "filter.evil.process", "hook-reference-transaction", "inner-filter"} <= set(
        seen
    )


@pytest.mark.parametrize(
    "args",
    [
        ("status", "--porcelain"),
        ("diff",),
        ("diff", "HEAD"),
        ("log", "-p"),
        ("show",),
        ("diff-index", "HEAD"),
        ("diff-files",),
        ("update-index", "--add", "file.txt"),
        ("update-index", "-q", "--refresh"),
        ("ls-files", "-m", "-o"),
        ("switch", "-c", "another"),
        ("reset", "--hard"),
        ("update-ref", "refs/promptside/x", "HEAD"),
        ("checkout", "--", "file.txt"),
        ("checkout", "-q", "-b", "other"),
        ("checkout", "--detach"),
        ("worktree", "add", "../elsewhere"),
        ("blame", "file.txt"),
        ("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", "y"),
        ("commit", "-q", "--allow-empty", "--amend", "--no-edit", "--no-gpg-sign"),
        ("ls-files", "-c", "-i", "--exclude-standard"),
    ],
    ids=" ".join,
)
def test_no_program_of_a_repository_is_run(
    project: Path, env: dict[str, str], tmp_path: Path, args: tuple[str, ...]
) -> None:
    traps = tmp_path / "traps"
    trapped(project, env, traps)
    asyncio.run(git.run(found(project), *args, env=env))
    assert ran(traps) == []


@pytest.mark.parametrize("args", [("add", "-A"), ("commit", "-a", "-m", "x"), ("stash",), ("rm", "x")])
def test_verbs_that_look_into_repositories_inside_are_refused(
    project: Path, env: dict[str, str], args: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="inside"):
        asyncio.run(git.run(found(project), *args, env=env))


def test_network_uses_neither_the_ssh_nor_the_helpers_nor_the_upload_pack_of_a_repository(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    traps = tmp_path / "traps"
    trapped(project, env, traps)
    other = tmp_path / "other.git"
    plain(tmp_path, env, "clone", "-q", "--bare", str(project), str(other))
    for hook in (other / "hooks").iterdir():
        hook.unlink()
    plain(project, env, "config", "remote.origin.url", str(other))
    with pytest.raises(GitFailed, match=r"remote\.origin\.uploadpack"):
        asyncio.run(git.run(found(project), "fetch", "-q", "origin", env=env, network=True))
    plain(project, env, "config", "--unset", "remote.origin.uploadpack")
    asyncio.run(git.run(found(project), "fetch", "-q", "origin", env=env, network=True))
    # A stand-in for the person's own ssh shows that it is the one that is asked.
    own = tmp_path / "own-ssh"
    own.write_text(f"#!/bin/sh\ntouch '{tmp_path}/own-ssh-ran'\nexit 1\n")
    own.chmod(0o755)
    over_ssh = ["fetch", "-q", "ssh://nobody@localhost/x"]
    with pytest.raises(GitFailed):
        asyncio.run(git.run(found(project), *over_ssh, env=env | {"GIT_SSH": str(own)}, network=True))
    assert (tmp_path / "own-ssh-ran").exists()
    assert ran(traps) == []


def test_no_transport_without_network(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    program = canary(tmp_path, "ext")
    plain(project, env, "config", "protocol.ext.allow", "always")
    plain(project, env, "config", "remote.origin.url", f"ext::{program}")
    for network in (False, True):  # `ext` is a program by another name, and never allowed
        with pytest.raises(GitFailed, match="not allowed"):
            asyncio.run(git.run(found(project), "fetch", "origin", env=env, network=network))
    with pytest.raises(GitFailed, match="not allowed"):
        asyncio.run(git.run(found(project), "ls-remote", str(project), env=env))
    assert ran(tmp_path) == []


def test_what_the_person_set_holds(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    """A repository may repeat or change a name: the person's program of that name is the one that runs."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    plain(project, env, "config", "--global", "filter.lfs.clean", canary(mine, "clean"))
    plain(project, env, "config", "--global", "filter.lfs.required", "true")
    plain(project, env, "config", "filter.lfs.clean", canary(theirs, "clean"))
    (project / ".gitattributes").write_text("*.big filter=lfs\n")
    (project / "a.big").write_text("content")
    asyncio.run(git.run(found(project), "update-index", "--add", "a.big", env=env))
    assert ran(mine) == ["clean"]
    assert ran(theirs) == []


def test_credential_helpers_are_the_persons_alone(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    plain(project, env, "config", "--global", "credential.helper", canary(mine, "helper"))
    plain(project, env, "config", "credential.helper", canary(theirs, "helper"))
    plain(project, env, "config", "credential.https://example.org.helper", canary(theirs, "one-helper"))
    question = b"protocol=https\nhost=example.org\n\n"
    asyncio.run(git.run(found(project), "credential", "fill", env=env, stdin=question, expect=None))
    assert ran(mine) == ["helper"]
    assert ran(theirs) == []


def test_nothing_asks_at_a_terminal(project: Path, env: dict[str, str], tmp_path: Path) -> None:
    asking = env | {
        "GIT_ASKPASS": canary(tmp_path, "askpass"),
        "SSH_ASKPASS": canary(tmp_path, "ssh-askpass"),
    }
    with pytest.raises(GitFailed, match="terminal prompts disabled"):
        asyncio.run(
            git.run(found(project), "credential", "fill", env=asking, stdin=b"protocol=https\nhost=h\n\n")
        )
    assert ran(tmp_path) == []
    assert git.environment({})["GIT_SSH_COMMAND"] == "ssh -o BatchMode=yes"
    assert git.environment({"GIT_SSH": "/a b/ssh"})["GIT_SSH_COMMAND"] == "'/a b/ssh'"
    assert git.environment({"GIT_SSH_COMMAND": "my ssh"})["GIT_SSH_COMMAND"] == "my ssh"


def test_a_daemon_started_from_a_hook_is_not_led_astray(
    project: Path, env: dict[str, str], tmp_path: Path
) -> None:
    astray = env | {"GIT_DIR": str(tmp_path), "GIT_INDEX_FILE": str(tmp_path / "x"), "GIT_CONFIG_COUNT": "9"}
    assert asyncio.run(git.branch(found(project), astray)) == "main"


@pytest.fixture
def slow(tmp_path: Path, env: dict[str, str]) -> dict[str, str]:
    """A git that reports its process and its child's through a FIFO, and never ends."""
    folder = tmp_path / "slow"
    folder.mkdir()
    os.mkfifo(folder / "pids")
    script = folder / "git"
    script.write_text(f'#!/bin/sh\nsleep 1000 &\necho "$$ $!" > "{folder}/pids"\nwait\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return env | {"PATH": f"{folder}:{env['PATH']}", "PIDS": str(folder / "pids")}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_git_that_hangs_is_ended_with_its_children(slow: dict[str, str], how: str) -> None:
    async def main() -> list[int]:
        limit = 5.0 if how == "timeout" else 60.0  # in which it has to start, on a busy machine
        task = asyncio.create_task(git.call(["fetch"], cwd=Path("/"), env=slow, timeout=limit))
        pids = (await asyncio.to_thread(Path(slow["PIDS"]).read_text)).split()
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(GitFailed, match="did not end within 5 s"):
                await task
        return [int(pid) for pid in pids]

    pids = asyncio.run(main())
    gone = threading.Event()
    while any(alive(pid) for pid in pids):  # killed already; the system may still be at it
        gone.wait(0.01)
