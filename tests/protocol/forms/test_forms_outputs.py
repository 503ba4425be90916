"""An agent's output as a form (ST-6): ids, labels, widgets, and the schemas that the agent is given (ST-7)."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from promptside_protocol import forms

FRAME: dict[str, Any] = {"task": 3, "stage": "s", "title": "S", "attempt": 2}


def fields(payload: dict[str, Any], properties: dict[str, Any] | None = None) -> tuple[forms.Field, ...]:
    definition = forms.definition_of("structured", payload, **FRAME, schema={"properties": properties or {}})
    assert isinstance(definition, forms.FieldsDefinition)
    return definition.fields


@pytest.mark.parametrize(
    ("ids", "given"),
    [
        ((None, None), ("A", "B")),
        (("B", "A"), ("B", "A")),
        (("A", "A"), ("A", "B")),
        (("A", None), ("A", "B")),
        (("option-1", "option-2"), ("A", "B")),
    ],
)
def test_an_option_keeps_its_letter_or_gets_one(ids: tuple[str | None, ...], given: tuple[str, ...]) -> None:
    payload = [
        {"title": "t", "description": "", "pros": [], "cons": [], **({"id": ref} if ref else {})}
        for ref in ids
    ]
    definition = forms.definition_of(
        "options", {"options": payload}, **FRAME, gate="require_selection", max=2
    )
    assert isinstance(definition, forms.OptionsDefinition)
    assert tuple(o.id for o in definition.options) == given
    assert (definition.min, definition.max) == (1, 2)


def test_more_options_than_letters() -> None:
    payload = {"options": [{"title": "t"}] * 30}
    definition = forms.definition_of("options", payload, **FRAME)
    assert isinstance(definition, forms.OptionsDefinition)
    assert [o.id for o in definition.options][24:28] == ["Y", "Z", "AA", "AB"]
    assert forms.parse(definition, forms.render(definition)).unread == frozenset()


def test_only_the_gate_of_a_format_asks_for_something() -> None:
    options = forms.definition_of("options", {"options": [{"title": "t"}]}, **FRAME)
    items = forms.definition_of("checklist", {"items": [{"severity": "info", "title": "t"}]}, **FRAME)
    structured = forms.definition_of("structured", {"a": ""}, **FRAME, required=("a",))
    for definition in (options, items, structured):
        assert forms.lacks(definition, forms.from_plain(definition, {})) == []


def test_points_are_numbered_by_severity_and_stand_in_its_order() -> None:
    drawn = ["info", "critical", "warning", "critical"]
    payload = {"items": [{"severity": s, "title": f"t{n}"} for n, s in enumerate(drawn)]}
    definition = forms.definition_of("checklist", payload, **FRAME, gate="require_all_checked")
    assert isinstance(definition, forms.ChecklistDefinition)
    assert [(item.id, item.title) for item in definition.items] == [
        ("C1", "t1"), ("C2", "t3"), ("W1", "t2"), ("I1", "t0"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("test_plan", "Test plan"),
        ("title", "Title"),
        ("testPlan", "Test plan"),
        ("API_notes", "API notes"),
        ("how-to", "How to"),
        ("a  (required)", "A required"),
        ("größe", "Größe"),
        ("__", ""),
    ],
)
def test_st6_a_label_is_made_from_its_key(key: str, label: str) -> None:
    assert forms.label_of(key) == label


def test_two_keys_with_one_label_are_still_two_fields() -> None:
    definition = forms.definition_of("structured", {"a_b": "1", "a-b": "2", "--": "3", "..": "4"}, **FRAME)
    assert isinstance(definition, forms.FieldsDefinition)
    assert [f.label for f in definition.fields] == ["A b", "A b again", "Field", "Field again"]
    answers = forms.from_plain(definition, {"a-b": "two", "..": "four"})
    assert forms.parse(definition, forms.render(definition, answers)).answers == answers


@pytest.mark.parametrize(
    ("rule", "value", "widget", "choices"),
    [
        ({"type": "string"}, "x", "text", ()),
        ({"type": "string", "maxLength": 80}, "x", "line", ()),
        ({"type": "string", "maxLength": 81}, "x", "text", ()),
        ({"type": "string", "examples": ["Add login"]}, "x", "line", ()),
        ({"type": "string", "examples": ["two\nlines"]}, "x", "text", ()),
        ({"type": "string", "examples": ["x" * 81]}, "x", "text", ()),
        ({"enum": ["a", "b"]}, "a", "enum", ("a", "b")),
        ({"enum": [1, 2]}, 1, "json", ()),
        ({"enum": ["a", " a"]}, "a", "json", ()),
        ({"type": "boolean"}, True, "boolean", ()),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a"], "any", ("a", "b")),
        ({"type": "array", "items": {"type": "string"}}, ["a"], "bullets", ()),
        ({"type": "array", "items": {"type": "integer"}}, [1], "json", ()),
        ({"type": "object"}, {"a": 1}, "json", ()),
        ({"type": ["string", "null"]}, None, "json", ()),
        ({"type": "number"}, 1.5, "json", ()),
        ({}, "x", "text", ()),
        ({}, False, "boolean", ()),
        ({}, ["a"], "bullets", ()),
        ({}, [1], "json", ()),
    ],
)
def test_the_widget_follows_the_schema(
    rule: dict[str, Any], value: Any, widget: str, choices: tuple[str, ...]
) -> None:
    (field,) = fields({"f": value}, {"f": rule})
    assert (field.widget, field.choices, field.value) == (widget, choices, value)


def test_fields_stand_in_the_schemas_order_and_required_ones_are_there_without_a_value() -> None:
    definition = forms.definition_of(
        "structured",
        {"more": "m", "title": "t"},
        **FRAME,
        gate="require_fields",
        required=("title", "test_plan"),
        schema={"properties": {"title": {"type": "string"}}},
    )
    assert isinstance(definition, forms.FieldsDefinition)
    assert [(f.key, f.required, f.value) for f in definition.fields] == [
        ("title", True, "t"),
        ("more", False, "m"),
        ("test_plan", True, None),
    ]


def test_a_text_is_the_whole_output() -> None:
    definition = forms.definition_of("text", "# Research\n\n>> not a note\n```\nopen", **FRAME)
    assert forms.render(definition) == (
        "# S\n\n> Read it, and correct what you like. Then approve.\n\n# Research\n\n> > not a note\n```\nopen\n```\n\n"
        "<!-- promptside 3/s#2 text -->\n"
    )


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "options",
            {"options": [{"title": "a", "description": "", "pros": [], "cons": []}]},
            {"options": []},
        ),
        (
            "checklist",
            {"items": [{"severity": "info", "title": "a"}]},
            {"items": [{"severity": "bad", "title": "a"}]},
        ),
        ("checklist", {"items": []}, {"items": [{"severity": "info", "title": "a", "line": 0}]}),
    ],
)
def test_st7_the_schema_of_a_format_takes_what_can_be_shown(name: str, good: Any, bad: Any) -> None:
    schema = forms.SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, schema)
    forms.render(forms.definition_of(name, good, **FRAME))  # type: ignore[arg-type]  # a format's name


def test_st7_a_schema_from_field_names_wants_each_as_a_text() -> None:
    schema = forms.fields_schema(["title", "test_plan", "title"])
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({"title": "t", "test_plan": ""}, schema)
    for bad in ({"title": "t"}, {"title": "t", "test_plan": 1}, {"title": "t", "test_plan": "", "x": ""}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)
