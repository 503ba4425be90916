"""DA-7: databases of every released version open, forward only, after a copy, and wholly or not at all."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import aiosqlite
import msgspec
import pytest

from promptside_daemon.store.connection import Database
from promptside_daemon.store.migrations import PROJECT, REGISTRY, Layout
from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.registry import ProjectRow, Registry
from promptside_daemon.store.rows import AttemptRow, Counts

FIXTURES = Path(__file__).parents[2] / "fixtures" / "databases"


def schema(path: Path) -> list[tuple[str, str]]:
    connection = sqlite3.connect(path)
    try:
        return [
            (name, " ".join(sql.split()))
            for name, sql in connection.execute(
                "select name, sql from sqlite_master where sql is not null order by name"
            )
        ]
    finally:
        connection.close()


async def open_and_close(path: Path, layout: Layout) -> None:
    await (await Database.open(path, layout)).close()


@pytest.mark.parametrize(("name", "layout"), [("registry", REGISTRY), ("project", PROJECT)])
def test_every_version_is_kept_and_becomes_the_newest(name: str, layout: Layout, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.db"
    asyncio.run(open_and_close(fresh, layout))
    for version in range(1, layout.version + 1):
        old = tmp_path / f"v{version}.db"
        shutil.copy(FIXTURES / f"{name}-v{version}.db", old)
        asyncio.run(open_and_close(old, layout))
        assert schema(old) == schema(fresh)


def test_a_project_of_version_1(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    shutil.copy(FIXTURES / "project-v1.db", path)
    read_version_1(path)


def read_version_1(path: Path) -> None:
    async def main() -> None:
        store = await ProjectStore.open(path)
        try:
            assert store.head == 5
            assert [(task.id, task.version, task.state, task.key) for task in await store.tasks()] == [
                (1, 2, "taken", "key-1"),
                (2, 1, "completed", "key-2"),
            ]
            assert await store.counts() == Counts(tasks=2, waiting=1, running=1)
            facts = await store.facts_since(0, 10)
            assert [(fact.seq, fact.task, fact.kind) for fact in facts] == [
                (1, 1, "Created"),
                (2, 0, "Trusted"),
                (3, 2, "Created"),
                (4, 1, "AttemptStarted"),
                (5, 1, "Asked"),
            ]
            assert facts[4].body == b'{"text":"Which caf\xc3\xa9?"}'
            assert await store.attempts(1) == [
                AttemptRow(id="7f3a", task=1, stage="research", n=1, status="running", started=30.0)
            ]
            assert [row.id for row in await store.removable()] == ["90bc"]
            (rule,) = await store.rules()
            assert (rule.rule, rule.decision) == ("Bash(pytest:*)", "P1")
        finally:
            await store.close()

    asyncio.run(main())


def test_a_registry_of_version_1(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    shutil.copy(FIXTURES / "registry-v1.db", path)

    async def main() -> None:
        registry = await Registry.open(path)
        try:
            assert await registry.projects() == (
                ProjectRow(id="a1b2c3d4", name="shop", path="/home/ada/shop", added=10.0),
                ProjectRow(
                    id="b2c3d4e5",
                    name="Café",
                    path="/home/ada/my café",
                    added=20.0,
                    trusted_hash="5eed",
                    trusted_at=25.0,
                    trusted_by="ada",
                ),
            )
        finally:
            await registry.close()

    asyncio.run(main())


def grown(*statements: str) -> Layout:
    """The project's layout, a version later."""
    return msgspec.structs.replace(PROJECT, steps=(*PROJECT.steps, statements))


def test_a_migration_puts_a_copy_beside(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    shutil.copy(FIXTURES / "project-v1.db", path)
    asyncio.run(open_and_close(path, grown("alter table tasks add column colour text not null default ''")))
    copy = tmp_path / "project.db.v1"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["project.db", "project.db.v1"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert schema(copy) == schema(FIXTURES / "project-v1.db")
    connection = sqlite3.connect(path)
    assert connection.execute("pragma user_version").fetchone() == (2,)
    assert connection.execute("select id, colour from tasks order by id").fetchall() == [(1, ""), (2, "")]
    connection.close()
    copy.replace(path)
    read_version_1(path)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    shutil.copy(FIXTURES / "project-v1.db", path)
    broken = grown("alter table tasks add column colour text", "drop table journal", "insert into nowhere")
    with pytest.raises(sqlite3.OperationalError):
        asyncio.run(open_and_close(path, broken))
    assert schema(path) == schema(FIXTURES / "project-v1.db")
    read_version_1(path)


def test_databases_that_processes_make_at_once_are_one(tmp_path: Path) -> None:
    async def main() -> None:
        stores = await asyncio.gather(*(ProjectStore.open(tmp_path / "project.db") for _ in range(8)))
        for store in stores:
            await store.close()

    asyncio.run(main())
    assert [file.name for file in tmp_path.iterdir()] == ["project.db"]


def test_aiosqlite_runs_a_function_in_one_hop() -> None:
    """What connection.py takes from aiosqlite without its promise: the constructor, `_execute`, `_conn`."""
    assert list(inspect.signature(aiosqlite.Connection.__init__).parameters)[1:3] == [
        "connector",
        "iter_chunk_size",
    ]

    async def main() -> None:
        made: list[int] = []

        def connector() -> sqlite3.Connection:
            made.append(threading.get_ident())
            return sqlite3.connect(":memory:")

        connection = aiosqlite.Connection(connector, 64)
        await connection
        try:
            assert isinstance(connection._conn, sqlite3.Connection)
            thread, value = await connection._execute(  # type: ignore[no-untyped-call]  # has no types
                lambda raw: (threading.get_ident(), raw.execute("select 7").fetchone()), connection._conn
            )
            assert [thread] == made
            assert thread != threading.get_ident()
            assert value == (7,)
            with pytest.raises(ZeroDivisionError):
                await connection._execute(lambda: 1 // 0)  # type: ignore[no-untyped-call]  # has no types
        finally:
            await connection.close()

    asyncio.run(main())
