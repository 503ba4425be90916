"""The one place where the terminal meets the daemon; every verb asks and orders through it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from promptside_protocol import connect
from promptside_protocol.blocking import request
from promptside_protocol.commands import Ack, AnyCommand
from promptside_protocol.queries import Query

if TYPE_CHECKING:
    from promptside_protocol.client import Connection, Daemon
    from promptside_protocol.notices import Notice

CLIENT = "terminal"
"""As it stands in approvals."""

A = TypeVar("A")


@overload
def ask(order: Query[A], *, start: bool = True) -> A: ...
@overload
def ask(order: AnyCommand, *, start: bool = True) -> Ack: ...
def ask(order: Query[Any] | AnyCommand, *, start: bool = True) -> Any:
    """One question or order on a connection of its own; raises what the protocol raises."""
    return request(connect.hello(CLIENT), order, start=start)


def session() -> AbstractAsyncContextManager[Daemon]:
    """A connection that stays, for what goes on: `async with session() as daemon`."""
    from promptside_protocol import client  # noqa: PLC0415  # asyncio costs 40 ms that most calls can spare

    return client.connect(connect.hello(CLIENT), start=True)


async def notices(daemon: Daemon) -> AsyncIterator[Notice | Connection]:
    """Everything that comes. A daemon that went unasked is started again, since somebody looks on."""
    from promptside_protocol.client import Connection  # noqa: PLC0415  # see `session`
    from promptside_protocol.notices import DaemonSays  # noqa: PLC0415  # see `session`
    from promptside_protocol.queries import Status  # noqa: PLC0415  # see `session`

    asked_to_go = False
    async for notice in daemon:
        yield notice
        match notice:
            case DaemonSays(state=state):
                asked_to_go = state == "stopping"
            case Connection(state="lost") if not asked_to_go:
                await daemon.call(Status())
            case Connection(state="connected"):
                asked_to_go = False
            case _:
                pass  # says nothing about the daemon


def listens() -> bool:
    """Whether a daemon is there at all."""
    found = connect.dial()
    if found is not None:
        found.close()
    return found is not None
