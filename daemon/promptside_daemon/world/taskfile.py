"""`task.md`: the task itself as a document beside the code (UX section 2.10)."""

from __future__ import annotations

from promptside_daemon.engine.task import Task
from promptside_protocol import forms
from promptside_protocol.forms import Field, FieldsDefinition


def task_file(task: Task) -> str:
    """The text of a task's own document."""
    criteria = "\n".join(f"- [ ] {criterion}" for criterion in task.criteria)
    definition = FieldsDefinition(
        task=task.id,
        stage="task",
        attempt=1,
        title=f"Task {task.id}",
        sentence="What was ordered. A line that begins with >> is a note to the agent; send it with an action.",
        fields=(
            Field(key="title", label="Title", widget="line", required=True, value=_line(task.title)),
            Field(key="description", label="Description", required=True, value=task.description),
            Field(key="acceptance_criteria", label="Acceptance criteria", value=criteria),
            Field(key="affected_files", label="Affected files", widget="bullets", value=list(task.files)),
            Field(key="pipeline", label="Pipeline", widget="line", value=task.pipeline.name),
        ),
    )
    return forms.render(definition)


def _line(text: str) -> str:
    return " ".join(text.split())
