"""The view: every name of the terminal's contract, small, and what a task waits for as CLI.md says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from engine_builders import ADA, AT, BREACH, CHANGED, PLAYS, Play, lives, ran, tasks, with_life
from msgspec.structs import replace

from promptside_daemon.engine import events as e
from promptside_daemon.engine.retry import RETRY_DELAYS_S
from promptside_daemon.engine.task import Task
from promptside_daemon.engine.view import Places, decision_view, view
from promptside_protocol import commands as c
from promptside_protocol.views import Change, TaskView

TASKS = tasks()
PLACES = Places("/data/attempts")

NAMES = [
    "id",
    "title",
    "state",
    "state_since",
    "claimed_by",
    "reason",
    "pipeline",
    "type",
    "work_type",
    "priority",
    "stages",
    "current",
    "waiting_for",
    "offers",
    "branch",
    "worktree",
    "metrics",
    "error",
]
METRICS = [
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "duration_s",
    "loc_added",
    "loc_removed",
    "loc_prod",
    "loc_test",
    "doc_words",
    "agent_runs",
]
STAGE = ["id", "name", "status", "attempts", "artifact"]
ATTEMPT = [
    "n",
    "status",
    "session",
    "started",
    "ended",
    "duration_s",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "prompt",
    "transcript",
    "error",
]


def shown(task: Task) -> dict[str, Any]:
    """The view as `task show --json` prints it."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(view(task, 7, PLACES)))
    return found


def waiting(name: str) -> dict[str, Any]:
    found: dict[str, Any] = shown(TASKS[name])["waiting_for"]
    return found


@pytest.mark.parametrize("name", TASKS)
def test_every_name_of_the_contract_is_there(name: str) -> None:
    """CLI.md, the task view."""
    found = shown(TASKS[name])
    assert set(NAMES) <= set(found)
    assert set(METRICS) <= set(found["metrics"])
    for stage in found["stages"]:
        assert set(STAGE) <= set(stage)
        assert all(set(ATTEMPT) <= set(attempt) for attempt in stage["attempts"])


@pytest.mark.parametrize("name", TASKS)
def test_a_view_is_the_same_on_the_other_side(name: str) -> None:
    whole = view(TASKS[name], 7, PLACES)
    assert msgspec.json.decode(msgspec.json.encode(whole), type=TaskView) == whole


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("life", lives(), ids=lambda life: type(life).__name__)
def test_any_task_can_be_shown(name: str, life: Any) -> None:
    assert view(with_life(TASKS[name], life), 1, PLACES).seq == 1


@pytest.mark.parametrize(
    ("play", "stopped"),
    [
        (lambda: ran().runs().order(c.Stop(**AT)).ended(), True),
        (lambda: PLAYS["retry due"]().order(c.Stop(**AT)), True),
        (lambda: ran().runs().order(c.Stop(**AT)).ended(proof=BREACH), False),
        (PLAYS["stuck"], False),
    ],
    ids=["at work", "between two attempts", "with a broken promise", "failed"],
)
def test_what_a_person_stopped_is_told_from_what_failed(play: Callable[[], Play], stopped: bool) -> None:
    stage = view(play().task, 7, PLACES).stages[0]
    assert (stage.status, stage.stopped) == ("failed", stopped)


# --- what it waits for -------------------------------------------------------------------------------


def test_a_text_waits_for_approval() -> None:
    found = waiting("text at its gate")
    assert (found["kind"], found["stage"]) == ("gate", "research")
    assert found["document"] == ".promptside/tasks/12-add-login/01-research.md"
    assert found["gate"]["type"] == "require_approval"
    assert len(found["gate"]["shown"]) == 64
    assert found["gate"]["lacks"] == []


def test_options_wait_for_a_selection() -> None:
    gate = waiting("options at their gate")["gate"]
    assert (gate["type"], gate["min"], gate["max"]) == ("require_selection", 1, 1)
    assert [(o["id"], o["title"], o["recommended"]) for o in gate["options"]] == [
        ("A", "Cookies", True),
        ("B", "Tokens", False),
    ]
    assert gate["selected"] == []
    assert gate["lacks"]


def test_the_draft_is_in_the_view() -> None:
    play = PLAYS["options at their gate"]()
    document = play.task.stages[1].form.document if play.task.stages[1].form is not None else ""
    play.order(c.EditDraft(**AT, document=document, answers={"B": True}))
    gate = shown(play.task)["waiting_for"]["gate"]
    assert (gate["selected"], gate["lacks"], gate["version"]) == (["B"], [], 1)


def test_a_checklist_waits_to_be_ticked() -> None:
    gate = waiting("checklist at its gate")["gate"]
    assert gate["type"] == "require_all_checked"
    assert [(i["id"], i["severity"], i["text"], i["ticked"]) for i in gate["items"]] == [
        ("C1", "critical", "Injection", False),
        ("W1", "warning", "Long session", False),
    ]
    assert (gate["items"][0]["path"], gate["items"][0]["line"]) == ("a.py", 4)


def test_fields_wait_to_be_filled() -> None:
    found = waiting("fields at their gate")
    assert found["gate"]["type"] == "require_fields"
    assert found["gate"]["fields"] == ["title", "description"]
    assert found["document"].endswith("/PR.md")


def test_questions_wait() -> None:
    """CW-3, CW-4."""
    found = waiting("asking")
    assert found["kind"] == "decision"
    assert found["document"].endswith("/01-research-questions-1.md")
    assert [(d["id"], d["kind"], d["required"], d["priority"]) for d in found["decisions"]] == [
        ("Q1", "one", True, 1),
        ("Q2", "text", False, 1),
    ]
    assert [o["id"] for o in found["decisions"][0]["options"]] == ["A", "B"]


def test_a_permission_waits() -> None:
    """ST-14: its options are how far it can be given."""
    found = waiting("asking leave")
    (asked,) = found["decisions"]
    assert (found["document"], asked["id"], asked["kind"]) == (None, "P1", "permission")
    assert (asked["tool"], asked["what"]) == ("Bash", "npm install")
    assert [o["id"] for o in asked["options"]] == ["once", "attempt", "task", "always", "deny"]
    (bare,) = waiting("asking leave without a rule")["decisions"]
    assert [o["id"] for o in bare["options"]] == ["once", "deny"]


@pytest.mark.parametrize("name", ["parked", "parking", "leave parked"])
def test_what_is_parked_waits_all_the_same(name: str) -> None:
    assert waiting(name)["kind"] == "decision"


def test_input_and_a_person() -> None:
    assert waiting("waits for input")["kind"] == "input"
    stuck = waiting("stuck")
    assert (stuck["kind"], stuck["reason"]) == ("person", "The agent died.")
    assert shown(TASKS["stuck"])["error"] == "The agent died."


@pytest.mark.parametrize(
    "name", ["draft", "ready", "queued", "running", "retry due", "held", "paused at the gate", "completed"]
)
def test_nothing_waits(name: str) -> None:
    assert waiting(name) is None


def test_an_output_that_does_not_fit_is_said() -> None:
    """ST-7, M30."""
    found = waiting("raw options at their gate")
    assert found["reason"] == (
        "The agent's answer does not fit options (y), also after asking again. It is shown as text."
    )


def test_a_void_approval_is_said() -> None:
    """CW-23, M12."""
    sentence = "01-research.md was changed after you approved it. The approval no longer holds."
    assert waiting("void, waits again")["reason"] == sentence
    runs = shown(TASKS["void, the next stage runs"])["stages"]
    assert (runs[0]["status"], runs[0]["reason"]) == ("approved", sentence)
    assert runs[1]["reason"] == "built on an older 01-research.md"


# --- states and stages -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "state", "first"),
    [
        ("draft", "draft", "current"),
        ("ready", "ready", "current"),
        ("queued", "taken", "running"),
        ("running", "taken", "running"),
        ("asking", "taken", "waiting"),
        ("parked", "taken", "waiting"),
        ("held", "paused", "current"),
        ("retry due", "taken", "running"),
        ("stuck", "taken", "failed"),
        ("text at its gate", "taken", "waiting"),
        ("waits for input", "taken", "approved"),
        ("skipped", "taken", "skipped"),
        ("completed", "completed", "approved"),
        ("broken", "failed", "waiting"),
        ("abandoned", "archived", "waiting"),
    ],
)
def test_states_and_statuses(name: str, state: str, first: str) -> None:
    """SI-3, CLI.md: the words of the contract."""
    found = shown(TASKS[name])
    assert (found["state"], found["stages"][0]["status"]) == (state, first)
    assert {s["status"] for s in found["stages"][2:]} <= {"future", "current", "approved", "waiting"}


def test_who_has_it_and_why_it_is_put_away() -> None:
    assert shown(TASKS["running"])["claimed_by"] == "ada"
    assert shown(TASKS["held"])["claimed_by"] == "ada"
    assert shown(TASKS["ready"])["claimed_by"] is None
    assert shown(TASKS["abandoned"])["reason"] == "abandoned"
    assert shown(TASKS["archived"])["reason"] is None
    assert shown(TASKS["broken"])["reason"] == "A fault in Promptside."


def test_a_retry_says_which_and_a_limit_that_it_ends() -> None:
    """M15, M20."""
    assert shown(TASKS["retry due"])["stages"][0]["reason"] == "The agent died. Retry 1 of 5 follows."
    assert shown(TASKS["limit due"])["stages"][0]["reason"] == (
        "The agent died. It goes on by itself when the limit ends."
    )


def test_a_retry_says_when() -> None:
    """UX 3.4: it counts down; nothing else is due."""
    stage = shown(TASKS["retry due"])["stages"][0]
    assert stage["retry_at"] == stage["since"] + RETRY_DELAYS_S[0]
    assert (
        shown(TASKS["limit due"])["stages"][0]["retry_at"] > shown(TASKS["limit due"])["stages"][0]["since"]
    )
    assert [one["retry_at"] for one in shown(TASKS["running"])["stages"]] == [None] * len(
        TASKS["running"].stages
    )


def test_an_approval_is_told() -> None:
    """CW-23: who approved which bytes, when, from where."""
    approval = shown(TASKS["waits for input"])["stages"][0]["approval"]
    assert (approval["by"], approval["client"], len(approval["shown"])) == ("ada", "Neovim", 64)


def test_an_attempt_is_told() -> None:
    (attempt,) = shown(TASKS["text at its gate"])["stages"][0]["attempts"]
    assert (attempt["n"], attempt["status"], attempt["session"]) == (1, "done", "session-t12-0001")
    assert attempt["prompt"] == "/data/attempts/t12-0001/prompt.md"
    assert attempt["duration_s"] == attempt["ended"] - attempt["started"]
    assert (attempt["input_tokens"], attempt["cost_usd"]) == (100, 0.5)


def test_metrics_are_sums_and_null_before_anything_was_measured() -> None:
    """SI-8."""
    assert shown(TASKS["ready"])["metrics"]["loc_added"] is None
    assert shown(TASKS["ready"])["metrics"]["cost_usd"] == 0
    both = ran().runs().turn().ended(changes=CHANGED).order(c.Redo(**AT)).runs().turn().ended(changes=CHANGED)
    metrics = shown(both.task)["metrics"]
    assert (metrics["agent_runs"], metrics["loc_added"], metrics["loc_removed"]) == (2, 6, 2)
    # The second attempt goes on in the session of the first: its cost was in the session's already.
    assert metrics["cost_usd"] == 0.5


@pytest.mark.parametrize(
    ("tools", "permission", "rule"),
    [
        (("Read",), "deny", "read-only"),
        ((), "ask", "read-only"),
        (None, "ask", "edits allowed, asks for the rest"),
        (None, "allow", "everything allowed"),
    ],
)
def test_what_a_stage_may_do(tools: Any, permission: Any, rule: str) -> None:
    """UX 9."""
    task = TASKS["ready"]
    first = replace(task.pipeline.stages[0], tools=tools, permission=permission)
    pipeline = replace(task.pipeline, stages=(first, *task.pipeline.stages[1:]))
    assert shown(replace(task, pipeline=pipeline))["stages"][0]["rule"] == rule


# --- small -------------------------------------------------------------------------------------------


def test_a_huge_description_is_cut() -> None:
    assert len(shown(Play(description="x" * 10**6).task)["description"]) == 2000


def test_thousands_of_changes_and_denials_stay_small() -> None:
    play = ran().runs()
    for n in range(300):
        reason = "Research is read-only."
        play.on(
            e.PermissionSettled,
            request=f"p{n}",
            tool="Bash",
            what=f"rm {n % 150}",
            allowed=False,
            reason=reason,
        )
    changes = tuple(Change(path=f"f{n}", kind="added", added=1, removed=0) for n in range(5000))
    play.turn().ended(changes=changes)
    found = shown(play.task)
    (attempt,) = found["stages"][0]["attempts"]
    assert len(attempt["changes"]) == 200
    assert attempt["note"] == "It changed 5000 paths, of which 200 are listed here."
    assert found["metrics"]["loc_added"] == 5000
    assert len(attempt["denials"]) == 100


def test_settled_decisions_are_the_last_twenty_and_short() -> None:
    play = ran().runs()
    for n in range(30):
        play.asks_leave(request=f"p{n}").order(c.Deny(**AT, decision=f"P{n + 1}", text="x" * 5000))
    play.asks_leave(request="p30")
    found = shown(play.task)["decisions"]
    assert [d["id"] for d in found] == [f"P{n}" for n in range(11, 32)]
    assert max(len(d["answer"]) for d in found) < 600
    assert len(decision_view(play.task.decisions[0]).answer) > 5000


def test_a_person_is_named_with_an_answer() -> None:
    """CW-4: answered when, by whom, from where."""
    play = ran().runs().asks().order(c.Answer(**AT, decision="Q1", options=("A",)))
    (asked,) = shown(play.task)["decisions"]
    assert (asked["status"], asked["answer"]) == ("answered", "Sessions")
    assert (asked["by"], asked["client"]) == (ADA.user, ADA.client)
    assert asked["answered"] == play.now
