"""pygls's protocol, as we need it: Structs of the daemon's protocol go in and out as they are.

Hot notifications are encoded by msgspec and written straight to the output; `promptside/*` parameters arrive as
plain data, for the handler to convert with its own Struct. Every request is answered, also a malformed one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

import msgspec
from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, RPCMessage

from promptside_server.transport import Input, Output, TooLong

log = logging.getLogger(__name__)

OURS = "promptside/"
_AT_THE_CURSOR = frozenset(
    {
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_SAVE,
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.TEXT_DOCUMENT_COMPLETION,
        types.TEXT_DOCUMENT_HOVER,
        types.TEXT_DOCUMENT_DEFINITION,
    }
)
"""What an editor says only of the document that the person is in; lenses it asks for of every visible one."""


class Protocol(LanguageServerProtocol):
    """Speaks LSP, and our own methods beside it."""

    active = ""
    """The document that the person was in last, as far as an editor tells."""
    exit_code: int | None = None
    """What the process is to end with, once the editor has said `exit`."""
    initialized = False
    """Whether `initialize` was understood."""

    def __init__(self, *args: Any) -> None:
        self.announcing: list[Callable[[types.ServerCapabilities], None]] = []
        """Each adds to the capabilities what pygls serves but doesn't announce."""
        self.plain: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {}
        """Commands that take their arguments as they come: they are called without pygls's detours."""
        super().__init__(*args)

    async def serve(self, source: Input) -> None:
        """Take one message after the other, until the input ends or the editor says `exit`."""

        def take(body: bytes | TooLong) -> None:
            self._read(body, source)
            if self.exit_code is not None:
                source.stop()

        await source.serve(take)

    def _read(self, body: bytes | TooLong, source: Input) -> None:
        if isinstance(body, TooLong):
            self._complain(None, JsonRpcInvalidRequest("The message is longer than is taken."))
            return
        try:
            data = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            again = source.unread(body)
            if not again or body[:1] == b"{":
                self._complain(None, JsonRpcParseError(f"The message is not JSON: {error}."))
            return
        if isinstance(data, dict) and data.get("jsonrpc") == self.VERSION:
            self._take(data)
        else:
            self._complain(None, JsonRpcInvalidRequest("The message is no JSON-RPC 2.0."))

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Leave the parameters of our own methods plain; everything else is pygls's."""
        method = data.get("method")
        if isinstance(method, str) and method.startswith(OURS):
            params = data.get("params")
            if "id" in data:
                return JsonRPCRequestMessage(id=data["id"], method=method, params=params, jsonrpc="2.0")
            return JsonRPCNotification(method=method, params=params, jsonrpc="2.0")
        return super().structure_message(data)

    def handle_message(self, message: RPCMessage) -> None:
        """Note where the person is, then go on."""
        if getattr(message, "method", None) in _AT_THE_CURSOR:
            document = message.params.text_document  # type: ignore[union-attr]  # each of these methods has one
            self.active = document.uri
        super().handle_message(message)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """What pygls answers, and what it would leave out."""
        self.initialized = True
        result = yield from super().lsp_initialize(params)
        for announce in self.announcing:
            announce(result.capabilities)
        return result

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]  # pygls takes plain functions too
        """End in order: pygls would raise SystemExit in the middle of the loop."""
        self.exit_code = 0 if self._shutdown else 1

    def tell(self, method: str, params: msgspec.Struct) -> bool:
        """Send a notification that may be asked for again; false if the editor is too far behind for it."""
        output = self.writer
        if not isinstance(output, Output) or output.full:
            return False
        body = msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params})
        output.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        return True

    @property
    def behind(self) -> bool:
        """Whether the editor doesn't read what it is sent."""
        return isinstance(self.writer, Output) and self.writer.full

    async def drained(self) -> None:
        """Wait until it has read most of it."""
        if isinstance(self.writer, Output):
            await self.writer.drained()

    def _out_of_place(self, data: dict[str, Any]) -> JsonRpcException | None:
        """Why LSP has no place for this: nothing goes before `initialize`, that once, and nothing after the end."""
        match data:
            case {"method": types.EXIT}:
                return None
            case {"method": str()} if self._shutdown:
                return JsonRpcInvalidRequest("The server was told to shut down.")
            case {"method": types.INITIALIZE} if self.initialized:
                return JsonRpcInvalidRequest("The server is initialized already.")
            case {"method": str(method)} if not self.initialized and method != types.INITIALIZE:
                return JsonRpcServerNotInitialized("The server is not initialized yet.")
            case {"params": {"textDocument": {"uri": str(uri)}}} if "%00" in uri:
                return JsonRpcInvalidParams("No file has a NUL in its name.")
            case _:
                return None

    def _take(self, data: dict[str, Any]) -> None:
        refused = self._out_of_place(data)
        if refused is not None:
            if isinstance(data.get("id"), int | str):
                self._complain(data["id"], refused)
            return
        if data.get("method") == types.WORKSPACE_EXECUTE_COMMAND and self._ordered(data):
            return
        try:
            message = self.structure_message(data)
        except Exception as error:  # noqa: BLE001  # whatever a client sends, the next message is read
            if "method" in data and isinstance(data.get("id"), int | str):
                self._complain(data["id"], _invalid(data, error))
            else:
                log.warning("a message “%s” can't be read: %s", data.get("method"), error)
            return
        try:
            self.handle_message(message)
        except Exception:
            log.exception("a message “%s” was handled wrongly by us", data.get("method"))

    def _ordered(self, data: dict[str, Any]) -> bool:
        """Carry out a command that is plain; pygls takes 200 µs to find out what it is given."""
        match data:
            case {"id": int() | str() as identity, "params": {"command": str(name), **rest}}:
                command, arguments = self.plain.get(name), rest.get("arguments") or []
            case _:
                return False
        if command is None or not isinstance(arguments, list) or self._shutdown:
            return False
        work: asyncio.Future[Any] = asyncio.ensure_future(command(*arguments))
        self._request_futures[identity] = work  # type: ignore[assignment]  # pygls keeps both kinds there
        work.add_done_callback(partial(self._send_handler_result, msg_id=identity))
        return True

    def _execute_handler(
        self, msg_id: int | str, handler: Callable[..., Any], *args: Any, **more: Any
    ) -> None:
        """As pygls does, which never forgets what it began for a notification, with the whole text in it."""
        super()._execute_handler(msg_id, handler, *args, **more)
        begun = self._request_futures.get(msg_id)

        def forget() -> None:
            if self._request_futures.get(msg_id) is begun:
                del self._request_futures[msg_id]

        if begun is not None:
            # Not at once: `shutdown` walks through what was begun and ends it on its way.
            soon = asyncio.get_running_loop().call_soon
            begun.add_done_callback(lambda _: soon(forget))

    def _send_response(
        self, msg_id: int | str, result: Any | None = None, error: types.ResponseError | None = None
    ) -> None:
        if isinstance(result, list) and result and all(isinstance(one, types.CodeLens) for one in result):
            plain: Any = [_lens(one) for one in result]
        elif error is None and isinstance(result, msgspec.Struct):
            plain = result
        else:
            super()._send_response(msg_id, result, error)
            return
        self._result_types.pop(msg_id, None)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": msg_id, "result": plain})
        if isinstance(self.writer, Output):
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _complain(self, identity: int | str | None, error: JsonRpcException) -> None:
        """An answer that pygls would not give: also to what has no id that can be read."""
        failure = {"code": error.code, "message": error.message}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "error": failure})
        if isinstance(self.writer, Output):
            self.writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _serialize_message(self, data: Any) -> Any:
        if isinstance(data, msgspec.Struct):
            return msgspec.to_builtins(data)
        return super()._serialize_message(data)


def converter() -> Converter:
    """pygls's converter, which also knows Structs."""
    made: Converter = default_converter()  # type: ignore[no-untyped-call]  # pygls has no type for it
    made.register_structure_hook_func(_is_struct, _structure)
    made.register_unstructure_hook_func(_is_struct, msgspec.to_builtins)
    return made


def announce_content(capabilities: types.ServerCapabilities, scheme: str) -> None:
    """Say that we serve virtual documents: pygls handles the request, but doesn't announce it."""
    workspace = capabilities.workspace or types.WorkspaceOptions()
    workspace.text_document_content = types.TextDocumentContentOptions(schemes=[scheme])
    capabilities.workspace = workspace


def _lens(lens: types.CodeLens) -> dict[str, Any]:
    """As pygls's converter would have it; lenses are asked for at every key, by the hundred, and it takes its time."""
    start, end, command = lens.range.start, lens.range.end, lens.command
    plain: dict[str, Any] = {
        "range": {
            "start": {"line": start.line, "character": start.character},
            "end": {"line": end.line, "character": end.character},
        }
    }
    if command is not None:
        plain["command"] = {"title": command.title, "command": command.command}
        if command.arguments is not None:
            plain["command"]["arguments"] = command.arguments
    return plain


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _invalid(data: dict[str, Any], error: Exception) -> JsonRpcException:
    """What is wrong with a request: the deepest reason that can be told."""
    cause = error.__cause__ or error
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return JsonRpcInvalidParams(f"The parameters of “{data['method']}” can't be read: {cause!r}.")


def _structure(data: Any, kind: Any) -> Any:
    return msgspec.convert(data, kind)
