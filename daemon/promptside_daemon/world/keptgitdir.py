"""The git directory of our own: its files, and the ignore rules that stand in no .gitignore."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from . import git
from .git import Repository
from .tree import write_once


def prepare(directory: Path, object_format: str) -> None:
    """Makes the git directory, or mends it; doing it again changes nothing."""
    for folder in ("refs", "info", "rules"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    write_once(directory / "HEAD", b"ref: refs/heads/none\n")
    # Highest of all attributes: every file is kept byte for byte, whatever a .gitattributes says.
    write_once(
        directory / "info" / "attributes", b"* -text -eol -crlf -filter -ident -working-tree-encoding\n"
    )
    extension = f"[extensions]\n\tobjectFormat = {object_format}\n" if object_format != "sha1" else ""
    config = (
        "[core]\n"
        f"\trepositoryFormatVersion = {1 if extension else 0}\n"
        "\tbare = false\n\tfileMode = true\n\tsymlinks = true\n\tautocrlf = false\n\tprotectNTFS = false\n"
        "\tlogAllRefUpdates = false\n\thooksPath = /dev/null\n\tfsmonitor = false\n"
        "\tattributesFile = /dev/null\n"
        f"[gc]\n\tauto = 0\n{extension}"
    )
    write_once(directory / "config", config.encode())


async def save_rules(repository: Repository, place: str, keep: Path, env: Mapping[str, str] | None) -> str:
    """The person's ignore rules, then the repository's, then ours: of two that match the later wins."""
    base = git.environment(env)
    # In our own directory, so that only the person's and the machine's settings are asked.
    asked = await git.call(
        ["config", "--type=path", "--get", "core.excludesFile"],
        cwd=keep,
        env=base | {"GIT_DIR": str(keep / "git")},
        expect=None,
    )
    if asked.stdout:
        personal = Path(os.fsdecode(asked.stdout.rstrip(b"\n")))
    else:
        personal = Path(base.get("XDG_CONFIG_HOME") or f"{base.get('HOME', '')}/.config") / "git" / "ignore"
    sources = (personal, repository.common / "info" / "exclude")

    def save() -> str:
        ours = os.fsencode("\n".join(git.patterns(place)))
        content = b"\n".join([*(_plain_content(path) for path in sources), ours, b""])
        filename = hashlib.sha256(content).hexdigest()
        write_once(keep / "git" / "rules" / filename, content)
        return filename

    return await asyncio.to_thread(save)


def copy_rules_above(top: Path, place: str, room: Path) -> None:
    """The .gitignore files between the top and the project: no checkpoint of the project has them."""
    for above in Path(place).parents:
        content = _plain_content(top / above / ".gitignore")
        (room / above / ".gitignore").write_bytes(content)


def _plain_content(path: Path) -> bytes:
    """Empty where there is no file of sensible size; a FIFO or a device is not waited for."""
    try:
        found = path.stat()
        return path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size < 1 << 20 else b""
    except OSError:
        return b""
