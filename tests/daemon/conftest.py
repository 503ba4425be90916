"""What the tests of the daemon share: its core in the test's own process."""

import shutil
from collections.abc import Iterator

import pytest
from rig.bench import Bench, make_bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """One project, and an agent that the test writes down; nothing of it is left behind."""
    made = make_bench(monkeypatch)
    try:
        yield made
    finally:
        made.sweep()
        shutil.rmtree(made.base, ignore_errors=True)
