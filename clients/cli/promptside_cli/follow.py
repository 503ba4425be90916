"""`log --follow`: one attempt's output until it ends, as text, lines of JSON, or the transcript's bytes."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from promptside_cli import wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DETACHED, DONE
from promptside_cli.stream import Stream
from promptside_cli.terminal import Terminal
from promptside_protocol.errors import Internal
from promptside_protocol.notices import FlowFailed, OutputCame
from promptside_protocol.queries import FollowOutput, GetTask
from promptside_protocol.views import AttemptView, StageView, TaskView


def follow_log(
    arguments: Arguments,
    view: TaskView,
    stage: StageView,
    attempt: AttemptView,
    pattern: re.Pattern[str] | None,
) -> int:
    """`log --follow`"""
    terminal = Terminal.of(arguments)
    try:
        if arguments.given("--raw"):
            asyncio.run(_raw(view, stage, attempt))
            return DONE
        code = asyncio.run(_read(terminal, view, stage, attempt, pattern))
    except KeyboardInterrupt:
        code = DETACHED
    if terminal.json:
        view = wire.ask(GetTask(project=view.project, task=view.id))
        terminal.document({"event": "end", "exit": code, "seq": view.seq, "task": view})
    return code


async def _read(
    terminal: Terminal,
    view: TaskView,
    stage: StageView,
    attempt: AttemptView,
    pattern: re.Pattern[str] | None,
) -> int:
    stream = Stream(terminal, only=pattern)
    async for came in _came(view, stage, attempt):
        if terminal.json:
            where: dict[str, Any] = {"task": view.id, "stage": came.stage, "attempt": came.attempt}
            line = {
                "event": "output",
                "seq": view.seq,
                **where,
                "cursor": came.cursor,
                "entries": came.entries,
            }
            terminal.document(line)
        else:
            stream.add(came.entries)
    stream.close()
    return DONE


async def _raw(view: TaskView, stage: StageView, attempt: AttemptView) -> None:
    with Path(attempt.transcript).open("rb") as source:  # noqa: ASYNC230  # a local file, and nobody else waits
        out = sys.stdout.buffer
        async for _ in _came(view, stage, attempt):
            # A notice says that there is more; what of it is there is copied as it is.
            out.write(source.read())
            out.flush()
        out.write(source.read())
        out.flush()


async def _came(view: TaskView, stage: StageView, attempt: AttemptView) -> AsyncIterator[OutputCame]:
    async with wire.session() as daemon:
        followed = await daemon.call(
            FollowOutput(project=view.project, task=view.id, stage=stage.id, attempt=attempt.n)
        )
        async for notice in wire.notices(daemon):
            match notice:
                case OutputCame(flow=followed.flow):
                    yield notice
                    if notice.ended:
                        return
                case FlowFailed(refusal=refusal):
                    raise Internal(refusal)
                case _:
                    pass  # nothing of this attempt
