"""`promptside demo`: the seven stages by rehearsal, with nothing left behind."""

from __future__ import annotations

from rig.user import User


def test_the_demo_plays_all_seven_stages_and_removes_what_it_made(user: User) -> None:
    """ST-2, ST-10: from the order to the pull request's text, each answer shown as the command that gives it."""
    scratch = user.base / "scratch"
    scratch.mkdir()
    ran = user.promptside("demo", "--fast", more={"TMPDIR": str(scratch)})
    for command in (
        "$ promptside task new",
        "$ promptside answer 1 Q1 --recommended",
        "$ promptside approve 1 --select A",
        "$ promptside redo 1 -m",
        "$ promptside answer 1 P1 --option always",
        "$ promptside run 1 --input",
        "$ promptside approve 1 --check all",
    ):
        assert command in ran.out
    assert "## Test plan (required)\n\n1. " in ran.out
    assert "+def without(counts: Counter[str], stop_words: Container[str]) -> Counter[str]:" in ran.out
    assert list(scratch.iterdir()) == []
