"""The server's start: nothing waits for the daemon, and nothing of the daemon is imported (P6s)."""

import asyncio
import subprocess
import sys

from rig.lsp_editor import LspEditor
from rig.user import User


def test_p6s_initialize_is_answered_without_a_daemon_and_starts_none(user: User) -> None:
    async def story() -> None:
        editor = LspEditor(user)
        await editor.start()
        try:
            answer = await editor.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
            assert answer["serverInfo"]["name"] == "promptside"
            assert not (user.data / "run").exists(), "a daemon was started before the editor was ready"
        finally:
            await editor.__aexit__()

    asyncio.run(story())


def test_the_server_never_imports_the_daemon(user: User) -> None:
    program = (
        "import sys, promptside_server.server, promptside_server.features;"
        " print([name for name in sys.modules if name.startswith('promptside_')])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=user.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "promptside_server.server" in told
    assert "promptside_daemon" not in told
    assert "promptside_cli" not in told


def test_what_prints_does_not_get_between_messages(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            # Everything that was heard so far was framed and JSON, or the editor's reader had failed.
            await editor.command("daemonStart")
            assert editor._reading is not None
            assert not editor._reading.done()

    asyncio.run(story())
