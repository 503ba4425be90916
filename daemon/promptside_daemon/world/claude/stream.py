"""A line of a transcript as bytes -> a typed line; no byte sequence makes it raise.

The order of keys is arbitrary and lines can be megabytes (CLAUDE_CLI.md 1), so the kind is decoded first and
the body second. What is not known is kept as `Unknown`, what is no JSON at all as `Unreadable`.
"""

import contextlib
import re
from typing import Any

import msgspec
from msgspec import Struct

from promptside_daemon.world.claude.lines import (
    ApiRetry,
    Assistant,
    CompactBoundary,
    ControlCancel,
    ControlRequest,
    Informational,
    Init,
    Known,
    Line,
    ModelFallback,
    PermissionDenied,
    RateLimit,
    Result,
    Status,
    StreamEvent,
    Unknown,
    Unreadable,
    User,
)


def decode(line: bytes) -> Line:
    """One line of a transcript, without its newline; never raises."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError:
        return Unknown(kind="nested too deep")
    try:
        return _decode(_LONE_SURROGATE.sub(_mended, line.decode(errors="replace").encode()))
    except msgspec.DecodeError:
        return Unreadable(start=line[:200], torn=line.startswith(b"{"))
    except RecursionError:
        return Unknown(kind="nested too deep")


class _Kind(Struct, frozen=True):
    type: str
    subtype: str | None = None


class _Subtype(Struct, frozen=True):
    subtype: str


class _RequestKind(Struct, frozen=True):
    request: _Subtype


_BODIES: dict[str, type[Known]] = {
    "system/init": Init,
    "system/status": Status,
    "system/api_retry": ApiRetry,
    "system/model_fallback": ModelFallback,
    "system/compact_boundary": CompactBoundary,
    "system/permission_denied": PermissionDenied,
    "system/informational": Informational,
    "assistant": Assistant,
    "user": User,
    "stream_event": StreamEvent,
    "rate_limit_event": RateLimit,
    "result": Result,
    "control_request/can_use_tool": ControlRequest,
    "control_cancel_request": ControlCancel,
}
_KIND = msgspec.json.Decoder(_Kind)
_REQUEST_KIND = msgspec.json.Decoder(_RequestKind)
_DECODERS: dict[str, msgspec.json.Decoder[Known]] = {
    kind: msgspec.json.Decoder(body) for kind, body in _BODIES.items()
}


def _decode(line: bytes) -> Line:
    try:
        head = _KIND.decode(line)
    except msgspec.ValidationError:
        return _untyped(line)
    match head.type:
        case "system":
            kind = f"system/{head.subtype}"
        case "control_request":
            kind = f"control_request/{_request_kind(line)}"
        case other:
            kind = other
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return Unknown(kind=kind)
    try:
        return decoder.decode(line)
    except msgspec.ValidationError:
        return _field_by_field(kind, line)


def _untyped(line: bytes) -> Line:
    # The kind was missed before the end of the line was seen: only the whole line tells whether it is JSON.
    with contextlib.suppress(msgspec.ValidationError):  # a number out of range: JSON all the same
        msgspec.json.decode(line)
    return Unknown(kind="untyped")


def _field_by_field(kind: str, line: bytes) -> Line:
    """A known kind of which a field has changed its shape: that field gets its default, the rest holds.

    A result must not be missed because one of its figures became an object.
    """
    body = _BODIES[kind]
    try:
        raw = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.ValidationError:
        return Unknown(kind=kind)
    fields: dict[str, Any] = {}
    for known in msgspec.structs.fields(body):
        if known.encode_name in raw:
            try:
                fields[known.name] = msgspec.convert(raw[known.encode_name], known.type)
            except msgspec.ValidationError:
                continue
    try:
        return body(**fields)
    except TypeError:  # a required one is missing or misshapen
        return Unknown(kind=kind)


def _request_kind(line: bytes) -> str:
    try:
        return _REQUEST_KIND.decode(line).request.subtype
    except msgspec.ValidationError:
        return "untyped"


# Text that was cut between the halves of a pair reaches us as one half, which strict JSON readers refuse.
# Every escape is consumed whole, so that a backslash written as text is never taken for the start of one.
_LONE_SURROGATE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)",
    re.DOTALL,
)


def _mended(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if len(escape[0]) == 6 else escape[0]
