"""The pipelines that can be used here, one of them whole, and what is wrong with files (ST-2, ST-3)."""

from __future__ import annotations

from collections.abc import Sequence

from promptside_protocol.pages.page import Line, Page, Role, Span, line
from promptside_protocol.pages.plain import cells, one_line, pad
from promptside_protocol.pages.words import several
from promptside_protocol.views import FaultView, PipelineList, PipelineStageView, PipelineView

_GATES = {
    "require_approval": "approval",
    "require_selection": "selection",
    "require_all_checked": "all checked",
    "require_fields": "fields",
    "sign_off": "sign-off",
}


def pipelines_page(listed: PipelineList) -> Page:
    """One line a pipeline with its stages below, then the files that can't be used."""
    width = max((cells(one_line(p.name)) for p in listed.pipelines), default=0)
    lines: list[Line] = []
    for pipeline in listed.pipelines:
        title = one_line(pipeline.title)
        lines.append(
            line(
                Span(pad(one_line(pipeline.name), width), "title"),
                Span(f"  {several(len(pipeline.stages), 'stage')}, {pipeline.origin}", "muted"),
                f"  {title}" if title else "",
                fold="closed",
                ref=f"pipeline/{one_line(pipeline.name)}",
            )
        )
        lines += [line("  ", one_line(s.name), fold="inside", ref=f"stage/{s.id}") for s in pipeline.stages]
    if listed.faults:
        lines += [line(), line(Span("Files that can't be used", "failed"), fold="open")]
        lines += [Line(spans=one.spans, fold="inside", ref=one.ref) for one in fault_lines(listed.faults)]
    return Page(title="pipelines", lines=tuple(lines) or (line("There is no pipeline."),))


def pipeline_page(pipeline: PipelineView) -> Page:
    """One pipeline: a line a stage with output, gate and tools."""
    version = one_line(pipeline.version)[:12]
    facts = ", ".join(word for word in (pipeline.origin, one_line(pipeline.path), version) if word)
    lines = [
        line(Span(one_line(pipeline.name), "title"), f"   {one_line(pipeline.title)}"),
        line("  ", Span(facts, "muted")),
        line(),
    ]
    width = max((cells(one_line(stage.name)) for stage in pipeline.stages), default=0)
    number = len(str(len(pipeline.stages)))
    for n, stage in enumerate(pipeline.stages, 1):
        head = f"{n:>{number}}  {pad(one_line(stage.name), width)}"
        lines.append(line(head, Span(f"  {_facts(stage)}", "muted"), ref=f"stage/{stage.id}"))
    return Page(title=f"pipeline/{one_line(pipeline.name)}", lines=tuple(lines))


def fault_lines(faults: Sequence[FaultView]) -> list[Line]:
    """`FILE:LINE:COLUMN`, what is wrong there, and what to do."""
    lines: list[Line] = []
    for fault in faults:
        place = f"{one_line(fault.file)}:{fault.line}:{fault.column}"
        role: Role = "failed" if fault.severity == "error" else "waiting"
        lines.append(
            line(Span(place, "path"), "  ", Span(fault.severity, role), f"  {one_line(fault.message)}")
        )
        if fault.hint:
            lines.append(line("    ", Span(one_line(fault.hint), "note")))
    return lines


def _facts(stage: PipelineStageView) -> str:
    gate = str(stage.gate.get("type", "")) if stage.gate else ""
    tools = "all tools" if stage.tools is None else ", ".join(one_line(t) for t in stage.tools) or "no tools"
    return f"{stage.output}, {_GATES.get(gate, one_line(gate)) or 'no gate'}; {tools}"
