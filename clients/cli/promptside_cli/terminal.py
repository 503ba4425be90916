"""The terminal as we know it: colours or none, marks, width, and what goes to stdout or stderr.

With `--json` stdout is data only; what is for people goes to stderr. Nothing an agent wrote reaches it raw.
"""

from __future__ import annotations

import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any

from promptside_cli.arguments import Arguments

if TYPE_CHECKING:
    from promptside_protocol.pages.page import Line, Look, Page, Role

WIDEST = 100
"""Cells: longer lines are hard to read (UX 6)."""

_COLOURS: dict[str, str] = {
    "done": "32",
    "added": "32",
    "waiting": "33",
    "failed": "31",
    "removed": "31",
    "stderr": "31",
    "running": "34",
    "muted": "2",
    "next": "2",
    "skipped": "2",
    "paused": "2",
    "tool": "2",
    "note": "2",
}
"""Four of the sixteen, and dim; the person's own palette decides how they look."""


class Terminal:
    """Where a verb writes; `out` is for people, data goes to stdout."""

    def __init__(self, *, json: bool, color: str = "auto", stdout: IO[str], stderr: IO[str]) -> None:
        self.json = json
        self.data = stdout
        self.out = stderr if json else stdout
        self.err = stderr
        self.tty = self.out.isatty()
        self.dumb = os.environ.get("TERM", "") in ("", "dumb")
        plain = bool(os.environ.get("NO_COLOR")) or self.dumb or not self.tty
        self.colour = color == "always" or (color == "auto" and not plain)
        self.unicode = (getattr(self.out, "encoding", "") or "").lower().replace("-", "") == "utf8"

    @classmethod
    def open(cls, *, json: bool = False, color: str = "auto") -> Terminal:
        """On this process's own streams; a letter that the locale can't show is shown as its escape."""
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are TextIOWrapper
        return cls(json=json, color=color, stdout=sys.stdout, stderr=sys.stderr)

    @classmethod
    def of(cls, arguments: Arguments) -> Terminal:
        """As a call's options ask for it."""
        return cls.open(json=arguments.json, color=arguments.one("--color", "auto"))

    @property
    def asks(self) -> bool:
        """Whether there is a person to ask in place."""
        return self.tty and not self.json and sys.stdin.isatty()

    @property
    def live(self) -> bool:
        """Whether lines may be drawn again."""
        return self.tty and not self.dumb

    @property
    def columns(self) -> int:
        """The width of the window; of anything else the widest we write."""
        if not self.tty:
            return WIDEST
        try:
            return os.get_terminal_size(self.out.fileno()).columns or WIDEST
        except OSError:
            return WIDEST

    @property
    def rows(self) -> int:
        """The height of the window."""
        try:
            return os.get_terminal_size(self.out.fileno()).lines or 24
        except OSError:
            return 24

    def look(self) -> Look:
        """How pages are to be drawn here and now."""
        from promptside_protocol.pages.page import Look  # noqa: PLC0415  # a usage error needs no pages

        width = min(self.columns, WIDEST)
        return Look(now=time.time(), width=width, unicode=self.unicode, me=_user())

    def paint(self, text: str, role: Role | str) -> str:
        """Text in the colour of its role."""
        code = _COLOURS.get(role, "") if self.colour else ""
        return f"\x1b[{code}m{text}\x1b[0m" if code and text else text

    def say(self, text: str = "") -> None:
        """A line for people."""
        print(text, file=self.out, flush=True)

    def line(self, drawn: Line, indent: str = "") -> None:
        """A line of a page."""
        self.say(indent + "".join(self.paint(span.text, span.role) for span in drawn.spans).rstrip())

    def page(self, page: Page) -> None:
        """A page, without what is folded away."""
        for drawn in visible(page):
            if drawn.fold == "closed":
                self.line(drawn, "> ")
            else:
                self.line(drawn)

    def document(self, value: Any) -> None:
        """One JSON document, or one line of a flow."""
        import msgspec  # noqa: PLC0415  # a usage error needs no Structs

        self.data.write(msgspec.json.encode(value).decode() + "\n")
        self.data.flush()

    def fail(self, code: str, message: str, hint: str = "", *, usage: str = "", difference: str = "") -> None:
        """Say what went wrong and what to do: as a document where data was asked for, else in words."""
        if self.json:
            error = {"code": code, "message": message, "hint": hint}
            self.document({"error": {**error, "difference": difference} if difference else error})
        text = [f"promptside: {message}"]
        text += [hint] if hint else []
        text += [f"usage: {usage}"] if usage else []
        from promptside_protocol.pages.plain import harmless  # noqa: PLC0415  # only where something failed

        text += [harmless(difference).rstrip()] if difference else []
        print("\n".join(harmless(part) for part in text), file=self.err, flush=True)


def _user() -> str:
    """The name that the daemon knows this person by: the socket tells it our number."""
    import pwd  # noqa: PLC0415  # a usage error needs no name

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def visible(page: Page) -> list[Line]:
    """The lines of a page that are not inside a closed fold."""
    shown: list[Line] = []
    closed = False
    for drawn in page.lines:
        if drawn.fold == "inside" and closed:
            continue
        closed = drawn.fold == "closed"
        shown.append(drawn)
    return shown


def unfolded(page: Page) -> Page:
    """The same page with every fold open."""
    from msgspec.structs import replace  # noqa: PLC0415  # a usage error needs no Structs

    lines = tuple(replace(drawn, fold="open") if drawn.fold == "closed" else drawn for drawn in page.lines)
    return replace(page, lines=lines)
