"""What the panel is sent in each scene: tasks, forms and documents as a real daemon and a real server tell them.

What the extension itself adds to a push (`panel.ts`, `tell`) is added here.
"""

import asyncio
import contextlib
import os
from typing import Any
from unittest import mock

from msgspec import Struct, to_builtins
from msgspec.structs import replace
from rig import every_state
from rig.every_state import AFTER, GATE, STATES, Keys, State, Watcher, World, a_stage
from rig.lsp_editor import Said
from rig.many_tasks import HEBREW, LONG, NAMES
from rig.user import User
from vscode_rig.stories import TITLE, sample

from promptside_daemon.engine.task import Failed
from promptside_daemon.engine.view import Places, view
from promptside_protocol import connect
from promptside_protocol.blocking import request
from promptside_protocol.commands import TakeOver

AT_ONCE = 6
UNTRUSTED = "This folder is not trusted. Tasks are shown; nothing is run."
"""What the extension says of it."""
RECORDED = "rehearsal-fast:standard"


class Scene(Struct, frozen=True):
    """A push, and what the page may ask for after it."""

    shown: dict[str, Any]
    documents: tuple[Any, ...] = ()
    """Those of all attempts."""

    @property
    def task(self) -> Any:
        """The task as it was told."""
        return self.shown["task"]

    @property
    def offers(self) -> list[Any]:
        """What can be done; with the document it is the form that says what is blocked."""
        form = self.shown["form"] or {"offers": []}
        better = {(offer["command"], offer["place"]): offer for offer in form["offers"]}
        return [better.get((one["command"], one["place"]), one) for one in self.task["offers"]]

    def but(self, **more: Any) -> "Scene":
        """The same push with something of the extension's own in another way."""
        return Scene(shown={**self.shown, **more}, documents=self.documents)


MORE_PIPELINES: dict[str, tuple[Keys, ...]] = {
    "fails-twice": (a_stage("work", "fails", limits="{ retries = 1 }"), AFTER),
    "fails-often": (a_stage("work", "fails", limits="{ retries = 4 }"), AFTER),
    "long": tuple(
        {**a_stage(f"stage-{n}", "text" if n < 3 else "works"), "name": f'"{NAMES.get(n, f"Stage {n}")}"'}
        for n in range(1, 14)
    ),
    "hebrew": ({**a_stage("work", "text"), "name": f'"{NAMES[3]}"'}, AFTER),
}
MORE: dict[str, tuple[str, State]] = {
    "one stage, at its gate": ("One Stage", State(pipeline="one", steps=GATE, shape="taken/at_gate")),
    "one stage, ready": ("One Stage", State(pipeline="one", shape="ready/ahead")),
    "given up after retries": (
        "Given Up",
        State(pipeline="fails-twice", steps=("run", "@person"), shape="taken/stuck,ahead"),
    ),
    "a retry is due": (
        "Retried",
        State(pipeline="fails-often", steps=("run", "@third"), shape="taken/retry_due,ahead"),
    ),
    "thirteen stages, a long title": (
        LONG,
        State(
            pipeline="long",
            steps=(*GATE, "approve", "@gate of stage-2", "approve", "@started"),
            shape=f"taken/passed,passed,running{',ahead' * 10}",
        ),
    ),
    "right to left": (HEBREW, State(pipeline="hebrew", steps=GATE, shape="taken/at_gate,ahead")),
    "right to left, ready": (HEBREW, State(pipeline="hebrew", shape="ready/ahead,ahead")),
}
"""Titles and states that only the panel has to do with."""
every_state.WAITS["third"] = lambda told: (
    len(attempts := told["stages"][0]["attempts"]) == 2 and attempts[-1]["status"] == "failed"
)
every_state.WAITS["gate of stage-2"] = lambda told: (
    (told["waiting_for"] or {}).get("kind") == "gate" and told["current"] == "stage-2"
)
PLAYED = {
    ("decision", "research"): "standard: questions",
    ("gate", "research"): "standard: a text",
    ("gate", "high-level-approaches"): "standard: options",
    ("decision", "implementation"): "standard: a permission",
    ("gate", "security-review"): "standard: a checklist",
    ("gate", "pr-preparation"): "standard: fields",
}
"""What a run of the shipped pipeline is looked at for, by what waits and where."""
NAMED = (
    *STATES,
    *MORE,
    *PLAYED.values(),
    "standard: ready",
    "standard: running",
    "standard: a stage that is over",
    "standard: a stage ahead",
    "standard: done",
    "in a terminal",
    "expired",
    "broken",
    "restricted",
    "restricted, at a gate",
)
"""Every scene with a task in it."""


async def made(user: User) -> dict[str, Scene]:
    """All of them, in this person's daemon."""
    every_state.prepare(user)
    sample(user)
    directory = user.data / "config" / "pipelines"
    for name, stages in MORE_PIPELINES.items():
        every_state.write(directory, name, stages)
    found: dict[str, Scene] = {}
    async with Watcher(user) as watcher:
        world = World(user, watcher)
        await watcher.command("addProject", project=world.project)
        room = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, title: str, state: State) -> None:
            async with room:
                found[name] = await _looked_at(world, await world.make(state, title))

        wanted = {**{name: (name.capitalize(), state) for name, state in STATES.items()}, **MORE}
        together = [one(name, *how) for name, how in wanted.items() if not how[1].alone]
        special = (_running, _terminal, _broken)
        await asyncio.gather(*(make(world, found) for make in special), *together)
        await world.rest()
        for name, (title, state) in wanted.items():
            if state.alone:
                async with world.taken_up(name):
                    await one(name, title, state)
        await _played(world, found)
    _derived(found)
    return found


async def _looked_at(world: World, number: int) -> Scene:
    """A task as it is now."""
    task = world.view(number)
    here = {"project": task["project"], "task": number}
    form = (await world.watcher.ask("promptside/openForm", here))["form"]
    pipeline = {"type": "pipeline", "project": task["project"], "name": task["pipeline"]}
    ended = [(one["id"], run["n"]) for one in task["stages"] for run in one["attempts"] if run["ended"]]
    documents = []
    for stage, attempt in ended:
        asked = {"type": "document", **here, "stage": stage, "attempt": attempt}
        with contextlib.suppress(Said):  # an attempt that left none
            documents.append(await world.watcher.ask("promptside/query", asked))
    told = [one["activity"] for one in world.watcher.notes("promptside/activity")]
    running = task["state"] == "taken" and any(one["status"] == "running" for one in task["stages"])
    doing = [one for one in told if one["task"] == number and running]
    shown = {
        "type": "shown",
        "state": {"project": task["project"], "task": number, "stage": "", "scroll": 0},
        "server": "running",
        "up": True,
        "sentence": "",
        "trusted": True,
        "hindrance": "",
        "told": True,
        "task": task,
        "activity": doing[-1] if doing else None,
        "form": form,
        "pipeline": await world.watcher.ask("promptside/query", pipeline),
    }
    return Scene(shown=shown, documents=tuple(documents))


async def _new(world: World, agent: str) -> int:
    """A task of the shipped pipeline, by a recorded agent."""
    words = "Name words that are left out of the list."
    ack = await world.watcher.command(
        "newTask", project=world.project, title=TITLE, description=words, agent=agent
    )
    number: int = ack["task"]
    await world.watcher.task(lambda task: task["id"] == number)
    return number


async def _running(world: World, found: dict[str, Scene]) -> None:
    """A stage in the middle, with what its agent did last."""
    number = await _new(world, "rehearsal:standard")
    await world.order("run", number)
    await world.watcher.note(
        "promptside/activity",
        lambda told: told["activity"]["task"] == number and len(told["activity"]["last"]) > 3,
    )
    found["standard: running"] = await _looked_at(world, number)


async def _terminal(world: World, found: dict[str, Scene]) -> None:
    """A person goes on with the conversation in a terminal of their own."""
    number = await world.make(STATES["running"], "In a terminal")
    order = TakeOver(project=world.project, task=number)
    with mock.patch.dict(os.environ, world.user.environment, clear=True):
        await asyncio.to_thread(request, connect.hello("terminal"), order)
    await world.until(number, lambda task: task["terminal"] is not None)
    found["in a terminal"] = await _looked_at(world, number)
    await world.order("giveBack", number)


async def _broken(world: World, found: dict[str, Scene]) -> None:
    """A task that a fault of ours has ended, as the engine would tell of it."""
    number = await world.make(STATES["a text at its gate"], "Broken")
    scene = await _looked_at(world, number)
    failed = Failed(since=scene.task["state_since"], reason="A fault in Promptside: its log says more.")
    task = replace(world.task(number), life=failed)
    told = to_builtins(view(task, scene.task["seq"], Places(attempts=str(world.user.data))))
    found["broken"] = scene.but(task=told, form=None)


async def _played(world: World, found: dict[str, Scene]) -> None:
    """The shipped pipeline from its first stage to its last, as it was recorded."""
    number = await _new(world, RECORDED)
    found["standard: ready"] = await _looked_at(world, number)
    found["standard: a stage ahead"] = _at(found["standard: ready"], "security-review")
    await world.order("run", number)
    while True:
        task = await world.until(
            number, lambda told: told["waiting_for"] is not None or told["state"] == "completed"
        )
        waits = task["waiting_for"]
        if waits is None:
            break
        scene = await _looked_at(world, number)
        if (name := PLAYED.get((waits["kind"], waits["stage"]))) is not None:
            found[name] = scene
        await _decided(world, number, scene)
        await world.until(number, lambda told, before=waits: told["waiting_for"] != before)
    found["standard: done"] = await _looked_at(world, number)
    found["standard: a stage that is over"] = _at(found["standard: done"], "planning")


async def _decided(world: World, number: int, scene: Scene) -> None:
    """What a person says to it, as short as it can be said."""
    waits, form = scene.task["waiting_for"], scene.shown["form"]
    permission = next((one for one in waits["decisions"] if one["kind"] == "permission"), None)
    if permission is not None:
        await world.order("allow", number, decision=permission["id"], scope="always")
    elif waits["kind"] == "decision":
        await world.order("editDraft", number, answers=form["suggestions"][0]["answers"])
        await world.order("send", number)
    elif waits["kind"] == "input":
        await world.order("run", number)
    else:
        every = {item["id"]: {"ticked": True, "note": ""} for item in form["items"]}
        answers = {"options": {"A": True}, "checklist": every}.get(form["kind"])
        if answers:
            await world.order("editDraft", number, answers=answers)
        await world.order("approve", number)


def _at(scene: Scene, stage: str) -> Scene:
    """With another stage chosen than the current one."""
    return scene.but(state={**scene.shown["state"], "stage": stage})


def _derived(found: dict[str, Scene]) -> None:
    """What no order leads to, made of what is nearest to it."""
    held = found["held"]
    found["expired"] = held.but(task={**held.task, "state": "expired"})
    found["restricted"] = found["standard: ready"].but(trusted=False, hindrance=UNTRUSTED)
    found["restricted, at a gate"] = found["standard: options"].but(trusted=False, hindrance=UNTRUSTED)
