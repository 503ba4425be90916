"""A rehearsal from an empty folder to the pull request's text, and what a person is told on the way."""

import json
import subprocess
from pathlib import Path
from typing import Any

from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

AGENT = ("--agent", "rehearsal-fast:standard")
AFTER: dict[str, str] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "rehearsals" / "standard-after.json").read_text("utf-8")
)


def git(user: User, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=user.project, env=user.environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def settled(task: dict[str, Any]) -> dict[str, str]:
    return {decision["id"]: decision["status"] for decision in task["decisions"]}


def test_st2_cw20_a_rehearsal_in_an_empty_folder_brings_its_project_along(user: User) -> None:
    """What it claims to have edited is in the files, with git; each approval says what follows from it."""
    user.promptside("task", "new", "Leave common words out", *AGENT)
    first = user.promptside("run", code=3).out
    assert "The folder was empty: the project that this was recorded in lies here now" in first
    assert "in a new git repository with one commit." in first
    assert git(user, "log", "--format=%s").splitlines() == ["The sample project of the rehearsal"]
    assert git(user, "status", "--porcelain") == "", "our own documents are kept out of it"

    # A stage that was stopped plays its recording once more, and its question was not taken back by the agent.
    user.promptside("stop")
    user.until(lambda task: task["waiting_for"] and task["waiting_for"]["kind"] == "person")
    assert "Q1 left without an answer" in user.promptside("task", "show").out
    user.promptside("retry")
    assert user.waits("decision")["decisions"][0]["id"] == "Q2"
    user.promptside("answer", "@", "Q2", "--recommended")
    user.promptside("run", code=3)
    said = [user.promptside("approve").out]
    user.promptside("run", code=3)
    said.append(user.promptside("approve", "--select", "A").out)
    user.promptside("run", code=3)
    user.promptside("approve")
    user.promptside("run", code=3)
    user.promptside("answer", "@", "P1", "--option", "always")
    user.promptside("run", code=3)
    said.append(user.promptside("approve").out)
    waiting = user.waits("input")
    assert waiting["reason"] == "Start it, with what you have to say about it or without."
    user.promptside("run", code=3)
    user.promptside("approve")
    user.promptside("run", code=3)
    user.promptside("approve", "--check", "all")
    user.promptside("run", code=3)
    said.append(user.promptside("approve").out)
    task = user.until(lambda task: task["state"] == "completed")

    assert "Approved. High-Level Approaches starts." in said[0]
    assert "Approved. Planning starts." in said[1]
    assert "Approved. Refinement waits for you to start it, with a word of yours or without." in said[2]
    assert "Approved. All stages are done; what they came to is in .promptside/tasks/1-" in said[3]
    assert "The changes are in the project's files" in said[3]

    assert {path: (user.project / path).read_text("utf-8") for path in AFTER} == AFTER
    changed = {line[3:] for line in git(user, "status", "--porcelain", "-uall").splitlines()}
    assert {"README.md", "wordcount/counting.py"} <= changed
    assert settled(task)["Q1"] == "withdrawn"
    assert [len(stage["attempts"]) for stage in task["stages"]] == [2, 1, 1, 1, 1, 1, 1]
    assert all(stage["attempts"][-1]["cost_usd"] > 0 for stage in task["stages"]), "each is a recording"
    assert task["metrics"]["recorded"] is True
    page = user.promptside("task", "show").out
    assert "recorded, nothing paid" in page
    assert "approved by you" in page


def test_cw20_a_rehearsal_in_another_project_says_so_and_writes_nothing_over(user: User) -> None:
    """Its edits are made only where they fit; what is there stays."""
    (user.project / "README.md").write_text("Mine.\n")
    (user.project / "tests").mkdir()
    (user.project / "tests" / "test_counting.py").write_text("# mine\n")
    user.commit_all()
    user.promptside("task", "new", "Leave common words out", *AGENT)
    for _ in range(3):
        user.promptside("skip")
    said = user.promptside("run", code=3).out
    assert "This was recorded in another project: its edits are made only where they fit" in said
    user.promptside("answer", "@", "P1", "--option", "always")
    user.promptside("run", code=3)
    assert (user.project / "README.md").read_text() == "Mine.\n"
    assert (user.project / "tests" / "test_counting.py").read_text() == "# mine\n"
    assert not (user.project / "pyproject.toml").exists()


def test_cw20_a_missing_claude_is_said_with_what_to_do(user: User) -> None:
    """The failed stage and the doctor name the way to install, to log in, and the rehearsal that needs neither."""
    nowhere = {"PROMPTSIDE_CLAUDE": "/nowhere/claude"}
    user.promptside("task", "new", "One")
    ran = user.promptside("run", code=None, more=nowhere)
    doctor = user.promptside("doctor", code=None, more=nowhere)
    for told in (ran.out + ran.err, doctor.out):
        words = " ".join(told.split())
        assert "npm install -g @anthropic-ai/claude-code" in words
        assert "run “claude” once to log in" in words
        assert "rehearsal:standard" in words
    assert "doctor says more" not in doctor.out


def test_st2_the_rehearsals_that_ship_bring_the_project_they_were_recorded_in() -> None:
    assert all((one / "project").is_dir() for one in SHIPPED.iterdir())
