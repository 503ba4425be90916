"""Every message of the protocol against its golden file, both ways: other clients rely on these bytes."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest

from promptside_protocol import errors, frames
from promptside_protocol.commands import COMMANDS, Ack, AnyCommand, Command, StartCommand, TaskCommand
from promptside_protocol.notices import NOTICES, Notice
from promptside_protocol.queries import ANSWERS, QUERIES, Query

HERE = Path(__file__).parent


def _examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("protocol_examples", HERE / "examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = _examples()
CASES = {name: (frame, inside) for name, frame, inside in EXAMPLES.examples()}


DATA = {"answers", "args", "body", "cursors", "definition", "environment"}
"""Fields whose dictionaries are no Structs: what is added there is kept, and belongs there."""


def grown(value: Any) -> Any:
    """The same with a field more in every Struct."""
    match value:
        case dict():
            data = DATA if "shown" in (value.get("gate") or {"shown"}) else {*DATA, "gate"}
            inner = {key: item if key in data else grown(item) for key, item in value.items()}
            return inner | {"since_version_9": [1]}
        case list():
            return [grown(item) for item in value]
        case _:
            return value


def golden(name: str) -> bytes:
    return (HERE / "golden" / f"{name}.json").read_bytes()


def inside_of(frame: frames.Frame, name: str) -> Any:
    """What a frame holds, decoded as the other side decodes it."""
    method = name.partition(".")[2]
    match frame:
        case frames.Request(params=raw):
            return msgspec.json.decode(raw, type=COMMANDS.get(frame.method) or QUERIES[frame.method])
        case frames.Notification(params=raw):
            return msgspec.json.decode(raw, type=NOTICES[frame.method])
        case frames.Response(result=raw):
            return msgspec.json.decode(raw, type=ANSWERS[QUERIES[method]] if method in QUERIES else Ack)
        case frames.Failure():
            return frames.error_of(frame)
        case _:
            raise AssertionError(frame)


@pytest.mark.parametrize("name", CASES)
def test_a_message_is_its_golden_file_and_back(name: str) -> None:
    frame, inside = CASES[name]
    assert EXAMPLES.golden_text(frame).encode() == golden(name)
    back = inside_of(frames.decode(golden(name)), name)
    if isinstance(inside, errors.PromptsideError):
        assert (type(back), back.refusal) == (type(inside), inside.refusal)
    else:
        assert back == inside


@pytest.mark.parametrize("name", CASES)
def test_what_a_newer_side_adds_is_passed_over(name: str) -> None:
    whole = msgspec.json.decode(golden(name))
    _, inside = CASES[name]
    back = inside_of(frames.decode(msgspec.json.encode(grown(whole))), name)
    if isinstance(inside, errors.PromptsideError):
        assert back.refusal == inside.refusal
    else:
        assert back == inside


def test_every_message_has_its_golden_file_and_no_file_is_left_over() -> None:
    wanted = {
        *(f"command.{method}" for method in COMMANDS),
        *(f"query.{method}" for method in QUERIES),
        *(f"answer.{method}" for method in QUERIES),
        *(f"notice.{method}" for method in NOTICES),
        *(f"error.{kind.__name__}" for kind in errors.BY_NUMBER.values()),
        "answer.ack",
    }
    assert wanted == set(CASES)
    assert wanted == {path.stem for path in (HERE / "golden").iterdir()}


def test_no_message_was_forgotten_where_the_methods_are_listed() -> None:
    assert set(Query.__subclasses__()) == set(QUERIES.values())
    kinds = {Command, TaskCommand, StartCommand}
    orders = {order for kind in kinds for order in kind.__subclasses__()} - kinds
    assert orders <= set(COMMANDS.values())
    assert set(get_args(AnyCommand)) == set(COMMANDS.values())
    assert set(get_args(Notice)) == set(NOTICES.values())


def test_a_method_means_one_thing() -> None:
    assert not COMMANDS.keys() & QUERIES.keys()


@pytest.mark.parametrize("method", [*COMMANDS, *QUERIES])
def test_the_examples_leave_no_field_at_its_default_where_they_could_hide_a_mistake(method: str) -> None:
    """A renamed field with a default would read an old message without a complaint."""
    kind = COMMANDS.get(method) or QUERIES[method]
    _, inside = CASES[f"{'command' if method in COMMANDS else 'query'}.{method}"]
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            assert getattr(inside, field.name) != field.default, field.name
