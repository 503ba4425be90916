"""What a task waits for, in words: short for a list, whole for its page, and as the calls that answer it."""

from __future__ import annotations

from promptside_protocol.pages.page import Line, Look, Span, line
from promptside_protocol.pages.plain import harmless, one_line
from promptside_protocol.pages.words import label, mark, several
from promptside_protocol.views import DecisionView, GateView, ItemView, TaskView, WaitingFor

SCOPES = {
    "once": "Once",
    "attempt": "For this attempt",
    "task": "For this task",
    "always": "Always in this project",
    "deny": "Deny",
}
"""The answers to a permission, in their order (UX 9)."""


def need(waiting: WaitingFor) -> str:
    """What is wanted, in a few words: `select 1 of 3`, `2 questions`, `2 of 3 reviewed`."""
    match waiting.kind:
        case "gate" if waiting.gate is not None:
            return gate_need(waiting.gate)
        case "decision":
            asks = [d for d in waiting.decisions if d.kind == "permission"]
            questions = len(waiting.decisions) - len(asks)
            words = [several(questions, "question")] if questions else []
            words += [several(len(asks), "permission")] if asks else []
            return ", ".join(words) or "your answer"
        case "input":
            return "your input"
        case _:
            return one_line(waiting.reason).removesuffix(".") or "you"


def gate_need(gate: GateView) -> str:
    """What a gate takes, or what was given when that is enough."""
    match gate.type:
        case "require_approval":
            return "your approval"
        case "require_selection":
            if gate.selected and not gate.lacks:
                return f"{', '.join(gate.selected)} selected"
            low, high = gate.min or 0, gate.max if gate.max is not None else len(gate.options)
            wanted = f"{low}" if low == high else f"{low} to {high}"
            return f"select {wanted} of {len(gate.options)}"
        case "require_all_checked":
            done = sum(item.ticked for item in gate.items)
            return f"{done} of {len(gate.items)} reviewed"
        case "require_fields":
            return several(len(gate.lacks), "field") + " to fill" if gate.lacks else "your approval"
        case "sign_off":
            return "your sign-off"


def waiting_lines(view: TaskView, look: Look) -> tuple[Line, ...]:
    """The options, items, fields, questions or the reason that stand behind `need`."""
    waiting = view.waiting_for
    if waiting is None:
        return ()
    lines: list[Line] = []
    if waiting.gate is not None:
        lines += _gate(waiting.gate, look)
    for decision in waiting.decisions:
        lines += question(decision)
    if waiting.reason and waiting.kind == "input":
        lines.append(line("  ", one_line(waiting.reason)))
    return tuple(lines)


def question(decision: DecisionView) -> list[Line]:
    """A question or a permission with its choices."""
    ref = f"decision/{decision.id}"
    if decision.kind == "permission":
        # What is allowed is exactly this: a command of two lines is shown as two lines.
        first, *more = harmless(decision.what).expandtabs(4).split("\n")
        lines = [
            line("  ", Span(decision.id, "title"), "  ", one_line(decision.text), ref=ref),
            line("      ", Span(f"{decision.tool}  ", "tool"), Span(first, "path"), ref=ref),
            *(line("      ", " " * (len(decision.tool) + 2), Span(rest, "path"), ref=ref) for rest in more),
        ]
        if decision.why:
            lines.append(line("      ", Span(one_line(decision.why), "muted"), ref=ref))
        return lines
    kind = QUESTION_KINDS[decision.kind] + (", required" if decision.required else "")
    lines = [
        line(
            "  ",
            Span(decision.id, "title"),
            "  ",
            one_line(decision.text),
            Span(f" ({kind})", "muted"),
            ref=ref,
        )
    ]
    for option in decision.options:
        star = Span(" (recommended)", "done") if option.recommended else ""
        lines.append(line("      ", Span(option.id, "title"), "  ", one_line(option.title), star, ref=ref))
    return lines


def item_place(item: ItemView) -> str:
    """`src/auth/login.ts:41`; never cut."""
    return one_line(item.path) + (f":{item.line}" if item.line is not None else "")


def calls(view: TaskView) -> tuple[tuple[str, str], ...]:
    """The calls that answer what waits, best first, each with a gloss that may be empty."""
    waiting = view.waiting_for
    task = view.id
    if view.terminal is not None:
        return ((f"promptside give-back {task}", "if that terminal is gone"),)
    if waiting is None:
        return ()
    document = (f"promptside open {task}", "the document in $EDITOR")
    match waiting.kind:
        case "gate":
            gate = waiting.gate
            first = (f"promptside approve {task}{_arguments(gate) if gate else ''}", "")
            return (
                first,
                document,
                (f'promptside redo {task} -m "..."', "back to the agent, with your words"),
            )
        case "decision":
            lines = [(f"promptside answer {task} {d.id} {_answer(d)}", _gloss(d)) for d in waiting.decisions]
            asked = any(d.kind != "permission" for d in waiting.decisions)
            return (*lines, document) if asked else tuple(lines)
        case "input":
            return ((f'promptside run {task} --input "..."', "or without --input"),)
        case "person":
            return (
                (f"promptside retry {task}", ""),
                (f'promptside redo {task} -m "..."', "with your words"),
            )


def _gate(gate: GateView, look: Look) -> list[Line]:
    lines: list[Line] = []
    for option in gate.options:
        star = Span(" (recommended)", "done") if option.recommended else ""
        chosen = Span(" selected", "waiting") if option.id in gate.selected else ""
        title = one_line(option.title)
        ref = f"item/{option.id}"
        lines.append(line("      ", Span(option.id, "title"), "  ", title, star, chosen, ref=ref))
    for item in gate.items:
        tick = mark("done" if item.ticked else "next", look)
        place = Span(f"  {item_place(item)}" if item.path else "", "path")
        text = one_line(item.text)
        ref = f"item/{item.id}"
        lines.append(line("      ", tick, " ", Span(item.id, "title"), "  ", text, place, ref=ref))
    if gate.type == "require_fields":
        lines += [line("      ", label(name), ref=f"item/{name}") for name in gate.fields]
    if not gate.items:  # there each line has its tick
        lines += [line("      ", Span(one_line(lack), "muted")) for lack in gate.lacks]
    return lines


def _arguments(gate: GateView) -> str:
    match gate.type:
        case "require_selection" if gate.options and gate.lacks:
            best = next((o for o in gate.options if o.recommended), gate.options[0])
            return f" --select {best.id}"
        case "require_all_checked":
            return "".join(f" --check {item.id}" for item in gate.items if not item.ticked)
        case "require_fields" if gate.lacks and gate.fields:
            return f' --field {gate.fields[0]}="..."'
        case "sign_off":
            return " --sign-off"
        case _:
            return ""


def _answer(decision: DecisionView) -> str:
    if decision.kind == "permission":
        return "--option once"
    if decision.kind == "files":
        return "--file PATH"
    if decision.options:
        best = next((o for o in decision.options if o.recommended), decision.options[0])
        return f"--option {best.id}"
    return '--text "..."'


def _gloss(decision: DecisionView) -> str:
    if decision.kind == "permission":
        return "or attempt, task, always, deny"
    return "required" if decision.required else ""


QUESTION_KINDS = {
    "one": "choose one",
    "any": "choose any",
    "text": "text",
    "long_text": "long text",
    "files": "files",
    "code": "code",
    "yes_no": "yes or no",
    "permission": "permission",
    "plan": "plan",
}
"""As in a questions document (UX 2.7)."""
