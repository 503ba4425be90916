"""Every key and value of a TOML file has its place, and nothing in a file can exhaust the reader."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.toml_source import Document, KeyPath, parse, read_text
from promptside_protocol.views import FaultView

TEXT = '''# a remark = [ "
title = "x"  # [no]
a.b."c d" = 1

[persona.'p q']
model = """
[not] = a table
"""

[[stage]]
name = "one"
gate = { type = "t", list = [1, { deep = 2 }] }
tools = [
  "Read", # ] }
  'Glob',
]

[stage.limits]
turns = 3

[[stage]]
"name" = "two"
prompt = """in line
"""
at = 1979-05-27 07:32:00
'''


def test_places_of_keys_and_values() -> None:
    document = parse(TEXT, "f.toml")
    assert isinstance(document, Document)
    keys: dict[KeyPath, tuple[int, int]] = {
        ("title",): (2, 1), ("a",): (3, 1), ("a", "b"): (3, 3), ("a", "b", "c d"): (3, 5),
        ("persona",): (5, 2), ("persona", "p q"): (5, 2), ("persona", "p q", "model"): (6, 1),
        ("stage",): (10, 3), ("stage", 0): (10, 3), ("stage", 0, "name"): (11, 1),
        ("stage", 0, "gate", "type"): (12, 10), ("stage", 0, "gate", "list"): (12, 22),
        ("stage", 0, "gate", "list", 1, "deep"): (12, 35), ("stage", 0, "limits", "turns"): (19, 1),
        ("stage", 1): (21, 3), ("stage", 1, "name"): (22, 1), ("stage", 1, "at"): (25, 1),
    }  # fmt: skip
    found = {path: (document.keys[path].line, document.keys[path].column) for path in keys}
    assert found == keys
    values: dict[KeyPath, tuple[int, int]] = {
        ("title",): (2, 9), ("stage", 0, "tools"): (13, 9), ("stage", 0, "tools", 0): (14, 3),
        ("stage", 0, "tools", 1): (15, 3), ("stage", 0, "gate", "list", 0): (12, 30),
        ("stage", 1, "at"): (25, 6),
    }  # fmt: skip
    assert {path: (document.values[path].line, document.values[path].column) for path in values} == values
    assert document.blocks == {("persona", "p q", "model")}


def test_a_fault_without_a_place_of_its_own_is_at_what_is_around_it() -> None:
    document = parse(TEXT, "f.toml")
    assert isinstance(document, Document)
    assert document.fault(("stage", 1, "prompt", "x"), "s").line == 23
    assert document.fault(("stage", 0, "gate"), "s", at="value").column == 8
    assert document.fault(("nothing",), "s").line == 1


BARE = st.text("abc-_1", min_size=1, max_size=3)
KEY = st.one_of(BARE, BARE.map(lambda key: f'"{key} ="'), BARE.map(lambda key: f"'[{key}'"))
SCALAR = st.sampled_from(
    ["1", "-1.5e3", "true", "inf", '"a # b"', "'c = d'", '"""e\n[f]\n"""', "1979-05-27", '"\\""']
)


def inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + " ,# x\n".join(items) + "\n]"),
        st.dictionaries(KEY, SCALAR.filter(lambda value: "\n" not in value), max_size=2).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        ),
    )


LINES = st.lists(
    st.one_of(
        st.builds(lambda key, value: f"  {key} = {value}\n", KEY, st.recursive(SCALAR, inline, max_leaves=5)),
        st.builds(lambda one, two: f"{one} . {two}=0\n", KEY, KEY),
        st.builds(lambda one, two: f"[ {one}.{two} ]\n", KEY, KEY),
        st.builds(lambda key: f"[[{key}]] # y\n", KEY),
        st.just("\n"),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(LINES)
def test_every_path_of_a_well_formed_file_has_its_place(lines: list[str]) -> None:
    kept = ""
    for line in lines:  # what clashes with what is there already is left out
        try:
            tomllib.loads(kept + line)
        except tomllib.TOMLDecodeError:
            continue
        kept += line
    document = parse(kept, "f")
    assert isinstance(document, Document)
    for path in paths_of(document.data):
        last = path[-1]
        if isinstance(last, str):
            place = document.keys[path]
            assert last in kept.split("\n")[place.line - 1]
        else:
            assert path in document.values or path in document.keys


def paths_of(value: Any, at: KeyPath = ()) -> list[KeyPath]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, item in inner for path in ((*at, key), *paths_of(item, (*at, key)))]


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200), st.lists(st.sampled_from("[]{}=\"'#.,\n\\ a1"), max_size=60).map("".join)
    )
)
def test_any_text_is_a_document_or_a_fault(text: str) -> None:
    found = parse(text, "f")
    if isinstance(found, FaultView):
        assert 1 <= found.line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "{b=" * 50_000,
        "a" + ".a" * 100_000 + " = 1",
        "[a" + ".a" * 100_000 + "]",
        "a = " + "1" * 100_000,
        '"""' + "\\" * 100_000,
        "'''" + "a''" * 50_000,
        '"' * 200_001,
    ],
    ids=lambda text: text[:8],
)
def test_a_text_made_to_exhaust_is_a_fault(text: str) -> None:
    assert isinstance(parse(text, "f"), FaultView)


def test_prose_is_not_said_to_be_nested() -> None:
    found = parse("this is no TOML but a sentence of many words " * 5, "f")
    assert isinstance(found, FaultView)
    assert "not TOML" in found.message


def test_files_are_read_with_limits(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(file) == "a\nb"
    assert isinstance(read_text(file, 3), FaultView)
    assert isinstance(read_text(tmp_path), FaultView)
    assert isinstance(read_text(tmp_path / "a\0b"), FaultView)
    file.chmod(0)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert isinstance(read_text(tmp_path / "loop"), FaultView)
