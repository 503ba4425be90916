"""The daemon's core in the test's own process: one project, and an agent that a test has written down."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from msgspec import Struct
from rig.fake_claude import fake_claude, let_go
from rig.scratch import scratch

from promptside_daemon.daemon import Daemon
from promptside_daemon.engine.task import AtGate, Attempt, StageRun, Task, live_attempt
from promptside_daemon.lifecycle import Service
from promptside_daemon.project import Project
from promptside_daemon.rpc.who import Who
from promptside_daemon.store.registry import Registry
from promptside_daemon.world import processes
from promptside_daemon.world.follow import Follower
from promptside_protocol import paths
from promptside_protocol.commands import Ack, AddProject, NewTask, Run

DEADLINE_SECONDS = 60.0

STAGE = """
[[stage]]
id = "work"
name = "Work"
input = "user"
prompt = "Work on it: {{ task_description }}"
permission = "ask"
"""
"""A stage with all tools, that asks."""


class _Process(Struct):
    """What the core asks of the process that carries it."""

    umask: int = 0o022
    started: float = 0.0
    log_path: str = ""

    def clients(self) -> int:
        return 0


class Bench:
    """Made by the fixture `bench`; `begin` opens the core as often as one likes."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "a project"
        self.root.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(base / "home"), "LANG": "C.UTF-8"}
        self.daemon = cast(Daemon, None)
        self.pipeline("small", STAGE)
        self.claude("prompt(); init(); result(); end()")

    # --- before it begins --------------------------------------------------------------------------------

    def claude(self, script: str) -> Path:
        """The agent from now on."""
        program = fake_claude(self.base, script)
        self.environment["PROMPTSIDE_CLAUDE"] = str(program)
        return program

    def pipeline(self, name: str, stages: str) -> None:
        """A pipeline of the person's own."""
        directory = paths.config_dir() / "pipelines"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.toml").write_text(stages, encoding="utf-8")

    def settings(self, text: str) -> None:
        """The person's settings."""
        paths.config_dir().mkdir(parents=True, exist_ok=True)
        (paths.config_dir() / "config.toml").write_text(text, encoding="utf-8")

    def git(self, *words: str) -> None:
        """Run git in the project."""
        names = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.invalid"}
        committer = {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.invalid"}
        subprocess.run(
            ["git", *words],
            cwd=self.root,
            env={**self.environment, **names, **committer},
            check=True,
            capture_output=True,
        )

    # --- while it works ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def begin(self) -> AsyncIterator["Bench"]:
        """The core at work, until the block ends; agents go on behind it."""
        registry = await Registry.open(paths.registry_path())
        self.daemon = Daemon(registry, Follower(asyncio.get_running_loop()), cast(Service, _Process()))
        await self.daemon.start()
        try:
            if str(self.root) not in self.daemon.projects | self.daemon.broken:
                await self.daemon.order(AddProject(project=str(self.root)), self.who)
            async with asyncio.timeout(DEADLINE_SECONDS):
                yield self
        finally:
            await self.daemon.close()

    @property
    def who(self) -> Who:
        """The person at a terminal, with the environment as it is now."""
        return Who(
            client="test",
            user="ada",
            pid=os.getpid(),
            session="person",
            attempt="",
            environment=dict(self.environment),
            cwd=str(self.root),
        )

    @property
    def project(self) -> Project:
        """The one project."""
        return self.daemon.projects[str(self.root)]

    async def order(self, command: Struct) -> Ack:
        """Give an order."""
        return await self.daemon.order(command, self.who)

    async def new(self, title: str = "A task", pipeline: str = "small", **more: Any) -> int:
        """A new task; its number."""
        key = f"{title} {os.urandom(4).hex()}"
        task = NewTask(project=str(self.root), key=key, title=title, pipeline=pipeline, **more)
        return (await self.order(task)).task

    async def run(self, task: int = 1, **more: Any) -> Ack:
        """Run a task."""
        return await self.order(Run(project=str(self.root), task=task, **more))

    async def started(self, title: str = "A task", **more: Any) -> int:
        """A new task, and run."""
        number = await self.new(title, **more)
        await self.run(number)
        return number

    async def task(self, number: int = 1) -> Task:
        """A task as it is on the disk."""
        return (await self.project.loop.load(number))[0]

    async def until(self, condition: Callable[[Task], object], number: int = 1) -> Task:
        """The task when it fulfils the condition; looked at after each commit."""
        while True:
            head = self.project.store.head
            task = await self.task(number)
            if condition(task):
                return task
            await self.project.store.wait_past(head)

    async def rests(self, number: int = 1) -> Task:
        """The task when no attempt lives and none is on its way."""
        return await self.until(rests, number)

    async def comes(self, file: Path) -> None:
        """Wait until a file is there."""
        news = asyncio.Event()
        with self.daemon.follower.watch(file.parent, news.set):
            while not file.exists():
                await news.wait()
                news.clear()

    def gate(self) -> Path:
        """A place where the agent can `hold`."""
        gate = self.base / "gate"
        os.mkfifo(gate)
        return gate

    async def let_go(self, gate: Path) -> None:
        """Let the agent that holds there go on."""
        await asyncio.to_thread(let_go, gate)

    async def kinds(self) -> list[str]:
        """The journal, by kind."""
        return [fact.kind for fact in await self.project.store.facts_since(0, 100_000)]

    def directory(self, attempt: Attempt) -> Path:
        """The attempt's directory."""
        return self.project.world.attempts / attempt.id

    # --- its end -----------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """End what tests have left at work."""
        for spec in self.base.glob("**/attempts/*/keeper.json"):
            keeper = msgspec.json.decode(spec.read_bytes(), type=processes.Process)
            processes.send_signal(keeper, signal.SIGCONT)
            processes.send_signal(keeper, signal.SIGKILL)
        for directory in self.base.glob("**/attempts/*"):
            asyncio.run(processes.end_marked(directory.name, grace_seconds=0.0))


def make_bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench in a home of its own."""
    base = scratch("bench-")
    (base / "home").mkdir()
    monkeypatch.setenv("PROMPTSIDE_HOME", str(base / "ps"))
    monkeypatch.setenv("HOME", str(base / "home"))
    monkeypatch.delenv(processes.MARK, raising=False)
    return Bench(base)


def rests(task: Task) -> bool:
    """Whether nothing goes on by itself in the next moment."""
    run = task.run
    moving = run is not None and type(run.status).__name__ in ("Queued", "Running", "RetryDue")
    return live_attempt(task) is None and not moving


def talks(task: Task) -> bool:
    """Whether the newest attempt of the first stage has told its session."""
    newest = task.stages[0].last
    return newest is not None and bool(newest.session)


def at_gate(task: Task) -> bool:
    """Whether the current stage waits at its gate."""
    return task.run is not None and isinstance(task.run.status, AtGate)


def stage(task: Task, index: int = 0) -> StageRun:
    """One stage of a task."""
    return task.stages[index]


def last(task: Task, index: int = 0) -> Attempt:
    """The newest attempt of a stage."""
    found = task.stages[index].last
    assert found is not None
    return found
