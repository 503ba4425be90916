"""Retention: what finished tasks left goes by age and size, and nothing of an open task does (DA-9)."""

from __future__ import annotations

from pathlib import Path

from rig.user import User

LARGE = 2 << 20


def rehearsed(user: User, number: int) -> Path:
    """A task with one attempt that left a large transcript; the attempt's directory."""
    user.promptside("task", "new", f"Task {number}", "--agent", "rehearsal-fast")
    user.promptside("run", str(number), code=3)
    attempt = user.task(number)["stages"][0]["attempts"][0]
    transcript = Path(attempt["transcript"])
    with transcript.open("ab") as file:
        file.write(b"x" * LARGE + b"\n")
    return transcript.parent


def keep_one_megabyte(user: User) -> None:
    config = user.data / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("[retention]\ndays = 0\nsize_mb = 1\n")


def test_da9_what_is_finished_goes_and_what_is_open_stays(user: User) -> None:
    finished, still_open = rehearsed(user, 1), rehearsed(user, 2)
    keep_one_megabyte(user)
    user.promptside("task", "abandon", "1")
    shown = user.promptside("gc", "--dry-run", "--json").data
    assert shown["attempts"] == [finished.name]
    assert shown["bytes"] > LARGE
    assert finished.is_dir()
    user.promptside("gc")
    assert not finished.exists()
    assert still_open.is_dir()
    assert user.task(1)["stages"][0]["attempts"][0]["status"] == "done"


def test_da9_a_daemon_tidies_at_its_start(user: User) -> None:
    finished = rehearsed(user, 1)
    user.promptside("task", "abandon", "1")
    user.promptside("daemon", "stop")
    keep_one_megabyte(user)
    while user.promptside("gc", "--dry-run", "--json").data["attempts"]:
        pass  # pytest's timeout bounds it: the new daemon is at work on it
    assert not finished.exists()
