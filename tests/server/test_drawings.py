"""What stands in a lens or an action, in which order, and of which kind (ED-2, UX 2.2-2.7, 7): tables of cases."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.inside import Draft, Inside, stage, view, waits
from rig.lsp_buffers import MINIMAL, PLAIN, line_of

from promptside_protocol import forms
from promptside_protocol.commands import Abandon, Approve, GoBack, Redo, Say, UndoFiles
from promptside_protocol.views import (
    Approval,
    AttemptView,
    Change,
    GateView,
    ItemView,
    Offer,
    OptionView,
    ProofView,
    TaskView,
)

LENSES = {**PLAIN, "textDocument": {**PLAIN["textDocument"], "codeLens": {}}}
ASKING = {**PLAIN, "window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": False}}}}
FRAME: dict[str, Any] = {"task": 1, "stage": "work", "attempt": 1, "title": "Work"}
OPTIONS = forms.OptionsDefinition(
    **FRAME, options=tuple(forms.Option(id=ref, title=f"Way {ref}", description="So.") for ref in "ABC")
)
CHECKLIST = forms.ChecklistDefinition(
    **FRAME,
    items=(
        forms.CheckItem(id="C1", severity="critical", title="No limit", path="src/a.py", line=4),
        forms.CheckItem(id="C2", severity="critical", title="A leak"),
        forms.CheckItem(id="I1", severity="info", title="A name"),
        forms.CheckItem(id="I2", severity="info", title="A word"),
    ),
)
FIELDS = forms.FieldsDefinition(
    **FRAME,
    fields=(
        forms.Field(key="title", label="Title", widget="line", required=True, value="Add it"),
        forms.Field(key="plan", label="Plan", required=True),
        forms.Field(key="note", label="Note"),
    ),
)


def choices(count: int) -> tuple[forms.Choice, ...]:
    return tuple(forms.Choice(id="ABCD"[n], title=f"Way {n}", recommended=n == 0) for n in range(count))


QUESTIONS = forms.QuestionsDefinition(
    **FRAME,
    round=1,
    items=(
        forms.Question(id="Q1", kind="one", text="Which?", options=choices(3)),
        forms.Question(id="Q2", kind="any", text="Which of them?", options=choices(4), required=False),
        forms.Question(id="Q3", kind="text", text="Why?", required=False),
    ),
)
TEXT = forms.TextDefinition(**FRAME, body="Hello.")
REDO = Offer(command="promptside.redo", title="Redo…", needs_text=True)
APPROVE = Offer(command="promptside.approve", title="Approve", args={"stage": "work"}, primary=True)
SEND = Offer(command="promptside.send", title="Send answers", primary=True)
PAUSE = Offer(command="promptside.pause", title="Pause")
FIX = Offer(
    command="promptside.goBack",
    title="Have C1 fixed",
    args={"stage": "build", "reason": "Fix C1: No limit"},
    place="C1",
)
ABANDON = Offer(command="promptside.abandon", title="Abandon…", danger=True)
BACK = Offer(command="promptside.goBack", title="Go back to…", args={"stage": "build"}, danger=True)
UNDO = Offer(
    command="promptside.undo",
    title="Undo what the attempt changed…",
    args={"stage": "work", "attempt": 1},
    place="work",
    danger=True,
)
STOP = Offer(command="promptside.stop", title="Stop", danger=True)
DONE = AttemptView(
    n=1, id="a", status="done", cause="first", session="s", started=1.0, ended=111.0, duration_s=110.0,
    input_tokens=1, output_tokens=1, cost_usd=0.09, model="m", prompt="p", transcript="t", error=None,
    proof=ProofView(verdict="proved"), changes=(Change(path="a.py", kind="modified"),),
)  # fmt: skip


class Desk:
    """A document that waits, open in an editor inside the test."""

    def __init__(self, editor: Inside, task: TaskView, draft: Draft, uri: str) -> None:
        self.editor, self.task, self.draft, self.uri = editor, task, draft, uri

    async def actions(self, mark: str = "") -> dict[str, Any]:
        """The actions at the line with this in it, by title; of the first line without."""
        line = line_of(self.editor.texts[self.uri], mark) if mark else 0
        return {action["title"]: action for action in await self.editor.actions(self.uri, line)}

    async def lenses(self, mark: str = "") -> list[str]:
        """The titles of the lenses of a line, in their order."""
        line = line_of(self.editor.texts[self.uri], mark) if mark else 0
        params = {"textDocument": {"uri": self.uri}}
        found = await self.editor.ask("textDocument/codeLens", params)
        return [one["command"]["title"] for one in found if one["range"]["start"]["line"] == line]


def at_desk(
    folder: Path,
    definition: forms.Definition,
    story: Callable[[Desk], Awaitable[None]],
    *,
    capabilities: dict[str, Any] = LENSES,
    offers: tuple[Offer, ...] = (APPROVE, REDO, PAUSE),
    change: Callable[[str], str] = str,
    answers: dict[str, Any] | None = None,
    **more: Any,
) -> None:
    """Play a story with a task that waits with this form."""

    async def play() -> None:
        async with Inside(folder, capabilities, answers) as editor:
            task = view(folder)
            document = f"{task.directory}/01-work.md"
            draft = Draft(definition, document)
            draft.text = change(draft.text)
            editor.form(draft)
            gate = GateView(type="require_approval", shown="")
            if isinstance(definition, forms.OptionsDefinition):
                gate = GateView(type="require_selection", shown="", min=1, max=1, options=OPTION_VIEWS)
            if isinstance(definition, forms.ChecklistDefinition):
                items = tuple(ItemView(id=i.id, text=i.title, severity=i.severity) for i in definition.items)
                gate = GateView(type="require_all_checked", shown="", items=items)
            asked = isinstance(definition, forms.QuestionsDefinition)
            waiting = waits("decision" if asked else "gate", document, **({} if asked else {"gate": gate}))
            given = {
                "waiting_for": waiting,
                "offers": offers,
                "stages": (stage(artifact=document, attempts=(DONE,)),),
                **more,
            }
            task = editor.changed(msgspec.structs.replace(task, **given))
            uri = editor.visit(editor.file(document, draft.text))
            await story(Desk(editor, task, draft, uri))

    asyncio.run(play())


OPTION_VIEWS = tuple(OptionView(id=o.id, title=o.title) for o in OPTIONS.options)


def ticked(*slots: str) -> Callable[[str], str]:
    """A document with these ticks set."""

    def change(text: str) -> str:
        for slot in slots:
            assert f"- [ ] {slot}" in text
            text = text.replace(f"- [ ] {slot}", f"- [x] {slot}", 1)
        return text

    return change


PROVED = "Attempt 1, 1 min 50 s, $0.09, read-only proved"
TOPS: dict[str, tuple[forms.Definition, tuple[Offer, ...], Callable[[str], str], list[str]]] = {
    "a text": (
        TEXT,
        (APPROVE, REDO, PAUSE),
        str,
        ["Your approval", "Approve", "Redo…", "Show output", PROVED],
    ),
    "no option": (OPTIONS, (APPROVE, REDO), str, ["Select 1 of 3", "Redo…", "Show output", PROVED]),
    "an option": (
        OPTIONS,
        (APPROVE, REDO),
        ticked("Select B"),
        ["Select 1 of 3", "Approve B", "Redo…", "Show output", PROVED],
    ),
    "a checklist": (CHECKLIST, (APPROVE, REDO, FIX), str, ["0 of 4 reviewed", "Redo…", "Tick all infos"]),
    "fields": (FIELDS, (APPROVE, REDO), str, ["Your approval", "Redo…"]),
    "questions": (QUESTIONS, (SEND, PAUSE), str, ["0 of 1 required answered", "Tick the recommended"]),
    "questions, answered": (
        QUESTIONS,
        (SEND, PAUSE),
        ticked("A · Way 0"),
        ["1 of 1 required answered", "Send answers", "Let the agent decide the rest"],
    ),
}


@pytest.mark.parametrize("offers", [(), (PAUSE,)])
def test_ed2_a_document_of_an_archived_task_has_no_lens_but_what_is_offered(
    tmp_path: Path, offers: tuple[Offer, ...]
) -> None:
    async def story(desk: Desk) -> None:
        assert await desk.lenses() == [offer.title for offer in offers]

    at_desk(tmp_path, TEXT, story, offers=offers, waiting_for=None, state="archived")


@pytest.mark.parametrize("case", TOPS)
def test_ed2_the_first_line_says_the_state_first_and_at_most_five(tmp_path: Path, case: str) -> None:
    definition, offers, change, wanted = TOPS[case]

    async def story(desk: Desk) -> None:
        found = await desk.lenses()
        assert found[: len(wanted)] == wanted
        assert len(found) <= 5

    at_desk(tmp_path, definition, story, offers=offers, change=change)


ITEMS: dict[str, tuple[forms.Definition, Callable[[str], str], str, list[str]]] = {
    "an option": (OPTIONS, str, "## A", ["Select this"]),
    "an option that is selected": (OPTIONS, ticked("Select A"), "## A", ["Selected, undo"]),
    "a group": (CHECKLIST, ticked("**C1**"), "## Critical", ["1 of 2"]),
    "another group": (CHECKLIST, str, "## Info", ["0 of 2"]),
    "a point": (CHECKLIST, str, "**C1**", ["Reviewed", "Open src/a.py:4", "Have it fixed"]),
    "a point that is reviewed": (CHECKLIST, ticked("**C2**"), "**C2**", ["Reviewed, undo"]),
    "a field that lacks": (FIELDS, str, "## Plan", ["required, empty"]),
    "a field that is there": (FIELDS, str, "## Title", []),
    "a field that may be empty": (FIELDS, str, "## Note", []),
    "a question": (QUESTIONS, str, "## Q1", ["Answer A", "Answer B", "Answer C"]),
    "a question with many choices": (QUESTIONS, str, "## Q2", ["Answer…"]),
    "a question for a text": (QUESTIONS, str, "## Q3", ["Answer…"]),
}


@pytest.mark.parametrize("case", ITEMS)
def test_ed2_lenses_of_an_item(tmp_path: Path, case: str) -> None:
    definition, change, mark, wanted = ITEMS[case]

    async def story(desk: Desk) -> None:
        assert await desk.lenses(mark) == wanted

    at_desk(tmp_path, definition, story, offers=(APPROVE, FIX), change=change)


def test_ed2_after_the_decision_a_lens_says_whose_it_was_and_takes_it_back(tmp_path: Path) -> None:
    back = Offer(command="promptside.takeBack", title="Take back the approval")

    async def story(desk: Desk) -> None:
        found = await desk.lenses()
        assert found[0].startswith("Approved by ada, ")
        assert found[1] == "Take back"

    document = ".promptside/tasks/1-add-a-login/01-work.md"
    approved = stage(
        "approved", artifact=document, approval=Approval(by="ada", client="vim", at=1.0, shown="")
    )
    at_desk(tmp_path, TEXT, story, offers=(back,), stages=(approved,), waiting_for=None)


KINDS: dict[str, tuple[forms.Definition, str, dict[str, str]]] = {
    "an option": (
        OPTIONS,
        "## A",
        {
            "Select A": "refactor.promptside",
            "Select A and approve": "refactor.promptside",
            "Note to the agent here": "refactor.promptside",
            "Redo…": "source.promptside",
            "Pause": "source.promptside",
        },
    ),
    "a point": (
        CHECKLIST,
        "**C1**",
        {
            "Tick C1": "refactor.promptside",
            "Have C1 fixed": "refactor.promptside",
            "Note to the agent here": "refactor.promptside",
            "Tick all infos": "source.promptside",
        },
    ),
    "a question": (
        QUESTIONS,
        "## Q1",
        {"Answer A: Way 0": "refactor.promptside", "Tick the recommended": "source.promptside"},
    ),
}


@pytest.mark.parametrize("case", KINDS)
def test_ed9_actions_of_the_document_and_of_the_item_have_kinds_of_their_own(
    tmp_path: Path, case: str
) -> None:
    definition, mark, wanted = KINDS[case]

    async def story(desk: Desk) -> None:
        found = await desk.actions(mark)
        assert {title: found[title]["kind"] for title in wanted} == wanted
        elsewhere = await desk.actions()
        assert not [title for title in wanted if wanted[title].startswith("refactor") and title in elsewhere]

    at_desk(tmp_path, definition, story, offers=(APPROVE, REDO, PAUSE, FIX))


def test_ed9_where_a_diagnostic_stands_an_item_s_actions_mend_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        found = await desk.actions("**C1**")
        assert found["Tick C1"]["kind"] == "quickfix"
        assert [d["message"] for d in found["Tick C1"]["diagnostics"]] == ["C1 is not ticked."]
        assert found["Pause"]["kind"] == "source.promptside"

    async def with_diagnostics(desk: Desk) -> None:
        await desk.editor.diagnosed(desk.uri, lambda said: len(said) > 1)
        await story(desk)

    at_desk(tmp_path, CHECKLIST, with_diagnostics)


def test_ux25_tick_all_infos_and_have_it_fixed_do_what_they_say(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.editor.choose(desk.uri, "Tick all infos")
        text = desk.editor.texts[desk.uri]
        assert [line[3] for line in text.split("\n") if line.startswith("- [")] == [" ", " ", "x", "x"]
        assert "Tick all infos" not in await desk.actions()
        await desk.editor.choose(desk.uri, "Have C1 fixed", line_of(text, "**C1**"))
        (order,) = desk.editor.daemon.orders[-1:]
        assert isinstance(order, GoBack)
        assert (order.stage, order.reason) == ("build", "Fix C1: No limit")

    at_desk(tmp_path, CHECKLIST, story, offers=(APPROVE, FIX))


def test_ux24_select_and_approve_is_one_order(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.editor.choose(
            desk.uri, "Select B and approve", line_of(desk.editor.texts[desk.uri], "## B")
        )
        (order,) = desk.editor.ordered(Approve)
        assert order.answers == {"A": False, "B": True}

    at_desk(tmp_path, OPTIONS, story, change=ticked("Select A"))


BLOCKED: dict[str, tuple[forms.Definition, Callable[[str], str], str, set[str]]] = {
    "m4": (OPTIONS, str, "Not approved: Select 1 option to approve.", set()),
    "m8": (
        OPTIONS,
        lambda text: text.replace("- [ ] Select A", "- []Select A"),
        "The document has 1 line that can't be read "  # noqa: ISC004  # one sentence
        '(line 7: Not a tick: write "- [x] " or "- [ ] ", with a space after each part).',
        {"Go to line 7", "Restore the document"},
    ),
    "m9": (
        TEXT,
        lambda text: text.replace("Hello.", "Hello.\n>> Shorter."),
        "There is 1 note for the agent in this document.",
        {"Remove the note", "Redo with 1 note"},
    ),
}


@pytest.mark.parametrize("case", BLOCKED)
def test_ux7_a_blocked_approval_says_why_and_what_mends_it_is_beside_it(tmp_path: Path, case: str) -> None:
    definition, change, reason, mends = BLOCKED[case]

    async def story(desk: Desk) -> None:
        found = await desk.actions()
        assert found["Approve"]["disabled"]["reason"] == reason
        assert mends <= found.keys()
        mend = next((found[m] for m in sorted(mends, reverse=True) if "edit" in found[m]), None)
        if mend is not None:
            await desk.editor.perform(mend)
            again = await desk.actions()
            assert (again["Approve"].get("disabled") or {}).get("reason") != reason

    at_desk(tmp_path, definition, story, change=change)


def test_an_editor_without_disabled_actions_is_not_shown_what_is_blocked(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        assert "Approve" not in await desk.actions()
        assert "Pause" in await desk.actions()

    at_desk(tmp_path, OPTIONS, story, capabilities=MINIMAL)


# --- notes to an agent that runs ---------------------------------------------------------------------------


SAY = Offer(command="promptside.interrupt", title="Interrupt with feedback…", needs_text=True)


@pytest.mark.parametrize("where", ["01-work.md", "task.md"])
def test_a_note_in_a_document_of_a_stage_that_runs_interrupts_it_once(tmp_path: Path, where: str) -> None:
    """ED-3: the note is in the stage's document or in the task's; when it was said, it is gone from there."""

    async def play() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            task = view(tmp_path, offers=(SAY,), stages=(stage("running"),))
            editor.changed(task)
            text = "# Add a login\n\nWords.\n>> Shorter.\n>> Much.\n\n```\n>> code\n```\n"
            uri = editor.visit(editor.file(f"{task.directory}/{where}", text))
            assert "Interrupt with 1 note" in {a["title"] for a in await editor.actions(uri)}
            await editor.choose(uri, "Interrupt with 1 note")
            (order,) = editor.ordered(Say)
            assert order.text == "Shorter.\nMuch."
            assert editor.texts[uri] == "# Add a login\n\nWords.\n\n```\n>> code\n```\n"
            assert "Interrupt with feedback…" in {a["title"] for a in await editor.actions(uri)}

    asyncio.run(play())


def test_the_bare_command_takes_the_notes_too(tmp_path: Path) -> None:
    async def play() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            task = view(tmp_path, offers=(SAY,), stages=(stage("running"),))
            editor.changed(task)
            uri = editor.visit(editor.file(f"{task.directory}/task.md", "# Add\n"))
            await editor.command("interrupt")
            assert editor.texts[uri] == "# Add\n>> \n"
            editor.type(uri, "# Add\n>> Shorter.\n")
            await editor.command("interrupt")
            (order,) = editor.ordered(Say)
            assert order.text == "Shorter."
            assert editor.texts[uri] == "# Add\n"

    asyncio.run(play())


def test_a_redo_leaves_its_notes_to_the_draft(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.editor.choose(desk.uri, "Redo with 1 note")
        await desk.editor.command("redo", project=str(tmp_path), task=1)
        orders = desk.editor.ordered(Redo)
        assert [order.feedback for order in orders] == ["", ""]
        assert ">> Shorter." in desk.draft.text

    at_desk(tmp_path, TEXT, story, change=lambda text: text.replace("Hello.", "Hello.\n>> Shorter."))


# --- what throws something away ------------------------------------------------------------------------------


STAGES = (stage("running", artifact=".promptside/tasks/1-add-a-login/01-work.md", attempts=(DONE,)),)
EARLIER = msgspec.structs.replace(stage("approved"), id="build", name="Build")
DANGERS: dict[str, tuple[Offer, type[msgspec.Struct], str, str, str]] = {
    "abandon": (
        ABANDON,
        Abandon,
        "Abandon “Add a login”: branch and files stay, Work is stopped",
        "Abandon “Add a login”? Branch and files stay; Work is stopped.",
        "Abandon",
    ),
    "go back": (
        BACK,
        GoBack,
        "Go back to Build: Work runs again",
        "Go back to Build? Work runs again; what it has written is kept as earlier attempts. Files stay.",
        "Go back",
    ),
    "undo": (
        UNDO,
        UndoFiles,
        "Undo what attempt 1 of Work changed: 1 file as before",
        "Undo what attempt 1 of Work changed? 1 file will be as before it.",
        "Undo",
    ),
}


@pytest.mark.parametrize("case", DANGERS)
@pytest.mark.parametrize("answer", ["yes", "closed"])
def test_m35_an_editor_with_buttons_asks_before_something_is_lost(
    tmp_path: Path, case: str, answer: str
) -> None:
    offer, order, _, question, button = DANGERS[case]

    async def play() -> None:
        asked = {"title": button} if answer == "yes" else None
        async with Inside(tmp_path, ASKING, {"window/showMessageRequest": asked}) as editor:
            task = editor.changed(view(tmp_path, offers=(offer,), stages=(EARLIER, *STAGES)))
            uri = editor.visit(editor.file(f"{task.directory}/task.md", "# Add\n"))
            await editor.choose(uri, offer.title)
            said = await editor.until(lambda m: m.get("method") == "window/showMessageRequest")
            assert said["params"]["message"] == question
            assert [a["title"] for a in said["params"]["actions"]] == [button]
            await editor.ask("textDocument/codeAction", code_actions(uri))
            assert bool(editor.ordered(order)) == (answer == "yes")

    asyncio.run(play())


@pytest.mark.parametrize("case", DANGERS)
@pytest.mark.parametrize("capabilities", [PLAIN, MINIMAL], ids=["plain", "minimal"])
def test_m35_without_buttons_the_title_says_what_becomes_of_the_work(
    tmp_path: Path, case: str, capabilities: dict[str, Any]
) -> None:
    offer, order, title, _, _ = DANGERS[case]

    async def play() -> None:
        async with Inside(tmp_path, capabilities) as editor:
            task = editor.changed(view(tmp_path, offers=(offer, STOP), stages=(EARLIER, *STAGES)))
            uri = editor.visit(editor.file(f"{task.directory}/task.md", "# Add\n"))
            titles = [a["title"] for a in await editor.actions(uri)]
            assert title in titles
            assert "Stop" in titles
            await editor.choose(uri, title)
            assert len(editor.ordered(order)) == 1

    asyncio.run(play())


def code_actions(uri: str) -> dict[str, Any]:
    """A request that is answered after everything that was begun before."""
    start = {"line": 0, "character": 0}
    return {
        "textDocument": {"uri": uri},
        "range": {"start": start, "end": start},
        "context": {"diagnostics": []},
    }
