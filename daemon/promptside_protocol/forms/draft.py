"""The draft of a form: edits of several people merged by item, and the difference between two texts.

The draft is what the daemon has; nothing in it is ever given up for an edit that did not see it (M10).
"""

from __future__ import annotations

import difflib
from typing import Any

from msgspec import Struct

from promptside_protocol.forms.document import Answers, Definition, Parsed
from promptside_protocol.forms.form import canonical, from_plain, to_plain

_LONG = 4000
"""More different lines than this are listed one after another: comparing them would take too long."""


class Conflict(Struct, frozen=True, kw_only=True):
    """An item that both sides changed; None is no answer."""

    ref: str
    mine: Any
    theirs: Any


class Merged(Struct, frozen=True, kw_only=True):
    """The answers of both sides; in a conflict theirs stay."""

    answers: Answers
    conflicts: tuple[Conflict, ...] = ()


def edited(definition: Definition, draft: Answers, parsed: Parsed) -> Answers:
    """The draft after a person wrote a text; an item that can't be read there keeps its answer (UX 2.11)."""
    kept = {ref: value for ref, value in to_plain(draft).items() if ref in parsed.unread}
    read = {ref: value for ref, value in to_plain(parsed.answers).items() if ref not in parsed.unread}
    return from_plain(definition, {**read, **kept})


def merge(definition: Definition, base: Answers, mine: Answers, theirs: Answers) -> Merged:
    """Lay what changed from base to mine over theirs, by item: people on different items never meet."""
    before, own, other = to_plain(base), to_plain(mine), to_plain(theirs)
    merged = dict(other)
    conflicts: list[Conflict] = []
    for ref in dict.fromkeys([*before, *own, *other]):
        was, wanted, now = (_at(side, ref) for side in (before, own, other))
        if wanted in (was, now):
            continue  # not changed by me, or to the same by both
        if now != was:
            conflicts.append(Conflict(ref=ref, mine=own.get(ref), theirs=other.get(ref)))
        elif ref in own:
            merged[ref] = own[ref]
        else:
            del merged[ref]
    return Merged(answers=from_plain(definition, merged), conflicts=tuple(conflicts))


def _at(side: dict[str, Any], ref: str) -> tuple[Any, ...]:
    """An answer, told apart from none: a field that was emptied is an answer, None."""
    return (side[ref],) if ref in side else ()


def difference(definition: Definition, ours: str, theirs: str) -> str:
    """A unified difference of the two documents as they are compared; empty if they say the same."""
    one = canonical(definition, ours).split("\n")
    two = canonical(definition, theirs).split("\n")
    if max(len(one), len(two)) <= _LONG:
        return "\n".join(difflib.unified_diff(one, two, "ours", "theirs", lineterm=""))
    if one == two:
        return ""
    first = next(i for i, (a, b) in enumerate(zip([*one, None], [*two, None], strict=False)) if a != b)
    last = 0
    while last < min(len(one), len(two)) - first and one[-1 - last] == two[-1 - last]:
        last += 1
    removed, added = one[first : len(one) - last], two[first : len(two) - last]
    head = f"@@ -{first + 1},{len(removed)} +{first + 1},{len(added)} @@"
    return "\n".join(["--- ours", "+++ theirs", head, *(f"-{a}" for a in removed), *(f"+{b}" for b in added)])
