"""UX 8: forms for clients of ours, told on each change, and answers to them as orders, with a real daemon."""

import asyncio
from typing import Any

import pytest
from rig.lsp_buffers import Buffers
from rig.lsp_editor import OURS, Said
from rig.server_stories import at_checklist, at_text, waits
from rig.user import User

CAPABLE = {**OURS, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}


def item(form: dict[str, Any], ref: str) -> dict[str, Any]:
    """An item by its id."""
    found: dict[str, Any] = next(one for one in form["items"] if one["id"] == ref)
    return found


async def told(editor: Buffers, condition: Any, since: int) -> dict[str, Any]:
    """The form as it was told when it fulfilled the condition."""
    news = await editor.note("promptside/form", lambda p: p["form"] and condition(p["form"]), since)
    found: dict[str, Any] = news["form"]
    return found


def offered(form: dict[str, Any], command: str) -> dict[str, Any]:
    """The one offer of this command."""
    (found,) = [offer for offer in form["offers"] if offer["command"] == f"promptside.{command}"]
    return dict(found)


def severities(form: dict[str, Any], ref: str) -> list[str]:
    """How what an item lacks is said."""
    return [p["severity"] for p in form["problems"] if p["code"] == "gate-lacks" and p["item"] == ref]


def at(editor: Buffers) -> dict[str, Any]:
    return {"project": str(editor.project), "task": 1}


def test_a_text_says_what_was_edited_and_options_are_answered_and_approved(user: User) -> None:
    """Nothing here reads Markdown: what is asked, what was the agent's and what is lacking stand in the form."""

    async def text(editor: Buffers) -> None:
        file = await at_text(editor)
        form = (await editor.ask("promptside/openForm", at(editor)))["form"]
        assert (form["kind"], form["edited"], form["original"], form["items"]) == ("text", False, "", [])
        assert form["body"] in form["text"]
        assert "promptside 1/research#1" not in form["body"]
        uri = editor.visit(file)
        since = len(editor.heard)
        editor.type(uri, editor.texts[uri].replace(form["body"], f"Mine.\n\n{form['body']}"))
        theirs = form["text"]
        form = await told(editor, lambda f: f["edited"], since)
        assert form["original"] == theirs
        assert "+Mine." in form["difference"]
        assert form["body"].startswith("Mine.")
        # A note is for the agent, and in the way of an approval.
        since = len(editor.heard)
        editor.type(uri, editor.texts[uri].replace("Mine.", ">> shorter, please"))
        form = await told(editor, lambda f: f["notes"], since)
        assert [note["text"] for note in form["notes"]] == ["shorter, please"]
        assert offered(form, "approve")["blocked"] == "There is 1 note for the agent in this document."
        since = len(editor.heard)
        await editor.command("removeNotes", **offered(form, "removeNotes")["args"])
        await editor.turned(uri, lambda text: ">>" not in text)
        form = await told(
            editor, lambda f: not f["notes"] and offered(f, "approve")["blocked"] is None, since
        )
        await editor.command("approve", **at(editor), **offered(form, "approve")["args"], shown=form["shown"])

    async def options(editor: Buffers) -> None:
        await waits(editor, "02-high-level-approaches.md")
        form = (await editor.ask("promptside/openForm", at(editor)))["form"]
        assert (form["kind"], form["least"], form["most"], form["waits"]) == ("options", 1, 1, True)
        assert form["sentence"] == "Select exactly 1: put an x in its brackets. Then approve."
        ids = [one["id"] for one in form["items"]]
        first = item(form, ids[0])
        assert first["title"]
        assert first["pros"]
        assert first["cons"]
        assert "**For**" not in first["body"]
        assert "(recommended)" not in first["title"]
        assert form["text"].splitlines()[first["line"] - 1].startswith(f"## {ids[0]} · ")
        assert offered(form, "approve")["blocked"], "nothing is selected"
        assert not form["edited"]
        since = len(editor.heard)
        based = {**at(editor), "version": form["version"], "attempt": form["attempt"]}
        for ref in (*ids[:2], ids[0], ids[1]):  # faster than it is told: all are based on what was seen
            await editor.ask("promptside/answer", {**based, "id": ref, "value": True})
        form = await told(editor, lambda f: f["version"] == 4, since)
        assert [item(form, ref)["answer"] for ref in ids[:2]] == [False, True], "one takes the other's place"
        assert form["satisfied"]
        approve = offered(form, "approve")
        assert approve["blocked"] is None
        await editor.command("approve", **at(editor), **approve["args"], shown=form["shown"])
        await editor.note(
            "promptside/form", lambda p: not p["form"] or p["form"]["document"] != form["document"], since
        )

    async def story() -> None:
        async with Buffers(user, CAPABLE) as editor:
            await text(editor)
            await options(editor)

    asyncio.run(story())


def test_points_are_answered_in_parts_and_the_later_of_two_answers_is_refused(user: User) -> None:
    """What a client leaves out of an answer stays; what another answered since is said (M10)."""

    async def alone(one: Buffers, uri: str) -> None:
        form = (await one.ask("promptside/openForm", {"uri": uri}))["form"]
        assert (form["kind"], form["uri"]) == ("checklist", uri)
        first = form["items"][0]
        ref = first["id"]
        assert (first["severity"], first["group"]) in (("critical", "Critical"), ("warning", "Warning"))
        assert first["answer"] == {"ticked": False, "note": ""}
        assert first["lacks"] == f"{ref} is not ticked."
        assert any(entry["path"] and entry["path_line"] for entry in form["items"])
        since = len(one.heard)
        await one.ask("promptside/answer", {"uri": uri, "id": ref, "value": {"note": "see #4"}})
        await one.ask("promptside/answer", {"uri": uri, "id": ref, "value": {"ticked": True}})
        form = await told(one, lambda f: item(f, ref)["answer"]["ticked"], since)
        assert item(form, ref)["answer"] == {"ticked": True, "note": "see #4"}
        tick = f"- [x] **{ref}**"
        text = await one.turned(uri, lambda text: "see #4" in text and tick in text)
        assert "  - Note: see #4" in text, "the buffer follows"
        # What was typed in the same window since is no quarrel, however old the form is that a panel has.
        since = len(one.heard)
        one.replace(uri, "see #4", "see #5")
        await told(one, lambda f: f["version"] == form["version"] + 1, since)
        since = len(one.heard)
        late = {"uri": uri, "id": ref, "version": form["version"], "attempt": form["attempt"]}
        await one.ask("promptside/answer", {**late, "value": {"note": "see #6"}})
        await told(one, lambda f: item(f, ref)["answer"]["note"] == "see #6", since)
        await one.turned(uri, lambda text: "see #6" in text)
        # What is typed into the buffer is what the form says, before anything is sent.
        since = len(one.heard)
        one.replace(uri, tick, tick.replace("x", "y", 1))
        form = await told(one, lambda f: any(p["severity"] == "error" for p in f["problems"]), since)
        assert item(form, ref)["problem"]
        assert not form["satisfied"]
        assert "can't be read" in offered(form, "approve")["blocked"]
        since = len(one.heard)
        mends = {o["place"]: o for o in form["offers"] if o["command"] == "promptside.restore"}
        assert [mends[place]["title"] for place in (ref, "")] == [f"Restore {ref}", "Restore the document"]
        await one.command("restore", **mends[ref]["args"])
        await one.turned(uri, lambda text: tick in text)
        form = await told(one, lambda f: not item(f, ref)["problem"], since)
        assert not [o for o in form["offers"] if o["command"] == "promptside.restore"]
        # Taken away again, by no value.
        since = len(one.heard)
        await one.ask("promptside/answer", {"uri": uri, "id": ref, "value": None})
        await told(one, lambda f: item(f, ref)["answer"] == {"ticked": False, "note": ""}, since)
        await one.turned(uri, lambda text: tick not in text)
        one.leave(uri)
        # Without a buffer: what lacks is a warning after it was refused, and the draft itself is put right.
        since = len(one.heard)
        with pytest.raises(Said, match="are not ticked"):
            await one.command("approve", **at(one), shown="")
        form = await told(one, lambda f: severities(f, ref) == ["warning"], since)
        since = len(one.heard)
        broken = form["text"].replace("- [ ]", "-[ ]", 1)
        where = {**at(one), "document": form["document"]}
        await one.command("editDraft", **where, text=broken, version=form["version"])
        form = await told(one, lambda f: item(f, ref)["problem"], since)
        await one.command("restore", uri=uri, item=ref)
        await told(one, lambda f: not item(f, ref)["problem"] and "-[" not in f["text"], since)

    async def both(one: Buffers, two: Buffers) -> None:
        seen = (await one.ask("promptside/openForm", at(one)))["form"]
        first, second = (entry["id"] for entry in seen["items"][:2])
        based = {**at(two), "version": seen["version"], "attempt": seen["attempt"]}
        await one.ask("promptside/answer", {**based, "id": first, "value": {"ticked": True}})
        # On another item, though the version is an old one: both stand.
        await two.ask("promptside/answer", {**based, "id": second, "value": {"ticked": True}})
        with pytest.raises(Said, match=rf"{first} was ticked in VS Code at .*Look again") as refusal:
            await two.ask("promptside/answer", {**based, "id": first, "value": {"note": "no"}})
        assert refusal.value.data["code"] == "changed-elsewhere"
        # The same answer is no quarrel.
        await two.ask("promptside/answer", {**based, "id": first, "value": {"ticked": True}})
        form = (await two.ask("promptside/openForm", at(two)))["form"]
        assert [item(form, ref)["answer"]["ticked"] for ref in (first, second)] == [True, True]
        with pytest.raises(Said, match="took the place of attempt 7"):
            await two.ask("promptside/answer", {**at(two), "attempt": 7, "id": first, "value": None})
        with pytest.raises(Said, match="There is no item 'Z9'"):
            await two.ask("promptside/answer", {**at(two), "id": "Z9", "value": {"ticked": True}})

    async def story() -> None:
        async with Buffers(user, CAPABLE, name="Visual Studio Code") as one:
            await alone(one, one.visit(await at_checklist(one)))
            async with Buffers(user, CAPABLE, name="Neovim") as two:
                await both(one, two)

    asyncio.run(story())
