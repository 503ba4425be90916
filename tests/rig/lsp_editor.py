"""An editor as plain as it gets: it starts the language server, speaks LSP in bytes, and remembers what it heard.

Every wait has an end; a server that is left behind is killed.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from rig.user import User

DEADLINE_SECONDS = 60.0
OURS: dict[str, Any] = {"experimental": {"promptside": True}}
"""What a client of ours announces."""

Message = dict[str, Any]


class Said(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Any = error.get("data")


class LspEditor:
    """A context manager; what it hears is in `heard`, in order."""

    def __init__(
        self,
        user: User,
        capabilities: dict[str, Any] | None = None,
        *,
        name: str = "Neovim",
        folder: Path | None = None,
        process_id: int | None = None,
        answers: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.heard: list[Message] = []
        self.capabilities = OURS if capabilities is None else capabilities
        self.name = name
        self.server_can: dict[str, Any] = {}
        self.process: asyncio.subprocess.Process
        self._user = user
        self._folder = folder or user.project
        self._process_id = process_id
        self._answers = answers or {}
        self._options = options
        self._last = 0
        self._came = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        try:
            await self.initialize()
        except BaseException:
            await self.__aexit__()  # nobody else would end it
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        # Kills it and closes the pipes: one that nobody reads would hold up the waiting for ever.
        self.process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way
        await self.process.wait()

    async def start(self, *, reads: bool = True) -> None:
        """Start the server; with `reads`, read whatever it says."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "promptside_server",
            env=self._user.environment,
            cwd=self._folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 16,
        )
        if reads:
            self._reading = asyncio.create_task(self._read())

    async def initialize(self) -> None:
        """The handshake."""
        answer = await self.ask(
            "initialize",
            {
                "processId": self._process_id,
                "clientInfo": {"name": self.name},
                "rootUri": self._folder.as_uri(),
                "workspaceFolders": [{"uri": self._folder.as_uri(), "name": self._folder.name}],
                "capabilities": self.capabilities,
                "initializationOptions": self._options,
            },
        )
        self.server_can = answer["capabilities"]
        self.tell("initialized", {})

    # --- saying --------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def send(self, message: Message) -> None:
        """One message, framed."""
        self.write(framed(message))

    def tell(self, method: str, params: Any) -> None:
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any) -> int:
        """A request whose answer is waited for later; its number."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    async def ask(self, method: str, params: Any) -> Any:
        """A request and its answer."""
        since = len(self.heard)
        return await self.answer(self.begin(method, params), since)

    async def command(self, name: str, /, **arguments: Any) -> Any:
        """A command of ours; without arguments, it is sent without any."""
        given = [arguments] if arguments else []
        params = {"command": f"promptside.{name}", "arguments": given}
        return await self.ask("workspace/executeCommand", params)

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a buffer; its uri."""
        uri = path.as_uri()
        content = path.read_text(encoding="utf-8") if text is None else text
        document = {"uri": uri, "languageId": "markdown", "version": 1, "text": content}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return uri

    # --- hearing -------------------------------------------------------------------------------------------

    async def answer(self, number: int | str, since: int = 0) -> Any:
        """The answer to a request that was begun."""
        message = await self.until(lambda m: m.get("id") == number and "method" not in m, since)
        if "error" in message:
            raise Said(message["error"])
        return message.get("result")

    async def until(self, condition: Callable[[Message], object], since: int = 0) -> Message:
        """The first message from `since` on that fulfils the condition."""
        at = since
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                while at < len(self.heard):
                    if condition(self.heard[at]):
                        return self.heard[at]
                    at += 1
                assert self._reading is not None
                assert not self._reading.done(), "the server has ended"
                self._came.clear()
                await self._came.wait()

    async def note(
        self, method: str, condition: Callable[[Any], object] = lambda _: True, since: int = 0
    ) -> Any:
        """The parameters of the first such notification."""
        found = await self.until(lambda m: m.get("method") == method and condition(m["params"]), since)
        return found["params"]

    async def task(self, condition: Callable[[Any], object], since: int = 0) -> Any:
        """The task as it was told when it fulfilled the condition."""
        news = await self.note("promptside/task", lambda p: condition(p["task"]), since)
        return news["task"]

    def notes(self, method: str) -> list[Any]:
        """The parameters of every such notification so far."""
        return [m["params"] for m in self.heard if m.get("method") == method]

    async def end(self) -> int:
        """Wait for the server's end; its exit code."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                length = 0
                while (line := await self.process.stdout.readline()) != b"\r\n":
                    if not line:
                        return
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                self._hear(json.loads(await self.process.stdout.readexactly(length)))
        except asyncio.IncompleteReadError:
            pass
        finally:
            self._came.set()

    def _hear(self, message: Message) -> None:
        if "id" in message and "method" in message:
            answer = self._answers.get(message["method"], ANSWERS.get(message["method"]))
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
        self.heard.append(message)
        self._came.set()


ANSWERS: dict[str, Any] = {
    "window/showDocument": {"success": True},
    "workspace/applyEdit": {"applied": True},
}
"""What an obliging editor answers."""


def framed(message: Message) -> bytes:
    """A message as it goes over the pipe."""
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
