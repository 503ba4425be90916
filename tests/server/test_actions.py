"""Forms decided from an editor: by actions, lenses and hints, with what can't be read said and mended (ED-2, ED-5)."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from rig.lsp_buffers import PLAIN, Buffers, file_of, line_of
from rig.lsp_editor import OURS, Said
from rig.server_stories import at_checklist, at_options, written
from rig.user import User

LENSED = {**PLAIN, **OURS, "textDocument": {**PLAIN["textDocument"], "codeLens": {}}}


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_st5_an_option_is_selected_taken_back_and_approved_from_its_heading(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            uri = editor.visit(await at_options(editor))
            line = line_of(editor.texts[uri], "## B")
            kinds = {a["title"]: a["kind"] for a in await editor.actions(uri, line)}
            assert kinds["Select B"] == "refactor.promptside"
            assert kinds["Pause"] == "source.promptside"
            await editor.choose(uri, "Select B", line)
            await editor.choose(uri, "Select A", line_of(editor.texts[uri], "## A"))
            assert "- [ ] Select B" in editor.texts[uri]
            await editor.choose(uri, "Untick A", line_of(editor.texts[uri], "## A"))
            blocked = [a for a in await editor.actions(uri) if a["title"] == "Approve"]
            assert blocked[0]["disabled"]["reason"] == "Not approved: Select 1 option to approve."

    run(story())


def test_m9_notes_left_in_the_document_block_the_approval(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            uri = editor.visit(await at_options(editor))
            await editor.choose(uri, "Note to the agent here", line_of(editor.texts[uri], "## A"))
            editor.replace(uri, ">> ", ">> smaller")
            actions = {a["title"]: a for a in await editor.actions(uri)}
            assert "1 note" in actions["Approve"]["disabled"]["reason"]
            await editor.perform(actions["Redo with 1 note"])

    run(story())
    attempts = user.stage("high-level-approaches")["attempts"]
    assert [a["cause"] for a in attempts][-1] == "redo"


BROKEN = {
    "a tick without its blank": ("- [ ] Select A", "- []Select A", "Write the tick right"),
    "a heading that is gone": ("## A", "Some words", "Restore the document"),
    "a slot that is gone": ("- [ ] Select A", "words", "Restore A"),
    "conflict markers": ("## A", "<<<<<<< ours\n## A", "Restore the document"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_ux211_what_cannot_be_read_is_an_error_and_is_restored(user: User, fault: str) -> None:
    old, new, title = BROKEN[fault]

    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            uri = editor.visit(await at_options(editor))
            before = editor.texts[uri]
            editor.type(uri, before.replace(old, new, 1))
            said = await editor.diagnosed(uri, lambda found: any(d["severity"] == 1 for d in found))
            error = next(d for d in said if d["severity"] == 1)
            line = error["range"]["start"]["line"]
            assert not [
                a for a in await editor.actions(uri, line) if a["title"] == "Approve" and "disabled" not in a
            ]
            with pytest.raises(Said):
                await editor.command("approve", project=str(editor.project), task=1)
            await editor.choose(uri, title, line)
            await editor.diagnosed(uri, lambda found: not any(d["severity"] == 1 for d in found))
            assert editor.texts[uri].strip() == before.strip() or title == "Write the tick right"

    run(story())


def test_ed2_lenses_say_the_state_first_and_are_at_most_five(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, LENSED) as editor:
            uri = editor.visit(await at_options(editor))
            lenses = await editor.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
            top = [lens["command"]["title"] for lens in lenses if lens["range"]["start"]["line"] == 0]
            assert top[0] == "Select 1 of 3" or top[0].startswith("Select 1 of")
            assert "Redo…" in top
            assert len(top) <= 5
            items = [lens for lens in lenses if lens["command"]["title"] == "Select this"]
            assert items
            await editor.perform(items[0])
            await editor.turned(uri, lambda text: "- [x] Select" in text)
            hints = {"textDocument": {"uri": uri}, "range": everything()}
            assert await editor.ask("textDocument/inlayHint", hints) == []

    run(story())


def test_ed2_hints_stand_where_there_are_no_lenses(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            uri = editor.visit(await at_options(editor))
            hints = await editor.ask(
                "textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": everything()}
            )
            assert hints[0]["label"].startswith("Select 1 of")
            symbols = await editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
            assert symbols[0]["name"].startswith("A · ")
            folds = await editor.ask("textDocument/foldingRange", {"textDocument": {"uri": uri}})
            assert len(folds) == len(symbols)

    run(story())


def test_ed5_findings_stand_at_their_lines_and_are_reviewed_there(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            review = await at_checklist(editor)
            uri, said = next(
                (uri, said)
                for uri, said in editor.said.items()
                if any(d.get("code") == "finding" for d in said)
            )
            source = editor.visit(file_of(uri))
            line = said[0]["range"]["start"]["line"]
            ref = said[0]["message"].split()[0]
            await editor.choose(source, f"Mark {ref} reviewed", line)
            await editor.diagnosed(uri, lambda found: not any(d["message"].startswith(ref) for d in found))
            await written(review, f"- [x] **{ref}**")

    run(story())


def test_clients_of_ours_get_no_desk(user: User) -> None:
    async def story() -> None:
        async with Buffers(user, {**PLAIN, **OURS}) as editor:
            await at_options(editor)
            assert not (editor.project / ".promptside" / "DESK.md").exists()

    run(story())


def everything() -> Any:
    return {"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}}
