"""Where one is in a TOML text, and what its tables hold, as far as it can be told while somebody types.

For finding one's way only: it reads any text, well-formed or not; what is wrong with a file the daemon says.
Lines and columns count from 0, columns in characters.
"""

from __future__ import annotations

import re

from msgspec import Struct


class Entry(Struct, kw_only=True):
    """`key = value`; `text` is the value where it is a string, without its quotes."""

    key: str
    line: int
    column: int
    value: tuple[int, int]
    """Where the value begins."""
    end: tuple[int, int]
    """Behind the value."""
    text: str = ""


class Table(Struct, kw_only=True):
    """A table from its header to the next one; the top of the file has no name and line 0."""

    name: str
    line: int
    number: int = -1
    """Of a `[[name]]`, and of what belongs to it: which of them it is."""
    last: int = 0
    """Its last line."""
    array: bool = False
    entries: list[Entry]

    def get(self, key: str) -> Entry | None:
        """An entry by its key."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def text(self, key: str) -> str:
        """A string of it; empty if it has none."""
        found = self.get(key)
        return found.text if found is not None else ""


class Spot(Struct, frozen=True, kw_only=True):
    """What stands at a place: in which table, at a key or in whose value, and the word there."""

    table: str
    number: int
    key: str = ""
    """The key whose value it is; empty at a key."""
    quote: str = ""
    """The quotes that the place is in."""
    word: str = ""
    """What stands before the place, of the word or string that it is in."""
    header: bool = False
    in_list: bool = False


def tables(text: str) -> list[Table]:
    """Every table with its entries, in the order of the text."""
    lines = text.split("\n")
    found = [Table(name="", line=0, entries=[])]
    counts: dict[str, int] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        if header := _HEADER.match(line):
            name = ".".join(_part(part) for part in header["name"].split("."))
            array = header["open"] == "[["
            if array:
                counts[name] = counts.get(name, -1) + 1
            found[-1].last = number - 1
            top = name.partition(".")[0]
            found.append(Table(name=name, line=number, number=counts.get(top, -1), array=array, entries=[]))
        elif pair := _PAIR.match(line):
            value = (number, pair.end())
            end = _behind(lines, value)
            found[-1].entries.append(
                Entry(
                    key=".".join(_part(part) for part in pair["key"].split(".")),
                    line=number,
                    column=pair.start("key"),
                    value=value,
                    end=end,
                    text=_string(lines, value, end),
                )
            )
            number = end[0]
        number += 1
    found[-1].last = len(lines) - 1
    return found


def stages_of(text: str) -> list[Table]:
    """The stages of a pipeline, one after the other."""
    return [table for table in tables(text) if table.name == "stage" and table.array]


def spot(text: str, line: int, column: int) -> Spot:
    """What stands at a place."""
    lines = text.split("\n")
    table = next((t for t in reversed(tables(text)) if t.line <= line), None) or Table(
        name="", line=0, entries=[]
    )
    before = lines[line][:column] if line < len(lines) else ""
    for entry in table.entries:
        if (entry.line, entry.value[1]) <= (line, column) and (line, column) <= _reach(entry, lines):
            path, _, key = f"{table.name}.{entry.key}".rpartition(".")
            within = _within(_between(lines, entry.value, (line, column)))
            return Spot(
                table=".".join(part for part in (path.strip("."), *within.tables(key)) if part),
                number=table.number,
                key=within.key if within.nested else key,
                quote=within.quote,
                word=within.word,
                in_list=within.in_list,
            )
    if before.lstrip().startswith("["):
        return Spot(table=table.name, number=table.number, word=before.lstrip(" \t["), header=True)
    return Spot(table=table.name, number=table.number, word=before.lstrip())


def word_at(line: str, column: int) -> tuple[int, int]:
    """Where the word at a column begins and ends: letters, digits, `_` and `-`."""
    for found in re.finditer(r"[\w-]+", line):
        if found.start() <= column <= found.end():
            return found.span()
    return column, column


_HEADER = re.compile(r"\s*(?P<open>\[\[?)\s*(?P<name>[^\]\[=]+?)\s*\]")
_PAIR = re.compile(r"""\s*(?P<key>(?:[\w-]+|"[^"]*"|'[^']*')(?:\.(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=[ \t]*""")
_PIECE = re.compile(
    r"""(?P<block>\"\"\"(?:[^\\]|\\.)*?\"{3,5}|'''.*?'{3,5})
      | (?P<open_block>\"\"\"|''')
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
      | (?P<open_string>["'])
      | (?P<comment>\#[^\n]*)
      | (?P<mark>[\[\]{}=,])
      | (?P<bare>[^\s\#"'\[\]{}=,]+)""",
    re.VERBOSE | re.DOTALL,
)


def _part(part: str) -> str:
    return part.strip().strip("\"'")


def _behind(lines: list[str], start: tuple[int, int]) -> tuple[int, int]:
    """Where a value ends; one that is not finished ends with its line, or before the next header or key."""
    depth = 0
    number, column = start
    while number < len(lines):
        line = lines[number]
        while (piece := _PIECE.search(line, column)) is not None and piece.lastgroup != "comment":
            column = piece.end()
            opened = piece.group()
            if piece.lastgroup == "open_block":
                number, column = _closed(lines, number, column, opened)
                if number >= len(lines):
                    return len(lines) - 1, len(lines[-1])
                line = lines[number]
            elif piece.lastgroup == "mark":
                depth += (opened in "[{") - (opened in "]}")
            if depth <= 0 and piece.lastgroup != "open_string":
                return number, column
        if depth <= 0:
            break
        if number + 1 < len(lines) and (_HEADER.match(lines[number + 1]) or _PAIR.match(lines[number + 1])):
            break
        number, column = number + 1, 0
    number = min(number, len(lines) - 1)
    return number, len(lines[number])


def _closed(lines: list[str], number: int, column: int, quote: str) -> tuple[int, int]:
    """Where the end of a block is, behind its quotes; beyond the last line if it has none."""
    while number < len(lines):
        end = lines[number].find(quote, column)
        if end >= 0:
            return number, end + 3
        number, column = number + 1, 0
    return number, 0


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return lines[start[0]][start[1] : end[1]]
    return "\n".join([lines[start[0]][start[1] :], *lines[start[0] + 1 : end[0]], lines[end[0]][: end[1]]])


def _string(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    whole = _between(lines, start, end).strip()
    for quote in ('"""', "'''", '"', "'"):
        if whole.startswith(quote):
            return whole.removeprefix(quote).removesuffix(quote)
    return ""


def _reach(entry: Entry, lines: list[str]) -> tuple[int, int]:
    """How far a place counts as in an entry: to the end of its value, and of the blanks behind it."""
    line, column = entry.end
    rest = lines[line][column:]
    return (line, len(lines[line])) if not rest.strip() else (line, column)


class _Within(Struct):
    """How deep a place is in a value."""

    path: list[str]
    """Keys of the inline tables that are open around it."""
    key: str
    quote: str
    word: str
    in_list: bool
    nested: bool

    def tables(self, key: str) -> list[str]:
        return [key, *self.path] if self.nested else []


def _within(before: str) -> _Within:
    """Read a value up to a place: `{ type = "requ` is at the key `type`, in a string, behind `requ`."""
    stack: list[str] = []
    keys: list[str] = []
    key = word = quote = ""
    at = 0
    while (piece := _PIECE.search(before, at)) is not None:
        at = piece.end()
        text = piece.group()
        if piece.lastgroup in {"open_string", "open_block"}:
            quote, word = text, before[at:]
            break
        if piece.lastgroup in {"bare", "string"}:
            word = text
        elif piece.lastgroup == "mark":
            if text == "{":
                keys.append(key)
                key = ""
            elif text == "=":
                key = word.strip("\"'")
            elif text == "," and stack and stack[-1] == "{":
                key = ""
            elif text == "}" and keys:
                key = keys.pop()
            if text in "[{":
                stack.append(text)
            elif text in "]}" and stack:
                stack.pop()
            word = ""
    if not quote and before[-1:].isspace():
        word = ""
    nested = "{" in stack
    return _Within(
        path=[inner for inner in keys[1:] if inner],
        key=key,
        quote=quote,
        word=word,
        in_list=bool(stack) and stack[-1] == "[",
        nested=nested,
    )
