"""DESK.md as a file: what comes and goes beside it while it is written (ED-9)."""

import asyncio
from pathlib import Path

import pytest
from rig.inside import Inside, view
from rig.lsp_buffers import PLAIN

from promptside_daemon.world import git
from promptside_server.desk import DESK


def test_the_file_that_becomes_the_desk_is_no_part_of_the_project_s_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt that ends while it is there would be told to have made it."""
    made: list[str] = []

    def replace(new: Path, file: Path) -> Path:
        made.append(new.relative_to(tmp_path).as_posix())
        return new.rename(file)

    async def play() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            monkeypatch.setattr(Path, "replace", replace)
            editor.changed(view(tmp_path))
            async with asyncio.timeout(60):
                while not (tmp_path / DESK).exists():  # noqa: ASYNC110  # nobody tells of it
                    await asyncio.sleep(0.01)

    asyncio.run(play())
    assert made
    assert all(name.startswith(git.NOT_COMMITTED) for name in made)
