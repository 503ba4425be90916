"""Asks before something is thrown away, in an editor that shows messages with buttons; closing one is no."""

from __future__ import annotations

import asyncio
import logging

from lsprotocol import types

from promptside_server.dangers import Danger
from promptside_server.server import Server

log = logging.getLogger(__name__)


def asks(server: Server) -> bool:
    """Whether we are to ask: clients of ours do it themselves."""
    return server.editor.ask and not server.editor.ours


async def yes(server: Server, lost: Danger) -> bool:
    """Whether the person wants it all the same."""
    params = types.ShowMessageRequestParams(
        type=types.MessageType.Warning,
        message=lost.question,
        actions=[types.MessageActionItem(title=lost.button)],
    )
    try:
        answer = await server.window_show_message_request_async(params)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever the editor answers, it is no yes
        log.info("the editor did not ask: %s", error)
        return False
    return answer is not None and answer.title == lost.button
