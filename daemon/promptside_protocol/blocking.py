"""One request on a socket of its own, without an event loop: what most calls of the terminal need."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from promptside_protocol import connect, errors
from promptside_protocol.commands import Ack, AnyCommand
from promptside_protocol.queries import Hello, Query

A = TypeVar("A")


@overload
def request(greeting: Hello, order: Query[A], *, start: bool = True) -> A: ...
@overload
def request(greeting: Hello, order: AnyCommand, *, start: bool = True) -> Ack: ...
def request(greeting: Hello, order: Query[Any] | AnyCommand, *, start: bool = True) -> Any:
    """Reach the daemon, ask or order, and give back the typed answer; raises `PromptsideError`.

    What a daemon that ends does not take, or what may be repeated, is put to the next one.
    """
    for _ in range(connect.TRIES):
        wire, _welcome = connect.greet(greeting, start=start)
        try:
            return wire.ask(order)
        except ConnectionError:
            if not connect.repeatable(order):
                raise connect.answer_lost(order) from None
        except errors.Refused as refused:
            if refused.refusal.code != "stopping":
                raise
        finally:
            wire.close()
    raise connect.unreachable("The daemon went away again and again before it answered.")
