"""Texts that a person may read and not change: virtual documents where the editor has them, else files.

A file of this kind lies under the cache directory with mode 0444; it can be made anew at any time.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from msgspec import Struct
from pygls.uris import from_fs_path, to_fs_path

from promptside_protocol import paths

if TYPE_CHECKING:
    from promptside_server.server import Server

SCHEME = "promptside"


class Shown(Struct, frozen=True, kw_only=True):
    """What a command opened, or the client is to open: `shown` is whether the editor has done so."""

    uri: str
    shown: bool = False


def place(project: str, name: str) -> Path:
    """Where the file of a project with this name is; it need not be there."""
    digest = hashlib.sha256(project.encode()).hexdigest()[:8]
    return paths.cache_dir() / f"{Path(project).name}-{digest}" / name


def write(path: Path, text: str) -> None:
    """Put a text there, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.write_text(text, encoding="utf-8", errors="replace")
    new.chmod(0o444)
    new.replace(path)


def uri_of(path: Path) -> str:
    """A file as editors name it."""
    return from_fs_path(str(path)) or path.as_uri()


async def show(server: Server, uri: str, *, focus: bool = True) -> Shown:
    """Open a document in the editor, if it lets us; the answer says whether it did."""
    if not server.editor.show_document:
        if not server.editor.ours:
            server.say(types.MessageType.Info, f"Open {to_fs_path(uri) or uri}")
        return Shown(uri=uri)
    answer = await server.window_show_document_async(types.ShowDocumentParams(uri=uri, take_focus=focus))
    return Shown(uri=uri, shown=answer.success)
