"""Asking in place: what waits is shown, a person's line becomes an order, and leaving changes nothing.

Nothing is taken for an answer that isn't one: an empty line asks again, except where it is said to mean
something. Pure but for the `ask` that it is given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from promptside_cli import drafts
from promptside_protocol.commands import (
    Allow,
    Answer,
    Approve,
    Deny,
    Redo,
    Run,
    Scope,
    SendAnswers,
    StageCommand,
)
from promptside_protocol.pages.plain import one_line
from promptside_protocol.pages.waiting import item_place
from promptside_protocol.views import DecisionView, GateView, TaskView

Ask = Callable[[str], Awaitable[str | None]]
"""Shows a prompt and gives the line that was typed; None when the input was closed."""
Reply = StageCommand | Literal["leave", "edit", "passed over"]

_LEAVE = ("q", "quit")
_SCOPES: dict[str, Scope] = {
    "o": "once", "once": "once", "a": "attempt", "attempt": "attempt", "t": "task", "task": "task",
    "l": "always", "always": "always",
}  # fmt: skip


async def at_gate(ask: Ask, say: Callable[[str], None], view: TaskView, gate: GateView, stage: str) -> Reply:
    """Ask for what a gate takes; the order carries the hash of what was shown."""
    match gate.type:
        case "require_selection":
            return await _selection(ask, say, view, gate, stage)
        case "require_all_checked":
            return await _checklist(ask, view, gate, stage)
        case "require_fields" if gate.lacks:
            return await _only(ask, "[e = open in editor, q = leave]: ")
        case "sign_off":
            return await _approval(ask, view, gate, stage, "Sign off", sign_off=True)
        case _:
            return await _approval(ask, view, gate, stage, "Approve")


async def for_input(ask: Ask, view: TaskView, name: str, run: Run) -> Reply:
    """Ask what a person has to add before a stage starts; Enter starts it with nothing."""
    line = await ask(f"Anything to add for {one_line(name)}? (Enter: nothing, q: leave) ")
    if line is None or line.strip().lower() in _LEAVE:
        return "leave"
    return Run(
        project=view.project, task=view.id, input=line.strip(), stage_only=run.stage_only, on_ask=run.on_ask
    )


async def decision(ask: Ask, say: Callable[[str], None], view: TaskView, asked: DecisionView) -> Reply:
    """Ask one question of the agent, or for one permission."""
    match asked.kind:
        case "permission":
            return await _permission(ask, say, view, asked)
        case "one" | "any" | "yes_no" if asked.options or asked.kind == "yes_no":
            return await _choice(ask, say, view, asked)
        case "files":
            return await _files(ask, view, asked)
        case _:
            return await _text(ask, view, asked)


def rest(view: TaskView) -> SendAnswers:
    """Send what was answered; the questions that were passed over stay open to nobody."""
    return SendAnswers(project=view.project, task=view.id)


async def _approval(
    ask: Ask, view: TaskView, gate: GateView, stage: str, verb: str, *, sign_off: bool = False
) -> Reply:
    while True:
        line = await ask(f"{verb} [y = yes, r = redo with your words, e = open in editor, q = leave]: ")
        match _word(line):
            case None | "q" | "quit":
                return "leave"
            case "e":
                return "edit"
            case "y" | "yes":
                return _approve(view, gate, stage, {}, sign_off=sign_off)
            case "r":
                words = await ask("What should be different? (Enter: back) ")
                if words is not None and words.strip():
                    return Redo(project=view.project, task=view.id, feedback=words.strip())
            case _:
                pass  # no answer: asked again


async def _selection(
    ask: Ask, say: Callable[[str], None], view: TaskView, gate: GateView, stage: str
) -> Reply:
    ids = {option.id.lower(): option.id for option in gate.options}
    low = gate.min if gate.min is not None else 1
    high = gate.max if gate.max is not None else len(ids)
    names = "/".join(option.id for option in gate.options)
    several = ", several with commas" if high > 1 else ""
    while True:
        line = await ask(f"Select [{names}{several}, e = open in editor, q = leave]: ")
        if line is None or line.strip() in _LEAVE:
            return "leave"
        if line.strip() == "e":
            return "edit"
        words = [word for word in line.replace(",", " ").split() if word]
        chosen = list(dict.fromkeys(ids.get(word.lower(), "") for word in words))
        if not words:
            continue
        if "" in chosen:
            say(f"“{one_line(line)}” is none of {names}.")
        elif len(chosen) > high:
            say(f"{len(chosen)} options are selected; this gate takes {high}.")
        elif len(chosen) < low:
            say(f"This gate takes at least {low}.")
        else:
            return _approve(view, gate, stage, drafts.selected(gate, chosen))


async def _checklist(ask: Ask, view: TaskView, gate: GateView, stage: str) -> Reply:
    ticked: dict[str, str] = {}
    for item in gate.items:
        if item.ticked:
            continue
        place = f"  {item_place(item)}" if item.path else ""
        while True:
            line = await ask(
                f"{item.id}  {one_line(item.text)}{place}\n"
                "Reviewed? [y = yes, y NOTE, n = no, e = open in editor, q = leave]: "
            )
            word, _, note = (line or "").strip().partition(" ")
            if line is None or word.lower() in _LEAVE or word.lower() in ("n", "no"):
                return "leave"
            if word == "e":
                return "edit"
            if word.lower() in ("y", "yes"):
                ticked[item.id] = note.strip()
                break
    return _approve(view, gate, stage, drafts.checked(gate, ticked))


async def _permission(ask: Ask, say: Callable[[str], None], view: TaskView, asked: DecisionView) -> Reply:
    while True:
        line = await ask(f"{asked.id} [o]nce / [a]ttempt / [t]ask / a[l]ways / [d]eny / q: ")
        word = _word(line)
        if word is None or word in _LEAVE:
            return "leave"
        if word in _SCOPES:
            return Allow(project=view.project, task=view.id, decision=asked.id, scope=_SCOPES[word])
        if word in ("d", "deny"):
            why = await ask("A word to the agent? (Enter: none) ")
            if why is None:
                return "leave"
            return Deny(project=view.project, task=view.id, decision=asked.id, text=why.strip())
        if word:
            say(f"“{one_line(word)}” is none of these.")


async def _choice(ask: Ask, say: Callable[[str], None], view: TaskView, asked: DecisionView) -> Reply:
    names = [option.id for option in asked.options] or ["Yes", "No"]
    ids = {name.lower(): name for name in names} | ({"y": "Yes", "n": "No"} if not asked.options else {})
    several = ", several with commas" if asked.kind == "any" else ""
    other = ", o = other" if asked.other else ""
    while True:
        line = await ask(f"{asked.id} [{'/'.join(names)}{several}{other}, e = open in editor, q = leave]: ")
        if line is None or line.strip() in _LEAVE:
            return "leave"
        match line.strip():
            case "e":
                return "edit"
            case "":
                if not asked.required:
                    return "passed over"
                continue
            case "o" if asked.other and "o" not in ids:
                text = await ask("Your answer (Enter: back): ")
                if text is not None and text.strip():
                    return Answer(project=view.project, task=view.id, decision=asked.id, text=text.strip())
                continue
        words = line.replace(",", " ").split()
        chosen = list(dict.fromkeys(ids.get(word.lower(), "") for word in words))
        if "" in chosen:
            say(f"“{one_line(line)}” is none of {'/'.join(names)}.")
        elif asked.kind != "any" and len(chosen) > 1:
            say(f"{asked.id}: {len(chosen)} are given, one is wanted.")
        else:
            return Answer(project=view.project, task=view.id, decision=asked.id, options=tuple(chosen))


async def _files(ask: Ask, view: TaskView, asked: DecisionView) -> Reply:
    while True:
        line = await ask(f"{asked.id} Paths [several with commas, e = open in editor, q = leave]: ")
        if line is None or line.strip() in _LEAVE:
            return "leave"
        if line.strip() == "e":
            return "edit"
        files = tuple(word.strip() for word in line.split(",") if word.strip())
        if files:
            return Answer(project=view.project, task=view.id, decision=asked.id, files=files)
        if not asked.required:
            return "passed over"


async def _text(ask: Ask, view: TaskView, asked: DecisionView) -> Reply:
    while True:
        line = await ask(f"{asked.id} Your answer [e = open in editor, q = leave]: ")
        if line is None or line.strip() in _LEAVE:
            return "leave"
        if line.strip() == "e":
            return "edit"
        if line.strip():
            return Answer(project=view.project, task=view.id, decision=asked.id, text=line.strip())
        if not asked.required:
            return "passed over"


async def _only(ask: Ask, prompt: str) -> Reply:
    while True:
        match _word(await ask(prompt)):
            case None | "q" | "quit":
                return "leave"
            case "e":
                return "edit"
            case _:
                pass  # no answer: asked again


def _approve(
    view: TaskView, gate: GateView, stage: str, answers: drafts.Answers, *, sign_off: bool = False
) -> Approve:
    return Approve(
        project=view.project, task=view.id, answers=answers, shown=gate.shown, stage=stage, sign_off=sign_off
    )


def _word(line: str | None) -> str | None:
    return None if line is None else line.strip().lower()
