"""For every offer in every state there is a lens or an action that works, and none that is refused (ED-9, UX 1.2).

The states are tried at once, in one daemon; each test tells of one. A state that the engine learns is missing in
`STATES`, and fails here.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from rig import every_state
from rig.every_state import PIPELINES, STATES, Watcher, World, write
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers, line_of
from rig.lsp_editor import Said
from rig.user import User, new_user

from promptside_daemon.engine.pipeline import Gate
from promptside_daemon.engine.task import Decision, Life, Status
from promptside_daemon.pipelines.load import load
from promptside_protocol.commands import StageCommand
from promptside_protocol.forms import Definition

pytestmark = pytest.mark.timeout(600)
"""All states are tried when the first is asked for."""

AT_ONCE = 4
PATIENCE = 120.0
LENSES = {**PLAIN, "textDocument": {**PLAIN["textDocument"], "codeLens": {}}}
NOT_REACHED = {"failed": "only a fault of ours breaks a task; the engine's own test of offers has it"}
NOT_OFFERED = {"editDraft", "answer", "giveBack"}
"""What an item's own actions, and the terminal, give orders by; to give back, a task has to be taken over in one."""
TOLD_APART = ("decision", "scope", "stage", "attempt", "reason")
"""What tells an offer from another of the same command."""
WORDS = {"promptside.redo", "promptside.interrupt"}
ORDERS = {f"promptside.{kind.__struct_config__.tag}" for kind in get_args(StageCommand)} - {
    "promptside.editDraft"
}
WAY_BACK = {"promptside.pause": "promptside.resume", "promptside.approve": "promptside.takeBack"}
"""After which the task is where it was, and can be tried again."""

Given = tuple[str, str, str]
"""A command with what tells it apart, and the kind of state that it was given in."""
Offer = dict[str, Any]
View = dict[str, Any]


# --- the effect of each -----------------------------------------------------------------------------------


def stage_of(view: View, name: str) -> Any:
    return next(stage for stage in view["stages"] if stage["id"] == name)


def attempts(view: View) -> int:
    return sum(len(stage["attempts"]) for stage in view["stages"])


def told(view: View, before: View, words: str) -> bool:
    stage = stage_of(view, before["current"])
    return words in Path(stage["attempts"][-1]["transcript"]).read_text("utf-8")


def decision(view: View, offer: Offer) -> Any:
    return next(d for d in view["decisions"] if d["id"] == offer["args"]["decision"])


Effect = Callable[[View, View, Offer], object]
EFFECTS: dict[str, Effect] = {
    "ready": lambda now, before, offer: now["state"] == "ready",
    "run": lambda now, before, offer: attempts(now) > attempts(before),
    "approve": lambda now, before, offer: (
        (stage := stage_of(now, offer["args"]["stage"]))["approval"] and not stage["reason"]
    ),
    "takeBack": lambda now, before, offer: (
        sum(bool(s["approval"]) for s in now["stages"]) < sum(bool(s["approval"]) for s in before["stages"])
    ),
    "redo": lambda now, before, offer: (
        attempts(now) > attempts(before)
        and stage_of(now, before["current"])["attempts"][-1]["cause"] == "redo"
    ),
    "retry": lambda now, before, offer: attempts(now) > attempts(before),
    "skip": lambda now, before, offer: stage_of(now, before["current"])["status"] == "skipped",
    "goBack": lambda now, before, offer: now["current"] == offer["args"]["stage"],
    "pause": lambda now, before, offer: now["state"] == "paused",
    "takeOver": lambda now, before, offer: (
        True
    ),  # the editor is told what to type: the program there orders it
    "resume": lambda now, before, offer: now["state"] == "taken",
    "stop": lambda now, before, offer: stage_of(now, before["current"])["status"] == "failed",
    "interrupt": lambda now, before, offer: told(now, before, "I was told: Shorter."),
    "abandon": lambda now, before, offer: now["reason"] == "abandoned",
    "archive": lambda now, before, offer: now["state"] == "archived",
    "undo": lambda now, before, offer: not list(Path(now["project"]).glob("made-*")),
    "send": lambda now, before, offer: (
        {d["id"] for d in now["decisions"] if d["status"] == "answered"}
        > {d["id"] for d in before["decisions"] if d["status"] == "answered"}
    ),
    "allow": lambda now, before, offer: decision(now, offer)["status"] == "answered",
    "deny": lambda now, before, offer: decision(now, offer)["status"] == "denied",
}


async def took_effect(world: World, number: int, before: View, offer: Offer) -> None:
    """Wait for what an order does; what an agent writes is told by nobody."""
    effect = EFFECTS[offer["command"].removeprefix("promptside.")]
    async with asyncio.timeout(PATIENCE):
        while not effect(world.view(number), before, offer):  # noqa: ASYNC110  # see above
            await asyncio.sleep(0.01)


# --- what is drawn ----------------------------------------------------------------------------------------


def command_of(action: Any) -> tuple[str, Any]:
    """The command of a code action, literal or bare, and its argument."""
    given = action.get("command")
    given = given if isinstance(given, dict) else action
    return str(given.get("command") or ""), (given.get("arguments") or [{}])[0]


def stands_for(action: Any, offer: Offer) -> bool:
    name, args = command_of(action)
    return (
        name == offer["command"] and {key: args[key] for key in TOLD_APART if args.get(key)} == offer["args"]
    )


def item_line(editor: Buffers, uri: str, offer: Offer) -> int:
    """Where the item stands that an offer is about; the first line for all others."""
    mark = f"**{offer['place']}**"
    return line_of(editor.texts[uri], mark) if offer["place"] and mark in editor.texts[uri] else 0


def belongs(view: View, offer: Offer, document: str) -> bool:
    """Whether an offer is to be found in a document: an item's and an approval where they are about."""
    waiting = view["waiting_for"] or {}
    items = {item["id"] for item in (waiting.get("gate") or {}).get("items", ())}
    form = document != "task.md"
    if offer["place"] in items:
        return form
    if offer["command"] == "promptside.approve" and form:
        artifact = stage_of(view, offer["args"]["stage"])["artifact"]
        return bool(artifact and artifact.endswith(f"/{document}"))
    return True


async def drawn(editor: Buffers, uri: str, offer: Offer) -> Any:
    """The action that stands for an offer, as soon as the editor's server has heard of it."""
    there: list[Any] = []
    try:
        async with asyncio.timeout(PATIENCE):
            while not (found := standing_for(offer, there)):
                there = await editor.actions(uri, item_line(editor, uri, offer))
                await asyncio.sleep(0 if there else 0.02)
    except TimeoutError:
        pytest.fail(f"{offer} is not among {there}")
    return found[0]


def standing_for(offer: Offer, found: list[Any]) -> list[Any]:
    """The actions that stand for an offer, possible or disabled."""
    name = offer["command"]
    if offer["blocked"] is not None:
        return [a for a in found if (a.get("disabled") or {}).get("reason") == offer["blocked"]]
    begun = [a for a in found if name in WORDS and not command_of(a)[0] and a["title"] == offer["title"]]
    return begun or [a for a in found if stands_for(a, offer) and "disabled" not in a]


def hidden(editor: Buffers, offer: Offer) -> bool:
    """What an editor that shows commands only can't be shown: what is not possible, or waits for a note."""
    blocked = offer["blocked"] is not None or offer["command"] == "promptside.interrupt"
    return editor.capabilities is MINIMAL and blocked


async def all_drawn(world: World, editor: Buffers, uri: str, number: int) -> None:
    """Wait until the document shows exactly what is offered: an editor's server hears of it a moment later."""
    view, faults = world.view(number), ["nothing was looked at"]
    try:
        async with asyncio.timeout(PATIENCE):
            while faults or world.view(number)["seq"] != view["seq"]:
                view = world.view(number)
                faults = await faulty(editor, uri, view)
                if faults:
                    await asyncio.sleep(0.02)
    except TimeoutError:
        there = [(a["title"], *command_of(a)) for a in await editor.actions(uri)]
        pytest.fail(f"{uri}: {faults} among {there}")


async def faulty(editor: Buffers, uri: str, view: View) -> list[Any]:
    """Offers that are not drawn once, and what is drawn that is not offered."""
    document = uri.rsplit("/", 1)[-1]
    wanted = [o for o in view["offers"] if belongs(view, o, document) and not hidden(editor, o)]
    lines = {0, *(item_line(editor, uri, offer) for offer in wanted)}
    found = {line: await editor.actions(uri, line) for line in lines}
    faults: list[Any] = [
        offer for offer in wanted if len(standing_for(offer, found[item_line(editor, uri, offer)])) != 1
    ]
    possible = [offer for offer in view["offers"] if offer["blocked"] is None]
    drawings = [a for a in found[0] if "disabled" not in a]
    drawings += [lens["command"] for lens in await lenses(editor, uri)]
    orders = [one for one in drawings if command_of(one)[0] in ORDERS]
    return faults + [one for one in orders if not any(stands_for(one, offer) for offer in possible)]


async def lenses(editor: Buffers, uri: str) -> list[Any]:
    if "codeLens" not in editor.capabilities["textDocument"]:
        return []
    found: list[Any] = await editor.ask("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return found


# --- one state --------------------------------------------------------------------------------------------


async def pages(world: World, view: View) -> list[Path]:
    """The document that waits, and the task's own."""
    names = [(view["waiting_for"] or {}).get("document"), f"{view['directory']}/task.md"]
    files = [Path(view["project"]) / name for name in names if name]
    for file in files:
        await every_state.file_there(file)
    return files


def asks_for(asked: Decision) -> str:
    """A decision as `State.asks` has it."""
    if asked.kind != "permission":
        return "questions"
    return "permission" if asked.rule else "permission-once"


async def tried(world: World, editors: list[Buffers], name: str, given: set[Given]) -> set[str]:
    """Everything that is offered in a state, seen in each editor and done in one; what was done.

    What was done in a state of the same kind is not done again: only what waits before or behind differs there.
    """
    state = STATES[name]
    number = await world.bring(name)
    view = world.view(number)
    task = world.task(number)
    document = (view["waiting_for"] or {}).get("document")
    forms = [form for form in (task.questions, *(run.form for run in task.stages)) if form is not None]
    waiting = [form.definition.__struct_config__.tag for form in forms if form.document == document]
    assert waiting == ([state.form] if state.form else [])
    assert {asks_for(decision) for decision in task.open_decisions} == set(state.asks.split())
    for editor in editors:
        files = await pages(world, view)
        for file in files if editor.capabilities is PLAIN else files[:1]:
            uri = editor.visit(file)
            await all_drawn(world, editor, uri, number)
            editor.leave(uri)
    for offer in view["offers"]:
        if offer["blocked"] is not None:
            await refused(world, number, offer)
    assert world.recorded(number) == state.shape
    done, fresh = set(), True
    possible = [offer for offer in view["offers"] if offer["blocked"] is None]
    for at, offer in enumerate(sorted(possible, key=lambda o: o["command"] not in WAY_BACK)):
        kind = (offer["command"], str(offer["args"].get("scope")), state.kind(task.current))
        if kind in given:
            continue
        given.add(kind)
        if not fresh:
            await world.put_away(number)
            number = await world.bring(name)
        editor = editors[(at + number) % len(editors)]
        back = await acted(world, editor, number, offer)
        done.add(offer["command"])
        fresh = "running" not in state.shape and (
            back is not None or offer["command"] == "promptside.takeOver"
        )
        if back is not None and fresh:
            await acted(world, editor, number, back)
            fresh = world.recorded(number) == state.shape
    await world.put_away(number)
    return done


async def refused(world: World, number: int, offer: Offer) -> None:
    """What is blocked is refused with the very reason that it shows."""
    more = {"text": "Shorter."} if offer["command"] == "promptside.interrupt" else {}
    with pytest.raises(Said) as said:
        await world.order(offer["command"].removeprefix("promptside."), number, **offer["args"], **more)
    assert str(said.value) == offer["blocked"], offer


async def acted(world: World, editor: Buffers, number: int, offer: Offer) -> Offer | None:
    """Choose an offer in an editor, and see what it does; the offer that leads back, if there is one."""
    view = world.view(number)
    file = (await pages(world, view))[0]
    if not belongs(view, offer, file.name):
        file = file.with_name("task.md")
    uri = editor.visit(file)
    if offer["command"] in WORDS:
        await with_a_note(editor, uri, offer)
    else:
        here = [one["command"] for one in await lenses(editor, uri) if stands_for(one["command"], offer)]
        await editor.perform(here[0] if here else await drawn(editor, uri, offer))
    await took_effect(world, number, view, offer)
    editor.leave(uri)
    wanted = WAY_BACK.get(offer["command"])
    now = world.view(number)
    return next((o for o in now["offers"] if o["command"] == wanted and o["blocked"] is None), None)


async def with_a_note(editor: Buffers, uri: str, offer: Offer) -> None:
    """Begin a note as the action does, else by hand; then the same action takes it along."""
    if editor.capabilities is MINIMAL:
        title, _, rest = editor.texts[uri].partition("\n")
        editor.type(uri, f"{title}\n>> Shorter.\n{rest}")
    else:
        await editor.perform(await drawn(editor, uri, offer))
        editor.replace(uri, "\n>> \n", "\n>> Shorter.\n")
    (action,) = [a for a in await editor.actions(uri) if stands_for(a, offer)]
    assert action["title"].endswith(" with 1 note")
    await editor.perform(action)


# --- all states -------------------------------------------------------------------------------------------


async def everything(user: User, names: list[str]) -> dict[str, set[str] | BaseException]:
    """What was done in each state, or why it failed."""
    found: dict[str, set[str] | BaseException] = {}
    given: set[Given] = set()
    every_state.prepare(user)

    async def one(world: World, editors: list[Buffers], name: str) -> None:
        try:
            found[name] = await tried(world, editors, name, given)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # told by the test of this state
            found[name] = error

    async with contextlib.AsyncExitStack() as stack:
        watcher = Watcher(user)
        await stack.enter_async_context(watcher)
        kinds = (PLAIN, MINIMAL, LENSES)
        editors = [await stack.enter_async_context(Buffers(user, kind)) for kind in kinds]
        world = World(user, watcher)
        await watcher.command("addProject", project=world.project)
        room = asyncio.Semaphore(AT_ONCE)

        async def in_turn(name: str) -> None:
            async with room:
                await one(world, editors, name)

        alone = [name for name in names if STATES[name].alone]
        await asyncio.gather(*(in_turn(name) for name in names if name not in alone))
        await world.rest()
        for name in alone:
            async with world.taken_up(name):
                await one(world, editors, name)
    return found


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> Iterator[dict[str, set[str] | BaseException]]:
    """All states that are asked for, tried once."""
    items = [item for item in request.session.items if item.path == request.path]
    wanted = {item.callspec.params["state"] for item in items if hasattr(item, "callspec")}
    for user in new_user():
        yield asyncio.run(everything(user, [name for name in STATES if name in wanted]))


@pytest.mark.parametrize("state", STATES)
def test_ed9_every_offer_is_drawn_and_works_and_none_is_refused(
    results: dict[str, set[str] | BaseException], state: str
) -> None:
    found = results[state]
    if isinstance(found, BaseException):
        raise found


def test_every_command_that_is_offered_was_given(results: dict[str, set[str] | BaseException]) -> None:
    if set(results) != set(STATES):
        pytest.skip("not every state was asked for")
    done = {name for found in results.values() if isinstance(found, set) for name in found}
    known = {str(kind.__struct_config__.tag) for kind in get_args(StageCommand)} - NOT_OFFERED
    assert done == {f"promptside.{name}" for name in known}


def test_every_status_of_the_engine_is_among_the_states(tmp_path: Path) -> None:
    lives = {state.shape.partition("/")[0] for state in STATES.values()}
    statuses = {one for state in STATES.values() for one in state.shape.partition("/")[2].split(",")}
    assert lives | NOT_REACHED.keys() == {str(kind.__struct_config__.tag) for kind in get_args(Life)}
    assert statuses == {str(kind.__struct_config__.tag) for kind in get_args(Status)}
    assert {state.form for state in STATES.values()} - {""} == {
        str(kind.__struct_config__.tag) for kind in get_args(Definition)
    }
    pipelines = [load(write(tmp_path, name, stages), "user").pipeline for name, stages in PIPELINES.items()]
    gates = {type(stage.gate) for found in pipelines if found is not None for stage in found.stages}
    assert gates == {*get_args(Gate), type(None)}
