"""What clients of ours paint from: each task whole when it changed, what its agent does, and the daemon's state."""

from __future__ import annotations

from promptside_protocol.notices import ActivityChanged, DaemonSays, Notice
from promptside_protocol.views import Activity, TaskView
from promptside_server.ours import ActivityNews, DaemonNews, GoneNews, TaskNews
from promptside_server.pace import Pace
from promptside_server.server import Server

Key = tuple[str, int]


def register(server: Server) -> None:
    """Tell the news, to those who announced that they understand them."""
    news = News(server)
    server.on_task.append(news.task)
    server.on_notice.append(news.notice)
    server.on_link.append(news.link)
    server.on_gone.append(news.gone)


class News:
    """What has not been told yet: of each task only the newest."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._pace = Pace(server, self._tell)
        self._daemon: DaemonNews | None = None
        self._gone: dict[str, None] = {}
        self._tasks: dict[Key, TaskView] = {}
        self._activities: dict[Key, Activity] = {}

    def task(self, task: TaskView) -> None:
        if self._server.editor.ours:
            self._tasks[task.project, task.id] = task
            self._pace.wake()

    def gone(self, project: str) -> None:
        if self._server.editor.ours:
            self._tasks = {key: task for key, task in self._tasks.items() if key[0] != project}
            self._activities = {key: now for key, now in self._activities.items() if key[0] != project}
            self._gone[project] = None
            self._pace.wake()

    def notice(self, notice: Notice) -> None:
        if not self._server.editor.ours:
            return
        if isinstance(notice, ActivityChanged):
            self._activities[notice.activity.project, notice.activity.task] = notice.activity
            self._pace.wake()
        elif isinstance(notice, DaemonSays):
            self.link(self._server.link.up, notice.message)

    def link(self, up: bool, sentence: str) -> None:
        if self._server.editor.ours:
            self._daemon = DaemonNews(up=up, sentence=sentence)
            self._pace.wake()

    def _tell(self) -> None:
        tell = self._server.protocol.tell
        if self._daemon is not None and tell("promptside/daemon", self._daemon):
            self._daemon = None
        for project in tuple(self._gone):  # before the tasks: it may be there again
            if not tell("promptside/gone", GoneNews(project=project)):
                break
            del self._gone[project]
        for key, task in tuple(self._tasks.items()):
            if tell("promptside/task", TaskNews(project=task.project, seq=task.seq, task=task)):
                del self._tasks[key]
        for activity in self._activities.values():
            tell("promptside/activity", ActivityNews(activity=activity))
        self._activities.clear()
        if self._daemon is not None or self._gone or self._tasks:
            self._pace.wake()
