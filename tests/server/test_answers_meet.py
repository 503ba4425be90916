"""UX 2.1.2: an answer that comes while the same window's typing is on its way to the daemon is not lost."""

import asyncio
import threading
from typing import Any

from rig.lsp_buffers import Buffers
from rig.lsp_editor import OURS
from rig.server_stories import at_checklist, visited
from rig.user import DEADLINE_SECONDS, User
from rig.wire_tap import tapped

CAPABLE = {**OURS, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}


def test_an_answer_that_meets_typing_is_kept_with_it(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, CAPABLE) as first:
            file = await at_checklist(first)
        async with tapped(user) as tap, Buffers(user, CAPABLE) as editor:
            (uri,) = await visited(file, editor)
            one, two = [item["id"] for item in (await opened(editor, uri))["items"][:2]]
            tap.once("editDraft", lambda order: order.get("text") is not None, lambda: tick(user, two))
            note(editor, uri, one, "a word")
            await editor.turned(uri, lambda text: f"- [x] **{two}**" in text)
            assert "- Note: a word" in editor.texts[uri]
            # What is typed next goes out with it, not in its place.
            sent = threading.Event()
            tap.once("editDraft", lambda _: True, sent.set)
            editor.replace(uri, "a word", "another word")
            assert await asyncio.to_thread(sent.wait, DEADLINE_SECONDS)
        answers = user.promptside("open", "1", "--json", more={"EDITOR": "true"}).data["answers"]
        assert answers[two]["ticked"]
        assert answers[one]["note"] == "another word"

    asyncio.run(story())


async def opened(editor: Buffers, uri: str) -> dict[str, Any]:
    """The form of a document, as the server has it."""
    form: dict[str, Any] = (await editor.ask("promptside/openForm", {"uri": uri}))["form"]
    return form


def note(editor: Buffers, uri: str, ref: str, words: str) -> None:
    """Type a note behind an item."""
    before, heading, after = editor.texts[uri].partition(f"**{ref}**")
    editor.type(uri, before + heading + after.replace("- Note:", f"- Note: {words}", 1))


def tick(user: User, ref: str) -> None:
    """In a terminal, with the editor that is named there."""
    script = user.base / "editor"
    script.write_text(f'#!/bin/sh\nsed -i "s/- \\[ \\] \\*\\*{ref}/- [x] **{ref}/" "$1"\n', encoding="utf-8")
    script.chmod(0o700)
    user.promptside("open", "1", code=None, more={"EDITOR": str(script)})
