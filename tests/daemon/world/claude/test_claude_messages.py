"""The lines that we write to the CLI."""

from typing import Any

import msgspec
import pytest

from promptside_daemon.world.claude import messages
from promptside_daemon.world.claude.messages import Answered
from promptside_daemon.world.claude.reader import Reader, questions_of
from promptside_daemon.world.claude.readings import Asked

COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [
        {"label": "Red", "description": "warm"},
        {"label": "Blue (Recommended)", "description": "calm", "preview": "#00f"},
    ],
}
ROUTES = {
    "question": "Which routes?",
    "header": "Routes",
    "multiSelect": True,
    "options": [{"label": f"/{name}", "description": ""} for name in "abc"],
}


def asked(*questions: dict[str, Any]) -> Asked:
    tool_input = {"questions": list(questions)}
    return Asked(at=1, request="r", tool_use="t", questions=questions_of(tool_input), input=tool_input)


def line(raw: bytes) -> dict[str, Any]:
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    return dict(msgspec.json.decode(raw))


def answers(question: Asked, *given: Answered) -> dict[str, Any]:
    response = line(messages.answer_questions(question, given))["response"]
    assert response["request_id"] == "r"
    assert response["response"]["behavior"] == "allow"
    return dict(response["response"]["updatedInput"])


def test_the_same_order_is_the_same_message() -> None:
    first = line(messages.user_message("a\nb", order="attempt 7 order 1"))
    assert first["message"] == {"role": "user", "content": "a\nb"}
    assert first["uuid"] == line(messages.user_message("a\nb", order="attempt 7 order 1"))["uuid"]
    assert first["uuid"] != line(messages.user_message("a\nb", order="attempt 8 order 1"))["uuid"]


def test_what_a_person_wrote_is_never_a_command_of_the_cli() -> None:
    sent = line(messages.user_message("/compact now", order="1"))
    assert sent["client_composed"] is True
    assert sent["message"]["content"] == "\n/compact now"
    ordered = line(messages.user_message("/compact", order="1", command=True))
    assert "client_composed" not in ordered
    assert ordered["message"]["content"] == "/compact"


def test_allow_gives_the_input_back_and_deny_says_why() -> None:
    assert line(messages.allow("r", {"command": "make"})) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "request_id": "r",
            "response": {"behavior": "allow", "updatedInput": {"command": "make"}},
        },
    }
    parked = line(messages.deny("r", "Parked.", interrupt=True))["response"]["response"]
    assert parked == {"behavior": "deny", "message": "Parked.", "interrupt": True}
    assert line(messages.interrupt("o"))["request"] == {"subtype": "interrupt"}


def test_an_answer_names_the_label_as_the_agent_wrote_it() -> None:
    assert answers(asked(COLOUR), Answered(chosen=("B",)))["answers"] == {
        "Which colour?": "Blue (Recommended)"
    }


def test_several_choices_are_one_string() -> None:
    given = answers(asked(COLOUR, ROUTES), Answered(chosen=("A",)), Answered(chosen=("A", "C")))
    assert given["answers"] == {"Which colour?": "Red", "Which routes?": "/a, /c"}
    assert given["questions"] == [COLOUR, ROUTES]


def test_words_of_ones_own_are_the_answer_or_stand_beside_it() -> None:
    assert answers(asked(COLOUR), Answered(other="green"))["answers"] == {"Which colour?": "green"}
    noted = answers(asked(COLOUR), Answered(chosen=("A",), other="but dark"))
    assert noted["answers"] == {"Which colour?": "Red"}
    assert noted["annotations"] == {"Which colour?": {"notes": "but dark"}}
    added = answers(asked(ROUTES), Answered(chosen=("A",), other="/d"))
    assert added["answers"] == {"Which routes?": "/a, /d"}
    assert "answers" in answers(asked(COLOUR), Answered())


def test_an_answer_for_each_question_or_none_is_sent() -> None:
    with pytest.raises(ValueError, match="zip"):
        messages.answer_questions(asked(COLOUR, ROUTES), [Answered(chosen=("A",))])


def test_cw_4_a_question_becomes_a_decision() -> None:
    one, several = messages.decisions(asked(COLOUR, ROUTES))
    assert (one.kind, several.kind) == ("one", "any")
    assert [(option.id, option.title, option.recommended) for option in one.options] == [
        ("A", "Red", False),
        ("B", "Blue", True),
    ]
    assert one.options[1].preview == "#00f"
    assert (one.priority, one.required, one.other) == (1, True, True)
    (free,) = messages.decisions(asked({"question": "What else?"}))
    assert (free.kind, free.options) == ("text", ())


def test_more_options_than_letters() -> None:
    many = {**ROUTES, "options": [{"label": f"o{number}"} for number in range(30)]}
    (decision,) = messages.decisions(asked(many))
    assert [option.id for option in decision.options[25:28]] == ["Z", "AA", "AB"]
    assert answers(asked(many), Answered(chosen=("AB",)))["answers"] == {"Which routes?": "o27"}


def test_a_recorded_answer_has_the_shape_that_the_cli_took(transcripts: dict[str, Any]) -> None:
    reader = Reader()
    readings = [r for raw, at in transcripts["123-ask-user-question"].lines for r in reader.read(raw, at)]
    (question,) = (reading for reading in readings if isinstance(reading, Asked))
    sent = line(messages.answer_questions(question, [Answered(chosen=("B",))]))
    assert sent["response"]["response"]["updatedInput"] == {
        **question.input,
        "answers": {"Which color?": "Blue"},
    }
