"""The list of permissions given for good, each with its origin and how to remove it (ST-14)."""

from __future__ import annotations

from collections.abc import Sequence

from promptside_protocol.pages.page import Look, Page, Span, line
from promptside_protocol.pages.plain import cells, one_line, pad
from promptside_protocol.pages.words import clock, who
from promptside_protocol.views import Offer, RuleView


def rules_page(rules: Sequence[RuleView], look: Look) -> Page:
    """One line a rule."""
    if not rules:
        return Page(title="rules", lines=(line("Nothing was allowed for good in this project."),))
    width = max(cells(one_line(rule.rule)) for rule in rules)
    number = max(len(str(rule.id)) for rule in rules)
    lines = [
        line(
            Span(f"{rule.id:>{number}}", "title"),
            "  ",
            Span(pad(one_line(rule.rule), width), "tool"),
            Span(f"  {_origin(rule, look)}", "muted"),
            ref=f"rule/{rule.id}",
            offers=(_remove(rule),),
        )
        for rule in rules
    ]
    if look.calls:
        lines += [line(), line(Span("Remove one: ", "muted"), f"promptside rules remove {rules[0].id}")]
    return Page(title="rules", lines=tuple(lines))


def _origin(rule: RuleView, look: Look) -> str:
    words = [
        clock(rule.at, look),
        f"#{rule.task} {one_line(rule.stage)}".strip(),
        f"by {who(rule.by, look)}",
        rule.client,
    ]
    return ", ".join(one_line(word) for word in words if word)


def _remove(rule: RuleView) -> Offer:
    call = f"promptside rules remove {rule.id}"
    return Offer(
        command="promptside.removeRule",
        title="Remove",
        args={"rule": rule.id},
        place=f"rule/{rule.id}",
        hint=call,
    )
