"""What a project brings that would run on the person's machine, and whether they trusted just that (DA-5).

Counted is what we or the agent's program execute or obey without asking: pipelines, prompts, settings, hooks,
MCP servers, skills, commands, agents. CLAUDE.md is not: it is read like any other text of the project, and
allows nothing by itself.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from promptside_daemon.toml_source import MAX_BYTES as TOML_BYTES
from promptside_daemon.toml_source import Document, parse, read_bytes, shown
from promptside_protocol.views import TrustItem, TrustView

MAX_FILES = 5_000
MAX_BYTES = 4 * 1024 * 1024
"""Of one file; what is larger is not read, and can't be trusted."""
MAX_DEPTH = 12
MAX_SHOWN = 20
"""Commands shown for one file."""

State = Literal["none_needed", "untrusted", "trusted", "changed"]

_KINDS: tuple[tuple[str, str], ...] = (
    (".promptside/config.toml", "settings"),
    (".promptside/pipelines", "pipeline"),
    (".promptside/prompts", "prompt"),
    (".claude/settings.json", "Claude settings"),
    (".claude/settings.local.json", "Claude settings"),
    (".claude/agents", "subagent"),
    (".claude/commands", "command"),
    (".claude/hooks", "hook"),
    (".claude/output-styles", "output style"),
    (".claude/plugins", "plug-in"),
    (".claude/skills", "skill"),
    (".mcp.json", "MCP server"),
)


class Item(Struct, frozen=True, kw_only=True):
    """One file that counts."""

    path: str
    """Relative to the project, with `/`."""
    what: str
    sha: str
    """Of the bytes; or in words why they could not be read."""
    runs: tuple[str, ...] = ()
    """Commands that stand in it, as far as they can be told."""


class Inventory(Struct, frozen=True, kw_only=True):
    """Everything that counts, and one hash over names and bytes; no items, empty hash."""

    hash: str = ""
    items: tuple[Item, ...] = ()
    whole: bool = True
    """False: there was more than is read, or something unreadable, so that nobody can vouch for it."""


class Trusted(Struct, frozen=True, kw_only=True):
    """What the person trusted: the hash decides, date and items serve to say what changed since."""

    hash: str
    at: str = ""
    items: dict[str, str] = {}  # msgspec copies an empty default for each instance
    """Path to sha."""


def inventory(project: Path) -> Inventory:
    """What counts in a project now; reads, runs nothing, never raises."""
    items: list[Item] = []
    whole = True
    for place, what in _KINDS:
        for file in _files(project / place, 0, frozenset()):
            if len(items) >= MAX_FILES:
                whole = False
                break
            item = _item(project, file, what)
            whole = whole and len(item.sha) == 64
            items.append(item)
    items.sort(key=lambda item: item.path)
    digest = hashlib.sha256()
    for item in items:
        name = item.path.encode()
        digest.update(b"%d:%b%b\n" % (len(name), name, item.sha.encode()))
    return Inventory(hash=digest.hexdigest() if items else "", items=tuple(items), whole=whole)


def trusted_now(now: Inventory, at: str) -> Trusted:
    """What to keep when the person trusts what they saw."""
    return Trusted(hash=now.hash, at=at, items={item.path: item.sha for item in now.items})


def state(now: Inventory, trusted: Trusted | None) -> TrustView:
    """Whether what is there now is what was trusted, in a sentence and file by file (M23, M24)."""
    if not now.items:
        return TrustView(
            state="none_needed", hash="", sentence="This project brings nothing of its own that would run."
        )
    if not now.whole:
        sentence = (
            "This project brings more of its own than can be read whole, so it can't be trusted. "
            "Use the built-in pipeline."
        )
        return TrustView(state="untrusted", hash="", sentence=sentence, items=_shown(now, None))
    if trusted is None or not trusted.hash:
        one = len(now.items) == 1
        sentence = (
            f"This project brings its own {summary(now)}. They run programs on your machine. "
            f"Read {'it' if one else 'them'}, then trust this version or use the built-in pipeline."
        )
        return TrustView(state="untrusted", hash=now.hash, sentence=sentence, items=_shown(now, None))
    if trusted.hash == now.hash:
        return TrustView(
            state="trusted",
            hash=now.hash,
            sentence=f"You trusted this version{_on(trusted)}.",
            items=_shown(now, trusted),
        )
    what = _changed(now, trusted)
    sentence = (
        f"The project's {what} changed since you trusted it{_on(trusted)}. "
        "It does not run until you trust the new version."
    )
    return TrustView(state="changed", hash=now.hash, sentence=sentence, items=_shown(now, trusted))


def summary(now: Inventory) -> str:
    """What a project brings, in a few words: “pipeline, 2 check commands”."""
    counts: Counter[str] = Counter()
    for item in now.items:
        if item.what == "settings" and item.runs:
            counts["check command"] += len(item.runs)
        elif item.what == "pipeline" and not item.path.endswith(".toml"):
            counts["prompt"] += 1
        else:
            counts[item.what] += 1
    first = sorted(counts, key=lambda what: (what != "pipeline", what != "prompt"))
    return ", ".join(_counted(what, counts[what]) for what in first)


def _changed(now: Inventory, trusted: Trusted) -> str:
    kinds = [item.what for item in now.items if trusted.items.get(item.path) != item.sha]
    here = {item.path for item in now.items}
    kinds += [_what(path) for path in trusted.items if path not in here]
    words = list(dict.fromkeys(kinds)) if trusted.items else ["pipeline"]
    return ", ".join(words)


def _shown(now: Inventory, trusted: Trusted | None) -> tuple[TrustItem, ...]:
    before = trusted.items if trusted else {}
    shown = [
        TrustItem(
            path=item.path,
            what=_described(item, "new " if before and item.path not in before else ""),
            changed=bool(before) and before.get(item.path) != item.sha,
        )
        for item in now.items
    ]
    here = {item.path for item in now.items}
    shown += [
        TrustItem(path=path, what=f"{_what(path)}, removed", changed=True)
        for path in sorted(before)
        if path not in here
    ]
    return tuple(shown)


def _described(item: Item, new: str) -> str:
    what = new + item.what
    if len(item.sha) != 64:
        return f"{what}, {item.sha}"
    return f"{what}: {'; '.join(item.runs)}" if item.runs else what


def _what(path: str) -> str:
    return next((what for place, what in _KINDS if path == place or path.startswith(place + "/")), "file")


def _counted(what: str, count: int) -> str:
    if count == 1 or what.endswith("settings"):
        return what
    return f"{count} {what}s"


def _on(trusted: Trusted) -> str:
    return f" on {trusted.at}" if trusted.at else ""


def _files(path: Path, depth: int, seen: frozenset[str]) -> Iterator[Path]:
    """The files at or below a path, through links too: whoever loads them follows links."""
    if os.path.isdir(path):  # noqa: PTH112  # the other one raises where it may not look
        real = os.path.realpath(path)
        if real in seen:
            return  # a link that goes round leads to nothing new
        if depth > MAX_DEPTH:
            yield path  # can't be read as a file, and so says that there is more
            return
        try:
            inside = sorted(path.iterdir())
        except OSError:
            yield path
            return
        for entry in inside:
            yield from _files(entry, depth + 1, seen | {real})
    elif os.path.lexists(path):
        yield path


def _item(project: Path, file: Path, what: str) -> Item:
    path = _printable(shown(file.relative_to(project)))
    try:
        content = read_bytes(file, MAX_BYTES)
    except OSError:
        return Item(path=path, what=what, sha="can't be read")
    if len(content) > MAX_BYTES:
        return Item(path=path, what=what, sha=f"larger than {MAX_BYTES // 1024 // 1024} MiB")
    return Item(path=path, what=what, sha=hashlib.sha256(content).hexdigest(), runs=_runs(path, content))


def _runs(path: str, content: bytes) -> tuple[str, ...]:
    """The commands in a file, for the person to read; a file that can't be parsed shows none, and counts."""
    try:
        if path == ".promptside/config.toml":
            found = _checks(content)
        elif path.endswith(".json"):
            found = list(_commands(msgspec.json.decode(content)))
        else:
            return ()
    except (ValueError, RecursionError, msgspec.DecodeError):
        return ()
    return tuple(_printable(one)[:200] for one in found if isinstance(one, str) and one)[:MAX_SHOWN]


def _checks(content: bytes) -> list[Any]:
    document = parse(content[:TOML_BYTES].decode(), "")
    checks = document.data.get("checks") if isinstance(document, Document) else None
    return [checks.get(name) for name in ("test", "lint", "build")] if isinstance(checks, dict) else []


def _printable(text: str) -> str:
    """In one line, without what could move a cursor or turn the direction of writing."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


def _commands(value: Any) -> Iterator[str]:
    """What stands behind `command` and its `args`, or behind a helper's name, anywhere in a JSON value."""
    stack = [value]
    while stack:
        match stack.pop():
            case dict() as table:
                command, arguments = table.get("command"), table.get("args")
                if isinstance(command, str):
                    words = arguments if isinstance(arguments, list) else []
                    yield " ".join([command, *(word for word in words if isinstance(word, str))])
                for key, inner in table.items():
                    if key.endswith("Helper") and isinstance(inner, str):
                        yield inner
                stack.extend(reversed(list(table.values())))
            case list() as items:
                stack.extend(reversed(items))
            case _:
                pass
