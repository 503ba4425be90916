"""The colours and fonts that VS Code gives a webview, in each of its four kinds of theme, kept for `page.py`.

`PYTHONPATH=tests:tests/vscode python -m panel_scenes.take_themes` takes them from a window, after a change of the
variables that the panel's sheet uses, or of VS Code's version. The extension must be built.
"""

import json
import re
import tempfile
from pathlib import Path

from rig import scratch
from rig.user import new_user
from vscode_rig.code_server import CodeServer, install
from vscode_rig.workbench import Workbench, chromium

from panel_scenes.page import DIST, THEMES, USED

TITLES = {
    "dark": "Dark Modern",
    "light": "Light Modern",
    "high-contrast": "Dark High Contrast",
    "high-contrast-light": "Light High Contrast",
}
TAKE = """(html, names) => {
    const sheet = document.getElementById('_defaultStyles').textContent;
    const all = new Set([...names, ...[...sheet.matchAll(/var\\((--[\\w-]+)/g)].map(found => found[1])]);
    const variables = Object.fromEntries([...all].map(name => [name, html.style.getPropertyValue(name)]));
    return { body: document.body.className, sheet, variables };
}"""


def take(base: Path) -> None:
    """Open a window, and write down what its panel has in each theme."""
    names = sorted(set(re.findall(USED, (DIST / "panel.css").read_text(encoding="utf-8"))))
    server = CodeServer(install(base), base / "server")
    try:
        with chromium(base / "browser") as browser:
            for user in new_user():
                user.commit_all()
                server.serve(user)
                window = Workbench(browser, server, user.project, "themes")
                window.open_tasks()
                window.palette("Open Pipeline Panel")
                panel = window.page.frame_locator("iframe.webview.ready").frame_locator("#active-frame")
                for name, title in TITLES.items():
                    window.theme(title)
                    panel.locator(f"body[data-vscode-theme-kind=vscode-{name}]").wait_for()
                    taken = panel.locator("html").evaluate(TAKE, names)
                    text = json.dumps(taken, indent=1, sort_keys=True) + "\n"
                    (THEMES / f"{name}.json").write_text(text, encoding="utf-8")
                window.close()
                server.leave()
    finally:
        server.close()


if __name__ == "__main__":
    scratch.begin()
    try:
        with tempfile.TemporaryDirectory() as place:
            take(Path(place))
    finally:
        scratch.end()  # also what a failure has left running
