"""Frames from bytes: whatever comes, in whatever pieces."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from promptside_protocol import errors, frames
from promptside_protocol.commands import Say
from promptside_protocol.frames import Failure, Framer, Malformed, Notification, Request, Response

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
raws = values.map(lambda value: Raw(msgspec.json.encode(value)))
ids = st.integers(0, 2**53) | texts
sendables = (
    st.builds(Request, id=ids, method=texts, params=raws)
    | st.builds(Notification, method=texts, params=raws)
    | st.builds(Response, id=ids, result=raws)
    | st.builds(
        Failure, id=ids | st.none(), error=st.builds(frames.Error, code=st.integers(-9, 9), message=texts)
    )
)


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def said(found: list[frames.Frame]) -> list[tuple[str, bytes]]:
    """Frames as something to compare: Raw compares by identity."""
    return [(type(frame).__name__, msgspec.json.encode(frame)) for frame in found]


@given(st.lists(sendables, max_size=6), st.lists(st.integers(0), max_size=8))
def test_frames_survive_any_split(sent: list[frames.Sendable], cuts: list[int]) -> None:
    framer = Framer()
    data = b"".join(frames.encode(frame) for frame in sent)
    found = [frame for piece in pieces_of(data, cuts) for frame in framer.feed(piece)]
    assert said(found) == said(list(sent))
    assert framer.end() == []


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([b"\n", b"{", b'{"jsonrpc":"2.0","id":1,', b"[1]\n"]),
        max_size=9,
    ),
    st.lists(st.integers(0), max_size=8),
)
def test_any_bytes_become_frames_and_the_split_does_not_matter(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    framer = Framer(limit=64)
    found = [frame for piece in pieces_of(data, cuts) for frame in framer.feed(piece)]
    assert said(found) == said(Framer(limit=64).feed(data))
    # What comes after the next newline is read as if nothing had been.
    assert isinstance(framer.feed(b'\n{"jsonrpc":"2.0","method":"m"}\n')[-1], Notification)


@pytest.mark.parametrize(
    ("line", "number", "words"),
    [
        (b"hello", errors.PARSE_ERROR, "not JSON"),
        (b"\xff\xfe", errors.PARSE_ERROR, "not JSON"),
        (b'{"jsonrpc":"2.0","method":"\xff"}', errors.PARSE_ERROR, "not JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 99_999, errors.PARSE_ERROR, "too deeply"),
        (b"[]", errors.INVALID_REQUEST, "array"),
        (b' [{"jsonrpc":"2.0","id":1,"method":"m"}]', errors.INVALID_REQUEST, "array"),
        (b'"text"', errors.INVALID_REQUEST, "no JSON-RPC 2.0"),
        (b'{"id":1,"method":"m"}', errors.INVALID_REQUEST, "jsonrpc"),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', errors.INVALID_REQUEST, "jsonrpc"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', errors.INVALID_REQUEST, "id"),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', errors.INVALID_REQUEST, "id"),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', errors.INVALID_REQUEST, "neither"),
        (b'{"jsonrpc":"2.0","id":1}', errors.INVALID_REQUEST, "neither"),
        (b'{"jsonrpc":"2.0","result":1}', errors.INVALID_REQUEST, "neither"),
    ],
)
def test_what_is_no_frame_is_told_with_a_number_and_a_sentence(line: bytes, number: int, words: str) -> None:
    (frame,) = Framer().feed(line + b"\n")
    assert isinstance(frame, Malformed)
    assert frame.number == number
    assert words in frame.sentence


def test_a_line_of_several_megabytes_in_small_pieces() -> None:
    text = "x" * 5_000_000
    data = frames.encode(frames.request(1, Say(project="/p", task=1, text=text)))
    framer = Framer()
    found = [
        frame for start in range(0, len(data), 65_536) for frame in framer.feed(data[start : start + 65_536])
    ]
    (frame,) = found
    assert isinstance(frame, Request)
    assert msgspec.json.decode(frame.params, type=Say).text == text


def test_a_line_over_the_limit_is_told_once_and_passed_over_and_the_next_is_read() -> None:
    framer = Framer(limit=1000)
    found = [frame for _ in range(50) for frame in framer.feed(b"x" * 100)]
    assert [type(frame) for frame in found] == [Malformed]
    assert "1,000 bytes" in found[0].sentence  # type: ignore[union-attr]  # the line above says which
    assert framer.feed(b"the rest") == []
    (frame,) = framer.feed(b'\n{"jsonrpc":"2.0","method":"m","params":{}}\n')
    assert isinstance(frame, Notification)


def test_what_the_other_side_would_not_take_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "LINE_BYTES", 1000)
    with pytest.raises(errors.Refused, match="1,000") as caught:
        frames.encode(frames.request(1, Say(project="/p", task=1, text="x" * 1000)))
    assert caught.value.refusal.code == "too-long"


def test_text_that_is_not_unicode_is_refused_before_it_is_sent() -> None:
    with pytest.raises(errors.InvalidParams, match="Unicode"):
        frames.request(1, Say(project="/home/\udcff", task=1, text="x"))


def test_only_a_newline_ends_a_line() -> None:
    text = "a\u2028b\x0b\x0c\x1c\u0085"
    line = frames.encode(frames.request(1, Say(project="/p", task=1, text=text)))
    (frame,) = Framer().feed(b"\r\n\n  \n" + line.replace(b"\n", b"\r\n"))
    assert isinstance(frame, Request)
    assert msgspec.json.decode(frame.params, type=Say).text == text


def test_half_a_line_at_the_end_is_told() -> None:
    framer = Framer()
    assert framer.feed(b'{"jsonrpc"') == []
    assert [type(frame) for frame in framer.end()] == [Malformed]
    assert framer.end() == []


@pytest.mark.parametrize("kind", errors.BY_NUMBER.values())
def test_an_error_is_the_same_on_the_other_side(kind: type[errors.PromptsideError]) -> None:
    error = kind(errors.Refusal(code="c", message="m", hint="h", difference="d"))
    (frame,) = Framer().feed(frames.encode(frames.failure("id", error)))
    assert isinstance(frame, Failure)
    back = frames.error_of(frame)
    assert type(back) is kind
    assert back.refusal == error.refusal


def test_an_error_of_a_newer_daemon_is_told_with_its_message() -> None:
    frame = Failure(id=1, error=frames.Error(code=-1, message="Out of oil."))
    assert str(frames.error_of(frame)) == "Out of oil."
    assert type(frames.error_of(frame)) is errors.Internal
