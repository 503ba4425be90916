"""Bad input and faults, at the terminal and against a real daemon: what each gets (the table of issue 2).

The agents are made up; what only the real CLI can show is in the other stories.
"""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.fake_claude import fake_claude
from rig.user import Ran, User

GOOD = "prompt(); init(); text('Hello'); result('Hello'); end()"
SMALL = """
[[stage]]
id = "work"
name = "Work"
input = "user"
prompt = "Work on it: {{ task_description }}"
permission = "ask"
"""
FORM = (
    SMALL
    + """
output = "checklist"
gate = { type = "require_all_checked" }
"""
)
ITEMS = (
    "prompt(); init(); result('', structured_output={'items': [{'severity': 'info', 'title': 'A'},"
    " {'severity': 'critical', 'title': 'B'}]}); end()"
)


@pytest.fixture
def small(user: User) -> Callable[..., User]:
    """A person with a pipeline of one stage, and an agent that does as it is written."""

    def make(script: str = GOOD, pipeline: str = SMALL, settings: str = "[limits]\nretries = 0\n") -> User:
        config = user.data / "config"
        (config / "pipelines").mkdir(parents=True, exist_ok=True)
        (config / "pipelines" / "small.toml").write_text(pipeline)
        (config / "config.toml").write_text(settings)
        user.environment["PROMPTSIDE_CLAUDE"] = str(fake_claude(user.base, script))
        return user

    return make


def new(user: User, title: str = "A task", *more: str) -> Ran:
    return user.promptside("task", "new", title, "--pipeline", "small", *more)


def database(user: User) -> Path:
    """The project's database."""
    (found,) = user.data.glob("data/projects/*/project.db")
    return found


def refusal(ran: Ran) -> str:
    """The sentence of an order that was refused."""
    assert ran.code == 4, ran
    return ran.err


# --- the agent's program -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda file: file.unlink(), "not found"),
        (lambda file: file.chmod(0o644), "may not be executed"),
        (lambda file: file.write_text("#!/bin/sh\necho '1.0.0 (Claude Code)'\n"), "1.0.0 is here"),
    ],
    ids=["none", "not executable", "too old"],
)
def test_a_claude_that_can_not_be_used_is_said_by_the_stage_and_by_doctor(
    small: Callable[..., User], spoil: Callable[[Path], object], sentence: str
) -> None:
    user = small()
    spoil(Path(user.environment["PROMPTSIDE_CLAUDE"]))
    new(user)
    ran = user.promptside("run", code=1)
    assert sentence in ran.out + ran.err
    checks = {check["name"]: check for check in user.promptside("doctor", "--json", code=None).data["checks"]}
    assert not checks["claude"]["ok"]
    assert sentence in checks["claude"]["found"] + checks["claude"]["hint"]
    assert checks["claude"]["hint"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("result('Not logged in · Please run /login', is_error=True)", "not logged in"),
        ("result('Credit balance is too low', is_error=True)", "no credit"),
        ("result('no such model', is_error=True, api_error_status=404)", "model is not known"),
        (
            "line(type='system', subtype='api_retry', attempt=1, max_retries=10, error_status=401)",
            "not logged in",
        ),
    ],
    ids=["no login", "no credit", "no such model", "401"],
)
def test_what_a_person_has_to_mend_is_said_and_not_tried_again(
    small: Callable[..., User], said: str, words: str
) -> None:
    user = small(f"prompt(); init(); {said}; end()", settings="[limits]\nretries = 3\n")
    new(user)
    ran = user.promptside("run", code=1)
    assert words in ran.out + ran.err
    assert len(user.stage("work")["attempts"]) == 1


def test_a_plan_limit_is_waited_for(small: Callable[..., User]) -> None:
    """It goes on by itself when the limit ends, also if a daemon died in between."""
    user = small()
    seen = user.base / "seen"
    user.environment["PROMPTSIDE_CLAUDE"] = str(
        fake_claude(
            user.base,
            f"prompt(); init()\nif not os.path.exists({str(seen)!r}):\n"
            f"    open({str(seen)!r}, 'w').close()\n"
            "    line(type='rate_limit_event', rate_limit_info={'status': 'rejected',"
            " 'resetsAt': time.time() + 2, 'rateLimitType': 'five_hour'})\n"
            "    result('You have hit your limit', is_error=True, api_error_status=429)\n    end()\n"
            "result('Good'); end()",
        )
    )
    new(user)
    user.promptside("run", "--detach")
    user.until(lambda task: task["stages"][0]["attempts"] and task["stages"][0]["attempts"][0]["error"])
    user.kill(user.daemon())
    user.waits("gate")  # the first call of which starts the next one
    assert [attempt["status"] for attempt in user.stage("work")["attempts"]] == ["failed", "done"]


# --- the transcript ----------------------------------------------------------------------------------------


def test_a_flood_of_output_is_followed_with_flat_memory(small: Callable[..., User]) -> None:
    """80 MB in lines of one, one of five, an unknown kind, bytes that are no text and half a line."""
    user = small(
        "prompt(); init(); write(b'[debug]\\n'); line(type='a_new_kind'); write(b'\\xff\\n'); text('y' * 5_000_000)\n"
        "for n in range(80): text(str(n) + 'x' * 1_000_000)\n"
        "result('The end'); write(b'half a line'); end()"
    )
    new(user)
    user.promptside("daemon", "status")
    before = peak(user)
    user.promptside("run", "--detach")
    user.waits("gate")
    assert peak(user) - before < 100 << 10, "KiB"
    raw = user.transcript("work")
    assert len(raw) > 80_000_000
    assert raw.endswith(b"half a line")


def peak(user: User) -> int:
    """The most memory that the daemon has had so far, in KiB."""
    status = Path(f"/proc/{user.daemon()}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


# --- the agent's process -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "silence", "words"),
    [
        ("prompt(); init(); os.kill(os.getpid(), signal.SIGKILL)", 300, "without a result (SIGKILL)"),
        ("prompt(); init(); sys.exit(0)", 300, "without a result"),
        ("prompt(); init(); end()", 0.3, "was silent for"),
    ],
    ids=["killed", "no result", "silent"],
)
def test_an_agent_that_fails_is_tried_again_as_configured_and_leaves_nothing(
    small: Callable[..., User], script: str, silence: float, words: str
) -> None:
    child = "subprocess.Popen(['sleep', '600'], start_new_session=True, stdin=0, stdout=2); "
    user = small(child + script, settings=f"[limits]\nretries = 1\nsilence_s = {silence}\n")
    new(user)
    ran = user.promptside("run", code=1)
    assert words in ran.out + ran.err
    attempts = user.stage("work")["attempts"]
    assert [attempt["cause"] for attempt in attempts] == ["first", "retry"]
    assert user.agents() == {}


# --- the daemon and its files ------------------------------------------------------------------------------


def test_a_damaged_project_takes_no_other_with_it(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    sound = user.base / "sound"
    sound.mkdir()
    damaged = database(user)
    user.promptside("daemon", "stop")
    content = damaged.read_bytes()
    damaged.write_bytes(b"no database at all" * 1000)
    ran = user.promptside("task", "list", code=4)
    assert "damaged" in ran.err
    assert "backup" in ran.err
    made = user.promptside("task", "new", "Another", "--pipeline", "small", cwd=sound)
    assert made.code == 0
    listed = {p["path"]: p["error"] for p in user.promptside("project", "list", "--json").data}
    assert "damaged" in (listed[str(user.project)] or "")
    assert not listed[str(sound)]
    checks = user.promptside("doctor", "--json", code=None).data["checks"]
    assert any(check["name"] == "database" and not check["ok"] for check in checks)
    # Put back, it is there again, with no daemon to be restarted.
    damaged.write_bytes(content)
    assert [task["title"] for task in user.promptside("task", "list", "--json").data] == ["A task"]


def test_a_database_of_a_newer_version_is_left_alone(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    user.promptside("daemon", "stop")
    with contextlib.closing(sqlite3.connect(database(user))) as connection:
        connection.execute("pragma user_version = 9999")
    ran = user.promptside("task", "list", code=4)
    assert "newer Promptside" in ran.err


def test_a_database_that_another_process_holds_is_said_and_then_used(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    with contextlib.closing(sqlite3.connect(database(user), isolation_level=None)) as connection:
        connection.execute("begin immediate")
        ran = user.promptside("run", "--detach", code=4)
        assert "another" in ran.err.lower()
        connection.execute("rollback")
    user.promptside("run", code=3)


def test_something_in_the_way_of_the_socket_is_replaced_or_said(small: Callable[..., User]) -> None:
    user = small()
    run = user.data / "run"
    run.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(run / "daemon.sock"))  # of a daemon that was killed
    new(user)
    user.promptside("daemon", "stop")
    (run / "daemon.sock").mkdir()
    ran = user.promptside("task", "list", code=5)
    assert "daemon.sock" in ran.err
    (run / "daemon.sock").rmdir()
    user.promptside("task", "list")


def test_two_daemons_that_race_are_one(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    user.promptside("daemon", "stop")
    racing = [user.start("task", "list", "--json") for _ in range(4)]
    with contextlib.ExitStack() as stack:
        for one in racing:
            stack.enter_context(one)
        for one in racing:
            assert one.line()[0]["title"] == "A task"
            assert one.end() == 0
    daemons = [c for c in user.processes().values() if "promptside_daemon" in c]
    assert len(daemons) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can be mounted by root only")
def test_a_full_disk_is_said_and_loses_nothing(small: Callable[..., User]) -> None:
    # As the CLI does on a full disk, it goes on and says nothing.
    user = small(
        "prompt(); init()\nwhile True:\n    time.sleep(0.05)\n"
        "    try: text('x' * 10000)\n    except OSError: pass\n"
    )
    data = user.data / "data"
    data.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=90m", "promptside", str(data)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        new(user)
        user.promptside("run", "--detach")
        user.until(lambda task: task["stages"][0]["attempts"] and task["stages"][0]["attempts"][0]["session"])
        fill = data / "fill"
        with contextlib.suppress(OSError), fill.open("wb") as file:
            while True:
                file.write(bytes(1 << 20))
        ran = user.promptside("stop", code=None)
        assert ran.code in (0, 4), ran
        if ran.code == 4:
            assert "no space is left" in ran.err
        user.promptside("task", "list")
        fill.unlink()
        failed = user.until(lambda task: task["stages"][0]["status"] == "failed")
        assert failed["stages"][0]["attempts"][0]["error"]
        assert user.agents() == {}
    finally:
        user.leave()
        subprocess.run(["umount", "-l", str(data)], check=True)


def test_a_machine_that_restarted_goes_on(small: Callable[..., User]) -> None:
    """Every process is gone, and the numbers of processes mean others: another boot id."""
    user = small("prompt(); init(); end()", settings="[limits]\nretries = 1\n")
    new(user)
    user.promptside("run", "--detach")
    task = user.until(
        lambda task: task["stages"][0]["attempts"] and task["stages"][0]["attempts"][0]["session"]
    )
    attempt = Path(task["stages"][0]["attempts"][0]["transcript"]).parent
    user.kill(user.daemon())  # first: it would see the others die, and try again
    for pid in user.processes():
        with contextlib.suppress(AssertionError, ProcessLookupError):
            user.kill(pid)
    # As if this very process had the keeper's number now, and the system had been started since.
    keeper = json.loads((attempt / "keeper.json").read_bytes())
    boot, _, ticks = keeper["started"].partition("/")
    (attempt / "keeper.json").write_text(
        json.dumps({"pid": os.getpid(), "started": f"another-{boot}/{ticks}"})
    )
    user.environment["PROMPTSIDE_CLAUDE"] = str(fake_claude(user.base, GOOD))
    user.waits("gate")
    first, second = user.stage("work")["attempts"]
    assert (first["status"], second["status"]) == ("failed", "done")
    assert "the process that held the agent was killed" in first["error"]


# --- approvals ---------------------------------------------------------------------------------------------


def test_of_many_approvals_at_once_exactly_one_counts(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    user.promptside("run", code=3)
    racing = [user.start("approve", "1", "--json") for _ in range(5)]
    with contextlib.ExitStack() as stack:
        for one in racing:
            stack.enter_context(one)
        codes = sorted(one.end() for one in racing)
    assert codes == [0, 4, 4, 4, 4]
    assert "approved already" in refusal(user.promptside("approve", "1", code=4))


def test_an_approval_with_something_missing_is_refused_with_what(small: Callable[..., User]) -> None:
    user = small(ITEMS, FORM)
    new(user)
    user.promptside("run", code=3)
    assert "Not approved" in refusal(user.promptside("approve", "1", code=4))
    user.promptside("approve", "1", "--check", "all")


def test_an_artifact_that_changed_since_it_was_shown_is_refused(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    user.promptside("run", code=3)
    waiting = user.task()["waiting_for"]
    (user.project / waiting["document"]).write_text("# Something else\n")
    ran = user.promptside("approve", "1", "--shown", waiting["gate"]["shown"], code=4)
    assert "not what the daemon has" in refusal(ran)
    user.promptside("approve", "1")  # and without, the person vouches for what is there


# --- documents and pipelines -------------------------------------------------------------------------------


def test_a_form_that_was_broken_in_an_editor_is_said_at_its_line(small: Callable[..., User]) -> None:
    user = small(ITEMS, FORM)
    new(user)
    user.promptside("run", code=3)
    editor = user.base / "editor"
    editor.write_text(
        f"#!{sys.executable}\nimport sys\nfile = open(sys.argv[-1], 'r+')\ntext = file.read()\n"
        "file.seek(0); file.truncate(); file.write(text.replace('[ ]', '[maybe]'))\n"
    )
    editor.chmod(0o755)
    user.promptside("open", "1", code=None, more={"EDITOR": str(editor), "VISUAL": str(editor)})
    ran = user.promptside("approve", "1", code=4)
    assert "line" in ran.err or "Not approved" in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[stage]\n", "small.toml:1"),
        (SMALL + 'colour = "red"\n', "colour"),
        (SMALL.replace("Work on it", "{{ ''.__class__ }} {% include '/etc/passwd' %}"), "small.toml"),
        (SMALL + 'artifact = "../../outside.md"\n', "small.toml"),
    ],
    ids=["no TOML", "an unknown key", "a template that reads", "a path out of the project"],
)
def test_a_pipeline_with_a_fault_says_where_and_nothing_runs(
    small: Callable[..., User], text: str, words: str
) -> None:
    user = small(f"open({str(Path('/'))!r} and 'ran', 'w').close(); end()", text)
    ran = user.promptside("pipeline", "check", "small", code=None)
    assert words in ran.out + ran.err
    made = user.promptside("task", "new", "A task", "--pipeline", "small", code=None)
    if made.code == 0:  # a fault of the prompt alone: then the stage says it
        user.promptside("run", code=1)
        assert "prompt" in (user.task()["error"] or "")
    assert not (user.project / "ran").exists()


# --- words and places --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "title",
    [
        "'quotes' \"and\" `ticks`",
        "two\nlines",
        "--leading dashes",
        "émoji 🎉 and 漢字",
        "$(touch oops); rm -rf .",
    ],
)
def test_any_title_works(small: Callable[..., User], title: str) -> None:
    user = small(
        "said = prompt(); open('said', 'w', encoding='utf-8').write(said); init(); result('Good'); end()"
    )
    description = user.base / "description"
    description.write_text("x" * (1 << 20), encoding="utf-8")
    new(user, title, "--description-file", str(description))
    user.promptside("run", code=3)
    said = (user.project / "said").read_text(encoding="utf-8")
    assert " ".join(title.split()) in said
    assert "x" * (1 << 20) in said
    assert not (user.project / "oops").exists()


@pytest.mark.parametrize("kind", ["a file", "a link out", "read-only"])
def test_a_project_that_takes_no_documents_still_works(small: Callable[..., User], kind: str) -> None:
    """The drafts are the daemon's; their files are only shown."""
    user = small()
    place = user.project / ".promptside"
    if kind == "a file":
        place.write_text("in the way")
    elif kind == "a link out":
        (user.base / "outside").mkdir()
        place.symlink_to(user.base / "outside")
    else:
        place.mkdir(mode=0o555)
    new(user)
    user.promptside("run", code=3)
    user.promptside("approve", "1")
    assert user.task()["state"] == "completed"
    if kind == "a link out":
        assert list((user.base / "outside").iterdir()) == []


def test_a_project_that_was_moved_says_so(small: Callable[..., User]) -> None:
    user = small()
    new(user)
    away = user.base / "away"
    user.project.rename(away)
    ran = user.promptside("run", "1", "--project", str(user.project), code=None, cwd=away)
    assert ran.code in (1, 4), ran
    assert "not there any more" in ran.out + ran.err or "no directory" in ran.err
    assert not user.project.exists()
    away.rename(user.project)
    user.promptside("retry", "1")
    user.waits("gate")


def test_ending_the_daemon_in_any_instant_of_a_run_loses_nothing(small: Callable[..., User]) -> None:
    """DA-2: killed again and again, at whatever it was doing; the stage comes to its gate all the same."""
    user = small(
        "prompt(); init()\nfor n in range(30): text(f'Word {n}'); time.sleep(0.02)\nresult('Good'); end()"
    )
    new(user)
    user.promptside("run", "--detach")
    for _ in range(5):
        user.kill(user.daemon())
        user.promptside("task", "list")
    user.waits("gate")
    attempts = user.stage("work")["attempts"]
    assert [attempt["status"] for attempt in attempts] == ["done"]
    log = user.promptside("log", "1").out
    assert [log.count(f"Word {n}\n") for n in range(30)] == [1] * 30
    raw = subprocess.run(
        [sys.executable, "-m", "promptside_cli", "log", "1", "--raw"],
        cwd=user.project,
        env=user.environment,
        capture_output=True,
        check=True,
    ).stdout
    assert raw == user.transcript("work")


def test_a_client_that_never_reads_holds_up_nobody(small: Callable[..., User]) -> None:
    user = small("prompt(); init()\nfor n in range(3000): text('x' * 2000 + str(n))\nresult('Good'); end()")
    new(user)
    stuck = [user.start("run", "1", "--json")]
    stuck += [user.start("watch", "--json", "--events") for _ in range(3)]
    with contextlib.ExitStack() as stack:
        for one in stuck:
            stack.enter_context(one)
            os.kill(one.process.pid, signal.SIGSTOP)
        user.promptside("run", "1", "--detach", code=None)
        user.waits("gate")
        for one in stuck:
            os.kill(one.process.pid, signal.SIGCONT)
