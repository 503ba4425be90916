"""Documents of kind text: any Markdown, approved as it stands (UX 2.3)."""

from __future__ import annotations

from typing import Any

from promptside_protocol.forms.document import Lack, TextAnswers, TextDefinition
from promptside_protocol.forms.escape import block
from promptside_protocol.forms.grammar import Page, heading, prose
from promptside_protocol.forms.kind import Edit, Kind, Reading, unknown

SENTENCE = "Read it, and correct what you like. Then approve."


def _render(definition: TextDefinition) -> list[str]:
    return block(definition.body, 0)


def _read(_definition: TextDefinition, page: Page) -> Reading[TextAnswers]:
    start = 1 if (top := heading(page.lines[0])) and top[0] == 1 else 0
    while start < len(page.lines) and page.lines[start] in ("", f"> {SENTENCE}"):
        start += 1
    return Reading(answers=TextAnswers(), bodies={"": prose(page, start, len(page.lines))})


def _write(_definition: TextDefinition, _page: Page, _answers: TextAnswers) -> list[Edit]:
    return []


def _lacks(_definition: TextDefinition, _answers: TextAnswers) -> list[Lack]:
    return []


def _from_plain(_definition: TextDefinition, plain: dict[str, Any]) -> TextAnswers:
    for ref in plain:
        raise unknown("item", ref, [])
    return TextAnswers()


def _words(definition: TextDefinition, _bodies: dict[str, str], _answers: TextAnswers) -> str:
    return f"“{definition.title}” was approved as it stands."


KIND: Kind[TextDefinition, TextAnswers] = Kind(
    name="text",
    sentence=lambda _: SENTENCE,
    number=lambda _: None,
    ids=lambda _: [],
    render=_render,
    read=_read,
    write=_write,
    lacks=_lacks,
    from_plain=_from_plain,
    to_plain=lambda _: {},
    words=_words,
)
