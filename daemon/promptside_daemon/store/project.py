"""The facts and the state of one project's tasks, its attempts and the permissions given for good in it.

Facts and the state that follows from them are written in one transaction, on condition that the task is still
at the version from which they were decided. Readers keep a cursor of their own and read past it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

from promptside_daemon.store.appending import validate, write_batch
from promptside_daemon.store.connection import BUSY_S, Database
from promptside_daemon.store.errors import closed
from promptside_daemon.store.migrations import PROJECT
from promptside_daemon.store.rows import (
    Append,
    Appended,
    AttemptRow,
    Conflict,
    Counts,
    Existing,
    JournalRow,
    RuleRow,
    TaskRow,
)

Results = list[Appended | Existing | Conflict]
"""What became of each append of a batch, in its order."""
Settle = Callable[[Results], Awaitable[None] | None]
"""Hears what became of a batch; what it answers with is waited for before any reader is told."""


class ProjectStore:
    """A project's database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._head = 0
        self._written = 0
        self._settling = 0
        self._moved = asyncio.Event()
        self._closed = False

    @classmethod
    async def open(cls, path: Path, busy_s: float = BUSY_S) -> Self:
        """Raises a StoreFault, which concerns this project only."""
        store = cls(await Database.open(path, PROJECT, busy_s))
        try:
            await store.find_head()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Let go of the file; who waits in `wait_past` gets StoreClosed."""
        self._closed = True
        self._moved.set()
        await self._database.close()

    # --- writing ----------------------------------------------------------------------------------------

    async def append(self, batch: Sequence[Append], settle: Settle = lambda _: None) -> Results:
        """Write a batch as one commit, and answer in its order when it is on the disk.

        `settle` hears the results before any reader is woken, and no reader is told of these facts before
        what it answers with is done: whoever is woken, finds what it has made of them.
        Each stands for itself: one that conflicts leaves nothing, and the others go through. A StoreFault
        means that none is written. Cancelled means unknown: the commit goes on (see Database.write).
        """
        for one in batch:
            validate(one)
        if not batch:
            return []

        def committed(written: tuple[Results, int]) -> Awaitable[None] | None:
            follows = settle(written[0])
            if follows is None:
                self._advance(written[1])
                return None
            return self._settled(follows, written[1])

        results, _ = await self._database.write(
            "save changes", lambda connection: write_batch(connection, batch), committed
        )
        return results

    async def mark_removed(self, attempts: Sequence[str]) -> None:
        """Note that the directories of these attempts are gone.

        Called after they were deleted, so that it works on a full disk, and again where a crash came between.
        """
        await self._database.write(
            "note what was removed",
            lambda connection: (
                connection.executemany(
                    "update attempts set removed = 1 where id = ?", [(attempt,) for attempt in attempts]
                ).rowcount
            ),
        )

    # --- following --------------------------------------------------------------------------------------

    @property
    def head(self) -> int:
        """The last fact that this process knows of; 0 before the first."""
        return self._head

    async def find_head(self) -> int:
        """The last fact in the file, whoever wrote it."""
        rows = await self._database.read("read the journal", "select max(seq) from journal")
        self._advance(rows[0][0] or 0)
        return self._head

    async def wait_past(self, seq: int) -> None:
        """Return as soon as there is a fact after `seq`, at once if there is one; any number may wait."""
        while self._head <= seq:
            if self._closed:
                raise closed(self._database.path, "follow the project")
            await self._moved.wait()

    async def changed_since(self, cursor: int, limit: int) -> list[TaskRow]:
        """Tasks that changed after `cursor`, each once and whole, least recently changed first.

        The last one's `seq` is the next cursor.
        """
        return await self._tasks(f"{_TASKS} where seq > ? order by seq limit ?", cursor, limit)

    async def facts_since(self, cursor: int, limit: int) -> list[JournalRow]:
        """Facts after `cursor`, in order; the last one's `seq` is the next cursor."""
        rows = await self._database.read(
            "read the journal",
            "select seq, at, task, kind, body from journal where seq > ? order by seq limit ?",
            cursor,
            limit,
        )
        await self._tellable(rows)
        return [JournalRow(**dict(row)) for row in rows]

    async def facts_of(self, task: int) -> list[JournalRow]:
        """Every fact of one task, in order: what it was at any time can be replayed from them."""
        rows = await self._database.read(
            "read the journal",
            "select seq, at, task, kind, body from journal where task = ? order by seq",
            task,
        )
        return [JournalRow(**dict(row)) for row in rows]

    # --- looking up -------------------------------------------------------------------------------------

    async def load(self, task: int) -> TaskRow | None:
        rows = await self._tasks(f"{_TASKS} where id = ?", task)
        return rows[0] if rows else None

    async def by_key(self, key: str) -> TaskRow | None:
        """The task that was made with a client's key."""
        rows = await self._tasks(f"{_TASKS} where key = ?", key)
        return rows[0] if rows else None

    async def next_task(self) -> int:
        """The id that the next new task must have; they count 1, 2, 3 … without a gap."""
        rows = await self._database.read("read the tasks", "select coalesce(max(id), 0) + 1 from tasks")
        return int(rows[0][0])

    async def open_tasks(self) -> list[TaskRow]:
        """Every task that is neither completed, failed nor archived, or whose agent is still ending, by id."""
        return await self._tasks(
            f"{_TASKS} where state not in ('completed', 'failed', 'archived') or running > 0 order by id"
        )

    async def tasks(
        self, *, state: str = "", work_type: str = "", limit: int = 0, offset: int = 0
    ) -> list[TaskRow]:
        """Tasks, last changed first; an empty filter takes all, limit 0 has no limit."""
        return await self._tasks(
            f"{_TASKS} where (? = '' or state = ?) and (? = '' or work_type = ?)"
            " order by seq desc limit ? offset ?",
            state,
            state,
            work_type,
            work_type,
            limit or -1,
            offset,
        )

    async def counts(self) -> Counts:
        rows = await self._database.read(
            "count the tasks",
            "select count(*) as tasks, count(*) filter (where waiting > 0) as waiting,"
            " count(*) filter (where running > 0) as running from tasks where state != 'archived'",
        )
        return Counts(**dict(rows[0]))

    async def rules(self) -> list[RuleRow]:
        """Permissions given for good, in the order in which they were given."""
        rows = await self._database.read(
            "read the permissions",
            "select id, rule, task, stage, decision, by, client, at from rules order by id",
        )
        return [RuleRow(**dict(row)) for row in rows]

    async def attempts(self, task: int) -> list[AttemptRow]:
        """A task's attempts, as they came."""
        return await self._attempts(f"{_ATTEMPTS} where task = ? order by rowid", task)

    async def removable(self, before: float | None = None) -> list[AttemptRow]:
        """Attempts of finished tasks whose directories may go, the oldest first (DA-9).

        With `before` only those that ended earlier; without it all of them, for a limit on the total size.
        """
        return await self._attempts(
            f"{_ATTEMPTS} where removed = 0 and (? is null or coalesce(ended, started, 0) < ?)"
            f" and task in ({_FINISHED})"
            " order by coalesce(ended, started, 0), rowid",
            before,
            before,
        )

    async def _settled(self, follows: Awaitable[None], head: int) -> None:
        self._settling += 1
        try:
            await follows
        finally:
            self._settling -= 1
            self._advance(head)

    def _advance(self, head: int) -> None:
        self._written = max(self._written, head)
        if not self._settling and self._written > self._head:
            self._head = self._written
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    async def _tellable(self, rows: Sequence[sqlite3.Row]) -> None:
        """Wait for what belongs to a commit that a reader has seen before it was settled."""
        if max((row["seq"] for row in rows), default=0) > self._head:
            await self._database.written()

    async def _tasks(self, statement: str, *parameters: object) -> list[TaskRow]:
        rows = await self._database.read("read the tasks", statement, *parameters)
        await self._tellable(rows)
        return [TaskRow(**dict(row)) for row in rows]

    async def _attempts(self, statement: str, *parameters: object) -> list[AttemptRow]:
        rows = await self._database.read("read the attempts", statement, *parameters)
        return [AttemptRow(**{**dict(row), "removed": bool(row["removed"])}) for row in rows]


_TASKS = (
    "select id, version, seq, key, state, waiting, running, title, priority, work_type, created, changed,"
    " body from tasks"
)
_ATTEMPTS = (
    "select id, task, stage, n, status, started, ended, input_tokens, output_tokens, cost_usd, duration_s,"
    " removed from attempts"
)
_FINISHED = "select id from tasks where state in ('completed', 'failed', 'archived')"
