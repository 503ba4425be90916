"""What tests need of the outside: a person with a home of their own, the real `claude`, and a scripted model.

A run in which something is left behind has failed, whatever its tests say.
"""

import itertools
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


COUNT = Path(__file__).parent / "count.txt"
"""How many tests there are. A run of the whole that ran another number of them has failed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="this is a run of everything: count the tests")


def pytest_configure(config: pytest.Config) -> None:
    """A place for the run; the workers of pytest-xdist share the one of the process that started them."""
    os.umask(0o022)  # what tests write down must not depend on who runs them
    if not hasattr(config, "workerinput"):
        scratch.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where some run side by side, strew the tests that open a window among the others.

    A window takes more than one core for half a minute: three at once, which they were when all came last, starve each
    other. Each worker is given one piece of the order, and what it has not begun goes to those that have nothing left.
    """
    if not hasattr(config, "workerinput"):
        return
    windows = [item for item in items if "open_window" in getattr(item, "fixturenames", ())]
    others = [item for item in items if "open_window" not in getattr(item, "fixturenames", ())]
    # Between two files only: what a file has made for all of its tests would be made anew.
    files = [list(group) for _, group in itertools.groupby(others, lambda item: item.path)]
    strewn: list[pytest.Item] = []
    begun = 0
    for number, file in enumerate(files, 1):
        due = len(windows) * number // len(files)
        strewn += [*windows[begun:due], *file]
        begun = due
    items[:] = strewn or windows


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
    if session.config.getoption("whole"):
        _count(session)


def _count(session: pytest.Session) -> None:
    """Say how many tests were run, beside how many there have to be."""
    reports = session.config.pluginmanager.get_plugin("terminalreporter").stats
    run, skipped = (sum(len(reports.get(kind, ())) for kind in kinds) for kinds in (RUN, ("skipped",)))
    kept = int(COUNT.read_text(encoding="utf-8"))
    sys.stdout.write(f"\n{run} tests were run and {skipped} skipped; tests/{COUNT.name} has {kept} in all.\n")
    if run + skipped != kept and session.exitstatus == pytest.ExitCode.OK:
        sys.stdout.write("Some were left out or are new. If that is right, write the new number there.\n")
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


RUN = ("passed", "failed", "error", "xfailed", "xpassed")


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
