"""The client that outlives its wire: nothing twice, nothing missed, no order sent later (CW-16)."""

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import Raw

from promptside_protocol import PROTOCOL, __version__, blocking, client, connect, errors, frames, paths
from promptside_protocol.client import Connection, Daemon
from promptside_protocol.commands import NewTask, Say, Shutdown
from promptside_protocol.notices import (
    CaughtUp,
    DaemonSays,
    EventHappened,
    FlowFailed,
    Notice,
    OutputCame,
    TaskChanged,
)
from promptside_protocol.queries import FollowOutput, GetTask, Hello, Status, Unfollow, Watch, Welcome
from promptside_protocol.views import TaskView

HELLO = Hello(client="test", version=__version__, protocol=PROTOCOL)


def say(text: str) -> Say:
    return Say(project="/project", task=1, text=text)


def orders(home: Path) -> list[str]:
    return (home / "tiny" / "orders").read_text().splitlines()


async def until(daemon: Daemon, last: Callable[[Notice | Connection], bool]) -> list[Notice | Connection]:
    """Every notice up to and with the one that is waited for."""
    found = []
    async for notice in daemon:
        found.append(notice)
        if last(notice):
            return found
    raise AssertionError(found)


async def until_so(true: Callable[[], bool]) -> None:
    """Let everything else go on until something is so that nobody tells."""
    while not true():  # noqa: ASYNC110  # see above; it gives way, it doesn't wait
        await asyncio.sleep(0)


def caught_up(seq: int) -> Callable[[Notice | Connection], bool]:
    return lambda notice: isinstance(notice, CaughtUp) and notice.seq >= seq


def in_thread(order: Say | Shutdown) -> Awaitable[object]:
    """What another client orders."""
    return asyncio.to_thread(blocking.request, HELLO, order)


def test_answers_errors_and_notices_are_typed(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            assert daemon.welcome.session == "person"
            assert (await daemon.call(say("one"))).seq == 1
            task = await daemon.call(GetTask(project="/project", task=3))
            assert isinstance(task, TaskView)
            with pytest.raises(errors.Refused, match="Nobody runs"):
                await daemon.call(say("refuse"))
            with pytest.raises(errors.Internal):
                await daemon.call(say("bug"))
            flow = await daemon.call(Watch())
            changed, done = await until(daemon, caught_up(1))
            assert isinstance(changed, TaskChanged)
            assert isinstance(done, CaughtUp)
            assert changed.flow == done.flow == flow.flow

    asyncio.run(go())


def test_many_calls_at_once_get_their_own_answers(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            numbers = range(1, 301)
            found = await asyncio.gather(
                *(daemon.call(GetTask(project="/p", task=n)) for n in numbers if n != 7)
            )
            assert [task.id for task in found] == [n for n in numbers if n != 7]

    asyncio.run(go())


@pytest.mark.parametrize("events", [False, True])
def test_flows_go_on_over_killed_daemons_without_a_gap_or_a_repeat(
    home: Path, tiny: ModuleType, events: bool
) -> None:
    """CW-16, with facts that happen while the client is away."""

    async def go() -> list[Notice | Connection]:
        async with client.connect(HELLO) as daemon:
            await daemon.call(Watch(events=events))
            found = []
            for number in range(3):
                await daemon.call(say(f"mine {number}"))
                found += await until(daemon, caught_up(2 * number + 1))
                await asyncio.to_thread(tiny.kill_daemon)
                found += await until(daemon, lambda notice: isinstance(notice, Connection))
                await in_thread(say(f"another's {number}"))
                await daemon.call(Status())
                found += await until(daemon, caught_up(2 * number + 2))
            return found

    found = asyncio.run(go())
    kind = EventHappened if events else TaskChanged
    assert [notice.seq for notice in found if isinstance(notice, kind)] == [1, 2, 3, 4, 5, 6]
    assert {notice.flow for notice in found if isinstance(notice, kind | CaughtUp)} == {1}
    states = [notice.state for notice in found if isinstance(notice, Connection)]
    assert states == ["lost", "connected"] * 3


def is_lost(notice: Notice | Connection) -> bool:
    """An order that is given before the loss is noticed may have been taken: its answer is lost with the wire."""
    return isinstance(notice, Connection) and notice.state == "lost"


def test_output_goes_on_where_it_stood_and_ends_once(home: Path, tiny: ModuleType) -> None:
    async def go() -> list[Notice | Connection]:
        async with client.connect(HELLO) as daemon:
            await daemon.call(FollowOutput(project="/project", task=1))
            await daemon.call(say("write first"))
            found = await until(daemon, lambda notice: isinstance(notice, OutputCame))
            await asyncio.to_thread(tiny.kill_daemon)
            with (home / "tiny" / "transcript").open("a") as file:
                file.write("while away\n")
            found += await until(daemon, is_lost)
            await daemon.call(say("write end"))
            found += await until(daemon, lambda notice: isinstance(notice, OutputCame) and notice.ended)
            # It has ended: it is not opened again on the next wire, so nothing of it comes before this.
            await asyncio.to_thread(tiny.kill_daemon)
            await daemon.call(Watch())
            found += await until(daemon, caught_up(0))
            return found

    found = asyncio.run(go())
    texts = [entry.text for notice in found if isinstance(notice, OutputCame) for entry in notice.entries]
    assert texts == ["first", "while away", "end"]


def test_a_second_flow_has_a_number_of_its_own_over_wires(home: Path, tiny: ModuleType) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            first = await daemon.call(Watch())
            second = await daemon.call(FollowOutput(project="/project", task=1))
            assert first.flow != second.flow
            await daemon.call(Unfollow(flow=first.flow))
            await asyncio.to_thread(tiny.kill_daemon)
            await until(daemon, is_lost)
            await daemon.call(say("write end"))
            found = await until(daemon, lambda notice: isinstance(notice, OutputCame))
            assert {getattr(notice, "flow", second.flow) for notice in found[-1:]} == {second.flow}
            assert not any(isinstance(notice, TaskChanged) for notice in found)

    asyncio.run(go())


def test_a_flow_that_can_not_be_opened_says_why(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            flow = await daemon.call(Watch(project="/gone"))
            (failed,) = await until(daemon, lambda notice: isinstance(notice, FlowFailed))
            assert isinstance(failed, FlowFailed)
            assert (failed.flow, failed.refusal.code) == (flow.flow, "no-project")
            await daemon.call(Watch(project="/bug"))
            (failed,) = await until(daemon, lambda notice: isinstance(notice, FlowFailed))
            assert isinstance(failed, FlowFailed)
            assert failed.refusal.code == "bug"

    asyncio.run(go())


def test_an_order_while_the_daemon_is_away_starts_it(home: Path, tiny: ModuleType) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            await daemon.call(say("one"))
            await asyncio.to_thread(tiny.kill_daemon)
            await until(daemon, lambda notice: isinstance(notice, Connection))
            assert (await daemon.call(say("two"))).seq == 2

    asyncio.run(go())


def test_an_order_that_waited_too_long_is_refused_and_never_sent(
    home: Path, tiny: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CW-16"""
    monkeypatch.setattr(client, "ORDER_SECONDS", 0.05)
    connect.launch()

    async def go() -> None:
        async with client.connect(HELLO, start=False) as daemon:
            await asyncio.to_thread(tiny.kill_daemon)
            await until(daemon, lambda notice: isinstance(notice, Connection))
            with pytest.raises(errors.Unreachable):
                await daemon.call(say("too late"))
            await asyncio.to_thread(connect.launch)
            await until(daemon, lambda notice: isinstance(notice, Connection) and notice.state == "connected")
            assert (await daemon.call(say("in time"))).seq == 1

    asyncio.run(go())
    assert orders(home) == ["say in time"]


def test_who_stopped_the_daemon_meant_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for it in the background starts nothing; an order does."""
    looks: list[bool] = []

    def greet(greeting: Hello, *, start: bool) -> tuple[connect.Wire, Welcome]:
        looks.append(start)
        return real(greeting, start=start)

    real = connect.greet
    monkeypatch.setattr(connect, "greet", greet)
    monkeypatch.setattr(client, "back_off", lambda: itertools.repeat(0.01))

    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            await daemon.call(Shutdown())
            found = await until(daemon, lambda notice: isinstance(notice, Connection))
            assert [type(notice) for notice in found] == [DaemonSays, Connection]
            await until_so(lambda: len(looks) >= 5)
            assert not paths.socket_path().exists()
            await daemon.call(Status())

    asyncio.run(go())
    assert looks[0] is True
    assert looks[1:-1] == [False] * (len(looks) - 2)
    assert looks[-1] is True


def test_orders_do_not_wait_when_the_daemon_can_not_be_started(
    home: Path, tiny: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            await asyncio.to_thread(tiny.kill_daemon)
            await until(daemon, lambda notice: isinstance(notice, Connection))
            monkeypatch.setenv("TINY_FAILS", "1")
            calls = (daemon.call(say("a")), daemon.call(Status()))
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, errors.Unreachable)
                assert "registry" in str(outcome)
            monkeypatch.delenv("TINY_FAILS")
            assert (await daemon.call(say("b"))).seq == 1

    asyncio.run(go())


def test_a_daemon_that_can_not_be_started_at_first_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_FAILS", "1")

    async def go() -> None:
        async with client.connect(HELLO):
            raise AssertionError("connected")

    with pytest.raises(errors.Unreachable, match="registry"):
        asyncio.run(go())


def test_an_order_whose_answer_was_lost_is_told_and_not_repeated(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            with pytest.raises(errors.Unreachable) as caught:
                await daemon.call(say("die"))
            assert caught.value.refusal.code == "answer-lost"
            assert (await daemon.call(say("two"))).seq == 2

    asyncio.run(go())
    assert orders(home) == ["die", "say two"]


def test_a_new_task_whose_answer_was_lost_is_asked_for_again_by_its_key(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            assert (await daemon.call(NewTask(project="/project", key="k", title="die first"))).seq == 1

    asyncio.run(go())
    assert orders(home) == ["task k"]


def test_who_reads_notices_and_orders_in_between_is_never_stuck(home: Path) -> None:
    """The answer stands behind notices that nobody reads while it is waited for."""

    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            await daemon.call(Watch(project="/flood"))
            seen = 0
            async for notice in daemon:
                assert isinstance(notice, EventHappened)
                seen += 1
                assert notice.seq == seen
                if seen % 1000 == 0:
                    await daemon.call(Status())
                if seen == 5000:
                    return

    asyncio.run(go())


def test_notices_that_nobody_reads_make_the_daemon_wait(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            await daemon.call(Watch(project="/flood"))
            await until_so(lambda: len(daemon._notices) >= client.UNREAD_NOTICES)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert len(daemon._notices) == client.UNREAD_NOTICES

    asyncio.run(go())


def test_a_call_that_is_given_up_leaves_no_flow_behind(home: Path) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            asking = asyncio.create_task(daemon.call(Watch()))
            await until_so(lambda: daemon._link.done() and bool(daemon._link.result().asked))
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            await daemon.call(Watch())
            await daemon.call(say("one"))
            found = await until(daemon, caught_up(1))
            assert [notice.seq for notice in found if isinstance(notice, TaskChanged)] == [1]
            assert len(daemon._flows) == 1

    asyncio.run(go())


def test_leaving_ends_what_waits(home: Path, tiny: ModuleType) -> None:
    async def go() -> None:
        async with client.connect(HELLO) as daemon:
            calling = asyncio.create_task(daemon.call(say("late")))
            reading = asyncio.create_task(until(daemon, lambda _: False))
            await daemon.call(Status())
        with pytest.raises(errors.Unreachable):
            await calling
        with pytest.raises(AssertionError):
            await reading
        with pytest.raises(errors.Unreachable, match="closed"):
            await daemon.call(Status())

    asyncio.run(go())
    tiny.kill_daemon()  # it would wait for the order that nobody ends


def test_back_off() -> None:
    """CW-16"""
    assert list(itertools.islice(client.back_off(), 8)) == [1, 2, 4, 8, 16, 30, 30, 30]


# --- a daemon that is made up, for what ours never says --------------------------------------------------


@contextlib.asynccontextmanager
async def made_up(*scripts: list[frames.Sendable | None]) -> AsyncIterator[None]:
    """A daemon that answers each line of its nth connection with the next frame; None closes it."""
    paths.runtime_dir().mkdir(exist_ok=True)
    connections = iter(scripts)
    served: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for frame in next(connections):
            line = await reader.readline()
            if frame is None or not line:
                break
            writer.write(frames.encode(frame))
        else:
            await reader.read()
        writer.close()
        await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_unix_server(connected, paths.socket_path())
    try:
        yield
    finally:
        server.close()
        await asyncio.gather(*served)


def welcome() -> frames.Response:
    answer = Welcome(version=__version__, protocol=PROTOCOL, pid=os.getpid(), session="person")
    return frames.response(0, answer)


def test_what_an_ending_daemon_does_not_take_is_put_to_the_next(home: Path) -> None:
    async def go() -> None:
        stopping = frames.failure(1, errors.refused("stopping", "It stops."))
        ack = frames.response(1, {"seq": 7})
        daemons = made_up([welcome(), stopping, None], [welcome(), ack])
        async with daemons, client.connect(HELLO, start=False) as daemon:

            async def order() -> int:
                return (await daemon.call(say("one"))).seq

            calling = asyncio.create_task(order())
            await until_so(lambda: daemon._link.done() and not daemon._link.result().asked)
            daemon._link.result().writer.write(b"\n")  # one line more: the made-up daemon closes
            assert await calling == 7

    asyncio.run(go())


def test_what_a_newer_daemon_says_is_passed_over(home: Path) -> None:
    async def go() -> None:
        unknown = frames.Notification(method="sinceVersion9", params=Raw(b"{}"))
        broken = frames.Notification(method="daemon", params=Raw(b'{"state":"dreaming","message":""}'))
        says = frames.notification(DaemonSays(state="warning", message="hm"))
        unread = frames.response(1, {"other": 1})
        newer = made_up([welcome(), unknown, broken, says, unread])
        async with newer, client.connect(HELLO, start=False) as daemon:
            await daemon._linked()
            link = daemon._link.result()
            link.writer.write(b"\n\n\n")
            (notice,) = await until(daemon, lambda _: True)
            assert notice == DaemonSays(state="warning", message="hm")
            with pytest.raises(errors.Internal, match="can't be read"):
                await daemon.call(Status())

    asyncio.run(go())
