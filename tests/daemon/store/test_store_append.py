"""What an append promises: all of it or nothing, on condition of the task's version, in one commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import (
    Append,
    Appended,
    AttemptRow,
    Conflict,
    Existing,
    Fact,
    NewRule,
)

Change = Callable[..., Append]
Opened = Callable[..., AbstractAsyncContextManager[ProjectStore]]

RULE = NewRule(
    rule="Bash(pytest:*)", task=1, stage="implementation", decision="P1", by="ada", client="terminal", at=7.0
)


def project_fact(kind: str, **others: object) -> Append:
    return Append(
        task=0,
        expected_version=0,
        events=(Fact(at=9.0, kind=kind, body=b"{}"),),
        summary=None,
        body=b"",
        **others,  # type: ignore[arg-type]  # the caller names fields of Append
    )


def test_a_task_is_at_the_seq_of_its_last_fact(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            first, second = await store.append([change(1, 0, "Created"), change(1, 1, "Started", "Ran")])
            assert first == Appended(task=1, version=1, seq=1)
            assert second == Appended(task=1, version=2, seq=3)
            task = await store.load(1)
            assert task is not None
            assert (task.version, task.seq, task.body, task.key) == (2, 3, b"1:2", "key of 1")
            assert store.head == 3
            facts = await store.facts_since(0, 10)
            assert [(fact.seq, fact.task, fact.kind, fact.body) for fact in facts] == [
                (1, 1, "Created", b"1:1"),
                (2, 1, "Started", b"1:2"),
                (3, 1, "Ran", b"1:2"),
            ]

    asyncio.run(main())


def test_a_miss_leaves_nothing_and_the_others_go_through(
    database: Path, change: Change, opened: Opened
) -> None:
    attempt = AttemptRow(id="x", task=1, stage="research", n=1, status="running")

    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0), change(2, 0)])
            results = await store.append(
                [
                    change(2, 1, "Good"),
                    change(1, 7, "Bad", "Worse", attempts=(attempt,), rules_added=(RULE,)),
                    change(1, 1, "Good"),
                    change(1, 1, "Late"),
                    change(9, 4, "Nowhere"),
                ]
            )
            assert results == [
                Appended(task=2, version=2, seq=3),
                Conflict(task=1, version=1),
                Appended(task=1, version=2, seq=4),
                Conflict(task=1, version=2),
                Conflict(task=9, version=0),
            ]
            assert [fact.kind for fact in await store.facts_since(2, 10)] == ["Good", "Good"]
            assert await store.attempts(1) == []
            assert await store.rules() == []

    asyncio.run(main())


def test_two_stores_on_one_file_decide_from_the_same_version(
    database: Path, change: Change, opened: Opened
) -> None:
    async def main() -> None:
        async with opened(database) as one, opened(database) as other:
            await one.append([change(1, 0)])
            results = await asyncio.gather(
                one.append([change(1, 1, "Mine")]), other.append([change(1, 1, "Theirs")])
            )
            kinds = {type(result) for answer in results for result in answer}
            assert kinds == {Appended, Conflict}
            assert len(await one.facts_since(0, 10)) == 2
            assert await one.find_head() == await other.find_head() == 2

    asyncio.run(main())


def test_the_same_key_is_the_same_task(database: Path, change: Change, opened: Opened) -> None:
    """A retry after a lost connection (ARCHITECTURE, protocol) makes no second task."""

    async def main() -> None:
        async with opened(database) as store:
            assert await store.next_task() == 1
            await store.append([change(1, 0, key="from the client")])
            again = await store.append([change(2, 0, key="from the client"), change(2, 0, key="another")])
            assert again == [Existing(task=1, seq=1), Appended(task=2, version=1, seq=2)]
            found = await store.by_key("from the client")
            assert found is not None
            assert found.id == 1
            assert await store.by_key("unknown") is None

    asyncio.run(main())


def test_ids_count_without_a_gap(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            results = await store.append(
                [change(1, 0), change(3, 0), change(1, 0, key="other"), change(2, 0)]
            )
            assert results == [
                Appended(task=1, version=1, seq=1),
                Conflict(task=3, version=0),
                Conflict(task=1, version=1),
                Appended(task=2, version=1, seq=2),
            ]
            assert await store.next_task() == 3

    asyncio.run(main())


def test_a_thousand_appends_are_one_commit(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            statements: list[str] = []
            await store._database._writer.set_trace_callback(statements.append)
            results = await store.append([change(number, 0) for number in range(1, 1001)])
            assert all(isinstance(result, Appended) for result in results)
            assert [one.lower() for one in statements].count("commit") == 1
            assert store.head == 1000

    asyncio.run(main())


def test_facts_reach_the_disk_before_the_answer(database: Path, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            writer = store._database._writer
            for pragma, wanted in (("synchronous", 2), ("journal_mode", "wal"), ("foreign_keys", 1)):
                ((found,),) = await writer.execute_fetchall(f"pragma {pragma}")
                assert found == wanted, pragma

    asyncio.run(main())


def test_a_cancelled_append_is_committed_all_the_same(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            appending = asyncio.ensure_future(store.append([change(1, 0)]))
            await asyncio.sleep(0)  # lets it hand its work to the thread
            appending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await appending
            await store.wait_past(0)
            assert await store.load(1) is not None

    asyncio.run(main())


def test_closing_finishes_what_is_being_written(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            appending = asyncio.ensure_future(store.append([change(1, 0)]))
            await asyncio.sleep(0)  # lets it hand its work to the thread
            await store.close()
            assert await appending == [Appended(task=1, version=1, seq=1)]
        async with opened(database) as store:
            assert store.head == 1

    asyncio.run(main())


def test_rules_are_added_once_and_removed(database: Path, change: Change, opened: Opened) -> None:
    """ST-14: a permission given for good is listed with its origin, and can be taken away."""

    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0, rules_added=(RULE,))])
            await store.append([change(1, 1, rules_added=(RULE,))])
            (rule,) = await store.rules()
            assert (rule.id, rule.rule, rule.task, rule.stage, rule.decision) == (
                1,
                "Bash(pytest:*)",
                1,
                "implementation",
                "P1",
            )
            assert (rule.by, rule.client, rule.at) == ("ada", "terminal", 7.0)
            (result,) = await store.append([project_fact("RuleRemoved", rules_removed=(rule.id,))])
            assert result == Appended(task=0, version=0, seq=3)
            assert await store.rules() == []
            assert [fact.task for fact in await store.facts_since(2, 10)] == [0]

    asyncio.run(main())


def test_an_append_that_makes_no_sense_is_a_mistake_of_ours(
    database: Path, change: Change, opened: Opened
) -> None:
    bad = [
        Append(task=1, expected_version=1, events=(), summary=change(1, 1).summary, body=b""),
        Append(task=1, expected_version=1, events=change(1, 1).events, summary=None, body=b""),
        change(1, 0, key=""),
        project_fact("Odd", attempts=(AttemptRow(id="x", task=1, stage="s", n=1, status="done"),)),
    ]

    async def main() -> None:
        async with opened(database) as store:
            for one in bad:
                with pytest.raises(ValueError, match=r"task|project"):
                    await store.append([change(1, 0), one])
            assert store.head == 0
            assert await store.append([]) == []

    asyncio.run(main())
