"""A stage that is done again: by a person, because the answer did not fit, or not at all because nothing would help."""

import shutil
from typing import Any

from rig.messages_api import Failure, MessagesAPI, say, structured
from rig.short_pipeline import NAME, short
from rig.stages import in_stage
from rig.user import User

FIELDS = '{ type = "require_fields", fields = ["title"] }'
SCHEMA = """{ type = "object", required = ["title"], properties = { title = { type = "string", maxLength = 9 } } }"""


def test_st8_redo_resumes_the_conversation_with_the_words_of_the_person(user: User, api: MessagesAPI) -> None:
    api.add(in_stage("research", say("Long and winding."), say("Short.")))
    user.promptside("task", "new", "Look at it")
    user.promptside("run", code=3)
    user.promptside("redo", "-m", "Shorter, please.")
    user.promptside("run", code=3)
    first, second = user.stage("research")["attempts"]
    assert first["session"] == second["session"]
    assert second["resumed"]
    assert (first["n"], second["n"]) == (1, 2)
    said = api.requests[-1]
    assert "Long and winding." in said.everything
    assert said.last.endswith("Shorter, please.")
    artifact = user.project / user.stage("research")["artifact"]
    assert "Short." in artifact.read_text("utf-8")
    assert "Long and winding." in user.promptside("log", "--attempt", "1").out


def test_st8_redo_starts_fresh_where_the_conversation_is_gone_and_says_so(
    user: User, api: MessagesAPI
) -> None:
    api.add(in_stage("research", say("Long and winding."), say("Short.")))
    user.promptside("task", "new", "Look at it")
    user.promptside("run", code=3)
    shutil.rmtree(user.home / ".claude" / "projects")
    user.promptside("redo", "-m", "Shorter, please.")
    user.promptside("run", code=3)
    attempts = user.stage("research")["attempts"]
    assert [attempt["status"] for attempt in attempts] == ["done", "failed", "done"]
    assert attempts[0]["session"] != attempts[2]["session"]
    assert "started afresh" in attempts[2]["note"]
    prompt = api.requests[-1].first
    assert "Look at it" in prompt
    assert "Long and winding." in prompt
    assert "Shorter, please." in prompt


def test_st7_an_answer_that_does_not_fit_is_asked_for_once_more_and_then_shown_raw(
    user: User, api: MessagesAPI
) -> None:
    # Said in words instead of by the tool, nothing of it is checked by the CLI: the check is ours.
    api.add(
        short(
            user,
            say('{"title": 1}'),
            say('{"title": 1}'),
            say('{"title": 2}'),
            say('{"title": 2}'),
            output='"structured"',
            gate=FIELDS,
            schema=SCHEMA,
        )
    )
    user.promptside("task", "new", "Name it", "--pipeline", NAME)
    user.promptside("run", code=3)
    view = user.task()
    asked = [request.last for request in api.requests]
    assert any("title" in words and "1 is not of type" in words for words in asked[1:])
    form = (user.project / view["stages"][0]["artifact"]).read_text("utf-8")
    assert '"title": 2' in form
    assert "2 is not of type 'string'" in view["waiting_for"]["reason"]
    assert view["waiting_for"]["gate"]["lacks"]
    user.promptside("approve", code=4)


def test_st7_an_answer_that_fits_when_asked_again_is_a_form(user: User, api: MessagesAPI) -> None:
    api.add(
        short(
            user,
            say("I name it Rose."),
            say("Rose, as I said."),
            structured(title="Rose"),
            output='"structured"',
            gate=FIELDS,
            schema=SCHEMA,
        )
    )
    user.promptside("task", "new", "Name it", "--pipeline", NAME)
    user.promptside("run", code=3)
    gate: dict[str, Any] = user.waits("gate")["gate"]
    assert gate["type"] == "require_fields"
    assert gate["lacks"] == []
    assert "Rose" in (user.project / user.task()["stages"][0]["artifact"]).read_text("utf-8")


def test_a_refused_key_ends_the_stage_at_once_with_what_to_do(user: User, api: MessagesAPI) -> None:
    api.add(in_stage("research", Failure(401, "authentication_error", "invalid x-api-key")))
    user.promptside("task", "new", "Look at it")
    ran = user.promptside("run", code=1)
    # The CLI itself would try eleven times, for three minutes.
    assert len(api.requests) < 6
    (attempt,) = user.stage("research")["attempts"]
    assert attempt["status"] == "failed"
    assert attempt["hint"]
    assert attempt["error"] in ran.out + ran.err
    assert user.agents() == {}


def test_gate_approvals_take_effect_once(user: User, api: MessagesAPI) -> None:
    api.add(in_stage("research", say("Found.")), in_stage("high-level-approaches", say("Wait.")))
    user.promptside("task", "new", "Look at it")
    user.promptside("run", "--stage", code=3)
    shown = user.waits("gate")["gate"]["shown"]
    user.promptside("approve", "--shown", shown)
    refused = user.promptside("approve", "--shown", shown, "--json", code=4)
    assert refused.data["error"]["code"]
    assert user.stage("research")["status"] == "approved"
