"""ST-1: projects are added, listed, renamed, removed, and found by a directory in them; DA-5: trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from promptside_daemon.store.registry import ProjectRow, Registry


def within(path: Path, story: Callable[[Registry], Awaitable[None]]) -> None:
    async def main() -> None:
        registry = await Registry.open(path)
        try:
            await story(registry)
        finally:
            await registry.close()

    asyncio.run(main())


def project(number: str, path: str, **others: object) -> ProjectRow:
    return ProjectRow(id=number, name=f"Project {number}", path=path, added=float(len(path)), **others)  # type: ignore[arg-type]  # the caller names fields of ProjectRow


def test_projects_come_and_go(tmp_path: Path) -> None:
    async def story(registry: Registry) -> None:
        one, two = project("a1", "/one"), project("b2", "/other two")
        assert await registry.add(two) == two
        assert await registry.add(one) == one
        assert await registry.projects() == (one, two)
        assert await registry.get("b2") == two
        assert await registry.rename("b2", "A better name “quoted” '") is True
        renamed = await registry.get("b2")
        assert renamed is not None
        assert renamed.name == "A better name “quoted” '"
        assert await registry.remove("b2") is True
        assert await registry.get("b2") is None
        assert await registry.projects() == (one,)
        for gone in (registry.remove("b2"), registry.rename("b2", "x"), registry.revoke_trust("b2")):
            assert await gone is False

    within(tmp_path / "registry.db", story)


def test_a_directory_is_registered_once(tmp_path: Path) -> None:
    async def story(registry: Registry) -> None:
        first = await registry.add(project("a1", "/one"))
        assert await registry.add(project("b2", "/one")) == first
        assert await registry.projects() == (first,)

    within(tmp_path / "registry.db", story)


def test_the_innermost_project_holds_a_directory(tmp_path: Path) -> None:
    async def story(registry: Registry) -> None:
        outer = await registry.add(project("a1", "/home/ada/app"))
        inner = await registry.add(project("b2", "/home/ada/app/vendor/lib"))
        held = {
            "/home/ada/app": outer,
            "/home/ada/app/src": outer,
            "/home/ada/app/vendor/lib": inner,
            "/home/ada/app/vendor/lib/deep/er": inner,
            "/home/ada/application": None,
            "/work": None,
            "/": None,
        }
        assert {place: await registry.holding(place) for place in held} == held
        root = await registry.add(project("c3", "/"))
        assert await registry.holding("/work") == root

    within(tmp_path / "registry.db", story)


def test_trust_is_kept_and_revoked(tmp_path: Path) -> None:
    async def story(registry: Registry) -> None:
        await registry.add(project("a1", "/one"))
        assert await registry.trust("a1", "5eed", at=12.5, by="ada") is True
        assert await registry.trust("zz", "5eed", at=12.5, by="ada") is False

    async def again(registry: Registry) -> None:
        trusted = project("a1", "/one", trusted_hash="5eed", trusted_at=12.5, trusted_by="ada")
        assert await registry.projects() == (trusted,)
        assert await registry.revoke_trust("a1") is True
        assert await registry.projects() == (project("a1", "/one"),)

    within(tmp_path / "registry.db", story)
    within(tmp_path / "registry.db", again)
