"""A pytest-lsp client with buffers, which announces what a test lets it, and keeps what the server said to it.

It is a person's hands in an editor: it opens, types, saves, and chooses code actions.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Union

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, LanguageClientProtocol
from pytest_lsp.client import register_lsp_features
from rig.lsp_buffers import edited, file_of, line_of
from rig.user import User

DEADLINE_SECONDS = 60.0
ONLY = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(execute_command=types.ExecuteCommandClientCapabilities()),
    text_document=types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(),
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(),
    ),
)
"""Commands, code actions that are commands, and diagnostics."""
USUAL = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        execute_command=types.ExecuteCommandClientCapabilities(),
        apply_edit=True,
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
    ),
    text_document=types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(
            code_action_literal_support=types.ClientCodeActionLiteralOptions(
                types.ClientCodeActionKindOptions(
                    [types.CodeActionKind.QuickFix, types.CodeActionKind.Source]
                )
            ),
            disabled_support=True,
        ),
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(),
    ),
)
"""The same, and what an editor of today has beside it: edits, in code actions and from the server."""
OURS = types.ClientCapabilities(
    workspace=USUAL.workspace, text_document=USUAL.text_document, experimental={"promptside": True}
)
"""What a client of ours announces: it is told each task whole."""
NEWS = ("task", "activity", "daemon", "output", "form")
_UNSTRUCTURE = get_converter().unstructure

Action = types.Command | types.CodeAction


class _Protocol(LanguageClientProtocol):
    """Keeps which methods the server used, and wakes who waits."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)  # type: ignore[no-untyped-call]  # pytest-lsp has no types there
        self.heard: set[str] = set()
        self.came = asyncio.Event()

    def handle_message(self, message: Any) -> None:
        super().handle_message(message)
        if (method := getattr(message, "method", None)) is not None:
            self.heard.add(method)
            self.came.set()


class LspClient:
    """Its buffers are in `texts`, by uri."""

    def __init__(self, lsp: LanguageClient, capabilities: types.ClientCapabilities) -> None:
        self.lsp = lsp
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.tasks: list[Any] = []
        """Each task as it was told, in order."""
        self.takes_edits = bool(capabilities.workspace and capabilities.workspace.apply_edit)
        for name in NEWS:
            lsp.feature(f"promptside/{name}")(self._news(name))
        if self.takes_edits:

            def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
                return types.ApplyWorkspaceEditResult(applied=self.apply(params.edit))

            lsp.feature(types.WORKSPACE_APPLY_EDIT)(apply)

    @property
    def task(self) -> Any:
        """The task that was told last; None before."""
        return self.tasks[-1] if self.tasks else None

    @property
    def heard(self) -> set[str]:
        """The methods that the server has used."""
        found: set[str] = self.lsp.protocol.heard  # type: ignore[attr-defined]  # see above
        return found

    def said(self, uri: str) -> Sequence[types.Diagnostic]:
        """The diagnostics of a file, as they were told last."""
        return self.lsp.diagnostics.get(uri, ())

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition gives when it gives something; looked at after each message of the server."""
        came: asyncio.Event = self.lsp.protocol.came  # type: ignore[attr-defined]  # see above
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not (found := condition()):
                came.clear()
                await came.wait()
        return found

    # --- buffers -------------------------------------------------------------------------------------------

    def visit(self, path: Path) -> str:
        """Open a file, or a new one; its uri."""
        uri, text = path.as_uri(), path.read_bytes().decode() if path.exists() else ""
        self.texts[uri], self.versions[uri] = text, 1
        item = types.TextDocumentItem(uri=uri, language_id="markdown", version=1, text=text)
        self.lsp.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def type(self, uri: str, text: str) -> None:
        """Make the buffer this text."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.lsp.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri]),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def replace(self, uri: str, old: str, new: str) -> None:
        """Type one thing in the place of another, which is there once."""
        assert self.texts[uri].count(old) == 1, f"{old!r} in {self.texts[uri]}"
        self.type(uri, self.texts[uri].replace(old, new))

    def save(self, uri: str) -> None:
        """Write the buffer to its file."""
        file_of(uri).write_bytes(self.texts[uri].encode())
        self.lsp.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def leave(self, uri: str) -> None:
        """Close a buffer."""
        del self.texts[uri], self.versions[uri]
        self.lsp.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def apply(self, edit: types.WorkspaceEdit) -> bool:
        """Apply an edit to open buffers; false if a version is not what it was."""
        changes = dict(edit.changes or {})
        for part in edit.document_changes or ():
            assert isinstance(part, types.TextDocumentEdit), part
            document = part.text_document
            if document.version not in (None, self.versions.get(document.uri)):
                return False
            assert all(isinstance(one, types.TextEdit) for one in part.edits), part
            changes[document.uri] = list(part.edits)  # type: ignore[arg-type]  # just asserted
        for uri, edits in changes.items():
            self.type(uri, edited(self.texts[uri], _UNSTRUCTURE(edits)))
        return True

    # --- orders --------------------------------------------------------------------------------------------

    async def command(self, name: str, *arguments: Any) -> Any:
        """Execute a command of ours."""
        return await self.lsp.workspace_execute_command_async(
            types.ExecuteCommandParams(f"promptside.{name}", list(arguments) or None)
        )

    async def actions(self, uri: str, before: str = "") -> Sequence[Action]:
        """What can be done on the first line with these words; what is disabled is left out."""
        place = types.Position(line_of(self.texts[uri], before), 0)
        here = [d for d in self.said(uri) if d.range.start.line == place.line]
        actions = await self.lsp.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri), types.Range(place, place), types.CodeActionContext(here)
            )
        )
        return [action for action in actions or () if not _disabled(action)]

    async def choose(self, uri: str, title: str, before: str = "") -> Any:
        """Do what the action says that begins with this title."""
        actions = await self.actions(uri, before)
        found = [action for action in actions if action.title.startswith(title)]
        assert found, f"no {title!r} among {actions} in {self.texts[uri]}"
        action = found[0]
        if isinstance(action, types.CodeAction) and action.edit is not None:
            self.apply(action.edit)
        command = action if isinstance(action, types.Command) else action.command
        if command is None:
            return None
        return await self.lsp.workspace_execute_command_async(
            types.ExecuteCommandParams(command.command, command.arguments)
        )

    def _news(self, name: str) -> Callable[[Any], None]:
        def told(params: Any) -> None:
            if name == "task":
                self.tasks.append(params.task)

        return told


@asynccontextmanager
async def lsp_client(
    user: User, capabilities: types.ClientCapabilities, name: str
) -> AsyncIterator[LspClient]:
    """A client with a server of its own, in the person's project."""
    lsp = LanguageClient(protocol_cls=_Protocol, converter_factory=_converter)
    register_lsp_features(lsp)
    made = LspClient(lsp, capabilities)
    await lsp.start_io(sys.executable, "-m", "promptside_server", env=user.environment, cwd=user.project)
    folder = types.WorkspaceFolder(uri=user.project.as_uri(), name="project")
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            await lsp.initialize_session(
                types.InitializeParams(
                    capabilities=capabilities,
                    client_info=types.ClientInfo(name=name),
                    workspace_folders=[folder],
                    root_uri=folder.uri,
                )
            )
        yield made
        async with asyncio.timeout(DEADLINE_SECONDS):
            await lsp.shutdown_session()
    finally:
        server = lsp._server
        if server is not None and server.returncode is None:
            server.kill()
        await lsp.stop()  # type: ignore[no-untyped-call]  # pytest-lsp has no types there


def _disabled(action: Action) -> bool:
    return isinstance(action, types.CodeAction) and action.disabled is not None


def _converter() -> Converter:
    """Theirs, which takes a code action that has a command for a command."""
    made: Converter = default_converter()  # type: ignore[no-untyped-call]  # pygls has no type for it

    def action(given: Any, _: Any) -> Action:
        if isinstance(given.get("command"), str):
            return made.structure(given, types.Command)
        return made.structure(given, types.CodeAction)

    made.register_structure_hook(Union[types.Command, types.CodeAction], action)  # noqa: UP007  # as they spell it
    return made
