"""VS Code as people have it: code-server in a headless Chromium, with our extension and a daemon of its own."""

import asyncio
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.user import User

sys.path.insert(0, str(Path(__file__).parent))

from vscode_rig.code_server import CodeServer, install
from vscode_rig.workbench import Workbench, chromium

PLAYWRIGHT = pytest.StashKey[asyncio.AbstractEventLoop | None]()
"""The loop of the browser that is open, if one is."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Playwright's loop passes for running as long as the browser is open; the tests of others have loops of their own.

    Its own methods put that mark there again and again, by the same function.
    """
    if not item.path.is_relative_to(Path(__file__).parent):  # this is asked for each test, wherever it lies
        return (yield)
    stash = item.session.stash
    asyncio._set_running_loop(stash.get(PLAYWRIGHT, None))
    try:
        return (yield)
    finally:
        stash[PLAYWRIGHT] = asyncio._get_running_loop()
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def code_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    """One server for all stories, with the extension as `code --install-extension` leaves it."""
    extensions = install(tmp_path_factory.mktemp("extensions"))
    server = CodeServer(extensions, tmp_path_factory.mktemp("code-server"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all stories, which keeps what it has loaded and compiled."""
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        loop = asyncio.get_running_loop()
        yield browser
        asyncio._set_running_loop(loop)  # the last test of all may be somebody else's


@pytest.fixture
def open_window(
    browser: Any, code_server: CodeServer, user: User, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Workbench]]:
    """Opens the person's project in a window, or a `workspace` of several; a picture of it is kept."""
    made: list[Workbench] = []

    def start(**settings: Any) -> Workbench:
        size = {name: settings.pop(name) for name in ("width", "height") if name in settings}
        opened = settings.pop("workspace", user.project)
        code_server.serve(user, **settings)
        made.append(Workbench(browser, code_server, opened, request.node.name, **size))
        return made[-1]

    yield start
    for window in made:
        window.close()
    code_server.leave()
