"""Offers are the orders: blocked if and only if `decide` refuses, and never none at all (UX 1.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from engine_builders import AT, PLAYS, lives, tasks, with_life
from msgspec.structs import replace

from promptside_daemon.engine.decide import decide
from promptside_daemon.engine.offers import example, offers
from promptside_daemon.engine.task import Archived, Task, with_run
from promptside_protocol.commands import COMMANDS
from promptside_protocol.errors import Refused
from promptside_protocol.views import Offer

TASKS = tasks()


def refuses(task: Task, offer: Offer) -> str | None:
    """What `decide` says of the order that an offer stands for."""
    kind = COMMANDS[offer.command.removeprefix("promptside.")]
    text = {"text": "Shorter."} if offer.command == "promptside.interrupt" else {}
    order = msgspec.convert({"type": kind.__struct_config__.tag, **AT, **offer.args, **text}, kind)
    try:
        decide(task, order, example(task, order))  # type: ignore[arg-type]  # offers are made of stage commands
    except Refused as refused:
        return refused.refusal.message
    return None


@pytest.mark.parametrize("name", TASKS)
def test_an_offer_is_blocked_if_and_only_if_its_order_is_refused(name: str) -> None:
    for offer in offers(TASKS[name]):
        assert offer.blocked == refuses(TASKS[name], offer), offer.title


@pytest.mark.parametrize("name", TASKS)
def test_a_person_can_always_do_something(name: str) -> None:
    """No dead ends: only what is archived has no offer that is open."""
    free = [offer.title for offer in offers(TASKS[name]) if offer.blocked is None]
    assert bool(free) != isinstance(TASKS[name].life, Archived), free


@pytest.mark.parametrize("name", TASKS)
def test_an_offer_is_whole(name: str) -> None:
    for offer in offers(TASKS[name]):
        assert offer.title
        assert offer.hint.startswith("promptside ")
        assert " 12" in offer.hint
        assert len({(o.command, o.title, o.place, *o.args.values()) for o in offers(TASKS[name])}) == len(
            offers(TASKS[name])
        )


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("life", lives(), ids=lambda life: type(life).__name__)
def test_offers_are_made_of_any_task(name: str, life: object) -> None:
    assert isinstance(offers(with_life(TASKS[name], life)), tuple)


@pytest.mark.parametrize(
    ("name", "first", "titles"),
    [
        ("draft", "Mark ready", {"Abandon…"}),
        ("ready", "Run Research", {"Skip Research…", "Abandon…"}),
        ("queued", "Stop", {"Pause"}),
        ("running", "Stop", {"Pause", "Interrupt with feedback…"}),
        ("asking leave", "Allow once", {"Allow for this attempt", "Always in this project", "Deny…"}),
        ("parked", "Send answers", {"Redo…", "Stop", "Pause", "Skip Research…"}),
        ("text at its gate", "Approve", {"Redo…", "Skip Research…", "Pause"}),
        ("stuck", "Retry", {"Redo…", "Skip Research…"}),
        ("retry due", "Retry", {"Redo…", "Stop"}),
        ("waits for input", "Run Approaches", {"Take back the approval", "Go back to…"}),
        ("held", "Resume", {"Stop", "Abandon…"}),
        ("void, the next stage runs", "Approve Research again", {"Take back the approval"}),
        ("breach", "Retry", {"Undo what the attempt changed…"}),
        ("completed", "Archive", {"Take back the approval", "Go back to…"}),
        ("broken", "Archive", set[str]()),
    ],
)
def test_what_is_offered(name: str, first: str, titles: set[str]) -> None:
    """GA-11, ST-14, CW-23: what a person would look for here is there."""
    found = offers(TASKS[name])
    assert found[0].title == first
    assert titles <= {o.title for o in found}


def test_a_permission_without_a_rule_is_offered_once_only() -> None:
    titles = {o.title for o in offers(TASKS["asking leave without a rule"]) if o.place == "P1"}
    assert titles == {"Allow once", "Deny…"}


def test_the_hint_of_an_approval_names_the_recommended_option() -> None:
    approve = next(o for o in offers(TASKS["options at their gate"]) if o.title == "Approve")
    assert approve.hint == "promptside approve 12 --select A"
    assert approve.blocked is not None
    assert approve.blocked.startswith("Not approved: ")


def test_a_point_that_is_not_reviewed_can_be_sent_back_to_the_stage_that_fixes_it() -> None:
    """UX 2.5: where the pipeline names one; the point is what that stage is told."""
    task = TASKS["checklist at its gate"]
    found = {o.title: o for o in offers(task) if o.command == "promptside.goBack" and o.place}
    assert list(found) == ["Have C1 fixed", "Have W1 fixed"]
    order = found["Have C1 fixed"]
    assert (order.place, order.args["stage"], order.blocked) == ("C1", "build", None)
    assert order.args["reason"].startswith("Fix C1: ")
    ticked = with_answers(
        task, {"C1": {"ticked": True, "note": ""}, "W1": {"ticked": False, "note": "In b.py."}}
    )
    (left,) = [o for o in offers(ticked) if o.place and o.command == "promptside.goBack"]
    assert left.args["reason"].endswith("In b.py.")


def with_answers(task: Task, answers: dict[str, Any]) -> Task:
    run = task.run
    assert run is not None
    assert run.form is not None
    return with_run(task, task.current, replace(run, form=replace(run.form, answers=answers)))


def test_sending_is_open_when_the_draft_is_whole() -> None:
    play = PLAYS["asking"]()
    assert next(o for o in offers(play.task) if o.title == "Send answers").blocked
    document = play.task.questions.document if play.task.questions is not None else ""
    from promptside_protocol.commands import EditDraft

    play.order(EditDraft(**AT, document=document, answers={"Q1": ["A"]}))
    assert next(o for o in offers(play.task) if o.title == "Send answers").blocked is None
