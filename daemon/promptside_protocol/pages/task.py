"""The page of one task: its stages, what waits, what the agent did last, and who decided what (UX 4.3, 6)."""

from __future__ import annotations

from itertools import zip_longest

from msgspec.structs import replace

from promptside_protocol.pages.page import Line, Look, Page, Role, Span, line
from promptside_protocol.pages.plain import cut, one_line, pad
from promptside_protocol.pages.stage import attempt_lines, stage_line
from promptside_protocol.pages.waiting import calls, need, waiting_lines
from promptside_protocol.pages.words import (
    clock,
    duration,
    money,
    offer_line,
    open_offers,
    several,
    tokens,
    way_line,
    who,
)
from promptside_protocol.views import Activity, DecisionView, Step, TaskView


def task_page(view: TaskView, look: Look, activity: Activity | None = None) -> Page:
    """Everything a person wants to know of one task, in at most a few screens."""
    lines = [heading(view, look), line("  ", Span(_facts(view), "muted"))]
    lines += _trouble(view, look)
    lines.append(line())
    for stage in view.stages:
        below = attempt_lines(stage, look, recorded=view.metrics.recorded)
        lines.append(_indented(stage_line(view, stage, look, "closed" if below else "")))
        lines += below
    if view.waiting_for is not None:
        lines += [
            line(),
            line(
                Span(f"Waits for you: {need(view.waiting_for)}", "waiting"), fold="open", ref="item/document"
            ),
        ]
        lines += [_inside(one) for one in _asked(view, look)]
        lines += [_inside(one) for one in call_lines(view)] if look.calls else []
    elif view.terminal is not None and look.calls:
        lines += [line(), *call_lines(view)]
    if not look.calls:
        lines += _choices(view, look)
    if activity is not None and activity.last:
        lines += [line(), line(Span("Last actions", "title"), fold="open")]
        lines += [_step(step, look) for step in activity.last]
    record = decision_lines(view, look)
    if record:
        lines += [line(), line(Span("Decisions", "title"), fold="open"), *record]
    return Page(title=f"task/{view.id}", lines=tuple(lines))


def _asked(view: TaskView, look: Look) -> list[Line]:
    """What waits; where that is not said as calls, the way to its document, and what a permission can be answered."""
    drawn = waiting_lines(view, look)
    if look.calls or view.waiting_for is None:
        return list(drawn)
    document = way_line("Open document", look, "item/document")
    asks = {f"decision/{one.id}": one.id for one in view.waiting_for.decisions if one.kind == "permission"}
    lines = [document] if view.waiting_for.document else []
    stage = next((one for one in view.stages if one.id == view.waiting_for.stage), None)
    changes = stage.attempts[-1].changes if stage is not None and stage.attempts else ()
    if changes:
        lines.append(_show_changes(len(changes), look))
    for one, after in zip_longest(drawn, drawn[1:]):
        lines.append(one)
        if one.ref in asks and (after is None or after.ref != one.ref):
            answers = open_offers(view.offers, asks[one.ref])
            lines += [offer_line(offer, look, "      ") for offer in answers]
    return lines


def _show_changes(files: int, look: Look) -> Line:
    return way_line("Show changes", look, "item/changes", several(files, "file"))


def heading(view: TaskView, look: Look) -> Line:
    """`#12 Add login with server-side sessions   standard`."""
    number = f"#{view.id} "
    pipeline = one_line(view.pipeline)
    room = max(look.width - len(number) - len(pipeline) - 3, 20)
    title = cut(one_line(view.title), room, unicode=look.unicode)
    ref = f"task/{view.id}"
    return line(
        Span(number, "muted"),
        Span(title, "title"),
        Span(f"   {pipeline}", "muted"),
        ref=ref,
        offers=view.offers,
    )


def _choices(view: TaskView, look: Look) -> list[Line]:
    """What can be done with the task, below what waits; what is about one item stands at the item."""
    offers = [offer for offer in view.offers if not offer.place]
    if not offers:
        return []
    head = [] if view.waiting_for is not None else [line(Span("What you can do", "title"), fold="open")]
    changed = {change.path for stage in view.stages for one in stage.attempts for change in one.changes}
    over = view.state in ("completed", "archived")
    changes = [_inside(_show_changes(len(changed), look))] if over and changed else []
    return [line(), *head, *changes, *(_inside(offer_line(offer, look)) for offer in offers)]


def call_lines(view: TaskView) -> list[Line]:
    """`Next: promptside approve 12 --select A`, one call a line."""
    lines: list[Line] = []
    for index, (call, gloss) in enumerate(calls(view)):
        head = "Next: " if index == 0 else "      "
        note = Span(f"   ({gloss})", "muted") if gloss else ""
        lines.append(line(Span(head, "muted"), call, note))
    return lines


def decision_lines(view: TaskView, look: Look) -> list[Line]:
    """Approvals and answers, oldest first: `14:05  Approaches  approved A  by you, nvim, sha256 3f9a…`."""
    names = {stage.id: one_line(stage.name) for stage in view.stages}
    record: list[tuple[float, Line]] = []
    for stage in view.stages:
        approval = stage.approval
        if approval is not None:
            edited = ", with changes" if approval.edited else ""
            chosen = f" {', '.join(approval.selected)}" if approval.selected else ""
            what = f"approved{chosen}{edited}{', all at once' if approval.all_at_once else ''}"
            by = [f"by {who(approval.by, look)}", approval.client, _digest(approval.shown, look)]
            note = f"“{one_line(approval.note)}”" if approval.note else ""
            drawn = _record(approval.at, names[stage.id], what, [*by, note], look)
            record.append((approval.at, drawn))
        for attempt in stage.attempts:
            if attempt.feedback:
                at = attempt.started or 0.0
                said = f"“{one_line(attempt.feedback)}”"
                record.append((at, _record(at, names[stage.id], "sent back", [said], look)))
        if stage.input and stage.attempts:
            at = stage.attempts[0].started or 0.0
            record.append(
                (at, _record(at, names[stage.id], "started with", [f"“{one_line(stage.input)}”"], look))
            )
    for decision in view.decisions:
        if decision.status in ("open", "parked"):
            continue
        at = decision.answered if decision.answered is not None else decision.asked or 0.0
        by = [f"by {who(decision.by, look)}", decision.client] if decision.answered is not None else []
        record.append(
            (at, _record(at, names.get(decision.stage, decision.stage), _settled(decision), by, look))
        )
    record.sort(key=lambda pair: pair[0])
    return [drawn for _, drawn in record]


def _record(at: float, stage: str, what: str, parts: list[str], look: Look) -> Line:
    by = ", ".join(one_line(word) for word in parts if word)
    return line(
        "  ", Span(clock(at, look), "muted"), f"  {stage}  {what}", Span(f"  {by}", "muted"), fold="inside"
    )


def _settled(decision: DecisionView) -> str:
    if decision.kind == "permission":
        what = f"{one_line(decision.tool)} {one_line(decision.what)}".strip()
        answer = one_line(decision.answer)
        if decision.status == "denied":
            return f"{decision.id} denied {what}" + (f": “{answer}”" if answer and answer != "deny" else "")
        return f"{decision.id} {decision.status} {what}" + (f" ({answer})" if answer else "")
    if decision.status == "withdrawn":
        how = "withdrawn by the agent" if decision.by_agent else "left without an answer"
        return f"{decision.id} {how}: {one_line(decision.text)}"
    return f"{decision.id} {one_line(decision.text)} “{one_line(decision.answer)}”"


def _facts(view: TaskView) -> str:
    metrics = view.metrics
    facts = [view.state if view.reason is None else f"{view.state}: {one_line(view.reason)}"]
    if metrics.agent_runs:
        facts += [
            several(metrics.agent_runs, "agent run"),
            tokens(metrics.input_tokens + metrics.output_tokens),
        ]
        spent = money(metrics.cost_usd, recorded=metrics.recorded)
        facts += [f"{spent}, nothing paid" if metrics.recorded else spent, duration(metrics.duration_s)]
    facts += [view.type.replace("_", " "), f"priority {view.priority}"]
    if view.branch:
        facts.append(one_line(view.branch))
    return ", ".join(facts)


def _trouble(view: TaskView, look: Look) -> list[Line]:
    lines = [line("  ", Span(one_line(view.error), "failed"))] if view.error else []
    stage = next((one for one in view.stages if one.id == view.current), None)
    hint = stage.attempts[-1].hint if view.error and stage is not None and stage.attempts else ""
    if hint and not look.calls:  # a terminal unfolds the attempt, which says it too
        lines.append(line("  ", Span(one_line(hint), "note")))
    if view.worktree:
        lines.append(line("  ", Span(one_line(view.worktree), "path")))
    return lines


def _step(step: Step, look: Look) -> Line:
    head, _, rest = one_line(step.text).partition(" ")
    role: Role = (
        "stderr" if step.role == "stderr" or step.ok is False else "tool" if step.role == "tool" else ""
    )
    ago = Span(f"   {duration(look.now - step.at)} ago", "muted") if step.at else ""
    place = f"path/{step.path}" + (f":{step.line}" if step.line is not None else "") if step.path else ""
    if step.role == "tool":
        words = Span(rest.strip(), "path")
        return line("  ", Span(pad(head, 8), role), " ", words, ago, fold="inside", ref=place)
    return line("  ", Span(one_line(step.text), role), ago, fold="inside", ref=place)


def _digest(shown: str, look: Look) -> str:
    if not shown:
        return ""
    digest = shown.removeprefix("sha256:")
    return f"sha256 {digest[:4]}{'…' if look.unicode else '...'}"


def _indented(drawn: Line) -> Line:
    return replace(drawn, spans=(Span("  "), *drawn.spans))


def _inside(drawn: Line) -> Line:
    return replace(drawn, fold="inside")
