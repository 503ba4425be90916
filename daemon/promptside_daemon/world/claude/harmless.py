"""Text of an agent made safe to print: nothing in it can move a cursor, hide, or turn around what is read."""

import re


def harmless(text: str) -> str:
    """`text` without escape sequences and control characters; line ends are b"\\n", tabs are spaces."""
    if not _SUSPECT.search(text):
        return text
    text = _ESCAPE.sub("", text.replace("\r\n", "\n"))
    return _SUSPECT.sub(lambda found: _INSTEAD.get(found[0], _surrogate(found[0])), text)


def one_line(text: str, most: int = 200) -> str:
    """The first line that says something, harmless and cut to `most` characters."""
    for line in harmless(text).splitlines():
        if line := line.strip():
            return line if len(line) <= most else f"{line[: most - 1]}…"
    return ""


class HarmlessStream:
    """Text in pieces: an escape sequence that is split between two pieces is found all the same."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        cut = min(len(text) - text.endswith("\r"), _unfinished(text))
        self._held = text[cut:]
        return harmless(text[:cut])

    def flush(self) -> str:
        held, self._held = self._held, ""
        return harmless(held)


# Sequences with an end (CSI; OSC and the other strings), and those of two or three characters.
_WHOLE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x9b[0-?]*[ -/]*[@-~]"
_ESCAPE_WHOLE = re.compile(_WHOLE + r"|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]")
_ESCAPE = re.compile(_WHOLE + r"|\x1b[ -/]*[0-~]?")
# Control characters but the newline; marks that turn the direction of writing; separators that some
# readers take for a line end; halves of surrogate pairs, which no file takes.
_SUSPECT = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# One that never ends is not waited for.
_LONGEST_SEQUENCE = 4096
_INSTEAD = {
    "\t": "    ",
    "\r": "\n",
    "\x0b": "\n",
    "\x0c": "\n",
    "\x85": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
}


def _unfinished(text: str) -> int:
    """Where the sequence begins that `text` ends in the middle of; its length if there is none."""
    at = 0
    while (at := text.find("\x1b", at)) >= 0:
        whole = _ESCAPE_WHOLE.match(text, at)
        if whole is None and len(text) - at <= _LONGEST_SEQUENCE:
            return at
        at = whole.end() if whole else at + 1
    return len(text)


def _surrogate(character: str) -> str:
    return "\ufffd" if "\ud800" <= character <= "\udfff" else ""
