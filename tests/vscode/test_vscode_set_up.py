"""Whatever is missing, the view and the status bar say one clear next step, and no message pops up (ED-7)."""

import json
import sys
from collections.abc import Callable

from playwright.sync_api import Locator, expect
from rig.user import User
from vscode_rig.code_server import program_of
from vscode_rig.stories import sample
from vscode_rig.workbench import Workbench

OTHER_VERSION = '''#!{python}
"""`promptside lsp` with a daemon that seems to speak another version of the protocol."""
import os, re, subprocess, sys

server = subprocess.Popen(["{program}", *sys.argv[1:]], stdout=subprocess.PIPE)
while header := server.stdout.readline():
    length = int(header.split(b":")[1])
    while server.stdout.readline().strip():
        pass
    body = re.sub(rb'"protocol":( ?)1\\b', rb'"protocol":\\g<1>9', server.stdout.read(length))
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()
'''


def test_each_first_step_is_said(user: User, open_window: Callable[..., Workbench]) -> None:
    """No program, no agent, another version: one after the other, and each is mended by what is said."""
    sample(user)
    user.environment["PROMPTSIDE_CLAUDE"] = str(user.base / "no-claude")
    window = open_window(on_path=False)
    window.open_tasks()
    side = window.page.locator(".sidebar")
    expect(side.filter(has_text="It was not found on this machine").first).to_be_visible()
    expect(_status(window, "errorBackground")).to_be_visible()
    window.picture("no-program")
    side.locator(".monaco-button", has_text="How to Install").click()
    window.see_tab("install.md")
    page = window.page.frame_locator("iframe.webview").frame_locator("#active-frame")
    expect(page.locator("h1")).to_have_text("Installing Promptside")
    window.picture("install")

    window.install_in_venv(user)
    expect(side.filter(has_text="The agent “claude” was not found").first).to_be_visible()
    expect(_status(window, "warningBackground")).to_be_visible()
    window.picture("no-agent")
    _status(window, "warningBackground").click()
    window.see_text("The Claude CLI is not there")

    wrapper = user.base / "bin/another"
    wrapper.write_text(OTHER_VERSION.format(python=sys.executable, program=program_of(user)))
    wrapper.chmod(0o755)
    machine = window.server.data / "Machine/settings.json"
    machine.write_text(json.dumps({"promptside.daemon.path": str(wrapper)}))
    expect(side.filter(has_text="of different versions").first).to_be_visible()
    expect(_status(window, "warningBackground")).to_be_visible()
    expect(window.page.locator(".notification-list-item")).to_have_count(0)
    window.picture("other-version")
    window.palette("New Task…")
    window.see_toast("This extension speaks version 1, the daemon version 9. Update the extension")

    machine.write_text(json.dumps({"promptside.agent.default": "rehearsal"}))
    expect(side.locator(".monaco-button", has_text="New Task")).to_be_visible()
    expect(_status(window, "warningBackground")).to_have_count(0)


def _status(window: Workbench, background: str) -> Locator:
    kind = "error" if background == "errorBackground" else "warning"
    return window.page.locator(f".statusbar-item.{kind}-kind", has_text="Promptside").first
