"""What readers see: never half a transaction, each change, and each changed task once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.store.errors import StoreClosed
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import Append, AttemptRow, Counts, Fact, Summary, TaskRow

Change = Callable[..., Append]
Opened = Callable[..., AbstractAsyncContextManager[ProjectStore]]


def test_a_reader_never_sees_half_a_batch(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store, opened(database) as other:
            await store.append([change(1, 0), change(2, 0)])

            async def write() -> None:
                for version in range(1, 60):
                    await store.append([change(1, version, "A", "B"), change(2, version, "A", "B")])

            writing = asyncio.ensure_future(write())
            seen = set()
            while not writing.done():
                for reader in (store, other):
                    versions = {task.version for task in await reader.tasks()}
                    assert len(versions) == 1
                    seen |= versions
                    assert len(await reader.facts_since(2, 1000)) % 4 == 0
            await writing
            assert len(seen) > 1

    asyncio.run(main())


def test_a_waiter_misses_no_commit(database: Path, change: Change, opened: Opened) -> None:
    """CW-16: live and history are the same loop, so nothing is lost between them."""

    async def follow(store: ProjectStore, until: int) -> list[int]:
        cursor, seen = 0, []
        while cursor < until:
            await store.wait_past(cursor)
            page = await store.facts_since(cursor, 3)
            seen += [fact.seq for fact in page]
            cursor = page[-1].seq
        return seen

    async def main() -> None:
        async with opened(database) as store:
            followers = [asyncio.ensure_future(follow(store, 41)) for _ in range(20)]
            await store.append([change(1, 0)])
            await asyncio.gather(*(store.append([change(1, n)]) for n in range(1, 41)))
            for follower in followers:
                assert await follower == list(range(1, 42))
            await store.wait_past(40)

    asyncio.run(main())


def test_closing_lets_waiters_go(database: Path, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            waiting = asyncio.ensure_future(store.wait_past(0))
            await asyncio.sleep(0)  # lets it begin to wait
            await store.close()
            with pytest.raises(StoreClosed):
                await waiting
            for use in (store.tasks(), store.find_head()):
                with pytest.raises(StoreClosed, match=str(database)):
                    await use

    asyncio.run(main())


def test_a_store_opened_again_knows_its_head(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0, "A", "B", "C")])
        async with opened(database) as store:
            assert store.head == 3
            await store.wait_past(2)

    asyncio.run(main())


def test_lists_filter_and_page(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            states = ["draft", "pending", "completed", "failed", "archived", "taken"]
            await store.append(
                [
                    change(n, 0, state=state, work_type="coding" if n % 2 else "operations", waiting=n == 6)
                    for n, state in enumerate(states, 1)
                ]
            )
            await store.append([change(1, 1, state="ready", running=1)])
            assert [task.id for task in await store.tasks()] == [1, 6, 5, 4, 3, 2]
            assert [task.id for task in await store.tasks(limit=2, offset=1)] == [6, 5]
            assert [task.id for task in await store.tasks(state="ready")] == [1]
            assert [task.id for task in await store.tasks(work_type="operations")] == [6, 4, 2]
            assert [task.id for task in await store.open_tasks()] == [1, 2, 6]
            assert await store.counts() == Counts(tasks=5, waiting=1, running=1)
            assert await store.load(77) is None

    asyncio.run(main())


def test_retention_lists_finished_tasks_only(database: Path, change: Change, opened: Opened) -> None:
    """DA-9: attempts of finished tasks go by age and total size, never of an open task."""

    def attempt(name: str, task: int, ended: float | None) -> AttemptRow:
        return AttemptRow(id=name, task=task, stage="research", n=1, status="done", started=1.0, ended=ended)

    async def main() -> None:
        async with opened(database) as store:
            await store.append(
                [
                    change(1, 0, state="completed", attempts=(attempt("b", 1, 20.0), attempt("a", 1, 10.0))),
                    change(2, 0, state="taken", attempts=(attempt("open", 2, 5.0),)),
                    change(3, 0, state="archived", attempts=(attempt("lost", 3, None),)),
                ]
            )
            assert [row.id for row in await store.removable(before=15.0)] == ["lost", "a"]
            assert [row.id for row in await store.removable()] == ["lost", "a", "b"]
            await store.mark_removed(["a", "lost"])
            assert [row.id for row in await store.removable()] == ["b"]
            await store.append([change(1, 1, state="completed", attempts=(attempt("a", 1, 11.0),))])
            assert [(row.id, row.ended, row.removed) for row in await store.attempts(1)] == [
                ("b", 20.0, False),
                ("a", 11.0, True),
            ]

    asyncio.run(main())


def test_an_attempt_is_brought_up_to_date(database: Path, change: Change, opened: Opened) -> None:
    running = AttemptRow(id="x", task=1, stage="research", n=1, status="running", started=1.0)
    done = AttemptRow(
        id="x",
        task=1,
        stage="research",
        n=1,
        status="done",
        started=1.0,
        ended=3.5,
        input_tokens=10,
        output_tokens=20,
        cost_usd=0.25,
        duration_s=2.5,
    )

    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0, attempts=(running,))])
            assert await store.attempts(1) == [running]
            await store.append([change(1, 1, attempts=(done,))])
            assert await store.attempts(1) == [done]

    asyncio.run(main())


# A step is either one commit of changes to these tasks, or one page read by a reader with this limit.
STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(1, 5), min_size=1, max_size=4).map(lambda tasks: ("write", tasks)),
        st.tuples(st.just("read"), st.lists(st.integers(1, 4), min_size=1, max_size=1)),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_each_changed_task_comes_once_and_the_journal_folds_to_the_state(
    steps: list[tuple[str, list[int]]],
) -> None:
    """CW-16: without a gap or a repeat, over any interleaving of commits and pages."""

    async def main(path: Path) -> None:
        store = await ProjectStore.open(path)
        try:
            await follow(store, steps)
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory) / "project.db"))


async def follow(store: ProjectStore, steps: list[tuple[str, list[int]]]) -> None:
    written: dict[int, int] = {}  # task, as the test numbers them, to its version
    ids: dict[int, int] = {}
    mirror: dict[int, TaskRow] = {}
    cursor = 0

    async def page(limit: int) -> bool:
        nonlocal cursor
        rows = await store.changed_since(cursor, limit)
        assert len({row.id for row in rows}) == len(rows)
        for row in rows:
            assert row.seq > cursor
            cursor = row.seq
            assert row.id not in mirror or mirror[row.id].version < row.version
            mirror[row.id] = row
        return bool(rows)

    for step, numbers in steps:
        if step == "read":
            await page(numbers[0])
            continue
        batch = []
        for number in numbers:
            task = ids.setdefault(number, len(ids) + 1)
            version = written.get(task, 0)
            written[task] = version + 1
            batch.append(addition(task, version))
        await store.append(batch)
    while await page(2):
        pass
    assert cursor == store.head
    assert sorted(mirror) == sorted(written)
    assert {task: row.version for task, row in mirror.items()} == written

    folded: dict[int, int] = {}
    for fact in await store.facts_since(0, 10_000):
        folded[fact.task] = folded.get(fact.task, 0) + int(fact.body)
    assert folded == {row.id: int(row.body) for row in await store.tasks()}


def addition(task: int, version: int) -> Append:
    """The toy of a state machine: each fact adds its number, and the state is the sum."""
    return Append(
        task=task,
        expected_version=version,
        key="" if version else str(task),
        events=(
            Fact(at=0.0, kind="Added", body=b"%d" % version),
            Fact(at=0.0, kind="Added", body=b"%d" % task),
        ),
        summary=Summary(
            state="taken",
            waiting=0,
            running=0,
            title="",
            priority=50,
            work_type="coding",
            created=0.0,
            changed=0.0,
        ),
        body=b"%d" % (sum(range(version + 1)) + task * (version + 1)),
    )
