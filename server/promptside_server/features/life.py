"""Beginning and end: what the editor can do is read, and the daemon is looked for only after that.

That the daemon is gone is said once, and that it is there again once.
"""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol.notices import DaemonSays, Notice
from promptside_server import shared
from promptside_server.preferred import preferred
from promptside_server.server import Server


def register(server: Server) -> None:
    """Listen for initialize, initialized, and the daemon's coming and going."""

    def initialize(params: types.InitializeParams) -> None:
        server.editor.read(params)
        server.preferred = preferred(params.initialization_options)

    def initialized(_: types.InitializedParams) -> None:
        server.begin()

    def set_anew(params: types.DidChangeConfigurationParams) -> None:
        # Clients that have settings to be asked for send null here: what was set at the beginning stays.
        if params.settings:
            server.preferred = preferred(params.settings)

    server.feature(types.INITIALIZE)(initialize)
    shared.on(server, types.WORKSPACE_DID_CHANGE_CONFIGURATION, set_anew)
    shared.on(server, types.INITIALIZED, initialized)
    shared.on(server, types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, lambda _: server.refolded())
    life = Life(server)
    server.on_link.append(life.moved)
    server.on_notice.append(life.notice)


class Life:
    """What was said of the daemon last."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lost = ""

    def moved(self, up: bool, sentence: str) -> None:
        """The daemon was found or lost."""
        if not up:
            if not self._lost:
                self._say(types.MessageType.Warning, sentence)
            self._lost = sentence
            return
        if sentence:
            self._say(types.MessageType.Info, sentence)
        elif self._lost:
            self._say(types.MessageType.Info, "The Promptside daemon is there again.")
        self._lost = ""

    def notice(self, notice: Notice) -> None:
        """The daemon has something to say; that it goes is said when it has gone."""
        if isinstance(notice, DaemonSays) and notice.state == "warning":
            self._say(types.MessageType.Warning, notice.message)

    def _say(self, kind: types.MessageType, sentence: str) -> None:
        if (
            not self._server.editor.ours
        ):  # a client of ours has `promptside/daemon`, and shows it in its place
            self._server.say(kind, sentence)
