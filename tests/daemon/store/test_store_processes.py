"""Two processes at one file, and one that is killed in the middle of it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from promptside_daemon.store.errors import StoreLocked
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import Append, Appended

Change = Callable[..., Append]
Opened = Callable[..., AbstractAsyncContextManager[ProjectStore]]
Start = Callable[[str, Path], "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(mode: str, path: Path) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("other_process.py")), mode, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield run
    for child in started:
        child.kill()
        child.communicate()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.mark.parametrize("acknowledged", [1, 40, 200])
def test_what_was_acknowledged_survives_kill_9(
    database: Path, change: Change, opened: Opened, start: Start, acknowledged: int
) -> None:
    child = start("flood", database)
    said = [line(child) for _ in range(acknowledged)]
    child.kill()
    # Read through the same buffer as the lines before: communicate() would lose what it already holds.
    assert child.stdout is not None
    rest = child.stdout.read()
    # The last line may be torn: the process died while it wrote it.
    said += rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1]

    async def main() -> None:
        async with opened(database) as store:
            facts = {fact.seq: fact.body.decode() for fact in await store.facts_since(0, 100_000)}
            for answer in said:
                seq, body = answer.split()
                assert facts[int(seq)] == body
            # Whole batches only, and the rows are those of the last one.
            assert sorted(facts) == list(range(1, store.head + 1))
            assert store.head % 3 == 0
            last = store.head // 3
            rows = await store.tasks()
            assert {(row.id, row.version, row.body) for row in rows} == {
                (task, last, b"%d:%d" % (task, last - 1)) for task in (1, 2, 3)
            }
            (result,) = await store.append([change(1, last)])
            assert result == Appended(task=1, version=last + 1, seq=store.head)

    asyncio.run(main())


def test_two_processes_share_out_every_version(
    database: Path, change: Change, opened: Opened, start: Start
) -> None:
    """The condition on the version is the whole protection against a second daemon."""

    async def prepare() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0)])

    asyncio.run(prepare())
    children = [start("claim", database) for _ in range(2)]
    assert [line(child) for child in children] == ["ready", "ready"]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    won = [[int(version) for version in child.communicate()[0].split()] for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert sorted(won[0] + won[1]) == list(range(2, 151))


def test_a_locked_database_says_so_and_nothing_is_lost(
    database: Path, change: Change, opened: Opened, start: Start
) -> None:
    async def main() -> None:
        async with opened(database, busy_s=0.01) as store:
            await store.append([change(1, 0)])
            child = start("lock", database)
            assert line(child) == "locked"
            with pytest.raises(StoreLocked, match=f"save changes: another process .*{database}") as caught:
                await store.append([change(1, 1)])
            assert caught.value.refusal.code == "store-locked"
            assert caught.value.refusal.hint
            (task,) = await store.tasks()  # readers are not held up
            assert task.version == 1
            child.communicate("go on\n")
            assert await store.append([change(1, 1)]) == [Appended(task=1, version=2, seq=2)]

    asyncio.run(main())


def test_a_second_process_that_opens_waits_for_its_turn(
    database: Path, change: Change, opened: Opened, start: Start
) -> None:
    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0)])
        child = start("lock", database)
        assert line(child) == "locked"
        async with opened(database) as store:
            assert store.head == 1
            appending = asyncio.ensure_future(store.append([change(1, 1)]))
            assert await store.find_head() == 1
            assert child.stdin is not None
            child.stdin.write("go on\n")
            child.stdin.flush()
            assert await appending == [Appended(task=1, version=2, seq=2)]

    asyncio.run(main())
