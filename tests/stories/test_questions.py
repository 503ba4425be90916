"""A question of the agent waits for a person, wherever they are, however long it takes, and whatever dies."""

import json
from typing import Any

from rig.messages_api import Hold, MessagesAPI, Reply, Text, Use, say, use
from rig.stages import in_stage
from rig.user import User

QUESTION: dict[str, Any] = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [
        {"label": "Red", "description": "As it was."},
        {"label": "Blue (Recommended)", "description": "As it should be."},
    ],
}


def asks() -> Reply:
    """A message that asks the person."""
    return use("AskUserQuestion", "One thing is not clear.", questions=[QUESTION])


def ask(user: User, api: MessagesAPI, *after: Reply) -> None:
    """A task whose research asks, and waits."""
    api.add(in_stage("research", asks(), *(after or (say("Then blue."),))))
    user.promptside("task", "new", "Paint it")
    assert user.promptside("run", code=3).code == 3


def test_cw4_a_question_is_required_takes_other_and_has_its_recommended_option(
    user: User, api: MessagesAPI
) -> None:
    ask(user, api)
    (decision,) = user.waits("decision")["decisions"]
    assert (decision["id"], decision["kind"], decision["text"]) == ("Q1", "one", "Which colour?")
    assert (decision["required"], decision["priority"], decision["other"]) == (True, 1, True)
    options = [(option["title"], option["recommended"]) for option in decision["options"]]
    assert options == [("Red", False), ("Blue", True)]


def test_cw3_a_question_is_answered_from_another_terminal_while_the_first_one_follows(
    user: User, api: MessagesAPI
) -> None:
    api.add(in_stage("research", asks(), say("Then red.")))
    user.promptside("task", "new", "Paint it")
    user.promptside("run", "--detach")
    with user.start("log", "1", "--follow", "--json") as first:
        user.waits("decision")
        user.promptside("answer", "@", "Q1", "--option", "A")
        ended = first.until(lambda line: line["event"] == "end")
        assert ended["exit"] == 0
    user.waits("gate")
    assert '"Which colour?"="Red"' in api.requests[-1].everything
    assert user.stage("research")["status"] == "waiting"


def test_cw3_an_answer_can_be_given_once(user: User, api: MessagesAPI) -> None:
    ask(user, api)
    user.promptside("answer", "@", "Q1", "--text", "Green, please.")
    refused = user.promptside("answer", "@", "Q1", "--recommended", "--json", code=4)
    assert refused.data["error"]["message"]
    user.waits("gate")
    assert '"Which colour?"="Green, please."' in api.requests[-1].everything
    (decision,) = user.promptside("decision", "list", "@", "--json").data
    assert (decision["status"], decision["answer"]) == ("answered", "Green, please.")


def test_da3_a_question_survives_the_daemon(user: User, api: MessagesAPI) -> None:
    ask(user, api)
    agents = user.agents()
    user.kill(user.daemon())
    assert user.agents() == agents
    waiting = user.waits("decision")
    assert [decision["id"] for decision in waiting["decisions"]] == ["Q1"]
    user.promptside("answer", "@", "Q1", "--recommended")
    user.waits("gate")
    assert '"Which colour?"="Blue (Recommended)"' in api.requests[-1].everything
    assert len(user.stage("research")["attempts"]) == 1


def test_a_question_that_waits_long_is_parked_and_its_answer_resumes_the_session(
    user: User, api: MessagesAPI
) -> None:
    (user.data / "config").mkdir(parents=True)
    (user.data / "config" / "config.toml").write_text("[limits]\npark_s = 1\n")
    ask(user, api, say("Then blue."))
    user.until(lambda task: task["stages"][0]["attempts"][-1]["status"] == "parked")
    assert user.agents() == {}
    assert user.waits("decision")["decisions"][0]["status"] == "parked"
    user.promptside("answer", "@", "Q1", "--recommended")
    user.waits("gate")
    sessions = {attempt["session"] for attempt in user.stage("research")["attempts"]}
    assert len(sessions) == 1
    assert "Which colour?" in api.requests[-1].last
    assert "Blue" in api.requests[-1].last


def test_ga11_what_a_person_says_interrupts_the_agent_and_reaches_it(user: User, api: MessagesAPI) -> None:
    hold = Hold()
    api.add(
        in_stage("research", Reply((Text("I go left, ", hold, "and left."),)), say("Right it is.")),
    )
    user.promptside("task", "new", "Find the way")
    user.promptside("run", "--detach")
    hold.wait_until_reached()
    user.promptside("say", "@", "go", "right")
    user.waits("gate")
    assert api.requests[-1].last.endswith("go right")
    (attempt,) = user.stage("research")["attempts"]
    assert attempt["status"] == "done"


def test_st14_unattended_nothing_waits_and_what_was_denied_is_listed(user: User, api: MessagesAPI) -> None:
    user.commit_all()
    api.add(
        in_stage("research", use("AskUserQuestion", questions=[QUESTION]), say("I took blue.")),
    )
    user.promptside("task", "new", "Paint it")
    ran = user.promptside("run", "--on-ask", "deny", "--json", code=3)
    assert ran.lines[-1]["task"]["waiting_for"]["kind"] == "gate"
    lines = [json.loads(line) for line in user.transcript("research").splitlines()]
    assert not any(line["type"] == "control_request" for line in lines)
    init = next(line for line in lines if line.get("subtype") == "init")
    assert init["permissionMode"] == "dontAsk"
    assert "AskUserQuestion" not in init["tools"]


def test_several_questions_of_one_call_are_answered_together(user: User, api: MessagesAPI) -> None:
    second = {**QUESTION, "question": "Which rooms?", "header": "Rooms", "multiSelect": True}
    api.add(
        in_stage(
            "research",
            Reply((Use("AskUserQuestion", {"questions": [QUESTION, second]}),)),
            say("Both are clear."),
        )
    )
    user.promptside("task", "new", "Paint it")
    user.promptside("run", code=3)
    user.promptside("answer", "@", "Q1", "--option", "B")
    assert [d["id"] for d in user.waits("decision")["decisions"]] == ["Q2"]
    user.promptside("answer", "@", "Q2", "--option", "A", "--option", "B")
    user.waits("gate")
    said = api.requests[-1].everything
    assert '"Which colour?"="Blue (Recommended)"' in said
    assert '"Which rooms?"="Red, Blue (Recommended)"' in said
