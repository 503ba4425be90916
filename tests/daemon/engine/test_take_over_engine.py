"""A person goes on with an agent's conversation in a terminal of their own, and gives it back (ED-14)."""

from __future__ import annotations

from typing import Any

import engine_builders as b
import pytest
from engine_builders import AT, PLAYS, Play, given

from promptside_daemon.engine.decide import decide
from promptside_daemon.engine.given import Terminal
from promptside_daemon.engine.offers import offers
from promptside_daemon.engine.task import Order, Paused, Taken, Task
from promptside_daemon.engine.view import Places, view, waiting_for
from promptside_protocol import commands as c
from promptside_protocol.errors import Refusal, Refused
from promptside_protocol.views import Change, StageView, TaskView

SINCE = "You work on it in a terminal since 14:05."
WORK = Terminal(
    changes=(Change(path="src/a.py", kind="modified", added=3, removed=1),),
    transcript="/home/ada/.claude/projects/shop/s.jsonl",
)


def refusal(task: Task, command: Any, **changes: Any) -> Refusal:
    with pytest.raises(Refused) as caught:
        decide(task, command, given(task, command, **changes))
    return caught.value.refusal


def shown(play: Play) -> TaskView:
    return view(play.task, 1, Places("/attempts"))


def research(play: Play) -> StageView:
    return shown(play).stages[0]


def ordered(play: Play) -> Order:
    run = play.task.run
    assert run is not None
    order = getattr(run.status, "order", None)
    assert isinstance(order, Order)
    return order


def test_a_running_attempt_is_paused_and_its_conversation_goes_on_with_the_persons_turns_in_it() -> None:
    play = b.ran().runs().order(c.TakeOver(**AT), clock="14:05")
    assert play.kinds() == ["stop_attempt"]
    play.ended(failure=b.FAILED).order(c.GiveBack(**AT), terminal=WORK)
    assert play.statuses()[0] == "held"
    assert isinstance(play.task.life, Paused)
    assert play.order(c.Resume(**AT)).kinds() == ["want_slot"]
    assert ordered(play) == Order(cause="resumed", resume="session-t12-0001")


def test_a_gate_waits_again_with_its_document_and_a_redo_resumes() -> None:
    play = b.ran().done()
    form = play.task.stages[0].form
    play.order(c.TakeOver(**AT), clock="14:05")
    assert play.kinds() == []
    assert waiting_for(play.task) is None
    play.order(c.GiveBack(**AT), terminal=WORK)
    assert isinstance(play.task.life, Taken)
    assert play.statuses()[0] == "at_gate"
    assert play.task.stages[0].form == form
    assert waiting_for(play.task) is not None
    play.order(c.Redo(**AT, feedback="As we said."))
    assert ordered(play) == Order(cause="redo", resume="session-t12-0001", feedback="As we said.")


def test_what_was_done_stands_with_the_attempt() -> None:
    """Who, from when to when, where the conversation is, which files changed."""
    play = PLAYS["taken over at the gate"]()
    began = play.now
    play.order(c.GiveBack(**AT), terminal=WORK)
    (work,) = research(play).attempts[0].terminals
    assert (work.by, work.since, work.until) == ("ada", began, play.now)
    assert (work.session, work.transcript) == ("session-t12-0001", WORK.transcript)
    assert work.changes == WORK.changes
    again = play.order(c.TakeOver(**AT), clock="15:00").order(c.GiveBack(**AT))
    assert len(research(again).attempts[0].terminals) == 2


def test_very_many_changed_paths_are_counted() -> None:
    many = tuple(Change(path=f"f{n}", kind="added") for n in range(250))
    play = PLAYS["taken over at the gate"]().order(c.GiveBack(**AT), terminal=Terminal(changes=many))
    (work,) = research(play).attempts[0].terminals
    assert (len(work.changes), work.unlisted) == (200, 50)


@pytest.mark.parametrize("name", [n for n in PLAYS if n.startswith("taken over")])
def test_meanwhile_the_one_thing_to_do_is_to_give_back(name: str) -> None:
    """Every order but that, and edits of drafts, is refused with the same reason."""
    play = PLAYS[name]()
    (offer,) = offers(play.task)
    assert (offer.command, offer.title) == ("promptside.giveBack", "Give back to the agent")
    assert (offer.blocked, offer.hint) == (None, "promptside give-back 12")
    for order in b.orders(play.task):
        if not isinstance(order, c.GiveBack | c.EditDraft):
            said = refusal(play.task, order)
            assert (said.code, said.message) == ("taken-over", SINCE)
    seen = shown(play)
    assert seen.state == "paused"
    assert research(play).reason == SINCE
    assert seen.terminal is not None
    assert (seen.terminal.stage, seen.terminal.attempt, seen.terminal.words) == ("research", 1, SINCE)
    assert shown(play.order(c.GiveBack(**AT))).terminal is None


@pytest.mark.parametrize("name", [n for n in PLAYS if n.startswith("taken over")])
def test_nothing_starts_meanwhile(name: str) -> None:
    play = PLAYS[name]()
    assert play.task.wake_at is None
    for event in b.happenings(play.task):
        after = Play()
        after.task = play.task
        after.tell(event)
        if after.task.taken_over is not None:
            assert not {"want_slot", "start_attempt"} & set(after.kinds()), event


def test_a_task_that_was_paused_stays_so_and_a_question_waits_on() -> None:
    paused = PLAYS["taken over while paused"]().order(c.GiveBack(**AT))
    assert isinstance(paused.task.life, Paused)
    parked = PLAYS["taken over while parked"]().order(c.GiveBack(**AT))
    assert isinstance(parked.task.life, Taken)
    assert parked.task.open_questions
    play = b.ran().runs().asks().order(c.TakeOver(**AT), clock="14:05").ended().order(c.GiveBack(**AT))
    assert (play.statuses()[0], isinstance(play.task.life, Taken)) == ("parked", True)


def test_given_back_while_the_agent_is_still_ending_it_stays_paused() -> None:
    play = PLAYS["taken over, still ending"]().order(c.GiveBack(**AT))
    assert isinstance(play.task.life, Paused)
    assert play.ended().statuses()[0] == "held"
    assert play.kinds() == []


def test_a_terminal_that_is_open_is_not_taken_from_the_person() -> None:
    """Two programs in one conversation would both write it; a killed terminal holds nothing."""
    play = b.ran().done().order(c.TakeOver(**AT), clock="14:05", terminal=Terminal(pid=77, pid_started="x"))
    assert play.task.taken_over is not None
    assert (play.task.taken_over.pid, play.task.taken_over.pid_started) == (77, "x")
    said = refusal(play.task, c.GiveBack(**AT), terminal=Terminal(pid=77))
    assert (said.code, said.message) == ("terminal-open", f"{SINCE} It is still open (process 77).")
    assert play.order(c.GiveBack(**AT)).task.taken_over is None


@pytest.mark.parametrize(
    ("play", "code", "words"),
    [
        (
            lambda: Play(agent="rehearsal:standard").order(c.Run(**AT)).done(),
            "no-session",
            "A rehearsal has no session",
        ),
        (lambda: b.ran().granted(), "starting", "still starting"),
        (b.ran, "no-session", "waits for a free agent"),
        (Play, "no-session", "has not run yet"),
        (PLAYS["completed"], "state", "is done"),
        (PLAYS["abandoned"], "state", "is abandoned"),
        (lambda: b.ran().granted().ended(failure=b.FAILED), "no-session", "There is no session to continue"),
    ],
)
def test_where_there_is_nothing_to_go_on_with_it_says_so(play: Any, code: str, words: str) -> None:
    said = refusal(play().task, c.TakeOver(**AT))
    assert said.code == code
    assert words in said.message


def test_it_is_offered_where_an_attempt_is_and_blocked_with_its_reason() -> None:
    def found(play: Play) -> list[str | None]:
        return [o.blocked for o in offers(play.task) if o.command == "promptside.takeOver"]

    assert found(b.ran().done()) == [None]
    assert found(Play(agent="rehearsal:standard").order(c.Run(**AT)).done()) == [
        "A rehearsal has no session to continue."
    ]
    assert found(b.ran()) == []
    assert found(PLAYS["completed"]()) == []


def test_nobody_gives_back_what_nobody_took() -> None:
    assert refusal(b.ran().done().task, c.GiveBack(**AT)).code == "not-taken-over"


def test_a_broken_task_is_taken_over_no_more() -> None:
    from promptside_daemon.engine.events import StepFailed

    play = PLAYS["taken over at the gate"]().tell(StepFailed(at=900.0, reason="A fault."))
    assert play.task.taken_over is None
