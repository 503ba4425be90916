"""What a kind of form has to supply; each kind is one file that ends with its `KIND`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from promptside_protocol.forms.document import FormError, Lack, Problem
from promptside_protocol.forms.grammar import Page, Section, listed

D = TypeVar("D")
A = TypeVar("A")


class Reading(Struct, Generic[A], frozen=True, kw_only=True):
    """What a kind found in a page."""

    answers: A
    found: dict[str, Section] = {}
    problems: tuple[Problem, ...] = ()
    bodies: dict[str, str] = {}


class Edit(Struct, frozen=True):
    """Lines `start` to `end` (exclusive, from 0) become these."""

    start: int
    end: int
    lines: tuple[str, ...]


class Kind(Struct, Generic[D, A], frozen=True, kw_only=True):
    """The functions of one kind, by definition D and answers A."""

    name: str
    sentence: Callable[[D], str]
    """What to do, in one sentence below the title."""
    number: Callable[[D], int | None]
    """The round in the last line, if the kind has rounds."""
    ids: Callable[[D], list[str]]
    render: Callable[[D], list[str]]
    """The body without answers."""
    read: Callable[[D, Page], Reading[A]]
    write: Callable[[D, Page, A], list[Edit]]
    """What to change in a page so that it reads as these answers; nothing else of it changes."""
    lacks: Callable[[D, A], list[Lack]]
    from_plain: Callable[[D, dict[str, Any]], A]
    to_plain: Callable[[A], dict[str, Any]]
    words: Callable[[D, dict[str, str], A], str]
    """The decision for the next stage, from the items' texts as they stand in the document."""


def error(at: int, code: str, text: str, ref: str = "") -> Problem:
    """A fault of the grammar in a line, counted from 0: approving is impossible."""
    return Problem(line=at + 1, severity="error", code=f"form-{code}", text=text, ref=ref)


def unknown(what: str, ref: str, known: list[str]) -> FormError:
    """What is said of an answer to something that is not in the form."""
    there = f"there {'is' if len(known) == 1 else 'are'} {listed(known)}" if known else "there is none"
    return FormError(f"There is no {what} {ref!r}; {there}.")
