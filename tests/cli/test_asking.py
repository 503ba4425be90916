"""Asking in place with a scripted person: which order each line becomes, and that leaving becomes none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from promptside_cli import asking, drafts
from promptside_cli.exits import Stopped, UsageError
from promptside_protocol.commands import Allow, Answer, Approve, Deny, Redo, Run
from promptside_protocol.views import DecisionView, GateView, ItemView, OptionView, TaskView

Make = Callable[..., TaskView]
OPTIONS = tuple(OptionView(id=i, title=f"Way {i}") for i in "ABC")
ONE = GateView(type="require_selection", shown="h1", min=1, max=1, options=OPTIONS, lacks=("Select 1.",))
TWO = GateView(type="require_selection", shown="h2", min=1, max=2, options=OPTIONS, lacks=("Select 1.",))
LIST = GateView(
    type="require_all_checked",
    shown="h3",
    items=(
        ItemView(id="C1", text="Rate limit", severity="critical", path="a.py", line=4),
        ItemView(id="W1", text="Cookie", severity="warning", ticked=True),
        ItemView(id="I1", text="Name", severity="info", note="kept"),
    ),
)
APPROVAL = GateView(type="require_approval", shown="h4")
FIELDS = GateView(type="require_fields", shown="h5", fields=("title",), lacks=("Title is empty.",))


class Person:
    """Types these lines, then closes the input; remembers what was said to it."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []
        self.said: list[str] = []

    async def ask(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return self.lines.pop(0) if self.lines else None


def at_gate(view: TaskView, gate: GateView, *lines: str) -> tuple[asking.Reply, Person]:
    person = Person(lines)
    reply = asyncio.run(asking.at_gate(person.ask, person.said.append, view, gate, "research"))
    assert not person.lines, "lines were left over"
    return reply, person


def decision(view: TaskView, asked: DecisionView, *lines: str) -> tuple[asking.Reply, Person]:
    person = Person(lines)
    reply = asyncio.run(asking.decision(person.ask, person.said.append, view, asked))
    assert not person.lines, "lines were left over"
    return reply, person


def question(kind: Any = "one", **more: Any) -> DecisionView:
    plain = {"id": "Q1", "priority": 1, "required": True, "text": "Which?", "options": OPTIONS, "other": True}
    return DecisionView(kind=kind, **{**plain, **more})  # type: ignore[arg-type]  # a table of defaults


PERMISSION = question("permission", id="P1", tool="Bash", what="npm install", other=False)


# --- gates -------------------------------------------------------------------------------------------------


def test_a_selection_is_asked_until_it_is_one(task: Make) -> None:
    """ST-5; the prompt of UX 6, and the hash of what was shown."""
    reply, person = at_gate(task(), ONE, "", "D", "a b", "b")
    assert person.prompts[0] == "Select [A/B/C, e = open in editor, q = leave]: "
    assert person.said == ["“D” is none of A/B/C.", "2 options are selected; this gate takes 1."]
    assert isinstance(reply, Approve)
    assert reply.answers == {"A": False, "B": True, "C": False}
    assert (reply.shown, reply.stage) == ("h1", "research")


def test_several_can_be_selected_with_commas(task: Make) -> None:
    reply, _ = at_gate(task(), TWO, "c, A, c")
    assert isinstance(reply, Approve)
    assert reply.answers == {"A": True, "B": False, "C": True}


@pytest.mark.parametrize("gate", [ONE, LIST, APPROVAL, FIELDS])
@pytest.mark.parametrize(("lines", "reply"), [(("q",), "leave"), ((), "leave"), (("e",), "edit")])
def test_leaving_and_editing_decide_nothing(
    task: Make, gate: GateView, lines: tuple[str, ...], reply: str
) -> None:
    """UX 1.5: closing the input decides nothing."""
    assert at_gate(task(), gate, *lines)[0] == reply


def test_a_checklist_is_ticked_item_by_item(task: Make) -> None:
    reply, person = at_gate(task(), LIST, "y fixed in b.py", "maybe", "yes")
    assert person.prompts[0].startswith("C1  Rate limit  a.py:4\nReviewed?")
    assert isinstance(reply, Approve)
    assert reply.answers == {
        "C1": {"ticked": True, "note": "fixed in b.py"},
        "I1": {"ticked": True, "note": "kept"},
    }


def test_an_item_that_is_not_reviewed_ends_the_checklist(task: Make) -> None:
    assert at_gate(task(), LIST, "y", "n")[0] == "leave"


def test_an_approval_wants_a_word(task: Make) -> None:
    reply, person = at_gate(task(), APPROVAL, "", "ok", "y")
    assert isinstance(reply, Approve)
    assert (reply.shown, reply.answers, reply.sign_off) == ("h4", {}, False)
    assert len(person.prompts) == 3


def test_redo_takes_words(task: Make) -> None:
    reply, _ = at_gate(task(), APPROVAL, "r", "", "r", "no table")
    assert reply == Redo(project="/p", task=12, feedback="no table")


def test_fields_that_lack_can_only_be_edited(task: Make) -> None:
    assert at_gate(task(), FIELDS, "y", "", "e")[0] == "edit"


# --- input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "given"), [("", ""), ("  use the table ", "use the table")])
def test_input_before_a_stage(task: Make, line: str, given: str) -> None:
    person = Person([line])
    run = Run(project="/p", task=12, stage_only=True, on_ask="deny")
    reply = asyncio.run(asking.for_input(person.ask, task(), "Refinement", run))
    assert person.prompts == ["Anything to add for Refinement? (Enter: nothing, q: leave) "]
    assert reply == Run(project="/p", task=12, input=given, stage_only=True, on_ask="deny")


def test_input_can_be_left(task: Make) -> None:
    for lines in ([], ["q"]):
        person = Person(lines)
        run = Run(project="/p", task=12)
        assert asyncio.run(asking.for_input(person.ask, task(), "Refinement", run)) == "leave"


# --- decisions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "lines", "order"),
    [
        (question(), ("x", "", "A B", "b"), {"options": ("B",)}),
        (question("any"), ("c,a",), {"options": ("C", "A")}),
        (question(), ("o", "", "o", "my own"), {"text": "my own"}),
        (question("yes_no", options=()), ("y",), {"options": ("Yes",)}),
        (question("yes_no", options=()), ("No",), {"options": ("No",)}),
        (question("text", options=()), ("", " because "), {"text": "because"}),
        (question("files", options=()), ("a.py, b c.py",), {"files": ("a.py", "b c.py")}),
    ],
)
def test_a_question_becomes_an_answer(
    task: Make, asked: DecisionView, lines: tuple[str, ...], order: dict[str, Any]
) -> None:
    """CW-4: each kind in its own way; what is no answer is asked again."""
    assert decision(task(), asked, *lines)[0] == Answer(project="/p", task=12, decision="Q1", **order)


@pytest.mark.parametrize("kind", ["one", "text", "files", "permission"])
def test_a_question_can_be_left(task: Make, kind: str) -> None:
    assert decision(task(), question(kind), "q")[0] == "leave"
    assert decision(task(), question(kind))[0] == "leave"


@pytest.mark.parametrize("kind", ["one", "text", "files"])
def test_only_what_is_not_required_can_be_passed_over(task: Make, kind: str) -> None:
    assert decision(task(), question(kind, required=False), "")[0] == "passed over"
    assert decision(task(), question(kind), "", "q")[0] == "leave"


@pytest.mark.parametrize(
    ("letter", "scope"),
    [("o", "once"), ("a", "attempt"), ("t", "task"), ("l", "always"), ("Always", "always")],
)
def test_a_permission_has_four_scopes(task: Make, letter: str, scope: Any) -> None:
    """ST-14, UX 9."""
    reply, person = decision(task(), PERMISSION, "", "yes", letter)
    assert reply == Allow(project="/p", task=12, decision="P1", scope=scope)
    assert "[o]nce / [a]ttempt / [t]ask / a[l]ways / [d]eny / q" in person.prompts[0]
    assert person.said == ["“yes” is none of these."]


def test_a_denial_takes_a_word_to_the_agent(task: Make) -> None:
    reply, _ = decision(task(), PERMISSION, "d", "use npm ci")
    assert reply == Deny(project="/p", task=12, decision="P1", text="use npm ci")
    assert decision(task(), PERMISSION, "d")[0] == "leave"


# --- words of the command line -----------------------------------------------------------------------------


def test_drafts_from_words() -> None:
    assert drafts.selected(ONE, ["C"]) == {"A": False, "B": False, "C": True}
    assert drafts.checks(LIST, ["all", "C1=done"]) == {"C1": "done", "W1": "", "I1": ""}
    assert drafts.checks(LIST, ["C1=done", "all"]) == {"C1": "done", "W1": "", "I1": ""}
    assert drafts.fields(["title=a=b", "note="]) == {"title": "a=b", "note": ""}


def test_drafts_that_make_no_sense() -> None:
    with pytest.raises(Stopped, match="no option Z"):
        drafts.selected(ONE, ["Z"])
    with pytest.raises(Stopped, match="no item Z9"):
        drafts.checks(LIST, ["Z9"])
    with pytest.raises(UsageError, match="NAME=VALUE"):
        drafts.fields(["title"])
