"""A task goes through all of `standard` with the real CLI, from the first order to the pull request's text."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from rig.messages_api import Hold, MessagesAPI, Reply, Rule, Text, Use, say
from rig.stages import in_stage
from rig.standard_replies import replies
from rig.standard_texts import APPROACHES, PULL_REQUEST, REDO_FEEDBACK, REFINEMENT_INPUT, TITLE
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

AFTER: dict[str, str] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "rehearsals" / "standard-after.json").read_text("utf-8")
)


@pytest.fixture
def sample(user: User) -> Path:
    """The person's project is the shipped sample."""
    shutil.copytree(
        SHIPPED / "standard" / "project",
        user.project,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    user.commit_all()
    return user.project


def test_st2_a_task_runs_from_research_to_a_filled_pull_request(
    user: User, api: MessagesAPI, sample: Path
) -> None:
    scripts = replies(sample)
    for stage in (
        "high-level-approaches",
        "implementation",
        "refinement",
        "security-review",
        "pr-preparation",
    ):
        api.add(in_stage(stage, *scripts[f"{stage}.1"]))
    api.add(in_stage("research", *scripts["research.1"]))
    api.add(in_stage("planning", *scripts["planning.1"], *scripts["planning.2"]))

    user.promptside("task", "new", TITLE)
    user.promptside("run", code=3)
    user.promptside("answer", "@", "Q1", "--recommended")
    user.promptside("run", code=3)
    user.promptside("approve")
    user.promptside("run", code=3)
    user.promptside("approve", "--select", "A")
    user.promptside("run", code=3)
    user.promptside("redo", "-m", REDO_FEEDBACK)
    user.promptside("run", code=3)
    user.promptside("approve")
    user.promptside("run", code=3)
    user.promptside("answer", "@", "P1", "--option", "always")
    user.promptside("run", code=3)
    user.promptside("approve")
    assert user.waits("input")["stage"] == "refinement"
    user.promptside("run", "--input", REFINEMENT_INPUT, code=3)
    user.promptside("approve")
    user.promptside("run", code=3)
    user.promptside("approve", "--check", "all")
    user.promptside("run", code=3)
    user.promptside("approve")
    task = user.until(lambda task: task["state"] == "completed")

    assert [stage["status"] for stage in task["stages"]] == ["approved"] * 7
    assert [len(stage["attempts"]) for stage in task["stages"]] == [1, 1, 2, 1, 1, 1, 1]
    assert {path: (sample / path).read_text("utf-8") for path in AFTER} == AFTER
    form = (sample / task["stages"][-1]["artifact"]).read_text("utf-8")
    assert PULL_REQUEST["title"] in form
    assert PULL_REQUEST["test_plan"].splitlines()[0] in form
    for stage in task["stages"]:
        for attempt in stage["attempts"]:
            assert Path(attempt["prompt"]).read_text("utf-8")
            assert Path(attempt["transcript"]).read_bytes().endswith(b"\n")
            assert attempt["input_tokens"] > 0
            assert attempt["output_tokens"] > 0
            assert attempt["cost_usd"] > 0
            assert attempt["duration_s"] > 0
            assert attempt["error"] is None
    assert [stage["id"] for stage in task["stages"] if stage["approval"]["edited"]] == []
    assert {stage["id"]: stage["input"] for stage in task["stages"] if stage["input"]} == {
        "refinement": REFINEMENT_INPUT
    }
    sessions = [[attempt["session"] for attempt in stage["attempts"]] for stage in task["stages"]]
    assert len({session for stage in sessions for session in stage}) == 7
    assert sessions[2][0] == sessions[2][1]
    assert user.agents() == {}


def test_st4_the_choice_and_the_approved_text_reach_the_next_stage(
    user: User, api: MessagesAPI, sample: Path
) -> None:
    scripts = replies(sample)
    api.add(in_stage("research", say("Nobody has done this before.")))
    api.add(in_stage("high-level-approaches", *scripts["high-level-approaches.1"]))
    api.add(in_stage("planning", say("The plan.")))
    user.promptside("task", "new", TITLE)
    user.promptside("run", code=3)
    user.promptside("approve", "--note", "Mind the tests.")
    user.promptside("run", code=3)
    user.promptside("approve", "--select", "B")
    user.promptside("run", code=3)
    asked = [request.first for request in api.requests]
    assert "Nobody has done this before." in asked[1]
    assert not any("Mind the tests." in prompt for prompt in asked)
    chosen = asked[-1].partition("approach that was chosen")[2].partition("## The approaches")[0]
    assert APPROACHES["options"][1]["title"] in chosen
    assert APPROACHES["options"][0]["title"] not in chosen


def test_st16_research_may_look_at_the_web_and_may_not_write(user: User, api: MessagesAPI) -> None:
    # The preflight would ask a service on the internet whether the address may be fetched.
    (user.home / ".claude").mkdir()
    (user.home / ".claude" / "settings.json").write_text('{"skipWebFetchPreflight": true}')
    user.commit_all()
    hold = Hold()
    api.add(
        Rule("Perform a web search", (say("Nothing was found."),)),
        in_stage(
            "research",
            Reply(
                (
                    Text("I look ", hold, "around."),
                    Use("WebSearch", {"query": "stop words"}),
                    Use("WebFetch", {"url": "https://127.0.0.1:9/", "prompt": "What is there?"}),
                    Use("Write", {"file_path": str(user.project / "breach.txt"), "content": "x"}),
                )
            ),
            say("Nothing is known."),
        ),
    )
    user.promptside("task", "new", "Find out")
    with user.start("run", "--json") as running:
        hold.wait_until_reached()
        (user.project / "by a person.txt").write_text("saved meanwhile")
        hold.release()
        assert running.until(lambda line: line["event"] == "end")["exit"] == 3
    lines = [json.loads(line) for line in user.transcript("research").splitlines()]
    init = next(line for line in lines if line.get("subtype") == "init")
    assert {"WebSearch", "WebFetch"} <= set(init["tools"])
    assert "Write" not in init["tools"]
    results = by_tool(lines)
    assert "No such tool available" in results["Write"]["content"]
    for tool in ("WebSearch", "WebFetch"):
        assert not re.search("permission|denied", str(results[tool]["content"]), re.IGNORECASE)
    assert not (user.project / "breach.txt").exists()
    (attempt,) = user.stage("research")["attempts"]
    assert (attempt["status"], attempt["error"]) == ("done", None)
    assert attempt["proof"]["breach"] == []
    (meanwhile,) = attempt["proof"]["meanwhile"]
    assert meanwhile.startswith("by a person.txt")


def by_tool(lines: list[Any]) -> dict[str, Any]:
    """The result of each tool, by the tool's name."""
    blocks = [
        block
        for line in lines
        if line["type"] in ("assistant", "user") and isinstance(line["message"]["content"], list)
        for block in line["message"]["content"]
    ]
    names = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    return {names[block["tool_use_id"]]: block for block in blocks if block["type"] == "tool_result"}
