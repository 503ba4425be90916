"""What an attempt changed, file by file: as it was before it and after it, to be compared in the editor (ED-12)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from promptside_protocol.errors import PromptsideError
from promptside_protocol.pages.words import size
from promptside_protocol.queries import Diff, FileAt, FileView
from promptside_protocol.views import Change
from promptside_server import readonly, shared
from promptside_server.attempts import find_attempt
from promptside_server.documents import uri_of
from promptside_server.features.commands import offer, refusal, typed
from promptside_server.ours import ChangedFile, Changes, OpenChanges
from promptside_server.server import Server
from promptside_server.target import fill

Side = Literal["before", "after"]
At = tuple[str, int]
"""A stage and an attempt of it."""
SIDES: tuple[Side, ...] = ("before", "after")


def register(server: Server) -> None:
    """A request and a command for the list, and the files as virtual documents."""

    async def changes(params: Any) -> Changes:
        try:
            return await changes_of(server, params if isinstance(params, dict) else {})
        except PromptsideError as error:
            raise refusal(error) from error

    async def show(given: dict[str, Any]) -> Changes | readonly.Shown:
        if server.editor.ours:
            return await changes_of(server, given)
        wish = await _wish(server, given)
        found = await server.link.call(Diff(**_at(wish)))
        path = readonly.place(wish.project, f"{wish.task}-{found.stage}-{found.attempt}.diff")
        await asyncio.to_thread(readonly.write, path, found.diff)
        return await readonly.show(server, readonly.uri_of(path))

    async def content(params: types.TextDocumentContentParams) -> types.TextDocumentContentResult | None:
        query = file_at(params.uri)
        if query is None:
            return None
        try:
            return types.TextDocumentContentResult(text=in_words(await server.link.call(query)))
        except PromptsideError as error:
            raise refusal(error) from error

    server.feature("promptside/changes")(changes)
    offer(server, "showChanges", show)
    shared.answer(server, types.WORKSPACE_TEXT_DOCUMENT_CONTENT, content)


async def changes_of(server: Server, given: dict[str, Any]) -> Changes:
    """The files that an attempt changed, or with `whole` all attempts of a task, with the addresses of both sides."""
    wish = await _wish(server, given)
    if wish.whole:
        return _whole(server, wish)
    found = await server.link.call(Diff(**_at(wish)))
    _, attempt = find_attempt(server, wish.project, wish.task, found.stage, found.attempt)
    running = attempt.ended is None
    at = found.stage, found.attempt
    return Changes(
        project=wish.project,
        task=wish.task,
        stage=found.stage,
        attempt=found.attempt,
        running=running,
        files=tuple(_file(server, wish, change, at, None if running else at) for change in found.changes),
    )


def _whole(server: Server, wish: OpenChanges) -> Changes:
    """From what each file was before the first attempt that changed it to what the last one left."""
    task = server.mirror.task(wish.project, wish.task)
    stages = task.stages if task is not None else ()
    attempts = sorted(((a.started or 0, s.id, a) for s in stages for a in s.attempts), key=lambda one: one[0])
    first: dict[str, tuple[At, Change]] = {}
    last: dict[str, tuple[At, Change]] = {}
    for _, stage, attempt in attempts:
        for change in attempt.changes:
            first.setdefault(change.path, ((stage, attempt.n), change))
            before = last.get(change.path)
            last[change.path] = (stage, attempt.n), _with(change, before[1] if before else None)
    files = [
        _file(server, wish, _since(first[path][1], change), first[path][0], at)
        for path, (at, change) in sorted(last.items())
        if (first[path][1].kind, change.kind) != ("added", "deleted")
    ]
    return Changes(
        project=wish.project, task=wish.task, stage="", attempt=0, running=False, files=tuple(files)
    )


def _with(change: Change, before: Change | None) -> Change:
    """A change together with those of the same file before it."""
    if before is None:
        return change
    return msgspec.structs.replace(
        change, added=_sum(before.added, change.added), removed=_sum(before.removed, change.removed)
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return one + other if one is not None and other is not None else None


def _since(first: Change, last: Change) -> Change:
    """What a file that others changed again has become since it was touched first."""
    kind = {("added", "modified"): "added", ("deleted", "added"): "modified"}.get((first.kind, last.kind))
    return msgspec.structs.replace(last, kind=kind) if kind else last


def _file(server: Server, wish: OpenChanges, change: Change, first: At, last: At | None) -> ChangedFile:
    """A changed file between two attempts; without the last, up to what it is now."""
    here = server.seen_as(uri_of(wish.project, change.path))

    def side(one: Side, at: At) -> str:
        name = f"{wish.task}/{at[0]}/{at[1]}/{quote(change.path)}"
        return f"{readonly.SCHEME}://{one}/{name}?project={quote(wish.project)}"

    return ChangedFile(
        path=change.path,
        kind=change.kind,
        added=change.added,
        removed=change.removed,
        before=side("before", first),
        after=here if last is None else side("after", last),
        uri=here,
    )


def file_at(uri: str) -> FileAt | None:
    """The file that an address names, `promptside://before/12/research/1/src/a.py?project=…`; None if it is none.

    With `of=planning/2` it is of another attempt than the path says: an editor that takes another path for another
    name of the file compares both sides under one.
    """
    parts = urlsplit(uri)
    side = next((one for one in SIDES if one == parts.netloc), None)
    if parts.scheme != readonly.SCHEME or side is None:
        return None
    match parts.path.lstrip("/").split("/", 3):
        case [task, stage, attempt, path] if task.isdigit() and attempt.isdigit() and stage and path:
            query = parse_qs(parts.query)
            of, _, n = query.get("of", [f"{stage}/{attempt}"])[0].rpartition("/")
            return FileAt(
                project=query.get("project", [""])[0],
                task=int(task),
                stage=of or stage,
                attempt=int(n) if n.isdigit() else int(attempt),
                path=unquote(path),
                side=side,
            )
        case _:
            raise JsonRpcInvalidParams(f"{uri} is no address of a file before or after an attempt.")


def in_words(file: FileView) -> str:
    """What an editor shows: the text, nothing for a file that was not there, else what it is."""
    match file.kind:
        case "text" | "link":
            return file.text
        case "absent":
            return ""
        case "binary":
            return f"({Path(file.path).name} is no text: {size(file.bytes)}.)\n"
        case "large":
            return f"({Path(file.path).name} is too large to be shown: {size(file.bytes)}.)\n"
        case "repository":
            return f"({Path(file.path).name} is a repository of its own; its files are not kept.)\n"


async def _wish(server: Server, given: dict[str, Any]) -> OpenChanges:
    wish: OpenChanges = typed("changes", await fill(server, OpenChanges, given), OpenChanges)
    return wish


def _at(wish: OpenChanges) -> dict[str, Any]:
    return {"project": wish.project, "task": wish.task, "stage": wish.stage, "attempt": wish.attempt}
