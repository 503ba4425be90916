"""The one writer: what it promises to who orders, to what happened, and to who reads (ARCHITECTURE section 6)."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.small_loop import Notes, Write, created, given, intercept, order

import promptside_daemon.loop
from promptside_daemon.engine import events
from promptside_daemon.engine.task import Archived, Failed, Queued, Ready, Running, Task
from promptside_daemon.loop import Loop
from promptside_daemon.store.errors import disk_full
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import Append
from promptside_protocol.commands import Abandon, Ack, Pause, Run
from promptside_protocol.errors import PromptsideError, Refused


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "project.db"


@asynccontextmanager
async def opened(database: Path) -> AsyncIterator[tuple[Loop, Notes]]:
    """A loop at work on a database."""
    store = await ProjectStore.open(database)
    loop, notes = Loop(store), Notes()
    loop.acts = notes
    try:
        await loop.start()
        yield loop, notes
    finally:
        await loop.stop()
        await store.close()


async def make(loop: Loop, count: int = 1) -> list[int]:
    """New tasks; their numbers."""
    return [(await loop.create(f"key {n}", created)).task for n in range(count)]


async def facts(loop: Loop) -> list[tuple[int, int, str]]:
    """The whole journal: seq, task and kind."""
    return [(f.seq, f.task, f.kind) for f in await loop.store.facts_since(0, 10_000)]


async def settled(loop: Loop) -> None:
    """Wait until everything that was told before is written: the second order is taken after that."""
    for _ in range(2):
        with pytest.raises(Refused, match="no task 9999"):
            await order(loop, Run(project="/p", task=9999))


def run(task: int) -> Run:
    return Run(project="/project", task=task)


# --- committing ------------------------------------------------------------------------------------------


def test_what_waits_is_committed_together_and_each_order_hears_its_own_seq(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            numbers = await make(loop, 20)
            batches: list[int] = []

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                batches.append(len(batch))
                return await append(batch)

            intercept(loop.store, around)
            orders = [order(loop, command) for n in numbers for command in (run(n), pause(n))]
            acks = await asyncio.gather(*orders)
            assert batches == [20]
            told = {(seq, task): kind for seq, task, kind in await facts(loop)}
            kinds = [told[ack.seq, ack.task] for ack in acks]
            assert kinds == ["run_ordered", "task_paused"] * 20

    asyncio.run(main())


def pause(task: int) -> Pause:
    return Pause(project="/project", task=task)


def test_nothing_is_acknowledged_or_begun_before_it_is_committed(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, notes):
            (number,) = await make(loop)
            notes.done.clear()
            reached, go = asyncio.Event(), asyncio.Event()

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                reached.set()
                await go.wait()
                return await append(batch)

            intercept(loop.store, around)
            ordering = asyncio.create_task(order(loop, run(number)))
            await reached.wait()
            task = loop.task(number)
            assert task is not None
            assert isinstance(task.life, Ready), "what is not written is not so"
            assert not ordering.done()
            assert notes.done == []
            go.set()
            await ordering
            assert notes.kinds(number) == ["WantSlot"]

    asyncio.run(main())


def test_an_order_that_is_refused_leaves_no_trace(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, notes):
            (number,) = await make(loop)
            before, done = await facts(loop), list(notes.done)
            with pytest.raises(Refused, match="ready and not started"):
                await order(loop, pause(number))
            assert await facts(loop) == before
            assert notes.done == done

    asyncio.run(main())


def test_a_refusal_is_not_told_before_what_it_rests_on_is_written(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                raise disk_full(database, "save changes")

            intercept(loop.store, around)
            found = await asyncio.gather(
                order(loop, run(number)), order(loop, run(number)), return_exceptions=True
            )
            assert all("no space is left" in str(one) for one in found)

    asyncio.run(main())


def test_the_same_key_is_the_same_task(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            first, second = await asyncio.gather(loop.create("k", created), loop.create("k", created))
            third = await loop.create("k", created)
            assert first.task == second.task == third.task == 1
            assert [kind for _, _, kind in await facts(loop)] == ["task_created"]

    asyncio.run(main())


# --- another process at the same database ----------------------------------------------------------------


def test_an_order_is_decided_again_when_another_process_was_faster(database: Path) -> None:
    """Also when the version that a second order of the batch expects is there by chance."""

    async def main() -> None:
        async with opened(database) as (here, notes), opened(database) as (there, _):
            (number,) = await make(here)
            await there.load(number)
            await order(there, Abandon(project="/project", task=number))
            notes.done.clear()
            found = await asyncio.gather(
                order(here, run(number)), order(here, pause(number)), return_exceptions=True
            )
            assert [type(one) for one in found] == [Refused, Refused]
            assert all("abandoned" in str(one) for one in found)
            task, _seq = await here.load(number)
            assert isinstance(task.life, Archived)
            assert notes.done == []

    asyncio.run(main())


def test_two_loops_count_their_tasks_without_a_gap(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (one, _), opened(database) as (two, _):
            acks = await asyncio.gather(
                *(
                    loop.create(f"{name} {n}", created)
                    for name, loop in (("a", one), ("b", two))
                    for n in range(5)
                )
            )
            assert sorted(ack.task for ack in acks) == list(range(1, 11))

    asyncio.run(main())


# --- what happened ---------------------------------------------------------------------------------------


async def start_attempt(loop: Loop, number: int, attempt: str = "a1") -> None:
    """Bring the first stage to work."""
    await order(loop, run(number))
    loop.observe(number, events.SlotGranted(at=time.time(), stage="research", attempt=attempt))
    loop.observe(number, events.AttemptStarted(at=time.time(), attempt=attempt))
    await settled(loop)


def test_what_changes_nothing_is_no_fact(database: Path) -> None:
    """A transcript that is read again tells nothing twice (CW-16)."""

    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            told = events.SessionOpened(at=1.0, attempt="a1", offset=10, session="s", model="m")
            loop.observe(number, told)
            await settled(loop)
            before = await facts(loop)
            loop.observe(number, told)
            loop.observe(number, events.Woke(at=2.0))
            loop.observe(777, told)
            await settled(loop)
            assert await facts(loop) == before

    asyncio.run(main())


def test_a_fault_in_a_step_fails_its_task_only(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            broken, sound = await make(loop, 2)
            await start_attempt(loop, broken)
            real = promptside_daemon.loop.step

            def step(task: Task, event: Any) -> Any:
                if task.id == broken and isinstance(event, events.SessionOpened):
                    raise ZeroDivisionError("a bug")
                return real(task, event)

            monkeypatch.setattr(promptside_daemon.loop, "step", step)
            loop.observe(broken, events.SessionOpened(at=1.0, attempt="a1", offset=9, session="s", model="m"))
            await order(loop, run(sound))
            task, _seq = await loop.load(broken)
            assert isinstance(task.life, Failed)
            assert "a bug" in task.life.reason
            other = loop.task(sound)
            assert other is not None
            assert other.run is not None
            assert isinstance(other.run.status, Queued)

    asyncio.run(main())


def test_a_fault_in_deciding_is_that_orders_own(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)

            async def faulty(_: Task) -> Any:
                raise ZeroDivisionError("a bug")

            with pytest.raises(ZeroDivisionError):
                await loop.order(number, run(number), faulty)
            await order(loop, run(number))

    asyncio.run(main())


# --- a database that can't be written to -----------------------------------------------------------------


def test_a_full_disk_refuses_orders_and_loses_nothing_that_happened(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            full = True

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                if full:
                    raise disk_full(database, "save changes")
                return await append(batch)

            intercept(loop.store, around)
            told = [
                events.SessionOpened(at=1.0, attempt="a1", offset=10, session="s", model="m"),
                events.AskWithdrawn(at=2.0, attempt="a1", offset=20, request="r"),
                events.AttemptEnded(at=3.0, attempt="a1"),
            ]
            for event in told[:2]:
                loop.observe(number, event)
            with pytest.raises(PromptsideError, match="no space is left"):
                await order(loop, pause(number))
            loop.observe(number, told[2])
            full = False
            await loop.create("another", created)  # an order tries at once
            kinds = [kind for _, task, kind in await facts(loop) if task == number]
            assert kinds[-3:] == ["session_opened", "ask_withdrawn", "attempt_ended"]

    asyncio.run(main())


def test_what_happened_is_written_by_itself_when_there_is_room_again(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promptside_daemon.loop, "AGAIN_SECONDS", (0.001,))

    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            refusals = 3

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                nonlocal refusals
                refusals -= 1
                if refusals >= 0:
                    raise disk_full(database, "save changes")
                return await append(batch)

            intercept(loop.store, around)
            head = loop.store.head
            loop.observe(number, events.AttemptEnded(at=3.0, attempt="a1"))
            await loop.store.wait_past(head)
            assert (await facts(loop))[-1][2] == "attempt_ended"

    asyncio.run(main())


def test_a_task_that_can_not_be_written_takes_no_other_with_it(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours in one task's rows, not in the database."""

    async def main() -> None:
        async with opened(database) as (loop, _):
            broken, sound = await make(loop, 2)

            async def around(append: Write, batch: Sequence[Append]) -> Any:
                if any(one.task == broken for one in batch):
                    raise TypeError("a bug in a row")
                return await append(batch)

            intercept(loop.store, around)
            first, second = await asyncio.gather(
                order(loop, run(broken)), order(loop, run(sound)), return_exceptions=True
            )
            assert isinstance(first, TypeError)
            assert isinstance(second, Ack)

    asyncio.run(main())


# --- coming, going ---------------------------------------------------------------------------------------


def test_what_is_put_away_is_let_go_and_still_found(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, notes):
            (number,) = await make(loop)
            await order(loop, Abandon(project="/project", task=number))
            assert notes.gone == [number]
            task, _seq = await loop.load(number)
            assert isinstance(task.life, Archived)
            with pytest.raises(Refused):
                await order(loop, run(number))
            assert loop.task(number) is None, "asking and ordering keep nothing in memory"

    asyncio.run(main())


def test_a_task_is_kept_until_its_last_process_has_ended(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, notes):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            await order(loop, Abandon(project="/project", task=number))
            assert notes.gone == []
            assert loop.live() == ["a1"]
            loop.observe(number, events.AttemptEnded(at=time.time(), attempt="a1"))
            await settled(loop)
            assert notes.gone == [number]
            assert loop.live() == []

    asyncio.run(main())


def test_a_start_asks_for_every_effect_again_and_tells_it_nobody(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            before = await facts(loop)
        async with opened(database) as (loop, notes):
            await settled(loop)
            assert {"FollowAttempt", "Deliver"} <= set(notes.kinds(number))
            assert "StartAttempt" not in notes.kinds(number)
            assert await facts(loop) == before

    asyncio.run(main())


def test_a_task_that_can_not_be_read_is_said_with_its_number(database: Path) -> None:
    async def main() -> None:
        store = await ProjectStore.open(database)
        async with opened(database) as (loop, _):
            await make(loop)
            await store._database.write(
                "spoil a row", lambda connection: connection.execute("update tasks set body = x'7b'")
            )
        with pytest.raises(PromptsideError, match="Task 1 can't be read"):
            await Loop(store).start()
        await store.close()

    asyncio.run(main())


def test_an_end_answers_what_was_taken_and_refuses_the_rest(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            taken = asyncio.create_task(order(loop, run(number)))
            await asyncio.sleep(0)  # so that it is ordered before the end begins
            await loop.stop()
            assert isinstance(await taken, Ack)
            with pytest.raises(Refused, match="stopping"):
                await order(loop, pause(number))

    asyncio.run(main())


def test_a_given_that_takes_long_is_read_for_the_newest_state(database: Path) -> None:
    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            seen: list[str] = []

            async def slow(task: Task) -> Any:
                seen.append(str(task.life.__struct_config__.tag))
                return await given(task)

            await asyncio.gather(order(loop, run(number)), loop.order(number, pause(number), slow))
            assert seen == ["taken"]

    asyncio.run(main())


# --- kill -9 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before-commit", "after-commit", "in-effect"])
def test_a_kill_at_any_point_loses_nothing_that_was_acknowledged(database: Path, point: str) -> None:
    """DA-2: what was not acknowledged may be there or not; its effects are asked for again if it is."""
    script = Path(__file__).parents[1] / "rig" / "small_loop.py"
    killed = subprocess.run(
        [sys.executable, str(script), str(database), point], capture_output=True, text=True, check=False
    )
    assert killed.returncode == -9, killed.stderr
    assert killed.stdout.split() == ["created", "1"]

    async def main() -> None:
        async with opened(database) as (loop, notes):
            await settled(loop)
            again = await loop.create("a key", created)
            assert again.task == 1
            task = loop.task(1)
            assert task is not None
            assert task.run is not None
            if point == "before-commit":
                assert isinstance(task.life, Ready)
                assert "WantSlot" not in notes.kinds(1)
            else:
                assert isinstance(task.run.status, Queued)
                assert notes.kinds(1).count("WantSlot") == 1

    asyncio.run(main())


def test_the_journal_folded_gives_the_state_row(database: Path) -> None:
    """Several facts of one drain included."""

    async def main() -> None:
        async with opened(database) as (loop, _):
            (number,) = await make(loop)
            await start_attempt(loop, number)
            await asyncio.gather(order(loop, pause(number)), settled(loop))
            rows = await loop.store.facts_since(0, 100)
            decoded = [msgspec.json.decode(row.body, type=events.AnyEvent) for row in rows]
            first = decoded[0]
            assert isinstance(first, events.TaskCreated)
            task = promptside_daemon.loop.born(first)
            for event in decoded:
                task, _ = promptside_daemon.loop.step(task, event)
            kept = loop.task(number)
            assert task == kept
            assert kept is not None
            assert kept.run is not None
            assert isinstance(kept.run.status, Running)

    asyncio.run(main())
