"""A person goes on with the agent's conversation in their terminal, and gives it back; the real program (ED-14)."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig.messages_api import Hold, MessagesAPI, Reply, Text, say
from rig.person import Person
from rig.stages import in_stage
from rig.user import User

PROMPTSIDE = (sys.executable, "-m", "promptside_cli")


@pytest.fixture
def at_terminal(user: User) -> Iterator[list[Person]]:
    """Terminals that a test opens; closed at its end."""
    opened: list[Person] = []
    yield opened
    for one in opened:
        one.close()


@pytest.fixture
def settled_in(user: User) -> None:
    """The person has used the agent's program in this folder before: it asks nothing at its start.

    Written before an agent is started: one that runs reads this file, and writes it anew with what it has read.
    """
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy-key"], "rejected": []},
        "projects": {str(user.project): {"hasTrustDialogAccepted": True}},
    }
    (user.home / ".claude.json").write_text(json.dumps(known))


def take_over(user: User, opened: list[Person]) -> Person:
    person = Person([*PROMPTSIDE, "take-over", "1"], user.project, {**user.environment, "TERM": "xterm"})
    opened.append(person)
    person.sees("❯")
    return person


def test_ed14_a_conversation_is_gone_on_with_in_a_terminal_and_given_back(
    user: User, settled_in: None, api: MessagesAPI, at_terminal: list[Person]
) -> None:
    hold = Hold()
    agreed = Reply((Text("", hold, "Agreed."),))
    api.add(in_stage("research", say("Long."), agreed, say("Short."), say("Shorter.")))
    user.commit_all()
    user.promptside("task", "new", "Look at it")
    user.promptside("run", code=3)
    document = user.waits("gate")["document"]

    person = take_over(user, at_terminal)
    person.types("Leave the tables out.")
    person.sees("tables")
    person.types("\r")
    hold.wait_until_reached()
    (user.project / "notes.txt").write_text("mine\n")
    refused = user.promptside("redo", "-m", "Shorter.", code=4)
    assert "You work on it in a terminal since " in refused.err
    assert "It is still open" in user.promptside("give-back", "1", code=4).err
    view = user.task()
    assert [offer["title"] for offer in view["offers"]] == ["Give back to the agent"]
    assert "You work on it in a terminal since " in user.promptside("task", "show", "1").out
    hold.release()
    person.sees("Agreed")
    person.types("/exit")
    person.sees("/exit")
    person.types("\r")
    assert person.leaves() == 0

    (attempt,) = user.stage("research")["attempts"]
    (work,) = attempt["terminals"]
    assert work["session"] == attempt["session"]
    assert [change["path"] for change in work["changes"]] == ["notes.txt"]
    assert "Leave the tables out." in Path(work["transcript"]).read_text("utf-8")
    assert user.waits("gate")["document"] == document

    user.promptside("redo", "-m", "As we said.")
    user.promptside("run", code=3)
    second = user.stage("research")["attempts"][1]
    assert (second["session"], second["resumed"]) == (attempt["session"], True)
    assert "Leave the tables out." in api.requests[-1].everything
    assert "As we said." in api.requests[-1].everything

    # A terminal that was killed holds the task until somebody gives it back, whatever happens to the daemon.
    person = take_over(user, at_terminal)
    here = [pid for pid, words in user.processes().items() if "take-over" in words or "--resume=" in words]
    assert len(here) == 2
    user.kill(*here)
    user.promptside("daemon", "stop")
    assert "You work on it in a terminal" in user.task()["terminal"]["words"]
    user.promptside("give-back", "1")
    user.waits("gate")
    user.promptside("task", "abandon", "1")


def test_ed14_a_running_agent_is_paused_and_a_closed_terminal_gives_back_by_itself(
    user: User, settled_in: None, api: MessagesAPI, at_terminal: list[Person]
) -> None:
    hold = Hold()
    api.add(in_stage("research", Reply((Text("I look ", hold, "around."),)), say("Done."), say("Done.")))
    user.promptside("task", "new", "Look at it")
    user.promptside("run", "--detach")
    hold.wait_until_reached()
    user.until(lambda view: view["stages"][0]["attempts"][0]["session"])
    person = take_over(user, at_terminal)
    assert user.agents() == {}
    session = user.stage("research")["attempts"][0]["session"]
    person.process.send_signal(signal.SIGHUP)
    person.leaves()
    view = user.task()
    assert (view["state"], view["terminal"]) == ("paused", None)
    hold.release()
    user.promptside("resume", "1")
    user.waits("gate")
    assert [a["session"] for a in user.stage("research")["attempts"]] == [session, session]


def test_ed14_what_has_no_terminal_or_no_session_takes_nothing_over(user: User) -> None:
    user.promptside("task", "new", "Look at it", "--agent", "rehearsal-fast:standard")
    refused = user.promptside("take-over", "1", code=4)
    assert "needs a terminal of its own" in refused.err
    user.promptside("run", code=3)
    (offer,) = [o for o in user.task()["offers"] if o["command"] == "promptside.takeOver"]
    assert (offer["hint"], offer["blocked"]) == (
        "promptside take-over 1",
        "A rehearsal has no session to continue.",
    )
