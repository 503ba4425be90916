"""The lines that we write to a Claude CLI: messages, answers, interrupts; and its questions as decisions.

Each function gives one whole line with its newline. A message carries a uuid made from the order that caused
it, so that sending it twice is one turn; the same answer twice is harmless (CLAUDE_CLI.md 0.1).
"""

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct

from promptside_daemon.world.claude.readings import Asked, Choice, PlanOffered


class DecisionOption(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    description: str = ""
    preview: str | None = None
    recommended: bool = False


class DecisionData(Struct, frozen=True, kw_only=True):
    """A question as the engine keeps it. `number` is its place in the call, by which it is answered."""

    number: int
    kind: Literal["one", "any", "text"]
    header: str
    text: str
    options: tuple[DecisionOption, ...]
    priority: int = 1
    required: bool = True
    other: bool = True


class Answered(Struct, frozen=True, kw_only=True):
    """A person's answer to one question: option ids, words of their own, or both."""

    chosen: tuple[str, ...] = ()
    other: str = ""


def user_message(text: str, *, order: str, command: bool = False) -> bytes:
    """A message to the agent; `order` names what caused it, and the attempt.

    The session remembers it over `--resume` (measured): a second attempt that sent the same order would get
    no turn at all.

    Unless it is meant as a `command` ("/compact"), it goes to the model as it is: no slash command in it is
    run and no `@file` is read. `client_composed` says so to newer versions (measured), a newline before the
    slash to older ones.
    """
    message: dict[str, Any] = {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "uuid": str(uuid5(_ORDERS, order)),
    }
    if not command:
        message["client_composed"] = True
        if text.startswith("/"):
            message["message"]["content"] = f"\n{text}"
    return _line(message)


def allow(request: str, tool_input: Mapping[str, Any]) -> bytes:
    """Let the tool run. The input really replaces the tool's own, so it must be given back."""
    return _answer(request, {"behavior": "allow", "updatedInput": dict(tool_input)})


def deny(request: str, message: str, *, interrupt: bool = False) -> bytes:
    """Don't let it run, and say why; with `interrupt` the turn ends too, which parks a question."""
    return _answer(request, {"behavior": "deny", "message": message, "interrupt": interrupt})


def answer_questions(asked: Asked, answers: Sequence[Answered]) -> bytes:
    """The person's answers, in the order of the questions.

    Several choices are one string with ", " between them: so the CLI knows the labels again (measured). Words
    of one's own stand as the answer itself; beside a single choice they are a note to it.
    """
    said: dict[str, str] = {}
    notes: dict[str, dict[str, str]] = {}
    for question, answer in zip(asked.questions, answers, strict=True):
        labels = [question.choices[_number(option)].label for option in answer.chosen]
        if question.several and answer.other:
            labels.append(answer.other)
        elif labels and answer.other:
            notes[question.question] = {"notes": answer.other}
        elif answer.other:
            labels = [answer.other]
        if labels:
            said[question.question] = ", ".join(labels)
    answered: dict[str, Any] = {**asked.input, "answers": said}
    if notes:
        answered["annotations"] = notes
    return allow(asked.request, answered)


def approve_plan(offered: PlanOffered) -> bytes:
    return allow(offered.request, offered.input)


def interrupt(order: str) -> bytes:
    """End the turn; the process lives and takes the next message."""
    return _line(
        {
            "type": "control_request",
            "request_id": str(uuid5(_ORDERS, order)),
            "request": {"subtype": "interrupt"},
        }
    )


def initialize(order: str, schema: Mapping[str, Any]) -> bytes:
    """The answer's form, when it is too large for the command line; goes before the first message."""
    request = {"subtype": "initialize", "jsonSchema": schema}
    return _line({"type": "control_request", "request_id": str(uuid5(_ORDERS, order)), "request": request})


def decisions(asked: Asked) -> tuple[DecisionData, ...]:
    """The questions of one call; an option that says "(Recommended)" is a recommended one."""
    return tuple(
        DecisionData(
            number=number,
            kind="text" if not question.choices else "any" if question.several else "one",
            header=question.header,
            text=question.question,
            options=tuple(_option(number, choice) for number, choice in enumerate(question.choices)),
        )
        for number, question in enumerate(asked.questions)
    )


_ORDERS = UUID("5f0d6c0e-5a43-4d1b-9a57-3c1f2a9e7b64")
_RECOMMENDED = re.compile(r"\s*\(recommended\)\s*$", re.IGNORECASE)


def _option(number: int, choice: Choice) -> DecisionOption:
    title = _RECOMMENDED.sub("", choice.label)
    return DecisionOption(
        id=_letter(number),
        title=title or choice.label,
        description=choice.description,
        preview=choice.preview,
        recommended=title != choice.label,
    )


def _letter(number: int) -> str:
    letters = string.ascii_uppercase
    return letters[number] if number < len(letters) else f"{_letter(number // 26 - 1)}{letters[number % 26]}"


def _number(letter: str) -> int:
    number = 0
    for character in letter:
        number = number * 26 + string.ascii_uppercase.index(character) + 1
    return number - 1


def _answer(request: str, response: dict[str, Any]) -> bytes:
    return _line(
        {
            "type": "control_response",
            "response": {"subtype": "success", "request_id": request, "response": response},
        }
    )


def _line(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode(message) + b"\n"
