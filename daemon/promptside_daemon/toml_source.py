"""TOML files that people write: read with limits, and every key and value with its place in the text.

`tomllib` gives no places for what is well-formed but wrong, so a scanner of our own finds them. It works on
any text, well-formed or not, without recursion, and so also keeps from `tomllib` what would exhaust it.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from promptside_protocol.views import FaultView

KeyPath = tuple[str | int, ...]
"""Names of keys, and positions in arrays of tables: `("stage", 0, "gate")`."""

MAX_BYTES = 256 * 1024
MAX_SENTENCE = 500
MAX_DEPTH = 32
"""Of tables, arrays and dotted keys; nothing that is read here needs more than eight."""


class Place(Struct, frozen=True):
    """Line and column, both from 1; columns count characters."""

    line: int
    column: int


class Document(Struct, frozen=True, kw_only=True):
    """A TOML file that is well-formed."""

    file: str
    data: dict[str, Any]
    keys: Mapping[KeyPath, Place]
    values: Mapping[KeyPath, Place]
    blocks: frozenset[KeyPath]
    """Values that are multi-line strings whose text begins on the line after the quotes."""

    def fault(
        self,
        path: KeyPath,
        sentence: str,
        hint: str = "",
        *,
        severity: Literal["error", "warning"] = "error",
        at: Literal["key", "value"] = "key",
    ) -> FaultView:
        """A fault at a key or its value, or at the nearest thing around it that stands in the file."""
        place = self.values.get(path) if at == "value" else None
        while place is None and path:
            place = self.keys.get(path)
            path = path[:-1]
        place = place or Place(1, 1)
        return FaultView(
            file=self.file,
            line=place.line,
            column=place.column,
            message=sentence if len(sentence) <= MAX_SENTENCE else sentence[:MAX_SENTENCE] + "…",
            hint=hint,
            severity=severity,
        )


def read_text(path: Path, limit: int = MAX_BYTES, *, name: str = "") -> str | FaultView:
    """The text of an ordinary file of at most `limit` bytes; never waits (a FIFO would) and never raises."""
    file = name or shown(path)
    try:
        raw = read_bytes(path, limit)
    except FileNotFoundError:
        return at_start(file, f"There is no file {file}.")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        return at_start(file, f"{file} can't be read: {reason(error)}.")
    if len(raw) > limit:
        return at_start(file, f"{file} is larger than {limit // 1024} KiB.", "Split it, or shorten it.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        return FaultView(
            file=file,
            line=before.count(b"\n") + 1,
            column=len(before.rsplit(b"\n", 1)[-1].decode("utf-8", "replace")) + 1,
            message=f"Byte 0x{raw[error.start]:02x} is not UTF-8.",
            hint="Save the file as UTF-8.",
        )
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def read_bytes(path: Path, limit: int) -> bytes:
    """At most `limit` + 1 bytes of an ordinary file; anything else is an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123  # it takes over the descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not an ordinary file")
        return file.read(limit + 1)


def parse(text: str, file: str) -> Document | FaultView:
    """Text to document; the fault is the first thing that is not TOML, or that is nested beyond reason."""
    scan = _Scan(text)
    scan.run()
    if scan.too_deep is not None:
        place = scan.place(scan.too_deep)
        return FaultView(
            file=file,
            line=place.line,
            column=place.column,
            message=f"This is nested more than {MAX_DEPTH} levels deep.",
        )
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of thousands of digits
        return _syntax_fault(error, text, file)
    return Document(file=file, data=data, keys=scan.keys, values=scan.values, blocks=frozenset(scan.blocks))


def shown(path: Path) -> str:
    """A path that can be sent and shown, also if its bytes are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def at_start(file: str, sentence: str, hint: str = "") -> FaultView:
    """A fault of the file as a whole."""
    return FaultView(file=file, line=1, column=1, message=sentence, hint=hint)


def did_you_mean(word: str, known: tuple[str, ...], *, label: str = "Known here") -> str:
    """The hint for a word that is not one of those known."""
    close = get_close_matches(word[:80], known, n=1, cutoff=0.6)
    if close:
        return f"Did you mean `{close[0]}`?"
    return f"{label}: {', '.join(known)}." if known else ""


def reason(error: Exception) -> str:
    """What an error says, as the end of a sentence."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text[:1].lower() + text[1:]).rstrip(".")


_TOKEN = re.compile(
    r'''
      (?P<newline>\n)
    | (?P<skip>[ \t\r]+|\#[^\n]*)
    | (?P<block>"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^']|'(?!''))*'{3,5})
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*')
    | (?P<mark>[\[\]{}=,.])
    | (?P<bare>[^\s\#"'\[\]{}=,.]+)
    | (?P<other>.)
    ''',
    re.VERBOSE | re.DOTALL,
)


class _Frame(Struct):
    """An array or an inline table that is open."""

    closer: str
    path: KeyPath
    index: int = 0


class _Scan:
    """One pass over the text: where does each key, and each value, begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}
        self.blocks: set[KeyPath] = set()
        self.too_deep: int | None = None
        self._line, self._line_start, self._seen = 1, 0, 0
        self._arrays: dict[KeyPath, int] = {}
        self._table: KeyPath = ()
        self._frames: list[_Frame] = []
        self._parts: list[tuple[str, int]] = []
        self._dotted = False
        self._header: str | None = None
        self._path: KeyPath | None = None
        """Of the value that is being read; None while a key is."""

    def run(self) -> None:
        for token in _TOKEN.finditer(self.text):
            kind = token.lastgroup
            if kind == "skip":
                continue
            if kind == "newline":
                self._newline()
            elif self._header is not None:
                self._in_header(token)
            elif self._path is None:
                self._in_key(token)
            else:
                self._in_value(token)
            if len(self._frames) + len(self._parts) > MAX_DEPTH:
                self.too_deep = token.start()
            if self.too_deep is not None:
                return

    def place(self, offset: int) -> Place:
        """Line and column of an offset; offsets come in rising order, so the text is counted once."""
        self._line += self.text.count("\n", self._seen, offset)
        start = self.text.rfind("\n", self._seen, offset)
        if start >= 0:
            self._line_start = start + 1
        self._seen = max(self._seen, offset)
        return Place(self._line, offset - self._line_start + 1)

    def _newline(self) -> None:
        if not self._frames:
            self._parts.clear()
            self._header = self._path = None

    def _in_header(self, token: re.Match[str]) -> None:
        text = token.group()
        if text == "]":
            if self._parts:
                self._open_table(array=self._header == "[[")
            return
        if text == "[" and self._header == "[" and not self._parts:
            self._header = "[["
        else:
            self._part(token)

    def _open_table(self, *, array: bool) -> None:
        path: KeyPath = ()
        place = self.place(self._parts[0][1])
        for number, (part, _) in enumerate(self._parts):
            path = (*path, part)
            self.keys.setdefault(path, place)
            last = number == len(self._parts) - 1
            if array and last:
                self._arrays[path] = self._arrays.get(path, -1) + 1
            if path in self._arrays:
                path = (*path, self._arrays[path])
                self.keys.setdefault(path, place)
        self._table = path
        self._parts.clear()

    def _in_key(self, token: re.Match[str]) -> None:
        text = token.group()
        mark = token.lastgroup == "mark"
        if mark and text == "=" and self._parts:
            path = self._frames[-1].path if self._frames else self._table
            for part, offset in self._parts:
                path = (*path, part)
                self.keys.setdefault(path, self.place(offset))
            self._parts.clear()
            self._path = path
        elif mark and text == "[" and not self._frames and not self._parts:
            self._header = "["
        elif mark and self._frames and text == self._frames[-1].closer:
            self._close()
        else:
            self._part(token)

    def _part(self, token: re.Match[str]) -> None:
        """A part of a dotted key; what follows another without a dot is for `tomllib` to refuse."""
        if token.group() == ".":
            self._dotted = True
        elif token.lastgroup != "mark" and (self._dotted or not self._parts):
            self._parts.append((_key(token), token.start()))
            self._dotted = False

    def _in_value(self, token: re.Match[str]) -> None:
        path = self._path
        assert path is not None
        text = token.group()
        mark = token.lastgroup == "mark"
        if mark and self._frames and text == self._frames[-1].closer:
            self._close()
            return
        if mark and text == ",":
            self._next()
            return
        if path not in self.values:
            self.values[path] = self.place(token.start())
            if token.lastgroup == "block" and text[3:4] == "\n":
                self.blocks.add(path)
        if mark and text == "[":
            self._frames.append(_Frame("]", path))
            self._path = (*path, 0)
        elif mark and text == "{":
            self._frames.append(_Frame("}", path))
            self._path = None

    def _next(self) -> None:
        if not self._frames:
            return
        frame = self._frames[-1]
        if frame.closer == "]":
            frame.index += 1
            self._path = (*frame.path, frame.index)
        else:
            self._path = None

    def _close(self) -> None:
        self._path = self._frames.pop().path
        self._parts.clear()


def _key(token: re.Match[str]) -> str:
    text = token.group()
    if token.lastgroup != "string":
        return text
    if text.startswith("'"):
        return text[1:-1]
    try:
        return str(tomllib.loads(f"k = {text}")["k"])
    except ValueError:
        return text[1:-1]


_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")


def _syntax_fault(error: Exception, text: str, file: str) -> FaultView:
    message = str(error)
    at = _AT.search(message)
    line, column = text.count("\n") + 1, 1
    if at and at[1]:
        line, column = int(at[1]), int(at[2])
    elif not at:
        line = 1
        message = "a value can't be read: " + message
    return FaultView(
        file=file,
        line=line,
        column=column,
        message=f"This is not TOML: {_AT.sub('', message)[:200]}.",
        hint="Everything from here on was left unread.",
    )
