"""Lines of bytes from and to frames of JSON-RPC 2.0; it reads and writes nothing itself.

Whatever bytes come, in whatever pieces, become frames: what can't be read is a `Malformed`, not an exception.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from promptside_protocol import errors

LINE_BYTES = 64 * 1024 * 1024
"""The longest line that is sent or taken, without its end."""

Id = int | str


class Request(Struct, frozen=True, kw_only=True):
    """An order or a question; it is answered by a `Response` or a `Failure` with the same id."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: Id
    method: str
    params: Raw


class Notification(Struct, frozen=True, kw_only=True):
    """A word that nobody answers."""

    jsonrpc: Literal["2.0"] = "2.0"
    method: str
    params: Raw


class Response(Struct, frozen=True, kw_only=True):
    """The answer to a request."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: Id
    result: Raw


class Error(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request failed; `data` is what a person is told."""

    code: int
    message: str
    data: errors.Refusal | None = None


class Failure(Struct, frozen=True, kw_only=True):
    """A request that failed; without an id where the request's could not be read."""

    jsonrpc: Literal["2.0"] = "2.0"
    id: Id | None
    error: Error


class Malformed(Struct, frozen=True, kw_only=True):
    """A line that is no frame: the number and the sentence to answer it with."""

    number: int
    sentence: str


Frame = Request | Notification | Response | Failure | Malformed
Sendable = Request | Notification | Response | Failure


class Framer:
    """Collects pieces of bytes until lines are whole; only a newline ends a line.

    Memory holds at most one unfinished line; one that is longer than `limit` is told once and passed over.
    """

    def __init__(self, limit: int = LINE_BYTES) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._held = 0
        self._passing_over = False

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete."""
        frames: list[Frame] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            frames += self._hold(end)
            line = b"".join(self._pieces)
            self._forget()
            if self._passing_over:
                self._passing_over = False
            elif line.strip():
                frames.append(decode(line))
        return frames + self._hold(rest)

    def end(self) -> list[Frame]:
        """What is to be said of a half line when no more bytes will come."""
        half = self._held > 0
        self._forget()
        return [_malformed(errors.PARSE_ERROR, "The last line has no end.")] if half else []

    def _hold(self, piece: bytes) -> list[Frame]:
        if self._passing_over or not piece:
            return []
        if self._held + len(piece) > self._limit:
            self._forget()
            self._passing_over = True
            sentence = f"A line is longer than {self._limit:,} bytes, which is more than is taken."
            return [_malformed(errors.INVALID_REQUEST, sentence)]
        self._pieces.append(piece)
        self._held += len(piece)
        return []

    def _forget(self) -> None:
        self._pieces.clear()
        self._held = 0


def encode(frame: Sendable) -> bytes:
    """One line; refused if the other side would not take it."""
    line = msgspec.json.encode(frame)
    if len(line) > LINE_BYTES:
        raise errors.refused(
            "too-long",
            f"This takes {len(line):,} bytes; more than {LINE_BYTES:,} are not sent at once.",
            "Put it into a file and name the file.",
        )
    return line + b"\n"


def decode(line: bytes) -> Frame:
    """The frame that one line holds."""
    try:
        envelope = _DECODER.decode(line)
    except msgspec.ValidationError as error:
        if line.lstrip().startswith(b"["):
            sentence = "Several requests in one array are not taken; send each on a line of its own."
            return _malformed(errors.INVALID_REQUEST, sentence)
        return _malformed(errors.INVALID_REQUEST, f"The line is no JSON-RPC 2.0 message: {error}.")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _malformed(errors.PARSE_ERROR, f"The line is not JSON: {error}.")
    except RecursionError:
        return _malformed(errors.PARSE_ERROR, "The line is nested too deeply to be read.")
    return _frame(envelope)


def failure(identity: Id | None, error: errors.PromptsideError) -> Failure:
    """The frame that tells of an error."""
    refusal = error.refusal
    return Failure(id=identity, error=Error(code=error.number, message=refusal.message, data=refusal))


def error_of(frame: Failure) -> errors.PromptsideError:
    """The error that a frame tells of; a number of a newer daemon is an `Internal`."""
    kind = errors.BY_NUMBER.get(frame.error.code, errors.Internal)
    return kind(frame.error.data or errors.Refusal(code="unknown", message=frame.error.message))


def request(identity: Id, order: Struct) -> Request:
    """The frame of an order or a question; its tag is the method."""
    try:
        params = msgspec.json.encode(order)
    except UnicodeEncodeError as error:
        sentence = "A path or a text in this order is not valid Unicode, so it can't be sent."
        raise errors.InvalidParams(errors.Refusal(code="not-unicode", message=sentence)) from error
    return Request(id=identity, method=method_of(order), params=Raw(params))


def notification(notice: Struct) -> Notification:
    """The frame of a notice; its tag is the method."""
    return Notification(method=method_of(notice), params=Raw(msgspec.json.encode(notice)))


def response(identity: Id, answer: Any) -> Response:
    """The frame of an answer."""
    return Response(id=identity, result=Raw(msgspec.json.encode(answer)))


def method_of(message: Struct) -> str:
    """The method of a command, query or notice on the wire."""
    return str(message.__struct_config__.tag)


class _Envelope(Struct):
    jsonrpc: Literal["2.0"]
    id: Id | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = Raw(b"{}")
    result: Raw | UnsetType = UNSET
    error: Error | UnsetType = UNSET


_DECODER = msgspec.json.Decoder(_Envelope)


def _frame(envelope: _Envelope) -> Frame:
    identity, method = envelope.id, envelope.method
    if method is not UNSET:
        if identity is UNSET:
            return Notification(method=method, params=envelope.params)
        if identity is not None:
            return Request(id=identity, method=method, params=envelope.params)
    elif envelope.error is not UNSET:
        return Failure(id=None if identity is UNSET else identity, error=envelope.error)
    elif envelope.result is not UNSET and identity is not UNSET and identity is not None:
        return Response(id=identity, result=envelope.result)
    return _malformed(errors.INVALID_REQUEST, "The line is neither a request, a notification nor an answer.")


def _malformed(number: int, sentence: str) -> Malformed:
    return Malformed(number=number, sentence=sentence)
