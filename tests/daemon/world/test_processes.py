"""Processes are known by number and start, and ended by their mark (DA-3, DA-13)."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from promptside_daemon.world.processes import (
    MARK,
    Process,
    alive,
    ancestors,
    death,
    end_marked,
    find,
    mark_of,
    marked,
    on_death,
    reap,
    send_signal,
)

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start Python programs that say a line when they are ready; whatever they left is killed afterwards."""
    mark = f"test-{uuid.uuid4().hex}"
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, mark: str = mark) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)],
            env={MARK: mark},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        with process:
            pass
    asyncio.run(end_marked(mark, 0.0))


WAIT = """
    import signal
    print("ready", flush=True)
    signal.pause()
"""


def the(process: "subprocess.Popen[bytes]") -> Process:
    found = find(process.pid)
    assert found is not None
    return found


def test_a_process_is_its_number_and_its_start(start: Start) -> None:
    process = the(start(WAIT))
    another = msgspec.structs.replace(process, started=process.started + "0")
    assert alive(process)
    assert not alive(another)
    assert not send_signal(another, signal.SIGKILL)
    assert alive(process)
    assert send_signal(process, signal.SIGKILL)


def test_a_dead_child_is_dead_before_and_after_it_is_reaped(start: Start) -> None:
    popen = start(WAIT)
    process = the(popen)
    reap(process)
    assert alive(process)
    send_signal(process, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(process)
    assert find(process.pid) is None
    # Of another process with this number nothing is taken away.
    reap(msgspec.structs.replace(process, started="before"))
    assert Path(f"/proc/{process.pid}").exists()
    reap(process)
    assert not Path(f"/proc/{process.pid}").exists()
    reap(process)
    assert not send_signal(process, signal.SIGTERM)


def test_a_name_with_parentheses_deceives_nobody(start: Start) -> None:
    process = start("""
        import signal
        open("/proc/self/comm", "w").write("a) Z 1 (b")
        print("ready", flush=True)
        signal.pause()
    """)
    assert alive(the(process))
    assert ancestors(process.pid)[0] == os.getpid()


def test_ancestors_reach_to_the_first_process(start: Start) -> None:
    line = ancestors(start(WAIT).pid)
    assert line[:2] == [os.getpid(), os.getppid()]
    assert len(line) == len(set(line))
    assert ancestors(line[-1]) == []


def test_the_mark_is_read_from_the_environment(start: Start) -> None:
    mark = uuid.uuid4().hex
    process = start(WAIT, mark)
    assert mark_of(process.pid) == mark
    assert mark_of(os.getpid()) == os.environ.get(MARK)
    assert marked(mark) == [the(process)]
    assert marked(mark[:-1]) == []


def test_this_process_is_never_among_the_marked() -> None:
    program = """
        import os
        from promptside_daemon.world.processes import mark_of, marked
        assert mark_of(os.getpid()) == "mine"
        assert os.getpid() not in [process.pid for process in marked("mine")]
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, MARK: "mine"}, check=True
    )


def test_marked_processes_end_whatever_they_do_about_it(start: Start) -> None:
    mark = uuid.uuid4().hex
    polite = start(WAIT, mark)
    start(
        """
        import os, signal

        def breed(*_):
            if os.fork() == 0:
                os.setsid()

        signal.signal(signal.SIGTERM, breed)
        for _ in range(5):
            if os.fork() == 0:
                os.setsid()
                break
        else:
            print("ready", flush=True)
        while True:
            signal.pause()
        """,
        mark,
    )
    stopped = start(WAIT, mark)
    os.kill(stopped.pid, signal.SIGSTOP)
    bystander = start(WAIT, uuid.uuid4().hex)
    assert asyncio.run(end_marked(mark, grace_seconds=0.2)) == []
    assert marked(mark) == []
    assert polite.wait() == -signal.SIGTERM
    assert stopped.wait() == -signal.SIGTERM
    assert alive(the(bystander))
    assert asyncio.run(end_marked(mark)) == []


def test_a_death_is_told_once(start: Start) -> None:
    popen = start(WAIT)
    process = the(popen)

    async def told() -> int:
        calls = 0

        def tell() -> None:
            nonlocal calls
            calls += 1

        cancelled = on_death(process, lambda: pytest.fail("was called off"))
        cancelled()
        cancelled()
        call_off = on_death(process, tell)
        send_signal(process, signal.SIGTERM)
        async with asyncio.timeout(60):
            await death(process)
            # Of the dead it is told as well, whether the system still has them in its table or not.
            await death(process)
            popen.wait()
            await death(process)
        call_off()
        return calls

    assert asyncio.run(told()) == 1


def test_the_death_of_a_process_that_is_no_child_of_ours_is_told(start: Start, tmp_path: Path) -> None:
    parent = start("""
        import os, signal
        if os.fork() == 0:
            open("grandchild", "w").write(str(os.getpid()))
            print("ready", flush=True)
        signal.pause()
    """)
    grandchild = find(int((tmp_path / "grandchild").read_text()))
    assert grandchild is not None
    assert ancestors(grandchild.pid)[:2] == [parent.pid, os.getpid()]

    async def wait() -> None:
        async with asyncio.timeout(60):
            waiting = asyncio.ensure_future(death(grandchild))
            await asyncio.sleep(0)
            send_signal(grandchild, signal.SIGKILL)
            await waiting

    asyncio.run(wait())
    assert not alive(grandchild)
