"""code-server, started once for a run; each story has a home, a daemon, settings and a folder of its own in it."""

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rig import editor_tools
from rig.user import User

ROOT = Path(__file__).parents[3]
VSIX = ROOT / "clients/vscode/promptside.vsix"
DEADLINE_SECONDS = 60.0
QUIET = {
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "extensions.ignoreRecommendations": True,
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
UNWANTED = (
    *("copilot", "debug-auto-launch", "debug-server-ready", "emmet", "git", "git-base", "github"),
    *("github-authentication", "microsoft-authentication", "grunt", "gulp", "jake", "npm", "ipynb"),
    *("json-language-features", "typescript-language-features", "merge-conflict", "tunnel-forwarding"),
    *("ms-vscode.js-debug", "ms-vscode.js-debug-companion", "ms-vscode.vscode-js-profile-table"),
)
"""Built-in extensions that start with each window, and that no story has to do with."""


def install(into: Path) -> Path:
    """Install the packaged extension; the directory that code-server is to be given."""
    assert VSIX.is_file(), f"{VSIX} is not built: npm run package in clients/vscode"
    extensions, data = into / "extensions", into / "data"
    words = [*_program(), "--extensions-dir", str(extensions), "--user-data-dir", str(data)]
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

    def __init__(self, extensions: Path, base: Path) -> None:
        self.base = base
        self.data = base / "data"
        self._program = base / "bin/promptside"
        self._began = 0.0
        for directory in (self._program.parent, self.data / "User", self.data / "Machine", base / "home"):
            directory.mkdir(parents=True)
        # VS Code takes the PATH of a login shell, which forgets the one it is started with.
        for name in (".profile", ".bashrc"):
            (base / "home" / name).write_text(
                f'export PATH="{self._program.parent}:$PATH"\n', encoding="utf-8"
            )
        (base / "config.yaml").write_text("auth: none\n", encoding="utf-8")
        environ = {
            "HOME": str(base / "home"),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TMPDIR": str(base),
            "EXTENSIONS_GALLERY": '{"serviceUrl": ""}',
        }
        words = [
            *_program(),
            *("--extensions-dir", str(extensions), "--user-data-dir", str(self.data)),
            *("--builtin-extensions-dir", str(_built_in(base / "built-in"))),
            *("--config", str(base / "config.yaml"), "--auth", "none", "--bind-addr", "127.0.0.1:0"),
            *("--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"),
        ]
        self._process = subprocess.Popen(
            words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.url = self._address()

    def serve(
        self,
        user: User,
        *,
        settings: dict[str, Any] | None = None,
        machine: dict[str, Any] | None = None,
        trust: bool = True,
        on_path: bool = True,
    ) -> None:
        """From now on windows are this person's: `promptside` is theirs, and so are the settings."""
        self._began = time.time()
        quiet = {**QUIET, "security.workspace.trust.enabled": not trust, **(settings or {})}
        # The window is a remote one: what the extension host reads before everything else is the machine's.
        (self.data / "Machine/settings.json").write_text(json.dumps(machine or {}), encoding="utf-8")
        (self.data / "User/settings.json").write_text(json.dumps(quiet), encoding="utf-8")
        self._program.unlink(missing_ok=True)
        if on_path:
            self._program.symlink_to(program_of(user))

    def hosts(self) -> list[int]:
        """The extension hosts of its windows."""
        return [pid for pid, words in _below(self._process.pid).items() if "--type=extensionHost" in words]

    def leave(self) -> None:
        """End the extension hosts: a closed window's would wait for hours for it to come back."""
        handles = []
        for pid in self.hosts():
            with contextlib.suppress(ProcessLookupError):
                handles.append(os.pidfd_open(pid))
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
        for handle in handles:
            if not select.select([handle], [], [], DEADLINE_SECONDS)[0]:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)

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
        """What the extension and its host have written for this person, for a test that failed."""
        found = sorted((self.data / "logs").rglob("*.log"))
        wanted = [
            path
            for path in found
            if ("Promptside" in path.name or "remoteexthost" in path.name)
            and path.stat().st_mtime >= self._began
        ]
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


def program_of(user: User) -> Path:
    """`promptside` as this person has it, whoever calls it: with their home and their daemon."""
    script = user.base / "bin/promptside"
    if not script.exists():
        script.parent.mkdir(exist_ok=True)
        given = shlex.join(f"{name}={value}" for name, value in user.environment.items())
        program = shlex.quote(str(Path(sys.executable).with_name("promptside")))
        script.write_text(f'#!/bin/sh\nexec env {given} {program} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return script


def _program() -> list[str]:
    return [str(editor_tools.node()), str(editor_tools.code_server())]


def _built_in(into: Path) -> Path:
    """The extensions that VS Code brings, without those that only cost each window a second."""
    into.mkdir()
    for there in (editor_tools.code_server().parents[2] / "lib/vscode/extensions").iterdir():
        if there.name not in UNWANTED:
            (into / there.name).symlink_to(there)
    return into


def _below(root: int) -> dict[int, str]:
    """Every process that came of this one, with what it was started as."""
    parents, words = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended while we looked
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(entry.name)] = (
                (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return {pid: words[pid] for pid in found if pid in words}
