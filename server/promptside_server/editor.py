"""What the editor at the other end can show, read off its capabilities once."""

from __future__ import annotations

import re

from lsprotocol import types
from msgspec import Struct


class Editor(Struct, kw_only=True):
    """Capabilities that change how something is shown; never what can be done."""

    name: str = "editor"
    client: str = "editor"
    """Its name in one word, as it stands in approvals: `neovim`, `vscode`, `emacs`, …"""
    ours: bool = False
    """A client of ours: it takes `promptside/*` notifications."""
    lenses: bool = False
    lens_refresh: bool = False
    inlays: bool = False
    inlay_refresh: bool = False
    disabled_actions: bool = False
    """Shows a code action that can't be done now, with its reason."""
    edits: bool = False
    """Takes `workspace/applyEdit`."""
    show_document: bool = False
    ask: bool = False
    """Shows a message with buttons."""
    progress: bool = False
    contents: bool = False
    """Opens virtual documents by `workspace/textDocumentContent`."""

    def read(self, params: types.InitializeParams) -> None:
        """Take the client's word."""
        capabilities = params.capabilities
        window, workspace = capabilities.window, capabilities.workspace
        documents = capabilities.text_document
        if params.client_info is not None:
            self.name = params.client_info.name
            self.client = word_for(self.name)
        experimental = capabilities.experimental
        self.ours = bool(isinstance(experimental, dict) and experimental.get("promptside"))
        if not self.ours and experimental is not None:
            self.ours = bool(getattr(experimental, "promptside", False))
        self.lenses = documents is not None and documents.code_lens is not None
        self.inlays = documents is not None and documents.inlay_hint is not None
        action = documents.code_action if documents is not None else None
        self.disabled_actions = bool(action is not None and action.disabled_support)
        if workspace is not None:
            self.edits = bool(workspace.apply_edit)
            self.lens_refresh = bool(workspace.code_lens and workspace.code_lens.refresh_support)
            self.inlay_refresh = bool(workspace.inlay_hint and workspace.inlay_hint.refresh_support)
            self.contents = workspace.text_document_content is not None
        if window is not None:
            self.show_document = bool(window.show_document and window.show_document.support)
            self.ask = bool(window.show_message and window.show_message.message_action_item)
            self.progress = bool(window.work_done_progress)


_WORDS = {"visual studio code": "vscode", "code": "vscode", "eglot": "emacs", "sublime text lsp": "sublime"}


def word_for(name: str) -> str:
    """An editor's name for itself as one word, without what its LSP part is called."""
    plain = name.strip().lower()
    for start, word in _WORDS.items():
        if plain == start or plain.startswith(f"{start} "):
            return word
    return re.sub(r"[^a-z0-9]+", "-", plain.removesuffix("-lsp").removesuffix(" lsp")).strip("-") or "editor"
