"""The keeper and agents that behave or don't (DA-2, DA-3, GA-8): nothing lost, nothing left."""

import fcntl
import hashlib
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import termios
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from promptside_daemon.world import attempt as attempt_module
from promptside_daemon.world import keeper as keeper_program
from promptside_daemon.world.attempt import Attempt, Exit, Lost
from promptside_daemon.world.processes import Process, alive, find, marked, reap, send_signal

MakeAttempt = Callable[..., Attempt]
Finish = Callable[[Attempt], Exit]
Gone = Callable[[Attempt], None]
Until = Callable[[Callable[[], object]], None]

KEEPER = keeper_program.__file__

ECHO = """
    import sys
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    sys.exit(7)
"""

# A process with a session of its own whose parent ends at once: nothing but a subreaper finds it.
ORPHAN = """
    import os, select, signal, sys

    def born():
        return {name for name in os.listdir(".") if name.startswith("orphan.")}

    def orphan(ignore):
        before = born()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                if ignore:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                open(f"orphan.{os.getpid()}", "w").close()
                while True:
                    signal.pause()
            os._exit(0)
        os.wait()
        while born() == before:
            select.select([], [], [], 0.005)
"""


def script(*parts: str) -> str:
    return "".join(textwrap.dedent(part) for part in parts)


def lines(attempt: Attempt) -> list[bytes]:
    return attempt.transcript.read_bytes().split(b"\n")[:-1] if attempt.transcript.exists() else []


def orphans(work: Path) -> list[Process]:
    found = [find(int(path.suffix[1:])) for path in work.glob("orphan.*")]
    return [process for process in found if process is not None]


def test_messages_arrive_whole_in_order_and_end_of_input_is_seen(
    make_attempt: MakeAttempt, finish: Finish
) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    for number, text in enumerate(("one", "two", "three"), start=1):
        attempt.send(number, b'{"text": "%s"}' % text.encode())
    attempt.close()
    ended = finish(attempt)
    assert (ended.reason, ended.code, ended.signal, ended.detail) == ("exited", 7, None, "")
    assert lines(attempt) == [b'{"text": "one"}', b'{"text": "two"}', b'{"text": "three"}']
    assert ended.forwarded == attempt.forwarded() == 3
    assert ended.swept == ended.left == 0


def test_a_later_message_waits_for_the_earlier_one_however_often_it_rings(
    make_attempt: MakeAttempt, finish: Finish, until: Until
) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    for _ in range(50):
        attempt.send(2, b"second")
    attempt.send(1, b"first")
    until(lambda: attempt.forwarded() == 2)
    for number in (1, 2, 2, 1):
        attempt.send(number, b"again")
    attempt.send(3, b"third")
    attempt.close()
    finish(attempt)
    assert lines(attempt) == [b"first", b"second", b"third"]


def test_messages_of_megabytes_wait_for_a_slow_reader_and_none_is_lost_by_the_end(
    make_attempt: MakeAttempt, finish: Finish, work: Path
) -> None:
    attempt = make_attempt("""
        import hashlib, os, select
        while not os.path.exists("go"):
            select.select([], [], [], 0.005)
        for line in open(0, "rb"):
            print(hashlib.sha256(line).hexdigest(), flush=True)
    """)
    messages = [bytes([65 + n]) * 3_000_000 for n in range(3)]
    attempt.start()
    for number, message in enumerate(messages, start=1):
        attempt.send(number, message)
    attempt.close()
    assert attempt.forwarded() == 0
    (work / "go").touch()
    assert finish(attempt).code == 0
    assert lines(attempt) == [hashlib.sha256(m + b"\n").hexdigest().encode() for m in messages]


def test_a_flood_is_written_by_the_agent_itself_with_nobody_reading(
    make_attempt: MakeAttempt, finish: Finish
) -> None:
    attempt = make_attempt("""
        import os
        block = b"x" * 999_999 + b"\\n"
        for _ in range(200):
            os.write(1, block)
        os.write(2, b"done")
    """)
    attempt.start()
    ended = finish(attempt)
    assert ended.code == 0
    assert attempt.transcript.stat().st_size == 200_000_000
    assert attempt.stderr.read_bytes() == b"done"
    attempt.transcript.unlink()


def test_agent_gets_its_environment_its_mark_and_nothing_else(
    make_attempt: MakeAttempt, finish: Finish
) -> None:
    read_end, write_end = os.pipe()
    os.set_inheritable(read_end, True)
    os.set_inheritable(write_end, True)
    attempt = make_attempt(
        """
        import fcntl, json, os
        print(json.dumps({
            "fds": sorted(os.listdir("/proc/self/fd")),
            "environment": dict(os.environ),
            "leads": os.getsid(0) == os.getpid(),
            "cwd": os.getcwd(),
            "input": fcntl.fcntl(0, fcntl.F_GETFL) & os.O_ACCMODE,
        }))
        """,
        environment={
            "PATH": "/usr/bin:/bin",
            "EMPTY": "",
            "EQUALS": "a=b\nc",
            "PROMPTSIDE_ATTEMPT": "another",
        },
    )
    attempt.start()
    os.close(read_end)
    os.close(write_end)
    assert finish(attempt).code == 0
    seen = json.loads(attempt.transcript.read_bytes())
    # The fourth is the one the list is read through.
    assert seen["fds"] == ["0", "1", "2", "3"]
    environment = seen["environment"]
    environment.pop("LC_CTYPE", None)  # Python sets it for itself where there is no locale
    assert environment == {
        "PATH": "/usr/bin:/bin",
        "EMPTY": "",
        "EQUALS": "a=b\nc",
        "PROMPTSIDE_ATTEMPT": attempt.directory.name,
    }
    assert seen["leads"]
    assert seen["input"] == os.O_RDONLY


def test_agent_inherits_no_ignored_and_no_blocked_signal(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(argv=("grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"))
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    quitting = signal.signal(signal.SIGQUIT, signal.SIG_IGN)  # as for what a shell started with “&”
    try:
        attempt.start()
    finally:
        signal.signal(signal.SIGQUIT, quitting)
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    finish(attempt)
    # Signals 32 and 33 belong to the C library.
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in lines(attempt)] == [0, 0]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("/no/such/program",), "/no/such/program can't be started: No such file or directory"),
        (("no-such-program",), "no-such-program can't be started: it is not on the PATH"),
        ((__file__,), f"{__file__} can't be started: Permission denied"),
        (("/usr", "x"), "/usr can't be started: Permission denied"),
        (("/bin/echo", "nul\0in it"), "/bin/echo can't be started: embedded null byte"),
    ],
)
def test_an_agent_that_cannot_be_started_is_said_in_a_sentence(
    make_attempt: MakeAttempt, finish: Finish, argv: tuple[str, ...], sentence: str
) -> None:
    attempt = make_attempt(argv=argv)
    attempt.start()
    ended = finish(attempt)
    assert (ended.reason, ended.detail, ended.code, ended.signal) == ("unstartable", sentence, None, None)


def test_a_working_directory_that_is_gone_is_said_in_a_sentence(
    make_attempt: MakeAttempt, finish: Finish, tmp_path: Path
) -> None:
    attempt = make_attempt(ECHO, cwd=tmp_path / "gone – away")
    attempt.start()
    ended = finish(attempt)
    sentence = f"the working directory {tmp_path}/gone – away can't be entered: No such file or directory"
    assert (ended.reason, ended.detail) == ("unstartable", sentence)


@pytest.mark.parametrize("ignores", [False, True])
def test_what_an_agent_leaves_behind_is_ended_with_it(
    make_attempt: MakeAttempt, finish: Finish, work: Path, ignores: bool
) -> None:
    """DA-3: sessions of their own, parents gone, SIGTERM ignored."""
    attempt = make_attempt(script(ORPHAN, f"orphan({ignores})\norphan({ignores})\nsys.exit(3)"), grace=0.2)
    attempt.start()
    ended = finish(attempt)
    assert (ended.reason, ended.code, ended.swept, ended.left) == ("exited", 3, 2, 0)
    assert len(list(work.glob("orphan.*"))) == 2
    assert not orphans(work)


def test_stop_ends_an_agent_that_ignores_everything(
    make_attempt: MakeAttempt, finish: Finish, until: Until, work: Path
) -> None:
    attempt = make_attempt(
        script(
            ORPHAN,
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            orphan(True)
            print("ready", flush=True)
            while True:
                signal.pause()
            """,
        ),
        grace=0.1,
    )
    attempt.start()
    until(lambda: lines(attempt))
    assert attempt.stop("the person said\nstop")
    attempt.stop("another reason")
    ended = finish(attempt)
    assert (ended.reason, ended.detail, ended.signal) == ("stopped", "the person said stop", signal.SIGKILL)
    assert not orphans(work)
    assert not attempt.stop("too late")


def test_a_stopped_agent_is_woken_to_end(
    make_attempt: MakeAttempt, finish: Finish, until: Until, work: Path
) -> None:
    attempt = make_attempt(
        """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
        open(f"orphan.{os.getpid()}", "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            signal.pause()
        """,
        grace=2.0,
    )
    attempt.start()
    until(lambda: orphans(work) and "T (stopped)" in Path(f"/proc/{orphans(work)[0].pid}/status").read_text())
    attempt.stop("enough")
    ended = finish(attempt)
    assert (ended.reason, ended.code) == ("stopped", 4)


def test_children_that_fork_when_told_to_end_are_ended_all_the_same(
    make_attempt: MakeAttempt, finish: Finish, until: Until
) -> None:
    attempt = make_attempt(
        """
        import os, signal

        def breed(*_):
            if os.fork() == 0 and os.fork() == 0:
                os.setsid()

        signal.signal(signal.SIGTERM, breed)
        for _ in range(10):
            if os.fork() == 0:
                break
        else:
            print("ready", flush=True)
        while True:
            signal.pause()
        """,
        grace=0.1,
    )
    attempt.start()
    until(lambda: lines(attempt))
    attempt.stop("enough")
    ended = finish(attempt)
    assert ended.signal == signal.SIGKILL
    assert ended.swept >= 10
    assert ended.left == 0
    assert not marked(attempt.directory.name)


def test_stop_interrupts_and_ends_the_input_first(
    make_attempt: MakeAttempt, finish: Finish, until: Until
) -> None:
    attempt = make_attempt(ECHO, interrupt='{"type":"control_request"}')
    attempt.start()
    attempt.send(1, b"work")
    until(lambda: lines(attempt))
    attempt.send(3, b"never: there is no second")
    attempt.stop("enough")
    ended = finish(attempt)
    assert (ended.reason, ended.code, ended.forwarded) == ("stopped", 7, 1)
    assert lines(attempt) == [b"work", b'{"type":"control_request"}']


def unread(pipe: str) -> int:
    """How many bytes lie in a pipe."""
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    finally:
        os.close(descriptor)


def test_a_message_half_written_is_finished_before_the_interrupt(
    make_attempt: MakeAttempt, finish: Finish, until: Until, work: Path
) -> None:
    attempt = make_attempt(
        """
        import os, select
        print(os.getpid(), flush=True)
        while not os.path.exists("go"):
            select.select([], [], [], 0.005)
        for line in open(0, "rb"):
            print(len(line), line[:5].decode(), flush=True)
        """,
        interrupt="interrupt",
        grace=30.0,
    )
    attempt.start()
    until(lambda: lines(attempt))
    # More than a pipe can hold.
    attempt.send(1, b"x" * 3_000_000)
    attempt.send(2, b"never begun")
    until(lambda: unread(f"/proc/{int(lines(attempt)[0])}/fd/0"))
    attempt.stop("enough")
    until(lambda: unread(f"{attempt.directory}/control") == 0)
    (work / "go").touch()
    ended = finish(attempt)
    assert lines(attempt)[1:] == [b"3000001 xxxxx", b"10 inter"]
    assert (ended.code, ended.forwarded) == (0, 1)


def test_an_agent_that_closed_its_input_is_not_the_keepers_end(
    make_attempt: MakeAttempt, finish: Finish, until: Until, work: Path
) -> None:
    attempt = make_attempt("""
        import os, select
        os.close(0)
        print("ready", flush=True)
        while not os.path.exists("go"):
            select.select([], [], [], 0.005)
    """)
    attempt.start()
    until(lambda: lines(attempt))
    attempt.send(1, b"nobody reads this")
    (work / "go").touch()
    ended = finish(attempt)
    assert (ended.reason, ended.code, ended.forwarded) == ("exited", 0, 0)


def test_the_time_limit_ends_it(make_attempt: MakeAttempt, finish: Finish) -> None:
    """GA-8."""
    attempt = make_attempt(
        script(ORPHAN, "orphan(True)\nsys.stdin.read()\nsignal.pause()"), wall=0.3, grace=0.1
    )
    attempt.start()
    ended = finish(attempt)
    assert (ended.reason, ended.detail) == ("limit", "it ran longer than 0.3 seconds")
    assert ended.signal == signal.SIGTERM
    assert not marked(attempt.directory.name)


def test_a_signal_to_the_keeper_is_a_stop(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    keeper = attempt.keeper()
    assert keeper is not None
    assert send_signal(keeper, signal.SIGTERM)
    ended = finish(attempt)
    assert (ended.reason, ended.detail) == ("stopped", "the keeper was told by a signal to end")
    assert ended.code == 7


def test_the_agent_killed_from_outside_is_said_and_its_children_end(
    make_attempt: MakeAttempt, finish: Finish, until: Until, work: Path
) -> None:
    attempt = make_attempt(script(ORPHAN, "orphan(False)\nprint(os.getpid(), flush=True)\nsignal.pause()"))
    attempt.start()
    until(lambda: lines(attempt))
    agent = find(int(lines(attempt)[0]))
    assert agent is not None
    send_signal(agent, signal.SIGKILL)
    ended = finish(attempt)
    assert (ended.reason, ended.code, ended.signal, ended.swept) == ("exited", None, signal.SIGKILL, 1)
    assert not orphans(work)


def test_a_keeper_killed_takes_its_agent_along(make_attempt: MakeAttempt, gone: Gone, until: Until) -> None:
    attempt = make_attempt("""
        import os, signal
        print(os.getpid(), flush=True)
        while True:
            signal.pause()
    """)
    attempt.start()
    until(lambda: lines(attempt))
    agent = find(int(lines(attempt)[0]))
    keeper = attempt.keeper()
    assert agent is not None
    assert keeper is not None
    send_signal(keeper, signal.SIGKILL)
    gone(attempt)
    until(lambda: not alive(agent))
    assert attempt.state() == Lost()


def test_a_keeper_that_fails_ends_its_agent_and_says_why(
    make_attempt: MakeAttempt, finish: Finish, work: Path
) -> None:
    attempt = make_attempt(script(ORPHAN, "orphan(False)\nsignal.pause()"))
    attempt.start()
    # Something it can't read where a message should be.
    (attempt.directory / "inbox" / "000001.json").mkdir()
    attempt.send(1, b"message")
    ended = finish(attempt)
    assert ended.reason == "failed"
    assert "Is a directory" in ended.detail
    assert not marked(attempt.directory.name)


def test_cpu_and_memory_are_of_the_whole_tree(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt("""
        import os, time
        if os.fork() == 0:
            block = bytearray(60_000_000)
            while time.process_time() < 0.2:
                pass
            os._exit(0)
        os.wait()
    """)
    attempt.start()
    ended = finish(attempt)
    assert ended.cpu_seconds >= 0.2
    assert ended.max_rss_bytes >= 60_000_000
    assert ended.ended >= ended.started > 1_600_000_000


def test_an_end_that_cannot_be_written_holds_nothing_up(
    make_attempt: MakeAttempt, gone: Gone, until: Until
) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    attempt.send(1, b"ready")
    until(lambda: attempt.forwarded() == 1)
    keeper = attempt.keeper()
    assert keeper is not None
    resource.prlimit(keeper.pid, resource.RLIMIT_FSIZE, (0, 0))
    attempt.close()
    gone(attempt)
    assert attempt.state() == Lost()


def test_the_end_is_written_on_a_disk_that_is_full(make_attempt: MakeAttempt, tmp_path: Path) -> None:
    """Needs a small file system of its own, which a user namespace gives where it is allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size=256k none "{disk}" && exec "$@"', "sh"]
    if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a file system of one's own can't be mounted here")
    attempt = make_attempt(argv=("sh", "-c", "cat /dev/zero > fill; cat /dev/zero"), cwd=disk)
    run = 'cp -r "$1" "$2/a"; "$3" -I -S "$4" "$2/a" >/dev/null 2>&1; cat "$2/a/exit.json"'
    command = [*mount, "sh", "-c", run, "sh", str(attempt.directory), str(disk), sys.executable, KEEPER]
    ended = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    # 1 is what `cat` says when it could not write.
    assert (ended["reason"], ended["code"]) == ("exited", 1)


def test_of_keepers_racing_for_one_directory_one_wins(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt("import os\nopen('started', 'a').write(f'{os.getppid()}\\n')\nprint('once')")
    command = [sys.executable, "-I", "-S", KEEPER, str(attempt.directory)]
    keepers = [subprocess.Popen(command, stdin=subprocess.DEVNULL) for _ in range(6)]
    assert [keeper.wait() for keeper in keepers] == [0] * 6
    assert lines(attempt) == [b"once"]
    assert finish(attempt).code == 0
    winner = attempt.keeper()
    assert winner is not None
    assert winner.pid in {keeper.pid for keeper in keepers}
    assert not list(attempt.directory.glob("keeper.[0-9]*"))


@pytest.mark.parametrize("what", ["", "keeper.json"], ids=["all of it", "its name"])
def test_a_keeper_whose_directory_was_removed_ends_its_agent_and_itself(
    make_attempt: MakeAttempt,
    until: Until,
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    """DA-3: no daemon is there, and none that comes could find them."""
    source = Path(KEEPER).read_text(encoding="utf-8")
    hasty = tmp_path / "hasty.py"
    hasty.write_text(
        re.sub(r"^LOOK_SECONDS = .*$", "LOOK_SECONDS = 0.05", source, count=1, flags=re.MULTILINE)
    )
    assert hasty.read_text(encoding="utf-8") != source
    monkeypatch.setattr(attempt_module, "_keeper_path", lambda: str(hasty))
    attempt = make_attempt(
        script(
            ORPHAN,
            """
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            orphan(True)
            print("ready", flush=True)
            while True:
                signal.pause()
            """,
        ),
        grace=0.1,
    )
    attempt.start()
    until(lambda: lines(attempt))
    keeper = attempt.keeper()
    assert keeper is not None
    if what:
        (attempt.directory / what).unlink()
    else:
        shutil.rmtree(attempt.directory)
    until(lambda: not alive(keeper))
    reap(keeper)
    assert not marked(attempt.directory.name)
    assert not orphans(work)


def imported(stderr: str) -> set[str]:
    return {line.split("|")[2].strip() for line in stderr.splitlines() if line.startswith("import time:")}


def test_it_imports_nothing_that_takes_time(make_attempt: MakeAttempt) -> None:
    attempt = make_attempt(argv=("true",))
    command = [sys.executable, "-X", "importtime", "-I", "-S", KEEPER, str(attempt.directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = imported(done.stderr) | imported(attempt.stderr.read_text())
    assert {"_ctypes", "_json", "resource"} <= names
    assert not names & {"os", "json", "signal", "ctypes", "typing", "enum", "re", "subprocess", "contextlib"}


def test_a_python_without_the_json_accelerator_will_do(make_attempt: MakeAttempt, finish: Finish) -> None:
    attempt = make_attempt(argv=("/bin/echo", "grüße"), cwd=None)
    program = f"""
        import sys
        sys.modules["_json"] = None
        sys.argv = ["keeper.py", {str(attempt.directory)!r}]
        exec(compile(open({KEEPER!r}).read(), "keeper.py", "exec"))
    """
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    assert subprocess.run(command, check=False).returncode == 0
    assert lines(attempt) == ["grüße".encode()]
    assert finish(attempt).code == 0


def test_nothing_but_the_newest_garbage_is_kept_of_an_unfinished_command(
    make_attempt: MakeAttempt, finish: Finish
) -> None:
    attempt = make_attempt(ECHO)
    attempt.start()
    control = os.open(attempt.directory / "control", os.O_WRONLY)
    for _ in range(20):
        os.write(control, b"?" * 60_000)
        select.select([], [control], [], 10)
    os.write(control, b"\nnonsense\nclose\n")
    os.close(control)
    assert finish(attempt).code == 7
