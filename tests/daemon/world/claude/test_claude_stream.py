"""Decoding of transcript lines: nothing raises, nothing known is missed."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.world.claude import lines
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.rendering import Renderer
from promptside_daemon.world.claude.stream import decode

KINDS = [
    "assistant",
    "user",
    "result",
    "stream_event",
    "rate_limit_event",
    "control_request",
    "system",
    "new",
]
names = st.sampled_from(
    [
        "message",
        "event",
        "subtype",
        "request",
        "request_id",
        "content",
        "usage",
        "is_error",
        "errors",
        "type",
        "id",
    ]
)
scalars = st.sampled_from(
    [None, True, False, 0, -1, 2**62, 0.5, 1e300, "", "text", "tool_use", "\x1b[31m", "ü"]
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.binary())
def test_no_bytes_make_it_raise(line: bytes) -> None:
    decode(line)
    Reader().read(line, len(line))
    Renderer().render(line, len(line))


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.dictionaries(names, json_values, max_size=5))
def test_no_shape_of_a_known_kind_makes_it_raise(kind: str, body: dict[str, object]) -> None:
    line = msgspec.json.encode({**body, "type": kind})
    assert not isinstance(decode(line), lines.Unreadable)
    Reader().read(line, len(line))
    Renderer().render(line, len(line))


@settings(deadline=None)
@given(st.data())
def test_a_line_cut_anywhere_is_torn_never_half_read(data: st.DataObject) -> None:
    line = b'{"type":"result","is_error":false,"result":"done","terminal_reason":"completed"}'
    cut = data.draw(st.integers(1, len(line) - 1))
    assert decode(line[:cut]) == lines.Unreadable(start=line[:cut], torn=True)
    glued = line[:cut] + line
    assert decode(glued) == lines.Unreadable(start=glued[:200], torn=True)


def test_keys_stand_in_any_order_and_unknown_ones_are_ignored() -> None:
    decoded = decode(
        b'{"duration_api_ms":5,"novel":{"a":[1]},"is_error":true,"type":"result","subtype":"success"}'
    )
    assert isinstance(decoded, lines.Result)
    assert decoded.is_error


def test_a_result_with_a_field_of_another_shape_is_still_a_result() -> None:
    decoded = decode(b'{"type":"result","is_error":true,"usage":[1],"errors":null,"total_cost_usd":0.5}')
    assert isinstance(decoded, lines.Result)
    assert (decoded.is_error, decoded.total_cost_usd, decoded.usage) == (True, 0.5, lines.Usage())


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"type":"thought","x":1}', "thought"),
        (b'{"type":"system","subtype":"weather"}', "system/weather"),
        (b'{"type":"control_request","request_id":"1","request":{"subtype":"hook_callback"}}',
         "control_request/hook_callback"),
        (b'{"type":"system","subtype":"init"}', "system/init"),
        (b"[1,2]", "untyped"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"n":' + b"9" * 5000 + b"}", "untyped"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_kept_as_unknown(line: bytes, kind: str) -> None:
    assert decode(line) == lines.Unknown(kind=kind)


def test_chatter_is_no_torn_line() -> None:
    assert decode(b"[SandboxDebug] started") == lines.Unreadable(start=b"[SandboxDebug] started", torn=False)
    assert decode(b"") == lines.Unreadable(start=b"", torn=False)


def test_half_a_character_does_not_cost_the_line() -> None:
    text = rb"\ud83d a \\ud83d \ud83d\ude00"
    line = b'{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}' % text
    decoded = decode(line)
    assert isinstance(decoded, lines.Assistant)
    assert isinstance(decoded.message.content, tuple)
    assert decoded.message.content[0].text == "\ufffd a \\ud83d \U0001f600"
    assert isinstance(decode(b'{"type":"user","message":{"content":"\xff"}}'), lines.User)


def test_lines_of_megabytes_are_read() -> None:
    text = "x" * 5_000_000
    decoded = decode(msgspec.json.encode({"type": "user", "message": {"content": text}}))
    assert isinstance(decoded, lines.User)
    assert decoded.message.content == text
