"""GA-12: what an attempt changed can be undone exactly, whatever the project is and whoever made it."""

# ruff: noqa: PTH101, PTH103, PTH108, PTH114, PTH115, PTH118, PTH120, PTH123, PTH208, PTH211
# Names that are no text exist only as bytes, which pathlib does not take.

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from promptside_daemon.world import checkpoint, git, keptcopies, keptgit
from promptside_daemon.world.checkpoint import (
    Change,
    Checkpoint,
    CheckpointFailed,
    Left,
    Restored,
)
from promptside_daemon.world.tree import Skipped

KINDS = ["git", "hash"]


class Place:
    """A project, the folder its checkpoints are kept in, and a person's environment."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.keep = folder / "keep"
        self.project = folder / "pro ject"
        self.project.mkdir()
        home = folder / "home"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\n\tname = A Person\n\temail = person@example.org\n")
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        if kind == "git":
            self.git("init", "-q", "-b", "main")

    def git(self, *args: str, cwd: Path | None = None) -> str:
        ran = subprocess.run(
            ["git", *args], cwd=cwd or self.project, env=self.env, check=True, capture_output=True
        )
        return os.fsdecode(ran.stdout)

    def write(self, path: str | bytes, content: str | bytes = "", *, program: bool = False) -> None:
        whole = os.path.join(os.fsencode(self.project), os.fsencode(path))
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(whole, 0o755 if program else 0o644)

    def take(self, task: str = "1") -> Checkpoint:
        taken = asyncio.run(checkpoint.take(self.project, self.keep, task, env=self.env))
        assert taken.kind == self.kind
        return taken

    def changed(self, before: Checkpoint, after: Checkpoint | None = None) -> dict[str, str]:
        return {change.path: change.kind for change in self.changes(before, after)}

    def changes(self, before: Checkpoint, after: Checkpoint | None = None) -> list[Change]:
        return asyncio.run(checkpoint.changed(self.project, self.keep, before, after, env=self.env))

    def diff(
        self, before: Checkpoint, after: Checkpoint | None = None, paths: list[str] | None = None
    ) -> bytes:
        return asyncio.run(checkpoint.diff(self.project, self.keep, before, after, paths=paths, env=self.env))

    def restore(self, before: Checkpoint, expected: Checkpoint, paths: list[str] | None = None) -> Restored:
        return asyncio.run(
            checkpoint.restore(self.project, self.keep, before, expected=expected, paths=paths, env=self.env)
        )

    def prune(self, *tasks: str) -> None:
        asyncio.run(checkpoint.prune(self.project, self.keep, tasks, env=self.env))

    def walk(self) -> dict[bytes, tuple[int, str]]:
        """Every file and link of the project, by what it holds and whether it may be run."""
        seen: dict[bytes, tuple[int, str]] = {}
        root = os.fsencode(self.project)
        for folder, folders, files in os.walk(root):
            if folder == root and b".git" in folders:
                folders.remove(b".git")
            links = [item for item in folders if os.path.islink(os.path.join(folder, item))]
            for item in files + links:
                whole = os.path.join(folder, item)
                status = os.lstat(whole)
                if stat.S_ISLNK(status.st_mode):
                    content = os.readlink(whole)
                elif stat.S_ISREG(status.st_mode):
                    content = Path(os.fsdecode(whole)).read_bytes()
                else:
                    content = b"special"
                kind = stat.S_IFMT(status.st_mode) | (status.st_mode & 0o100)
                seen[os.path.relpath(whole, root)] = (kind, hashlib.sha256(content).hexdigest())
        return seen


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


@pytest.fixture
def repo(tmp_path: Path) -> Place:
    return Place(tmp_path, "git")


@pytest.fixture
def bare(tmp_path: Path) -> Place:
    return Place(tmp_path, "hash")


def left(restored: Restored) -> dict[str, str]:
    return {item.path: item.why for item in restored.left}


AWKWARD = [
    b"-rf", b"--help", b"new\nline", b"tab\there", b" space ", b'quo"te', b"back\\slash", b"\xff\xfe",
    b"a\xffb/c\xff", "größe/日本.txt".encode(),
    b":(top)magic", b"*?[x]", b"#hash", b"!bang", b"git~1", b".gitattributes", b"a=b",
]  # fmt: skip


def test_ga_12_round_trip(place: Place) -> None:
    """GA-12: everything that can happen to a file, and to every kind of name."""
    for path in AWKWARD:
        place.write(path, b"before " + path)
    place.write("binary", bytes(range(256)) * 10)
    place.write("crlf.txt", b"one\r\ntwo\r\n")
    place.write("empty")
    place.write("tool", "#!/bin/sh\n", program=True)
    place.write("plain", "text\n")
    place.write("was-file", "file\n")
    place.write("was-folder/deep/one", "1\n")
    place.write("was-folder/two", "2\n")
    place.write("was-link-target/x", "x\n")
    place.write("gone/with/folder", "bye\n")
    os.symlink("was-link-target", place.project / "link-to-folder")
    os.symlink("nowhere", place.project / "dangling")
    os.symlink(b"\xff", os.fsencode(place.project) + b"/link-to-bytes")
    place.write("folder-then-link/inner", "inner\n")
    before_walk, before = place.walk(), place.take()

    for path in AWKWARD[::2]:
        place.write(path, b"after " + path)
    for path in AWKWARD[1::2]:
        os.unlink(os.path.join(os.fsencode(place.project), path))
    place.write(b"new-\xfe\nname/-x", "new\n")
    place.write("binary", bytes(reversed(range(256))))
    place.write("crlf.txt", b"one\ntwo\n")
    place.write("empty", "no more\n")
    (place.project / "tool").chmod(0o644)
    (place.project / "plain").chmod(0o755)
    (place.project / "was-file").unlink()
    place.write("was-file/now/a/folder", "x\n")
    shutil.rmtree(place.project / "was-folder")
    place.write("was-folder", "now a file\n")
    shutil.rmtree(place.project / "gone")
    (place.project / "link-to-folder").unlink()
    place.write("link-to-folder/x", "a folder now\n")
    (place.project / "dangling").unlink()
    os.symlink("plain", place.project / "dangling")
    shutil.rmtree(place.project / "folder-then-link")
    os.symlink("was-link-target", place.project / "folder-then-link")
    after_walk, after = place.walk(), place.take()

    changed = place.changed(before, after)
    assert changed["tool"] == changed["plain"] == changed["binary"] == changed["dangling"] == "modified"
    assert changed["was-file"] == "deleted"
    assert changed["was-file/now/a/folder"] == changed["was-folder"] == "added"
    assert changed["link-to-folder"] == "deleted"
    assert changed["new-\\xfe\nname/-x"] == "added"
    assert changed["\\xff\\xfe"] == "deleted"
    assert changed["a\\xffb/c\\xff"] == "modified"
    assert place.changed(before) == changed

    restored = place.restore(before, after)
    assert restored.left == ()
    assert set(restored.done) == set(changed)
    assert place.walk() == before_walk
    assert not (place.project / "was-file").is_dir()
    assert place.take().id == before.id
    assert place.restore(after, before).left == ()
    assert place.walk() == after_walk


def test_file_and_link_exchange(place: Place) -> None:
    place.write("one", "file\n")
    os.symlink("one", place.project / "two")
    walk, before = place.walk(), place.take()
    (place.project / "one").unlink()
    os.symlink("two", place.project / "one")
    (place.project / "two").unlink()
    place.write("two", "file now\n")
    after = place.take()
    assert place.changed(before, after) == {"one": "type", "two": "type"}
    assert place.restore(before, after).left == ()
    assert place.walk() == walk


def test_lines_are_counted_and_shown(place: Place) -> None:
    place.write("text", "a\nb\nc\n")
    place.write("no-end", "a")
    place.write("binary", b"\0\1\2")
    place.write("removed", "x\ny\n")
    place.write("ü", "x\n")
    before = place.take()
    place.write("text", "a\nB\nc\nd\n")
    place.write("no-end", "b")
    place.write("binary", b"\0\1\3")
    place.write("added", "1\n2\n3\n")
    place.write("ü", "y\n")
    (place.project / "removed").unlink()
    after = place.take()
    lines = {
        change.path: (change.added_lines, change.removed_lines) for change in place.changes(before, after)
    }
    assert lines == {
        "text": (2, 1), "no-end": (1, 1), "binary": (None, None),
        "added": (3, 0), "removed": (0, 2), "ü": (1, 1),
    }  # fmt: skip
    whole = place.diff(before, after)
    assert b"-b\n+B\n c\n+d\n" in whole
    assert b"\\ No newline at end of file\n" in whole
    assert b'"b/\\303\\274"' in whole
    assert b"deleted file mode 100644" in whole
    one = place.diff(before, after, ["text", "no such"])
    assert b"text" in one
    assert b"no-end" not in one
    assert place.diff(before, after, []) == b""
    # What is shown is what git makes of it.
    place.restore(before, after)
    subprocess.run(
        ["git", "apply", "--exclude=binary"], cwd=place.project, env=place.env, input=whole, check=True
    )
    assert (place.project / "text").read_text() == "a\nB\nc\nd\n"
    assert (place.project / "no-end").read_text() == "b"
    assert not (place.project / "removed").exists()


def test_ga_12_what_someone_else_changed_is_refused(place: Place) -> None:
    """GA-12, ST-16: undo does not write over work that is not the agent's."""
    for path in ("agent", "both", "also", "mode", "deleted-by-both", "untouched"):
        place.write(path, "before\n")
    before = place.take()
    for path in ("agent", "both", "also", "mode"):
        place.write(path, "agent\n")
    place.write("new", "agent\n")
    place.write("new-too", "agent\n")
    place.write("new-and-gone", "agent\n")
    (place.project / "deleted-by-both").unlink()
    after = place.take()
    place.write("both", "person\n")
    (place.project / "also").unlink()
    (place.project / "mode").chmod(0o755)
    place.write("new", "person\n")
    (place.project / "new-and-gone").unlink()
    place.write("deleted-by-both", "person\n")
    place.write("untouched", "person\n")
    place.write("persons-own", "person\n")
    restored = place.restore(before, after)
    changed = dict.fromkeys(("both", "also", "mode", "new", "deleted-by-both"), "changed since")
    assert left(restored) == changed
    assert set(restored.done) == {"agent", "new-too", "new-and-gone"}
    for path in ("both", "new", "deleted-by-both", "untouched", "persons-own"):
        assert (place.project / path).read_text() == "person\n"
    assert (place.project / "agent").read_text() == "before\n"
    assert not (place.project / "new-too").exists()


def test_ed_12_one_by_one(place: Place) -> None:
    """ED-12"""
    place.write("one", "before\n")
    place.write("two", "before\n")
    before = place.take()
    place.write("one", "after\n")
    place.write("two", "after\n")
    after = place.take()
    assert place.restore(before, after, ["two"]) == Restored(done=("two",), left=())
    assert (place.project / "one").read_text() == "after\n"
    assert (place.project / "two").read_text() == "before\n"
    assert place.restore(before, after) == Restored(done=("one", "two"), left=())


def test_rights_other_than_running_stay(place: Place) -> None:
    place.write("secret", "before\n")
    (place.project / "secret").chmod(0o600)
    before = place.take()
    (place.project / "secret").write_text("after\n")
    place.restore(before, place.take())
    assert stat.S_IMODE((place.project / "secret").stat().st_mode) == 0o600


def test_nothing_is_written_through_a_link(place: Place, tmp_path: Path) -> None:
    """A folder that became a link to elsewhere, after the attempt, is somebody's; it leads nowhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.write("folder/file", "before\n")
    place.write("folder/other", "before\n")
    before = place.take()
    place.write("folder/file", "after\n")
    (place.project / "folder" / "other").unlink()
    place.write("folder/new", "after\n")
    after = place.take()
    (place.project / "folder").rename(tmp_path / "moved")
    os.symlink(elsewhere, place.project / "folder")
    (elsewhere / "new").write_text("after\n")
    restored = place.restore(before, after)
    assert left(restored) == {"folder/file": "changed since", "folder/other": "in the way"}
    assert os.listdir(elsewhere) == ["new"]


def test_a_folder_with_other_files_is_not_removed_for_a_file(repo: Place) -> None:
    repo.write(".gitignore", "*.local\n")
    repo.write("thing", "file\n")
    before = repo.take()
    (repo.project / "thing").unlink()
    repo.write("thing/inside", "agent\n")
    repo.write("thing/my.local", "person\n")
    after = repo.take()
    restored = repo.restore(before, after)
    assert left(restored) == {"thing": "in the way"}
    assert (repo.project / "thing" / "my.local").read_text() == "person\n"


def test_our_documents_are_never_part_of_it(place: Place) -> None:
    if place.kind == "git":
        place.write(".gitignore", "!.promptside/\n!.promptside/**\n")
    place.write(".promptside/config.toml", "before\n")
    place.write(".promptside/tasks/1-x/SPEC.md", "before\n")
    place.write(".promptside/worktrees/1/file", "before\n")
    if place.kind == "git":
        place.git("add", "-f", ".")
    before = place.take()
    place.write(".promptside/config.toml", "after\n")
    place.write(".promptside/tasks/1-x/SPEC.md", "after\n")
    place.write(".promptside/worktrees/1/file", "after\n")
    after = place.take()
    assert place.changed(before, after) == {".promptside/config.toml": "modified"}
    place.restore(before, after)
    assert (place.project / ".promptside/tasks/1-x/SPEC.md").read_text() == "after\n"


def test_an_empty_project(place: Place) -> None:
    before = place.take()
    place.write("first", "x\n")
    after = place.take()
    assert place.changed(before, after) == {"first": "added"}
    assert place.restore(before, after).left == ()
    assert place.take().id == before.id


def test_two_thousand_files(place: Place) -> None:
    for number in range(2_000):
        place.write(f"d{number % 40}/f{number}", f"{number}\n")
    walk, before = place.walk(), place.take()
    assert place.take().id == before.id
    for number in range(0, 2_000, 10):
        place.write(f"d{number % 40}/f{number}", "changed\n")
    shutil.rmtree(place.project / "d1")
    place.write("d1", "a file\n")
    after = place.take()
    assert len(place.changed(before, after)) == 200 + 50 + 1
    assert place.restore(before, after).left == ()
    assert place.walk() == walk


def test_same_size_and_time_is_still_seen(place: Place) -> None:
    """Rewritten in the instant of the checkpoint, as large as before."""
    for number in range(50):
        place.write(f"f{number}", "aaaa\n")
        before = place.take() if number % 10 == 0 else None
        place.write(f"f{number}", "bbbb\n")
        if before is not None:
            assert place.changed(before) == {f"f{number}": "modified"}


def test_what_is_no_file_is_said(place: Place) -> None:
    place.write("fine", "x\n")
    os.mkfifo(place.project / "fifo")
    place.write("becomes-fifo", "x\n")
    before = place.take()
    (place.project / "becomes-fifo").unlink()
    os.mkfifo(place.project / "becomes-fifo")
    after = place.take()
    said = {item.path: item.why for item in after.skipped}
    assert said.get("becomes-fifo") == "special"
    assert place.changed(before, after) == {"becomes-fifo": "deleted"}
    assert left(place.restore(before, after)) == {"becomes-fifo": "changed since"}


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_an_unreadable_file_is_said(place: Place) -> None:
    place.write("fine", "x\n")
    place.write("closed", "x\n")
    (place.project / "closed").chmod(0)
    assert place.take().skipped == (Skipped(path="closed", why="unreadable"),)


def test_large_files_are_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptgit, "LARGEST", 100)
    monkeypatch.setattr(keptcopies, "LARGEST", 100)
    place.write("small", "x\n")
    place.write("large", "x" * 101)
    before = place.take()
    assert before.skipped == (Skipped(path="large", why="large"),)
    place.write("large", "y" * 102)
    after = place.take()
    if place.kind == "hash":
        assert place.changed(before, after) == {"large": "modified"}
        assert b"differ" in place.diff(before, after)
        assert place.restore(before, after) == Restored(done=(), left=(Left(path="large", why="not kept"),))
    else:
        assert place.changed(before, after) == {}


def test_prune_forgets_removed_tasks_only(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write("file", "before\n")
    first = place.take("1")
    place.write("file", "between, and only there\n")
    second = place.take("2")
    place.write("file", "after\n")
    third = place.take("3")
    place.prune("2", "no-such")
    place.prune()
    if place.kind == "git":
        assert second.id not in place.git("for-each-ref")
        place.git("gc", "-q", "--prune=now")
        objects = place.git("cat-file", "--batch-all-objects", "--batch-check")
    else:
        for path in place.keep.rglob("*"):
            if path.is_file():
                os.utime(path, (0, 0))
        place.prune("2")
        objects = "\n".join(str(path) for path in place.keep.rglob("*"))
    assert first.id in objects
    assert second.id not in objects
    assert place.restore(first, third).left == ()
    assert (place.project / "file").read_text() == "before\n"
    # What the index remembers may be gone by now; the next one does not build on it.
    place.write("file", "between, and only there\n")
    again = place.take("4")
    assert again.id == second.id
    place.restore(again, first)
    place.write("file", "before\n")
    assert place.restore(again, first).left == ()
    assert (place.project / "file").read_text() == "between, and only there\n"


def test_task_names_that_make_no_ref_are_refused(place: Place) -> None:
    for task in ("", "../x", "a/b", "x.lock", "-\n"):
        with pytest.raises(ValueError, match="ref"):
            asyncio.run(checkpoint.take(place.project, place.keep, task, env=place.env))


def test_a_project_that_is_gone(place: Place, tmp_path: Path) -> None:
    taken = place.take()
    place.project.rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointFailed):
        place.take()
    with pytest.raises(CheckpointFailed):
        place.changed(taken)
    with pytest.raises(CheckpointFailed):
        place.restore(taken, taken)
    place.prune("1")


def test_concurrent_churn_is_retried(place: Place) -> None:
    """Files that come and go while it is taken: it ends, and what stands still is in it."""
    for number in range(200):
        place.write(f"still/{number}", f"{number}\n")
    stop = threading.Event()
    started = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            folder = place.project / f"churn{number % 7}"
            folder.mkdir(exist_ok=True)
            for name in ("a", "b"):
                (folder / name).write_text(str(number) * (number % 50))
            started.set()
            shutil.rmtree(folder)
            number += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        started.wait()
        taken = [place.take() for _ in range(10)]
    finally:
        stop.set()
        thread.join()
    for one in taken:
        assert not any(path.startswith("still/") for path in place.changed(one))


# With git


def test_the_persons_repository_is_untouched(repo: Place) -> None:
    repo.write("tracked", "1\n")
    repo.write("staged", "1\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "x")
    repo.write("stashed", "1\n")
    repo.git("add", ".")
    repo.git("stash", "-q")
    repo.write("staged", "2\n")
    repo.git("add", "staged")
    repo.write("staged", "3\n")
    repo.write("untracked", "1\n")

    def state() -> list[object]:
        return [
            (repo.project / ".git" / "index").read_bytes(),
            repo.git("-c", "core.fsmonitor=", "--no-optional-locks", "status", "--porcelain=2", "--branch"),
            repo.git("stash", "list"),
            repo.git("reflog", "HEAD"),
            repo.git("log", "--all", "--oneline"),
            repo.git("config", "--list", "--local"),
            (repo.project / ".git" / "info" / "exclude").read_bytes(),
            sorted(os.listdir(repo.project / ".git")),
        ]

    earlier = state()
    before = repo.take()
    assert state() == earlier
    repo.write("tracked", "2\n")
    repo.write("new", "1\n")
    after = repo.take()
    repo.diff(before, after)
    repo.restore(before, after)
    assert state() == earlier
    assert (repo.project / "staged").read_text() == "3\n"


def test_no_reflog_even_where_all_refs_have_one(repo: Place) -> None:
    repo.git("config", "core.logAllRefUpdates", "always")
    repo.take()
    assert not list((repo.project / ".git" / "logs").rglob("promptside"))


def test_gc_keeps_it(repo: Place) -> None:
    repo.write("file", "before\n")
    before = repo.take()
    repo.write("file", "after\n")
    after = repo.take()
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    repo.git("fsck", "--strict")
    assert repo.restore(before, after).left == ()
    assert (repo.project / "file").read_text() == "before\n"


def test_ignored_files_are_not_part_and_forced_ones_are(repo: Place) -> None:
    config = Path(repo.env["HOME"]) / ".config" / "git"
    config.mkdir(parents=True)
    (config / "ignore").write_text("*.person\n")
    repo.write(".gitignore", "*.log\nbuild/\n!kept.person\n")
    (repo.project / ".git" / "info" / "exclude").write_text("*.repo")
    for path in ("a.log", "b.person", "c.repo", "build/x", "kept.person", "fine"):
        repo.write(path, "before\n")
    repo.write("build/forced", "before\n")
    repo.git("add", "-f", "build/forced")
    before = repo.take()
    for path in ("a.log", "b.person", "c.repo", "build/x", "kept.person", "fine", "build/forced"):
        repo.write(path, "after\n")
    assert set(repo.changed(before)) == {"kept.person", "fine", "build/forced"}
    # A file of the person's choosing instead of the usual one
    other = Path(repo.env["HOME"]) / "ig nore"
    other.write_text("fresh.*\n")
    repo.git("config", "--global", "core.excludesFile", "~/ig nore")
    before = repo.take()
    repo.write("fresh.x", "x\n")
    repo.write("d.person", "x\n")
    assert repo.changed(before) == {"d.person": "added"}


def test_files_that_were_ignored_are_spared_when_the_agent_un_ignored_them(repo: Place) -> None:
    """By the rules of the checkpoint, wherever they stood."""
    exclude = repo.project / ".git" / "info" / "exclude"
    exclude.write_text("local/\n")
    repo.write(".gitignore", ".env\nnode_modules/\n")
    repo.write("sub/.gitignore", "*.key\n")
    for path in (".env", "node_modules/a/b.js", "sub/my.key", "local/notes"):
        repo.write(path, "person\n")
    before = repo.take()
    repo.write(".gitignore", "nothing\n")
    (repo.project / "sub" / ".gitignore").unlink()
    exclude.write_text("")
    repo.write("made.txt", "agent\n")
    after = repo.take()
    ignored = {".env", "node_modules/a/b.js", "sub/my.key", "local/notes"}
    assert set(repo.changed(before, after)) == ignored | {".gitignore", "sub/.gitignore", "made.txt"}
    restored = repo.restore(before, after)
    assert left(restored) == dict.fromkeys(ignored, "ignored before")
    assert (repo.project / ".env").read_text() == "person\n"
    assert not (repo.project / "made.txt").exists()
    assert (repo.project / ".gitignore").read_text() == ".env\nnode_modules/\n"


def test_a_part_of_a_monorepo(repo: Place, tmp_path: Path) -> None:
    """The checkpoint covers the project's directory; the rules above it hold."""
    top = repo.project
    repo.write(".gitignore", "*.log\n/app/[[]x] y/secret\n")
    repo.write("outside", "before\n")
    repo.project = top / "app" / "[x] y"
    repo.write("inside", "before\n")
    repo.write("a.log", "before\n")
    repo.write("secret", "before\n")
    repo.write(".promptside/tasks/1/x", "before\n")
    before = repo.take()
    repo.write("inside", "after\n")
    repo.write("a.log", "after\n")
    repo.write("new/file", "after\n")
    repo.write(".promptside/tasks/1/x", "after\n")
    (top / "outside").write_text("after\n")
    (top / ".gitignore").write_text("*.log\n")
    after = repo.take()
    # The rule above is not part of the checkpoint: that it is gone shows as a new file.
    assert repo.changed(before, after) == {"inside": "modified", "new/file": "added", "secret": "added"}
    assert b"a/inside" in repo.diff(before, after, ["inside"])
    (top / ".gitignore").write_text("*.log\n/app/[[]x] y/secret\n")
    restored = repo.restore(before, after)
    assert left(restored) == {"secret": "ignored before"}
    assert (repo.project / "inside").read_text() == "before\n"
    assert (repo.project / "secret").read_text() == "before\n"
    assert (top / "outside").read_text() == "after\n"
    # Two parts and the whole do not get into each other's way.
    part, repo.project = repo.project, top
    whole = repo.take()
    (top / "outside").write_text("later\n")
    assert repo.changed(whole) == {"outside": "modified"}
    repo.project = part
    assert repo.changed(before) == {"secret": "added"}  # once in the index, a file is followed


def test_an_empty_part_of_a_monorepo(repo: Place) -> None:
    repo.write("outside", "x\n")
    repo.project = repo.project / "part"
    repo.project.mkdir()
    before = repo.take()
    repo.write("first", "x\n")
    assert repo.changed(before) == {"first": "added"}


def test_a_project_in_an_ignored_folder_is_copied(repo: Place) -> None:
    repo.write(".gitignore", "scratch/\n")
    repo.project = repo.project / "scratch" / "here"
    repo.project.mkdir(parents=True)
    repo.kind = "hash"
    before = repo.take()
    repo.write("file", "x\n")
    assert repo.changed(before) == {"file": "added"}


def test_a_linked_worktree(repo: Place, tmp_path: Path) -> None:
    repo.write("file", "before\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "x")
    main = repo.project
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    repo.project = tmp_path / "linked"
    assert (repo.project / ".git").is_file()
    before = repo.take()
    repo.write("file", "after\n")
    after = repo.take()
    assert repo.changed(before, after) == {"file": "modified"}
    assert repo.restore(before, after).left == ()
    assert before.id in repo.git("for-each-ref", cwd=main)
    assert (repo.project / ".git").is_file()


def test_sha_256_repositories(tmp_path: Path) -> None:
    place = Place(tmp_path, "hash")
    place.git("init", "-q", "--object-format=sha256")
    place.kind = "git"
    place.write("file", "before\n")
    before = place.take()
    place.write("file", "after\n")
    after = place.take()
    assert len(before.id) == 64
    assert place.restore(before, after).left == ()
    assert (place.project / "file").read_text() == "before\n"


def test_repositories_inside(repo: Place, tmp_path: Path) -> None:
    """Of a repository inside, with a commit, the commit is known; without one, nothing; its files never."""
    repo.write("file", "before\n")
    for name in ("empty", "inner"):
        (repo.project / name).mkdir()
        repo.git("init", "-q", cwd=repo.project / name)
        repo.write(f"{name}/file", "before\n")
    inner = repo.project / "inner"
    repo.git("add", ".", cwd=inner)
    repo.git("commit", "-q", "-m", "x", cwd=inner)
    before = repo.take()
    assert before.skipped == (Skipped(path="empty", why="empty repository"),)
    repo.write("inner/file", "after\n")
    repo.write("file", "after\n")
    assert set(repo.changed(before)) == {"file"}
    repo.git("commit", "-q", "-a", "-m", "y", cwd=inner)
    head = repo.git("rev-parse", "HEAD", cwd=inner)
    after = repo.take()
    assert set(repo.changed(before, after)) == {"file", "inner"}
    restored = repo.restore(before, after)
    assert left(restored) == {"inner": "repository"}
    assert restored.done == ("file",)
    assert repo.git("rev-parse", "HEAD", cwd=inner) == head
    assert (inner / "file").read_text() == "after\n"


def test_submodules_are_kept_by_their_commit_and_not_put_back(repo: Place, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    repo.git("init", "-q", cwd=library)
    repo.git("commit", "-q", "--allow-empty", "-m", "x", cwd=library)
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sub")
    repo.git("commit", "-q", "-m", "x")
    before = repo.take()
    assert before.skipped == ()
    repo.write("sub/dirty", "x\n")
    assert repo.changed(before) == {}
    repo.git("commit", "-q", "--allow-empty", "-m", "y", cwd=repo.project / "sub")
    after = repo.take()
    assert repo.changed(before, after) == {"sub": "modified"}
    assert left(repo.restore(before, after)) == {"sub": "repository"}
    assert (repo.project / "sub" / "dirty").read_text() == "x\n"
    # Seen from inside, it is a project of its own.
    repo.project = repo.project / "sub"
    inside = repo.take()
    repo.write("dirty", "y\n")
    assert repo.changed(inside) == {"dirty": "modified"}


def test_index_flags_and_conversions_hide_nothing(repo: Place) -> None:
    repo.write(
        ".gitattributes",
        "*.txt text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n* export-ignore\n",
    )
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.fileMode", "false")
    repo.git("config", "core.symlinks", "false")
    for path in ("a.txt", "b.id", "assumed", "skipped"):
        repo.write(path, b"$Id$ one\r\ntwo\n")
    repo.write("c.u16", "text\n".encode("utf-16"))
    repo.git("add", "a.txt", "b.id", "assumed", "skipped")
    repo.git("update-index", "--assume-unchanged", "assumed")
    repo.git("update-index", "--skip-worktree", "skipped")
    walk, before = repo.walk(), repo.take()
    for path in ("a.txt", "b.id", "assumed", "skipped", "c.u16"):
        repo.write(path, b"$Id: x $ one\ntwo\r\n", program=path == "b.id")
    after = repo.take()
    assert len(repo.changed(before, after)) == 5
    assert repo.restore(before, after).left == ()
    assert repo.walk() == walk


def test_a_killed_daemons_leftovers_are_in_nobodys_way(repo: Place) -> None:
    repo.write("file", "before\n")
    before = repo.take()
    indexes = list((repo.keep / "git").glob("index-*"))
    assert len(indexes) == 1
    Path(f"{indexes[0]}.lock").touch()
    stale = repo.keep / "tmp-stale"
    stale.mkdir()
    os.utime(stale, (0, 0))
    indexes[0].write_bytes(b"half an ind")
    assert repo.take().id == before.id
    repo.prune()
    assert not stale.exists()
    assert [path.name for path in repo.keep.iterdir() if path.name.startswith("tmp-")] == []


def test_several_at_once(place: Place) -> None:
    for number in range(50):
        place.write(f"f{number}", f"{number}\n")

    async def main() -> set[str]:
        taken = await asyncio.gather(
            *(checkpoint.take(place.project, place.keep, str(task), env=place.env) for task in range(6))
        )
        return {one.id for one in taken}

    assert len(asyncio.run(main())) == 1


def hostile(repo: Place, traps: Path) -> None:
    traps.mkdir()

    def canary(name: str) -> str:
        program = traps / name
        program.write_text(f'#!/bin/sh\ntouch "{traps}/ran-{name}"\ncat\n')
        program.chmod(0o755)
        return str(program)

    repo.write("tracked", "1\n")
    repo.write("inner/.keep", "1\n")
    repo.git("add", "tracked")
    repo.git("commit", "-q", "-m", "x")
    inner = repo.project / "inner"
    repo.git("init", "-q", cwd=inner)
    repo.git("add", ".", cwd=inner)
    repo.git("commit", "-q", "-m", "x", cwd=inner)
    for which, where in (("outer", repo.project), ("inner", inner)):
        for name in (
            "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "diff.external",
            "diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "filter.evil.smudge",
            "filter.evil.process", "gpg.program", "merge.evil.driver", "credential.helper",
            "core.alternateRefsCommand", "hook.evil.command", "pager.diff",
        ):  # fmt: skip
            target = ["--file", f"{where}/.git/included"] if name == "filter.evil.process" else []
            repo.git("config", *target, name, canary(f"{which}-{name}"), cwd=where)
        repo.git("config", "include.path", "included", cwd=where)
        repo.git("config", "filter.evil.required", "true", cwd=where)
        repo.git("config", "alias.update-index", f"!{canary('alias')}", cwd=where)
        repo.git("config", "hook.evil.event", "reference-transaction", cwd=where)
        repo.git("config", "remote.origin.url", f"ext::{canary('ext')}", cwd=where)
        repo.git("config", "remote.origin.promisor", "true", cwd=where)
        repo.git("config", "protocol.ext.allow", "always", cwd=where)
        for hook in (
            "reference-transaction",
            "post-index-change",
            "pre-commit",
            "post-checkout",
            "pre-auto-gc",
            "fsmonitor-watchman",
        ):
            shutil.copy(canary(f"hook-{hook}"), where / ".git" / "hooks" / hook)
        (where / ".git" / "info").mkdir(exist_ok=True)
        (where / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
        (where / ".gitattributes").write_text(
            "[attr]all filter=evil\n* all filter=evil diff=evil merge=evil ident\n"
        )
    repo.git("config", "core.worktree", str(traps))


def test_no_program_of_a_hostile_repository_is_run(repo: Place, tmp_path: Path) -> None:
    traps = tmp_path / "traps"
    hostile(repo, traps)
    before = repo.take()
    repo.write("tracked", "2\n")
    repo.write("new", "2\n")
    repo.write("inner/.keep", "2\n")
    after = repo.take()
    assert repo.changed(before, after) == {"tracked": "modified", "new": "added"}
    assert repo.diff(before, after).count(b"diff --git") == 2
    assert repo.restore(before, after).left == ()
    assert (repo.project / "tracked").read_text() == "1\n"
    (repo.project / ".gitmodules").write_text(
        f'[submodule "inner"]\n\tpath = inner\n\turl = ext::x\n\tupdate = !touch {traps}/ran-module\n'
    )
    assert repo.changed(before) == {".gitmodules": "added"}
    repo.prune("1")
    assert list(traps.glob("ran-*")) == []


def test_the_traps_of_the_hostile_repository_work(repo: Place, tmp_path: Path) -> None:
    """Else the test above would show nothing."""
    traps = tmp_path / "traps"
    hostile(repo, traps)
    (repo.project / "tracked").write_text("2\n")
    env = repo.env | {"GIT_WORK_TREE": str(repo.project)}
    # Settings of the command line count for the outer repository only.
    tame = ["-c", "filter.evil.clean=", "-c", "filter.evil.process=", "-c", "filter.evil.required=false"]
    for args in (
        ["add", "-A"],
        ["update-ref", "refs/x/y", "HEAD"],
        [*tame, "update-index", "--add", "inner"],
        [*tame, "status"],
    ):
        subprocess.run(["git", *args], cwd=repo.project, env=env, capture_output=True, check=False)
    ran = {path.name.removeprefix("ran-") for path in traps.glob("ran-*")}
    assert {
        "outer-core.fsmonitor",
        "outer-filter.evil.process",
        "inner-core.fsmonitor",
        "hook-reference-transaction",
    } <= ran


def test_a_repository_that_git_refuses_is_copied(repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo.project / ".git" / "config").write_text("[core\n")
    repo.kind = "hash"
    repo.write("file", "before\n")
    before = repo.take()
    repo.write("file", "after\n")
    assert repo.changed(before) == {"file": "modified"}


@pytest.mark.parametrize("version", [None, (2, 37, 1)])
def test_without_git_or_with_an_old_one_it_is_copies(
    repo: Place, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...] | None
) -> None:
    kept_by_git = repo.take()

    async def answer(env: object) -> tuple[int, ...] | None:
        return version

    monkeypatch.setattr(git, "version", answer)
    repo.kind = "hash"
    copied = repo.take()
    with pytest.raises(CheckpointFailed, match="cannot be compared"):
        repo.changed(kept_by_git, copied)
    with pytest.raises(CheckpointFailed, match="cannot read"):
        repo.changed(kept_by_git)


# Without git


def test_folders_that_can_be_made_again_are_left_out_and_said(bare: Place) -> None:
    for path in ("src/x", "node_modules/a/b", "src/__pycache__/c", ".venv/d", ".git/e"):
        bare.write(path, "x\n")
    before = bare.take()
    assert {item.path for item in before.skipped if item.why == "left out"} == {
        ".git", ".venv", "__pycache__", "node_modules",
    }  # fmt: skip
    bare.write("node_modules/a/b", "y\n")
    assert bare.changed(before) == {}


def test_no_more_than_so_much_is_copied(bare: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keptcopies, "MOST", 10)
    bare.write("a", "x" * 8)
    bare.write("b", "x" * 8)
    before = bare.take()
    assert before.skipped == (Skipped(path="b", why="large"),)
    bare.write("b", "y" * 9)
    assert bare.changed(before) == {"b": "modified"}


def test_a_content_is_stored_once(bare: Place) -> None:
    for number in range(20):
        bare.write(f"f{number}", "the same\n")
    bare.take()
    assert len([path for path in (bare.keep / "copies" / "content").rglob("*") if path.is_file()]) == 1


def test_a_damaged_copy_is_said(bare: Place) -> None:
    before = bare.take()
    bare.write("file", "x\n")
    (bare.keep / "copies" / "trees" / before.id).write_bytes(b"\xc1")
    with pytest.raises(CheckpointFailed, match="could not be read"):
        bare.changed(before)


def test_a_full_disk_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Callable[..., object]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keptgit, "_copy_if_there", full)
    monkeypatch.setattr(keptcopies, "_add", full)
    place.write("file", "x\n")
    with pytest.raises(CheckpointFailed, match="No space left"):
        place.take()
