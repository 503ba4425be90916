"""`watch`: the tasks, or one of them, live; drawn again when something happened and at no other time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from typing import Self

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.drawing import Drawing
from promptside_cli.events import Happened, as_line, between
from promptside_cli.exits import DETACHED, DONE, FAILED
from promptside_cli.following import Following
from promptside_cli.stream import Stream, wrap
from promptside_cli.terminal import WIDEST, Terminal, visible
from promptside_protocol.client import Daemon
from promptside_protocol.notices import EventHappened, TaskChanged
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.page import Line, Span, line
from promptside_protocol.pages.plain import cells, cut, harmless, one_line
from promptside_protocol.pages.stage import stage_line
from promptside_protocol.pages.task import call_lines, heading
from promptside_protocol.pages.tasks import tasks_page
from promptside_protocol.pages.waiting import need, waiting_lines
from promptside_protocol.queries import Watch
from promptside_protocol.views import TaskView

OVER = ("completed", "failed", "archived")


def watch(arguments: Arguments) -> int:
    """`watch`: of one task until it is over, of all until the person leaves."""
    terminal = Terminal.of(arguments)
    one = place.task(arguments) if arguments.word("TASK") else None
    project = place.known_project(arguments) or "" if one is None else one.project
    live = terminal.live and not terminal.json and sys.stdin.isatty() and not arguments.given("--events")
    try:
        if live:
            return asyncio.run(_screen(terminal, project, one))
        code, last = asyncio.run(_lines(terminal, project, one, events=arguments.given("--events")))
    except KeyboardInterrupt:
        code, last = DETACHED, one
    if terminal.json:
        terminal.document({"event": "end", "exit": code, "seq": last.seq if last else 0, "task": last})
    return code


# --- line by line ------------------------------------------------------------------------------------------


async def _lines(
    terminal: Terminal, project: str, one: TaskView | None, *, events: bool
) -> tuple[int, TaskView | None]:
    tasks: dict[tuple[str, int], TaskView] = {}
    async with wire.session() as daemon:
        await daemon.call(Watch(project=project, events=events))
        async for notice in wire.notices(daemon):
            match notice:
                case EventHappened() if events and (one is None or notice.task == one.id):
                    _event(terminal, notice)
                case TaskChanged(task=view) if one is None or view.id == one.id:
                    before = tasks.get((view.project, view.id))
                    tasks[view.project, view.id] = view
                    if not events and (before is not None or view.state not in OVER or one is not None):
                        for happened in between(before, view):
                            _happened(terminal, happened, view)
                    if one is not None and view.state in OVER:
                        return (DONE if view.state == "completed" else FAILED), view
                case _:
                    pass  # nothing that happened to a task
    return DONE, None


def _happened(terminal: Terminal, happened: Happened, view: TaskView) -> None:
    if terminal.json:
        terminal.document(as_line(happened, view))
        return
    name = f"{one_line(happened.stage.name)}  " if happened.stage is not None else ""
    words = happened.event.replace("_", " ")
    if happened.event.endswith("_waiting") and view.waiting_for is not None:
        words = f"waits for you: {need(view.waiting_for)}"
    terminal.say(f"{time.strftime('%H:%M:%S')}  #{view.id} {one_line(view.title)}  {name}{words}")


def _event(terminal: Terminal, notice: EventHappened) -> None:
    if terminal.json:
        terminal.document(
            {
                "event": notice.kind,
                "seq": notice.seq,
                "project": notice.project,
                "task": notice.task,
                "at": notice.at,
                "body": notice.body,
            }
        )
        return
    at = time.strftime("%H:%M:%S", time.localtime(notice.at))
    terminal.say(f"{at}  #{notice.task}  {one_line(notice.kind.replace('_', ' '))}")


# --- on the screen -----------------------------------------------------------------------------------------


async def _screen(terminal: Terminal, project: str, one: TaskView | None) -> int:
    loop = asyncio.get_running_loop()
    async with wire.session() as daemon:
        with _Screen(terminal) as screen:
            shown = _All(terminal, screen, project) if one is None else _One(terminal, screen, daemon, one)
            left = asyncio.Event()
            loop.add_reader(sys.stdin.fileno(), screen.key, left)
            loop.add_signal_handler(signal.SIGWINCH, shown.draw)
            try:
                leaving = asyncio.ensure_future(left.wait())
                showing = asyncio.ensure_future(shown.show(daemon))
                await asyncio.wait((leaving, showing), return_when=asyncio.FIRST_COMPLETED)
                for task in (leaving, showing):
                    if not task.done():
                        task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await showing
            finally:
                loop.remove_reader(sys.stdin.fileno())
                loop.remove_signal_handler(signal.SIGWINCH)
    return DONE


class _Screen:
    """The alternate screen, with keys as they are pressed; left as it was found, whatever happens."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def __enter__(self) -> Self:
        import termios  # noqa: PLC0415  # only where there is a terminal
        import tty  # noqa: PLC0415  # see above

        self._before = termios.tcgetattr(sys.stdin.fileno())
        tty.setcbreak(sys.stdin.fileno())
        self._write("\x1b[?1049h\x1b[?25l")
        return self

    def __exit__(self, *_: object) -> None:
        import termios  # noqa: PLC0415  # see above

        self._write("\x1b[?25h\x1b[?1049l")
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def key(self, left: asyncio.Event) -> None:
        """`q` leaves; so does the end of the input."""
        pressed = os.read(sys.stdin.fileno(), 1024)
        if not pressed or b"q" in pressed:
            left.set()

    def draw(self, lines: list[Line]) -> None:
        """The whole screen anew; what doesn't fit below is left out."""
        columns = self._terminal.columns
        rows = [self._row(drawn, columns) for drawn in lines[: self._terminal.rows - 1]]
        self._write("\x1b[H" + "".join(f"{row}\x1b[K\r\n" for row in rows) + "\x1b[J")

    def _row(self, drawn: Line, columns: int) -> str:
        room = columns
        parts: list[str] = []
        for span in drawn.spans:
            text = cut(span.text, room, unicode=self._terminal.unicode)
            room -= cells(text)
            parts.append(self._terminal.paint(text, span.role))
            if room <= 0:
                break
        return "".join(parts)

    def _write(self, text: str) -> None:
        self._terminal.out.write(text)
        self._terminal.out.flush()


class _All:
    """All tasks of a project, or of all projects."""

    def __init__(self, terminal: Terminal, screen: _Screen, project: str) -> None:
        self._terminal = terminal
        self._screen = screen
        self._project = project
        self._tasks: dict[tuple[str, int], TaskView] = {}

    async def show(self, daemon: Daemon) -> None:
        await daemon.call(Watch(project=self._project))
        self.draw()
        async for notice in wire.notices(daemon):
            if isinstance(notice, TaskChanged):
                self._tasks[notice.project, notice.task.id] = notice.task
                self.draw()

    def draw(self) -> None:
        newest = sorted(self._tasks.values(), key=lambda task: -task.seq)
        self._screen.draw([*visible(tasks_page(newest, self._terminal.look())), line(), _FOOT])


class _One:
    """One task: its stages above, what its agent writes below."""

    def __init__(self, terminal: Terminal, screen: _Screen, daemon: Daemon, view: TaskView) -> None:
        self._terminal = terminal
        self._screen = screen
        self._tail = _Tail(terminal)
        self._following = Following(daemon, _Silent(terminal, self._tail), view)

    async def show(self, daemon: Daemon) -> None:
        await self._following.begin()
        self.draw()
        async for notice in wire.notices(daemon):
            await self._following.take(notice)
            self.draw()

    def draw(self) -> None:
        view, look = self._following.view, self._terminal.look()
        above = [heading(view, look)]
        above += [Line(spans=(Span("  "), *stage_line(view, stage, look).spans)) for stage in view.stages]
        if view.waiting_for is not None:
            above += [line(), *waiting_lines(view, look), *call_lines(view)]
        room = max(self._terminal.rows - len(above) - 4, 3)
        self._screen.draw([*above, line(), *self._tail.last(room), line(), _FOOT])


class _Tail(Stream):
    """The last lines of a stream, kept instead of printed."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(terminal, live=False)
        self._kept: deque[tuple[str, str]] = deque(maxlen=500)

    def last(self, rows: int) -> list[Line]:
        """So many rows, the unfinished block's among them."""
        width = min(self._terminal.columns, WIDEST)
        unfinished = self.unfinished()
        drawn = [
            Line(spans=(Span(row, role),))  # type: ignore[arg-type]  # roles of a stream are roles of a page
            for text, role in (*self._kept, *([unfinished] if unfinished is not None else []))
            for part in text.split("\n")
            for row in wrap(part.expandtabs(4), width)
        ]
        return drawn[-rows:]

    def _print(self, text: str, role: str) -> int:
        self._kept.append((text, role))
        return 0


class _Silent(Drawing):
    """Nothing is printed: what is written is kept, and the views are drawn as a whole."""

    def __init__(self, terminal: Terminal, tail: _Tail) -> None:
        super().__init__(terminal)
        self._tail = tail

    def begin(self, view: TaskView) -> None:
        pass  # the screen shows it

    def happened(self, happened: Happened, view: TaskView) -> None:  # noqa: ARG002  # as the other drawing
        self._tail.close()

    def output(
        self,
        view: TaskView,  # noqa: ARG002  # as the other drawing
        stage: str,  # noqa: ARG002  # see above
        attempt: int,  # noqa: ARG002  # see above
        cursor: int,  # noqa: ARG002  # see above
        entries: tuple[OutputEntry, ...],
    ) -> None:
        self._tail.add(entries)

    def says(self, sentence: str) -> None:
        self._tail.add((OutputEntry(cursor=0, role="note", text=harmless(sentence)),))


_FOOT = line(Span("q leaves", "muted"))
