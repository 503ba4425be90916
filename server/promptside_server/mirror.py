"""What the server knows: the views of all tasks, as the daemon told them last. Nothing in it is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from promptside_protocol.notices import ActivityChanged, CaughtUp, Notice, TaskChanged
from promptside_protocol.views import Activity, TaskView


class Mirror:
    """Tasks by project and number, and what their agents do."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, int], TaskView] = {}
        self._activities: dict[tuple[str, int], Activity] = {}
        self.cursors: dict[str, int] = {}
        """Up to where each project is known."""
        self.caught_up: set[str] = set()
        """Projects of which everything is known."""

    def take(self, notice: Notice) -> TaskView | None:
        """Take a notice over; the task that it changed, if it did."""
        match notice:
            case TaskChanged(task=task):
                key = (task.project, task.id)
                self.cursors[notice.project] = notice.seq
                if key in self._tasks and self._tasks[key].seq >= task.seq:
                    return None
                self._tasks[key] = task
                if not any(a.status == "running" for s in task.stages for a in s.attempts):
                    self._activities.pop(key, None)
                return task
            case CaughtUp(project=project):
                self.cursors[project] = notice.seq
                self.caught_up.add(project)
            case ActivityChanged(activity=activity):
                self._activities[activity.project, activity.task] = activity
            case _:
                pass  # flows of their own, and events, are not mirrored; a project that goes is the server's
        return None

    def task(self, project: str, number: int) -> TaskView | None:
        """One task."""
        return self._tasks.get((project, number))

    def numbered(self, number: int) -> list[TaskView]:
        """The tasks of this number, of all projects."""
        return [task for (_, own), task in self._tasks.items() if own == number]

    def tasks(self, project: str = "") -> list[TaskView]:
        """All tasks of a project, or of all, the last changed first."""
        found = [t for (path, _), t in self._tasks.items() if project in ("", path)]
        return sorted(found, key=lambda t: t.seq, reverse=True)

    def forget(self, project: str) -> None:
        """Drop a project that was removed; when it is added again, its tasks come anew."""
        self._tasks = {key: task for key, task in self._tasks.items() if key[0] != project}
        self._activities = {key: found for key, found in self._activities.items() if key[0] != project}
        self.cursors.pop(project, None)
        self.caught_up.discard(project)

    def activity(self, task: TaskView) -> Activity | None:
        """What its agent does now."""
        return self._activities.get((task.project, task.id))

    def waiting(self, projects: Iterable[str] = ()) -> list[TaskView]:
        """Tasks that wait for a person, longest first."""
        chosen = set(projects)
        found = [
            t
            for t in self._tasks.values()
            if t.waiting_for is not None and (not chosen or t.project in chosen)
        ]
        return sorted(found, key=lambda t: t.waiting_for.since if t.waiting_for else 0.0)

    def owner(self, file: Path) -> TaskView | None:
        """The task that a file below `.promptside/tasks/` belongs to."""
        for task in self._tasks.values():
            if file.is_relative_to(Path(task.project) / task.directory):
                return task
        return None

    def projects(self) -> set[str]:
        """Every project that is known."""
        return {*self.caught_up, *(project for project, _ in self._tasks)}

    def project_of(self, place: Path) -> str | None:
        """The innermost project that holds a place."""
        around = [project for project in self.projects() if place.is_relative_to(project)]
        return max(around, key=lambda project: len(Path(project).parts), default=None)
