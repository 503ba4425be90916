"""Tests written against VS Code's own API, run in its extension host: what no window needs to show.

A built VS Code takes them only with a switch that code-server cannot set; it is set where the page reads it.
"""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from rig.short_pipeline import short
from rig.user import User
from vscode_rig.workbench import Workbench

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients/vscode"
GOLDEN = ROOT / "tests/protocol/golden/notice.taskChanged.json"
TESTS = 29
SWITCH = """
const get = Element.prototype.getAttribute;
Element.prototype.getAttribute = function (name) {
  const value = get.call(this, name);
  if (this.id !== 'vscode-workbench-web-configuration' || name !== 'data-settings') return value;
  const settings = JSON.parse(value);
  settings.developmentOptions = { ...settings.developmentOptions, enableSmokeTestDriver: true };
  return JSON.stringify(settings);
};
"""


def test_in_the_extension_host(user: User, open_window: Callable[..., Workbench], tmp_path: Path) -> None:
    extension = tmp_path / "extension"
    shutil.copytree(CLIENT, extension, ignore=shutil.ignore_patterns("node_modules", "src", "*.vsix", "test"))
    _bundle(extension / "dist/host.js")
    shutil.copy(GOLDEN, user.project / "golden.json")
    user.commit_all()
    short(user)
    window = open_window()
    found = user.project / "results.json"
    host = window.server.url.removeprefix("http://")
    there = f"vscode-remote://{host}{quote(str(extension))}"
    payload = [["extensionDevelopmentPath", there], ["extensionTestsPath", f"{there}/dist/host.js"]]
    window.page.add_init_script(SWITCH)
    query = urlencode({"folder": str(user.project), "payload": json.dumps(payload)})
    window.page.goto(f"{window.server.url}/?{query}")
    for number in range(1, TESTS + 1):  # each may take the time that a step of a story may take
        window.until(lambda number=number: found.exists() and len(_told(found)["results"]) >= number)
    assert _told(found)["of"] == TESTS
    results = _told(found)["results"]
    failed = {name: said for name, said in results.items() if said != "ok"}
    assert not failed, "\n".join(f"{name}\n    {said}" for name, said in failed.items())


def _told(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _bundle(into: Path) -> None:
    words = ["--bundle", "--platform=node", "--format=cjs", "--external:vscode", f"--outfile={into}"]
    subprocess.run(
        [CLIENT / "node_modules/.bin/esbuild", ROOT / "tests/vscode/extension_host/index.ts", *words],
        check=True, capture_output=True,
    )  # fmt: skip
