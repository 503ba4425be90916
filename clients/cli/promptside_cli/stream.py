"""What an agent wrote, as it comes: each block once, what is taken back taken back (ST-11).

On a terminal the open block is drawn again where it changed; elsewhere every line is whole, stamped, and
printed when its block is, because nothing can be taken out of a pipe.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import NamedTuple

from promptside_cli.terminal import WIDEST, Terminal
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.plain import cells, harmless

ROLES = {"text": "", "tool": "tool", "result": "muted", "stderr": "stderr", "note": "note", "status": "muted"}
"""Output role to page role."""

TAKEN_BACK = "(the agent took this back)"
BEGAN_AGAIN = "(the agent took this back and wrote:)"


class _Block:
    """A block of which more may come; `printed` is what of its text can't be changed any more."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.text = ""
        self.printed = ""
        self.rows = 0
        """Rows of the screen that the printed lines take, since the block was last drawn from its start."""
        self.tail_rows = 0
        """Rows of the last line, which has no end yet."""


class _Key(NamedTuple):
    block: str | None
    role: str


class Stream:
    """Draws entries; `indent` or the time stands before each line, `only` says which lines are wanted."""

    def __init__(
        self,
        terminal: Terminal,
        *,
        indent: str = "",
        stamped: bool = False,
        live: bool = True,
        only: re.Pattern[str] | None = None,
    ) -> None:
        self._terminal = terminal
        self._only = only
        self._indent = indent
        self._stamped = stamped
        self._live = live and terminal.live and not stamped and only is None
        self._blocks: dict[str, _Block] = {}
        self._open: _Key | None = None
        self._last = ""
        """The block of the last printed line, once it is closed."""

    def add(self, entries: Iterable[OutputEntry]) -> None:
        """Draw what came, in its order."""
        for entry in entries:
            self._add(entry)

    def close(self) -> None:
        """Nothing more is coming for now: the open block is as whole as it gets."""
        if self._open is None or self._open.block is None:
            return
        block = self._blocks[self._open.block]
        if self._live:
            if block.tail_rows:
                self._write("\n")
                block.printed, block.rows = block.text, block.rows + block.tail_rows
                block.tail_rows = 0
        else:
            self._print_rest(block)
        self._last = self._open.block
        self._open = None

    def unfinished(self) -> tuple[str, str] | None:
        """What of the open block is not printed yet, and its role."""
        if self._open is None or self._open.block is None:
            return None
        block = self._blocks[self._open.block]
        rest = block.text[len(block.printed) :]
        return (rest, block.role) if rest.strip() else None

    def _add(self, entry: OutputEntry) -> None:
        text = harmless(entry.text)
        role = "stderr" if entry.ok is False else ROLES[entry.role]
        if entry.block is None:
            self.close()
            for line in text.rstrip("\n").split("\n"):
                self._print(line, role)
            return
        late = self._late(entry, text)
        self._last = ""
        if late:
            self.close()
            self._print(late, role)
            self._last = ""
            return
        key = _Key(entry.block, role)
        if self._open is None or self._open.block != entry.block:
            self.close()
        block = self._blocks.setdefault(entry.block, _Block(role))
        again = self._open is None and bool(block.printed)
        self._open = key
        if entry.replace:
            self._replace(block, text, again=again)
        elif self._live:
            self._append(block, text)
        else:
            block.text += text
            self._print_lines(block)

    def _late(self, entry: OutputEntry, text: str) -> str:
        """The whole line of a call whose end is told when others stand below it (of several calls at once)."""
        block = entry.block or ""
        call = self._blocks.get(block.removesuffix("/result"))
        above = self._open.block if self._open is not None else self._last
        if call is None or above == block.removesuffix("/result"):
            return ""
        if entry.role == "tool" and entry.replace and text != call.text:
            call.text = call.printed = text
            return text
        if entry.role == "result" and not self._blocks.get(block):
            self._blocks[block] = _Block("result")
            return f"{call.text}  {text}"
        return ""

    # --- on a terminal -----------------------------------------------------------------------------------

    def _append(self, block: _Block, text: str) -> None:
        block.text += text
        self._erase(block.tail_rows)
        block.tail_rows = 0
        rest = block.text[len(block.printed) :]
        whole, _, tail = rest.rpartition("\n")
        if len(whole) < len(rest) - len(tail):
            for line in whole.split("\n"):
                block.rows += self._print(line, block.role)
            block.printed += f"{whole}\n"
        if tail:
            rows = self._rows(tail)
            self._write("\n".join(self._terminal.paint(row, block.role) for row in rows))
            block.tail_rows = sum(map(self._height, rows))

    def _replace(self, block: _Block, text: str, *, again: bool) -> None:
        if text == block.text:
            return
        if not self._live:
            self._replace_printed(block, text)
            return
        if not again and block.rows + block.tail_rows < self._terminal.rows:
            # The line that follows is the one the cursor is on, also when the tail was ended by a newline.
            self._erase(block.rows + block.tail_rows + (1 if block.rows and not block.tail_rows else 0))
            block.text, block.printed, block.rows, block.tail_rows = "", "", 0, 0
            self._append(block, text)
            return
        if block.tail_rows:
            self._write("\n")
        block.printed, block.rows, block.tail_rows = block.text, 0, 0
        self._replace_printed(block, text)
        self._append(block, "")

    def _erase(self, rows: int) -> None:
        if rows:
            up = f"\x1b[{rows - 1}A" if rows > 1 else ""
            self._write(f"\r{up}\x1b[J")

    # --- where nothing can be taken back -----------------------------------------------------------------

    def _replace_printed(self, block: _Block, text: str) -> None:
        """Go on behind what stands there if the new text begins with it, else say that it no longer holds."""
        if text.startswith(block.printed):
            block.text = text
            return
        self._print(BEGAN_AGAIN if text else TAKEN_BACK, "note")
        block.text, block.printed = text, ""

    def _print_lines(self, block: _Block) -> None:
        """Of text, the paragraphs that are whole; the last line waits for its end."""
        if block.role:
            return
        whole, newline, _ = block.text[len(block.printed) :].rpartition("\n\n")
        if newline:
            self._print_rest(block, len(block.printed) + len(whole) + 2)

    def _print_rest(self, block: _Block, end: int | None = None) -> None:
        rest = block.text[len(block.printed) : end]
        if rest.strip():
            # The blank line between two paragraphs is kept, the ones around a block are not.
            rest = rest[:-1] if end is not None else rest.rstrip("\n")
            for line in (rest if block.printed else rest.lstrip("\n")).split("\n"):
                self._print(line, block.role)
        block.printed = block.text[:end]

    # --- lines -------------------------------------------------------------------------------------------

    def _print(self, line: str, role: str) -> int:
        """Print one line of text, in as many rows as it takes; returns how many those are."""
        if self._only is not None and not self._only.search(line):
            return 0
        rows = self._rows(line)
        stamp = self._terminal.paint(time.strftime("%H:%M:%S  "), "muted") if self._stamped else ""
        for row in rows:
            self._write(f"{stamp}{self._terminal.paint(row, role)}\n")
        return sum(map(self._height, rows))

    def _rows(self, line: str) -> list[str]:
        line = line.expandtabs(4)
        width = min(self._terminal.columns, WIDEST) - len(self._indent)
        # Only where a person reads along: in a pipe a line stays one line.
        rows = wrap(line, width) if self._terminal.tty else [line]
        return [(self._indent + row).rstrip() for row in rows]

    def _height(self, row: str) -> int:
        """Rows that the terminal makes of it; a path that is longer than the window is never cut by us."""
        return max(1, -(-cells(row) // max(self._terminal.columns, 1)))

    def _write(self, text: str) -> None:
        self._terminal.out.write(text)
        self._terminal.out.flush()


def wrap(line: str, width: int) -> list[str]:
    """A line broken at blanks, what follows under its own indent; a word is never broken."""
    if cells(line) <= width:
        return [line]
    body = line.lstrip(" ")
    hang = " " * (len(line) - len(body) + (2 if body[:2] in ("- ", "* ", "+ ") else 0))
    if len(hang) > width // 2:
        hang = ""
    rows: list[str] = []
    row = line[: len(line) - len(body)]
    empty = True
    for word in body.split(" "):
        if empty:
            row, empty = row + word, False
        elif cells(row) + 1 + cells(word) <= width:
            row += f" {word}"
        else:
            rows.append(row)
            row = hang + word
    return [*rows, row]
