"""`log`: what an attempt wrote and did; as people read it, or the transcript byte for byte (GA-10)."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, Stopped, UsageError
from promptside_cli.stream import Stream
from promptside_cli.terminal import Terminal
from promptside_protocol.output import OutputEntry
from promptside_protocol.queries import Output
from promptside_protocol.views import AttemptView, StageView, TaskView


def log(arguments: Arguments) -> int:
    """`log`: of the current stage's last attempt, if nothing else is said."""
    pattern = _pattern(arguments)
    view = place.task(arguments)
    if arguments.given("--export"):
        return _export(arguments, view)
    stage, attempt = chosen(view, arguments.one("--stage"), arguments.number("--attempt"))
    if arguments.given("--follow"):
        from promptside_cli.follow import follow_log  # noqa: PLC0415  # asyncio costs 40 ms

        return follow_log(arguments, view, stage, attempt, pattern)
    if arguments.given("--raw"):
        with _transcript(attempt).open("rb") as source:
            shutil.copyfileobj(source, sys.stdout.buffer)
        return DONE
    terminal = Terminal.of(arguments)
    if terminal.json:
        entries = [entry for piece in pieces(view, stage.id, attempt.n) for entry in piece]
        terminal.document({"stage": stage.id, "attempt": attempt.n, "entries": entries})
        return DONE
    stream = Stream(terminal, live=False, only=pattern)
    for piece in pieces(view, stage.id, attempt.n):
        stream.add(piece)
    stream.close()
    return DONE


def chosen(view: TaskView, stage_id: str, number: int) -> tuple[StageView, AttemptView]:
    """The stage and attempt that are meant; without words the current stage's, or the last that ran."""
    ran = [stage for stage in view.stages if stage.attempts]
    if stage_id:
        ran = [stage for stage in view.stages if stage.id == stage_id]
        if not ran:
            names = ", ".join(stage.id for stage in view.stages)
            raise Stopped("no-stage", f"#{view.id} has no stage {stage_id}.", f"There is: {names}.")
    current = [stage for stage in ran if stage.id == view.current]
    stage = (current or sorted(ran, key=_began))[-1] if ran else None
    if stage is None or not stage.attempts:
        raise Stopped(
            "no-attempt", "There is no output yet: no attempt was made.", f"promptside run {view.id}"
        )
    if not number:
        return stage, stage.attempts[-1]
    for attempt in stage.attempts:
        if attempt.n == number:
            return stage, attempt
    raise Stopped("no-attempt", f"{stage.name} has no attempt {number}.", f"It has {len(stage.attempts)}.")


def pieces(view: TaskView, stage: str, attempt: int) -> Iterator[tuple[OutputEntry, ...]]:
    """Everything an attempt has written so far, piece by piece."""
    cursor = 0
    while True:
        page = wire.ask(
            Output(project=view.project, task=view.id, stage=stage, attempt=attempt, cursor=cursor)
        )
        yield page.entries
        if not page.entries:
            return
        cursor = page.cursor


def _export(arguments: Arguments, view: TaskView) -> int:
    wanted, number = arguments.one("--stage"), arguments.number("--attempt")
    if wanted:
        chosen(view, wanted, number)
    directory = Path(arguments.one("--export"))
    directory.mkdir(parents=True, exist_ok=True)
    made: list[str] = []
    for stage in view.stages:
        for attempt in stage.attempts:
            if (not wanted or wanted == stage.id) and number in (0, attempt.n):
                path = directory / f"{stage.id}_{attempt.n}.log"
                _write(path, view, stage, attempt)
                made.append(str(path))
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(made)
    else:
        for name in made:
            terminal.say(name)
    return DONE


def _write(path: Path, view: TaskView, stage: StageView, attempt: AttemptView) -> None:
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.write(f"#{view.id} {view.title}\n{stage.name}, attempt {attempt.n}, {attempt.status}\n")
        file.write(f"session {attempt.session}, model {attempt.model}\n\n== Prompt ==\n\n")
        try:
            file.write(Path(attempt.prompt).read_text(encoding="utf-8", errors="replace").rstrip() + "\n")
        except OSError as error:
            file.write(f"(can't be read: {error.strerror})\n")
        file.write("\n== Output ==\n\n")
        stream = Stream(Terminal(json=False, color="never", stdout=file, stderr=sys.stderr))
        for piece in pieces(view, stage.id, attempt.n):
            stream.add(piece)
        stream.close()
        file.write("\n== Result ==\n\n")
        file.write(f"{attempt.error or attempt.status}\n{attempt.hint}".rstrip() + "\n")


def _transcript(attempt: AttemptView) -> Path:
    path = Path(attempt.transcript)
    if not path.is_file():
        raise Stopped(
            "no-transcript", f"The transcript {path} is gone.", "Retention removes those of old tasks."
        )
    return path


def _pattern(arguments: Arguments) -> re.Pattern[str] | None:
    word = arguments.one("--grep")
    if not arguments.given("--grep"):
        return None
    try:
        return re.compile(word)
    except re.error as error:
        raise UsageError(f"--grep takes a regular expression: {error}.", arguments.verb.usage) from error


def _began(stage: StageView) -> float:
    return stage.attempts[-1].started or 0.0 if stage.attempts else 0.0
