"""What the agent may do: asked once, allowed for good, denied, and never waited for where nobody is."""

import json

from rig.messages_api import MessagesAPI, Reply, say, use
from rig.short_pipeline import NAME, short
from rig.stages import in_stage
from rig.user import User

PYTEST = "python3 -m pytest --version"


def runs_pytest() -> Reply:
    """A message that runs the tests."""
    return use("Bash", "I run the tests.", command=PYTEST, description="Run the tests")


def new(user: User) -> None:
    """One more task, in the short pipeline."""
    user.promptside("task", "new", "Do it", "--pipeline", NAME)


def test_st14_a_command_asks_once_and_always_holds_for_the_next_task(user: User, api: MessagesAPI) -> None:
    user.commit_all()
    api.add(short(user, runs_pytest(), say("They pass."), runs_pytest(), say("They pass again.")))
    new(user)
    user.promptside("run", "1", code=3)
    (asked,) = user.waits("decision")["decisions"]
    assert (asked["id"], asked["kind"], asked["tool"], asked["what"]) == ("P1", "permission", "Bash", PYTEST)
    assert [option["id"] for option in asked["options"]] == ["once", "attempt", "task", "always", "deny"]
    user.promptside("answer", "1", "P1", "--option", "always")
    user.promptside("run", "1", code=3)
    assert user.task()["waiting_for"]["kind"] == "gate"

    (rule,) = user.promptside("rules", "--json").data
    assert rule["rule"] == f"Bash({PYTEST})"
    new(user)
    user.promptside("run", "2", code=3)
    assert user.task(2)["waiting_for"]["kind"] == "gate"
    assert user.task(2)["decisions"] == []

    user.promptside("rules", "remove", str(rule["id"]))
    assert user.promptside("rules", "list", "--json").data == []


def test_st14_a_rule_that_was_removed_asks_again(user: User, api: MessagesAPI) -> None:
    api.add(short(user, runs_pytest(), say("They pass."), runs_pytest(), say("They pass again.")))
    new(user)
    user.promptside("run", "1", code=3)
    user.promptside("answer", "1", "P1", "--option", "always")
    user.promptside("run", "1", code=3)
    (rule,) = user.promptside("rules", "--json").data
    user.promptside("rules", "remove", str(rule["id"]))
    new(user)
    user.promptside("run", "2", code=3)
    assert user.task(2)["waiting_for"]["kind"] == "decision"


def test_st14_what_is_denied_does_not_run_and_the_agent_is_told_why(user: User, api: MessagesAPI) -> None:
    touch = use("Bash", command="python3 -c \"open('made.txt', 'w')\"", description="Make a file")
    api.add(short(user, touch, say("Then not.")))
    new(user)
    user.promptside("run", code=3)
    (asked,) = user.waits("decision")["decisions"]
    user.promptside("answer", "@", asked["id"], "--option", "deny", "--text", "Not in this project.")
    user.promptside("run", code=3)
    assert not (user.project / "made.txt").exists()
    assert "Not in this project." in api.requests[-1].last
    assert user.promptside("rules", "--json").data == []


def test_st14_unattended_a_command_is_denied_at_once_and_listed(user: User, api: MessagesAPI) -> None:
    user.commit_all()
    api.add(in_stage("research", say("Nothing.")), short(user, runs_pytest(), say("I could not.")))
    new(user)
    ran = user.promptside("run", "--on-ask", "deny", "--json", code=3)
    assert not any(line["event"] == "decision_waiting" for line in ran.lines)
    task = ran.lines[-1]["task"]
    assert task["waiting_for"]["kind"] == "gate"
    (denial,) = task["stages"][0]["attempts"][0]["denials"]
    assert (denial["tool"], denial["what"]) == ("Bash", PYTEST)
    assert denial["reason"]
    assert denial["reason"] in api.requests[-1].last


def test_st14_a_writing_stage_edits_its_tree_without_asking_and_asks_outside_of_it(
    user: User, api: MessagesAPI
) -> None:
    outside = user.home / "outside.txt"
    api.add(
        short(
            user,
            use("Write", file_path=str(user.project / "inside.txt"), content="in"),
            use("Write", file_path=str(outside), content="out"),
            say("Only one."),
            rules='["Edit(./**)", "Write(./**)"]',
        )
    )
    new(user)
    user.promptside("run", code=3)
    assert (user.project / "inside.txt").read_text() == "in"
    (asked,) = user.waits("decision")["decisions"]
    assert (asked["tool"], asked["what"]) == ("Write", str(outside))
    user.promptside("answer", "@", "P1", "--option", "deny")
    user.waits("gate")
    assert not outside.exists()


def test_st14_once_is_once(user: User, api: MessagesAPI) -> None:
    api.add(short(user, runs_pytest(), runs_pytest(), say("Twice.")))
    new(user)
    user.promptside("run", code=3)
    user.promptside("answer", "@", "P1", "--option", "once")
    user.promptside("run", code=3)
    assert [decision["id"] for decision in user.waits("decision")["decisions"]] == ["P2"]
    user.promptside("answer", "@", "P2", "--option", "once")
    user.waits("gate")
    lines = [json.loads(line) for line in user.transcript("work").splitlines()]
    assert sum(line["type"] == "control_request" for line in lines) == 2
