"""Questions of clients of ours, handed on to the daemon: only those that change nothing, and open no flow."""

from __future__ import annotations

from typing import Any

import msgspec
from pygls.exceptions import JsonRpcInvalidParams

from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import QUERIES
from promptside_server.features.commands import refusal, typed
from promptside_server.server import Server
from promptside_server.target import fill

READS = (
    "projects", "findProject", "tasks", "task", "form", "document", "decisions", "output", "diff", "fileAt", "rules",
    "pipelines", "pipeline", "checkPipeline", "checkText", "vocabulary", "trustState", "doctor", "garbage", "status",
)  # fmt: skip
"""Queries that are handed on; the others are between the daemon and whoever holds the connection."""
ALL_PROJECTS = ("tasks",)
"""Where an empty project means every one."""


def register(server: Server) -> None:
    """One request for all of them."""

    async def query(params: Any) -> Any:
        given = params if isinstance(params, dict) else {}
        name = str(given.get("type") or "")
        if name not in READS:
            raise JsonRpcInvalidParams(f"“{name}” is nothing that can be read; one of {', '.join(READS)}.")
        kind = QUERIES[name]
        try:
            filled = dict(given) if name in ALL_PROJECTS else await fill(server, kind, given)
            return msgspec.to_builtins(await server.link.call(typed(name, filled, kind)))
        except PromptsideError as error:
            raise refusal(error) from error

    server.feature("promptside/query")(query)
