"""A loop over a small pipeline, with a world that only takes notes; as a program it kills itself at a point.

small_loop.py DATABASE before-commit|after-commit|in-effect
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from promptside_daemon.engine.effects import Effect
from promptside_daemon.engine.events import TaskCreated
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.pipeline import Limits, Pipeline, Stage
from promptside_daemon.engine.task import Person, Task
from promptside_daemon.loop import Loop
from promptside_daemon.store.project import ProjectStore, Results, Settle
from promptside_daemon.store.rows import Append
from promptside_protocol.commands import Ack, Run, StageCommand

BY = Person(user="ada", client="test")
PIPELINE = Pipeline(
    name="small",
    stages=(
        Stage(id="research", name="Research", prompt="Look.", tools=("Read",), permission="deny"),
        Stage(id="planning", name="Planning", prompt="Plan.", tools=("Read",), permission="deny"),
    ),
)

Write = Callable[[Sequence[Append]], Awaitable[Results]]


class Notes:
    """A world that does nothing but remember what it was to do."""

    def __init__(self) -> None:
        self.done: list[tuple[int, Effect]] = []
        self.gone: list[int] = []

    def act(self, task: Task, effects: tuple[Effect, ...]) -> None:
        self.done += [(task.id, effect) for effect in effects]

    def let_go(self, task: int) -> None:
        self.gone.append(task)

    def kinds(self, task: int) -> list[str]:
        """What was to be done for a task, by name."""
        return [type(effect).__name__ for number, effect in self.done if number == task]


def created(number: int, title: str = "A task") -> TaskCreated:
    """The creation of a task with the small pipeline."""
    return TaskCreated(
        at=time.time(),
        by=BY,
        id=number,
        project="/project",
        slug="a-task",
        title=title,
        description="",
        kind="feature",
        work_type="coding",
        priority=50,
        criteria=(),
        files=(),
        agent="rehearsal",
        pipeline=PIPELINE,
        limits=Limits(),
        draft=False,
    )


async def given(_: Task) -> Given:
    """What is read for an order that depends on nothing outside of its task."""
    return Given(at=time.time(), by=BY)


async def order(loop: Loop, command: StageCommand) -> Ack:
    """Give an order as `BY`."""
    return await loop.order(command.task, command, given)


def intercept(store: ProjectStore, around: Callable[[Write, Sequence[Append]], Any]) -> None:
    """Have every append of a store go through `around`."""
    append = store.append

    async def intercepted(batch: Sequence[Append], settle: Settle) -> Results:
        found: Results = await around(lambda one: append(one, settle), batch)
        return found

    store.append = intercepted  # type: ignore[method-assign]  # only in tests


async def _die(database: Path, point: str) -> None:
    store = await ProjectStore.open(database)
    loop = Loop(store)
    await loop.start()
    ack = await loop.create("a key", created)
    print(f"created {ack.task}", flush=True)

    def die(_: object = None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def around(append: Write, batch: Sequence[Append]) -> Any:
        if point == "before-commit":
            die()
        if point == "after-commit":
            return await ProjectStore.append(store, batch, die)
        return await append(batch)

    class Dying(Notes):
        def act(self, task: Task, effects: tuple[Effect, ...]) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

    intercept(store, around)
    loop.acts = Dying()
    await order(loop, Run(project="/project", task=ack.task))
    print("acknowledged", flush=True)


if __name__ == "__main__":
    asyncio.run(_die(Path(sys.argv[1]), sys.argv[2]))
