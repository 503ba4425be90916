"""The daemon's side of an attempt: every order twice, every question after every crash (DA-2, DA-10)."""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from promptside_daemon.world import attempt as attempt_module
from promptside_daemon.world import keeper as keeper_program
from promptside_daemon.world.attempt import (
    Attempt,
    AttemptSpec,
    Ended,
    Exit,
    Lost,
    NotStarted,
    Running,
    StartFailedError,
)
from promptside_daemon.world.processes import alive, find, marked

MakeAttempt = Callable[..., Attempt]
Finish = Callable[[Attempt], Exit]
Until = Callable[[Callable[[], object]], None]

ECHO = """
    import sys
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_reads_it(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO, environment={"SECRET": "dummy"})
    attempt.start()
    attempt.send(1, b"message")
    attempt.close()
    finish(attempt)
    for path in attempt.directory.rglob("*"):
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path
    assert mode(attempt.directory) == 0o700
    assert (attempt.directory / "prompt.md").read_text() == "A prompt"


def test_creating_again_changes_nothing_and_half_a_directory_is_completed(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path / "a" / "1")
    spec = AttemptSpec(id="1", argv=("true",), cwd="/")
    (attempt.directory / "inbox").mkdir(parents=True)
    attempt.environment.write_bytes(b"HALF")
    attempt.create(spec, {"A": "1", "B": "two\nlines"}, "first")
    attempt.create(msgspec.structs.replace(spec, argv=("false",)), {}, "second")
    assert attempt.environment.read_bytes() == b"A=1\0B=two\nlines\0"
    assert (attempt.directory / "prompt.md").read_text() == "first"
    assert msgspec.json.decode((attempt.directory / "spec.json").read_bytes(), type=AttemptSpec) == spec
    assert attempt.state() == NotStarted()


def test_states_from_created_to_ended(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO)
    assert attempt.state() == NotStarted()
    assert not attempt.stop("nobody there")
    attempt.start()
    state = attempt.state()
    assert isinstance(state, Running)
    assert alive(state.keeper)
    attempt.start()
    assert attempt.state() == state
    attempt.close()
    ended = finish(attempt)
    assert attempt.state() == Ended(exit=ended)
    attempt.start()
    assert attempt.state() == Ended(exit=ended)
    with pytest.raises(ChildProcessError):
        os.waitpid(state.keeper.pid, os.WNOHANG)


def test_messages_sent_before_the_start_are_forwarded(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO)
    attempt.send(1, b"early")
    attempt.close()
    assert attempt.forwarded() == 0
    attempt.start()
    assert finish(attempt).forwarded == 1
    assert attempt.transcript.read_bytes() == b"early\n"


def test_a_message_begun_by_a_daemon_that_died_is_sent_once(
    make_attempt: MakeAttempt, finish: Finish, until: Until
) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    inbox = attempt.directory / "inbox"
    # Died before the rename: half a message lies beside.
    (inbox / ".000001.99999").write_bytes(b"hal")
    attempt.send(1, b"one")
    until(lambda: attempt.forwarded() == 1)
    # Died after the rename, before the ring.
    (inbox / "beside").write_bytes(b"two")
    (inbox / "beside").rename(inbox / "000002.json")
    Attempt(attempt.directory).send(2, b"two")
    Attempt(attempt.directory).send(1, b"one")
    attempt.close()
    attempt.close()
    assert finish(attempt).forwarded == 2
    assert attempt.transcript.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("message", [b"", b"two\nlines", b"end\n"])
def test_a_message_is_one_line(make_attempt: MakeAttempt, message: bytes) -> None:
    attempt = make_attempt(ECHO)
    with pytest.raises(ValueError, match="message 1 is not one line"):
        attempt.send(1, message)
    with pytest.raises(ValueError, match="message 0"):
        attempt.send(0, b"message")
    assert not list((attempt.directory / "inbox").iterdir())


def test_a_message_that_finds_no_room_leaves_nothing_behind(
    make_attempt: MakeAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = make_attempt(ECHO)

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(attempt_module, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        attempt.send(1, b"message")
    assert not list((attempt.directory / "inbox").iterdir())


def test_the_end_of_input_needs_no_room_on_the_disk(
    make_attempt: MakeAttempt, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = make_attempt(ECHO)

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(attempt_module, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        attempt.close()
    attempt.start()
    attempt.close()
    assert finish(attempt).code == 0


def test_the_environment_goes_when_it_is_told_to(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    assert attempt.environment.exists()
    attempt.stop("enough")
    finish(attempt)
    attempt.remove_environment()
    attempt.remove_environment()
    assert not attempt.environment.exists()


def test_a_daemon_killed_while_the_agent_works_is_missed_by_nobody(
    make_attempt: MakeAttempt, finish: Finish, tmp_path: Path
) -> None:
    """DA-2: started by one process, which is killed; carried on by another, with every byte."""
    attempt = make_attempt(ECHO)
    program = tmp_path / "daemon.py"
    program.write_text(
        textwrap.dedent("""
        import sys
        from pathlib import Path
        from promptside_daemon.world.attempt import Attempt

        attempt = Attempt(Path(sys.argv[1]))
        attempt.start()
        attempt.send(1, b"from the first")
        print("started", flush=True)
        sys.stdin.read()
        """)
    )
    daemon = subprocess.Popen(
        [sys.executable, str(program), str(attempt.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"started\n"
        daemon.kill()
    assert isinstance(attempt.state(), Running)
    attempt.send(2, b"from the second")
    attempt.close()
    assert finish(attempt).forwarded == 2
    assert attempt.transcript.read_bytes() == b"from the first\nfrom the second\n"


@pytest.mark.parametrize("delay", range(0, 30, 6))
def test_a_daemon_killed_in_mid_start_leaves_one_agent_at_most(
    make_attempt: MakeAttempt, finish: Finish, tmp_path: Path, delay: int
) -> None:
    """At whatever moment it dies, asking and starting again gives exactly one agent."""
    attempt = make_attempt("open('starts', 'a').write('x')")
    program = tmp_path / "daemon.py"
    program.write_text(
        textwrap.dedent("""
        import os, signal, sys
        from pathlib import Path
        from promptside_daemon.world.attempt import Attempt

        signal.setitimer(signal.ITIMER_REAL, (float(sys.argv[2]) + 0.1) / 1000)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        Attempt(Path(sys.argv[1])).start()
        """)
    )
    command = [sys.executable, str(program), str(attempt.directory), str(delay)]
    assert subprocess.run(command, check=False).returncode in (0, -signal.SIGALRM)
    attempt.start()
    assert finish(attempt).code == 0
    assert (tmp_path / "work" / "starts").read_text() == "x"


def test_a_keeper_of_another_run_of_the_machine_is_gone(make_attempt: MakeAttempt) -> None:
    attempt = make_attempt(ECHO)
    me = find(os.getpid())
    assert me is not None
    boot, _, ticks = me.started.partition("/")
    assert boot
    record = {"pid": me.pid, "started": me.started}
    (attempt.directory / "keeper.json").write_text(json.dumps(record))
    assert attempt.state() == Running(keeper=me)
    (attempt.directory / "keeper.json").write_text(json.dumps({**record, "started": f"another-boot/{ticks}"}))
    assert attempt.state() == Lost()
    assert not attempt.stop("nobody there")


def test_an_end_that_cannot_be_read_is_none(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    attempt.close()
    finish(attempt)
    (attempt.directory / "exit.json").write_text('{"reason": "exi')
    assert attempt.state() == Lost()


def test_a_keeper_that_cannot_start_is_said(
    make_attempt: MakeAttempt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(StartFailedError, match="No such file or directory"):
        Attempt(tmp_path / "nowhere").start()
    attempt = make_attempt(ECHO)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(StartFailedError, match=r"no keeper could be started: .*No such file"):
        attempt.start()
    assert attempt.state() == NotStarted()


def test_a_keeper_that_does_not_answer_is_ended(
    make_attempt: MakeAttempt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = tmp_path / "silent.py"
    silent.write_text(
        "import os, signal\nopen(os.sys.argv[1] + '/pid', 'w').write(str(os.getpid()))\nsignal.pause()"
    )
    attempt = make_attempt(ECHO)
    monkeypatch.setattr(attempt_module, "_keeper_path", lambda: str(silent))
    monkeypatch.setattr(attempt_module, "START_SECONDS", 0.5)
    with pytest.raises(StartFailedError, match=r"it did not answer for 0\.5 seconds"):
        attempt.start()
    monkeypatch.undo()
    attempt.start()
    assert isinstance(attempt.state(), Running)


def test_words_of_the_interpreter_at_the_start_are_kept_and_harm_nothing(
    make_attempt: MakeAttempt, finish: Finish, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talking = tmp_path / "talking.py"
    source = keeper_program.__file__
    talking.write_text(f"import sys\nsys.stderr.write('a warning\\n')\nexec(open({source!r}).read())\n")
    monkeypatch.setattr(attempt_module, "_keeper_path", lambda: str(talking))
    attempt = make_attempt(ECHO)
    attempt.start()
    attempt.close()
    assert finish(attempt).code == 0
    assert attempt.stderr.read_text() == "a warning\n"


def test_the_keeper_is_detached_and_holds_nothing_of_ours(make_attempt: MakeAttempt, until: Until) -> None:
    attempt = make_attempt(ECHO)
    read_end, write_end = os.pipe()
    os.set_inheritable(write_end, True)
    attempt.start()
    os.close(write_end)
    assert os.read(read_end, 1) == b""
    os.close(read_end)
    keeper = attempt.keeper()
    assert keeper is not None
    assert os.getsid(keeper.pid) == keeper.pid
    until(lambda: marked(attempt.directory.name))
    assert keeper not in marked(attempt.directory.name)
