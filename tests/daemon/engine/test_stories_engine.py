"""Stories of a task as the engine sees them: orders and observations in a row, statuses and effects behind them."""

from __future__ import annotations

from typing import Any

import pytest
from engine_builders import (
    ADA,
    AT,
    BREACH,
    CHANGED,
    CHANGED_SINCE,
    FAILED,
    ONE,
    OPTIONAL,
    PIPELINE,
    PLAYS,
    Play,
    definition,
    faults,
    question,
    ran,
)
from msgspec.structs import replace

from promptside_daemon.engine import effects as x
from promptside_daemon.engine import events as e
from promptside_daemon.engine.attempt import CLOSE_S, REASK
from promptside_daemon.engine.pipeline import Limits
from promptside_daemon.engine.retry import AFRESH, RETRY_DELAYS_S
from promptside_daemon.engine.task import (
    AllowTool,
    Chosen,
    DenyTool,
    Failure,
    GiveAnswers,
    Interrupt,
    Order,
    Person,
    SayText,
    Usage,
)
from promptside_daemon.engine.view import Places, view
from promptside_protocol import commands as c
from promptside_protocol import forms
from promptside_protocol.errors import Refused
from promptside_protocol.views import AttemptView, Change

GONE = Failure(kind="session_gone", sentence="The agent's conversation is gone.", retryable=True)


def sent(play: Play) -> list[Any]:
    """The messages in the live attempt's outbox, without the prompt."""
    attempt = play.attempt
    assert attempt is not None
    assert attempt.live is not None
    return list(attempt.live.outbox)


def order(play: Play) -> Order:
    """How the current stage starts, or would."""
    found = play.status.order if hasattr(play.status, "order") else play.task.run.last.order  # type: ignore[union-attr]
    assert isinstance(found, Order)
    return found


# --- the way through a pipeline ----------------------------------------------------------------------


def test_from_the_first_run_to_the_last_approval() -> None:
    """ST-2, ST-5: run, gate, approve, next; the stage without a gate passes by itself, one waits for input."""
    play = ran()
    seen = [play.statuses()]
    assert play.kinds() == ["want_slot"]
    for stage in ("research", "approaches", "notes", "build", "review", "pr"):
        assert play.task.run is not None
        assert play.task.run.id == stage
        if play.statuses()[play.task.current] == "awaits_input":
            play.order(c.Run(**AT, input="Use sessions."))
        assert play.granted().kinds() == ["start_attempt"]
        assert play.started().turn().kinds() == ["close_input", "wake_at"]
        play.ended()
        seen.append(play.statuses())
        if stage != "notes":
            assert play.kinds() == ["write_document"]
            play.approved()
            assert play.kinds()[0] == "write_document"
    assert [s[0] for s in seen[:2]] == ["queued", "at_gate"]
    assert seen[3][:4] == ["passed", "passed", "passed", "awaits_input"]
    assert play.statuses() == ["passed"] * 6
    assert play.task.life.__struct_config__.tag == "completed"
    assert play.task.current == 6
    assert play.task.stages[3].input == "Use sessions."


def test_the_documents_have_the_names_of_the_contract() -> None:
    """UX 2.1: `NN-<stage>.md`, or the artifact's own name."""
    play = Play().to("pr").done()
    directory = ".promptside/tasks/12-add-login"
    assert [r.form.document for r in play.task.stages if r.form is not None] == [
        f"{directory}/01-research.md",
        f"{directory}/02-approaches.md",
        f"{directory}/03-notes.md",
        f"{directory}/04-build.md",
        f"{directory}/05-review.md",
        f"{directory}/PR.md",
    ]


def test_a_new_task_starts_nothing() -> None:
    play = Play()
    assert play.statuses()[0] == "ahead"
    assert [type(f).__name__ for f in play.effects] == ["WriteDocument"]


def test_run_stage_stops_after_each_stage() -> None:
    """CLI.md: `--stage` holds for what comes next; the next `run` without it goes on."""
    play = Play().order(c.Run(**AT, stage_only=True)).done().approved()
    assert play.statuses()[:2] == ["passed", "awaits_input"]
    play.order(c.Run(**AT)).done().approved()
    assert play.statuses()[2] == "queued"


def test_what_an_approval_vouches_for_is_kept() -> None:
    """CW-23: bytes, answers, who, when, from where."""
    play = ran().to("approaches").done().approved(note="Go.")
    run = play.task.stages[1]
    assert run.form is not None
    assert run.form.answers == {"A": True}
    assert run.status.by == ADA  # type: ignore[union-attr]
    assert run.status.note == "Go."  # type: ignore[union-attr]
    assert run.status.shown == run.form.shown  # type: ignore[union-attr]
    assert len(run.form.shown) == 64


def test_a_stage_goes_on_in_the_conversation_before_it() -> None:
    """ST-15: `session = "continue"`."""
    play = Play().to("build")
    assert order(play).resume == "session-t12-0003"
    play.runs()
    assert play.task.stages[3].attempts[0].session == "session-t12-0003"
    play.ended(failure=FAILED).woke()
    assert (order(play).cause, order(play).resume) == ("retry", "session-t12-0003")


def test_a_new_session_is_the_rule() -> None:
    play = ran().done().approved()
    assert order(play).resume == ""


# --- redo --------------------------------------------------------------------------------------------


def test_redo_goes_on_in_the_same_conversation() -> None:
    """ST-8: attempts numbered, every one kept."""
    play = ran().done().order(c.Redo(**AT, feedback="Shorter."))
    assert order(play) == Order(cause="redo", resume="session-t12-0001", feedback="Shorter.")
    play.done()
    assert [(a.n, a.status) for a in play.task.stages[0].attempts] == [(1, "done"), (2, "done")]
    form = play.task.stages[0].form
    assert form is not None
    assert form.attempt == 2


def test_redo_fresh_begins_a_new_one_and_tells_what_was_answered() -> None:
    play = ran().runs().asks().order(c.Answer(**AT, decision="Q1", options=("A",))).turn().ended()
    play.order(c.Redo(**AT, feedback="Shorter.", fresh=True))
    assert order(play).resume == ""
    assert order(play).answers == "You asked: Which login?\nThe answer: Sessions"


def test_a_session_that_is_gone_is_replaced_once_and_said() -> None:
    """ST-8: afresh, with prompt, last output and everything that a person had said."""
    play = ran().done().order(c.Redo(**AT, feedback="Shorter.")).done()
    play.order(c.Redo(**AT, feedback="And with tests.")).runs().turn(failure=GONE).ended()
    assert play.statuses()[0] == "queued"
    assert play.kinds() == ["want_slot"]
    assert order(play) == Order(cause="redo", feedback="Shorter.\n\nAnd with tests.", note=AFRESH)
    assert play.task.stages[0].retries == 0
    play.runs()
    assert play.attempt.note == AFRESH
    play.turn(failure=GONE).ended()
    assert play.statuses()[0] == "retry_due"


def test_the_version_of_a_draft_never_comes_again() -> None:
    """UX 2.1.2: an edit that was based on an older document is never taken for a newer one."""
    play = ran().to("approaches").done()
    document = play.task.stages[1].form.document  # type: ignore[union-attr]
    versions = []
    for _ in range(2):
        play.order(c.EditDraft(**AT, document=document, answers={"B": True}))
        versions.append(play.task.stages[1].form.version)  # type: ignore[union-attr]
        play.order(c.Redo(**AT)).done()
        versions.append(play.task.stages[1].form.version)  # type: ignore[union-attr]
    play.order(c.GoBack(**AT, stage="research", reason="Thin.")).done().approved().done()
    versions.append(play.task.stages[1].form.version)  # type: ignore[union-attr]
    assert versions == sorted(set(versions))


# --- failing and trying again ------------------------------------------------------------------------


def test_retries_in_their_order() -> None:
    """GA-7: at growing distances, as many as the settings say, then a person."""
    play = ran()
    for n, delay in enumerate(RETRY_DELAYS_S, 1):
        play.fails()
        assert play.statuses()[0] == "retry_due"
        assert (play.status.n, play.status.at) == (n, play.now + delay)
        assert play.last == (x.WakeAt(at=play.now + delay),)
        assert play.task.wake_at == play.now + delay
        assert play.woke().kinds() == ["want_slot"]
        assert order(play) == Order(cause="retry", failure="The agent died.")
    play.fails()
    assert play.statuses()[0] == "stuck"
    assert play.task.wake_at is None
    assert [a.status for a in play.task.stages[0].attempts] == ["failed"] * 6


def test_a_retry_keeps_what_a_person_said() -> None:
    play = ran().done().order(c.Redo(**AT, feedback="Shorter.")).fails().woke()
    assert order(play) == Order(cause="retry", feedback="Shorter.", failure="The agent died.")


def test_the_counter_starts_anew_with_a_person_and_with_a_stage() -> None:
    """GA-7."""
    play = ran().fails()
    assert play.task.stages[0].retries == 1
    play.order(c.Retry(**AT))
    assert play.task.stages[0].retries == 0
    play.done().approved().fails().order(c.GoBack(**AT, stage="research", reason="Thin.")).done().approved()
    assert play.task.stages[1].retries == 0


@pytest.mark.parametrize("kind", ["login", "credit", "model_unknown", "max_turns", "budget"])
def test_what_is_never_tried_again_by_itself(kind: str) -> None:
    failure = Failure(kind=kind, sentence="It can't go on.", hint="Do this.")
    play = ran().runs().turn(failure=failure).ended()
    assert play.statuses()[0] == "stuck"
    assert play.status.failure == failure


def test_a_breach_is_never_tried_again_whatever_else_happened() -> None:
    """ST-16: silence may be tried again, a read-only stage that wrote may not."""
    for play in (
        ran().runs().turn().ended(proof=BREACH, changes=CHANGED),
        ran().runs().on(e.Condemned, line=False, failure=FAILED).ended(proof=BREACH),
        ran().runs().order(c.Pause(**AT)).ended(proof=BREACH),
        ran().runs().asks().woke().ended(proof=BREACH),
        ran().fails(kind="breach", sentence="The agent ran rm.", retryable=True),
    ):
        assert play.statuses()[0] == "stuck"
        assert play.status.failure.kind == "breach"
        assert play.task.open_decisions == ()
        assert faults(play.task) == []


def test_a_breach_names_a_few_paths() -> None:
    many = replace(BREACH, breach=tuple(f"src/{n}.py" for n in range(300)))
    play = ran().runs().turn().ended(proof=many)
    assert play.status.failure.sentence == (
        "The stage is read-only, but the agent changed "
        "src/0.py, src/1.py, src/2.py, src/3.py, src/4.py and 295 more."
    )


def test_a_limit_with_an_end_goes_on_by_itself_and_counts_as_no_retry() -> None:
    """M20."""
    play = ran().fails(kind="rate_limited", until=5000.0)
    assert (play.status.at, play.status.n, play.task.stages[0].retries) == (5000.0, 0, 0)
    assert play.woke(4999.0).statuses()[0] == "retry_due"
    assert play.last == (x.WakeAt(at=5000.0),)
    assert play.woke(5000.0).statuses()[0] == "queued"


def test_a_limit_whose_end_is_past_is_an_ordinary_failure() -> None:
    """Else an agent that names yesterday would be started once a second for ever."""
    play = ran().fails(kind="rate_limited", until=1.0)
    assert (play.status.n, play.task.stages[0].retries) == (1, 1)


def test_an_end_without_a_result() -> None:
    """The agent is gone, and nothing was said of why."""
    play = ran().runs().ended()
    assert play.statuses()[0] == "retry_due"
    assert play.task.stages[0].attempts[0].failure.kind == "no_result"  # type: ignore[union-attr]


def test_an_end_while_it_was_asked_again_is_no_output() -> None:
    play = ran().runs().turn(invalid="no object").ended()
    assert play.statuses()[0] == "retry_due"
    assert play.task.stages[0].form is None


def test_a_kill_after_a_good_result_fails_nothing() -> None:
    """CLAUDE_CLI 0.4: it has done its work."""
    play = ran().runs().turn().ended(failure=FAILED)
    assert play.statuses()[0] == "at_gate"


def test_a_result_after_the_result_changes_nothing() -> None:
    play = ran().runs().turn()
    before = play.task.stages[0].form
    play.turn(definition=definition("research", 9), shown="other", text="other")
    assert play.last == ()
    assert play.task.stages[0].form == before
    assert play.attempt.usage.input_tokens == 200
    assert play.turn(failure=FAILED).ended().statuses()[0] == "at_gate"


def test_long_failures_are_cut() -> None:
    play = ran().fails(sentence="word " * 5000)
    assert len(play.task.stages[0].attempts[0].failure.sentence) < 1100  # type: ignore[union-attr]


def test_an_agent_that_stays_after_its_result_is_stopped() -> None:
    """DA-3: a result, the end of its input, and still there a minute later."""
    play = ran().runs().turn()
    assert play.task.wake_at == play.now + CLOSE_S
    play.woke()
    assert play.kinds() == ["stop_attempt", "wake_at"]
    assert play.ended(failure=FAILED).statuses()[0] == "at_gate"


# --- an output that does not fit ---------------------------------------------------------------------


def test_one_question_more_then_it_is_shown_as_it_came() -> None:
    """ST-7, M30."""
    play = ran().to("approaches").runs().turn(definition=definition("research"), invalid="no object")
    assert play.kinds() == ["deliver"]
    assert sent(play) == [SayText(number=2, text=REASK.format(why="no object"))]
    play.turn(definition=definition("research"), invalid="still none")
    assert play.kinds() == ["close_input", "wake_at"]
    play.ended()
    form = play.task.stages[1].form
    assert form is not None
    assert form.raw == "still none"
    assert play.statuses()[1] == "at_gate"
    with pytest.raises(Refused, match="does not fit options and can't be approved"):
        play.order(c.Approve(**AT))


def test_the_second_answer_fits() -> None:
    play = ran().to("approaches").runs().turn(invalid="no object").turn().ended()
    assert play.task.stages[1].form.raw == ""  # type: ignore[union-attr]
    assert play.approved().statuses()[1] == "passed"


def test_without_a_gate_a_raw_output_is_seen_all_the_same() -> None:
    play = PLAYS["no gate, but raw"]()
    assert play.statuses()[2] == "at_gate"
    assert play.order(c.Approve(**AT)).statuses()[2] == "passed"


# --- stopping, pausing, saying -----------------------------------------------------------------------


def test_stop_ends_it_and_nothing_follows() -> None:
    """CLI.md: the attempt fails with “stopped by you”, no retry follows."""
    play = ran().runs().asks().order(c.Stop(**AT))
    assert play.kinds() == ["stop_attempt"]
    assert [d.status for d in play.task.decisions] == ["withdrawn"]
    play.turn(interrupted=True, failure=FAILED).ended(failure=FAILED)
    assert play.statuses()[0] == "stuck"
    attempt = play.task.stages[0].attempts[0]
    assert (attempt.status, attempt.failure.sentence) == ("stopped", "Stopped by you.")  # type: ignore[union-attr]
    assert play.task.wake_at is None


def test_stop_before_the_process_is_there() -> None:
    """The order meets an attempt that is being prepared: it is carried out when there is something to end."""
    play = ran().granted().order(c.Stop(**AT))
    play.on(e.AttemptStarted, line=False)
    assert play.kinds() == ["stop_attempt"]
    assert play.ended().statuses()[0] == "stuck"


@pytest.mark.parametrize("name", ["queued", "retry due", "limit due", "parked", "held"])
def test_stop_where_nothing_runs(name: str) -> None:
    play = PLAYS[name]().order(c.Stop(**AT))
    assert play.statuses()[0] == "stuck"
    assert (play.status.failure.kind, play.task.wake_at, play.last) == ("stopped", None, ())
    assert play.task.open_decisions == ()


def test_a_retry_after_a_stop_keeps_the_words_that_were_waiting() -> None:
    play = ran().done().order(c.Redo(**AT, feedback="Shorter.")).order(c.Stop(**AT)).order(c.Retry(**AT))
    assert order(play) == Order(cause="redo", resume="session-t12-0001", feedback="Shorter.")
    again = ran().runs().order(c.Stop(**AT)).ended().order(c.Retry(**AT))
    assert order(again) == Order(cause="retry")


def test_pause_keeps_the_session_and_resume_goes_on() -> None:
    """GA-11."""
    play = ran().runs().order(c.Pause(**AT))
    assert play.kinds() == ["stop_attempt"]
    play.ended(failure=FAILED)
    assert play.statuses()[0] == "held"
    assert play.task.stages[0].attempts[0].status == "paused"
    assert play.order(c.Resume(**AT)).kinds() == ["want_slot"]
    assert order(play) == Order(cause="resumed", resume="session-t12-0001")


def test_resume_while_it_is_still_ending() -> None:
    """The orders cross with the end of the process: it goes on as soon as that is gone."""
    play = ran().runs().order(c.Pause(**AT)).order(c.Resume(**AT))
    assert play.kinds() == []
    assert play.ended().statuses()[0] == "queued"
    assert play.kinds() == ["want_slot"]


def test_pause_resume_pause_and_then_the_end() -> None:
    play = ran().runs().order(c.Pause(**AT)).order(c.Resume(**AT)).order(c.Pause(**AT)).ended()
    assert play.statuses()[0] == "held"


@pytest.mark.parametrize("resumed", [False, True])
def test_stop_after_pause_is_a_stop(resumed: bool) -> None:
    play = ran().runs().order(c.Pause(**AT))
    if resumed:
        play.order(c.Resume(**AT))
    play.order(c.Stop(**AT)).ended()
    assert play.statuses()[0] == "stuck"
    assert play.task.stages[0].attempts[0].status == "stopped"


def test_pause_after_the_result_loses_no_result() -> None:
    play = ran().runs().turn().order(c.Pause(**AT)).ended()
    assert play.statuses()[0] == "at_gate"
    assert play.task.stages[0].attempts[0].status == "done"
    assert play.order(c.Resume(**AT)).approved().statuses()[:2] == ["passed", "queued"]


def test_pause_where_it_waits_to_start() -> None:
    for play in (ran(), ran().fails()):
        expected = order(play)
        play.order(c.Pause(**AT))
        assert play.statuses()[0] == "held"
        assert play.task.wake_at is None
        assert play.order(c.Resume(**AT)).statuses()[0] == "queued"
        assert order(play) == expected


def test_nothing_starts_while_it_is_paused() -> None:
    """A failure that is tried again, or a session that is gone, waits for the person too."""
    silence = replace(FAILED, kind="silence")
    play = ran().runs().on(e.Condemned, line=False, failure=silence).order(c.Pause(**AT)).ended()
    assert (play.statuses()[0], play.task.wake_at) == ("held", None)
    assert order(play).failure == "The agent died."
    gone = ran().done().order(c.Redo(**AT)).runs().turn(failure=GONE).order(c.Pause(**AT)).ended()
    assert gone.statuses()[0] == "held"
    assert gone.kinds() == []


def test_pause_before_the_session_is_known_starts_the_same_again() -> None:
    play = ran().done().order(c.Redo(**AT, feedback="Shorter.")).granted().order(c.Pause(**AT)).ended()
    assert order(play) == Order(cause="redo", resume="session-t12-0001", feedback="Shorter.")


def test_say_breaks_the_turn_off_and_goes_on() -> None:
    """GA-11: interrupt with feedback; what was asked is asked no more."""
    play = ran().runs().asks().order(c.Say(**AT, text="Shorter."))
    assert play.kinds() == ["deliver"]
    assert sent(play) == [Interrupt(number=2), SayText(number=3, text="Shorter.")]
    assert [d.status for d in play.task.decisions] == ["withdrawn"]
    play.turn(interrupted=True, failure=Failure(kind="interrupted", sentence="The agent was stopped."))
    assert play.kinds() == []
    assert play.turn().ended().statuses()[0] == "at_gate"


def test_say_meets_a_result_that_was_under_way() -> None:
    """The turn ended by itself before the words came: its result is not the stage's, the next one is."""
    play = ran().runs().order(c.Say(**AT, text="Shorter.")).turn(text="first")
    assert play.kinds() == []
    play.turn(text="second").ended()
    assert play.task.stages[0].form.text == "second"  # type: ignore[union-attr]


def test_say_then_stop() -> None:
    play = ran().runs().order(c.Say(**AT, text="Shorter.")).order(c.Stop(**AT))
    assert play.turn(interrupted=True, failure=FAILED).kinds() == ["close_input", "wake_at"]
    assert play.ended().statuses()[0] == "stuck"


def test_say_twice() -> None:
    play = ran().runs().order(c.Say(**AT, text="Shorter."))
    play.turn(interrupted=True, failure=FAILED).order(c.Say(**AT, text="Much shorter."))
    assert [m.number for m in sent(play)] == [2, 3, 4, 5]
    play.turn(interrupted=True, failure=FAILED).turn().ended()
    assert play.statuses()[0] == "at_gate"


# --- questions ---------------------------------------------------------------------------------------


def test_questions_one_by_one_and_the_agent_hears_all_at_once() -> None:
    """CW-3, CW-4: numbered through the task; the answers go in the order of the questions."""
    play = ran().runs().asks(ONE, question("Which test?"))
    assert [d.id for d in play.task.decisions] == ["Q1", "Q2"]
    assert play.kinds() == ["write_document", "wake_at"]
    play.order(c.Answer(**AT, decision="Q2", text="All."))
    assert sent(play) == []
    assert play.task.questions is not None
    assert play.task.questions.answers == {"Q2": [{"other": "All."}]}
    play.order(c.Answer(**AT, decision="Q1", options=("B",)))
    assert sent(play) == [
        GiveAnswers(number=2, request="r1", answers=(Chosen(options=("B",)), Chosen(words="All.")))
    ]
    assert play.task.questions is None
    assert play.asks(request="r2").task.decisions[-1].id == "Q3"


def test_questions_together() -> None:
    play = ran().runs().asks(ONE, OPTIONAL).order(c.SendAnswers(**AT, answers={"Q1": ["A"]}))
    assert sent(play) == [GiveAnswers(number=2, request="r1", answers=(Chosen(options=("A",)), Chosen()))]
    assert [d.status for d in play.task.decisions] == ["answered", "withdrawn"]


def test_an_optional_question_holds_the_answers_until_they_are_sent() -> None:
    play = ran().runs().asks(ONE, OPTIONAL).order(c.Answer(**AT, decision="Q1", options=("A",)))
    assert sent(play) == []
    play.order(c.SendAnswers(**AT))
    assert len(sent(play)) == 1


def test_an_optional_question_alone() -> None:
    play = ran().runs().asks(OPTIONAL).order(c.SendAnswers(**AT))
    assert sent(play) == [GiveAnswers(number=2, request="r1", answers=(Chosen(),))]


def test_a_second_request_takes_the_draft_of_the_first_along() -> None:
    """UX 2.7: the agent's next batch is the next round; nothing that was written is lost."""
    play = ran().runs().asks(OPTIONAL)
    first = play.task.questions
    assert first is not None
    play.order(c.EditDraft(**AT, document=first.document, answers={"Q1": "Small."}))
    play.asks(ONE, request="r2")
    second = play.task.questions
    assert second is not None
    assert second.document.endswith("-questions-2.md")
    assert second.answers == {"Q1": "Small."}
    assert second.shown == forms.shown(
        second.definition,
        forms.render(second.definition, forms.from_plain(second.definition, second.answers)),
    )
    play.order(c.SendAnswers(**AT, answers={"Q2": ["A"]}))
    assert [(m.request, m.answers) for m in sent(play)] == [
        ("r1", (Chosen(words="Small."),)),
        ("r2", (Chosen(options=("A",)),)),
    ]


def test_the_agent_no_longer_waits() -> None:
    play = ran().runs().asks(ONE).asks(ONE, request="r2").on(e.AskWithdrawn, request="r1")
    assert [d.status for d in play.task.decisions] == ["withdrawn", "open"]
    play.on(e.AskWithdrawn, request="r2")
    assert play.task.questions is None


def test_a_question_dies_with_its_attempt() -> None:
    """An answer that comes too late is refused, and nothing waits for it."""
    play = ran().runs().asks().asks_leave().ended(failure=FAILED)
    assert [d.status for d in play.task.decisions] == ["withdrawn", "withdrawn"]
    with pytest.raises(Refused, match="Q1 is no longer asked"):
        play.order(c.Answer(**AT, decision="Q1", options=("A",)))


def test_a_question_dies_with_its_turn() -> None:
    play = ran().runs().asks().turn()
    assert [d.status for d in play.task.decisions] == ["withdrawn"]


def test_one_line_may_tell_two_things() -> None:
    """A result tells that what was open is withdrawn, and that the turn has ended; told again it is nothing new."""
    play = ran().runs().asks()
    line = 500
    withdrawn = e.AskWithdrawn(at=9.0, attempt=play.attempt.id, offset=line, request="r1")
    of = definition("research")
    turn = e.TurnEnded(
        at=9.0, attempt=play.attempt.id, offset=line, usage=Usage(), definition=of, shown="s", text="t"
    )
    play.tell(withdrawn).tell(turn)
    assert play.kinds() == ["close_input", "wake_at"]
    before = play.task
    for again in (withdrawn, turn):
        play.tell(again)
        assert play.task is before
        assert play.last == ()


# --- parking -----------------------------------------------------------------------------------------


def test_a_question_is_parked_and_its_answer_resumes() -> None:
    """Issue 2, MEASURED: deny with interrupt, wait for the result, end of input; no process is left."""
    play = ran().runs().asks(ONE, question("Which test?"))
    assert play.task.wake_at == play.now + Limits().park_s
    play.woke()
    (denial,) = sent(play)
    assert isinstance(denial, DenyTool)
    assert (denial.request, denial.interrupt) == ("r1", True)
    assert play.turn(interrupted=True, failure=FAILED).kinds() == ["close_input", "wake_at"]
    play.ended()
    assert play.statuses()[0] == "parked"
    assert play.task.stages[0].attempts[0].status == "parked"
    play.order(c.Answer(**AT, decision="Q1", options=("A",)))
    assert play.statuses()[0] == "parked"
    play.order(c.Answer(**AT, decision="Q2", text="All."))
    assert order(play) == Order(
        cause="answered",
        resume="session-t12-0001",
        answers="You asked: Which login?\nThe answer: Sessions\n\nYou asked: Which test?\nThe answer: All.",
    )


def test_only_what_was_parked_is_told_to_the_next_attempt() -> None:
    play = ran().runs().asks_leave().order(c.Allow(**AT)).asks().woke().ended()
    play.order(c.Answer(**AT, decision="Q1", options=("A",)))
    assert order(play).answers == "You asked: Which login?\nThe answer: Sessions"


def test_an_answer_wins_against_parking() -> None:
    play = ran().runs().asks()
    due = play.task.wake_at
    play.order(c.Answer(**AT, decision="Q1", options=("A",))).woke(due)
    assert play.last == ()
    assert [type(m) for m in sent(play)] == [GiveAnswers]


def test_an_answer_while_it_is_being_parked() -> None:
    """It missed the process; the next attempt is told."""
    play = ran().runs().asks().woke().order(c.Answer(**AT, decision="Q1", options=("A",)))
    assert [type(m) for m in sent(play)] == [DenyTool]
    play.turn(interrupted=True, failure=FAILED).ended()
    assert play.statuses()[0] == "queued"
    assert play.kinds() == ["want_slot"]
    assert order(play).answers == "You asked: Which login?\nThe answer: Sessions"


def test_the_end_of_the_turn_takes_nothing_from_what_is_parked() -> None:
    """The CLI withdraws a second open request when the first is denied with an interrupt."""
    play = ran().runs().asks().asks(question("Which test?"), request="r2").woke()
    play.on(e.AskWithdrawn, request="r2").turn(interrupted=True, failure=FAILED).ended()
    assert [d.status for d in play.task.decisions] == ["parked", "parked"]


def test_what_is_asked_on_the_way_out_is_sent_away() -> None:
    """Else the agent would wait for ever for an answer that nobody was asked for."""
    play = ran().runs().asks().woke().asks(question("Which test?"), request="r2")
    assert [d.id for d in play.task.decisions] == ["Q1"]
    assert [m.request for m in sent(play)] == ["r1", "r2"]
    assert play.asks_leave().kinds() == ["deliver", *play.kinds()[1:]]


def test_a_parked_agent_that_stays_is_stopped() -> None:
    play = ran().runs().asks().woke().woke()
    assert "stop_attempt" in play.kinds()
    assert play.ended().statuses()[0] == "parked"


def test_a_parked_permission_holds_for_the_next_attempt() -> None:
    """ST-14: the request is gone, so what was allowed is granted to the attempt that asks again."""
    play = ran().runs().asks_leave().woke().ended().order(c.Allow(**AT))
    assert play.statuses()[0] == "queued"
    assert [(g.rule, g.scope, g.attempt) for g in play.task.grants] == [("Bash(npm install)", "attempt", 2)]
    assert order(play).answers.endswith("The answer: allowed once")


def test_parking_can_be_off_and_only_needs_the_oldest() -> None:
    off = ran()
    off.task = replace(off.task, limits=Limits(park_s=0))
    assert off.runs().asks().task.wake_at is None
    play = ran().runs().asks_leave()
    due = play.task.wake_at
    assert play.asks().task.wake_at == due


def test_redo_while_parked() -> None:
    play = PLAYS["parked"]().order(c.Redo(**AT, feedback="Decide yourself."))
    assert play.task.open_decisions == ()
    assert order(play) == Order(cause="redo", resume="session-t12-0001", feedback="Decide yourself.")


def test_pause_with_an_open_question() -> None:
    """The question stays; after `resume` it waits as before, and its answer goes on."""
    play = ran().runs().asks().order(c.Pause(**AT))
    with pytest.raises(Refused, match="is paused"):
        play.order(c.Answer(**AT, decision="Q1", options=("A",)))
    play.ended().order(c.Resume(**AT))
    assert play.statuses()[0] == "parked"
    play.order(c.Answer(**AT, decision="Q1", options=("A",)))
    assert order(play).cause == "answered"


def test_answered_between_resume_and_the_end_of_the_process() -> None:
    play = ran().runs().asks().order(c.Pause(**AT)).order(c.Resume(**AT))
    play.order(c.Answer(**AT, decision="Q1", options=("A",))).ended()
    assert order(play).answers == "You asked: Which login?\nThe answer: Sessions"


def test_pause_while_parked_and_resume() -> None:
    play = PLAYS["parked"]().order(c.Pause(**AT)).order(c.Resume(**AT))
    assert play.statuses()[0] == "parked"
    assert len(play.task.open_questions) == 2


def test_a_parked_session_that_is_gone() -> None:
    """ARCHITECTURE 5: fresh, with the prompt, question and answer."""
    play = ran().runs().asks().woke().ended().order(c.Answer(**AT, decision="Q1", options=("A",)))
    play.runs().turn(failure=GONE).ended()
    assert order(play) == Order(
        cause="answered", answers="You asked: Which login?\nThe answer: Sessions", note=AFRESH
    )


# --- permissions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "grants", "kept"),
    [("once", [], 0), ("attempt", [("attempt", 1)], 0), ("task", [("task", 1)], 0), ("always", [], 1)],
)
def test_how_far_a_permission_goes(scope: Any, grants: list[Any], kept: int) -> None:
    """ST-14: once, for this attempt, for this task, always in this project."""
    play = ran().runs().asks_leave().order(c.Allow(**AT, scope=scope))
    assert sent(play) == [AllowTool(number=2, request="p1")]
    assert [(g.scope, g.attempt) for g in play.task.grants] == grants
    rules = [f for f in play.last if isinstance(f, x.KeepRule)]
    assert len(rules) == kept
    if kept:
        assert rules == [
            x.KeepRule(
                rule="Bash(npm install)",
                decision="12/P1",
                stage="research",
                by="ada",
                client="Neovim",
                at=play.now,
            )
        ]


def test_deny_with_a_word_to_the_agent() -> None:
    play = ran().runs().asks_leave().order(c.Deny(**AT, text="Use pip."))
    assert sent(play) == [DenyTool(number=2, request="p1", message="Use pip.")]
    assert (play.task.decisions[0].status, play.task.decisions[0].answer) == ("denied", "denied: Use pip.")


def test_two_permissions_and_questions_have_numbers_of_their_own() -> None:
    play = ran().runs().asks_leave().asks().asks_leave(request="p2")
    assert [d.id for d in play.task.decisions] == ["P1", "Q1", "P2"]
    play.order(c.Allow(**AT, decision="P2"))
    assert sent(play) == [AllowTool(number=2, request="p2")]
    assert [d.status for d in play.task.decisions] == ["open", "open", "answered"]


def test_what_a_rule_settles_is_answered_and_a_denial_listed() -> None:
    """ST-14: unattended runs never ask; what was denied is listed in the result."""
    play = ran().runs()
    for request, allowed in (("p1", True), ("p2", False), ("p3", False)):
        reason = "" if allowed else "Research is read-only."
        play.on(e.PermissionSettled, request=request, tool="Bash", what="ls", allowed=allowed, reason=reason)
    assert [type(m).__name__ for m in sent(play)] == ["AllowTool", "DenyTool", "DenyTool"]
    assert [(d.tool, d.what, d.reason) for d in play.attempt.denials] == [
        ("Bash", "ls", "Research is read-only.")
    ]


# --- taking back, and what changes under an approval -------------------------------------------------


def test_take_back_stops_what_the_approval_started() -> None:
    """CW-23, CLI.md: the started stage is stopped, its attempt kept as such."""
    play = ran().done().approved().runs().asks().order(c.TakeBack(**AT))
    assert play.kinds() == ["stop_attempt"]
    assert play.statuses()[:2] == ["at_gate", "ahead"]
    assert play.task.open_decisions == ()
    play.ended(failure=FAILED)
    assert play.statuses()[:2] == ["at_gate", "ahead"]
    assert [a.status for a in play.task.stages[1].attempts] == ["stopped"]


def test_approved_again_while_the_old_process_still_ends() -> None:
    """No two agents share a tree: the next attempt waits for the end of the last."""
    play = ran().done().approved().runs().order(c.TakeBack(**AT)).approved()
    assert play.kinds() == ["write_document"]
    assert play.granted().kinds() == []
    play.ended()
    assert play.kinds() == ["want_slot"]
    assert play.granted().kinds() == ["start_attempt"]
    assert [a.n for a in play.task.stages[1].attempts] == [1, 2]


def test_take_back_of_the_last_approval() -> None:
    play = PLAYS["completed"]().order(c.TakeBack(**AT))
    assert play.task.life.__struct_config__.tag == "taken"
    assert play.statuses()[5] == "at_gate"
    assert play.approved().task.life.__struct_config__.tag == "completed"


def test_who_takes_back_takes_nothing_over() -> None:
    play = PLAYS["waits for input"]()
    bob = Person(user="bob", client="VS Code")
    play.tell(e.ApprovalTakenBack(at=99.0, by=bob, stage="research"))
    assert play.task.life.by == ADA  # type: ignore[union-attr]


@pytest.mark.parametrize("stage_only", [False, True])
def test_an_approved_artifact_changes_before_the_next_stage_started(stage_only: bool) -> None:
    """CW-23, M12: it waits again."""
    play = Play().order(c.Run(**AT, stage_only=stage_only)).done().approved().tell(CHANGED_SINCE)
    assert play.statuses()[:2] == ["at_gate", "ahead"]
    assert (
        play.status.why == "01-research.md was changed after you approved it. The approval no longer holds."
    )
    assert play.granted().kinds() == []
    play.approved()
    assert play.statuses()[0] == "passed"


def test_an_approved_artifact_changes_while_the_next_stage_is_held() -> None:
    play = ran().done().approved().order(c.Pause(**AT)).tell(CHANGED_SINCE)
    assert play.statuses()[:2] == ["at_gate", "ahead"]


def test_an_approved_artifact_changes_while_the_next_stage_runs() -> None:
    """CW-23: it goes on, marked; approved again it holds again."""
    play = ran().done().approved().runs().tell(CHANGED_SINCE)
    assert play.statuses()[:2] == ["passed", "running"]
    assert play.task.stages[0].status.void  # type: ignore[union-attr]
    assert play.task.stages[1].mark == "built on an older 01-research.md"
    play.order(c.Approve(**AT))
    assert play.statuses()[:2] == ["passed", "running"]
    assert not play.task.stages[0].status.void  # type: ignore[union-attr]
    assert play.turn().ended().statuses()[:2] == ["passed", "at_gate"]
    assert play.task.stages[1].mark
    assert play.order(c.Redo(**AT)).granted().task.stages[1].mark == ""


def test_an_artifact_that_is_again_what_was_approved() -> None:
    play = ran().done().approved().runs()
    shown = play.task.stages[0].status.shown  # type: ignore[union-attr]
    play.tell(CHANGED_SINCE).tell(e.ArtifactChanged(at=901.0, stage="research", shown=shown))
    assert not play.task.stages[0].status.void  # type: ignore[union-attr]


def test_an_edit_of_an_approved_form_voids_it_too() -> None:
    """UX 2.1.5: the draft is the document; who changes it changes what was approved."""
    play = ran().to("approaches").done().approved().runs().turn().ended()
    document = play.task.stages[1].form.document  # type: ignore[union-attr]
    play.order(c.EditDraft(**AT, document=document, answers={"A": False, "B": True}))
    assert play.task.stages[1].status.void or play.statuses()[1] == "at_gate"  # type: ignore[union-attr]


def test_documents_of_a_finished_task_are_the_person_s() -> None:
    play = PLAYS["completed"]()
    before = play.task
    play.tell(CHANGED_SINCE)
    assert play.task == before


# --- going back, skipping, undoing -------------------------------------------------------------------


def test_go_back_without_a_reason_waits_at_the_gate_again() -> None:
    """GA-11, commands: its last output waits; the later stages run again."""
    play = ran().to("notes").order(c.GoBack(**AT, stage="research"))
    assert play.statuses() == ["at_gate", "ahead", "ahead", "ahead", "ahead", "ahead"]
    assert play.task.stages[1].form is None
    assert len(play.task.stages[1].attempts) == 1
    assert play.approved().statuses()[:2] == ["passed", "queued"]


def test_go_back_with_a_reason_runs_it_again() -> None:
    """GA-6, GA-11: in its own conversation, with the reason; what runs is ended first."""
    play = ran().to("notes").runs().asks().order(c.GoBack(**AT, stage="research", reason="Too thin."))
    assert play.kinds() == ["stop_attempt"]
    assert play.task.open_decisions == ()
    assert order(play) == Order(cause="redo", resume="session-t12-0001", feedback="Too thin.")
    assert play.ended().kinds() == ["want_slot"]
    assert [a.status for a in play.task.stages[2].attempts] == ["stopped"]


def test_go_back_from_the_end() -> None:
    play = PLAYS["completed"]().order(c.GoBack(**AT, stage="review"))
    assert play.task.life.__struct_config__.tag == "taken"
    assert play.statuses()[4:] == ["at_gate", "ahead"]


def test_go_back_to_a_stage_that_was_skipped_runs_it() -> None:
    play = ran().done().order(c.Skip(**AT, reason="Known.")).order(c.GoBack(**AT, stage="research"))
    assert play.statuses()[0] == "queued"
    assert order(play) == Order()


def test_skip_says_who_and_why_and_leaves_no_output_behind() -> None:
    """GA-11: the next stage is not given what nobody approved."""
    play = ran().done().order(c.Skip(**AT, reason="Known."))
    assert play.statuses()[:2] == ["skipped", "queued"]
    assert (play.task.stages[0].status.by, play.task.stages[0].status.reason) == (ADA, "Known.")  # type: ignore[union-attr]
    assert play.task.stages[0].form is None


def test_skip_of_the_last_stage_completes() -> None:
    play = Play().to("pr").done().order(c.Skip(**AT))
    assert play.task.life.__struct_config__.tag == "completed"


def test_skip_before_the_first_run_starts_nothing() -> None:
    play = Play().order(c.Skip(**AT)).order(c.Skip(**AT))
    assert (play.task.life.__struct_config__.tag, play.task.current) == ("ready", 2)
    assert play.last == ()
    play.order(c.GoBack(**AT, stage="approaches"))
    assert (play.statuses()[:3], play.task.current) == (["skipped", "ahead", "ahead"], 1)
    assert play.order(c.Run(**AT)).statuses()[:2] == ["skipped", "queued"]


def test_undo_is_ordered_and_remembered_until_it_is_done() -> None:
    """GA-12, ARCHITECTURE 6: after a crash it is done again."""
    play = ran().runs().turn().ended(changes=CHANGED)
    play.order(c.UndoFiles(**AT, paths=("src/a.py",)))
    wanted = x.RestoreFiles(stage="research", attempt=1, paths=("src/a.py",))
    assert play.last == (wanted,)
    assert wanted in play.tell(e.DaemonStarted(at=50.0)).last
    play.tell(e.FilesRestored(at=51.0, stage="research", attempt=1, paths=("src/a.py",)))
    assert wanted not in play.tell(e.DaemonStarted(at=52.0)).last


def test_what_was_taken_back_is_no_change_any_more() -> None:
    """GA-12: it counts nowhere, it is said, and what is offered next is the attempt before."""
    both = (Change(path="src/a.py", kind="modified"), Change(path="b.py", kind="added"))
    play = ran().runs().turn().ended(changes=CHANGED).order(c.Redo(**AT, feedback="Again."))
    play.runs().turn().ended(changes=both)

    def last() -> AttemptView:
        return view(play.task, 1, Places("/attempts")).stages[0].attempts[-1]

    play.order(c.UndoFiles(**AT, attempt=2, paths=("b.py",)))
    play.tell(e.FilesRestored(at=51.0, stage="research", attempt=2, paths=("b.py",)))
    assert ([one.path for one in last().changes], last().note) == (["src/a.py"], "Taken back: b.py.")
    play.order(c.UndoFiles(**AT, attempt=2))
    play.tell(e.FilesRestored(at=52.0, stage="research", attempt=2, paths=("src/a.py",)))
    assert (last().changes, last().note) == ((), "What it changed was taken back.")
    offers = view(play.task, 1, Places("/attempts")).offers
    assert next(o for o in offers if o.command == "promptside.undo").args["attempt"] == 1
    with pytest.raises(Refused, match="was taken back"):
        play.order(c.UndoFiles(**AT, attempt=2))


# --- abandoned, broken, restarted --------------------------------------------------------------------


def test_abandon_while_it_runs() -> None:
    """CLI.md: archived, reason “abandoned”; what runs is ended, nothing is started any more."""
    play = ran().runs().asks().order(c.Abandon(**AT))
    assert play.kinds() == ["stop_attempt"]
    assert play.task.life.reason == "abandoned"  # type: ignore[union-attr]
    assert play.task.open_decisions == ()
    play.ended()
    assert play.statuses()[0] == "stuck"
    assert play.kinds() == []


def test_a_fault_of_ours_fails_the_task_and_ends_its_agent() -> None:
    """ARCHITECTURE 9."""
    play = ran().runs().tell(e.StepFailed(at=9.0, reason="A fault in Promptside."))
    assert play.kinds() == ["stop_attempt"]
    play.ended()
    assert play.kinds() == []
    waits = ran().fails().tell(e.StepFailed(at=9.0, reason="A fault in Promptside."))
    assert waits.task.wake_at is None
    assert waits.tell(e.Woke(at=10**9)).kinds() == []


RESTARTED: dict[str, list[str]] = {
    "queued": ["want_slot", "write_document"],
    "starting": ["start_attempt", "follow_attempt", "deliver", "write_document"],
    "running": ["follow_attempt", "deliver", "write_document"],
    "asking": ["follow_attempt", "deliver", "write_document", "write_document", "wake_at"],
    "told something": ["follow_attempt", "deliver", "write_document"],
    "finished": ["follow_attempt", "deliver", "close_input", "write_document", "wake_at"],
    "stopping": ["follow_attempt", "deliver", "stop_attempt", "write_document"],
    "stopping before the start": [
        "start_attempt",
        "follow_attempt",
        "deliver",
        "stop_attempt",
        "write_document",
    ],
    "condemned": ["follow_attempt", "deliver", "stop_attempt", "write_document"],
    "pausing": ["follow_attempt", "deliver", "stop_attempt", "write_document"],
    "parking": [
        "follow_attempt",
        "deliver",
        "close_input",
        "write_document",
        "write_document",
        "wake_at",
    ],
    "parked": ["write_document", "write_document"],
    "held": ["write_document"],
    "retry due": ["write_document", "wake_at"],
    "text at its gate": ["write_document", "write_document"],
    "approved again, still ending": ["follow_attempt", "deliver", "stop_attempt", "write_document"],
    "abandoned, still ending": ["follow_attempt", "deliver", "stop_attempt"],
    "abandoned": [],
    "broken while queued": [],
}
"""What another daemon does again, or asks whether it happened."""


@pytest.mark.parametrize("name", RESTARTED)
def test_a_daemon_takes_over(name: str) -> None:
    """DA-2, ARCHITECTURE 6: a restart is an ordinary event, and changes nothing."""
    play = PLAYS[name]()
    before = play.task
    play.tell(e.DaemonStarted(at=play.now))
    assert play.task == before
    assert play.kinds() == RESTARTED[name]


def test_documents_are_only_put_back_after_a_restart() -> None:
    """UX 1.8: what stands in a file may be a person's words."""
    play = PLAYS["text at its gate"]().tell(e.DaemonStarted(at=99.0))
    assert all(f.only_if_missing for f in play.last if isinstance(f, x.WriteDocument))


def test_every_kind_of_effect_appears_in_these_stories() -> None:
    import typing

    seen = {type(f) for play in PLAYS.values() for f in play().effects}
    seen |= {type(f) for f in ran().runs().asks_leave().order(c.Allow(**AT, scope="always")).effects}
    seen |= {type(f) for f in PLAYS["running"]().tell(e.DaemonStarted(at=9.0)).effects}
    assert seen == set(typing.get_args(x.Effect))


def test_costs_of_a_session_are_counted_once() -> None:
    """CLAUDE_CLI 0.8: the session's cost is cumulative, over turns, attempts and stages."""
    play = Play().to("notes")
    play.runs().turn(usage=Usage(session_cost=1.0, input_tokens=10)).ended()
    play.order(c.Run(**AT)).runs()
    assert play.attempt.order.resume == play.task.stages[2].attempts[0].session
    play.turn(usage=Usage(session_cost=1.6, input_tokens=5)).ended()
    used = play.task.stages[3].attempts[0].usage
    assert used is not None
    assert round(used.cost_usd, 6) == 0.6
    again = ran().runs().turn(invalid="x", usage=Usage(session_cost=0.2, input_tokens=3))
    again.turn(usage=Usage(session_cost=0.5, input_tokens=4))
    assert (again.attempt.usage.cost_usd, again.attempt.usage.input_tokens) == (0.5, 7)


def test_the_pipeline_of_a_task_stays_what_it_was() -> None:
    """ST-3."""
    assert Play().to("pr").done().approved().task.pipeline == PIPELINE
