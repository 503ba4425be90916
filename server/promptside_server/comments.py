"""Comments on lines that go with an order, put into its words to the agent (ED-12)."""

from __future__ import annotations

from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from promptside_protocol.comments import LineComment, feedback

WORDS = {"redo": "feedback", "interrupt": "text", "run": "input", "goBack": "reason", "deny": "text"}
"""By command: where its words to the agent stand."""


def with_comments(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command with its comments as words."""
    if name not in WORDS or "comments" not in given:
        return given
    try:
        comments = msgspec.convert(given["comments"], tuple[LineComment, ...])
    except msgspec.ValidationError as error:
        raise JsonRpcInvalidParams(f"promptside.{name}: comments: {error}.") from error
    rest = {key: value for key, value in given.items() if key != "comments"}
    said = feedback(str(given.get(WORDS[name]) or ""), comments)
    return {**rest, WORDS[name]: said} if said else rest
