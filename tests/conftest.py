"""What tests need of the outside: a person with a home of their own, the real `claude`, and a scripted model."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rig.claude_binary import claude_binary
from rig.messages_api import MessagesAPI
from rig.user import User, new_user


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
