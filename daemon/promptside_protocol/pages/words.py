"""The words of times, durations, money and states, the same in every client (UX section 7)."""

from __future__ import annotations

import datetime as dt

from promptside_protocol.pages.page import Line, Look, Role, Span, line
from promptside_protocol.pages.plain import one_line
from promptside_protocol.views import Offer, StageStatus

MARKS: dict[str, tuple[str, str]] = {
    "waiting": ("!", "!"),
    "running": ("~", "◌"),
    "done": ("v", "✓"),
    "failed": ("x", "✗"),
    "next": ("o", "○"),
    "skipped": ("-", "–"),
    "paused": ("|", "|"),
}
"""Role to mark, in ASCII and in Unicode (UX 6)."""

STAGE_ROLES: dict[StageStatus, Role] = {
    "future": "next",
    "current": "next",
    "running": "running",
    "checking": "running",
    "waiting": "waiting",
    "approved": "done",
    "skipped": "skipped",
    "failed": "failed",
}

CLIENTS = {"vscode": "VS Code", "terminal": "the terminal", "sublime": "Sublime Text", "lsp": "an editor"}
"""Clients whose name in a sentence is not just their word with a capital."""


def client_name(word: str) -> str:
    """A client as a sentence names it: `vscode` is VS Code."""
    return CLIENTS.get(word) or word[:1].upper() + word[1:]


def mark(role: Role, look: Look) -> Span:
    """The mark of a role, in that role."""
    return Span(MARKS[role][look.unicode], role)


def clock(at: float, look: Look) -> str:
    """`14:05`, with the date in front when it was another day."""
    then = dt.datetime.fromtimestamp(at, look.zone)
    today = dt.datetime.fromtimestamp(look.now, look.zone)
    return f"{then:%H:%M}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def day(at: float, look: Look) -> str:
    """`2026-03-01`."""
    return f"{dt.datetime.fromtimestamp(at, look.zone):%Y-%m-%d}"


def duration(seconds: float) -> str:
    """`58 s`, `1 min 40 s`, `14 min`, `3 h 5 min`, `2 days`: never more than two units."""
    whole = max(int(seconds), 0)
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if minutes == 0:
        return f"{rest} s"
    if minutes < 10:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if hours == 0:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h {minutes_left} min" if minutes_left else f"{hours} h"
    return f"{hours // 24} days"


def money(dollars: float, *, recorded: bool = False) -> str:
    """`$0.09`; what is spent and less than a cent is `<$0.01`; what a recording cost once is `$0.09 recorded`."""
    said = "<$0.01" if 0 < dollars < 0.005 else f"${dollars:,.2f}"
    return f"{said} recorded" if recorded and dollars else said


def tokens(count: int) -> str:
    """`950 tokens`, `57k tokens`, `1.2M tokens`."""
    if count < 1000:
        return "1 token" if count == 1 else f"{count} tokens"
    if count < 999_500:
        return f"{count / 1000:.0f}k tokens"
    return f"{count / 1_000_000:.1f}M tokens"


def size(count: int) -> str:
    """`640 B`, `12 kB`, `3.4 MB`, `1.2 GB`."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.0f} kB"
    if count < 1_000_000_000:
        return f"{count / 1_000_000:.1f} MB"
    return f"{count / 1_000_000_000:.1f} GB"


def who(by: str, look: Look) -> str:
    """“you” for the person who reads this, else the name."""
    return "you" if by in ("", look.me) else one_line(by)


def several(count: int, noun: str) -> str:
    """`1 question`, `2 questions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def label(key: str) -> str:
    """The label of a field: `test_plan` is “Test plan” (UX 2.6)."""
    words = key.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def offer_line(offer: Offer, look: Look, head: str = "  ") -> Line:
    """What can be done, to be chosen there; what can't be done now says why."""
    at = f"offer/{offer.command}"
    if offer.blocked is not None:
        reason = f"   {one_line(offer.blocked)}"
        return line(
            head, Span(one_line(offer.title), "muted"), Span(reason, "muted"), ref=at, offers=(offer,)
        )
    title = Span(f"{_sign(look)}{one_line(offer.title)}", "title")
    return line(head, title, ref=at, offers=(offer,))


def way_line(title: str, look: Look, ref: str, note: str = "") -> Line:
    """What Enter leads to: `> Show changes   6 files`."""
    words = Span(f"{_sign(look)}{title}", "title")
    return line("  ", words, Span(f"   {note}", "muted") if note else "", ref=ref)


def _sign(look: Look) -> str:
    return "▸ " if look.unicode else "> "


def open_offers(offers: tuple[Offer, ...], place: str) -> tuple[Offer, ...]:
    """The offers of one place, in their order."""
    return tuple(offer for offer in offers if offer.place == place)
