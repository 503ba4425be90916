"""What is there, what is missing, and what to do about it (DA-8)."""

from __future__ import annotations

from promptside_protocol.pages.page import Line, Look, Page, Span, line
from promptside_protocol.pages.plain import cells, one_line, pad
from promptside_protocol.pages.words import mark, several
from promptside_protocol.views import Doctor


def doctor_page(doctor: Doctor, look: Look) -> Page:
    """One line a check, its advice below."""
    width = max((cells(one_line(check.name)) for check in doctor.checks), default=0)
    lines: list[Line] = []
    for check in doctor.checks:
        found = one_line(check.found) or "not found"
        needed = (
            Span(f"  (needed: {one_line(check.needed)})", "muted") if check.needed and not check.ok else ""
        )
        sign = mark("done" if check.ok else "failed", look)
        ref = f"check/{one_line(check.name)}"
        lines.append(
            line(sign, " ", Span(pad(one_line(check.name), width), "title"), f"  {found}", needed, ref=ref)
        )
        if check.hint:
            lines.append(line("    ", Span(one_line(check.hint), "note"), ref=ref))
    missing = sum(not check.ok for check in doctor.checks)
    # A check may fail and yet nothing be amiss: it costs what its hint says, and the rest works (M36).
    end = "Everything needed is there." if doctor.ok else f"{several(missing, 'check')} failed."
    lines += [line(), line(Span(end, "done" if doctor.ok else "failed"))]
    return Page(title="doctor", lines=tuple(lines))
