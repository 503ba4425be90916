"""What the wire and the process need of the daemon that they carry."""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from msgspec import Struct

from promptside_daemon.rpc.who import Who
from promptside_protocol.notices import Notice
from promptside_protocol.queries import FollowOutput, Query, Watch


class Core(Protocol):
    """The daemon without its wire; whatever it raises but a `PromptsideError` is a bug."""

    async def order(self, command: Struct, who: Who) -> object:
        """Take an order; the answer is an `Ack`."""

    async def ask(self, query: Query[Any], who: Who) -> object:
        """Answer any question that opens no flow."""

    def flow(self, query: Watch | FollowOutput, who: Who, flow: int) -> AsyncGenerator[Notice, None]:
        """The notices of a flow; pulled as fast as the client reads, closed when it goes."""
        ...

    def gone(self, who: Who) -> None:
        """The connection has ended; what it held, it holds no longer."""
        ...

    def keepers(self) -> dict[int, str]:
        """The attempt of each living keeper, by its pid."""
        ...

    def task_of(self, attempt: str) -> tuple[str, int] | None:
        """Project and task of an attempt, whether it runs or has ended."""
        ...

    def busy(self) -> bool:
        """Whether an attempt runs."""
        ...

    def due(self) -> float | None:
        """When the next thing is due by the clock, in seconds since 1970."""
        ...

    async def close(self) -> None:
        """Finish what is being committed, and close the databases; agents at work go on."""
