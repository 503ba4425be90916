"""A transcript as entries for people, from a byte on; it can be resumed at any byte without gap or repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from promptside_daemon.engine.task import Attempt
from promptside_daemon.world.claude.rendering import Renderer, stderr_entry
from promptside_daemon.world.claude.resuming import resume_point
from promptside_daemon.world.follow import LineReader
from promptside_daemon.world.redact import Redactor
from promptside_daemon.world.secrets import redactor_for
from promptside_daemon.world.stderr import tail
from promptside_protocol.output import OutputEntry

if TYPE_CHECKING:
    from pathlib import Path

    from promptside_daemon.project import Project

STDERR_LINES = 200


class Transcript:
    """Reads one attempt's transcript on; `cursor` is the byte behind the last line that was rendered."""

    def __init__(self, directory: Path, cwd: str, redactor: Redactor, cursor: int) -> None:
        self.cursor = cursor
        self._stderr = directory / "stderr.log"
        self._redactor = redactor
        path = directory / "transcript.ndjson"
        start = resume_point(path, cursor) if cursor > 0 and path.exists() else 0
        self._lines = LineReader(path, start)
        self._renderer = Renderer(cwd=cwd, redactor=redactor)

    @classmethod
    def of(cls, project: Project, attempt: Attempt, cursor: int) -> Transcript:
        """The transcript of an attempt of a project."""
        directory = project.world.attempts / attempt.id
        return cls(directory, str(project.root), redactor_for(directory), cursor)

    def read(self) -> tuple[OutputEntry, ...]:
        """The next entries; empty if nothing more is there now. What lies before the cursor is only rendered."""
        while True:
            offset = self._lines.offset
            portion = self._lines.read()
            if not portion:
                return ()
            entries: list[OutputEntry] = []
            for line in portion:
                offset += len(line) + 1
                rendered = self._renderer.render(line, offset)
                if offset > self.cursor:
                    entries += rendered
            self.cursor = max(self.cursor, offset)
            if entries:
                return tuple(entries)

    def close(self) -> tuple[OutputEntry, ...]:
        """What was held back, and what the agent said on its standard error."""
        entries = self._renderer.close(self.cursor)
        lines = [line for line in tail(self._stderr).splitlines() if line.strip()]
        entries += [stderr_entry(line, self.cursor, self._redactor) for line in lines[-STDERR_LINES:]]
        return tuple(entries)
