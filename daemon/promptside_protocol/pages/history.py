"""Everything that was decided in a task, oldest first (CW-22)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from promptside_protocol.pages.page import Look, Page, line
from promptside_protocol.pages.task import decision_lines, heading
from promptside_protocol.views import DecisionView, TaskView


def history_page(view: TaskView, decisions: Sequence[DecisionView], look: Look) -> Page:
    """Approvals and answers, one line each."""
    record = decision_lines(replace(view, decisions=tuple(decisions)), look)
    return Page(
        title=f"history/{view.id}",
        lines=(heading(view, look), line(), *(record or (line("  Nothing was decided yet."),))),
    )
