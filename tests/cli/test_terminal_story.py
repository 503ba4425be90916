"""The terminal against a real daemon with a rehearsal: scripts by pipe, and a person at a pseudoterminal.

The recordings are made here: one stage that asks a question and a permission, the others made up.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.person import Person
from rig.scratch import scratch

DEADLINE_S = 60.0
PROMPTSIDE = (sys.executable, "-m", "promptside_cli")
PATIENT = (
    "import sys; from promptside_cli import run, __main__ as it; run.TWICE_S = {seconds}; sys.exit(it.main())"
)
"""The same, with another time in which a second Ctrl-C is one: the person may be slow."""


class Place:
    """A home and a repository of one test's own."""

    def __init__(self, root: Path) -> None:
        self.repository = root / "a repo"
        self.rehearsal = root / "rehearsal"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "PROMPTSIDE_HOME": str(root / "h"),
        }
        self.repository.mkdir()
        self.rehearsal.mkdir()
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run([*git, *words], cwd=self.repository, env=self.environment, check=True)

    def call(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROMPTSIDE, *words],
            cwd=self.repository,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def ok(self, *words: str, **environment: str) -> str:
        ended = self.call(*words, **environment)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def data(self, *words: str) -> Any:
        return json.loads(self.ok(*words, "--json"))

    def task(self, title: str = "Add login") -> int:
        made = self.data("task", "new", title, "--agent", f"rehearsal:{self.rehearsal}")
        assert made["state"] == "ready"
        return int(made["id"])

    def record(self, stage: str, *lines: dict[str, Any], text: str = "Done.") -> None:
        """A recording: these lines, then one text as the result."""
        session = {"session_id": "{{session}}"}
        start = {
            "type": "system",
            "subtype": "init",
            "cwd": "{{cwd}}",
            "tools": [],
            "mcp_servers": [],
            "model": "rehearsal",
            "permissionMode": "default",
            "claude_code_version": "2.1.330",
        }
        end = {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 1,
            "duration_ms": 900,
            "duration_api_ms": 900,
            "total_cost_usd": 0.01,
            "usage": {"input_tokens": 10, "output_tokens": 5},
            "modelUsage": {},
            "permission_denials": [],
            "terminal_reason": "completed",
            "result": text,
        }
        said = assistant("msg_end", {"type": "text", "text": text})
        whole = [{**line, **session} for line in (start, *lines, said, end)]
        path = self.rehearsal / f"{stage}.1.ndjson"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in whole))

    def person(self, *words: str, twice_s: float | None = None) -> Person:
        begin = list(PROMPTSIDE)
        if twice_s is not None:
            begin[1:] = ["-c", PATIENT.format(seconds=twice_s)]
        return Person([*begin, *words], self.repository, self.environment)


def assistant(message: str, *content: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 0, "output_tokens": 0}
    return {
        "type": "assistant",
        "message": {
            "id": message,
            "type": "message",
            "role": "assistant",
            "model": "rehearsal",
            "content": list(content),
            "stop_reason": None,
            "usage": usage,
        },
        "parent_tool_use_id": None,
    }


def tool_use(name: str, use: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    """A tool call that asks first, and its result."""
    ask = {
        "type": "control_request",
        "request_id": f"req_{use}",
        "request": {"subtype": "can_use_tool", "tool_name": name, "input": given, "tool_use_id": use},
    }
    result = {"type": "tool_result", "tool_use_id": use, "content": "done", "is_error": False}
    return [
        assistant(f"msg_{use}", {"type": "tool_use", "id": use, "name": name, "input": given}),
        ask,
        {
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "parent_tool_use_id": None,
            "tool_use_result": {},
        },
    ]


QUESTION = {
    "questions": [
        {
            "question": "Which login do you want?",
            "header": "Login",
            "multiSelect": False,
            "options": [
                {"label": "Sessions (Recommended)", "description": "Revoking is one DELETE"},
                {"label": "Tokens", "description": "Stateless"},
            ],
        }
    ]
}


@pytest.fixture
def place() -> Iterator[Place]:
    root = scratch("ps-")
    here = Place(root)
    try:
        yield here
    finally:
        for view in json.loads(here.call("task", "list", "--json").stdout or "[]"):
            here.call("task", "abandon", str(view["id"]))
        stopped = here.call("daemon", "stop")
        assert stopped.returncode == 0, stopped.stderr
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def person(place: Place) -> Iterator[Callable[..., Person]]:
    made: list[Person] = []

    def sit_down(*words: str, **more: float) -> Person:
        made.append(place.person(*words, **more))
        return made[-1]

    yield sit_down
    for one in made:
        one.close()


# --- scripts -----------------------------------------------------------------------------------------------


def test_a_pipeline_from_order_to_approval_by_script(place: Place) -> None:
    """ST-2, ST-5, CLI.md: exit 3 at each gate with what to answer, 0 at the end; --json is data only."""
    task = str(place.task("A “title”\nwith two lines"))
    for answer in ([], ["--select", "B"], [], [], [], ["--check", "all"], []):
        ended = place.call("run", task, "--json")
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        assert all("event" in line and "seq" in line for line in lines)
        assert lines[-1]["event"] == "end"
        assert lines[-1]["exit"] == ended.returncode == 3, lines[-1]
        waiting = lines[-1]["task"]["waiting_for"]
        assert "Waiting for you" in ended.stderr
        assert waiting["kind"] == "gate"
        assert f"promptside approve {task}" in ended.stderr
        view = place.data("approve", task, *answer)
        if waiting["stage"] == "implementation":
            # Refinement takes what a person may have to add: it waits until `run` starts it.
            assert view["waiting_for"]["kind"] == "input"
    ended = place.call("run", task, "--json")
    assert ended.returncode == 0
    last = json.loads(ended.stdout.splitlines()[-1])
    assert last["task"]["state"] == "completed"
    record = place.ok("task", "show", task)
    assert "High-Level Approaches  approved" in record
    assert "terminal, sha256 " in record


def test_the_stream_is_stamped_and_whole_in_a_pipe(place: Place) -> None:
    place.record("research", text="# Found\n\nTwo paragraphs,\n\nand a \x1b[31mcolour.")
    ended = place.call("run", str(place.task()))
    assert ended.returncode == 3
    assert "\x1b" not in ended.stdout
    assert all(re.match(r"\d\d:\d\d:\d\d( |$)", line) for line in ended.stdout.splitlines())
    assert [line[10:] for line in ended.stdout.splitlines()][2:7] == [
        "      # Found",
        "",
        "      Two paragraphs,",
        "",
        "      and a colour.",
    ]


def test_one_stage_and_its_exit_codes(place: Place) -> None:
    task = str(place.task())
    assert place.call("run", task, "--stage").returncode == 3
    assert place.call("approve", task, "--select", "A").returncode == 4
    assert place.call("approve", "99").returncode == 4
    view = place.data("approve", task)
    assert view["waiting_for"]["kind"] == "input"
    refused = place.call("approve", task, "--json")
    assert refused.returncode == 4
    assert set(json.loads(refused.stdout)["error"]) >= {"code", "message", "hint"}


def test_the_log_is_the_transcript(place: Place, tmp_path: Path) -> None:
    """GA-10, DA-6: `--raw` is byte for byte what the agent wrote; the rest is for people."""
    place.record("research", text="Alpha\nbeta\nalphabet")
    task = str(place.task())
    place.call("run", task)
    attempt = place.data("task", "show", task)["stages"][0]["attempts"][0]
    raw = subprocess.run(
        [*PROMPTSIDE, "log", task, "--raw"],
        cwd=place.repository,
        env=place.environment,
        capture_output=True,
        check=True,
    )
    assert raw.stdout == Path(attempt["transcript"]).read_bytes()
    assert place.ok("log", task).splitlines()[:3] == ["Alpha", "beta", "alphabet"]
    assert place.ok("log", task, "--grep", "^alpha").splitlines() == ["alphabet"]
    assert place.ok("log", task, "--follow").splitlines()[:3] == ["Alpha", "beta", "alphabet"]
    made = place.ok("log", task, "--export", str(tmp_path / "logs")).splitlines()
    assert made == [str(tmp_path / "logs" / "research_1.log")]
    text = Path(made[0]).read_text()
    for part in ("== Prompt ==", "== Output ==\n\nAlpha\nbeta", "== Result =="):
        assert part in text
    assert place.call("log", task, "--stage", "nope").returncode == 4
    assert place.call("log", task, "--stage", "planning").returncode == 4
    assert place.call("log", task, "--grep", "(").returncode == 2


def test_questions_and_permissions_by_script(place: Place) -> None:
    """CW-4, ST-14: what an agent asks is answered from another call; the run waits with exit 3."""
    place.record("research", *tool_use("AskUserQuestion", "t1", QUESTION), text="Sessions it is.")
    task = str(place.task())
    ended = place.call("run", task)
    assert ended.returncode == 3
    assert f"promptside answer {task} Q1 --option A" in ended.stderr
    assert "Sessions" in ended.stdout
    assert place.call("answer", task, "Q9", "--option", "A").returncode == 4
    place.ok("answer", task, "Q1", "--option", "A")
    ended = place.call("run", task)
    assert ended.returncode == 3
    assert "your approval" in ended.stderr
    decisions = place.data("decision", "list", task)
    assert [(d["id"], d["status"]) for d in decisions] == [("Q1", "answered")]
    assert "Which login do you want?" in place.ok("decision", "list", task)


def test_unattended_runs_never_wait_for_an_answer(place: Place) -> None:
    """ST-14: with `--on-ask deny` what is asked is denied and listed in the result; gates wait all the same."""
    place.record("research", *tool_use("Bash", "t2", {"command": "npm install"}), text="Went on without.")
    task = str(place.task())
    ended = place.call("run", task, "--on-ask", "deny", "--json")
    last = json.loads(ended.stdout.splitlines()[-1])
    assert (ended.returncode, last["task"]["waiting_for"]["kind"]) == (3, "gate")
    assert [(d["stage"], d["tool"]) for d in last["denials"]] == [("research", "Bash")]
    assert "npm install" in last["denials"][0]["what"]
    assert last["denials"][0]["reason"]
    assert "denied: Bash npm install" in place.ok("task", "show", task)


def test_only_what_was_shown_is_approved(place: Place) -> None:
    """CW-23, CLI.md `--shown`: the hash of what a person saw."""
    task = str(place.task())
    place.call("run", task, "--stage")
    shown = place.data("task", "show", task)["waiting_for"]["gate"]["shown"]
    assert place.call("approve", task, "--shown", "0" * 64).returncode == 4
    view = place.data("approve", task, "--shown", shown, "--note", "read it")
    assert view["stages"][0]["approval"]["shown"] == shown
    assert "“read it”" in place.ok("task", "show", task)
    assert place.call("approve", task, "--shown", shown).returncode == 4
    view = place.data("take-back", task)
    assert view["waiting_for"]["stage"] == "research"
    place.ok("redo", task, "-m", "shorter")
    place.call("run", task)
    view = place.data("task", "show", task)
    assert len(view["stages"][0]["attempts"]) == 2


def test_a_detached_run_is_watched_by_another(place: Place) -> None:
    task = str(place.task())
    assert "promptside" in place.ok("run", task, "--detach")
    assert place.call("run", task).returncode == 3
    view = place.data("task", "show", task)
    assert [len(stage["attempts"]) for stage in view["stages"]][:2] == [1, 0]


def test_open_makes_a_draft_of_what_was_written(place: Place, tmp_path: Path) -> None:
    """UX 2: the document is the form, also for the person's own editor."""
    task = str(place.task())
    place.call("run", task)
    place.ok("approve", task)
    place.call("run", task)
    script = tmp_path / "tick"
    script.write_text('#!/bin/sh\nsed -i.bak "s/- \\[ \\] Select B/- [x] Select B/" "$1"\n')
    script.chmod(0o700)
    assert "Next: promptside approve" in place.ok("open", task, EDITOR=str(script))
    assert place.data("task", "show", task)["waiting_for"]["gate"]["selected"] == ["B"]
    script.write_text('#!/bin/sh\nsed -i.bak "s/- \\[ \\] Select A/- [] Select A/" "$1"\n')
    broken = place.call("open", task, EDITOR=str(script))
    assert broken.returncode == 1
    assert re.search(r"02-high-level-approaches\.md:\d+: ", broken.stdout)
    kept = re.search(r"What you wrote is kept in (.*)\.$", broken.stdout)
    assert kept is not None
    assert "- [] Select A" in Path(kept[1]).read_text()
    Path(kept[1]).unlink()
    assert "Nothing was changed." in place.ok("open", task, EDITOR="true")
    assert place.ok("next", EDITOR="true") == "Nothing was changed.\n"


def test_projects_pipelines_and_the_daemon(place: Place) -> None:
    """ST-1, DA-1, DA-8."""
    place.task()
    assert [p["path"] for p in place.data("project", "list")] == [str(place.repository)]
    place.ok("project", "rename", "shop")
    assert "shop" in place.ok("project", "list")
    shown = place.data("pipeline", "show", "standard")
    assert [stage["id"] for stage in shown["stages"]][:2] == ["research", "high-level-approaches"]
    assert place.ok("pipeline", "check", "standard").endswith("nothing is wrong.\n")
    assert "standard" in place.ok("pipeline", "list")
    assert place.ok("rules") == "Nothing was allowed for good in this project.\n"
    assert "nothing" in place.ok("trust", "--show")
    assert place.data("daemon", "status")["attempts"] == []
    assert "listening" in place.ok("daemon", "logs")
    checks = json.loads(place.call("doctor", "--json").stdout)
    assert {check["name"] for check in checks["checks"]} >= {"git", "claude"}
    place.ok("daemon", "stop")
    assert place.call("daemon", "status").returncode == 5
    assert place.ok("daemon", "stop") == "No daemon runs.\n"


# --- a person ----------------------------------------------------------------------------------------------


def test_a_person_is_asked_at_each_gate(place: Place, person: Callable[..., Person]) -> None:
    """ST-11, ST-13: the whole pipeline from one terminal, each answer in its place."""
    one = person("run", str(place.task()))
    one.sees("Research")
    one.sees("Approve [y = yes, r = redo with your words, e = open in editor, q = leave]: ")
    one.types("maybe\n")
    one.sees("Approve [")
    one.types("y\n")
    one.sees("Select [A/B, e = open in editor, q = leave]: ")
    one.types("z\n")
    one.sees("“z” is none of A/B.")
    one.sees("Select [")
    one.types("b\n")
    for _ in ("planning", "implementation"):
        one.sees("Approve [")
        one.types("y\n")
    one.sees("Anything to add for Refinement? (Enter: nothing, q: leave) ")
    one.types("\n")
    one.sees("Approve [")
    one.types("y\n")
    one.sees("Reviewed? [")
    one.types("y looked at it\n")
    one.sees("Approve [")
    one.types("y\n")
    one.sees("Done. 7 stages")
    assert one.leaves() == 0
    view = place.data("task", "show", "@")
    assert view["state"] == "completed"
    assert {stage["approval"]["client"] for stage in view["stages"]} == {"terminal"}


def test_leaving_changes_nothing(place: Place, person: Callable[..., Person]) -> None:
    task = str(place.task())
    one = person("run", task)
    one.sees("q = leave]: ")
    before = place.data("task", "show", task)
    one.types("q\n")
    one.sees(f"promptside approve {task}")
    assert one.leaves() == 3
    assert place.data("task", "show", task) == before


def test_a_question_and_a_permission_in_place(place: Place, person: Callable[..., Person]) -> None:
    """CW-4, ST-14: asked one after the other where the person sits."""
    place.record("research", *tool_use("AskUserQuestion", "t1", QUESTION), text="Sessions it is.")
    place.record("implementation", *tool_use("Bash", "t2", {"command": "npm install"}), text="Installed.")
    one = person("run", str(place.task()))
    asked = one.sees("Q1 [A/B, o = other, e = open in editor, q = leave]: ")
    assert "(recommended)" in asked
    one.types("A\n")
    one.sees("Sessions it is.")
    one.sees("Approve [")
    one.types("y\n")
    one.sees("Select [")
    one.types("A\n")
    one.sees("Approve [")
    one.types("y\n")
    one.sees("npm install")
    one.sees("[o]nce / [a]ttempt / [t]ask / a[l]ways / [d]eny / q: ")
    one.types("l\n")
    one.sees("Installed.")
    one.sees("Approve [")
    one.types("q\n")
    assert one.leaves() == 3
    assert "npm install" in place.ok("rules")
    place.ok("rules", "remove", str(place.data("rules")[0]["id"]))
    assert place.data("rules") == []


def test_what_is_decided_elsewhere_is_asked_no_more(place: Place, person: Callable[..., Person]) -> None:
    """ED-10 in the terminal: a gate approved from another terminal ends the question here."""
    task = str(place.task())
    one = person("run", task)
    one.sees("Approve [")
    place.ok("approve", task)
    one.sees("This was decided elsewhere.")
    one.sees("Select [A/B")
    one.types("q\n")
    assert one.leaves() == 3


def test_ctrl_c_detaches_and_twice_asks_to_stop(place: Place, person: Callable[..., Person]) -> None:
    """CLI.md: 130, the stage goes on; a second Ctrl-C within two seconds asks."""
    place.record("research", *tool_use("AskUserQuestion", "t1", QUESTION))
    task = str(place.task())
    one = person("run", task, twice_s=60)
    one.sees("Q1 [")
    one.types("\x03")
    one.sees(f"promptside watch {task} / promptside stop {task}")
    one.types("\x03")
    one.sees("Stop Research? [y/N]: ")
    one.types("n\n")
    assert one.leaves() == 130
    assert place.data("task", "show", task)["waiting_for"]["kind"] == "decision"
    other = person("run", task, twice_s=60)
    other.sees("Q1 [")
    other.types("\x03")
    other.sees("promptside stop")
    other.types("\x03")
    other.sees("[y/N]: ")
    other.types("y\n")
    assert other.leaves() == 130
    ended = place.call("run", task, "--json")
    assert place.data("task", "show", task)["stages"][0]["attempts"][0]["status"] == "stopped", ended.stdout


def test_a_killed_daemon_ends_no_run(place: Place, person: Callable[..., Person]) -> None:
    """CW-16, DA-2: the terminal says it, reaches the next daemon, and asks again what still waits."""
    place.record("research", *tool_use("AskUserQuestion", "t1", QUESTION), text="Sessions it is.")
    one = person("run", str(place.task()))
    one.sees("Q1 [")
    first = place.data("daemon", "status")["pid"]
    os.kill(first, signal.SIGKILL)
    one.sees("The Promptside daemon stopped. Agents at work go on; nothing is lost.")
    one.sees("The daemon is there again.")
    one.sees("Q1 [")
    one.types("A\n")
    one.sees("Sessions it is.")
    one.sees("Approve [")
    one.types("q\n")
    assert one.leaves() == 3
    assert place.data("daemon", "status")["pid"] != first


def test_the_live_list_is_left_with_q(place: Place, person: Callable[..., Person]) -> None:
    """UX 6: the alternate screen is left as it was found."""
    task = str(place.task())
    everything = person("watch")
    everything.sees("Ready (1)")
    everything.sees("q leaves")
    single = person("watch", task)
    single.sees("q leaves")
    place.call("run", task)
    everything.sees("Waiting for you (1)")
    single.sees("your approval")
    for one in (everything, single):
        one.types("q")
        assert one.leaves() == 0
        assert one.screen.count("\x1b[?1049h") == one.screen.count("\x1b[?1049l") == 1


def test_watching_line_by_line(place: Place) -> None:
    task = str(place.task())
    watching = subprocess.Popen(
        [*PROMPTSIDE, "watch", task, "--json"],
        cwd=place.repository,
        env=place.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    first = json.loads(watching.stdout.readline())
    assert (first["event"], first["state"]) == ("task_ready", "ready")
    place.ok("task", "abandon", task)
    lines = [json.loads(line) for line in watching.stdout]
    assert watching.wait(DEADLINE_S) == 1
    watching.stdout.close()
    assert [line["event"] for line in lines] == ["task_archived", "end"]
    assert lines[-1]["task"]["state"] == "archived"
