"""A task as it goes on, drawn for people or written as lines of JSON (UX 6)."""

from __future__ import annotations

import time
from typing import Any

from promptside_cli.events import Happened, as_line
from promptside_cli.stream import Stream
from promptside_cli.terminal import Terminal
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.page import Line, Span, line
from promptside_protocol.pages.plain import harmless, one_line, pad
from promptside_protocol.pages.stage import name_width, stage_line
from promptside_protocol.pages.task import call_lines, heading
from promptside_protocol.pages.waiting import need, waiting_lines
from promptside_protocol.pages.words import duration, mark, money, several, tokens
from promptside_protocol.views import StageView, TaskView

_SETTLED = ("approved", "skipped", "failed")


class Drawing:
    """Where a run writes; on anything but a terminal each line is stamped and whole."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.asking = False
        """A question stands on the screen; what is printed then makes it False, and the question is put again."""
        self._stamped = not terminal.tty
        self._stream = Stream(terminal, indent="      ", stamped=self._stamped)

    def begin(self, view: TaskView) -> None:
        """The heading, and what was settled before."""
        if self.terminal.json:
            return
        self._line(heading(view, self.terminal.look()))
        for stage in view.stages:
            if stage.status in _SETTLED:
                self._stage(view, stage)

    def happened(self, happened: Happened, view: TaskView) -> None:
        """One thing that is different now."""
        self._aside()
        self._stream.close()
        if self.terminal.json:
            self.terminal.document(as_line(happened, view))
            return
        stage = happened.stage
        if happened.event == "attempt_started" and stage is not None:
            name = pad(one_line(stage.name), name_width(view))
            again = f"attempt {happened.attempt}, " if happened.attempt > 1 else ""
            sign = mark("running", self.terminal.look())
            self._line(line("  ", sign, " ", Span(name, "title"), f"  {again}running"))
        elif happened.event == "attempt_ended" and stage is not None:
            attempt = next(a for a in stage.attempts if a.n == happened.attempt)
            if attempt.error:
                self._line(line("      ", Span(one_line(attempt.error), "failed")))
            for words in (attempt.hint, attempt.note):
                if words:
                    self._line(line("      ", Span(one_line(words), "note")))
        elif stage is not None and (happened.event, stage.status) != ("person_waiting", "failed"):
            self._stage(view, stage)
            if happened.event.endswith("_waiting"):
                for drawn in waiting_lines(view, self.terminal.look()):
                    self._line(drawn)

    def output(
        self, view: TaskView, stage: str, attempt: int, cursor: int, entries: tuple[OutputEntry, ...]
    ) -> None:
        """What an attempt wrote."""
        if not entries:
            return
        if self.terminal.json:
            self.terminal.document(
                {
                    "event": "output",
                    "seq": view.seq,
                    "project": view.project,
                    "task": view.id,
                    "stage": stage,
                    "attempt": attempt,
                    "cursor": cursor,
                    "entries": entries,
                }
            )
            return
        self._aside()
        self._stream.add(entries)

    def close(self) -> None:
        """What comes next is not output."""
        self._stream.close()

    def says(self, sentence: str) -> None:
        """A sentence for the person, which is no part of the task."""
        self._aside()
        self._stream.close()
        if self._stamped:
            sentence = f"{time.strftime('%H:%M:%S')}  {sentence}"
        self.terminal.say(harmless(sentence))

    def waits(self, view: TaskView) -> None:
        """What is waited for and which call answers it; on stderr, where scripts look for it."""
        if view.waiting_for is None:
            return
        words = [f"Waiting for you: {need(view.waiting_for)}."]
        words += ["".join(span.text for span in drawn.spans) for drawn in call_lines(view)]
        print("\n".join(words), file=self.terminal.err, flush=True)

    def end(self, view: TaskView, code: int, denials: list[dict[str, Any]]) -> None:
        """The last words: what was denied without asking, and the sum of a task that is done."""
        self._stream.close()
        if self.terminal.json:
            ending = {"event": "end", "exit": code, "seq": view.seq, "denials": denials, "task": view}
            self.terminal.document(ending)
            return
        for denial in denials:
            what = one_line(f"{denial['tool']} {denial['what']}")
            self._line(line("  ", Span(f"denied: {what} ({one_line(denial['reason'])})", "note")))
        if view.state == "completed":
            sums = view.metrics
            self._line(
                line(
                    Span("Done. ", "done"),
                    ", ".join(
                        (
                            several(len(view.stages), "stage"),
                            tokens(sums.input_tokens + sums.output_tokens),
                            money(sums.cost_usd, recorded=sums.recorded),
                            duration(sums.duration_s),
                        )
                    ),
                )
            )

    def _aside(self) -> None:
        if self.asking:
            self.asking = False
            self.terminal.say()

    def _stage(self, view: TaskView, stage: StageView) -> None:
        drawn = stage_line(view, stage, self.terminal.look())
        self._line(Line(spans=(Span("  "), *drawn.spans)))

    def _line(self, drawn: Line) -> None:
        stamp = self.terminal.paint(time.strftime("%H:%M:%S  "), "muted") if self._stamped else ""
        self.terminal.line(drawn, stamp)
