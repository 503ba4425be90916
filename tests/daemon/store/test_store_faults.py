"""A database that can't be used says what was being done and what to do, and only for its own file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from promptside_daemon.store.connection import JOURNAL_CHECKED
from promptside_daemon.store.errors import (
    DiskFull,
    StoreDamaged,
    StoreFault,
    StoreTooNew,
    StoreUnusable,
    explained,
)
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.registry import Registry
from promptside_daemon.store.rows import Append, Appended, Fact

Change = Callable[..., Append]
Opened = Callable[..., AbstractAsyncContextManager[ProjectStore]]


def fill(path: Path, change: Change, opened: Opened) -> None:
    """A database of several pages, closed."""

    async def main() -> None:
        async with opened(path) as store:
            await store.append([change(number, 0, "A", "B", "C") for number in range(1, 200)])

    asyncio.run(main())


def refused(path: Path, kind: type[StoreFault]) -> StoreFault:
    with pytest.raises(kind) as caught:
        asyncio.run(ProjectStore.open(path))
    fault = caught.value
    assert fault.path == path
    assert str(path) in fault.refusal.message
    assert "open the database of a project" in fault.refusal.message
    assert fault.refusal.hint
    return fault


def overwrite(path: Path, offset: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * length)


def test_a_file_that_is_no_database(database: Path, change: Change, opened: Opened) -> None:
    fill(database, change, opened)
    overwrite(database, 0, 100)
    assert "not a database" in refused(database, StoreDamaged).refusal.message


def test_pages_that_were_overwritten(database: Path, change: Change, opened: Opened) -> None:
    fill(database, change, opened)
    size = database.stat().st_size
    overwrite(database, size // 2, size // 4)
    assert ".recover" in refused(database, StoreDamaged).refusal.hint


def test_a_file_that_was_cut_short(database: Path, change: Change, opened: Opened) -> None:
    fill(database, change, opened)
    os.truncate(database, database.stat().st_size // 2)
    refused(database, StoreDamaged)


def test_a_file_that_is_empty_is_not_taken_for_a_new_one(database: Path) -> None:
    database.parent.mkdir(parents=True)
    database.touch()
    assert "empty" in refused(database, StoreDamaged).refusal.message


def test_a_database_of_something_else(database: Path, tmp_path: Path) -> None:
    async def registry() -> None:
        await (await Registry.open(database)).close()

    asyncio.run(registry())
    assert "not the database of a project" in refused(database, StoreDamaged).refusal.message
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("create table theirs (x)")
    connection.commit()
    connection.close()
    refused(foreign, StoreDamaged)


def test_a_damaged_journal_of_a_large_database_is_found_when_it_is_read(
    database: Path, change: Change, opened: Opened
) -> None:
    body = bytes(1 << 20)

    async def large() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0)])
            for _ in range(JOURNAL_CHECKED // len(body) + 1):
                facts = (Fact(at=0.0, kind="Long", body=body),)
                await store.append([Append(task=0, expected_version=0, events=facts, summary=None, body=b"")])

    asyncio.run(large())
    connection = sqlite3.connect(database)
    (page,) = connection.execute("select rootpage from sqlite_master where name = 'journal'").fetchone()
    (size,) = connection.execute("pragma page_size").fetchone()
    connection.close()
    overwrite(database, (page - 1) * size, size)

    async def main() -> None:
        with pytest.raises(StoreDamaged, match="read the journal"):
            await ProjectStore.open(database)

    asyncio.run(main())


def test_a_database_from_a_newer_version(database: Path, change: Change, opened: Opened) -> None:
    fill(database, change, opened)
    connection = sqlite3.connect(database)
    connection.execute("pragma user_version = 99")
    connection.close()
    before = database.read_bytes()
    fault = refused(database, StoreTooNew)
    assert "99" in fault.refusal.message
    assert "Update Promptside" in fault.refusal.hint
    assert database.read_bytes() == before


def test_a_directory_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "projects").write_text("in the way")
    refused(tmp_path / "projects" / "a1" / "project.db", StoreUnusable)


def test_one_damaged_project_takes_no_other_down(
    database: Path, tmp_path: Path, change: Change, opened: Opened
) -> None:
    fill(database, change, opened)
    overwrite(database, 0, 4096)

    async def main() -> None:
        async with opened(tmp_path / "other" / "project.db") as store:
            with pytest.raises(StoreDamaged):
                await ProjectStore.open(database)
            assert await store.append([change(1, 0)]) == [Appended(task=1, version=1, seq=1)]

    asyncio.run(main())


def test_no_room_within_the_file(database: Path, change: Change, opened: Opened) -> None:
    """The same answer from SQLite as that of a full disk, on any machine."""

    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0)])
            ((pages,),) = await store._database._writer.execute_fetchall("pragma page_count")
            await store._database._writer.execute_fetchall(f"pragma max_page_count = {pages}")
            with pytest.raises(DiskFull, match="save changes: no space is left") as caught:
                await store.append([change(2, 0), *(change(1, n) for n in range(1, 1000))])
            assert "promptside gc" in caught.value.refusal.hint
            assert store.head == 1
            assert [(task.id, task.version) for task in await store.tasks()] == [(1, 1)]
            await store._database._writer.execute_fetchall("pragma max_page_count = 100000")
            assert await store.append([change(1, 1)]) == [Appended(task=1, version=2, seq=2)]

    asyncio.run(main())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk; the test above shows the rest")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_loses_nothing_acknowledged(small_disk: Path, change: Change, opened: Opened) -> None:
    path = small_disk / "data" / "project.db"
    ballast = small_disk / "ballast"

    async def main() -> None:
        acknowledged = 0
        async with opened(path) as store:
            ballast.write_bytes(bytes(64 << 10))
            await store.append([change(1, 0)])
            acknowledged += 1
            full: DiskFull | None = None
            while full is None:
                try:
                    await store.append([change(1, acknowledged, *["Long"] * 40)])
                    acknowledged += 1
                except DiskFull as fault:
                    full = fault
            (task,) = await store.tasks()
            assert task.version == acknowledged
            ballast.unlink()
            await store.append([change(1, acknowledged)])
        async with opened(path) as store:
            (task,) = await store.tasks()
            assert task.version == acknowledged + 1

    asyncio.run(main())


def test_a_new_database_on_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "data" / "project.db"
    with pytest.raises(OSError, match="space"):
        (small_disk / "ballast").write_bytes(bytes(1 << 20))
    refused(path, DiskFull)
    assert not path.exists()
    (small_disk / "ballast").unlink()

    async def main() -> None:
        await (await ProjectStore.open(path)).close()

    asyncio.run(main())


def test_no_room_to_open_a_database(small_disk: Path, change: Change, opened: Opened) -> None:
    """SQLite calls it an I/O error; a person is told what it is."""
    path = small_disk / "data" / "project.db"
    fill(path, change, opened)
    with pytest.raises(OSError, match="space"):
        (small_disk / "ballast").write_bytes(bytes(1 << 20))
    refused(path, DiskFull)
    (small_disk / "ballast").unlink()

    async def main() -> None:
        async with opened(path) as store:
            assert store.head == 3 * 199

    asyncio.run(main())


def test_mistakes_of_ours_are_not_called_faults(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    with pytest.raises(sqlite3.OperationalError, match="no such table"), explained(tmp_path, "look"):
        connection.execute("select * from theirs")
    connection.close()


def test_only_the_person_may_read_it(database: Path, change: Change, opened: Opened) -> None:
    async def main() -> None:
        async with opened(database) as store:
            await store.append([change(1, 0)])
            files = sorted(database.parent.iterdir())
            assert [file.name for file in files] == ["project.db", "project.db-shm", "project.db-wal"]
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            made = (database.parent, database.parent.parent)
            assert {stat.S_IMODE(place.stat().st_mode) for place in made} == {0o700}

    old = os.umask(0)
    try:
        asyncio.run(main())
        database.chmod(0o644)
        database.parent.chmod(0o755)
        asyncio.run(main_again(database))
    finally:
        os.umask(old)
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    assert stat.S_IMODE(database.parent.stat().st_mode) == 0o700


async def main_again(path: Path) -> None:
    await (await ProjectStore.open(path)).close()


def test_copying_the_file_of_a_closed_database_is_a_backup(
    database: Path, tmp_path: Path, change: Change, opened: Opened
) -> None:
    """ST-1: also while something else has it open, such as a database browser."""
    fill(database, change, opened)
    browser = sqlite3.connect(database)

    async def more() -> None:
        async with opened(database) as store:
            assert browser.execute("select count(*) from journal").fetchone() == (3 * 199,)
            await store.append([change(1, 1)])

    asyncio.run(more())
    copy = tmp_path / "copy" / "project.db"
    copy.parent.mkdir()
    copy.write_bytes(database.read_bytes())
    browser.close()
    assert [file.name for file in database.parent.iterdir()] == ["project.db"]

    async def main() -> None:
        async with opened(copy) as store:
            assert store.head == 3 * 199 + 1

    asyncio.run(main())
