"""One LSP method, several features: pygls takes one handler for each, so features lay theirs together here.

What was registered with pygls itself before is taken in; requests that are answered by lists give all of them,
other requests the first answer that there is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lsprotocol import types

if TYPE_CHECKING:
    from promptside_server.server import Server

Handler = Callable[[Any], Any]
_handlers: WeakKeyDictionary[Server, dict[str, list[Handler]]] = WeakKeyDictionary()


def on(server: Server, method: str, listen: Handler) -> None:
    """Be told of a notification, beside others."""
    handlers = _of(server, method)
    handlers.append(listen)
    if len(handlers) > 1 and method in server.protocol.fm.features:
        return

    async def tell(params: Any) -> None:
        for one in handlers:
            await _result(one(params))

    server.feature(method)(tell)


def give(server: Server, method: str, provide: Handler, options: Any = None) -> None:
    """Add to the list that a request is answered with; None adds nothing."""
    handlers = _of(server, method)
    handlers.append(provide)
    if method in server.protocol.fm.features:
        _widen(server.protocol.fm.feature_options, method, options)
        return

    async def answer(params: Any) -> list[Any] | types.CompletionList:
        found: list[Any] = []
        incomplete = False
        for one in handlers:
            part = await _result(one(params))
            if isinstance(part, types.CompletionList):
                incomplete = incomplete or part.is_incomplete
                part = part.items
            found += part or ()
        return types.CompletionList(is_incomplete=True, items=found) if incomplete else found

    server.feature(method, options)(answer)


def answer(server: Server, method: str, provide: Handler, options: Any = None) -> None:
    """Answer a request, unless somebody before us has an answer."""
    handlers = _of(server, method)
    handlers.append(provide)
    if method in server.protocol.fm.features:
        return

    async def first(params: Any) -> Any:
        for one in handlers:
            found = await _result(one(params))
            if found is not None:
                return found
        return None

    server.feature(method, options)(first)


def _of(server: Server, method: str) -> list[Handler]:
    methods = _handlers.setdefault(server, {})
    if method not in methods:
        before = server.protocol.fm.features.pop(method, None)
        methods[method] = [before] if before is not None else []
    return methods[method]


async def _result(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found


def _widen(known: dict[str, Any], method: str, options: Any) -> None:
    """Announce what both want."""
    there = known.get(method)
    if isinstance(options, types.CompletionOptions) and isinstance(there, types.CompletionOptions):
        letters = dict.fromkeys([*(there.trigger_characters or ()), *(options.trigger_characters or ())])
        there.trigger_characters = list(letters)
    elif isinstance(options, types.CodeActionOptions) and isinstance(there, types.CodeActionOptions):
        kinds = dict.fromkeys([*(there.code_action_kinds or ()), *(options.code_action_kinds or ())])
        there.code_action_kinds = list(kinds)
    elif there is None and options is not None:
        known[method] = options
