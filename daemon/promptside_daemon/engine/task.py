"""A task as the engine knows it: frozen data, each state with only what is true in it.

Times are seconds since 1970 and come in with the events; nothing here looks at a clock.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from promptside_daemon.engine.pipeline import Limits, Pipeline, Stage
from promptside_protocol.commands import OnAsk, Scope
from promptside_protocol.forms import Definition
from promptside_protocol.views import Change, Denial, OptionView, ProofView

Cause = Literal["first", "redo", "retry", "resumed", "answered"]
"""Why an attempt was made: the stage was entered, a person redid it, it had failed, it had been paused, or a
parked question was answered."""


class Person(Struct, frozen=True, kw_only=True):
    """Who gave an order, and from which client."""

    user: str
    client: str
    process: int = 0
    """Tells clients of one name apart, such as two windows of an editor; 0 where it is not known."""


# --- what an attempt is sent -------------------------------------------------------------------------


class SayText(Struct, frozen=True, kw_only=True, tag="say"):
    """A message of the person, or ours asking once more for an output that fits."""

    number: int
    text: str


class Interrupt(Struct, frozen=True, kw_only=True, tag="interrupt"):
    """Break off the turn; the agent lives and takes the next message."""

    number: int


class AllowTool(Struct, frozen=True, kw_only=True, tag="allow"):
    """The tool use that waits under this request may run."""

    number: int
    request: str


class DenyTool(Struct, frozen=True, kw_only=True, tag="deny"):
    """The tool use that waits under this request may not run; with `interrupt` the turn ends too."""

    number: int
    request: str
    message: str
    interrupt: bool = False


class Chosen(Struct, frozen=True, kw_only=True):
    """The answer to one question: ids of options, words of the person's own, or both; empty: not answered."""

    options: tuple[str, ...] = ()
    words: str = ""


class GiveAnswers(Struct, frozen=True, kw_only=True, tag="answers"):
    """The answers to the questions under this request, in their order."""

    number: int
    request: str
    answers: tuple[Chosen, ...]


Outgoing = SayText | Interrupt | AllowTool | DenyTool | GiveAnswers
"""A message for the agent; its number makes sending it twice the same as once."""


# --- attempts ----------------------------------------------------------------------------------------


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed: a stable kind, a sentence, what to do, and whether trying again may help."""

    kind: str
    sentence: str
    hint: str = ""
    retryable: bool = False
    until: float | None = None
    """When a limit ends: the attempt starts again by itself then, and it doesn't count as a retry."""


EndReason = Literal[
    "stopped", "paused", "parked", "taken_back", "gone_back", "abandoned", "broken", "condemned"
]


class Ending(Struct, frozen=True, kw_only=True):
    """Why we are ending a live attempt; what becomes of the stage when the process is gone."""

    why: EndReason
    failure: Failure | None = None
    """What it was condemned for; kept when a person ends it as well."""


class Live(Struct, frozen=True, kw_only=True):
    """What is true only while the process of an attempt may be there."""

    sent: int = 1
    """Number of the last message; 1 is the prompt."""
    outbox: tuple[Outgoing, ...] = ()
    read_to: int = 0
    """Byte of the transcript behind the last line that became an event."""
    heard: tuple[str, ...] = ()
    """What that line has told: one line may become several events."""
    reasked: bool = False
    said: int = 0
    """Messages of the person whose turn has not begun."""
    ending: Ending | None = None
    finished: bool = False
    """The agent gave its result; the process is about to end."""
    closed: float | None = None
    """Since when nothing more is asked of it; a process that stays is stopped."""


class Usage(Struct, frozen=True, kw_only=True):
    """What an attempt used; `session_cost` is cumulative over the session, as the CLI tells it (CLAUDE_CLI 0.8)."""

    input_tokens: int = 0
    output_tokens: int = 0
    session_cost: float = 0.0
    cost_usd: float = 0.0
    turns: int = 0


class Order(Struct, frozen=True, kw_only=True):
    """How an attempt is to start; what it is told is put together from it and the stage's prompt."""

    cause: Cause = "first"
    resume: str = ""
    """Session it goes on with; empty: a new one, with the whole prompt."""
    feedback: str = ""
    """What a person wants done differently."""
    failure: str = ""
    """Why the attempt before failed."""
    answers: str = ""
    """Questions and answers that this conversation has not heard."""
    note: str = ""
    """What the person should know of this start."""


class TerminalWork(Struct, frozen=True, kw_only=True):
    """What a person did in the conversation of an attempt, in a terminal of their own (ED-14)."""

    by: Person
    since: float
    until: float
    session: str
    transcript: str = ""
    """The CLI's own record of the conversation; empty where it was not found."""
    changes: tuple[Change, ...] = ()
    """The first of the paths that changed meanwhile, whoever changed them."""
    unlisted: int = 0


class Attempt(Struct, frozen=True, kw_only=True):
    """One run of one stage: one process, one attempt directory."""

    n: int
    id: str
    order: Order
    queued: float
    """When it got its slot."""
    started: float | None = None
    ended: float | None = None
    status: Literal["running", "done", "failed", "stopped", "paused", "parked"] = "running"
    live: Live | None = field(default_factory=Live)
    session: str = ""
    model: str = ""
    checkpoint: str = ""
    """The tree before it started."""
    usage: Usage | None = None
    failure: Failure | None = None
    changes: tuple[Change, ...] = ()
    """The first of the paths that it changed; the sums are over all of them."""
    undone: tuple[str, ...] = ()
    """Paths of these that the person has taken back since."""
    unlisted: int = 0
    """Changed paths that are not among them."""
    loc_added: int = 0
    loc_removed: int = 0
    proof: ProofView | None = None
    denials: tuple[Denial, ...] = ()
    note: str = ""
    terminals: tuple[TerminalWork, ...] = ()


# --- the form at a gate, and questions ---------------------------------------------------------------


class FormState(Struct, frozen=True, kw_only=True):
    """The definition of a form and its draft (ARCHITECTURE section 7); the file beside the code is its rendering."""

    document: str
    """Path of the file, relative to the project."""
    attempt: int
    definition: Definition
    answers: dict[str, Any] = {}
    version: int = 0
    shown: str = ""
    """Hash of the document as it stands with these answers."""
    began: str = ""
    """The same as the agent left it."""
    text: str = ""
    """Hash under which the whole text is kept in the attempt directory; empty: it is just the rendering."""
    raw: str = ""
    """Why the output is shown as it came: it did not fit its format, also after asking again (M30)."""


class Decision(Struct, frozen=True, kw_only=True):
    """What the agent asked of a person: a question, or a permission (CW-3, ST-14)."""

    id: str
    kind: Literal["one", "any", "text", "long_text", "files", "code", "yes_no", "permission"]
    stage: str
    attempt: int
    request: str
    """Under which the agent waits; the questions of one request are answered together."""
    asked: float
    text: str
    header: str = ""
    options: tuple[OptionView, ...] = ()
    other: bool = False
    required: bool = True
    priority: int = 1
    tool: str = ""
    what: str = ""
    why: str = ""
    rule: str = ""
    """The rule that “always” would make, in the CLI's syntax."""
    held: str = ""
    """The file that it is about, while an editor holds it unsaved (ED-11)."""
    status: Literal["open", "parked", "answered", "denied", "withdrawn"] = "open"
    parked: bool = False
    """Its process ended before the answer came: the next attempt is told."""
    answer: str = ""
    value: Any = None
    answered: float | None = None
    by: Person | None = None
    by_agent: bool = False
    """Of one that is withdrawn: the agent did not wait for it any more; else its turn was ended."""


class Grant(Struct, frozen=True, kw_only=True):
    """A permission that holds for an attempt or for the whole task."""

    rule: str
    scope: Scope
    stage: str
    attempt: int


# --- stages ------------------------------------------------------------------------------------------


class Ahead(Struct, frozen=True, tag="ahead"):
    """Not reached yet."""


class AwaitsInput(Struct, frozen=True, kw_only=True, tag="awaits_input"):
    """Reached; `run` starts it."""

    since: float


class Queued(Struct, frozen=True, kw_only=True, tag="queued"):
    """Wants one of the slots for agents."""

    since: float
    order: Order


class Running(Struct, frozen=True, kw_only=True, tag="running"):
    """Its last attempt is live."""

    since: float


class RetryDue(Struct, frozen=True, kw_only=True, tag="retry_due"):
    """Failed, and tried again by itself at a time."""

    since: float
    at: float
    order: Order
    n: int = 0
    """Number of the retry; 0 waits for the end of a limit and counts as none."""


class Parked(Struct, frozen=True, kw_only=True, tag="parked"):
    """A question stayed open so long that the process was ended; the answer resumes the session."""

    since: float


class Held(Struct, frozen=True, kw_only=True, tag="held"):
    """Paused in the middle; resuming starts an attempt with this order."""

    since: float
    order: Order


class AtGate(Struct, frozen=True, kw_only=True, tag="at_gate"):
    """Its output waits for a person."""

    since: float
    why: str = ""
    """Why it waits again, where it was approved before (M12)."""


class Passed(Struct, frozen=True, kw_only=True, tag="passed"):
    """Approved by a person, or without a gate (`by` is None)."""

    at: float
    by: Person | None = None
    shown: str = ""
    note: str = ""
    all_at_once: bool = False
    void: str = ""
    """Why the approval no longer vouches for what stands there (CW-23)."""


class Skipped(Struct, frozen=True, kw_only=True, tag="skipped"):
    """Left out, by whom and why."""

    at: float
    by: Person | None = None
    reason: str = ""


class Stuck(Struct, frozen=True, kw_only=True, tag="stuck"):
    """Failed, with nothing more to try by itself: a person decides."""

    since: float
    failure: Failure
    order: Order = field(default_factory=Order)
    """How it is tried again, if a person says so."""


Status = Ahead | AwaitsInput | Queued | Running | RetryDue | Parked | Held | AtGate | Passed | Skipped | Stuck


class StageRun(Struct, frozen=True, kw_only=True):
    """A stage of a task: its status and all its attempts."""

    id: str
    status: Status = Ahead()
    attempts: tuple[Attempt, ...] = ()
    form: FormState | None = None
    formed: int = 0
    """Version of the next form's draft: an edit that was based on an older form is never taken for a newer one."""
    retries: int = 0
    """Retries used since the stage was entered (GA-7)."""
    input: str = ""
    """What the person added, for every attempt of this stage."""
    mark: str = ""
    """“built on an older DESIGN.md”."""

    @property
    def last(self) -> Attempt | None:
        """The newest attempt."""
        return self.attempts[-1] if self.attempts else None


# --- the task ----------------------------------------------------------------------------------------


class Draft(Struct, frozen=True, kw_only=True, tag="draft"):
    """Written down, not to be run yet."""

    since: float


class Ready(Struct, frozen=True, kw_only=True, tag="ready"):
    """Can be run."""

    since: float


class Taken(Struct, frozen=True, kw_only=True, tag="taken"):
    """Under way, from its first run: running or waiting."""

    since: float
    by: Person


class Paused(Struct, frozen=True, kw_only=True, tag="paused"):
    """Held by a person; `by` took it before."""

    since: float
    by: Person


class Completed(Struct, frozen=True, kw_only=True, tag="completed"):
    """Every stage is approved or skipped."""

    since: float


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    """Broken by a fault of ours; nothing more is done with it."""

    since: float
    reason: str


class Archived(Struct, frozen=True, kw_only=True, tag="archived"):
    """Put away; `reason` says `abandoned` when it was not done."""

    since: float
    reason: str


Life = Draft | Ready | Taken | Paused | Completed | Failed | Archived


class TakenOver(Struct, frozen=True, kw_only=True):
    """A person goes on with a conversation in a terminal: until it is given back nobody else does (ED-14)."""

    since: float
    clock: str
    """Since when, in the person's own time: `14:05`."""
    by: Person
    stage: str
    attempt: int
    session: str
    was_paused: bool = False
    """The task was paused before, and stays so."""
    pid: int = 0
    """Process that holds the terminal; while it lives, nobody else gives back. 0: nobody knows."""
    pid_started: str = ""


class Undoing(Struct, frozen=True, kw_only=True):
    """Files that are being put back."""

    stage: str
    attempt: int
    paths: tuple[str, ...]


class Task(Struct, frozen=True, kw_only=True):
    """One piece of work going through a pipeline."""

    id: int
    project: str
    """Path of the project's root."""
    slug: str
    title: str
    description: str = ""
    kind: str = "feature"
    work_type: str = "coding"
    priority: int = 50
    criteria: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    agent: str = "claude"
    created: float
    pipeline: Pipeline
    limits: Limits = field(default_factory=Limits)
    life: Life
    stages: tuple[StageRun, ...]
    current: int = 0
    """Index of the stage that runs, waits or comes next; the number of stages when all are passed."""
    on_ask: OnAsk = "wait"
    stage_only: bool = False
    decisions: tuple[Decision, ...] = ()
    questions: FormState | None = None
    """The document of the open questions."""
    round: int = 0
    """Question rounds so far."""
    grants: tuple[Grant, ...] = ()
    undoing: Undoing | None = None
    taken_over: TakenOver | None = None
    """While it is, the task is paused."""
    wake_at: float | None = None

    @property
    def directory(self) -> str:
        """Where its documents are, relative to the project."""
        return f".promptside/tasks/{self.id}-{self.slug}"

    @property
    def run(self) -> StageRun | None:
        """The current stage's run; None when all stages are passed."""
        return self.stages[self.current] if self.current < len(self.stages) else None

    @property
    def stage(self) -> Stage | None:
        """The current stage's definition."""
        return self.pipeline.stages[self.current] if self.current < len(self.stages) else None

    @property
    def open_decisions(self) -> tuple[Decision, ...]:
        """What waits for a person's answer, parked or not."""
        return tuple(d for d in self.decisions if d.status in ("open", "parked"))

    @property
    def open_questions(self) -> tuple[Decision, ...]:
        """What waits for an answer in the questions' document."""
        return tuple(d for d in self.open_decisions if d.kind != "permission")


def with_run(task: Task, index: int, run: StageRun) -> Task:
    """The task with one stage replaced."""
    return replace(task, stages=(*task.stages[:index], run, *task.stages[index + 1 :]))


def with_attempt(run: StageRun, attempt: Attempt) -> StageRun:
    """The stage with its attempt of the same number replaced."""
    return replace(run, attempts=tuple(attempt if a.n == attempt.n else a for a in run.attempts))


def left_changes(attempt: Attempt) -> tuple[Change, ...]:
    """What is left of what an attempt changed."""
    return tuple(change for change in attempt.changes if change.path not in attempt.undone)


def find_attempt(task: Task, attempt: str) -> tuple[int, StageRun, Attempt] | None:
    """Where an attempt stands, by its id."""
    for index, run in enumerate(task.stages):
        for candidate in run.attempts:
            if candidate.id == attempt:
                return index, run, candidate
    return None


def with_attempt_of(task: Task, attempt: Attempt) -> Task:
    """The task with this attempt in place of the one of its id."""
    found = find_attempt(task, attempt.id)
    return task if found is None else with_run(task, found[0], with_attempt(found[1], attempt))


def with_live(task: Task, attempt: Attempt, **changes: Any) -> Task:
    """The task with something changed of what is true while this attempt lives."""
    if attempt.live is None:
        return task
    return with_attempt_of(task, replace(attempt, live=replace(attempt.live, **changes)))


def find_stage(task: Task, stage: str) -> tuple[int, StageRun] | None:
    """Where a stage stands, by its id."""
    index = task.pipeline.index(stage)
    return (index, task.stages[index]) if index >= 0 else None


def live_attempt(task: Task) -> Attempt | None:
    """The attempt whose process may be there; there is at most one in a task."""
    for run in task.stages:
        last = run.last
        if last is not None and last.live is not None:
            return last
    return None
