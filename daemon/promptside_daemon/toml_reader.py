"""Values of a TOML document as what they should be, with a fault at the place of each that is not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal

from promptside_daemon.toml_source import Document, KeyPath, Place, did_you_mean
from promptside_protocol.views import FaultView

MAX_NUMBER = 1_000_000_000
MAX_UNKNOWN = 30


class Reader:
    """Reads values of one document as what they should be, and collects what is wrong with them.

    A value that is not there, or not what it should be, reads as its default.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data
        self.file = document.file
        self._faults: dict[FaultView, None] = {}

    @property
    def faults(self) -> tuple[FaultView, ...]:
        """What was found so far, each once."""
        return tuple(self._faults)

    def add(self, faults: Iterable[FaultView]) -> None:
        """Faults found elsewhere, in a prompt for example."""
        self._faults.update(dict.fromkeys(faults))

    def fault(
        self,
        path: KeyPath,
        sentence: str,
        hint: str = "",
        *,
        severity: Literal["error", "warning"] = "error",
        at: Literal["key", "value"] = "key",
    ) -> None:
        self.add([self.document.fault(path, sentence, hint, severity=severity, at=at)])

    def wrong(self, path: KeyPath, wanted: str) -> None:
        """Says that a value is of another kind than it should be."""
        self.fault(path, f"`{_last(path)}` must be {wanted}, not {_kind(self.value(path))}.", at="value")

    def unknown(self, path: KeyPath, known: tuple[str, ...], *, hint: str = "") -> None:
        """Says which keys of a table have no meaning, the first of them at least."""
        unknown = (key for key in self.table(path) if key not in known)
        for key in islice(unknown, MAX_UNKNOWN):
            here = f"`{_last(path)}` has no key" if path else "There is no key"
            self.fault((*path, key), f"{here} `{key[:80]}`.", hint or did_you_mean(key, known))

    def value(self, path: KeyPath) -> Any:
        value: Any = self.data
        for part in path:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def where(self, path: KeyPath) -> int:
        """The line of a key."""
        return self.document.fault(path, "").line

    def first_line(self, path: KeyPath) -> int:
        """The line on which a text begins."""
        place = self.document.values.get(path, Place(1, 1))
        return place.line + (path in self.document.blocks)

    def table(self, path: KeyPath) -> dict[str, Any]:
        value = self.value(path)
        if value is not None and not isinstance(value, dict):
            self.wrong(path, "a table")
        return value if isinstance(value, dict) else {}

    def tables(self, path: KeyPath) -> int:
        """How many tables an array of tables holds."""
        value = self.value(path)
        if value is None:
            return 0
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fault(path, f"`{_last(path)}` must be written as `[[{_last(path)}]]`, once for each.")
            return 0
        return len(value)

    def text(self, path: KeyPath, default: str = "", *, required: bool = False) -> str:
        value = self.value(path)
        if value is None:
            if required:
                self.fault(path, f"`{_last(path)}` is missing.")
            return default
        if not isinstance(value, str):
            self.wrong(path, "a text")
            return default
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            self.fault(path, f"`{_last(path)}` holds a character that no text can hold.", at="value")
            return default
        return value

    def line(self, path: KeyPath, default: str = "", *, required: bool = False) -> str:
        """A text of one line, at most 200 characters."""
        value = self.text(path, default, required=required)
        given = self.value(path)
        if required and isinstance(given, str) and not given.strip():
            self.fault(path, f"`{_last(path)}` is empty.", at="value")
        if len(value) > 200 or any(char < " " or char == "\x7f" for char in value):
            self.fault(path, f"`{_last(path)}` must be one line of at most 200 characters.", at="value")
            return default
        return value.strip()

    def choice(self, path: KeyPath, known: tuple[str, ...], default: str) -> str:
        value = self.line(path, default)
        if value in known:
            return value
        hint = did_you_mean(value, known, label="It is one of")
        self.fault(path, f"`{_last(path)}` can't be `{value}`.", hint, at="value")
        return default

    def words(self, path: KeyPath) -> tuple[str, ...]:
        value = self.value(path)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            self.wrong(path, "a list of texts")
            return ()
        return tuple(self.line((*path, number)) for number in range(len(value)))

    def number(self, path: KeyPath, *, whole: bool = False, least: int = 0) -> float | None:
        """A number from `least` to a thousand million; None if it is none."""
        value = self.value(path)
        kinds = int if whole else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            self.wrong(path, "a whole number" if whole else "a number")
            return None
        if not least <= value <= MAX_NUMBER:
            self.fault(path, f"`{_last(path)}` must be from {least} to {MAX_NUMBER:,}.", at="value")
            return None
        return value


def _last(path: KeyPath) -> str:
    return next((part for part in reversed(path) if isinstance(part, str)), "the file")


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case None:
            return "nothing"
        case _:
            return "a date or time"
