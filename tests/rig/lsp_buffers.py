"""An editor with buffers: it applies what it is sent, chooses code actions by their titles, and saves.

Columns are counted in UTF-16, as LSP has it; what a test types is told as one full change.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rig.lsp_editor import LspEditor, Message

LITERALS = {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["", "quickfix", "source"]}}}
MINIMAL: dict[str, Any] = {
    "workspace": {"executeCommand": {}},
    "textDocument": {"codeAction": {}, "publishDiagnostics": {}},
}
"""Commands, bare code actions and diagnostics: what every editor has."""
PLAIN: dict[str, Any] = {
    "workspace": {"executeCommand": {}, "applyEdit": True, "workspaceEdit": {"documentChanges": True}},
    "textDocument": {"codeAction": {**LITERALS, "disabledSupport": True}, "publishDiagnostics": {}},
}
"""An editor of today without lenses."""
LINE_END = re.compile(r"\r\n|\r|\n")


class Buffers(LspEditor):
    """Its buffers are in `texts`; every file is below the project."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.said: dict[str, list[Any]] = {}
        """Diagnostics by uri, as they were told last."""
        self.takes_edits = bool((self.capabilities.get("workspace") or {}).get("applyEdit"))
        self.project: Path = self._folder

    # --- buffers -------------------------------------------------------------------------------------------

    def visit(self, path: Path) -> str:
        """Open a file; its uri."""
        text = path.read_bytes().decode()
        uri = self.open(path, text)
        self.texts[uri], self.versions[uri] = text, 1
        return uri

    def type(self, uri: str, text: str) -> None:
        """Make the buffer this text."""
        self.texts[uri] = text
        self.versions[uri] += 1
        version = {"uri": uri, "version": self.versions[uri]}
        self.tell("textDocument/didChange", {"textDocument": version, "contentChanges": [{"text": text}]})

    def replace(self, uri: str, old: str, new: str) -> None:
        """Type one thing in the place of another, which is there once."""
        assert self.texts[uri].count(old) == 1, f"{old!r} in {self.texts[uri]}"
        self.type(uri, self.texts[uri].replace(old, new))

    def save(self, uri: str) -> None:
        """Write the buffer to its file."""
        file_of(uri).write_bytes(self.texts[uri].encode())
        self.tell("textDocument/didSave", {"textDocument": {"uri": uri}})

    def reload(self, uri: str) -> None:
        """Read the file anew, as an editor does whose buffer was not changed."""
        self.type(uri, file_of(uri).read_bytes().decode())

    def leave(self, uri: str) -> None:
        """Close a buffer."""
        del self.texts[uri], self.versions[uri]
        self.tell("textDocument/didClose", {"textDocument": {"uri": uri}})

    # --- actions -------------------------------------------------------------------------------------------

    async def actions(self, uri: str, line: int = 0) -> list[Any]:
        """The code actions of a line, as the editor would list them."""
        place = {"line": line, "character": 0}
        here = [d for d in self.said.get(uri, []) if d["range"]["start"]["line"] == line]
        params = {
            "textDocument": {"uri": uri},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": here},
        }
        found: list[Any] = await self.ask("textDocument/codeAction", params)
        return found

    async def choose(self, uri: str, title: str, line: int = 0) -> Any:
        """Do what the action that begins with this title says."""
        actions = await self.actions(uri, line)
        found = [a for a in actions if a["title"].startswith(title) and "disabled" not in a]
        assert found, f"no {title!r} among {actions} in {self.texts[uri]}"
        return await self.perform(found[0])

    async def perform(self, action: Any) -> Any:
        """Apply its edit, then run its command."""
        if "edit" in action:
            self.apply(action["edit"])
        command = action.get("command")
        if command is None:
            return None
        given = command if isinstance(command, dict) else action
        params = {"command": given["command"], "arguments": given.get("arguments", [])}
        return await self.ask("workspace/executeCommand", params)

    def apply(self, edit: Any) -> bool:
        """Apply a workspace edit to open buffers; false if a version is not what it was."""
        changes = dict(edit.get("changes") or {})
        for part in edit.get("documentChanges") or ():
            uri, version = part["textDocument"]["uri"], part["textDocument"].get("version")
            if version is not None and version != self.versions.get(uri):
                return False
            changes[uri] = part["edits"]
        for uri, edits in changes.items():
            self.type(uri, edited(self.texts[uri], edits))
        return True

    # --- hearing -------------------------------------------------------------------------------------------

    async def diagnosed(self, uri: str, condition: Callable[[list[Any]], object]) -> list[Any]:
        """The diagnostics of a file when they fulfil the condition."""
        if uri in self.said and condition(self.said[uri]):
            return self.said[uri]

        def told(message: Message) -> bool:
            params = message.get("params") or {}
            if message.get("method") != "textDocument/publishDiagnostics" or params["uri"] != uri:
                return False
            return bool(condition(params["diagnostics"]))

        found: list[Any] = (await self.until(told, len(self.heard)))["params"]["diagnostics"]
        return found

    async def turned(self, uri: str, condition: Callable[[str], object]) -> str:
        """The text of a buffer when the server has made it fulfil the condition."""
        at = len(self.heard)
        while not condition(self.texts[uri]):
            await self.until(lambda m: m.get("method") == "workspace/applyEdit", at)
            at = len(self.heard)
        return self.texts[uri]

    def _hear(self, message: Message) -> None:
        if message.get("method") == "workspace/applyEdit":
            applied = self.takes_edits and self.apply(message["params"]["edit"])
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"applied": applied}})
            self.heard.append(message)
            self._came.set()
            return
        if message.get("method") == "textDocument/publishDiagnostics":
            self.said[message["params"]["uri"]] = message["params"]["diagnostics"]
        super()._hear(message)


def file_of(uri: str) -> Path:
    """The file of a uri."""
    return Path(unquote(urlsplit(uri).path))


def line_of(text: str, wanted: str) -> int:
    """The first line (from 0) that has this in it."""
    return next(at for at, line in enumerate(LINE_END.split(text)) if wanted in line)


def edited(text: str, edits: list[Any]) -> str:
    """The text with edits that do not overlap, counted in UTF-16."""
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]

    def offset(place: dict[str, int]) -> int:
        assert place["line"] < len(starts), f"line {place['line']} of {len(starts)}"
        start = starts[place["line"]]
        rest = text[start:].encode("utf-16-le")[: 2 * place["character"]]
        return start + len(rest.decode("utf-16-le"))

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
