"""One line per stage: mark, name, what it took and how it stands; and the attempts below it."""

from __future__ import annotations

from promptside_protocol.pages.page import Fold, Line, Look, Role, Span, line
from promptside_protocol.pages.plain import cells, cut, one_line, pad
from promptside_protocol.pages.waiting import need
from promptside_protocol.pages.words import (
    STAGE_ROLES,
    clock,
    duration,
    mark,
    money,
    open_offers,
    several,
    tokens,
    who,
)
from promptside_protocol.views import AttemptView, StageView, TaskView

NAME_LIMIT = 32


def name_width(view: TaskView) -> int:
    """The column that holds every stage's name."""
    longest = max((cells(one_line(stage.name)) for stage in view.stages), default=0)
    return min(max(longest, 20), NAME_LIMIT)


def stage_line(view: TaskView, stage: StageView, look: Look, fold: Fold = "") -> Line:
    """`v Research            1 min 40 s   $0.11   approved by you`."""
    role = stage_role(view, stage)
    name = pad(cut(one_line(stage.name), NAME_LIMIT, unicode=look.unicode), name_width(view))
    recorded = view.metrics.recorded
    facts = [
        fact for fact in (*_took(stage, look, recorded=recorded), state_words(view, stage, look)) if fact
    ]
    quiet = _rule(stage)
    return line(
        mark(role, look),
        " ",
        Span(name, "title" if stage.id == view.current else ""),
        "  " if facts else "",
        "   ".join(facts),
        Span(f"   {quiet}", "muted") if quiet else "",
        fold=fold,
        ref=f"stage/{stage.id}",
        offers=open_offers(view.offers, stage.id),
    )


def stage_role(view: TaskView, stage: StageView) -> Role:
    """The role of a stage; one that a pause holds is paused."""
    if view.state == "paused" and stage.id == view.current and stage.status != "waiting":
        return "paused"
    return "waiting" if stage.stopped else STAGE_ROLES[stage.status]


def state_words(view: TaskView, stage: StageView, look: Look) -> str:
    """How a stage stands, in a few words."""
    if view.terminal is not None and view.terminal.stage == stage.id:
        return view.terminal.words.removesuffix(".")
    waiting = view.waiting_for
    if waiting is not None and waiting.stage == stage.id and stage.status != "failed":
        return need(waiting)
    match stage.status:
        case "future":
            return ""
        case "current":
            return one_line(stage.reason) or ("paused" if view.state == "paused" else "next")
        case "running" | "checking":
            return stage.status
        case "waiting":
            return one_line(stage.reason) or "waits"
        case "approved":
            words = f"approved by {who(stage.approval.by, look)}" if stage.approval else "passed"
            return f"{words}, {one_line(stage.reason)}" if stage.reason else words
        case "skipped":
            return f"skipped: {one_line(stage.reason)}" if stage.reason else "skipped"
        case "failed":
            # Why, in a sentence, stands with the attempt and in what waits.
            return "stopped" if stage.stopped else "failed"


def attempt_lines(stage: StageView, look: Look, *, recorded: bool = False) -> list[Line]:
    """The attempts of a stage, with what each left to know."""
    lines: list[Line] = []
    for attempt in stage.attempts:
        facts = [f"attempt {attempt.n}", attempt.status, *_spent(attempt, look, recorded=recorded)]
        if attempt.input_tokens is not None:
            facts.append(tokens(attempt.input_tokens + (attempt.output_tokens or 0)))
        if attempt.changes:
            facts.append(several(len(attempt.changes), "file") + " changed")
        if attempt.started is not None:
            facts.append(clock(attempt.started, look))
        ref = f"attempt/{stage.id}/{attempt.n}"
        lines.append(line("    ", Span(", ".join(facts), "muted"), fold="inside", ref=ref))
        for words, role in _remarks(attempt, look):
            lines.append(line("      ", Span(words, role), fold="inside", ref=ref))
    return lines


def _took(stage: StageView, look: Look, *, recorded: bool) -> list[str]:
    if not stage.attempts:
        return []
    last = stage.attempts[-1]
    return [*_spent(last, look, recorded=recorded), f"attempt {last.n}" if last.n > 1 else ""]


def _spent(attempt: AttemptView, look: Look, *, recorded: bool) -> list[str]:
    seconds = attempt.duration_s
    if seconds is None and attempt.started is not None and attempt.status == "running":
        seconds = look.now - attempt.started
    facts = [duration(seconds)] if seconds is not None else []
    return [*facts, money(attempt.cost_usd, recorded=recorded)] if attempt.cost_usd is not None else facts


def _rule(stage: StageView) -> str:
    proof = stage.attempts[-1].proof if stage.attempts else None
    if proof is not None and proof.verdict == "proved":
        return "read-only, proved"
    if proof is not None and proof.verdict == "meanwhile":
        return "read-only, proved; files changed meanwhile, not by the agent"
    return one_line(stage.rule)


def _remarks(attempt: AttemptView, look: Look) -> list[tuple[str, Role]]:
    remarks: list[tuple[str, Role]] = []
    if attempt.error:
        remarks.append((one_line(attempt.error), "failed"))
    if attempt.hint:
        remarks.append((one_line(attempt.hint), "note"))
    if attempt.note:
        remarks.append((one_line(attempt.note), "note"))
    proof = attempt.proof
    if proof is not None:
        remarks += [(f"changed by the agent: {one_line(path)}", "failed") for path in proof.breach]
        remarks += [
            (f"changed meanwhile, not by the agent: {one_line(path)}", "muted") for path in proof.meanwhile
        ]
    for denial in attempt.denials:
        what = f"{one_line(denial.tool)} {one_line(denial.what)}".strip()
        remarks.append((f"denied: {what} ({one_line(denial.reason)})", "note"))
    for work in attempt.terminals:
        count = len(work.changes) + work.unlisted
        changed = f", {several(count, 'file')} changed" if count else ""
        by = who(work.by, look)
        times = f"from {clock(work.since, look)} to {clock(work.until, look)}"
        remarks.append((f"continued in a terminal by {by} {times}{changed}", "note"))
        if work.transcript:
            remarks.append((one_line(work.transcript), "path"))
    return remarks
