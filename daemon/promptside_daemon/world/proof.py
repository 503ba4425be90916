"""The read-only proof (ST-16): which of the changed files a read-only stage has to answer for. Pure.

A changed path fails a stage only if a tool use of its attempt can have made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Literal

from msgspec import Struct


class Touched(Struct, frozen=True, kw_only=True):
    """What the tool uses of an attempt can have written."""

    paths: frozenset[str]
    """Named by Write, Edit and NotebookEdit, below the project and as `Change.path` writes them; where a
    link is on the way, as named and as resolved."""
    anything: bool
    """After a tool use of which nobody can say what it wrote: a Bash that was not provably reading."""


class Meanwhile(Struct, frozen=True, kw_only=True):
    path: str
    said: Literal["changed meanwhile, not by the agent", "unknown"]


class Proof(Struct, frozen=True, kw_only=True):
    verdict: Literal["proved", "breach", "meanwhile"]
    breach: tuple[str, ...]
    """Paths that the attempt can have changed; one is enough to fail the stage."""
    meanwhile: tuple[Meanwhile, ...]
    """The other changed paths. They fail nothing, and undo does not touch them."""


def judge(changes: Iterable[str], touched: Touched, others: AbstractSet[str]) -> Proof:
    """`others`: paths that an editor saved or another attempt touched while this one ran."""
    breach: list[str] = []
    meanwhile: list[Meanwhile] = []
    for path in sorted(set(changes)):
        if path in touched.paths or (touched.anything and path not in others):
            breach.append(path)
        elif path in others:
            meanwhile.append(Meanwhile(path=path, said="changed meanwhile, not by the agent"))
        else:
            meanwhile.append(Meanwhile(path=path, said="unknown"))
    verdict: Literal["proved", "breach", "meanwhile"] = (
        "breach" if breach else "meanwhile" if meanwhile else "proved"
    )
    return Proof(verdict=verdict, breach=tuple(breach), meanwhile=tuple(meanwhile))
