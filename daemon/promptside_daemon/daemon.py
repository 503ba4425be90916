"""The daemon's core: all projects, the slots for their agents, and who is asked what.

It decides nothing about a task; that is the engine's. It knows nothing of the wire; that is `rpc`'s.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from promptside_daemon import flows, retention, trust
from promptside_daemon.answers import Answers
from promptside_daemon.buffers import Buffers
from promptside_daemon.engine.events import SlotGranted
from promptside_daemon.engine.slots import Want, slots
from promptside_daemon.lifecycle import Service
from promptside_daemon.project import Project
from promptside_daemon.rpc.who import Who
from promptside_daemon.settings import load as load_settings
from promptside_daemon.store.registry import ProjectRow, Registry
from promptside_daemon.store.rows import Append, Fact
from promptside_daemon.world.awake import Awake
from promptside_daemon.world.follow import Follower
from promptside_protocol import paths
from promptside_protocol.commands import (
    Ack,
    AddProject,
    CollectGarbage,
    NewTask,
    RemoveProject,
    RemoveRule,
    RenameProject,
    RevokeTrust,
    TaskCommand,
    Trust,
)
from promptside_protocol.errors import PromptsideError, Refusal, Refused, UnknownMethod, refused
from promptside_protocol.notices import Notice
from promptside_protocol.queries import FollowOutput, HeldDocument, Query, Watch

log = logging.getLogger(__name__)

DOCUMENTS = 1000
"""How many documents of tasks one client may hold; of more, the rest is written under its hands."""


class Daemon:
    """Everything behind the socket."""

    def __init__(self, registry: Registry, follower: Follower, service: Service) -> None:
        self.registry = registry
        self.service = service
        self.projects: dict[str, Project] = {}
        """By path."""
        self.broken: dict[str, tuple[ProjectRow, Refusal]] = {}
        """Projects whose database can't be used, and why; the others go on."""
        self.follower = follower
        self.buffers = Buffers()
        self._granted: set[tuple[str, int, str, float]] = set()
        self._answers = Answers(self)
        self._giving: set[asyncio.Task[None]] = set()
        self._started = False
        self._awake = Awake()
        self.tidying: asyncio.Task[None] | None = None
        """Retention at work, or waiting for its next day."""
        self._was_busy = False
        self._opening: dict[str, asyncio.Task[None]] = {}
        self.opened = asyncio.Event()
        """Set, and replaced, when a project comes or goes."""

    async def start(self) -> None:
        """Open every project, and take over what is under way."""
        for row in await self.registry.projects():
            await self._open(row)
        self._started = True
        self._grant()

    async def close(self) -> None:
        """Finish what is being committed; agents at work go on."""
        if self.tidying is not None:
            self.tidying.cancel()
            await asyncio.gather(self.tidying, return_exceptions=True)
        for project in self.projects.values():
            await project.close()
        await self.registry.close()
        self.follower.close()
        self._awake.hold(wanted=False)

    async def _open(self, row: ProjectRow) -> Project | None:
        project: Project | None = None
        try:
            project = await Project.open(row, self.follower, self.buffers)
            await project.start(self._grant)
        except Exception as error:
            # Whatever is wrong with it concerns this project alone.
            if isinstance(error, PromptsideError):
                log.error("project %s: %s", row.path, error)  # noqa: TRY400  the sentence is the whole story
                refusal = error.refusal
            else:
                log.exception("project %s can't be opened", row.path)
                refusal = Refusal(code="damaged", message=f"The project can't be opened: {error}.")
            self.broken[row.path] = (row, refusal)
            if project is not None:
                await project.close()
            return None
        self.broken.pop(row.path, None)
        self.projects[row.path] = project
        self._tell_opened()
        return project

    def _tell_opened(self) -> None:
        opened, self.opened = self.opened, asyncio.Event()
        opened.set()

    # --- slots --------------------------------------------------------------------------------------------

    def _grant(self) -> None:
        """Give free slots to who wants one; told after each commit of any project."""
        if not self._started:
            return  # not before it is known what runs already
        self._stay_awake()
        wants: list[Want] = []
        running: list[str] = []
        for path, project in self.projects.items():
            wants += project.loop.wants(path)
            running += [path for _ in project.loop.live()]
        self._granted &= {_key(want) for want in wants}
        running += [key[0] for key in self._granted]
        open_wants = [want for want in wants if _key(want) not in self._granted]
        if not open_wants:
            return
        for want in slots(open_wants, running, load_settings().settings.limits.agents):
            self._granted.add(_key(want))
            granting = asyncio.create_task(self._give(want))
            self._giving.add(granting)
            granting.add_done_callback(self._given)

    def _stay_awake(self) -> None:
        """Keep the machine awake from the first agent to the last, where the person wants that (DA-12)."""
        if self.busy() != self._was_busy:
            self._was_busy = not self._was_busy
            self._awake.hold(wanted=self._was_busy and load_settings().settings.daemon.keep_awake)

    async def _give(self, want: Want) -> None:
        """Start a stage, unless what it builds on has changed since it was approved."""
        project = self.projects.get(want.project)
        task = project.loop.task(want.task) if project is not None else None
        if project is None or task is None:
            return
        await project.world.notice(task)  # which may take the want away; then the grant means nothing
        attempt = f"t{want.task}-{secrets.token_hex(8)}"
        project.loop.observe(want.task, SlotGranted(at=time.time(), stage=want.stage, attempt=attempt))

    def _given(self, granting: asyncio.Task[None]) -> None:
        self._giving.discard(granting)
        if not granting.cancelled() and granting.exception() is not None:
            log.error("a slot could not be given", exc_info=granting.exception())

    # --- the seam to the wire -----------------------------------------------------------------------------

    async def order(self, command: Struct, who: Who) -> Ack:
        """Take an order."""
        if not isinstance(command, RemoveProject):
            await self._mend(getattr(command, "project", ""))
        match command:
            case NewTask():
                return await (await self._project_for(command.project)).create(command, who)
            case TaskCommand():
                return await self.project(command.project).order(command, who)  # type: ignore[arg-type]  # every TaskCommand is one of the union
            case AddProject():
                await self._add(command)
            case RemoveProject():
                await self._remove(command)
            case RenameProject():
                await self._rename(command)
            case Trust():
                await self._trust(command, who)
            case RevokeTrust():
                project = self.project(command.project)
                await self.registry.revoke_trust(project.row.id)
                await self._reload(project)
            case RemoveRule():
                await self._remove_rule(command)
            case CollectGarbage():
                await retention.collect(self)
            case _:
                kind = type(command).__name__
                raise UnknownMethod(Refusal(code="unknown", message=f"The daemon does not know {kind}."))
        return Ack(seq=0)

    async def ask(self, query: Query[Any], who: Who) -> object:
        """Answer a question."""
        await self._mend(getattr(query, "project", ""))
        return await self._answers.to(query, who)

    def flow(
        self,
        query: Watch | FollowOutput,
        who: Who,  # noqa: ARG002  the seam names it; what a session may follow is decided at the door
        flow: int,
    ) -> AsyncGenerator[Notice, None]:
        """Notices from a cursor on; pulled as fast as the client reads."""
        if isinstance(query, Watch):
            return flows.watch(self, query, flow)
        return flows.follow_output(self, query, flow)

    def unsaved(self, who: Who, files: tuple[str, ...]) -> None:
        """What a client holds with changes that are not saved (ED-11)."""
        self._unsaved_changed(self.buffers.tell(who, files))

    def gone(self, who: Who) -> None:
        """A client is gone, and what it held with it."""
        self._unsaved_changed(self.buffers.gone(who))
        self.hold(who, ())

    def hold(self, who: Who, documents: tuple[HeldDocument, ...]) -> None:
        """What a client has open and takes edits of, in place of what it had (UX 2.1)."""
        by_root: dict[str, list[HeldDocument]] = {}
        for held in documents[:DOCUMENTS]:
            by_root.setdefault(os.path.realpath(held.project), []).append(held)
        for path, project in self.projects.items():
            project.world.writer.hold(who.connection, by_root.get(path, ()))

    def _unsaved_changed(self, cleared: dict[str, str]) -> None:
        for project in self.projects.values():
            project.world.unsaved_changed(cleared)

    def keepers(self) -> dict[int, str]:
        """The attempt of each living keeper, by its pid."""
        found: dict[int, str] = {}
        for project in self.projects.values():
            for attempt, runner in project.world.runners.items():
                keeper = runner.hand.keeper()
                if keeper is not None:
                    found[keeper.pid] = attempt
        return found

    def task_of(self, attempt: str) -> tuple[str, int] | None:
        """Project and task of an attempt."""
        number = attempt.partition("-")[0].removeprefix("t")
        for path, project in self.projects.items():
            if number.isdigit() and (project.world.attempts / attempt).is_dir():
                return path, int(number)
        return None

    def busy(self) -> bool:
        """Whether an attempt runs."""
        return any(project.loop.live() for project in self.projects.values())

    def due(self) -> float | None:
        """When the next task wants to be woken."""
        times = [project.loop.due() for project in self.projects.values()]
        return min((t for t in times if t is not None), default=None)

    # --- projects -----------------------------------------------------------------------------------------

    def project(self, path: str) -> Project:
        """A registered project by the path of its root; raises `Refused`."""
        resolved = os.path.realpath(path)
        if resolved in self.projects:
            return self.projects[resolved]
        if resolved in self.broken:
            raise Refused(self.broken[resolved][1])
        raise refused("no-project", f"{path} is no project of Promptside yet.", "promptside project add")

    async def _project_for(self, path: str) -> Project:
        try:
            return self.project(path)
        except PromptsideError as error:
            if error.refusal.code != "no-project":
                raise
        await self._add(AddProject(project=path))
        return self.project(path)

    async def _add(self, command: AddProject) -> None:
        root = Path(os.path.realpath(command.project))
        if not root.is_dir():
            raise refused("no-directory", f"{command.project} is no directory.")
        if str(root) not in self.projects:
            await self._once(str(root), lambda: self._register(root, command.name))
        if str(root) in self.broken:
            raise Refused(self.broken[str(root)][1])

    async def _register(self, root: Path, name: str) -> None:
        row = ProjectRow(
            id=secrets.token_hex(6),
            name=name or root.name or str(root),
            path=str(root),
            added=time.time(),
        )
        await self._open(await self.registry.add(row))

    async def _mend(self, path: str) -> None:
        """Try once more to open a project that could not be opened: it may have been locked, or mended since."""
        resolved = os.path.realpath(path) if path else ""
        if resolved in self.broken:
            row, _ = self.broken[resolved]
            await self._once(resolved, lambda: self._reopen(row))

    async def _reopen(self, row: ProjectRow) -> None:
        await self._open(row)

    async def _once(self, path: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Whoever opens the same project meanwhile waits for the first one."""
        if path not in self._opening:
            opening = self._opening[path] = asyncio.create_task(work())
            opening.add_done_callback(lambda _: self._opening.pop(path))
        await asyncio.shield(self._opening[path])

    async def _remove(self, command: RemoveProject) -> None:
        resolved = os.path.realpath(command.project)
        if resolved in self.broken:
            row, _ = self.broken.pop(resolved)
            await self.registry.remove(row.id)
            self._tell_opened()
            return
        project = self.project(command.project)
        if project.loop.live():
            raise refused("running", "An agent is at work in this project.", "Stop it first.")
        await self.registry.remove(project.row.id)
        del self.projects[project.row.path]
        self._tell_opened()
        await project.close()

    async def _rename(self, command: RenameProject) -> None:
        project = self.project(command.project)
        name = " ".join(command.name.split())
        if not name:
            raise refused("no-name", "A project needs a name.")
        await self.registry.rename(project.row.id, name)
        await self._reload(project)

    async def _trust(self, command: Trust, who: Who) -> None:
        project = self.project(command.project)
        now = await asyncio.to_thread(trust.inventory, project.root)
        if not now.items:
            raise refused("nothing", "This project brings nothing of its own that would run.")
        if command.hash != now.hash or not now.whole:
            raise refused(
                "other-bytes",
                "The project changed since you looked at it. Nothing was trusted.",
                "promptside trust --show",
            )
        kept = trust.trusted_now(now, time.strftime("%Y-%m-%d"))
        await self.registry.trust(
            project.row.id, msgspec.json.encode(kept).decode(), at=time.time(), by=who.user
        )
        await self._reload(project)

    async def _remove_rule(self, command: RemoveRule) -> None:
        project = self.project(command.project)
        known = {rule.id: rule for rule in await project.store.rules()}
        if command.rule not in known:
            raise refused("no-rule", f"There is no rule {command.rule}.", "promptside rules")
        fact = Fact(at=time.time(), kind="rule_removed", body=msgspec.json.encode(known[command.rule]))
        removal = Append(
            task=0,
            expected_version=0,
            events=(fact,),
            summary=None,
            body=b"",
            rules_removed=(command.rule,),
        )
        await project.store.append([removal])
        await project.refresh_rules()

    async def _reload(self, project: Project) -> None:
        row = await self.registry.get(project.row.id)
        if row is not None:
            project.row = row


def _key(want: Want) -> tuple[str, int, str, float]:
    return want.project, want.task, want.stage, want.since


async def make_core(service: Service) -> Daemon:
    """Build the daemon's core: what `lifecycle` runs."""
    # What is ours has its rights from us; documents and agents have the person's own umask.
    os.umask(service.umask)
    data = paths.data_dir()
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    registry = await Registry.open(paths.registry_path())
    daemon = Daemon(registry, Follower(asyncio.get_running_loop()), service)
    await daemon.start()
    daemon.tidying = asyncio.create_task(retention.keep_tidy(daemon), name="retention")
    return daemon
