"""Files that a person has not saved: no writing stage starts over them unsaid (ED-11, M14)."""

from __future__ import annotations

from promptside_daemon.engine.events import AnyEvent
from promptside_daemon.engine.given import UnsavedFile
from promptside_daemon.engine.pipeline import Stage
from promptside_daemon.engine.step import step
from promptside_daemon.engine.task import Queued, Task
from promptside_protocol.commands import WORDS, GoBack, StageCommand, StartCommand
from promptside_protocol.errors import refused

NAMED = 3
"""Files that a refusal names; of the others it tells how many there are."""


def mind(task: Task, command: StageCommand, event: AnyEvent, files: tuple[UnsavedFile, ...]) -> None:
    """Refuse an order that would start a stage which may write to these files, unless it says `anyway`."""
    if not isinstance(command, StartCommand) or command.anyway or not files:
        return
    stage = _starting(task, event)
    if stage is None or stage.read_only:
        return
    tag = str(command.__struct_config__.tag)
    more = f" {command.stage}" if isinstance(command, GoBack) else ""
    raise refused(
        "unsaved",
        f"{named(files)} and {stage.name} may write to {'it' if len(files) == 1 else 'them'}. "
        f"Save {'it' if len(files) == 1 else 'them'}, or run anyway and keep your version in the editor.",
        f"promptside {WORDS.get(tag, tag)} {task.id}{more} --anyway",
    )


def named(files: tuple[UnsavedFile, ...]) -> str:
    """The files with their editors, up to the word behind which the sentence goes on."""
    names = [f"{file.path} (in {file.client})" for file in files]
    if len(names) == 1:
        return f"{files[0].path} has unsaved changes in {files[0].client}"
    said, left = names[:NAMED], len(names) - NAMED
    if left > 0:
        said.append(f"{left} more")
    return f"{', '.join(said[:-1])} and {said[-1]} have unsaved changes"


def _starting(task: Task, event: AnyEvent) -> Stage | None:
    """The stage that wants to start after this fact, and did not before it."""
    after, _ = step(task, event)
    before, run = task.run, after.run
    if run is None or not isinstance(run.status, Queued) or run == before:
        return None
    return after.stage
