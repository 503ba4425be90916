"""What waits is said once, in one message, with buttons that do what they say about that and nothing else.

UX 3.6, 5 and 9.
"""

import asyncio
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.inside import SILENT, Inside, stage, view, waits
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers, line_of
from rig.lsp_editor import OURS
from rig.server_stories import sample_at
from rig.server_stories import waits as waited
from rig.user import User

from promptside_protocol.commands import Allow, Deny, Retry
from promptside_protocol.errors import refused
from promptside_protocol.views import (
    AttemptView,
    Change,
    DecisionView,
    Offer,
    OptionView,
    TaskView,
    WaitingFor,
)
from promptside_server.documents import Reading
from promptside_server.offered import document_acts

ASKS = {"window": {"showMessage": {"messageActionItem": {}}, "showDocument": {"support": True}}}
BUTTONS = {**PLAIN, **ASKS}
"""An editor with message buttons that opens documents."""
ONLY_BUTTONS = {**PLAIN, "window": {"showMessage": {"messageActionItem": {}}}}
REQUEST, SAID = "window/showMessageRequest", "window/showMessage"
SCOPES = ("once", "attempt", "task", "always", "deny")
DOCUMENT = ".promptside/tasks/1-add-a-login/01-work.md"
ROUND = ".promptside/tasks/1-add-a-login/01-work-questions-1.md"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes in one breath is together all the same."""
    monkeypatch.setattr("promptside_server.features.waiting.TOGETHER_SECONDS", 0.02)


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def question(number: int, **more: Any) -> DecisionView:
    return DecisionView(
        id=f"Q{number}", kind="text", priority=1, required=True, text="Why?", asked=time.time() + 1, **more
    )


def permission(number: int = 3, scopes: tuple[str, ...] = SCOPES, what: str = "npm install") -> DecisionView:
    return DecisionView(
        id=f"D{number}",
        kind="permission",
        priority=1,
        required=True,
        text="The agent wants to run a command in Work.",
        options=tuple(OptionView(id=scope, title=scope) for scope in scopes),
        tool="Bash",
        what=what,
        why="No rule allows it.",
        asked=time.time() + 1,
    )


def failed(
    *statuses: str, changes: tuple[Change, ...] = (), hint: str = "", retry: bool = True
) -> dict[str, Any]:
    """A task that has stopped after these attempts."""
    attempts = tuple(attempt(n + 1, status, changes, hint) for n, status in enumerate(statuses))
    offers = (Offer(command="promptside.retry", title="Retry"),) if retry else ()
    waiting = waits("person", reason="The tests still fail.")
    stopped = statuses[-1] == "stopped"
    return {
        "stages": (stage("failed", attempts=attempts, stopped=stopped),),
        "waiting_for": waiting,
        "offers": offers,
    }


def attempt(n: int, status: Any, changes: tuple[Change, ...] = (), hint: str = "") -> AttemptView:
    return AttemptView(
        n=n, id=f"a{n}", status=status, cause="run", session="", started=1.0, ended=2.0, duration_s=1.0,
        input_tokens=None, output_tokens=None, cost_usd=None, model="", prompt="", transcript="", error=None,
        changes=changes, hint=hint,
    )  # fmt: skip


CHANGED = (Change(path="a.py", kind="modified"),)
GATE = {"waiting_for": waits("gate", DOCUMENT)}
ASKED = {"waiting_for": waits("decision", ROUND, decisions=(question(1), question(2), question(3)))}
INPUT = {"waiting_for": waits("input")}
LEAVE = {"waiting_for": waits("decision", decisions=(permission(),))}
LOGIN = "The agent is not logged in. Run “claude” once in a terminal, then retry"

MESSAGES: dict[str, tuple[dict[str, Any], str, list[str], int]] = {
    "M1 a gate": (GATE, "“Add a login” waits for you: Work, your approval.", ["Open", "Later"], 3),
    "M1 input": (INPUT, "“Add a login” waits for you: Work, your input.", ["Open", "Later"], 3),
    "M2 questions": (
        ASKED,
        "The agent has 3 questions about “Add a login”. It waits.",
        ["Answer", "Later"],
        3,
    ),
    "M16 no retries left": (
        failed(
            "failed", "failed", "failed", changes=CHANGED, hint="Say what to do differently.", retry=False
        ),
        (
            "“Add a login”: Work failed 3 times: The tests still fail. The agent has stopped; its changes are in the"
            " project. Say what to do differently."
        ),
        ["Open", "Later"],
        2,
    ),
    "M19 time": (
        {
            **failed("failed"),
            "waiting_for": waits("person", reason="Work was silent for 10 min and was stopped."),
        },
        "“Add a login”: Work failed: Work was silent for 10 min and was stopped.",
        ["Open", "Retry", "Later"],
        2,
    ),
    "M20 login": (
        {**failed("failed"), "waiting_for": waits("person", reason=LOGIN)},
        f"“Add a login”: Work failed: {LOGIN}.",
        ["Open", "Retry", "Later"],
        2,
    ),
    "ST-14 a permission": (
        LEAVE,
        "The agent wants to run a command in Work. Bash: npm install. No rule allows it.",
        ["Once", "For this task", "Always", "Deny"],
        3,
    ),
    "ST-14 a permission that can't be given for good": (
        {"waiting_for": waits("decision", decisions=(permission(scopes=("once", "deny")),))},
        "The agent wants to run a command in Work. Bash: npm install. No rule allows it.",
        ["Once", "Deny"],
        3,
    ),
}


async def last(editor: Inside) -> Any:
    """Something that is always said, alone; what was not said before it, is not said."""
    at = len(editor.heard)
    editor.changed(view(editor.project, 99, title="The last", **fresh(failed("failed"))))
    found = await editor.until(
        lambda m: m.get("method") in (REQUEST, SAID) and "The last" in m["params"]["message"], at
    )
    assert found["params"]["message"].startswith("“The last”"), (
        "what was to be said at that moment is said with it"
    )
    return found["params"]


def fresh(what: dict[str, Any]) -> dict[str, Any]:
    """The same, but it begins to wait now: the tables are made when the tests are collected."""
    waiting: WaitingFor = what["waiting_for"]
    now = time.time() + 1
    decisions = tuple(msgspec.structs.replace(one, asked=now) for one in waiting.decisions)
    return {**what, "waiting_for": msgspec.structs.replace(waiting, since=now, decisions=decisions)}


def messages(editor: Inside) -> list[Any]:
    """Everything that was said to the person in a message."""
    return [m["params"] for m in editor.heard if m.get("method") in (REQUEST, SAID)]


@pytest.mark.parametrize("case", MESSAGES)
def test_ux36_what_waits_is_said_with_its_buttons(tmp_path: Path, case: str) -> None:
    what, words, buttons, kind = MESSAGES[case]

    async def story() -> None:
        async with Inside(tmp_path, BUTTONS) as editor:
            editor.changed(view(tmp_path, **fresh(what)))
            said = await editor.note(REQUEST)
            assert said["message"] == words
            assert [action["title"] for action in said["actions"]] == buttons
            assert said["type"] == kind

    run(story())


WITHOUT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a gate is a diagnostic only": (PLAIN, GATE, ""),
    "questions are said": (PLAIN, ASKED, "The agent has 3 questions"),
    "a failure is said": (MINIMAL, failed("failed"), "“Add a login”: Work failed"),
    "a permission is said": (MINIMAL, LEAVE, "The agent wants to run"),
    "buttons that could not open anything are none": (ONLY_BUTTONS, ASKED, "The agent has 3 questions"),
    "nor for a gate": (ONLY_BUTTONS, GATE, ""),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_ux5_an_editor_without_buttons_is_told_or_has_the_diagnostic(tmp_path: Path, case: str) -> None:
    capabilities, what, words = WITHOUT[case]

    async def story() -> None:
        async with Inside(tmp_path, capabilities) as editor:
            editor.changed(view(tmp_path, **fresh(what)))
            if words:
                assert (await editor.note(SAID))["message"].startswith(words)
            else:
                await last(editor)
                assert len(messages(editor)) == 1
            assert any(d["severity"] == 3 for said in editor.said.values() for d in said)
            assert not editor.notes(REQUEST)

    run(story())


def test_a_permission_has_buttons_also_where_nothing_can_be_opened(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, ONLY_BUTTONS) as editor:
            editor.changed(view(tmp_path, **fresh(LEAVE)))
            assert (await editor.note(REQUEST))["actions"][0]["title"] == "Once"

    run(story())


SILENCE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a client of ours has rules of its own": ({**BUTTONS, **OURS}, GATE, ""),
    "the document is open": (BUTTONS, GATE, DOCUMENT),
    "the questions are open": (BUTTONS, ASKED, ROUND),
    "the page of the task is open": (BUTTONS, LEAVE, ".promptside/tasks/1-add-a-login/task.md"),
    "you stopped it yourself": (BUTTONS, failed("stopped"), ""),
    "it waited before the editor was there": (
        BUTTONS,
        {"waiting_for": waits("gate", DOCUMENT, since=1.0)},
        "",
    ),
}


@pytest.mark.parametrize("case", SILENCE)
def test_ux36_no_message_when(tmp_path: Path, case: str) -> None:
    capabilities, what, opened = SILENCE[case]

    async def story() -> None:
        async with Inside(tmp_path, capabilities) as editor:
            old = what["waiting_for"].since == 1.0
            task = view(tmp_path, **(what if old else fresh(what)))
            editor.changed(view(tmp_path))
            if opened:
                editor.visit(editor.file(opened, "# It\n"))
            editor.changed(task)
            if "promptside" not in capabilities.get("experimental", {}):
                await last(editor)
                assert ["The last" in said["message"] for said in messages(editor)] == [True]
            else:
                await editor.task(lambda t: t["waiting_for"])
                assert not messages(editor)

    run(story())


def test_a_wait_is_said_once_and_the_next_one_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, BUTTONS) as editor:
            task = editor.changed(view(tmp_path, **fresh(GATE)))
            await editor.note(REQUEST)
            editor.changed(msgspec.structs.replace(task, title="Add a login, please"))
            editor.daemon.turn(up=False)
            editor.daemon.turn(up=True)
            editor.changed(task)
            await last(editor)
            assert len(editor.notes(REQUEST)) == 2
            again = msgspec.structs.replace(waits("gate", DOCUMENT), since=time.time() + 60)
            editor.changed(view(tmp_path, waiting_for=again))
            await editor.until(lambda m: len(editor.notes(REQUEST)) == 3)

    run(story())


def test_several_at_once_are_one_message_that_opens_the_one_that_waited_longest(tmp_path: Path) -> None:
    async def story() -> None:
        opens = {REQUEST: lambda params: {"title": "Open"}}
        async with Inside(tmp_path, BUTTONS, opens) as editor:
            editor.changed(view(tmp_path, **fresh(GATE)))
            editor.changed(view(tmp_path, 2, title="Drop a table", **fresh(ASKED)))
            editor.changed(view(tmp_path, 3, title="Third", **fresh(LEAVE)))
            editor.changed(view(tmp_path, 4, title="Fourth", **fresh(failed("failed"))))
            said = await editor.note(REQUEST)
            assert said["message"] == (
                "4 things wait for you: “Add a login” (Work, your approval), “Drop a table” (3 questions),"
                " “Third” (a permission) and 1 more."
            )
            assert said["type"] == 2
            assert [action["title"] for action in said["actions"]] == ["Open", "Later"]
            shown = await editor.note("window/showDocument")
            assert shown["uri"].endswith("01-work.md")
            assert len(editor.notes(REQUEST)) == 1

    run(story())


def test_what_no_longer_waits_when_the_message_is_due_is_not_said(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, BUTTONS) as editor:
            editor.changed(view(tmp_path, **fresh(GATE)))
            editor.changed(view(tmp_path))
            assert "things wait" not in (await last(editor))["message"]
            assert len(messages(editor)) == 1

    run(story())


PRESSED: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "Once": (LEAVE, "Once", [Allow(project="", task=1, decision="D3", scope="once")]),
    "For this task": (LEAVE, "For this task", [Allow(project="", task=1, decision="D3", scope="task")]),
    "Always": (LEAVE, "Always", [Allow(project="", task=1, decision="D3", scope="always")]),
    "Deny": (LEAVE, "Deny", [Deny(project="", task=1, decision="D3")]),
    "closed": (LEAVE, "", []),
    "a button that is none": (LEAVE, "Whatever", []),
    "Later": (GATE, "Later", []),
    "Retry": (failed("failed"), "Retry", [Retry(project="", task=1)]),
}


@pytest.mark.parametrize("case", PRESSED)
def test_st14_a_button_gives_the_order_that_it_says(tmp_path: Path, case: str) -> None:
    what, title, wanted = PRESSED[case]

    async def story() -> None:
        pressed = {REQUEST: lambda params: {"title": title} if title else None}
        async with Inside(tmp_path, BUTTONS, pressed) as editor:
            editor.changed(view(tmp_path, **fresh(what)))
            await editor.note(REQUEST)
            await last(editor)
            orders = [o for o in editor.daemon.orders if isinstance(o, Allow | Deny | Retry)]
            assert orders == [msgspec.structs.replace(one, project=str(tmp_path)) for one in wanted]

    run(story())


MOVED: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "opened after it was approved": (GATE, "Open", {}),
    "answered after the questions were answered": (ASKED, "Answer", {}),
    "retried after somebody did": (failed("failed"), "Retry", {"stages": (stage("running"),)}),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_button_that_comes_too_late_says_so_and_does_nothing(tmp_path: Path, case: str) -> None:
    what, title, later = MOVED[case]

    async def story() -> None:
        async with Inside(tmp_path, BUTTONS, {REQUEST: SILENT}) as editor:
            editor.changed(view(tmp_path, **fresh(what)))
            asked = await editor.until(lambda m: m.get("method") == REQUEST)
            editor.changed(view(tmp_path, **later))
            editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": title}})
            said = await editor.note(SAID)
            assert said["message"] == "“Add a login” does not wait for that any more. Nothing was done."
            assert not editor.ordered(Retry)
            assert not editor.notes("window/showDocument")

    run(story())


def test_a_permission_that_was_answered_elsewhere_is_refused_with_the_daemons_sentence(
    tmp_path: Path,
) -> None:
    def late(order: Allow) -> None:
        raise refused(
            "answered", f"{order.decision} was answered already, at 14:05 from Neovim.", "Look again."
        )

    async def story() -> None:
        async with Inside(tmp_path, BUTTONS, {REQUEST: SILENT}) as editor:
            editor.changed(view(tmp_path, **fresh(LEAVE)))
            asked = await editor.until(lambda m: m.get("method") == REQUEST)
            next_one = {"waiting_for": waits("decision", decisions=(permission(4, what="rm -r ."),))}
            editor.changed(view(tmp_path, **fresh(next_one)))
            editor.daemon.answers[Allow] = late
            editor.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": "Once"}})
            said = await editor.note(SAID)
            assert said["message"] == "D3 was answered already, at 14:05 from Neovim. Look again."
            assert [order.decision for order in editor.ordered(Allow)] == ["D3"]

    run(story())


def test_an_editor_that_never_answers_is_served_all_the_same_and_ends_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, BUTTONS, {REQUEST: SILENT, "window/showDocument": SILENT}) as editor:
            for number in range(1, 8):
                task = view(tmp_path, number, title=f"Task {number}", **fresh(GATE))
                editor.changed(task)
                await editor.until(lambda m, n=number: f"Task {n}" in str(m.get("params")))
            assert len(editor.notes(REQUEST)) >= 1
            await last(editor)
            page = editor.visit(editor.file(".promptside/tasks/1-add-a-login/task.md", "# Add a login\n"))
            assert await editor.actions(page) == []

    async def timed() -> None:
        await asyncio.wait_for(story(), 60)

    run(timed())


def test_an_editor_that_answers_with_an_error_has_chosen_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, BUTTONS, {REQUEST: SILENT}) as editor:
            editor.changed(view(tmp_path, **fresh(LEAVE)))
            asked = await editor.until(lambda m: m.get("method") == REQUEST)
            error = {"code": -32601, "message": "what?"}
            editor.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
            await last(editor)
            assert not editor.ordered(Allow)
            assert not editor.ordered(Deny)

    run(story())


# --- without buttons: code actions on the task's page and on the desk ----------------------------------------


def permitted(folder: Path) -> TaskView:
    """A task that asks for a permission, with what the daemon offers then."""
    offers = [
        Offer(command="promptside.allow", title=title, args={"decision": "D3", "scope": scope}, place="D3")
        for title, scope in (("Allow once", "once"), ("Always in this project", "always"))
    ]
    deny = Offer(
        command="promptside.deny", title="Deny…", args={"decision": "D3"}, place="D3", needs_text=True
    )
    what = fresh(LEAVE)
    return view(folder, offers=(*offers, deny), decisions=what["waiting_for"].decisions, **what)


@pytest.mark.parametrize("capabilities", [PLAIN, MINIMAL], ids=["plain", "minimal"])
def test_ux9_a_permission_is_answered_on_the_page_of_the_task(
    tmp_path: Path, capabilities: dict[str, Any]
) -> None:
    async def story() -> None:
        async with Inside(tmp_path, capabilities) as editor:
            editor.changed(permitted(tmp_path))
            page = editor.visit(
                editor.file(".promptside/tasks/1-add-a-login/task.md", "# Add a login\n\nIt.\n")
            )
            said = await editor.diagnosed(page, lambda found: any(d["code"] == "permission" for d in found))
            assert "npm install" in said[0]["message"]
            await editor.choose(page, "Always in this project · npm install")
            await editor.choose(page, "Deny")
            editor.replace(page, "# Add a login\n", "# Add a login\n>> use pnpm\n>> and no other\n")
            noted = [a for a in await editor.actions(page) if "with 1 note" in a["title"]]
            await editor.perform(noted[0])
            assert [o.scope for o in editor.ordered(Allow)] == ["always"]
            assert [o.text for o in editor.ordered(Deny)] == ["", "use pnpm\nand no other"]
            assert {o.decision for o in editor.ordered(Deny)} == {"D3"}

    run(story())


def test_ux9_a_permission_is_answered_on_the_desk(tmp_path: Path) -> None:
    async def story() -> None:
        async with Inside(tmp_path, PLAIN) as editor:
            editor.changed(permitted(tmp_path))
            desk = editor.visit(editor.file(".promptside/DESK.md", "# Tasks\n\n! #1 Add a login\n"))
            titles = [a["title"] for a in await editor.actions(desk, line_of(editor.texts[desk], "#1"))]
            assert any(title.startswith("Allow once") for title in titles), titles
            await editor.choose(desk, "Allow once", line_of(editor.texts[desk], "#1"))
            assert [o.decision for o in editor.ordered(Allow)] == ["D3"]

    run(story())


def test_st14_the_rehearsals_permission_is_given_by_a_button_and_the_run_goes_on(user: User) -> None:
    """With a real daemon: nothing but the message was touched."""

    async def story() -> None:
        async with Buffers(user, BUTTONS, answers={REQUEST: {"title": "Once"}}) as editor:
            await sample_at(editor, 3)
            await waited(editor, "04-implementation.md")
            asked = [said["message"] for said in editor.notes(REQUEST)]
            assert any(words.startswith("The agent wants to") for words in asked)

    run(story())
    (permission,) = [d for d in user.task()["decisions"] if d["kind"] == "permission"]
    assert (permission["status"], permission["answer"], permission["client"]) == (
        "answered",
        "allowed once",
        "neovim",
    )


def test_nothing_is_approved_from_a_form_that_does_not_wait(tmp_path: Path) -> None:
    """Answered questions stay open; what waits after them is another document."""
    approve = Offer(command="promptside.approve", title="Approve", args={"stage": "work"}, primary=True)
    task = view(tmp_path, stages=(stage(artifact=DOCUMENT),), offers=(approve,), **GATE)

    def offered(document: str) -> list[str]:
        reading = Reading(uri="file:///x", task=task, document=document, text="")
        return [act.title for act in document_acts(reading)]

    assert offered(DOCUMENT) == ["Approve"]
    assert offered(f"{task.directory}/task.md") == ["Approve"]
    assert offered(ROUND) == []
