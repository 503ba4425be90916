"""The daemon as a process, for real: one of it, ready when it says so, ended in order, found dead and replaced."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from promptside_daemon import lifecycle
from promptside_daemon.instance import Instance
from promptside_daemon.world import processes
from promptside_protocol import PROTOCOL, __version__, blocking, connect, errors, paths
from promptside_protocol.commands import Say, Shutdown
from promptside_protocol.queries import Hello, Status

HELLO = Hello(client="test", version=__version__, protocol=PROTOCOL)


def _tiny_home() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_home", Path(__file__).with_name("tiny_home.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TINY = _tiny_home()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with TINY.tiny_home(monkeypatch) as directory:
        yield directory


def start(**environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the launcher as a client does, to its end."""
    return subprocess.run(
        connect.DAEMON, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )


def log() -> str:
    return lifecycle.log_path().read_text()


def status() -> Any:
    return blocking.request(HELLO, Status(), start=False)


def test_when_the_launcher_has_ended_the_daemon_listens(home: Path) -> None:
    """DA-1"""
    done = start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    left = connect.standing()
    assert left is not None
    assert status().pid == left.pid
    ours = processes.find(left.pid)
    assert ours is not None
    assert left == connect.Standing(
        pid=left.pid, started=ours.started, version=__version__, protocol=PROTOCOL
    )


def test_the_mark_is_the_same_word_everywhere() -> None:
    """A client that looked for another would start a daemon from within an agent."""
    assert connect.MARK == processes.MARK


def test_it_is_detached(home: Path) -> None:
    start()
    pid = status().pid
    assert os.getsid(pid) == pid
    process = Path(f"/proc/{pid}")
    assert str((process / "cwd").readlink()) == "/"
    assert [str((process / "fd" / number).readlink()) for number in "012"] == [
        "/dev/null",
        str(lifecycle.log_path()),
        str(lifecycle.log_path()),
    ]


def test_everything_it_makes_is_its_owners_only(home: Path) -> None:
    """DA-4; also where the directory was there before, and open."""
    paths.runtime_dir().mkdir(mode=0o755)
    start()
    assert paths.runtime_dir().stat().st_mode & 0o777 == 0o700
    made = [path for path in home.rglob("*") if path.is_file() or path.is_socket()]
    assert len(made) > 4
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def test_a_second_start_is_no_fault_and_changes_nothing(home: Path) -> None:
    start()
    first = connect.standing()
    done = start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert connect.standing() == first
    assert log().count("listening") == 1


def test_of_daemons_that_race_exactly_one_wins(home: Path) -> None:
    """DA-1: all of them are told that a daemon is ready."""
    racing = [subprocess.Popen(connect.DAEMON, stderr=subprocess.PIPE) for _ in range(6)]
    for process in racing:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, b"")
        assert blocking.request(HELLO, Say(project="/p", task=1, text="x"), start=False).seq
    assert log().count("listening") == 1
    assert log().count("starts as process") == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_the_next_daemon_takes_over_from_one_that_was_killed(home: Path, number: signal.Signals) -> None:
    """DA-2: nothing it had acknowledged is lost."""
    start()
    blocking.request(HELLO, Say(project="/p", task=1, text="one"), start=False)
    killed = status().pid
    os.kill(killed, number)
    TINY.wait_for_death(killed)
    assert paths.socket_path().is_socket()
    with pytest.raises(errors.Unreachable):
        status()
    assert start().returncode == 0
    assert status().pid != killed
    assert blocking.request(HELLO, Say(project="/p", task=1, text="two"), start=False).seq == 2


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_is_not_removed(home: Path, kind: str) -> None:
    path = paths.socket_path()
    path.parent.mkdir()
    match kind:
        case "file":
            path.write_text("precious")
        case "directory":
            path.mkdir()
        case _:
            path.symlink_to(home / "elsewhere")
    done = start()
    assert done.returncode == 1
    assert done.stderr == (
        f"{path} is where the daemon's socket belongs, but it is no socket. Move it away and try again.\n"
    )
    assert os.path.lexists(path)
    path.rmdir() if kind == "directory" else path.unlink()
    assert start().returncode == 0


def test_a_file_where_the_directory_belongs_is_told(home: Path) -> None:
    paths.runtime_dir().write_text("precious")
    done = start()
    assert done.returncode == 1
    assert "no directory" in done.stderr
    assert paths.runtime_dir().read_text() == "precious"
    paths.runtime_dir().unlink()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("TINY_FAILS", "The registry can't be read. promptside doctor\n"),
        ("TINY_BUG", "ZeroDivisionError: a bug at the start\n"),
        ("TINY_DIES", "The daemon ended while it was starting.\n"),
    ],
)
def test_a_start_that_fails_is_told_and_leaves_the_way_free(home: Path, fault: str, said: str) -> None:
    done = start(**{fault: "1"})
    assert (done.returncode, done.stderr) == (1, said)
    assert connect.dial() is None
    assert connect.standing() is None
    assert start().returncode == 0


def test_a_fault_at_the_start_is_in_the_log_with_its_traceback(home: Path) -> None:
    start(TINY_BUG="1")
    assert "Traceback" in log()
    assert "ZeroDivisionError: a bug at the start" in log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_in_order(home: Path, number: signal.Signals) -> None:
    start()
    pid = status().pid
    os.kill(pid, number)
    TINY.wait_for_death(pid, seconds=30)
    assert connect.standing() is None
    assert not paths.socket_path().exists()
    assert log().endswith("ended\n")
    assert number.name in log()


def test_who_has_heard_that_it_stopped_can_start_the_next_at_once(home: Path) -> None:
    """The status file and the lock go before the last word, so there is no moment to hit."""
    start()
    for _ in range(5):
        blocking.request(HELLO, Shutdown(), start=False)
        assert connect.standing() is None
        assert not paths.socket_path().exists()
        assert start().returncode == 0
        assert connect.standing() is not None
    assert log().count("listening") == 6


def test_in_the_foreground_it_stays_and_says_what_it_does(home: Path) -> None:
    process = subprocess.Popen([*connect.DAEMON, "--foreground"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = [process.stderr.readline(), process.stderr.readline()]
    assert "starts as process" in said[0]
    assert "listening" in said[1]
    assert status().pid == process.pid
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 0
    assert rest.endswith("ended\n")
    assert "ended\n" in log()


def test_who_comes_while_another_ends_waits_for_the_outcome(home: Path) -> None:
    """It would find the lock taken, take the other for alive, and leave nobody."""
    instance = Instance.enter()
    assert instance is not None
    instance.settled()
    instance.leaving()
    coming = subprocess.Popen(connect.DAEMON, stderr=subprocess.PIPE)
    inode = (paths.runtime_dir() / "change.lock").stat().st_ino

    def waited_for() -> bool:
        locks = Path("/proc/locks").read_text().splitlines()
        return any("->" in line and f":{inode} " in line for line in locks)

    TINY.wait_until(waited_for)
    instance.gone()
    _, said = coming.communicate(timeout=60)
    assert (coming.returncode, said) == (0, b"")
    assert status().pid != os.getpid()


def test_the_last_client_that_leaves_lets_it_end(home: Path) -> None:
    """DA-1"""
    start(TINY_IDLE="0.05")
    left = connect.standing()
    if left is not None:
        TINY.wait_for_death(left.pid, seconds=30)
    assert connect.standing() is None
    assert "nothing to do" in log()


@pytest.mark.parametrize(
    ("clients", "busy", "due", "stays"),
    [
        (0, False, None, False),
        (1, False, None, True),
        (0, True, None, True),
        (0, False, 23 * 3600, True),
        (0, False, -5, True),
        (0, False, 25 * 3600, False),
    ],
)
def test_what_keeps_an_idle_daemon(clients: int, busy: bool, due: float | None, stays: bool) -> None:
    """DA-12"""
    at = None if due is None else time.time() + due
    core: Any = SimpleNamespace(busy=lambda: busy, due=lambda: at)
    reasons: list[str] = []
    service: Any = SimpleNamespace(clients=lambda: clients, stop=reasons.append)
    idle = lifecycle._Idle(core, service, 1)
    counted: list[None] = []
    idle.changed = lambda: counted.append(None)  # type: ignore[method-assign]  # there is no loop here
    idle._look()
    assert (reasons == [], len(counted) == 1) == (stays, stays)


def test_the_log_turns_over_and_takes_what_is_printed_with_it(home: Path) -> None:
    script = """
import logging, os, sys
from promptside_daemon import lifecycle
lifecycle.LOG_BYTES = 300
lifecycle._log_to(lifecycle.log_path(), detached=True)
for number in range(20):
    logging.getLogger("x").info("line %d %s", number, "-" * 50)
os.write(2, b"printed at the end\\n")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert "printed at the end" in log()
    names = sorted(path.name for path in lifecycle.log_path().parent.iterdir())
    assert names == ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"]
    assert "line 19" in log()


def test_a_client_that_never_reads_costs_a_daemon_no_memory(home: Path) -> None:
    start()
    pid = status().pid

    def resident() -> int:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        (kilobytes,) = [line.split()[1] for line in lines if line.startswith("VmRSS")]
        return int(kilobytes)

    slow = []
    try:
        for _ in range(10):
            sock = socket.socket(socket.AF_UNIX)
            slow.append(sock)
            sock.connect(os.fspath(paths.socket_path()))
            for number, (method, params) in enumerate(
                (
                    ("hello", {"client": "slow", "version": "0", "protocol": PROTOCOL}),
                    ("watch", {"project": "/flood"}),
                )
            ):
                frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                sock.sendall(json.dumps(frame).encode() + b"\n")
        for _ in range(20):
            status()
        before = resident()
        for _ in range(200):
            status()
        # A flood that nobody stops is hundreds of megabytes in that time.
        assert resident() < before + 8_000
    finally:
        for sock in slow:
            sock.close()
