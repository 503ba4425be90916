"""From a stage's prompt template and what is known of the task to the text that the agent gets (ST-4).

Nothing a person or an agent said is lost: feedback, a failure or an input that the template has no place for
follows behind it.
"""

from __future__ import annotations

from msgspec import Struct, structs

from promptside_daemon.pipelines import template
from promptside_daemon.pipelines.template import PromptError, as_fault
from promptside_protocol.views import FaultView

CUT = 4_000
"""Characters of a failure that go into the next attempt's prompt (GA-7)."""


class TaskFacts(Struct, frozen=True, kw_only=True):
    """`task.…` in a template."""

    id: int = 0
    title: str = ""
    type: str = ""
    work_type: str = ""
    priority: int = 50
    files: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    directory: str = ""
    """Where the task's documents lie, those of earlier stages too."""


class ProjectFacts(Struct, frozen=True, kw_only=True):
    """`project.…` in a template."""

    name: str = ""
    path: str = ""


class StageFacts(Struct, frozen=True, kw_only=True):
    """`stage.…` in a template."""

    id: str = ""
    name: str = ""


class Variables(Struct, frozen=True, kw_only=True):
    """Everything that a template can name; what there is not is the empty text."""

    task_description: str = ""
    previous_output: str = ""
    """The approved output of the stage before, as a person left it."""
    user_input: str = ""
    user_decision: str = ""
    """What the person decided at the gate before, in words."""
    feedback: str = ""
    """Said with a redo."""
    failure: str = ""
    """Why the attempt before failed."""
    task: TaskFacts = TaskFacts()
    project: ProjectFacts = ProjectFacts()
    stage: StageFacts = StageFacts()


KNOWN: template.Known = {
    "task_description": frozenset(),
    "previous_output": frozenset(),
    "user_input": frozenset(),
    "user_decision": frozenset(),
    "feedback": frozenset(),
    "failure": frozenset(),
    "task": frozenset(TaskFacts.__struct_fields__),
    "project": frozenset(ProjectFacts.__struct_fields__),
    "stage": frozenset(StageFacts.__struct_fields__),
}

_BEHIND = {
    "user_input": "## From the developer",
    "feedback": "## What to do differently this time",
    "failure": "## The attempt before this one failed",
}


def render(stage_prompt: str, variables: Variables) -> str:
    """The prompt; raises PromptError, whose line counts in `stage_prompt`."""
    values = _values(variables)
    text = template.render(stage_prompt, values, KNOWN).strip("\n")
    used, _ = template.check(stage_prompt, KNOWN)
    behind = [
        f"{heading}\n\n{values[name]}"
        for name, heading in _BEHIND.items()
        if values[name] and name not in used
    ]
    return "\n\n".join([text, *behind]) + "\n"


def check(source: str, file: str = "", first_line: int = 1) -> list[FaultView]:
    """What is wrong with a template, found by reading it, and by rendering it with nothing and with all.

    `first_line` is the line of `file` on which the template begins.
    """
    if not source.strip():
        return [as_fault(PromptError(1, "The prompt is empty."), file, first_line)]
    _, faults = template.check(source, KNOWN)
    if not faults:
        for variables in (Variables(), _EXAMPLE):
            try:
                template.render(source, _values(variables), KNOWN)
            except PromptError as fault:
                faults = [fault]
                break
    return [as_fault(fault, file, first_line) for fault in faults]


def cut(text: str, limit: int = CUT) -> str:
    """At most `limit` characters in whole lines, from beginning and end: the cause may be in either."""
    if len(text) <= limit:
        return text
    lines = text.splitlines()
    mark = f"[… {len(lines)} lines left out …]"  # the longest that the mark can become
    room = limit - len(mark) - 2
    head = _whole_lines(lines, room // 3)
    tail = _whole_lines(lines[: len(head) - 1 if head else None : -1], room - sum(map(len, head)) - len(head))
    if sum(map(len, head)) + sum(map(len, tail)) < limit // 4:
        return text[:limit]  # the lines are too long to be kept whole
    left = len(lines) - len(head) - len(tail)
    return "\n".join([*head, f"[… {left} lines left out …]", *reversed(tail)])


_EXAMPLE = Variables(
    task_description="Add a login.",
    previous_output="Use sessions.",
    user_input="Keep it small.",
    user_decision="A: Sessions",
    feedback="Shorter.",
    failure="1 test failed.",
    task=TaskFacts(
        id=1,
        title="Login",
        type="feature",
        work_type="coding",
        files=("a", "b"),
        criteria=("c",),
        directory=".promptside/tasks/1-login",
    ),
    project=ProjectFacts(name="shop", path="/shop"),
    stage=StageFacts(id="planning", name="Planning"),
)


def _values(variables: Variables) -> dict[str, object]:
    """As plain values; a text of nothing but blanks counts as empty, so that its block vanishes."""
    values: dict[str, object] = {}
    for name, value in structs.asdict(variables).items():
        if isinstance(value, str):
            values[name] = value if value.strip() else ""
        else:
            values[name] = structs.asdict(value)
    return values


def _whole_lines(lines: list[str], room: int) -> list[str]:
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
