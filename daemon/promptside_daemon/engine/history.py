"""What a task's forms were, replayed from its facts: each version of each attempt's document, and who made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine.events import AnyEvent, Ordered, TaskCreated
from promptside_daemon.engine.step import born, step
from promptside_daemon.engine.task import FormState, Passed, Person, StageRun, Task


class Version(Struct, frozen=True, kw_only=True):
    """A form as one fact left it."""

    stage: str
    form: FormState
    at: float
    by: Person | None = None
    """Who changed it; None for what the agent handed over."""
    approved: bool = False
    """Whether a person approved it, as far as is known by then."""


def versions(events: Iterable[AnyEvent], document: str) -> tuple[Version, ...]:
    """Every version that one document has had, the oldest first; those of a new attempt follow the old one's."""
    found: list[Version] = []
    for event, task in _replayed(events):
        form = next((f for f in _forms(task) if f.document == document), None)
        if form is not None and (not found or found[-1].form is not form):
            stage = form.definition.stage
            found.append(Version(stage=stage, form=form, at=event.at, by=_person(event)))
    return tuple(found)


def last_of_attempt(events: Iterable[AnyEvent], stage: str, attempt: int) -> Version | None:
    """The form of an attempt as it was last, also where another has taken its place; None if it left none."""
    found: Version | None = None
    for event, task in _replayed(events):
        run = next((run for run in task.stages if run.id == stage), None)
        if run is None or run.form is None or run.form.attempt != attempt:
            continue
        if found is None or found.form is not run.form:
            found = Version(stage=stage, form=run.form, at=event.at, by=_person(event))
        found = replace(found, approved=_approved(run))
    return found


def _replayed(events: Iterable[AnyEvent]) -> Iterator[tuple[AnyEvent, Task]]:
    task: Task | None = None
    for event in events:
        if task is None:
            if not isinstance(event, TaskCreated):
                return  # the beginning is missing: nothing can be said of it
            task = born(event)
        task, _ = step(task, event)
        yield event, task


def _forms(task: Task) -> Iterator[FormState]:
    if task.questions is not None:
        yield task.questions
    for run in task.stages:
        if run.form is not None:
            yield run.form


def _approved(run: StageRun) -> bool:
    return isinstance(run.status, Passed) and run.status.by is not None


def _person(event: AnyEvent) -> Person | None:
    return event.by if isinstance(event, Ordered) else None
