"""Whatever is killed in mid-answer, nothing is lost, nothing is said twice, and nothing stays alive."""

import os
import shutil
from pathlib import Path

import pytest
from rig.fake_claude import fake_claude
from rig.messages_api import Hold, MessagesAPI, Reply, Text, say, use
from rig.short_pipeline import NAME, short
from rig.stages import in_stage
from rig.user import User

FIRST, SECOND = "The first half of it, ", "and the second half."


@pytest.fixture
def mid_answer(user: User, api: MessagesAPI) -> Hold:
    """A research whose agent has said the first half of its answer."""
    hold = Hold()
    api.add(in_stage("research", Reply((Text(FIRST, hold, SECOND),))))
    user.promptside("task", "new", "Tell me")
    user.promptside("run", "--detach")
    hold.wait_until_reached()
    return hold


def the_agent(user: User) -> int:
    """The agent itself, of whose children any may end at any moment."""
    return next(pid for pid, command in user.agents().items() if "--input-format=stream-json" in command)


def test_da3_the_daemon_dies_and_the_output_goes_on_where_it_stopped(user: User, mid_answer: Hold) -> None:
    agent = the_agent(user)
    before = user.daemon()
    user.kill(before)
    assert the_agent(user) == agent
    assert user.task()["state"] == "taken"
    assert user.daemon() != before
    with user.start("log", "1", "--follow", "--json") as following:
        mid_answer.release()
        followed = ""
        while (line := following.line()) is not None and line["event"] != "end":
            followed += "".join(entry["text"] for entry in line["entries"])
    user.waits("gate")
    (attempt,) = user.stage("research")["attempts"]
    assert attempt["status"] == "done"
    transcript = Path(attempt["transcript"]).read_bytes()
    raw = user.promptside("log", "@", "--raw").out.encode()
    assert raw == transcript
    rendered = user.promptside("log", "@").out
    assert rendered.count(FIRST.strip()) == 1
    assert rendered.count(SECOND) == 1
    assert followed.count(FIRST + SECOND) == 1
    assert user.agents() == {}


def test_the_daemon_dies_again_and_again_while_the_agent_works(user: User, mid_answer: Hold) -> None:
    for _ in range(3):
        user.kill(user.daemon())
        assert user.task()["stages"][0]["status"] == "running"
    mid_answer.release()
    user.waits("gate")
    assert len(user.stage("research")["attempts"]) == 1
    assert user.promptside("log", "@").out.count(SECOND) == 1


@pytest.mark.parametrize("victim", ["keeper", "claude"])
def test_da3_keeper_or_agent_dies_and_the_stage_is_tried_again(
    victim: str, user: User, api: MessagesAPI, mid_answer: Hold
) -> None:
    api.add(in_stage("research", say("All of it at once.")))
    claude = the_agent(user)
    (keeper,) = user.keepers()
    user.kill(keeper if victim == "keeper" else claude)
    user.waits("gate")
    first, *others = user.stage("research")["attempts"]
    assert (first["status"], len(others)) == ("failed", 1)
    assert first["error"]
    assert others[0]["status"] == "done"
    assert "All of it at once." in user.promptside("log", "@").out
    assert user.agents() == {}


def test_everything_dies_at_once_and_the_next_call_goes_on(
    user: User, api: MessagesAPI, mid_answer: Hold
) -> None:
    api.add(in_stage("research", say("All of it at once.")))
    user.kill(*user.processes())
    assert user.processes() == {}
    user.waits("gate")
    assert [attempt["status"] for attempt in user.stage("research")["attempts"]] == ["failed", "done"]


def test_da3_what_the_agent_left_running_is_ended_with_it(user: User, api: MessagesAPI) -> None:
    leave = "(setsid sleep 1000 >/dev/null 2>&1 &) ; echo started"
    hold = Hold()
    api.add(
        short(
            user,
            use("Bash", command=leave, description="Leave a child"),
            Reply((Text("Started. ", hold, "Done."),)),
        )
    )
    user.promptside("task", "new", "Leave something", "--pipeline", NAME)
    user.promptside("run", code=3)
    user.promptside("answer", "@", "P1", "--option", "once")
    hold.wait_until_reached()
    assert any("sleep 1000" in command for command in user.agents().values())
    hold.release()
    user.waits("gate")
    assert user.agents() == {}


HELD = """#!/bin/sh
case "$*" in *--version*) read -r _ < '{gate}' ;; esac
exec '{claude}' "$@"
"""


@pytest.mark.parametrize("instant", ["before its agent is there", "before its agent has said a word"])
def test_what_is_abandoned_while_it_starts_leaves_no_agent(user: User, instant: str) -> None:
    gate = user.base / "gate"
    os.mkfifo(gate)
    claude = fake_claude(user.base, f"hold({str(gate)!r}); prompt(); init(); result('Good'); end()")
    if instant == "before its agent is there":
        fake_claude(user.base, "prompt(); init(); result('Good'); end()")
        held = user.base / "held"
        held.write_text(HELD.format(gate=gate, claude=claude))
        held.chmod(0o755)
        claude = held
    user.environment["PROMPTSIDE_CLAUDE"] = str(claude)
    user.promptside("task", "new", "Never mind")
    user.promptside("run", "--detach")
    with gate.open("wb"):  # opens when the start has come to this point, and holds it there
        user.promptside("task", "abandon", "1")
        stopping = user.start("daemon", "stop")
    with stopping:
        assert stopping.end() == 0
    user.promptside("task", "list")
    assert user.task()["state"] == "archived"
    user.promptside("daemon", "stop")
    user.wait_for_no_process()


def test_da3_a_home_that_is_removed_under_a_killed_daemon_leaves_no_agent(user: User) -> None:
    """Nothing will ever look for them again: keeper and agent end by themselves."""
    claude = fake_claude(user.base, "prompt(); init(); signal.signal(signal.SIGTERM, signal.SIG_IGN); end()")
    user.environment["PROMPTSIDE_CLAUDE"] = str(claude)
    user.promptside("task", "new", "Never mind")
    user.promptside("run", "--detach")
    user.until(lambda task: task["stages"][0]["attempts"] and task["stages"][0]["attempts"][0]["session"])
    assert user.agents()
    user.kill(user.daemon())
    assert user.agents()
    shutil.rmtree(user.data)
    user.wait_for_no_process()
