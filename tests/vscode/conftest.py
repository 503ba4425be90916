"""VS Code as people have it: code-server in a headless Chromium, with our extension and a daemon of its own."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rig.user import User

sys.path.insert(0, str(Path(__file__).parent))

from vscode_rig.code_server import CodeServer, install
from vscode_rig.workbench import Workbench, chromium


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
        yield browser


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
