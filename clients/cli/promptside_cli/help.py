"""What `--help` prints: all verbs, or one with an example."""

from __future__ import annotations

from promptside_cli.arguments import Verb
from promptside_cli.verbs import VERBS

USAGE = "promptside VERB [WORDS] [--project PATH] [--json] [--color auto|always|never]"

_GROUPS = (
    ("Begin", ("demo", "doctor", "project", "pipeline", "trust")),
    ("Tasks", ("task", "run", "watch", "next", "log")),
    ("Decide", ("open", "approve", "take-back", "redo", "answer", "decision", "rules")),
    (
        "Steer",
        ("back", "skip", "retry", "pause", "resume", "stop", "say", "take-over", "give-back", "diff", "undo"),
    ),
    ("Keep house", ("daemon", "gc", "lsp")),
)

_EXITS = """\
Exit codes: 0 done, 1 the stage or the agent failed, 2 usage, 3 waits for a person, 4 refused,
5 the daemon can't be reached or started, 130 detached by Ctrl-C."""


def overview() -> str:
    """All verbs, grouped by what a person wants."""
    width = max(len(name) for name in VERBS)
    lines = [f"usage: {USAGE}", ""]
    for title, heads in _GROUPS:
        lines.append(title)
        for head in heads:
            found = [verb for name, verb in VERBS.items() if name == head or name.startswith(f"{head} ")]
            found = [verb for verb in found if verb.name != "rules list"]  # the same as `rules`
            lines += [f"  {verb.name:<{width}}  {verb.summary}" for verb in found]
        lines.append("")
    lines += [
        "TASK is a number, or @: the only open task, else the one that changed last. Without it, @ is taken.",
        "A word that is no option of its verb is text, also one with “-” in front. Behind “--” all is text.",
        "“promptside VERB --help” shows one verb with an example.",
        "",
        _EXITS,
    ]
    return "\n".join(lines)


def of(verb: Verb) -> str:
    """One verb."""
    return f"usage: {verb.usage}\n\n{verb.summary[:1].upper()}{verb.summary[1:]}.\n\nExample: {verb.example}"
