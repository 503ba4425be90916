"""Real daemons for clients: tiny ones, in a home of their own."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tiny_home", TESTS / "daemon" / "tiny_home.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def home(tiny: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tiny.tiny_home(monkeypatch) as directory:
        yield directory
