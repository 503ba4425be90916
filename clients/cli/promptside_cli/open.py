"""`open`, `next`: the document that waits, in the person's editor; what they wrote becomes the draft."""

from __future__ import annotations

from promptside_cli import editor, place, wire
from promptside_cli.arguments import Arguments
from promptside_cli.exits import DONE, FAILED, WAITS
from promptside_cli.terminal import Terminal
from promptside_protocol.commands import EditDraft
from promptside_protocol.errors import PromptsideError
from promptside_protocol.pages.plain import harmless, one_line
from promptside_protocol.queries import Form, GetForm, Tasks
from promptside_protocol.views import TaskView


def open_document(arguments: Arguments) -> int:
    """`open`"""
    view = place.task(arguments)
    return edit(Terminal.of(arguments), view.project, view.id)


def next_waiting(arguments: Arguments) -> int:
    """`next`: the newest of what waits, over all projects; what has no document is asked in place."""
    waiting = [view for view in wire.ask(Tasks()) if view.waiting_for is not None]
    terminal = Terminal.of(arguments)
    if not waiting:
        if terminal.json:
            terminal.document(None)
        else:
            terminal.say("Nothing waits for you.")
        return DONE
    view = max(waiting, key=lambda one: one.waiting_for.since if one.waiting_for is not None else 0.0)
    if terminal.json:
        terminal.document(view)
        return DONE
    if _has_document(view):
        return edit(terminal, view.project, view.id)
    if terminal.asks:
        from promptside_cli.run import follow  # noqa: PLC0415  # asyncio costs 40 ms

        return follow(arguments, terminal, view)
    from promptside_protocol.pages.task import call_lines, heading  # noqa: PLC0415  # as data needs no page
    from promptside_protocol.pages.waiting import waiting_lines  # noqa: PLC0415  # see above

    for drawn in (heading(view, terminal.look()), *waiting_lines(view, terminal.look()), *call_lines(view)):
        terminal.line(drawn)
    return WAITS


def edit(terminal: Terminal, project: str, task: int) -> int:
    """Edit the form that waits until it can be read or the person leaves; 1 when it can't be read."""
    form = wire.ask(GetForm(project=project, task=task))
    copy = editor.copy_of(form.text)
    keep = False
    try:
        while True:
            written = copy.edited()
            if written is None:
                terminal.say("Nothing was changed.")
                if terminal.json:
                    terminal.document(form)
                return DONE
            try:
                wire.ask(
                    EditDraft(
                        project=project, task=task, document=form.document, version=form.version, text=written
                    )
                )
            except PromptsideError as error:
                refusal = error.refusal
                keep = True
                if not terminal.asks or not _again(
                    terminal, [refusal.message, refusal.hint, refusal.difference]
                ):
                    raise
                form = wire.ask(GetForm(project=project, task=task, document=form.document))
                continue
            keep = False
            form = wire.ask(GetForm(project=project, task=task, document=form.document))
            faults = problems(form)
            broken = any(fault.severity == "error" for fault in form.problems)
            if broken and terminal.asks and _again(terminal, faults):
                copy = copy._replace(text=written)
                continue
            for fault in faults:
                terminal.say(fault)
            if terminal.json:
                terminal.document(form)
            elif form.satisfied and not broken:
                terminal.say(f"The gate has what it needs. Next: promptside approve {task}")
            keep = broken
            return FAILED if broken else DONE
    finally:
        if keep:
            terminal.say(f"What you wrote is kept in {copy.path}.")
        else:
            copy.remove()


def problems(form: Form) -> list[str]:
    """What can't be read, by line, then what the gate still lacks."""
    name = one_line(form.document.rsplit("/", 1)[-1])
    found = [f"{name}:{fault.line}: {one_line(fault.message)}" for fault in form.problems]
    return found + [one_line(lack) for lack in form.lacks]


def _again(terminal: Terminal, words: list[str]) -> bool:
    for word in words:
        if word:
            terminal.say(harmless(word))
    reply = input("Edit again? [Y/n]: ").strip().lower()
    return reply in ("", "y", "yes")


def _has_document(view: TaskView) -> bool:
    waiting = view.waiting_for
    if waiting is None:
        return False
    return waiting.kind == "gate" or any(decision.kind != "permission" for decision in waiting.decisions)
