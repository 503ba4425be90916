"""The shipped pipeline is the source's, stage for stage (ST-2)."""

from __future__ import annotations

import pytest

from promptside_daemon.engine.pipeline import (
    Gate,
    Pipeline,
    RequireAllChecked,
    RequireApproval,
    RequireFields,
    RequireSelection,
)
from promptside_daemon.pipelines.find import SHIPPED
from promptside_daemon.pipelines.load import load
from promptside_daemon.pipelines.prompt import TaskFacts, Variables, render

READ = ("Read", "Glob", "Grep")
FIELDS = ("title", "description", "test_plan")

# The source's table “Default Pipeline”, in our words: previous is the stage before, None is all tools.
TABLE: list[tuple[str, str, str, str, Gate, tuple[str, ...] | None]] = [
    ("research", "Research", "user", "text", RequireApproval(), (*READ, "WebSearch", "WebFetch")),
    ("high-level-approaches", "High-Level Approaches", "previous", "options", RequireSelection(1, 1), READ),
    ("planning", "Planning", "previous", "text", RequireApproval(), READ),
    ("implementation", "Implementation", "previous", "text", RequireApproval(), None),
    ("refinement", "Refinement", "both", "text", RequireApproval(), None),
    ("security-review", "Security Review", "previous", "checklist", RequireAllChecked(), READ),
    ("pr-preparation", "PR Preparation", "previous", "structured", RequireFields(FIELDS), READ),
]
STAGES = [row[0] for row in TABLE]


@pytest.fixture(scope="module")
def standard() -> Pipeline:
    found = load(SHIPPED / "standard.toml", "shipped")
    assert found.faults == ()
    assert found.pipeline is not None
    return found.pipeline


def test_st2_the_stages_are_those_of_the_source(standard: Pipeline) -> None:
    rows = [(s.id, s.name, s.input, s.output, s.gate, s.tools) for s in standard.stages]
    assert rows == TABLE


def test_st14_reading_stages_deny_and_writing_ones_ask_but_for_edits_in_their_tree(
    standard: Pipeline,
) -> None:
    for stage in standard.stages:
        if stage.tools is None:
            assert (stage.permission, stage.rules) == ("ask", ("Edit(./**)", "Write(./**)"))
            assert not stage.read_only
        else:
            assert (stage.permission, stage.rules) == ("deny", ())
            assert stage.read_only
            assert "AskUserQuestion" not in stage.tools


def test_st2_the_pull_request_has_three_fields_and_all_are_required(standard: Pipeline) -> None:
    schema = standard.stages[-1].schema
    assert schema is not None
    assert tuple(schema["properties"]) == FIELDS
    assert tuple(schema["required"]) == FIELDS


@pytest.mark.parametrize("stage", STAGES)
def test_st4_each_prompt_holds_what_the_source_feeds_it(standard: Pipeline, stage: str) -> None:
    given = Variables(
        task_description="THE TASK",
        previous_output="THE OUTPUT BEFORE",
        user_input="THE INPUT",
        user_decision="THE DECISION",
        task=TaskFacts(id=7, title="T", criteria=("FIRST CRITERION",), files=("src/a.py",)),
    )
    prompt = render(standard.stages[standard.index(stage)].prompt, given)
    assert "THE TASK" in prompt
    assert "THE INPUT" in prompt
    if stage != "research":
        assert "THE OUTPUT BEFORE" in prompt
        assert "THE DECISION" in prompt


@pytest.mark.parametrize("stage", STAGES)
def test_st4_with_nothing_but_a_task_no_heading_is_left_without_text(standard: Pipeline, stage: str) -> None:
    prompt = render(standard.stages[standard.index(stage)].prompt, Variables(task_description="THE TASK"))
    lines = [line for line in prompt.splitlines() if line.strip()]
    for line, after in zip(lines, [*lines[1:], "## "], strict=True):
        assert not (line.startswith("## ") and after.startswith("## ")), line
    assert "\n\n\n\n" not in prompt


@pytest.mark.parametrize("stage", STAGES)
def test_each_prompt_says_how_to_ask_and_that_nothing_is_committed(standard: Pipeline, stage: str) -> None:
    of = standard.stages[standard.index(stage)]
    if stage != "pr-preparation":
        assert "`AskUserQuestion`" in of.prompt
    assert ("read-only" in of.prompt) == of.read_only
    if not of.read_only:
        assert "nobody commits but us" in of.prompt
