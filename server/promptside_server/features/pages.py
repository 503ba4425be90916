"""Pages for clients of ours: lines with roles, with what each opens and offers; said again when they changed (UX 8).

Drawn from the mirror by the one renderer of all pages; a client pulls a page, and is only told that it changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import quote

from promptside_protocol.errors import PromptsideError, refused
from promptside_protocol.notices import ActivityChanged, CaughtUp, Notice
from promptside_protocol.pages.doctor import doctor_page
from promptside_protocol.pages.history import history_page
from promptside_protocol.pages.page import Line, Look, Page, Span, line
from promptside_protocol.pages.pipelines import pipeline_page, pipelines_page
from promptside_protocol.pages.projects import projects_page
from promptside_protocol.pages.rules import rules_page
from promptside_protocol.pages.task import task_page
from promptside_protocol.pages.tasks import tasks_page
from promptside_protocol.pages.words import offer_line
from promptside_protocol.queries import Decisions, DoctorQuery, GetPipeline, Pipelines, Projects, Rules
from promptside_protocol.views import Offer, TaskView
from promptside_server import readonly
from promptside_server.documents import uri_of
from promptside_server.features.commands import refusal, typed
from promptside_server.ours import ClosePage, OpenPage, PageLine, PageNews, PageShown
from promptside_server.pace import Pace
from promptside_server.server import Server
from promptside_server.target import fill

PAUSE_SECONDS = 0.2
START_SECONDS = 3.0
"""How long the list of tasks waits for a daemon that was not reached yet."""
OF_A_TASK = ("task", "history")
OF_A_PROJECT = ("rules",)
PLACE = re.compile(r"^(.*?)(?::(\d+))?$", re.DOTALL)
START = Offer(command="promptside.daemonStart", title="Start it", primary=True)

Key = tuple[str, str, int]
"""Name, project and task of a page that is open."""


def register(server: Server) -> None:
    """Two requests, and the news."""
    pages = Pages(server)

    async def open_page(params: Any) -> PageShown:
        try:
            return await pages.open(params if isinstance(params, dict) else {})
        except PromptsideError as error:
            raise refusal(error) from error

    async def close_page(params: Any) -> None:
        wish: ClosePage = typed("closePage", params if isinstance(params, dict) else {}, ClosePage)
        pages.close((wish.name, wish.project, wish.task))

    server.feature("promptside/page")(open_page)
    server.feature("promptside/closePage")(close_page)
    server.on_task.append(pages.task)
    server.on_notice.append(pages.notice)
    server.on_gone.append(pages.gone)
    server.on_link.append(pages.link)


class Pages:
    """The pages that the client shows, and which of them changed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: set[Key] = set()
        self._changed: dict[Key, None] = {}
        self._pace = Pace(server, self._tell, every=PAUSE_SECONDS)

    async def open(self, given: dict[str, Any]) -> PageShown:
        """The page as it is now; from then on its changes are told."""
        wish = await self._wish({k: v for k, v in given.items() if v or k not in ("project", "task")})
        key = (wish.name, wish.project, wish.task)
        self._changed.pop(key, None)  # what was to be told is told with this
        self._open.add(key)
        try:
            return await self._drawn(wish)
        except BaseException:
            self._open.discard(key)
            raise

    def close(self, key: Key) -> None:
        """No more word of it."""
        self._open.discard(key)
        self._changed.pop(key, None)

    def task(self, task: TaskView) -> None:
        self._wake(lambda key: key[1] in ("", task.project) and key[2] in (0, task.id))

    def notice(self, notice: Notice) -> None:
        if isinstance(notice, ActivityChanged):
            at = ("task", notice.activity.project, notice.activity.task)
            self._wake(lambda key: key == at)
        elif isinstance(notice, CaughtUp):
            self._wake(lambda key: key[0] in OF_A_PROJECT and key[1] == notice.project)

    def gone(self, project: str) -> None:
        self._wake(lambda key: key[1] in ("", project))

    def link(self, up: bool, _sentence: str) -> None:
        # Only what the mirror holds is drawn anew while the daemon is away: asking for the rest would start it again.
        self._wake(lambda key: up or key[0] in ("tasks", "task"))

    def _wake(self, concerns: Any) -> None:
        found = [key for key in self._open if concerns(key)]
        if found:
            self._changed |= dict.fromkeys(found)
            self._pace.wake()

    def _tell(self) -> None:
        for key in tuple(self._changed):
            name, project, task = key
            if self._server.protocol.tell(
                "promptside/pageChanged", PageNews(name=name, project=project, task=task)
            ):
                del self._changed[key]
        if self._changed:
            self._pace.wake()

    async def _wish(self, given: dict[str, Any]) -> OpenPage:
        wish: OpenPage = typed("page", given, OpenPage)
        if wish.name in OF_A_TASK:
            wish = typed("page", await fill(self._server, OpenPage, given), OpenPage)
        elif wish.name in OF_A_PROJECT:
            wish = typed(
                "page", {"task": 0, **await fill(self._server, OpenPage, {**given, "task": 0})}, OpenPage
            )
        return wish

    async def _drawn(self, wish: OpenPage) -> PageShown:
        server, link = self._server, self._server.link
        look = _look(wish)
        paths: Mapping[str, str] = {}
        match wish.name:
            case "tasks":
                await self._acquainted()
                page = self._tasks(wish.project, look)
            case "task":
                view = await self._view(wish)
                page = task_page(view, look, server.mirror.activity(view))
            case "history":
                view = await self._view(wish)
                decisions = await link.call(Decisions(project=view.project, task=view.id))
                page = history_page(view, decisions, look)
            case "rules":
                rules = await link.call(Rules(project=wish.project))
                page = rules_page(rules, look)
            case "doctor":
                page = doctor_page(await link.call(DoctorQuery(project=wish.project)), look)
            case "pipelines":
                listed = await link.call(Pipelines(project=wish.project))
                page, paths = pipelines_page(listed), {one.name: one.path for one in listed.pipelines}
            case "pipeline":
                found = await link.call(GetPipeline(name=wish.pipeline, project=wish.project))
                page, paths = pipeline_page(found), {found.name: found.path}
            case "projects":
                projects = await link.call(Projects())
                page, paths = projects_page(projects, look), {one.id: one.path for one in projects}
            case _:
                assert_never(wish.name)
        stale = "" if link.up else link.why
        lines = [*(_stale(stale, look) if stale else ()), *page.lines]
        places = Places(server, wish, paths)
        return PageShown(
            name=wish.name,
            project=wish.project,
            task=wish.task,
            title=page.title,
            lines=tuple(places.completed(one) for one in lines),
            stale=stale,
        )

    async def _acquainted(self) -> None:
        """At the very start there is no telling yet whether there are tasks; it is waited for, but not for long."""
        if not self._server.mirror.projects():
            with contextlib.suppress(PromptsideError, TimeoutError):
                async with asyncio.timeout(START_SECONDS):
                    await self._server.caught_up()

    def _tasks(self, project: str, look: Look) -> Page:
        mirror = self._server.mirror
        waiting = [task for task in self._server.waiting() if project in ("", task.project)]
        rest = [task for task in mirror.tasks(project) if task.waiting_for is None]
        paths = {task.project for task in (*waiting, *rest)}
        names = {path: Path(path).name for path in paths} if len(paths) > 1 else None
        return tasks_page([*waiting, *rest], look, projects=names)

    async def _view(self, wish: OpenPage) -> TaskView:
        found = self._server.mirror.task(wish.project, wish.task)
        if found is None and self._server.link.up:
            await self._server.caught_up()
            found = self._server.mirror.task(wish.project, wish.task)
        if found is None:
            raise refused("no-task", f"There is no task {wish.task} in {wish.project}.")
        return found


class Places:
    """What the lines of one page open, by what they are about."""

    def __init__(self, server: Server, wish: OpenPage, paths: Mapping[str, str]) -> None:
        self._server = server
        self._wish = wish
        self._paths = paths

    def completed(self, drawn: Line) -> PageLine:
        """The line with what it opens."""
        kind, _, name = drawn.ref.partition("/")
        project, number = drawn.project or self._wish.project, self._wish.task
        uri, at, page = "", 0, ""
        if kind == "task":
            number, page = int(name), "task"
        task = self._server.mirror.task(project, number)
        match kind:
            case "task" if task is not None:
                uri = self._file(project, document_of(task))
            case "stage" if task is not None:
                artifact = next((stage.artifact for stage in task.stages if stage.id == name), None)
                uri = self._file(project, artifact) if artifact else ""
            case "attempt" if task is not None:
                uri = self._attempt(task, name)
            case "decision" | "item" if task is not None and task.waiting_for is not None:
                document = task.waiting_for.document
                uri = self._file(project, document) if document else ""
            case "path":
                found = PLACE.match(name)
                path, digits = (found[1], found[2]) if found else (name, None)
                uri, at = self._file(project, path), int(digits or 0)
            case "pipeline" if name in self._paths:
                page = "pipeline"
                uri = self._file("/", self._paths[name])
            case "project" if name in self._paths:
                project, page = self._paths[name], "tasks"
            case _:
                pass
        return PageLine(
            spans=drawn.spans,
            fold=drawn.fold,
            ref=drawn.ref,
            offers=drawn.offers,
            project=project,
            task=number,
            uri=uri,
            line=at,
            page=page,
        )

    def _file(self, project: str, path: str) -> str:
        return self._server.seen_as(uri_of(project, path))

    def _attempt(self, task: TaskView, name: str) -> str:
        """The document of an attempt that left one, in its file if it is the newest; else its transcript."""
        stage_id, _, n = name.rpartition("/")
        stage = next((stage for stage in task.stages if stage.id == stage_id), None)
        attempt = (
            next((one for one in stage.attempts if str(one.n) == n), None) if stage is not None else None
        )
        if stage is None or attempt is None:
            return ""
        if attempt.status != "done":
            at = f"transcript/{task.id}/{stage.id}-{n}.log"
        elif stage.artifact and attempt is stage.attempts[-1]:
            return self._file(task.project, stage.artifact)
        else:
            at = f"{task.id}/{stage.id}/{n}"
        return f"{readonly.SCHEME}://{at}?project={quote(task.project)}"


def document_of(task: TaskView) -> str:
    """What one opens to go on with a task: the document that waits, else its own."""
    document = task.waiting_for.document if task.waiting_for is not None else None
    return document or f"{task.directory}/task.md"


def _stale(why: str, look: Look) -> list[Line]:
    return [line(Span(why, "failed"), ref="daemon"), offer_line(START, look), line()]


def _look(wish: OpenPage) -> Look:
    zone = None if wish.zone_minutes is None else dt.timezone(dt.timedelta(minutes=wish.zone_minutes))
    return Look(
        now=time.time(), width=max(wish.width, 20), unicode=wish.unicode, zone=zone, me=_user(), calls=False
    )


def _user() -> str:
    """The name that the daemon knows this person by: the socket tells it our number."""
    import pwd  # noqa: PLC0415  # nothing else at the start needs it

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
