"""Output as plain text, for virtual documents and growing files: appended only, nothing drawn twice."""

from __future__ import annotations

from collections.abc import Iterable

from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.plain import harmless

MARKS = {"tool": "> ", "result": "  ", "stderr": "! ", "note": "# ", "status": "# "}
TAKEN_BACK = "(the agent took this back)"
BEGAN_AGAIN = "(the agent took this back and wrote:)"


class Plain:
    """Turns entries into lines; a block that goes on is gone on with."""

    def __init__(self) -> None:
        self._block: str | None = None
        self._texts: dict[str, str] = {}
        self._at_start = True

    def add(self, entries: Iterable[OutputEntry]) -> str:
        """The text that these entries add."""
        return "".join(self._one(entry) for entry in entries)

    def _one(self, entry: OutputEntry) -> str:
        mark = MARKS.get(entry.role, "")
        text = harmless(entry.text)
        if entry.block is None:
            return self._fresh(None) + _lines(text, mark) + "\n"
        before = self._texts.get(entry.block, "")
        self._texts[entry.block] = text if entry.replace else before + text
        if entry.replace and before:
            if text.startswith(before):
                return self._go_on(entry.block, text[len(before) :], mark)
            said = BEGAN_AGAIN if text else TAKEN_BACK
            return f"{self._fresh(entry.block)}{said}\n{self._go_on(entry.block, text, mark)}"
        return self._go_on(entry.block, text, mark)

    def _go_on(self, block: str, text: str, mark: str) -> str:
        if not text:
            return ""
        start = "" if block == self._block else self._fresh(block)
        if start or self._at_start:
            start += mark
        self._at_start = text.endswith("\n")
        return start + text.replace("\n", f"\n{mark}" if not self._at_start else "\n")

    def _fresh(self, block: str | None) -> str:
        """Begin on a line of its own."""
        start = "" if self._at_start else "\n"
        self._block, self._at_start = block, True
        return start


def _lines(text: str, mark: str) -> str:
    return "\n".join(mark + line for line in text.rstrip("\n").split("\n"))
