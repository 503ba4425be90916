"""What a buffer is to its file: opened from it, changed since, saved, or read again.

An editor does not say which; it is told by what stands on the disk when news of a buffer come.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pygls.uris import from_fs_path, to_fs_path

FILE_BYTES = 16 * 1024 * 1024
"""Of a file that is compared with its buffer; the daemon takes no larger document."""


class Files:
    """By uri, of open buffers."""

    def __init__(self) -> None:
        self.unsaved: set[str] = set()
        """Buffers that are not what their files are."""
        self._opened: dict[str, str] = {}
        self._reread: dict[str, str] = {}
        """Buffers that came to be what their files are: read again, unless the news of a save follows."""

    def opened(self, uri: str, text: str) -> None:
        """A buffer was opened with this text."""
        self._opened[uri] = text
        self._compare(uri, text)

    def begun_with(self, uri: str, text: str) -> str:
        """What a buffer was opened with, or read again; `text` if that was not told."""
        return self._opened.setdefault(uri, text)

    def typed(self, uri: str, text: str, *, agreed: bool) -> bool:
        """A buffer has this text now; false if that may be its file, read again, and nobody `agreed` to it yet."""
        clean = uri not in self.unsaved
        self._compare(uri, text)
        if agreed or not clean or uri in self.unsaved:
            return True
        self._reread[uri] = text
        return False

    def saved(self, uri: str) -> None:
        """The file is what the buffer is: what looked like reading again was a save."""
        self._reread.pop(uri, None)
        self.unsaved.discard(uri)

    def settle(self, uri: str) -> bool:
        """More news came, and none of a save: whether the buffer was read again before them."""
        text = self._reread.pop(uri, None)
        if text is not None:
            self._opened[uri] = text
        return text is not None

    def closed(self, uri: str) -> None:
        """The buffer is gone."""
        self._opened.pop(uri, None)
        self._reread.pop(uri, None)
        self.unsaved.discard(uri)

    def _compare(self, uri: str, text: str) -> None:
        if text == on_disk(uri):
            self.unsaved.discard(uri)
        else:
            self.unsaved.add(uri)


@lru_cache(maxsize=1024)
def path_of(uri: str) -> Path | None:
    """The file behind a uri; None if it is none.

    Links are followed once: it takes longer than most answers, and a buffer stays what it was opened from.
    """
    name = to_fs_path(uri) if uri.startswith("file:") else None
    return Path(name).resolve() if name else None


def uri_of(project: str, document: str) -> str:
    """The uri of a document of a project."""
    found: str | None = from_fs_path(str(Path(project) / document))
    assert found is not None, "a path has a uri"
    return found


def on_disk(uri: str) -> str | None:
    """What the file of a buffer says; None if there is none, or it is no text."""
    path = path_of(uri)
    try:
        if path is None or path.stat().st_size > FILE_BYTES:
            return None
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
