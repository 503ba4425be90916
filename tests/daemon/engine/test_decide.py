"""Every status × every order: refused with a sentence, or a fact that changes what it should (ST-5, M5 to M9)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from engine_builders import ADA, AT, PLAYS, Play, given, lives, orders, ran, sheet, tasks, with_life

from promptside_daemon.engine import events as e
from promptside_daemon.engine.decide import Given, decide
from promptside_daemon.engine.effects import RestoreFiles
from promptside_daemon.engine.gate import Untold
from promptside_daemon.engine.pipeline import Limits
from promptside_daemon.engine.step import step
from promptside_daemon.engine.task import Draft, Paused, Ready, Stuck, Taken, Task
from promptside_protocol import commands as c
from promptside_protocol.errors import Refused

TASKS = tasks()

OURS = re.compile(
    r"AtGate|AwaitsInput|RetryDue|Held|Queued|Passed|Stuck|None\b|Struct|_[a-z]|\bself\b|Traceback|=|!|successfully",
)
"""Names of ours and a tone of ours that no sentence for a person has (UX 7)."""


def refusal(task: Task, command: Any, **changes: Any) -> Any:
    with pytest.raises(Refused) as caught:
        decide(task, command, given(task, command, **changes))
    return caught.value.refusal


def sentence_is_fit(task: Task, command: Any, refused: Refused) -> None:
    said = refused.refusal
    where = (type(command).__name__, task.life, said)
    assert re.fullmatch(r"[a-z][a-z-]*", said.code), where
    assert said.message.endswith("."), where
    assert not said.message.endswith(".."), where
    assert not said.message[0].islower(), where
    assert not OURS.search(said.message.replace("“…”", "")), where
    assert said.message != said.hint, where


@pytest.mark.parametrize("name", TASKS)
def test_every_order_is_refused_with_a_sentence_or_is_a_fact_that_counts(name: str) -> None:
    task = TASKS[name]
    taken = 0
    for command in orders(task):
        try:
            event = decide(task, command, given(task, command))
        except Refused as refused:
            sentence_is_fit(task, command, refused)
            continue
        taken += 1
        after, effects = step(task, event)
        assert after != task or effects, (command, event)
    # Of what is put away files can still be put back, where an attempt changed any.
    assert taken or name in ("abandoned", "abandoned while queued", "abandoned, still ending", "archived")


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("life", lives(), ids=lambda life: type(life).__name__)
def test_no_order_fails_in_any_state(name: str, life: Any) -> None:
    task = with_life(TASKS[name], life)
    for command in orders(task):
        try:
            decide(task, command, given(task, command))
        except Refused as refused:
            sentence_is_fit(task, command, refused)


# --- which orders are possible where -----------------------------------------------------------------

STAGE_ORDERS: dict[str, Any] = {
    "run": c.Run(**AT),
    "approve": c.Approve(**AT, answers={}),
    "take back": c.TakeBack(**AT),
    "redo": c.Redo(**AT, feedback="Shorter."),
    "retry": c.Retry(**AT),
    "skip": c.Skip(**AT),
    "back": c.GoBack(**AT, stage="research"),
    "pause": c.Pause(**AT),
    "resume": c.Resume(**AT),
    "take over": c.TakeOver(**AT),
    "give back": c.GiveBack(**AT),
    "stop": c.Stop(**AT),
    "say": c.Say(**AT, text="Shorter."),
    "abandon": c.Abandon(**AT),
    "archive": c.Archive(**AT),
    "ready": c.Ready(**AT),
    "undo": c.UndoFiles(**AT, stage="research"),
}

POSSIBLE: dict[str, set[str]] = {
    "draft": {"ready", "abandon"},
    "ready": {"run", "skip", "abandon"},
    "ready, first stage skipped": {"run", "skip", "back", "abandon"},
    "queued": {"pause", "stop", "abandon"},
    "starting": {"pause", "stop", "abandon"},
    "running": {"pause", "stop", "say", "abandon", "take over"},
    "asking": {"pause", "stop", "say", "abandon", "take over"},
    "told something": {"pause", "stop", "abandon", "take over"},
    "finished": {"pause", "stop", "abandon", "take over"},
    "stopping": {"pause", "stop", "abandon", "take over"},
    "pausing": {"resume", "stop", "abandon", "take over"},
    "pausing, resumed": {"pause", "stop", "abandon", "take over"},
    "parking": {"pause", "stop", "abandon", "take over"},
    "parked": {"redo", "skip", "pause", "stop", "abandon", "take over"},
    "held": {"resume", "stop", "abandon"},
    "held with a session": {"resume", "stop", "abandon", "take over"},
    "paused at the gate": {"resume", "abandon", "take over"},
    "paused while parked": {"resume", "stop", "abandon", "take over"},
    "retry due": {"redo", "retry", "skip", "pause", "stop", "abandon", "take over"},
    "limit due": {"redo", "retry", "skip", "pause", "stop", "abandon", "take over"},
    "stuck": {"redo", "retry", "skip", "pause", "abandon", "take over"},
    "breach": {"redo", "retry", "skip", "pause", "abandon", "undo", "take over"},
    "text at its gate": {"approve", "redo", "skip", "pause", "abandon", "take over"},
    "waits for input": {"run", "take back", "back", "skip", "pause", "abandon"},
    "redone, running": {"pause", "stop", "say", "abandon", "take over"},
    "taken back, still ending": {"approve", "redo", "skip", "pause", "abandon", "take over"},
    "approved again, still ending": {"take back", "back", "pause", "stop", "abandon", "take over"},
    "gone back": {"approve", "redo", "skip", "pause", "abandon", "take over"},
    "void, waits again": {"approve", "redo", "skip", "pause", "abandon", "take over"},
    "void, the next stage runs": {
        "approve",
        "take back",
        "back",
        "pause",
        "stop",
        "say",
        "abandon",
        "take over",
    },
    "completed": {"archive", "take back", "back"},
    "abandoned": set(),
    "archived": set(),
    "broken": {"archive", "abandon"},
    "taken over at the gate": {"give back"},
    "taken over, still ending": {"give back"},
    "taken over, held": {"give back"},
    "taken over while parked": {"give back"},
    "given back at the gate": {"approve", "redo", "skip", "pause", "abandon", "take over"},
    "given back, held": {"resume", "stop", "abandon", "take over"},
}
"""What can be ordered of the task as it stands; everything else is refused."""


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_is_possible(name: str) -> None:
    """GA-11, CLI.md: exactly these orders are taken here."""
    task = TASKS[name]

    def possible(command: Any) -> bool:
        try:
            decide(task, command, given(task, command))
        except Refused:
            return False
        return True

    assert {verb for verb, command in STAGE_ORDERS.items() if possible(command)} == POSSIBLE[name]


# --- run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "hint"),
    [
        ("draft", "draft", "promptside task ready 12"),
        ("running", "running", "promptside watch 12"),
        ("asking", "waits", "promptside open 12"),
        ("parked", "waits", "promptside open 12"),
        ("text at its gate", "waits", "promptside open 12"),
        ("retry due", "retry-due", "promptside retry 12"),
        ("stuck", "failed", "promptside retry 12, or promptside redo 12 -m “…”"),
        ("held", "paused", "promptside resume 12"),
        ("completed", "state", ""),
    ],
)
def test_run_says_what_to_do_instead(name: str, code: str, hint: str) -> None:
    said = refusal(TASKS[name], c.Run(**AT))
    assert (said.code, said.hint) == (code, hint)


def test_the_limits_of_the_moment_come_with_every_start() -> None:
    """GA-8: who raises a limit in the settings and tries again gets it."""
    raised = Limits(turns=500)
    for name, command in (
        ("ready", c.Run(**AT)),
        ("stuck", c.Retry(**AT)),
        ("stuck", c.Redo(**AT)),
        ("held", c.Resume(**AT)),
    ):
        event = decide(TASKS[name], command, Given(at=9.0, by=ADA, limits=raised))
        assert step(TASKS[name], event)[0].limits == raised


# --- approve -----------------------------------------------------------------------------------------


def approve(task: Task, sheet_changes: dict[str, Any] | None = None, **fields: Any) -> Any:
    command = c.Approve(**AT, **fields)
    what = given(task, command)
    run = task.run
    if sheet_changes is not None and run is not None and run.form is not None:
        what = given(task, command, sheet=sheet(run.form, fields.get("answers"), **sheet_changes))
    return decide(task, command, what)


@pytest.mark.parametrize(
    ("name", "answers", "lacks"),
    [
        ("options at their gate", {}, "Select"),
        ("checklist at its gate", {}, "C1"),
        ("checklist at its gate", {"C1": {"ticked": True}}, "W1"),
        ("fields at their gate", {}, "Title"),
        ("fields at their gate", {"title": "x", "description": " "}, "Description"),
        ("raw options at their gate", {}, "does not fit options"),
    ],
)
def test_a_gate_that_lacks_something_is_not_approved(name: str, answers: Any, lacks: str) -> None:
    """ST-5, M4: the engine says what is missing, whatever the client let through."""
    with pytest.raises(Refused) as caught:
        approve(TASKS[name], answers=answers)
    assert caught.value.refusal.code == "gate-lacks"
    assert caught.value.refusal.message.startswith("Not approved: ")
    assert lacks in caught.value.refusal.message


def test_two_options_where_one_is_taken() -> None:
    """M7."""
    with pytest.raises(Refused, match="2 options are selected"):
        approve(TASKS["options at their gate"], answers={"A": True, "B": True})


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"errors": ((7, "There is no item D."),)}, "form-grammar"),
        ({"notes": 2}, "notes"),
        ({"difference": "-a\n+b"}, "file-differs"),
        ({"document": "other.md"}, "no-document"),
    ],
)
def test_a_document_that_can_not_be_vouched_for(changes: dict[str, Any], code: str) -> None:
    """M8, M9, and answers that only stand in the file (CLI.md)."""
    with pytest.raises(Refused) as caught:
        approve(TASKS["options at their gate"], changes, answers={"A": True})
    assert caught.value.refusal.code == code


def test_the_file_of_a_text_is_its_content() -> None:
    """UX 2.1.6: what is approved is what stands there."""
    assert isinstance(approve(TASKS["text at its gate"], {"difference": "-a\n+b"}), e.GateApproved)


def test_other_bytes_than_the_person_saw() -> None:
    """CW-23, M11."""
    task = TASKS["text at its gate"]
    with pytest.raises(Refused) as caught:
        approve(task, {"difference": "-a\n+b"}, shown="what another daemon had")
    assert (caught.value.refusal.code, caught.value.refusal.difference) == ("other-bytes", "-a\n+b")
    shown = task.run.form.shown if task.run is not None and task.run.form is not None else ""
    assert approve(task, shown=shown).shown == shown


@pytest.mark.parametrize(
    ("stage", "then"),
    [("", "queued"), ("", "runs"), ("research", "queued"), ("research", "runs"), ("research", "done")],
)
def test_approving_twice(stage: str, then: str) -> None:
    """M6: exactly one of two approvals takes effect, whoever gives the second and however late."""
    play = ran().done().approved(stage="research")
    if then == "runs":
        play.runs()
    if then == "done":
        play.done()
    said = refusal(play.task, c.Approve(**AT, stage=stage), clock="14:05")
    assert said.code == "approved"
    assert said.message == "Research was approved already, at 14:05 from Neovim. Nothing was changed."


def test_approving_the_last_stage_twice() -> None:
    assert refusal(TASKS["completed"], c.Approve(**AT)).code == "approved"
    assert refusal(TASKS["completed"], c.Approve(**AT, stage="pr")).code == "approved"


def test_all_at_once_is_on_record() -> None:
    """UX 2.5: a checklist ticked whole by a script that was shown nothing."""
    task = TASKS["checklist at its gate"]
    ticks = {"C1": {"ticked": True}, "W1": {"ticked": True}}
    assert approve(task, answers=ticks).all_at_once
    half = Play().to("review").done()
    first = task.run.form.document if task.run is not None and task.run.form is not None else ""
    half.order(c.EditDraft(**AT, document=first, answers={"C1": {"ticked": True}}))
    assert not approve(half.task, answers=ticks).all_at_once
    shown = sheet(task.run.form, ticks).shown  # type: ignore[union-attr,arg-type]
    assert not approve(task, answers=ticks, shown=shown).all_at_once


@pytest.mark.parametrize("command", [c.Approve(**AT, stage="nowhere"), c.GoBack(**AT, stage="nowhere")])
def test_a_stage_that_is_none(command: Any) -> None:
    assert refusal(TASKS["waits for input"], command).code == "no-stage"


# --- take back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ready", "no-approval"),
        ("text at its gate", "no-approval"),
        ("skipped", "no-approval"),
        ("options at their gate", "next-has-run"),
        ("void, the next stage at its gate", "next-has-run"),
        ("archived", "state"),
        ("held", "state"),
    ],
)
def test_take_back_is_refused(name: str, code: str) -> None:
    """CW-23: until the next stage has run."""
    assert refusal(TASKS[name], c.TakeBack(**AT)).code == code


def test_take_back_is_refused_while_the_next_stage_is_redone() -> None:
    play = ran().done().approved().done().order(c.Redo(**AT)).runs()
    assert refusal(play.task, c.TakeBack(**AT)).code == "next-has-run"


def test_a_stage_that_passed_by_itself_has_no_approval() -> None:
    play = ran().to("build")
    play.order(c.GoBack(**AT, stage="notes", reason="Again.")).done()
    assert "passed by itself" in refusal(play.task, c.TakeBack(**AT)).message


# --- redo, say, undo ---------------------------------------------------------------------------------


def test_redo_takes_the_notes_of_the_document() -> None:
    """UX 2.2, M9: notes are how feedback works everywhere."""
    task = TASKS["text at its gate"]
    event = decide(
        task, c.Redo(**AT, feedback="Shorter."), given(task, None, untold=Untold(notes=("A: why?",)))
    )
    assert isinstance(event, e.RedoOrdered)
    assert event.feedback == "Shorter.\n\nA: why?"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("text at its gate", "not-running"),
        ("starting", "starting"),
        ("told something", "unread"),
        ("finished", "ending"),
        ("stopping", "ending"),
        ("taken back, still ending", "not-running"),
        ("pausing", "paused"),
        ("broken, still ending", "state"),
    ],
)
def test_say_is_refused(name: str, code: str) -> None:
    """CLI.md: only while the agent runs."""
    assert refusal(TASKS[name], c.Say(**AT, text="Shorter.")).code == code


def test_say_names_the_files_that_go_along() -> None:
    event = decide(
        TASKS["running"],
        c.Say(**AT, text="Like these.", attach=("a.py", "b c.py")),
        given(TASKS["running"], None),
    )
    assert isinstance(event, e.PersonSaid)
    assert event.text == "Like these.\n\nLook at these files: a.py, b c.py"


def test_saying_nothing() -> None:
    assert refusal(TASKS["running"], c.Say(**AT, text=" \n")).code == "empty"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("running", "running"),
        ("queued", "running"),
        ("retry due", "running"),
        ("text at its gate", "nothing"),
    ],
)
def test_undo_is_refused(name: str, code: str) -> None:
    assert refusal(TASKS[name], c.UndoFiles(**AT, stage="research")).code == code


def test_undo_leaves_alone_what_somebody_else_changed() -> None:
    """GA-12."""
    said = refusal(TASKS["breach"], c.UndoFiles(**AT), conflicts=("src/a.py", "b.py"))
    assert said.message == "Somebody else has changed src/a.py, b.py since. Nothing was undone."


def test_undo_works_in_a_task_that_is_put_away() -> None:
    task = (
        Play().order(c.Run(**AT)).runs().turn().ended(changes=TASKS["breach"].stages[0].attempts[0].changes)
    )
    task.order(c.Abandon(**AT)).order(c.UndoFiles(**AT, stage="research"))
    assert any(isinstance(f, RestoreFiles) for f in task.last)


# --- answers -----------------------------------------------------------------------------------------

ASKING = TASKS["asking"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"decision": "Q9", "options": ("A",)}, "no-decision"),
        ({"decision": "Q1", "options": ("C",)}, "no-option"),
        ({"decision": "Q1", "options": ("A", "B")}, "too-many"),
        ({"decision": "Q1", "options": ("A",), "text": "and mine"}, "too-many"),
        ({"decision": "Q1"}, "empty"),
        ({"decision": "Q2", "text": "  "}, "empty"),
        ({"decision": "Q2", "options": ("A",)}, "no-option"),
        ({"decision": "Q2", "recommended": True}, "no-recommendation"),
    ],
)
def test_an_answer_that_does_not_fit(fields: dict[str, Any], code: str) -> None:
    """CW-4."""
    assert refusal(ASKING, c.Answer(**AT, **fields)).code == code


@pytest.mark.parametrize(
    ("fields", "value", "words"),
    [
        ({"decision": "Q1", "options": ("a",)}, ["A"], "Sessions"),
        ({"decision": "Q1", "recommended": True}, ["A"], "Sessions"),
        ({"decision": "Q1", "text": "Both, later."}, [{"other": "Both, later."}], "Both, later."),
        ({"decision": "Q2", "text": "Keep it small."}, "Keep it small.", "Keep it small."),
    ],
)
def test_an_answer_as_data_and_in_words(fields: dict[str, Any], value: Any, words: str) -> None:
    """CW-4: options by id, the agent hears their titles."""
    event = decide(ASKING, c.Answer(**AT, **fields), given(ASKING, None))
    assert isinstance(event, e.QuestionsAnswered)
    assert [(r.value, r.words) for r in event.replies] == [(value, words)]


def test_yes_or_no_without_options_of_its_own() -> None:
    asked = ran().runs().asks(e.Question(kind="yes_no", text="Drop it?", other=False)).task
    event = decide(asked, c.Answer(**AT, decision="Q1", options=("yes",)), given(asked, None))
    assert isinstance(event, e.QuestionsAnswered)
    assert event.replies[0].value == ["Yes"]


def test_an_answer_comes_too_late() -> None:
    """M6: of two answers one takes effect."""
    play = ran().runs().asks().order(c.Answer(**AT, decision="Q1", options=("A",)))
    said = refusal(play.task, c.Answer(**AT, decision="Q1", options=("B",)))
    assert said.message == "Q1 was answered already from Neovim: Sessions. Nothing was changed."
    gone = ran().runs().asks().order(c.Stop(**AT))
    assert refusal(gone.task, c.Answer(**AT, decision="Q1", options=("B",))).code == "withdrawn"


def test_sending_without_what_is_required() -> None:
    """CW-3: nothing is sent half; what is optional may stay open."""
    said = refusal(ASKING, c.SendAnswers(**AT))
    assert (said.code, said.message) == ("gate-lacks", "Not sent: Q1 is required and still empty.")
    event = decide(
        ASKING,
        c.SendAnswers(**AT, answers={"Q1": ["B"]}),
        given(ASKING, c.SendAnswers(**AT, answers={"Q1": ["B"]})),
    )
    assert isinstance(event, e.QuestionsAnswered)
    assert ([r.decision for r in event.replies], event.send) == (["Q1"], True)


LEAVE = TASKS["asking leave"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (c.Allow(**AT, decision="P9"), "no-decision"),
        (c.Answer(**AT, decision="P1", options=("maybe",)), "no-option"),
        (c.Answer(**AT, decision="P1", options=("once", "task")), "no-option"),
        (c.Answer(**AT, decision="P1"), "no-option"),
        (c.Answer(**AT, decision="P1", options=("once",), text="be quick"), "text-with-allow"),
    ],
)
def test_a_permission_that_is_answered_wrongly(command: Any, code: str) -> None:
    """ST-14."""
    assert refusal(LEAVE, command).code == code


@pytest.mark.parametrize("scope", ["attempt", "task", "always"])
def test_a_permission_without_a_rule_is_given_once_only(scope: Any) -> None:
    """ST-14: what no rule can be made of can't hold for longer."""
    task = TASKS["asking leave without a rule"]
    assert refusal(task, c.Allow(**AT, decision="P1", scope=scope)).code == "no-rule"
    assert refusal(task, c.Answer(**AT, decision="P1", options=(scope,))).code == "no-rule"


def test_which_of_two_permissions() -> None:
    said = refusal(TASKS["asking everything"], c.Allow(**AT))
    assert (said.code, said.message) == ("which", "2 permissions are asked for: P1, P2.")
    assert refusal(TASKS["running"], c.Deny(**AT)).code == "no-decision"


@pytest.mark.parametrize(
    ("command", "allowed", "scope", "text"),
    [
        (c.Allow(**AT), True, "once", ""),
        (c.Allow(**AT, decision="P1", scope="always"), True, "always", ""),
        (c.Answer(**AT, decision="P1", options=("task",)), True, "task", ""),
        (c.Answer(**AT, decision="P1", options=("deny",), text="Use pip."), False, "once", "Use pip."),
        (c.Answer(**AT, decision="P1", text="Use pip."), False, "once", "Use pip."),
        (c.Deny(**AT, text="Use pip."), False, "once", "Use pip."),
    ],
)
def test_a_permission_by_order_and_by_word(command: Any, allowed: bool, scope: str, text: str) -> None:
    """ST-14, CLI.md: `answer` and the editors' orders mean the same."""
    event = decide(LEAVE, command, given(LEAVE, command))
    assert isinstance(event, e.PermissionAnswered)
    assert (event.allowed, event.scope, event.text) == (allowed, scope, text)


# --- drafts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["redone, running", "redone, queued", "completed", "abandoned"])
def test_a_document_that_is_being_replaced_is_not_edited(name: str) -> None:
    task = TASKS[name]
    document = task.stages[0].form.document if task.stages[0].form is not None else ""
    assert refusal(task, c.EditDraft(**AT, document=document)).code == "state"


def test_a_document_that_is_none() -> None:
    assert refusal(TASKS["running"], c.EditDraft(**AT, document="x.md")).code == "no-document"


# --- the task ----------------------------------------------------------------------------------------


def test_a_draft_becomes_ready() -> None:
    """SI-3."""
    play = PLAYS["draft"]().order(c.Ready(**AT))
    assert isinstance(play.task.life, Ready)
    assert refusal(play.task, c.Ready(**AT)).message == "“Add login” is no draft."


@pytest.mark.parametrize("name", ["running", "held", "draft", "ready", "text at its gate"])
def test_only_what_is_done_is_archived(name: str) -> None:
    assert refusal(TASKS[name], c.Archive(**AT)).hint == "promptside task abandon 12"


def test_lives_named_in_refusals() -> None:
    stuck = TASKS["stuck"]
    assert isinstance(stuck.run.status if stuck.run else None, Stuck)
    for life, words in (
        (Draft(since=1.0), "is a draft"),
        (Paused(since=1.0, by=ADA), "is paused"),
        (Taken(since=1.0, by=ADA), "is under way"),
    ):
        task = with_life(stuck, life)
        command = c.GoBack(**AT, stage="research") if not isinstance(life, Taken) else c.Abandon(**AT)
        if isinstance(life, Taken):
            assert isinstance(decide(task, command, given(task, command)), e.TaskAbandoned)
        else:
            assert words in refusal(task, command).message
