"""Recorded runs of the real Claude CLI, with how each ended; `recorded` runs a test once for each."""

import lzma
import tarfile
import tomllib
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

FIXTURES = Path(__file__).parents[3] / "fixtures" / "transcripts"


class Recorded(Struct, frozen=True, kw_only=True):
    """A transcript, its exit (below zero: a signal) and the endings that its run and its turns have."""

    name: str
    data: bytes
    run: str
    turns: tuple[str, ...]
    exit: int
    stderr: str
    schema: bool

    @property
    def lines(self) -> list[tuple[bytes, int]]:
        """Each whole line with the offset behind it."""
        found, at = [], 0
        for line in self.data.split(b"\n")[:-1]:
            at += len(line) + 1
            found.append((line, at))
        return found


@cache
def recordings() -> dict[str, Recorded]:
    endings = tomllib.loads((FIXTURES / "outcomes.toml").read_text("utf-8"))
    with lzma.open(FIXTURES / "transcripts.tar.xz") as packed, tarfile.open(fileobj=packed) as archive:
        data = {Path(member.name).stem: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]  # all are plain files
    assert data.keys() == endings.keys()
    return {
        name: Recorded(
            name=name,
            data=data[name],
            run=ending["run"],
            turns=tuple(ending["turns"]),
            exit=ending["exit"],
            stderr=ending.get("stderr", ""),
            schema=ending.get("schema", False),
        )
        for name, ending in endings.items()
    }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recorded" in metafunc.fixturenames:
        runs = recordings()
        metafunc.parametrize("recorded", runs.values(), ids=runs.keys())


@pytest.fixture
def transcripts() -> dict[str, Recorded]:
    """All recorded runs, by name."""
    return recordings()
