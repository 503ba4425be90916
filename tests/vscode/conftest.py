"""VS Code as people have it: code-server in a headless Chromium, with the packaged extension and a daemon of its own.

Collected only where PROMPTSIDE_VSCODE names the directory with `node_modules/code-server`; Playwright is needed too.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rig.user import User

if TYPE_CHECKING:
    from vscode_rig.code_server import CodeServer
    from vscode_rig.workbench import Workbench

WHERE = os.environ.get("PROMPTSIDE_VSCODE")
if WHERE is None:
    collect_ignore_glob = ["test_*"]
else:
    import sys

    sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the extension as `code --install-extension` leaves it."""
    from vscode_rig.code_server import install

    assert WHERE is not None
    return install(Path(WHERE), tmp_path_factory.mktemp("extensions"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from vscode_rig.workbench import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def code_server(user: User, extensions: Path) -> Iterator[Callable[..., "CodeServer"]]:
    """Starts a server for this person; what was started ends with the test."""
    from vscode_rig.code_server import CodeServer

    assert WHERE is not None
    made: list[CodeServer] = []

    def start(**settings: Any) -> CodeServer:
        made.append(CodeServer(Path(WHERE), extensions, user, **settings))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def open_window(
    browser: Any, code_server: Callable[..., "CodeServer"], user: User, request: pytest.FixtureRequest
) -> Iterator[Callable[..., "Workbench"]]:
    """Opens the person's project in a window; a picture of it is kept when the test fails."""
    from vscode_rig.workbench import Workbench

    made: list[Workbench] = []

    def start(**settings: Any) -> Workbench:
        server = code_server(**settings)
        made.append(Workbench(browser, server, user.project, request.node.name))
        return made[-1]

    yield start
    for window in made:
        window.close()
