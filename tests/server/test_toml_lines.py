"""Finding one's way in a TOML text or a template while somebody types (ED-6): any text, any place, and no fault."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_server.templates import blank
from promptside_server.toml_lines import Spot, spot, stages_of, tables

TEXT = '''title = "x"
[persona.rev]
model = "opus"

[[stage]]
name = "Plan"
tools = ["Read", "Gr"]
gate = { type = "requ", fields = ["a"] }
limits.turns = 3
prompt = """
Hello {{ prev
x
"""
perm
[stage.limits]
turns = 3
[[stage]]
tools = [
  "Read",
  "Ed
output = "te
'''


@pytest.mark.parametrize(
    ("needle", "wanted"),
    [
        ('title = "x', Spot(table="", number=-1, key="title", quote='"', word="x")),
        ('"op', Spot(table="persona.rev", number=-1, key="model", quote='"', word="op")),
        ("\nna", Spot(table="stage", number=0, word="na")),
        ('"Gr', Spot(table="stage", number=0, key="tools", quote='"', word="Gr", in_list=True)),
        ('"requ', Spot(table="stage.gate", number=0, key="type", quote='"', word="requ")),
        ("{ ty", Spot(table="stage.gate", number=0, word="ty")),
        ('["a', Spot(table="stage.gate", number=0, key="fields", quote='"', word="a", in_list=True)),
        ("limits.turns = ", Spot(table="stage.limits", number=0, key="turns")),
        ("{{ prev", Spot(table="stage", number=0, key="prompt", quote='"""', word="\nHello {{ prev")),
        ("\nperm", Spot(table="stage", number=0, word="perm")),
        ("limits]\ntur", Spot(table="stage.limits", number=0, word="tur")),
        ('"Ed', Spot(table="stage", number=1, key="tools", quote='"', word="Ed", in_list=True)),
        ('output = "te', Spot(table="stage", number=1, key="output", quote='"', word="te")),
        ("\n[[sta", Spot(table="stage", number=0, word="sta", header=True)),
    ],
)
def test_a_place_is_known(needle: str, wanted: Spot) -> None:
    at = TEXT.index(needle) + len(needle)
    line = TEXT.count("\n", 0, at)
    assert spot(TEXT, line, at - (TEXT.rfind("\n", 0, at) + 1)) == wanted


def test_stages_are_found_in_a_text_that_is_no_toml() -> None:
    assert [(stage.line, stage.last, stage.text("name")) for stage in stages_of(TEXT)] == [
        (4, 13, "Plan"),
        (16, 21, ""),
    ]


@given(
    text=st.text(alphabet="[]{}=\"'#\n stage.name,x\\", max_size=120),
    line=st.integers(0, 9),
    column=st.integers(0, 40),
)
@settings(max_examples=400, deadline=None)
def test_any_text_has_tables_and_any_place_is_somewhere(text: str, line: int, column: int) -> None:
    found = tables(text)
    assert [table.line for table in found] == sorted(table.line for table in found)
    assert all(entry.end >= entry.value for table in found for entry in table.entries)
    spot(text, line, column)


@pytest.mark.parametrize(
    ("before", "kind", "word"),
    [
        ("a {{ prev", "variable", "prev"),
        ("{{ task.ti", "part", "ti"),
        ("{{ x | tr", "filter", "tr"),
        ("{% if x is de", "test", "de"),
        ("{% if x is not de", "test", "de"),
        ("{% en", "tag", "en"),
        ("{% if us", "variable", "us"),
        ("{{ task.directory }}/01", "artifact", "01"),
    ],
)
def test_what_can_be_written_in_a_template(before: str, kind: str, word: str) -> None:
    found = blank(before)
    assert found is not None
    assert (found.kind, found.word) == (kind, word)


@pytest.mark.parametrize("before", ["plain", "{{ a }} b", "{% if a %}b", '{{ "in a string'])
def test_plain_text_takes_anything(before: str) -> None:
    assert blank(before) is None
