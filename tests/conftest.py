"""What tests need of the outside: a person with a home of their own, the real `claude`, and a scripted model.

A run in which something is left behind has failed, whatever its tests say.
"""

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from rig import scratch
from rig.claude_binary import claude_binary
from rig.messages_api import MessagesAPI
from rig.user import User, new_user

# A machine at work on other things is no reason to fail, and no run depends on what an earlier one has found.
settings.register_profile(
    "suite", deadline=None, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """A place for the run; the workers of pytest-xdist share the one of the process that started them."""
    os.umask(0o022)  # what tests write down must not depend on who runs them
    if not hasattr(config, "workerinput"):
        scratch.begin()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """When everything else is over, also the workers: look what still lives."""
    yield
    if hasattr(session.config, "workerinput"):
        return
    places = session.config._tmp_path_factory._basetemp  # type: ignore[attr-defined]  # made only where it is wanted
    left = scratch.end(*([places] if places is not None else []))
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        sys.stderr.write("\n".join(("", "Left behind, and ended now:", *left, "")))


@pytest.fixture
def user() -> Iterator[User]:
    """A person who types `promptside`, in an environment with nothing of ours in it."""
    yield from new_user()


@pytest.fixture(scope="session")
def claude() -> Path:
    """The real Claude CLI."""
    return claude_binary()


@pytest.fixture
def api(user: User, claude: Path) -> Iterator[MessagesAPI]:
    """A model that says what the test scripts; the person's `claude` is the real one and talks to it."""
    with MessagesAPI() as api:
        user.environment |= {
            "ANTHROPIC_API_KEY": "dummy-key",
            "ANTHROPIC_BASE_URL": api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "PROMPTSIDE_CLAUDE": str(claude),
        }
        yield api
    asked = [request.last[:200] for request in api.unexpected]
    assert not asked, f"the model was asked what the test has no answer for: {asked}"
