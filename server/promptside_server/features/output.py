"""What agents write: by cursor for clients of ours, as a growing file for every other editor."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.queries import FollowOutput
from promptside_server import readonly
from promptside_server.attempts import find_attempt
from promptside_server.features.commands import offer, refusal, typed
from promptside_server.follow import Flows, Follower, Piece
from promptside_server.ours import Follow, Followed, OutputNews, Unfollow
from promptside_server.plain import Plain
from promptside_server.server import Server
from promptside_server.target import fill

READERS = 64
"""How many wishes of one editor are followed at a time; the daemon takes no more."""


class ShowOutput(Struct, frozen=True, kw_only=True):
    """Show Output"""

    project: str
    task: int
    stage: str = ""
    attempt: int = 0


def register(server: Server) -> None:
    """Two requests of our own, and the command that opens the file."""
    readers = Readers(server)

    async def follow(params: Any) -> Followed:
        try:
            return await readers.follow(params)
        except PromptsideError as error:
            raise refusal(error) from error

    async def unfollow(params: Any) -> None:
        await readers.unfollow(params)

    server.feature("promptside/follow")(follow)
    server.feature("promptside/unfollow")(unfollow)
    logs = Logs(server, readers.flows)
    offer(server, "showOutput", logs.show)


class Readers:
    """The wishes of a client of ours."""

    def __init__(self, server: Server) -> None:
        self.flows = Flows(server)
        self._server = server
        self._numbers = itertools.count(1)
        self._readers: dict[int, Follower] = {}

    async def follow(self, params: Any) -> Followed:
        """Tell `promptside/output` of an attempt from now on, until it ends."""
        given = params if isinstance(params, dict) else {}
        wish: Follow = typed("follow", given, Follow)
        filled = await fill(self._server, FollowOutput, {"cursor": wish.cursor, **given})
        query: FollowOutput = typed("follow", filled, FollowOutput)
        if len(self._readers) >= READERS:
            raise refused("too-many", f"At most {READERS} outputs are followed; unfollow one first.")
        number = next(self._numbers)

        def take(piece: Piece) -> bool:
            told = self._server.protocol.tell(
                "promptside/output",
                OutputNews(
                    flow=number,
                    project=query.project,
                    task=query.task,
                    stage=piece.stage,
                    attempt=piece.attempt,
                    cursor=piece.cursor,
                    entries=piece.entries,
                    ended=piece.ended,
                    error=piece.error,
                ),
            )
            if told and (piece.ended or piece.error):
                self._readers.pop(number, None)
            return told

        reader = Follower(self._server, self.flows, query, take)
        self._readers[number] = reader
        try:
            await reader.open()
        except BaseException:
            del self._readers[number]
            raise
        return Followed(flow=number)

    async def unfollow(self, params: Any) -> None:
        """Tell no more of it."""
        wish: Unfollow = typed("unfollow", params if isinstance(params, dict) else {}, Unfollow)
        reader = self._readers.pop(wish.flow, None)
        if reader is not None:
            await reader.close()


class Logs:
    """Growing files under the cache directory; one for each attempt that was asked for, while it runs."""

    def __init__(self, server: Server, flows: Flows) -> None:
        self._server = server
        self._flows = flows
        self._growing: dict[Path, Follower] = {}

    async def show(self, given: dict[str, Any]) -> readonly.Shown:
        """Open the output of an attempt, the newest if none is named."""
        filled = await fill(self._server, ShowOutput, given)
        wish: ShowOutput = typed("showOutput", filled, ShowOutput)
        stage, attempt = find_attempt(self._server, wish.project, wish.task, wish.stage, wish.attempt)
        path = readonly.place(wish.project, f"{wish.task}-{stage}-{attempt.n}.log")
        if path not in self._growing:
            readonly.write(path, "")
            path.chmod(0o644)  # for as long as it takes to open it
            file = path.open("a", encoding="utf-8", errors="replace")
            path.chmod(0o444)
            query = FollowOutput(project=wish.project, task=wish.task, stage=stage, attempt=attempt.n)
            grows = _Grows(file, lambda: self._growing.pop(path, None))
            reader = Follower(self._server, self._flows, query, grows.take)
            self._growing[path] = reader
            try:
                await reader.open()
            except BaseException:
                del self._growing[path]
                file.close()
                raise
        return await readonly.show(self._server, readonly.uri_of(path))


class _Grows:
    """Writes pieces behind one another, until the last."""

    def __init__(self, file: TextIO, over: Any) -> None:
        self._file = file
        self._over = over
        self._plain = Plain()

    def take(self, piece: Piece) -> bool:
        self._file.write(self._plain.add(piece.entries))
        if piece.error:
            self._file.write(f"\n{piece.error}\n")
        self._file.flush()
        if piece.ended or piece.error:
            self._file.close()
            self._over()
        return True
