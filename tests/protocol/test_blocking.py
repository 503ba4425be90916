"""One request at a time against real daemons: found, started, replaced."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from msgspec.structs import replace

from promptside_protocol import PROTOCOL, __version__, blocking, connect, errors, frames, paths
from promptside_protocol.commands import NewTask, Say, Shutdown
from promptside_protocol.queries import FindProject, GetTask, Hello, Status, Welcome
from promptside_protocol.views import TaskView


def hello(protocol: int = PROTOCOL, version: str = __version__, client: str = "terminal") -> Hello:
    return Hello(client=client, version=version, protocol=protocol)


def say(text: str) -> Say:
    return Say(project="/project", task=1, text=text)


def orders(home: Path) -> list[str]:
    return (home / "tiny" / "orders").read_text().splitlines()


def test_the_first_request_starts_the_daemon_and_the_next_finds_it(home: Path) -> None:
    """DA-1"""
    assert blocking.request(hello(), say("one")).seq == 1
    assert blocking.request(hello(), say("two")).seq == 2
    first = connect.standing()
    assert first is not None
    assert blocking.request(hello(), Status()).pid == first.pid
    assert orders(home) == ["say one", "say two"]


def test_answers_and_errors_are_typed(home: Path) -> None:
    task = blocking.request(hello(), GetTask(project="/project", task=3))
    assert isinstance(task, TaskView)
    assert task.id == 3
    with pytest.raises(errors.Refused) as refused:
        blocking.request(hello(), say("refuse"))
    assert refused.value.refusal == errors.Refusal(
        code="not_now", message="Nobody runs.", hint="promptside run"
    )
    with pytest.raises(errors.Internal, match="goes on"):
        blocking.request(hello(), say("bug"))
    assert "ZeroDivisionError: a bug" in (home / "log" / "daemon.log").read_text()
    with pytest.raises(errors.Refused):
        blocking.request(hello(), FindProject(path="/"))


def test_without_start_a_missing_daemon_is_said(home: Path) -> None:
    with pytest.raises(errors.Unreachable, match="not running") as caught:
        blocking.request(hello(), Status(), start=False)
    assert caught.value.refusal.hint == "promptside daemon run"
    assert not paths.socket_path().exists()


def test_an_agent_starts_no_daemon(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-13: it would be one of the agent's processes, and end with it."""
    monkeypatch.setenv(connect.MARK, "attempt-1")
    with pytest.raises(errors.NotAllowed, match="an agent can't start it") as caught:
        blocking.request(hello(), Status())
    assert caught.value.refusal.code == "agent"
    assert not paths.socket_path().exists()


def test_a_daemon_that_is_dead_and_not_reaped_does_not_run(home: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    paths.runtime_dir().mkdir(mode=0o700)
    left = connect.Standing(pid=dead.pid, started="then", version="1", protocol=1)
    connect.status_path().write_bytes(msgspec.json.encode(left))
    with pytest.raises(errors.Unreachable, match="daemon is not running"):
        blocking.request(hello(), Status(), start=False)
    left = replace(left, pid=os.getpid())
    connect.status_path().write_bytes(msgspec.json.encode(left))
    with pytest.raises(errors.Unreachable, match=f"seems to run as process {os.getpid()}"):
        blocking.request(hello(), Status(), start=False)
    connect.status_path().unlink()
    assert dead.wait() == 0


def test_a_daemon_that_does_not_start_is_told_with_its_reason_and_its_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_FAILS", "1")
    with pytest.raises(errors.Unreachable, match="registry can't be read") as caught:
        blocking.request(hello(), Status())
    assert "daemon.log" in caught.value.refusal.hint
    assert "ERROR" in caught.value.refusal.hint
    monkeypatch.delenv("TINY_FAILS")
    assert blocking.request(hello(), Status()).version == __version__


def test_a_program_that_is_no_daemon_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "DAEMON", (str(home / "nothing"),))
    with pytest.raises(errors.Unreachable, match="can't be started"):
        blocking.request(hello(), Status())


def test_a_start_that_takes_too_long_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "DAEMON", ("/bin/sh", "-c", "read never < /dev/zero"))
    monkeypatch.setattr(connect, "START_SECONDS", 0.01)
    with pytest.raises(errors.Unreachable, match="not ready"):
        blocking.request(hello(), Status())


def test_a_relative_home_is_the_same_for_client_and_daemon(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    monkeypatch.setenv("PROMPTSIDE_HOME", home.name)
    assert blocking.request(hello(), Status()).version == __version__
    assert (home / "run" / "daemon.sock").is_socket()


def test_a_home_whose_name_is_too_long_for_a_socket(
    home: Path, tiny: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = home / ("x" * 120)
    monkeypatch.setenv("PROMPTSIDE_HOME", str(long))
    directory = paths.runtime_dir()
    assert directory.parent == Path("/tmp")
    assert blocking.request(hello(), say("one")).seq == 1
    assert orders(long) == ["say one"]
    assert directory.stat().st_mode & 0o777 == 0o700
    tiny.end_daemon()
    shutil.rmtree(directory)


def test_an_older_daemon_is_replaced_by_a_newer_client(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-7: nothing that the older one took is lost."""
    monkeypatch.setenv("TINY_VERSION", "0.0.9")
    assert blocking.request(hello(version="0.0.9"), say("one")).seq == 1
    older = connect.standing()
    monkeypatch.delenv("TINY_VERSION")
    assert blocking.request(hello(), say("two")).seq == 2
    newer = connect.standing()
    assert older is not None
    assert newer is not None
    assert (older.version, newer.version) == ("0.0.9", __version__)
    assert older.pid != newer.pid


def test_without_start_an_older_daemon_is_left_alone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_VERSION", "0.0.9")
    connect.launch()
    assert blocking.request(hello(), Status(), start=False).version == "0.0.9"


def test_a_newer_daemon_is_never_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DA-7"""
    monkeypatch.setenv("TINY_VERSION", "99.0")
    connect.launch()
    monkeypatch.delenv("TINY_VERSION")
    assert blocking.request(hello(), Status()).version == "99.0"
    with pytest.raises(errors.Refused, match=r"does not replace") as refused:
        blocking.request(hello(), Shutdown(reason="upgrade"))
    assert refused.value.refusal.code == "not-newer"


def test_a_client_that_is_too_old_can_read_and_not_decide(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M28; and a daemon speaks its protocol and the one before."""
    monkeypatch.setenv("TINY_PROTOCOL", str(PROTOCOL + 2))
    connect.launch()
    wire, welcome = connect.greet(hello(client="vscode"), start=True)
    wire.close()
    sentence = (
        f"This extension speaks version {PROTOCOL}, the daemon version {PROTOCOL + 2}. "
        "Update the extension; until then you can read, not decide."
    )
    assert welcome.sentence == sentence
    assert blocking.request(hello(client="vscode"), GetTask(project="/project", task=3)).id == 3
    with pytest.raises(errors.ProtocolMismatch) as caught:
        blocking.request(hello(client="vscode"), say("one"))
    assert caught.value.refusal.message == sentence
    assert blocking.request(hello(protocol=PROTOCOL + 1), say("two")).seq == 1
    assert orders(home) == ["say two"]


def test_an_older_daemon_is_asked_nothing_by_a_client_of_a_newer_protocol(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_PROTOCOL", str(PROTOCOL - 1))
    connect.launch()
    with pytest.raises(errors.ProtocolMismatch, match="promptside daemon stop"):
        blocking.request(hello(), Status(), start=False)
    monkeypatch.delenv("TINY_PROTOCOL")
    assert blocking.request(hello(), Status()).protocol == PROTOCOL


def test_an_order_whose_answer_was_lost_is_not_repeated(home: Path) -> None:
    """CW-16"""
    with pytest.raises(errors.Unreachable, match="before it answered") as caught:
        blocking.request(hello(), say("die"))
    assert caught.value.refusal.code == "answer-lost"
    assert orders(home) == ["die"]


def test_a_new_task_whose_answer_was_lost_is_the_same_task(home: Path) -> None:
    """CW-16"""
    order = NewTask(project="/project", key="k", title="die first")
    assert blocking.request(hello(), order).seq == 1
    assert orders(home) == ["task k"]


def test_the_stale_socket_of_a_killed_daemon_is_no_obstacle(home: Path, tiny: ModuleType) -> None:
    blocking.request(hello(), say("one"))
    killed = tiny.kill_daemon()
    assert paths.socket_path().is_socket()
    assert blocking.request(hello(), say("two")).seq == 2
    assert blocking.request(hello(), Status()).pid != killed


def test_a_daemon_that_listens_and_does_not_answer_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "ANSWER_SECONDS", 0.01)
    paths.runtime_dir().mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(paths.socket_path()))
        listener.listen()
        with pytest.raises(errors.Unreachable, match="does not answer"):
            blocking.request(hello(), Status())


def test_an_order_that_an_ending_daemon_did_not_take_is_put_to_the_next(home: Path) -> None:
    """The first daemon is made up: it says hello, refuses because it stops, and is gone."""
    paths.runtime_dir().mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(paths.socket_path()))
        listener.listen()

        def ending() -> None:
            sock, _ = listener.accept()
            wire = connect.Wire(sock)
            wire.receive()
            welcome = Welcome(version=__version__, protocol=PROTOCOL, pid=1, session="person")
            wire.send(frames.response(0, welcome))
            wire.receive()
            paths.socket_path().unlink()
            wire.send(frames.failure(0, errors.refused("stopping", "It stops.")))
            wire.close()

        thread = threading.Thread(target=ending)
        thread.start()
        assert blocking.request(hello(), say("one")).seq == 1
        thread.join()
    assert orders(home) == ["say one"]
