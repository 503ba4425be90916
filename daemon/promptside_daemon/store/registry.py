"""Which projects there are, where, and which of them the person trusts (ST-1, DA-5)."""

from __future__ import annotations

import sqlite3
from pathlib import Path, PurePath
from typing import Self

from msgspec import Struct

from promptside_daemon.store.connection import BUSY_S, Database
from promptside_daemon.store.migrations import REGISTRY


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A registered directory; `path` is absolute, with symbolic links resolved."""

    id: str
    name: str
    path: str
    added: float
    trusted_hash: str | None = None
    """The inventory that the person trusted; anything else is not trusted."""
    trusted_at: float | None = None
    trusted_by: str | None = None


class Registry:
    """The registry database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: Path, busy_s: float = BUSY_S) -> Self:
        """Raises a StoreFault."""
        return cls(await Database.open(path, REGISTRY, busy_s))

    async def close(self) -> None:
        await self._database.close()

    async def add(self, project: ProjectRow) -> ProjectRow:
        """Register a directory; one that is registered already stays as it was, and is returned."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "insert into projects (id, name, path, added, trusted_hash, trusted_at, trusted_by)"
                " values (?, ?, ?, ?, ?, ?, ?) on conflict (path) do nothing",
                (
                    project.id,
                    project.name,
                    project.path,
                    project.added,
                    project.trusted_hash,
                    project.trusted_at,
                    project.trusted_by,
                ),
            )

        await self._database.write("add the project", work)
        rows = await self._database.read("add the project", f"{_PROJECTS} where path = ?", project.path)
        # Nothing to find means that it was removed again in between, which is as good as removed after.
        return _project(rows[0]) if rows else project

    async def projects(self) -> tuple[ProjectRow, ...]:
        """All projects, in the order in which they were added."""
        rows = await self._database.read("list the projects", f"{_PROJECTS} order by added, id")
        return tuple(_project(row) for row in rows)

    async def get(self, project: str) -> ProjectRow | None:
        """By id."""
        rows = await self._database.read("look up the project", f"{_PROJECTS} where id = ?", project)
        return _project(rows[0]) if rows else None

    async def holding(self, directory: str) -> ProjectRow | None:
        """The project that `directory` lies in, the innermost of several; links are the caller's."""
        place = PurePath(directory)
        found = [row for row in await self.projects() if place.is_relative_to(row.path)]
        return max(found, key=lambda row: len(PurePath(row.path).parts), default=None)

    async def remove(self, project: str) -> bool:
        """Forget a project; its own database stays. False if there is none with this id."""
        return await self._change("remove the project", "delete from projects where id = ?", project)

    async def rename(self, project: str, name: str) -> bool:
        """False if there is none with this id."""
        return await self._change(
            "rename the project", "update projects set name = ? where id = ?", name, project
        )

    async def trust(self, project: str, digest: str, *, at: float, by: str) -> bool:
        """Note what the person trusted (DA-5); False if there is no such project."""
        return await self._change(
            "note the trust in the project",
            "update projects set trusted_hash = ?, trusted_at = ?, trusted_by = ? where id = ?",
            digest,
            at,
            by,
            project,
        )

    async def revoke_trust(self, project: str) -> bool:
        """False if there is no such project."""
        return await self._change(
            "revoke the trust in the project",
            "update projects set trusted_hash = null, trusted_at = null, trusted_by = null where id = ?",
            project,
        )

    async def _change(self, doing: str, statement: str, *parameters: object) -> bool:
        return await self._database.write(
            doing, lambda connection: connection.execute(statement, parameters).rowcount > 0
        )


_PROJECTS = "select id, name, path, added, trusted_hash, trusted_at, trusted_by from projects"


def _project(row: sqlite3.Row) -> ProjectRow:
    return ProjectRow(**dict(row))
