"""Orders that are given in one breath: take-back, redo, back, skip, retry, pause, resume, stop, say, …

Each sends one command, then shows the task as it is after it.
"""

from __future__ import annotations

from pathlib import Path

from promptside_cli import place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import (
    Abandon,
    Archive,
    GoBack,
    Pause,
    Ready,
    Redo,
    Resume,
    Retry,
    Say,
    Skip,
    StageCommand,
    Stop,
    TakeBack,
)
from promptside_protocol.queries import GetTask
from promptside_protocol.views import TaskView


def ready(arguments: Arguments) -> int:
    """`task ready`"""
    view = place.task(arguments)
    return give(arguments, Ready(project=view.project, task=view.id))


def abandon(arguments: Arguments) -> int:
    """`task abandon`"""
    view = place.task(arguments)
    return give(arguments, Abandon(project=view.project, task=view.id))


def archive(arguments: Arguments) -> int:
    """`task archive`"""
    view = place.task(arguments)
    return give(arguments, Archive(project=view.project, task=view.id))


def take_back(arguments: Arguments) -> int:
    """`take-back`"""
    view = place.task(arguments)
    return give(arguments, TakeBack(project=view.project, task=view.id))


def redo(arguments: Arguments) -> int:
    """`redo`"""
    view = place.task(arguments)
    feedback = arguments.one("--feedback")
    fresh = arguments.given("--fresh")
    return give(
        arguments,
        Redo(
            project=view.project,
            task=view.id,
            feedback=feedback,
            fresh=fresh,
            anyway=arguments.given("--anyway"),
        ),
    )


def back(arguments: Arguments) -> int:
    """`back`"""
    view = place.task(arguments)
    stage, reason = arguments.word("STAGE"), arguments.one("--reason")
    return give(
        arguments,
        GoBack(
            project=view.project, task=view.id, stage=stage, reason=reason, anyway=arguments.given("--anyway")
        ),
    )


def skip(arguments: Arguments) -> int:
    """`skip`"""
    view = place.task(arguments)
    return give(
        arguments,
        Skip(
            project=view.project,
            task=view.id,
            reason=arguments.one("--reason"),
            anyway=arguments.given("--anyway"),
        ),
    )


def retry(arguments: Arguments) -> int:
    """`retry`"""
    view = place.task(arguments)
    return give(arguments, Retry(project=view.project, task=view.id, anyway=arguments.given("--anyway")))


def pause(arguments: Arguments) -> int:
    """`pause`"""
    view = place.task(arguments)
    return give(arguments, Pause(project=view.project, task=view.id))


def resume(arguments: Arguments) -> int:
    """`resume`"""
    view = place.task(arguments)
    return give(arguments, Resume(project=view.project, task=view.id, anyway=arguments.given("--anyway")))


def stop(arguments: Arguments) -> int:
    """`stop`"""
    view = place.task(arguments)
    return give(arguments, Stop(project=view.project, task=view.id))


def say(arguments: Arguments) -> int:
    """`say`"""
    view = place.task(arguments)
    files = tuple(str(Path(name).absolute()) for name in arguments.all("--attach"))
    return give(arguments, Say(project=view.project, task=view.id, text=arguments.word("TEXT"), attach=files))


def give(arguments: Arguments, order: StageCommand) -> int:
    """Give an order and show what became of the task; 0, since a refusal is raised."""
    wire.ask(order)
    after(arguments, wire.ask(GetTask(project=order.project, task=order.task)))
    return 0


def after(arguments: Arguments, view: TaskView, said: str = "") -> None:
    """The task after an order: its view as data, or what the daemon said of it, its stage and what waits, in words."""
    terminal = Terminal.of(arguments)
    if terminal.json:
        terminal.document(view)
        return
    from promptside_protocol.pages.stage import stage_line  # noqa: PLC0415  # data needs no page
    from promptside_protocol.pages.task import call_lines, heading  # noqa: PLC0415  # see above
    from promptside_protocol.pages.waiting import waiting_lines  # noqa: PLC0415  # see above

    look = terminal.look()
    terminal.line(heading(view, look))
    if said:
        terminal.say(f"  {said}")
    current = next((stage for stage in view.stages if stage.id == view.current), None)
    if current is None or view.state in ("archived", "completed", "failed"):
        if not said:
            terminal.say(f"  {view.reason or view.state}")
        return
    terminal.line(stage_line(view, current, look), "  ")
    for drawn in (*waiting_lines(view, look), *call_lines(view)):
        terminal.line(drawn)
    if current.status in ("running", "checking"):
        terminal.say(f"It goes on. promptside watch {view.id} / promptside stop {view.id}")
