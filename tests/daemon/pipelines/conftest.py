"""A person and a project of their own for each test of pipelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from promptside_daemon.pipelines.load import Loaded, load

Write = Callable[..., Loaded]


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's configuration directory."""
    monkeypatch.setenv("PROMPTSIDE_HOME", str(tmp_path / "person"))
    return tmp_path / "person" / "config"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "a project"
    directory.mkdir()
    return directory


@pytest.fixture
def loaded(tmp_path: Path) -> Write:
    """Writes a pipeline file, and prompts beside it by name, and loads it."""

    def write(text: str | bytes, **prompts: str) -> Loaded:
        directory = tmp_path / "pipelines"
        (directory / "prompts").mkdir(parents=True, exist_ok=True)
        for name, content in prompts.items():
            (directory / "prompts" / f"{name}.md.j2").write_text(content)
        file = directory / "mine.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(file, "user")

    return write
