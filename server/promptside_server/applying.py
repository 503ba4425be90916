"""Texts put into buffers of the editor as `workspace/applyEdit`, line by line, so that the cursor stays."""

from __future__ import annotations

import asyncio
import difflib
import logging
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.workspace import TextDocument

from promptside_protocol.forms.grammar import LINE_END

if TYPE_CHECKING:
    from promptside_server.server import Server

log = logging.getLogger(__name__)

ANSWER_SECONDS = 10.0
"""How long an editor may take to say whether it took an edit over."""


async def applied(server: Server, uri: str, document: TextDocument, target: str) -> bool:
    """Have the editor put this text into a buffer; false if it does not."""
    edits = edits_to(document, target)
    capability = server.client_capabilities.workspace
    if capability and capability.workspace_edit and capability.workspace_edit.document_changes:
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=document.version)
        part = types.TextDocumentEdit(text_document=identifier, edits=list(edits))
        edit = types.WorkspaceEdit(document_changes=[part])
    else:
        edit = types.WorkspaceEdit(changes={uri: edits})
    asked = server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit=edit, label="Promptside"))
    try:
        return (await asyncio.wait_for(asked, ANSWER_SECONDS)).applied
    except TimeoutError:
        log.info("the editor does not say whether it took an edit of %s", uri)
    except Exception as error:  # noqa: BLE001  # whatever an editor answers, it did not take the edit
        log.info("the editor did not take an edit of %s: %s", uri, error)
    return False


def edits_to(document: TextDocument, target: str) -> list[types.TextEdit]:
    """What to change in a buffer so that it is this text."""
    old, new = _lines(document.source), _lines(target)
    last = types.Position(len(old) - 1, document.position_codec.client_num_units(old[-1]))
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start = types.Position(i1, 0) if i1 < len(old) else last
            end = types.Position(i2, 0) if i2 < len(old) else last
            place = types.Range(start=start, end=end)
            found.append(types.TextEdit(range=place, new_text="".join(new[j1:j2])))
    return found


def _lines(text: str) -> list[str]:
    """Lines with their ends, as editors count them; the last has none."""
    ends = [*LINE_END.findall(text), ""]
    return [line + end for line, end in zip(LINE_END.split(text), ends, strict=True)]
