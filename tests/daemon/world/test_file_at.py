"""ED-12: a file as it was before an attempt and after it, whatever kept it, and none from outside of the project."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from promptside_daemon.world import checkpoint
from promptside_daemon.world.checkpoint import Checkpoint, File


@pytest.mark.parametrize("kind", ["git", "hash"])
def test_a_file_is_told_as_it_was_and_as_it_is(tmp_path: Path, kind: str) -> None:
    project, keep = tmp_path / "project", tmp_path / "keep"
    (project / "src").mkdir(parents=True)
    if kind == "git":
        subprocess.run(["git", "init", "-q", str(project)], check=True)
    (tmp_path / "secret").write_text("not for you")
    (project / "src" / "a.py").write_text("one\n")
    (project / "src" / "b [x].py").write_bytes(b"\xff\0")
    (project / "there").symlink_to("../secret")
    (project / "out").symlink_to("..")
    before = asyncio.run(checkpoint.take(project, keep, "task-1"))
    assert before.kind == kind
    (project / "src" / "a.py").write_text("two\n")
    (project / "src" / "new.py").write_text("new\n")
    (project / "src" / "b [x].py").unlink()

    def at(path: str, kept_as: Checkpoint | None) -> File:
        return asyncio.run(checkpoint.file_at(project, keep, kept_as, path))

    assert at("src/a.py", before) == File(kind="file", content=b"one\n", size=4)
    assert at("src/a.py", None) == File(kind="file", content=b"two\n", size=4)
    assert at("src/b [x].py", before) == File(kind="file", content=b"\xff\0", size=2)
    assert at("src/b [x].py", None).kind == "absent"
    assert at("src/new.py", before).kind == "absent"
    assert at("there", before) == at("there", None) == File(kind="link", content=b"../secret", size=9)
    for outside in ("out/secret", "../secret", "src/../../secret", "/etc/passwd", "src", "src/"):
        assert at(outside, before) == at(outside, None) == File(kind="absent"), outside


@pytest.mark.parametrize("kind", ["git", "hash"])
def test_a_name_that_is_no_text_is_found_by_what_is_shown_of_it(tmp_path: Path, kind: str) -> None:
    project, keep = tmp_path / "project", tmp_path / "keep"
    project.mkdir()
    if kind == "git":
        subprocess.run(["git", "init", "-q", str(project)], check=True)
    try:
        (project / "caf\udce9").write_text("x")
    except OSError:
        pytest.skip("this file system takes names of text only")
    before = asyncio.run(checkpoint.take(project, keep, "task-1"))
    assert asyncio.run(checkpoint.file_at(project, keep, before, "caf\\xe9")).content == b"x"
    assert asyncio.run(checkpoint.file_at(project, keep, None, "caf\\xe9")).content == b"x"


@pytest.mark.parametrize("kind", ["git", "hash"])
def test_a_file_that_no_frame_holds_is_said_to_be_large(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, keep = tmp_path / "project", tmp_path / "keep"
    project.mkdir()
    if kind == "git":
        subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "long").write_text("12345")
    before = asyncio.run(checkpoint.take(project, keep, "task-1"))
    monkeypatch.setattr(checkpoint, "LARGEST_SHOWN", 4)
    for side in (before, None):
        assert asyncio.run(checkpoint.file_at(project, keep, side, "long")) == File(kind="large", size=5)
