"""What can go wrong between a client and the daemon, sorted by who must act.

`Refused` is the person's to mend, `Unreachable` and `TooOld` the set-up's, `Internal` ours.
"""

from __future__ import annotations

from msgspec import Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REFUSED = -32803
"""The number that LSP uses for a request that failed for a reason a person understands."""
PROTOCOL_MISMATCH = -32804
NOT_ALLOWED = -32805
"""The session belongs to an attempt: it may read its own task and nothing else (DA-13)."""


class Refusal(Struct, frozen=True, kw_only=True):
    """Why an order was not taken: a stable code, a sentence for people, and what to do instead."""

    code: str
    message: str
    hint: str = ""
    difference: str = ""
    """Where two documents disagree (M10, M11), as lines of a unified diff."""


class PromptsideError(Exception):
    """Any failure a client may see; `refusal` is what to show."""

    number = INTERNAL_ERROR

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Refused(PromptsideError):
    """The order is not possible now; nothing was changed."""

    number = REFUSED


class InvalidParams(PromptsideError):
    """The order is malformed; the message names the path in it."""

    number = INVALID_PARAMS


class UnknownMethod(PromptsideError):
    """The daemon doesn't know this order: it is older than the client."""

    number = METHOD_NOT_FOUND


class NotAllowed(PromptsideError):
    """This session is an attempt's, or another user's."""

    number = NOT_ALLOWED


class ProtocolMismatch(PromptsideError):
    """Client and daemon speak different protocols."""

    number = PROTOCOL_MISMATCH


class Internal(PromptsideError):
    """A fault of ours; the daemon lives on and its log has the traceback."""

    number = INTERNAL_ERROR


class Unreachable(PromptsideError):
    """The daemon is not there, can't be started, or went away before it answered."""


BY_NUMBER: dict[int, type[PromptsideError]] = {
    kind.number: kind
    for kind in (Refused, InvalidParams, UnknownMethod, NotAllowed, ProtocolMismatch, Internal)
}


def refused(code: str, message: str, hint: str = "", difference: str = "") -> Refused:
    """A `Refused` in one call, for the many places that need one."""
    return Refused(Refusal(code=code, message=message, hint=hint, difference=difference))
