"""Pages against golden files, with titles and data that hurt; and the words of times, money and needs.

A golden file is rewritten with PROMPTSIDE_GOLDEN=write; look at the difference before you keep it.
"""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from promptside_protocol.pages.doctor import doctor_page
from promptside_protocol.pages.page import Look, Page, text_of
from promptside_protocol.pages.pipelines import pipeline_page, pipelines_page
from promptside_protocol.pages.plain import cells, cut, harmless, one_line, pad
from promptside_protocol.pages.projects import projects_page
from promptside_protocol.pages.rules import rules_page
from promptside_protocol.pages.task import task_page
from promptside_protocol.pages.tasks import group_of, tasks_page
from promptside_protocol.pages.waiting import calls, need
from promptside_protocol.pages.words import clock, duration, label, money, size, tokens, who
from promptside_protocol.views import (
    Activity,
    Approval,
    AttemptView,
    Change,
    Check,
    DecisionView,
    Denial,
    Doctor,
    FaultView,
    GateView,
    ItemView,
    Metrics,
    Offer,
    OptionView,
    PipelineList,
    PipelineStageView,
    PipelineView,
    ProjectView,
    ProofView,
    RuleView,
    StageView,
    Step,
    TaskView,
    TerminalView,
    TerminalWorkView,
    WaitingFor,
)

GOLDEN = Path(__file__).parents[1] / "fixtures" / "pages"
NOON = dt.datetime(2026, 3, 1, 14, 5, tzinfo=dt.UTC).timestamp()
PLAIN = Look(now=NOON, zone=dt.UTC)
FANCY = Look(now=NOON, zone=dt.UTC, unicode=True, me="ada")
STANDARD = (
    ("research", "Research"),
    ("high-level-approaches", "High-Level Approaches"),
    ("planning", "Planning"),
    ("implementation", "Implementation"),
    ("refinement", "Refinement"),
    ("security-review", "Security Review"),
    ("pr-preparation", "PR Preparation"),
)
DELIVERY = tuple(
    (name.lower(), name)
    for name in (
        "PM",
        "DESIGN",
        "PREFLIGHT",
        "DEV",
        "MIGRATION",
        "TEST",
        "CONTRACT",
        "QA",
        "BENCHMARK",
        "SECURITY",
        "REVIEW",
        "DOCS",
        "COMPLETE",
    )
)
TITLES = (
    "Add login with server-side sessions",
    "A title that goes on and on " * 8,
    "هذا عنوان مكتوب من اليمين إلى اليسار \u202eand then reversed\u202c",
    "First line\nsecond line\r\nthird\u2028fourth\tand a tab",
    "Emoji 👩‍👩‍👧‍👦 🇩🇪 ❤️ and wide 日本語の長いタイトル" * 3,
    "\x1b[2J\x1b[31mcolours and\x1b]0;a window title\x07 a bell\x07",
    "zero\u200bwidth e\u0301\u0301\u0301 combining",
    "",
    "-leading dash \"quotes\" 'and' `ticks`",
)


def golden(name: str, page: Page) -> None:
    folds = {"": "  ", "open": "- ", "closed": "> ", "inside": "| "}
    drawn = "".join(
        f"{folds[line.fold]}{''.join(f'[{s.role}|{s.text}]' if s.role else s.text for s in line.spans)}\n"
        for line in page.lines
    )
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("PROMPTSIDE_GOLDEN") == "write":
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")


def attempt(n: int = 1, **more: Any) -> AttemptView:
    return AttemptView(
        **{  # type: ignore[arg-type]  # a table of defaults, checked by the Struct
            "n": n,
            "id": f"a{n}",
            "status": "done",
            "cause": "first",
            "session": "s",
            "started": NOON - 300,
            "ended": NOON - 200,
            "duration_s": 100.0,
            "input_tokens": 30_000,
            "output_tokens": 900,
            "cost_usd": 0.11,
            "model": "m",
            "prompt": "/p",
            "transcript": "/t",
            "error": None,
            **more,
        }
    )


def stages(named: tuple[tuple[str, str], ...] = STANDARD, **changed: dict[str, Any]) -> tuple[StageView, ...]:
    """Future stages, some changed: by id, with `_` for `-`."""
    made = (
        StageView(id=i, name=n, status="future", format="text", tools=(), rule="read-only") for i, n in named
    )
    return tuple(replace(one, **changed.get(one.id.replace("-", "_"), {})) for one in made)


def task(**more: Any) -> TaskView:
    return TaskView(
        **{  # type: ignore[arg-type]  # a table of defaults, checked by the Struct
            "seq": 481,
            "id": 12,
            "project": "/home/me/shop",
            "title": TITLES[0],
            "description": "",
            "state": "taken",
            "state_since": NOON - 600,
            "claimed_by": None,
            "reason": None,
            "pipeline": "standard",
            "type": "feature",
            "work_type": "coding",
            "priority": 50,
            "agent": "claude",
            "stages": stages(),
            "current": "research",
            "waiting_for": None,
            "directory": ".promptside/tasks/12-add-login",
            "metrics": Metrics(),
            "created": NOON - 900,
            **more,
        }
    )


OPTIONS = (
    OptionView(id="A", title="Session cookies in Postgres", recommended=True),
    OptionView(id="B", title="Signed JWT in a cookie"),
    OptionView(id="C", title="Delegate to the\nidentity provider \x1b[1m"),
)
SELECTION = GateView(
    type="require_selection",
    shown="sha256:9a1b",
    min=1,
    max=1,
    options=OPTIONS,
    lacks=("Select 1 option to approve.",),
)
REVIEW = GateView(
    type="require_all_checked",
    shown="sha256:77",
    items=(
        ItemView(
            id="C1",
            text="Login has no rate limit",
            severity="critical",
            ticked=True,
            path="src/auth/login.ts",
            line=41,
        ),
        ItemView(
            id="C2",
            text="Session id is logged\non error",
            severity="critical",
            path="src/a b/" + "long/" * 30 + "s.ts",
            line=88,
        ),
        ItemView(id="W1", text="Cookie lacks SameSite", severity="warning"),
    ),
    lacks=("C2 is not ticked.", "W1 is not ticked."),
)
PERMISSION = DecisionView(
    id="P1",
    kind="permission",
    priority=1,
    required=True,
    text="The agent wants to run a command in Implementation.",
    tool="Bash",
    what="npm install\nrm -rf \x1b[8mhidden",
    why="not in the allowed rules",
    stage="implementation",
    options=tuple(OptionView(id=i, title=i) for i in ("once", "attempt", "task", "always", "deny")),
)
QUESTION = DecisionView(
    id="Q1",
    kind="one",
    priority=1,
    required=True,
    text="Which login do you want?",
    stage="research",
    options=OPTIONS,
    other=True,
)


def waiting(kind: str, **more: Any) -> WaitingFor:
    return WaitingFor(kind=kind, stage="research", since=NOON - 60, **more)  # type: ignore[arg-type]  # from a table


def test_a_task_that_a_person_works_on_in_a_terminal_says_so() -> None:
    """ED-14: where they are, since when, what can be done; and afterwards what became of it."""
    work = TerminalWorkView(
        by="ada",
        client="terminal",
        since=NOON - 180,
        until=NOON - 60,
        session="s",
        transcript="/home/ada/s.jsonl",
        changes=(Change(path="a.py", kind="modified"),),
        unlisted=1,
    )
    lock = TerminalView(
        since=NOON,
        by="ada",
        client="terminal",
        stage="research",
        attempt=2,
        session="s",
        words="You work on it in a terminal since 14:05.",
    )
    run = {"status": "waiting", "attempts": (attempt(1, terminals=(work,)), attempt(2))}
    view = task(state="paused", stages=stages(research=run), terminal=lock)
    drawn = [text_of(line) for line in task_page(view, FANCY).lines]
    assert any("Research" in line and "You work on it in a terminal since 14:05" in line for line in drawn)
    assert "      continued in a terminal by you from 14:02 to 14:04, 2 files changed" in drawn
    assert "      /home/ada/s.jsonl" in drawn
    assert "Next: promptside give-back 12   (if that terminal is gone)" in drawn
    listed = [text_of(line) for line in tasks_page([view], FANCY).lines]
    assert "You work on it in a terminal since 14:05" in listed[1]


def test_what_a_person_stopped_is_no_failure() -> None:
    """It waits for their word; a stage that broke its promise has failed all the same."""
    for stopped, word, role in ((True, "stopped", "waiting"), (False, "failed", "failed")):
        run = {"status": "failed", "stopped": stopped, "attempts": (attempt(status="stopped"),)}
        view = task(stages=stages(research=run), current="research", waiting_for=waiting("person"))
        row = next(line for line in task_page(view, FANCY).lines if "Research" in text_of(line))
        assert word in text_of(row)
        assert role in {span.role for span in row.spans}
        listed = next(line for line in tasks_page([view], FANCY).lines if view.title in text_of(line))
        assert role in {span.role for span in listed.spans}


def test_at_the_end_everything_that_was_changed_is_a_key_away() -> None:
    """ED-12: beside what can be done with a task that is over, each file counted once."""
    twice = (Change(path="a.py", kind="modified"), Change(path="b.py", kind="added"))
    run = {"status": "approved", "attempts": (attempt(1, changes=twice), attempt(2, changes=twice[:1]))}
    again = Offer(command="promptside.start", title="Start again")
    view = task(state="completed", stages=stages(implementation=run), offers=(again,))
    drawn = task_page(view, replace(PLAIN, calls=False)).lines
    way = next(line for line in drawn if line.ref == "item/changes")
    assert text_of(way) == "  > Show changes   2 files"
    ready = task_page(replace(view, state="ready"), replace(PLAIN, calls=False)).lines
    assert "item/changes" not in {line.ref for line in ready}


# --- tasks -------------------------------------------------------------------------------------------------


def many() -> list[TaskView]:
    """200 tasks in every state, their titles in turn."""
    states = ("taken", "ready", "completed", "draft", "failed", "archived", "paused", "pending", "expired")
    made: list[TaskView] = []
    for n in range(1, 201):
        state = states[n % len(states)]
        kind = n // len(states) % 4
        current = stages(research={"status": "running", "attempts": (attempt(status="running", ended=None),)})
        made.append(
            task(
                id=n,
                state=state,
                title=TITLES[n // 3 % len(TITLES)],
                priority=(50, 90)[n % 2],
                reason="abandoned" if state == "archived" else None,
                stages=current if state == "taken" and kind == 3 else stages(),
                waiting_for=(
                    waiting("gate", gate=REVIEW)
                    if kind == 0
                    else waiting("decision", decisions=(QUESTION, PERMISSION))
                    if kind == 1
                    else waiting("input")
                    if kind == 2
                    else None
                )
                if state == "taken"
                else None,
            )
        )
    return made


def test_two_hundred_tasks_with_hurting_titles() -> None:
    """ST-11: what waits comes first; what is over is folded."""
    page = tasks_page(many(), PLAIN)
    golden("tasks_200", page)
    assert [line.ref for line in page.lines if line.fold in ("open", "closed")][:2] == [
        "group/waiting",
        "group/running",
    ]
    assert sum(line.ref.startswith("task/") for line in page.lines) == 200


@pytest.mark.parametrize("look", [PLAIN, FANCY, Look(now=NOON, width=60, zone=dt.UTC)])
def test_a_line_of_the_list_never_breaks_and_fits(look: Look) -> None:
    for line in tasks_page(many(), look, projects={"/home/me/shop": "shop"}).lines:
        text = text_of(line)
        assert "\n" not in text
        assert "\x1b" not in text
        # 20 columns of a title are kept even where the window is too narrow for the rest.
        assert cells(text) <= max(look.width, 100)


def test_tasks_of_several_projects_unfolded() -> None:
    found = [
        task(id=3),
        task(id=4, project="/b", state="ready", title="Other"),
        task(id=5, state="completed"),
    ]
    names = {"/home/me/shop": "shop", "/b": "b\nx"}
    golden(
        "tasks_projects", tasks_page(found, FANCY, unfolded=frozenset({"ready", "completed"}), projects=names)
    )


def test_no_tasks() -> None:
    golden("tasks_none", tasks_page([], PLAIN))


def test_every_state_has_a_group() -> None:
    shown = {group_of(one) for one in many()}
    assert shown >= {
        "waiting",
        "running",
        "paused",
        "ready",
        "pending",
        "draft",
        "completed",
        "failed",
        "archived",
    }


# --- one task ----------------------------------------------------------------------------------------------


def test_a_task_at_a_selection() -> None:
    """ST-5, ST-11, CW-23: stages, what waits, last actions, and who decided what."""
    approved = Approval(by="", client="nvim", at=NOON, shown="sha256:3f9a77", note="fine\nby me")
    view = task(
        current="high-level-approaches",
        stages=stages(
            research={"status": "approved", "attempts": (attempt(),), "approval": approved},
            high_level_approaches={
                "status": "waiting",
                "attempts": (
                    attempt(
                        status="failed", error="The answer\ndid not fit.", hint="Redo it.", cost_usd=0.001
                    ),
                    attempt(
                        n=2,
                        duration_s=58.4,
                        cost_usd=0.08,
                        proof=ProofView(verdict="proved", meanwhile=("README.md",)),
                        denials=(Denial(tool="Bash", what="curl x\ny", reason="read-only"),),
                        note="Started afresh.",
                        changes=(Change(path="a", kind="modified"),),
                    ),
                ),
            },
        ),
        waiting_for=WaitingFor(kind="gate", stage="high-level-approaches", since=NOON, gate=SELECTION),
        decisions=(
            replace(
                QUESTION,
                status="answered",
                answer="A · Session cookies",
                answered=NOON - 3600,
                client="terminal",
            ),
            replace(PERMISSION, status="denied", answer="not now", answered=NOON - 86400, client="nvim"),
        ),
        metrics=Metrics(
            input_tokens=56_000, output_tokens=1_400, cost_usd=0.19, duration_s=840.0, agent_runs=3
        ),
        branch="task/12-add-login",
        worktree=".promptside/worktrees/12",
    )
    steps = (
        Step(role="tool", text="Read src/auth/oauth.ts", path="src/auth/oauth.ts", at=NOON - 12),
        Step(role="text", text="The queue drops\nthe second chunk"),
        Step(role="tool", text="Run npm test", at=NOON - 3, ok=False),
    )
    activity = Activity(
        project=view.project, task=12, stage="research", attempt=1, cursor=9, line="Reading", last=steps
    )
    golden("task_selection", task_page(view, PLAIN, activity))
    golden("task_selection_unicode", task_page(view, FANCY, activity))


def test_a_task_with_thirteen_stages() -> None:
    """GA-1: the long pipeline, with a skipped, a failed and a paused stage."""
    view = task(
        pipeline="delivery",
        title=TITLES[1],
        state="paused",
        current="test",
        reason="lunch",
        stages=stages(
            DELIVERY,
            pm={
                "status": "approved",
                "approval": Approval(by="ada", client="", at=NOON, shown="", all_at_once=True),
            },
            design={"status": "approved", "reason": "built on an older PM.md"},
            preflight={"status": "skipped", "reason": "no\nmigration"},
            dev={"status": "failed", "attempts": (attempt(status="failed", error="2 tests fail"),)},
            test={"status": "current", "rule": "everything allowed"},
            qa={
                "status": "checking",
                "attempts": (attempt(status="running", ended=None, duration_s=None, cost_usd=None),),
            },
        ),
    )
    golden("task_thirteen", task_page(view, PLAIN))


@pytest.mark.parametrize(
    ("name", "wait"),
    [
        ("checklist", waiting("gate", gate=REVIEW)),
        ("questions", waiting("decision", decisions=(QUESTION, PERMISSION))),
        (
            "fields",
            waiting(
                "gate",
                gate=GateView(
                    type="require_fields",
                    shown="s",
                    fields=("title", "test_plan"),
                    lacks=("Test plan is required and still empty.",),
                ),
            ),
        ),
        ("person", waiting("person", reason="Implementation failed 3 times: \x1b[31mno\nluck.")),
        ("input", waiting("input")),
    ],
)
def test_what_waits(name: str, wait: WaitingFor) -> None:
    view = task(stages=stages(research={"status": "waiting"}), waiting_for=wait)
    golden(f"task_{name}", task_page(view, PLAIN))


def test_a_path_is_never_cut() -> None:
    page = task_page(task(waiting_for=waiting("gate", gate=REVIEW)), Look(now=NOON, width=40, zone=dt.UTC))
    assert any("src/a b/" + "long/" * 30 + "s.ts:88" in text_of(line) for line in page.lines)


@pytest.mark.parametrize(
    ("wait", "words", "first"),
    [
        (waiting("gate", gate=SELECTION), "select 1 of 3", "promptside approve 12 --select A"),
        (
            waiting("gate", gate=replace(SELECTION, selected=("B",), lacks=())),
            "B selected",
            "promptside approve 12",
        ),
        (
            waiting("gate", gate=replace(SELECTION, min=1, max=2)),
            "select 1 to 2 of 3",
            "promptside approve 12 --select A",
        ),
        (waiting("gate", gate=REVIEW), "1 of 3 reviewed", "promptside approve 12 --check C2 --check W1"),
        (
            waiting("gate", gate=GateView(type="require_approval", shown="s")),
            "your approval",
            "promptside approve 12",
        ),
        (
            waiting("gate", gate=GateView(type="sign_off", shown="s")),
            "your sign-off",
            "promptside approve 12 --sign-off",
        ),
        (waiting("decision", decisions=(QUESTION,)), "1 question", "promptside answer 12 Q1 --option A"),
        (
            waiting("decision", decisions=(PERMISSION,)),
            "1 permission",
            "promptside answer 12 P1 --option once",
        ),
        (
            waiting("decision", decisions=(QUESTION, QUESTION, PERMISSION)),
            "2 questions, 1 permission",
            "promptside answer 12 Q1 --option A",
        ),
        (waiting("input"), "your input", 'promptside run 12 --input "..."'),
        (waiting("person", reason="stuck"), "stuck", "promptside retry 12"),
    ],
)
def test_needs_and_the_calls_that_meet_them(wait: WaitingFor, words: str, first: str) -> None:
    assert need(wait) == words
    assert calls(task(waiting_for=wait))[0][0] == first


# --- the other pages ---------------------------------------------------------------------------------------


def test_rules() -> None:
    """ST-14: each with its origin, and how to remove it."""
    found = [
        RuleView(
            id=3, rule="Bash(npm test:*)", task=12, stage="implementation", by="", client="nvim", at=NOON
        ),
        RuleView(
            id=11,
            rule="WebFetch(domain:a.example)\nx",
            task=2,
            stage="research",
            by="ada",
            client="",
            at=NOON - 9e6,
        ),
    ]
    page = rules_page(found, PLAIN)
    golden("rules", page)
    assert page.lines[0].offers[0].args == {"rule": 3}
    assert text_of(rules_page([], PLAIN).lines[0]) == "Nothing was allowed for good in this project."


def test_doctor() -> None:
    """DA-8: what is there, what is missing, what to do."""
    checks = (
        Check(name="git", ok=True, found="2.43.0"),
        Check(
            name="claude",
            ok=False,
            found="",
            needed="2.1 or newer",
            hint="Install it, then run “claude” once.",
        ),
        Check(name="gh", ok=False, found="1.9", needed="2.0", hint="Only pull requests need it."),
    )
    golden("doctor", doctor_page(Doctor(ok=False, checks=checks), FANCY))
    assert (
        text_of(doctor_page(Doctor(ok=True, checks=checks[:1]), PLAIN).lines[-1])
        == "Everything needed is there."
    )


def test_projects() -> None:
    """ST-1: what waits where; a damaged one says why."""
    found = [
        ProjectView(
            id="a",
            name="shop",
            path="/home/me/my shop",
            added=0,
            waiting=2,
            running=1,
            tasks=9,
            trust="trusted",
        ),
        ProjectView(id="b", name="日本", path="/b\n/c", added=0, tasks=1, trust="changed"),
        ProjectView(id="c", name="broken", path="/c", added=0, error="The database is damaged."),
    ]
    golden("projects", projects_page(found, PLAIN))


def test_pipelines() -> None:
    """ST-2, ST-3: the stages, and the place of every fault."""
    made = tuple(
        PipelineStageView(
            id=i,
            name=n,
            output="text",
            gate={"type": "require_approval"} if i != "research" else None,
            tools=("Read", "Grep") if i == "research" else None if i == "planning" else (),
            artifact="",
        )
        for i, n in STANDARD
    )
    standard = PipelineView(
        name="standard",
        title="Seven stages",
        version="abcdef1234567890",
        origin="shipped",
        path="/x.toml",
        stages=made,
    )
    faults = (
        FaultView(
            file="/p/my.toml",
            line=3,
            column=7,
            message="“gat” is no key of a stage.",
            hint="Did you mean gate?",
        ),
        FaultView(file="/p/o\nther.toml", line=1, column=1, message="Unused.", severity="warning"),
    )
    golden("pipelines", pipelines_page(PipelineList(pipelines=(standard,), faults=faults)))
    golden("pipeline", pipeline_page(standard))


# --- words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (58.9, "58 s"),
        (60, "1 min"),
        (100, "1 min 40 s"),
        (840, "14 min"),
        (3600, "1 h"),
        (11100, "3 h 5 min"),
        (47 * 3600, "47 h"),
        (200_000, "2 days"),
        (-5, "0 s"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_money_tokens_sizes_and_labels() -> None:
    assert [money(m) for m in (0, 0.0004, 0.09, 1234.5)] == ["$0.00", "<$0.01", "$0.09", "$1,234.50"]
    counts = (0, 1, 950, 57_400, 999_499, 999_500, 1_240_000)
    assert [tokens(t) for t in counts] == [
        "0 tokens",
        "1 token",
        "950 tokens",
        "57k tokens",
        "999k tokens",
        "1.0M tokens",
        "1.2M tokens",
    ]
    assert [size(n) for n in (12, 12_000, 3_400_000, 1_200_000_000)] == ["12 B", "12 kB", "3.4 MB", "1.2 GB"]
    assert [label(k) for k in ("test_plan", "title", "")] == ["Test plan", "Title", ""]


def test_the_person_who_reads_is_you() -> None:
    assert [who(by, FANCY) for by in ("", "ada", "bob\n")] == ["you", "you", "bob"]


def test_a_time_has_its_date_only_on_another_day() -> None:
    assert clock(NOON, PLAIN) == "14:05"
    assert clock(NOON - 86400, PLAIN) == "2026-02-28 14:05"


# --- plain -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;aGk=\x07clip", "clip"),
        ("\x1bP1$r\x1b\\dcs", "dcs"),
        ("\x9b31mc1", "c1"),
        ("cut \x1b[", "cut "),
        ("a\x08\x7f\x00b", "ab"),
        ("over\rwritten\r\nline", "over\nwritten\nline"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("half \ud83d", "half \ufffd"),
        ("tab\tstays\n", "tab\tstays\n"),
    ],
)
def test_nothing_a_terminal_obeys_is_left(hostile: str, shown: str) -> None:
    assert harmless(hostile) == shown
    assert harmless(shown) == shown


def test_widths() -> None:
    assert [cells(t) for t in ("abc", "日本", "e\u0301", "👩")] == [3, 4, 1, 2]
    assert cut("日本語です", 7) == "日本..."
    assert cut("日本語です", 6, unicode=True) == "日本…"
    assert cut("abc", 3) == "abc"
    assert cut("abcdef", 2) == ".."
    # A family is one letter for people: it is left out as a whole.
    assert cut("ab👩\u200d👩\u200d👧cdef", 8) == "ab..."
    assert pad("日", 4) == "日  "
    assert one_line(" a \n\n b\t c ") == "a b c"
