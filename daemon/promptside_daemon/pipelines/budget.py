"""What rendering a template may cost, and the environment in which every read, turn and filter pays.

Nothing else bounds a template: it is judged for what it holds, and here for how much it makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MAX_OUTPUT = 4_000_000
BUDGET = 50_000_000
"""Characters that one rendering may read and make, in all."""
TURN = 2_500
"""What one turn of a loop costs: 20,000 turns in all."""
TESTS = ("defined", "undefined", "none")

_READ, _TURNS = "its size", "its turns"
"""Filters that the meter puts in; no template can name them, for the blank in them."""


class SpentError(Exception):
    """The budget is used up."""


class Budget:
    def __init__(self) -> None:
        self.left = BUDGET

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise SpentError("The template loops or repeats beyond what a prompt can need")


class Meter(NodeTransformer):
    """Puts a filter around everything that reads a variable, and around what a loop goes over."""

    def __init__(self, environment: ImmutableSandboxedEnvironment) -> None:
        self._environment = environment

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802  # Jinja finds it by this name
        return self._filter(node, _READ) if node.ctx == "load" else node

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802  # as above
        self.generic_visit(node)
        return self._filter(node, _READ)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802  # as above
        self.generic_visit(node)
        return self._filter(node, _READ)

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # as above
        self.generic_visit(node)
        node.iter = self._filter(node.iter, _TURNS)
        return node

    def _filter(self, node: nodes.Node, name: str) -> nodes.Filter:
        return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno, environment=self._environment)


def environment(budget: Budget) -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        optimized=False,  # constant expressions are paid for, too: none runs while compiling
        autoescape=False,  # the text goes to an agent, not into a page
        trim_blocks=True,
        lstrip_blocks=True,
        cache_size=0,
    )
    made.globals.clear()
    made.filters.clear()
    tests = {name: made.tests[name] for name in TESTS}
    made.tests.clear()
    made.tests.update(tests)

    def read(value: object) -> object:
        budget.spend(_size(value))
        return value

    def turns(value: Any) -> tuple[Any, ...]:
        budget.spend(_size(value))
        items = tuple(value)
        budget.spend(len(items) * TURN)
        return items

    made.filters.update({name: _paying(apply, budget) for name, apply in FILTERS.items()})
    made.filters.update({_READ: read, _TURNS: turns})
    return made


def _size(value: object) -> int:
    match value:
        case str():
            return len(value)
        case tuple() | list():
            return sum(len(item) if isinstance(item, str) else 1 for item in value) + 1
        case _:
            return 1


def _paying(apply: Callable[..., Any], budget: Budget) -> Callable[..., Any]:
    """A filter that pays for what it is given, before, and for what it made."""

    def filtered(value: object, *arguments: object, **named: object) -> Any:
        if isinstance(value, Undefined) and apply is not _default:
            str(value)  # raises, with the name
        budget.spend(_size(value) + sum(map(_size, arguments)))
        result = apply(value, *arguments, **named)
        budget.spend(_size(result))
        return result

    return filtered


def _default(value: object, default: object = "", boolean: object = False) -> object:
    return default if isinstance(value, Undefined) or (boolean and not value) else value


def _join(value: Any, between: object = "") -> str:
    items = [str(item) for item in value]
    affordable(sum(map(len, items)) + len(str(between)) * len(items))
    return str(between).join(items)


def _indent(value: object, width: object = 4, first: object = False) -> str:
    if isinstance(width, bool) or not isinstance(width, int) or not 0 <= width <= 40:
        raise ValueError("`indent` takes a width from 0 to 40")
    text = str(value)
    affordable(len(text) + width * text.count("\n"))
    blank = " " * width
    lines = [blank + line if line.strip() else line for line in text.split("\n")]
    return "\n".join(lines) if first else "\n".join(lines)[width if lines[0].strip() else 0 :]


def _replace(value: object, old: object, new: object) -> str:
    text, old, new = str(value), str(old), str(new)
    if not old:
        raise ValueError("`replace` needs something to look for")
    affordable(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


def affordable(size: int) -> None:
    if size > MAX_OUTPUT:
        raise SpentError(f"The prompt grows over {MAX_OUTPUT:,} characters")


FILTERS: dict[str, Callable[..., Any]] = {
    "default": _default,
    "d": _default,
    "first": lambda value: next(iter(value), ""),
    "last": lambda value: value[-1] if value else "",
    "length": len,
    "count": len,
    "join": _join,
    "indent": _indent,
    "replace": _replace,
    "trim": lambda value: str(value).strip(),
    "lower": lambda value: str(value).lower(),
    "upper": lambda value: str(value).upper(),
    "title": lambda value: str(value).title(),
    "capitalize": lambda value: str(value).capitalize(),
}
"""Few, and none whose result can be much larger than what it was given, unless it says so first."""
