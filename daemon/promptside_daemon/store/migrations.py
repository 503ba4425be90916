"""The layouts of the databases, and the numbered steps that lead from each released one to ours.

Steps only ever go forward and are never edited after a release; all that are missing run in one transaction,
after a copy of the file has been put beside it (DA-7).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from msgspec import Struct

from promptside_daemon.store.errors import damaged, too_new


class Layout(Struct, frozen=True, kw_only=True):
    """One kind of database; step N of `steps`, counted from 1, makes version N out of the one before."""

    name: str
    """For sentences: `the registry`, `a project`."""
    application: int
    """SQLite's application_id, so that a file put in the wrong place is recognised."""
    steps: tuple[tuple[str, ...], ...]
    """The statements of each step."""

    @property
    def version(self) -> int:
        return len(self.steps)


REGISTRY = Layout(
    name="the registry",
    application=0x50735267,  # "PsRg"
    steps=(
        (
            """
            create table projects (
                id text primary key,
                name text not null,
                path text not null unique,
                added real not null,
                trusted_hash text,
                trusted_at real,
                trusted_by text
            )
            """,
        ),
    ),
)

PROJECT = Layout(
    name="a project",
    application=0x50735072,  # "PsPr"
    steps=(
        (
            # `autoincrement`: a cursor a client came back with must never name another fact.
            """
            create table journal (
                seq integer primary key autoincrement,
                at real not null,
                task integer not null,
                kind text not null,
                body blob not null
            )
            """,
            """
            create table tasks (
                id integer primary key,
                version integer not null,
                seq integer not null,
                key text not null unique,
                state text not null,
                waiting integer not null,
                running integer not null,
                title text not null,
                priority integer not null,
                work_type text not null,
                created real not null,
                changed real not null,
                body blob not null
            )
            """,
            "create unique index tasks_seq on tasks (seq)",
            "create index tasks_state on tasks (state)",
            """
            create table attempts (
                id text primary key,
                task integer not null references tasks (id),
                stage text not null,
                n integer not null,
                status text not null,
                started real,
                ended real,
                input_tokens integer,
                output_tokens integer,
                cost_usd real,
                duration_s real,
                removed integer not null default 0
            )
            """,
            "create index attempts_task on attempts (task)",
            """
            create table rules (
                id integer primary key autoincrement,
                rule text not null,
                task integer not null,
                stage text not null,
                decision text not null,
                by text not null,
                client text not null,
                at real not null,
                unique (rule, task, stage, decision)
            )
            """,
        ),
    ),
)


def migrate(connection: sqlite3.Connection, path: Path, layout: Layout, doing: str) -> None:
    """Bring the open database at `path` to the layout's version; a failure leaves it as it was."""
    version = _version(connection)
    if version > layout.version:
        raise too_new(path, doing, version, layout.version)
    application = connection.execute("pragma application_id").fetchone()[0]
    if application != layout.application and (version or _tables(connection)):
        raise damaged(path, doing, f"it is not the database of {layout.name}")
    if version == layout.version:
        return
    if version:
        _copy(connection, path.with_name(f"{path.name}.v{version}"))
    connection.execute("begin immediate")
    try:
        # Read again: another process may have come first while this one waited for the lock.
        for step in layout.steps[_version(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"pragma application_id = {layout.application}")
        connection.execute(f"pragma user_version = {layout.version}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


def _tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select count(*) from sqlite_master").fetchone()[0])


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    """Put an exact copy at `target`, whole or not at all; what still is in the -wal file is in it."""
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
    try:
        copy = sqlite3.connect(partial)
        try:
            connection.backup(copy)
        finally:
            copy.close()
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
