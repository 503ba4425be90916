"""The documents of UX section 2 as files: what they are rendered from, and what is read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from promptside_protocol import forms
from promptside_protocol.views import OptionView

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "forms"


class Asked:
    """A decision as the engine holds it."""

    def __init__(
        self,
        ref: str,
        kind: str,
        text: str,
        *options: OptionView,
        header: str = "",
        other: bool = False,
        required: bool = False,
        priority: int = 1,
    ) -> None:
        self.id, self.kind, self.text, self.options = ref, kind, text, options
        self.header, self.other, self.required, self.priority = header, other, required, priority


def with_lang(definition: forms.QuestionsDefinition, ref: str, lang: str) -> forms.QuestionsDefinition:
    items = tuple(
        forms.Question(id=q.id, kind=q.kind, text=q.text, required=q.required, lang=lang)
        if q.id == ref
        else q
        for q in definition.items
    )
    return forms.QuestionsDefinition(
        task=definition.task, stage=definition.stage, attempt=definition.attempt, title=definition.title,
        round=definition.round, items=items,
    )  # fmt: skip


QUESTIONS = with_lang(
    forms.questions(
        task=12,
        stage="research",
        title="Research",
        attempt=1,
        round=1,
        decisions=[
            Asked(
                "Q1",
                "one",
                "Which login do you want?\nThere is a half-finished OAuth module in `src/auth/oauth.ts`.",
                OptionView(id="A", title="Server-side sessions", recommended=True),
                OptionView(id="B", title="Signed tokens (JWT)"),
                other=True,
                required=True,
            ),
            Asked(
                "Q2",
                "any",
                "Which routes need a login?",
                OptionView(id="A", title="`/account/**`"),
                OptionView(id="B", title="`/api/orders/**`"),
                OptionView(id="C", title="`/api/catalog/**`"),
                required=True,
            ),
            Asked(
                "Q3",
                "yes_no",
                "May the agent drop the table `logins`?\n\nIt has 0 rows in the development database.",
                required=True,
            ),
            Asked("Q4", "text", "What happens to people who are logged in today?"),
            Asked("Q5", "files", "Which files show your house style?"),
            Asked("Q6", "code", "What should the session row look like?"),
        ],
    ),
    "Q6",
    "sql",
)
OPTIONS = forms.definition_of(
    "options",
    {
        "options": [
            {
                "title": "Session cookies in Postgres",
                "description": "A `sessions` table and an opaque id in an HttpOnly cookie.",
                "pros": ["Revoking a login is one DELETE", "No secret to rotate"],
                "cons": ["One query per request"],
                "recommended": True,
            },
            {
                "title": "Signed JWT in a cookie",
                "description": "Stateless, signed with a rotating key.",
                "pros": ["No lookup"],
                "cons": ["Revoking needs a deny list"],
            },
        ]
    },
    task=12,
    stage="high-level-approaches",
    title="High-Level Approaches",
    attempt=1,
    gate="require_selection",
)
PLANNING = forms.definition_of(
    "text",
    "Sessions live in Postgres; the cookie holds an opaque id.\n\n## Steps\n\n"
    "1. Migration `0007_sessions.sql`\n2. Login and logout endpoints\n\n- [ ] ask about the cookie's lifetime\n",
    task=12,
    stage="planning",
    title="Planning",
    attempt=1,
)
REVIEW = forms.definition_of(
    "checklist",
    {
        "items": [
            {
                "severity": "warning",
                "title": "Cookie lacks SameSite",
                "detail": "Lax is enough here.",
                "file": "src/auth/session.ts",
                "line": 23,
            },
            {
                "severity": "critical",
                "title": "Login has no rate limit",
                "detail": "An attacker can try passwords as fast as the server answers.",
                "file": "src/auth/login.ts",
                "line": 41,
            },
            {
                "severity": "critical",
                "title": "Session id is logged on error",
                "detail": "The error handler prints the whole request, cookies included.",
                "file": "src/auth/session.ts",
                "line": 88,
            },
        ]
    },
    task=12,
    stage="security-review",
    title="Security Review",
    attempt=2,
    gate="require_all_checked",
)
PULL_REQUEST = forms.definition_of(
    "structured",
    {
        "title": "Add login with server-side sessions",
        "description": "Adds a sessions table, login and logout.\n\n## How it works\n\n"
        "Sessions are opaque ids in an HttpOnly cookie.\n",
        "test_plan": "",
        "breaking_change": False,
    },
    task=12,
    stage="pr-preparation",
    title="PR Preparation",
    attempt=1,
    gate="require_fields",
    required=("title", "description", "test_plan"),
    schema={
        "properties": {
            "title": {"type": "string", "maxLength": 72},
            "description": {"type": "string"},
            "test_plan": {"type": "string"},
            "breaking_change": {"type": "boolean"},
        }
    },
)
GIVEN: dict[str, tuple[forms.Definition, dict[str, Any]]] = {
    "01-research-questions-1": (
        QUESTIONS,
        {
            "Q1": [{"other": "sessions now, OAuth in a later task"}],
            "Q2": ["A", "B"],
            "Q3": ["No"],
            "Q4": "Keep them logged in.\n\nUntil their token ends.",
            "Q5": ["src/http/router.ts"],
            "Q6": "create table sessions (id text primary key);",
        },
    ),
    "02-high-level-approaches": (OPTIONS, {}),
    "03-planning": (PLANNING, {}),
    "06-security-review": (
        REVIEW,
        {
            "C1": {"ticked": True, "note": "fixed in Refinement, see limiter.ts"},
            "W1": {"ticked": True, "note": ""},
        },
    ),
    "07-pr-preparation": (PULL_REQUEST, {}),
}


def document(name: str) -> str:
    return (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GIVEN)
def test_an_example_is_read_as_the_answers_it_shows(name: str) -> None:
    definition, plain = GIVEN[name]
    parsed = forms.parse(definition, document(name))
    assert forms.to_plain(parsed.answers) == plain
    assert [p for p in parsed.problems if p.code.startswith("form-")] == []
    assert parsed.notes == ()
    assert parsed.unread == frozenset()


@pytest.mark.parametrize("name", GIVEN)
def test_an_example_is_what_we_write(name: str) -> None:
    definition, plain = GIVEN[name]
    text = forms.render(definition, forms.from_plain(definition, plain))
    # The person wrapped this note over two lines; we write a note in one.
    assert text == document(name).replace("fixed in Refinement,\n    see", "fixed in Refinement, see")


@pytest.mark.parametrize("name", GIVEN)
def test_writing_the_answers_that_are_there_leaves_every_byte(name: str) -> None:
    definition, plain = GIVEN[name]
    text = document(name).replace("\n", "\r\n")
    assert forms.apply(definition, text, forms.from_plain(definition, plain)) == text


def test_st4_the_next_stage_gets_chosen_options_as_they_stand_in_the_document() -> None:
    text = document("02-high-level-approaches").replace("rotating key", "key that rotates daily")
    text = text.replace("Stateless", ">> is this so?\nStateless")
    answers = forms.from_plain(OPTIONS, {"B": True})
    assert forms.decision_text(OPTIONS, text, answers) == (
        "Selected:\n\nB · Signed JWT in a cookie\n\nStateless, signed with a key that rotates daily.\n\n"
        "**For**\n\n- No lookup\n\n**Against**\n\n- Revoking needs a deny list"
    )
    none = forms.from_plain(OPTIONS, {})
    assert forms.decision_text(OPTIONS, text, none) == (
        "“High-Level Approaches” was approved; no option was selected."
    )


def test_st4_the_next_stage_gets_ticks_with_notes() -> None:
    text = document("06-security-review")
    assert forms.decision_text(REVIEW, text, forms.parse(REVIEW, text).answers) == (
        "“Security Review” was reviewed:\n"
        "- [x] **C1** Login has no rate limit `src/auth/login.ts:41`\n"
        "  - Note: fixed in Refinement, see limiter.ts\n"
        "- [ ] **C2** Session id is logged on error `src/auth/session.ts:88`\n"
        "- [x] **W1** Cookie lacks SameSite `src/auth/session.ts:23`"
    )


def test_st4_the_next_stage_gets_fields_with_values() -> None:
    answers = forms.from_plain(PULL_REQUEST, {"test_plan": "Run `make test`.", "breaking_change": True})
    assert forms.decision_text(PULL_REQUEST, document("07-pr-preparation"), answers) == (
        "“PR Preparation” was approved with these values:\n\n"
        "## Title\n\nAdd login with server-side sessions\n\n"
        "## Description\n\nAdds a sessions table, login and logout.\n\n### How it works\n\n"
        "Sessions are opaque ids in an HttpOnly cookie.\n\n"
        "## Test plan\n\nRun `make test`.\n\n## Breaking change\n\nYes"
    )


def test_st4_a_plain_approval_is_a_sentence() -> None:
    text = document("03-planning")
    assert forms.decision_text(PLANNING, text, forms.parse(PLANNING, text).answers) == (
        "“Planning” was approved as it stands."
    )


def test_st4_answers_to_questions_are_told_by_their_words() -> None:
    text = document("01-research-questions-1")
    words = forms.decision_text(QUESTIONS, text, forms.parse(QUESTIONS, text).answers)
    assert "Q1 · Which login do you want?" in words
    assert "Answer: sessions now, OAuth in a later task" in words
    assert "Answer: `/account/**`, `/api/orders/**`" in words
    assert "Answer: No\n" in words
    empty = forms.decision_text(QUESTIONS, text, forms.from_plain(QUESTIONS, {}))
    assert empty.count("Answer: (not answered)") == 6


def test_the_body_of_a_text_is_what_stands_there() -> None:
    text = document("03-planning").replace("opaque", "random").replace("## Steps", ">> why?\n## Steps")
    body = forms.parse(PLANNING, text).bodies[""]
    assert body.startswith("Sessions live in Postgres; the cookie holds an random id.\n\n## Steps")
    assert body.endswith("- [ ] ask about the cookie's lifetime")


def test_cw4_questions_are_ordered_by_priority_and_grouped_by_topic() -> None:
    definition = forms.questions(
        task=1,
        stage="s",
        title="S",
        attempt=1,
        round=2,
        decisions=[
            Asked("Q7", "text", "late?", header="Data", priority=2),
            Asked("Q8", "text", "first?", header="Login"),
            Asked("P1", "permission", "rm"),
            Asked("Q9", "text", "second?", header="Data"),
            Asked("Q10", "text", "third?", header="Login"),
        ],
    )
    lines = [line for line in forms.render(definition).split("\n") if line.startswith(("#", "<"))]
    assert lines == [
        "# Questions: S",
        "# Data",
        "## Q9 · second? (text)",
        "# Login",
        "## Q8 · first? (text)",
        "## Q10 · third? (text)",
        "# Data",
        "## Q7 · late? (text)",
        "<!-- promptside 1/s#1 questions 2 -->",
    ]


def test_one_topic_needs_no_heading() -> None:
    definition = forms.questions(
        task=1,
        stage="s",
        title="S",
        attempt=1,
        round=1,
        decisions=[Asked("Q1", "text", "a?", header="Login")],
    )
    assert "# Login" not in forms.render(definition)


def test_a_long_question_is_cut_in_its_heading_and_whole_below() -> None:
    long = "Should the login keep " + "very " * 20 + "old sessions?"
    definition = forms.questions(
        task=1, stage="s", title="S", attempt=1, round=1, decisions=[Asked("Q1", "text", long)]
    )
    lines = forms.render(definition).split("\n")
    assert lines[4].startswith("## Q1 · Should the login keep very")
    assert lines[4].endswith("… (text)")
    assert len(lines[4]) < 100
    assert lines[6] == long


@pytest.mark.parametrize(
    ("required", "sentence"),
    [
        ((True,), "The agent waits for 1 answer, which is required."),
        ((False,), "The agent waits for 1 answer."),
        ((True, True), "The agent waits for 2 answers, all of them required."),
        ((True, False), "The agent waits for 2 answers, 1 of them required."),
        ((False, False), "The agent waits for 2 answers, none of them required."),
    ],
)
def test_the_sentence_says_how_much_is_wanted(required: tuple[bool, ...], sentence: str) -> None:
    asked = [Asked(f"Q{n}", "text", "a?", required=need) for n, need in enumerate(required, 1)]
    definition = forms.questions(task=1, stage="s", title="S", attempt=1, round=1, decisions=asked)
    assert forms.render(definition).split("\n")[2] == f"> {sentence} Tick or type, then send."
