"""A task as clients see it: whole, small, plain data; names are those of the terminal's contract.

Bodies (prompts, transcripts, outputs) appear as paths; what is long is asked for by a query.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

TaskState = Literal[
    "draft", "pending", "ready", "taken", "paused", "expired", "completed", "failed", "archived"
]
StageStatus = Literal["future", "current", "running", "checking", "waiting", "approved", "skipped", "failed"]
AttemptStatus = Literal["running", "done", "failed", "stopped", "paused", "parked"]
DecisionKind = Literal["one", "any", "text", "long_text", "files", "code", "yes_no", "permission", "plan"]
GateType = Literal[
    "require_approval", "require_selection", "require_all_checked", "require_fields", "sign_off"
]


class View(Struct, frozen=True, kw_only=True):
    """What every document of the protocol is: data that can be shown as it is."""


class Change(View, frozen=True, kw_only=True):
    """A path that an attempt changed."""

    path: str
    kind: Literal["added", "modified", "deleted", "type"]
    added: int | None = None
    removed: int | None = None


class ProofView(View, frozen=True, kw_only=True):
    """What the read-only proof found (ST-16)."""

    verdict: Literal["proved", "breach", "meanwhile", "none"]
    breach: tuple[str, ...] = ()
    meanwhile: tuple[str, ...] = ()


class Denial(View, frozen=True, kw_only=True):
    """A tool use that was denied without asking a person, and why."""

    tool: str
    what: str
    reason: str


class TerminalWorkView(View, frozen=True, kw_only=True):
    """What a person did in an attempt's conversation, in a terminal of their own (ED-14)."""

    by: str
    client: str
    since: float
    until: float
    session: str
    transcript: str = ""
    """The CLI's own record of the conversation; empty where it was not found."""
    changes: tuple[Change, ...] = ()
    """What changed meanwhile, whoever changed it; `unlisted` more paths are not among them."""
    unlisted: int = 0


class AttemptView(View, frozen=True, kw_only=True):
    """One run of one stage; paths are absolute, times seconds since 1970."""

    n: int
    id: str
    status: AttemptStatus
    cause: str
    session: str
    started: float | None
    ended: float | None
    duration_s: float | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    model: str
    prompt: str
    transcript: str
    error: str | None
    hint: str = ""
    changes: tuple[Change, ...] = ()
    """What is left of what it changed: what was taken back is not among them."""
    proof: ProofView | None = None
    denials: tuple[Denial, ...] = ()
    resumed: bool = False
    note: str = ""
    """What the person should know of it: started afresh because the session was gone, output lost, …"""
    terminals: tuple[TerminalWorkView, ...] = ()
    feedback: str = ""
    """What the person said when they sent the one before back."""


class Approval(View, frozen=True, kw_only=True):
    """Who approved which bytes, when, and from where (CW-23)."""

    by: str
    client: str
    at: float
    shown: str
    note: str = ""
    all_at_once: bool = False
    edited: bool = False
    """Whether what was approved is the agent's with changes of a person."""
    selected: tuple[str, ...] = ()
    """Of options, those that were chosen."""


class StageView(View, frozen=True, kw_only=True):
    """One stage of a task."""

    id: str
    name: str
    status: StageStatus
    format: str
    tools: tuple[str, ...] | None
    rule: str
    """In words: `read-only`, `edits allowed, asks for the rest`, `everything allowed`."""
    stopped: bool = False
    """With `failed`: a person stopped it; it waits for their word, and nothing went wrong."""
    attempts: tuple[AttemptView, ...] = ()
    artifact: str | None = None
    """The document beside the code, relative to the project; None before there is one."""
    since: float | None = None
    approval: Approval | None = None
    reason: str = ""
    """Why it was skipped, failed or is marked (“built on an older DESIGN.md”)."""
    retry_at: float | None = None
    """When the next attempt begins by itself; None where none is due."""
    input: str = ""
    """What the person said when they started it, for every attempt."""


class OptionView(View, frozen=True, kw_only=True):
    """A choice."""

    id: str
    title: str
    description: str = ""
    recommended: bool = False


class ItemView(View, frozen=True, kw_only=True):
    """An item of a checklist."""

    id: str
    text: str
    severity: Literal["critical", "warning", "info"]
    ticked: bool = False
    note: str = ""
    path: str = ""
    line: int | None = None


class DecisionView(View, frozen=True, kw_only=True):
    """A question of the agent, or a permission it asks for (CW-3, CW-4, ST-14)."""

    id: str
    kind: DecisionKind
    priority: int
    required: bool
    text: str
    stage: str = ""
    attempt: int = 0
    header: str = ""
    options: tuple[OptionView, ...] = ()
    other: bool = False
    """Whether an answer of one's own is taken."""
    tool: str = ""
    what: str = ""
    """The exact command or path that a permission is asked for."""
    why: str = ""
    status: Literal["open", "parked", "answered", "denied", "withdrawn"] = "open"
    answer: str = ""
    asked: float | None = None
    answered: float | None = None
    by: str = ""
    client: str = ""
    by_agent: bool = False
    """Of one that is withdrawn: by the agent; else it was ended before an answer came."""


class GateView(View, frozen=True, kw_only=True):
    """What a gate takes, and what it still lacks."""

    type: GateType
    shown: str
    min: int | None = None
    max: int | None = None
    options: tuple[OptionView, ...] = ()
    selected: tuple[str, ...] = ()
    items: tuple[ItemView, ...] = ()
    fields: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    version: int = 0
    """The draft's version, on which an edit is based."""


class WaitingFor(View, frozen=True, kw_only=True):
    """What a task waits for, and for whom."""

    kind: Literal["gate", "decision", "input", "person"]
    stage: str
    since: float
    document: str | None = None
    gate: GateView | None = None
    decisions: tuple[DecisionView, ...] = ()
    reason: str = ""


class Offer(View, frozen=True, kw_only=True):
    """What a person can do here and now; `blocked` is the reason why not, else None.

    Lens, code action, button, key and the terminal's hint are drawings of it.
    """

    command: str
    title: str
    args: dict[str, Any] = {}
    place: str = ""
    """Empty for the task or its document; else the id of an item, question or stage."""
    primary: bool = False
    danger: bool = False
    needs_text: bool = False
    blocked: str | None = None
    hint: str = ""
    """The same in the terminal: `promptside approve 12 --select A`."""


class Metrics(View, frozen=True, kw_only=True):
    """Sums over the attempts; None where nothing has been measured yet (SI-8)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0
    agent_runs: int = 0
    loc_added: int | None = None
    loc_removed: int | None = None
    loc_prod: int | None = None
    loc_test: int | None = None
    doc_words: int | None = None
    recorded: bool = False
    """The tokens and the cost, here and in the attempts, are those of a recording: nothing was spent."""


class TerminalView(View, frozen=True, kw_only=True):
    """A conversation that a person goes on with in a terminal; until it is given back the task is paused (ED-14)."""

    since: float
    by: str
    client: str
    stage: str
    attempt: int
    session: str
    words: str
    """“You work on it in a terminal since 14:05.”"""


class TaskView(View, frozen=True, kw_only=True):
    """A task, whole."""

    seq: int
    id: int
    project: str
    title: str
    description: str
    """Cut at 2,000 characters; the whole is in `task.md`."""
    state: TaskState
    state_since: float
    claimed_by: str | None
    reason: str | None
    pipeline: str
    type: str
    work_type: str
    priority: int
    agent: str
    stages: tuple[StageView, ...]
    current: str | None
    waiting_for: WaitingFor | None
    decisions: tuple[DecisionView, ...] = ()
    """The last 20 that are settled, and all that are open."""
    offers: tuple[Offer, ...] = ()
    branch: str | None = None
    worktree: str | None = None
    directory: str
    """Where its documents are, relative to the project."""
    metrics: Metrics
    error: str | None = None
    terminal: TerminalView | None = None
    created: float


class Step(View, frozen=True, kw_only=True):
    """One line of what the agent did last."""

    role: str
    text: str
    path: str = ""
    line: int | None = None
    at: float = 0.0
    ok: bool | None = None


class Activity(View, frozen=True, kw_only=True):
    """What the agent does now; dropped when late, never stored."""

    project: str
    task: int
    stage: str
    attempt: int
    cursor: int
    line: str
    context_percent: int | None = None
    step: int = 0
    """How many steps of its own list the agent has finished; `steps` is 0 where it keeps none."""
    steps: int = 0
    last: tuple[Step, ...] = ()


class ProjectView(View, frozen=True, kw_only=True):
    """A directory that Promptside knows."""

    id: str
    name: str
    path: str
    added: float
    waiting: int = 0
    running: int = 0
    tasks: int = 0
    trust: Literal["none_needed", "untrusted", "trusted", "changed"] = "none_needed"
    error: str | None = None
    """Why its database can't be used; the others go on."""


class RuleView(View, frozen=True, kw_only=True):
    """A permission given for good, with its origin (ST-14)."""

    id: int
    rule: str
    task: int
    stage: str
    by: str
    client: str
    at: float


class DaemonView(View, frozen=True, kw_only=True):
    """The daemon itself."""

    pid: int
    version: str
    protocol: int
    uptime_s: float
    attempts: tuple[str, ...]
    clients: int
    log: str = ""


class Check(View, frozen=True, kw_only=True):
    """One line of `doctor`."""

    name: str
    ok: bool
    found: str
    needed: str = ""
    hint: str = ""


class Doctor(View, frozen=True, kw_only=True):
    """What is there, what is missing, what to do (DA-8)."""

    ok: bool
    checks: tuple[Check, ...]


class PipelineStageView(View, frozen=True, kw_only=True):
    """A stage as `pipeline show` lists it."""

    id: str
    name: str
    output: str
    gate: dict[str, Any] | None
    tools: tuple[str, ...] | None
    artifact: str
    skip: tuple[str, ...] = ()
    description: str = ""
    input: str = "previous"
    permission: str = "ask"
    prompt: str = ""
    """Path of the prompt's file; empty where the prompt stands in the pipeline's file."""


class PipelineView(View, frozen=True, kw_only=True):
    """A pipeline."""

    name: str
    title: str
    version: str
    origin: str
    path: str
    stages: tuple[PipelineStageView, ...]


class FaultView(View, frozen=True, kw_only=True):
    """What is wrong in a pipeline, prompt or settings file, and where; lines and columns count from 1."""

    file: str
    line: int
    column: int
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"


class Fix(View, frozen=True, kw_only=True):
    """An edit that mends a fault: `text` in place of what stands there; with `create`, in a file to be made."""

    title: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    create: bool = False


class TextFault(View, frozen=True, kw_only=True):
    """What is wrong in a text that an editor holds, from a place to behind one; columns count characters."""

    kind: Literal["toml", "pipeline", "prompt", "settings"]
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    fix: Fix | None = None
    source: FaultView | None = None
    """The fault where it really is, if that is another file, such as a prompt's."""


class TextStage(View, frozen=True, kw_only=True):
    """A stage as a pipeline file has it, faulty or not; `file` and `line` are where it begins."""

    file: str
    line: int
    id: str
    name: str
    artifact: str
    uses: bool = False
    """Whether its prompt is the text that was checked."""


class TextCheck(View, frozen=True, kw_only=True):
    """What a text holds, saved or not: its faults, and the stages of the pipelines that it belongs to."""

    faults: tuple[TextFault, ...]
    stages: tuple[TextStage, ...] = ()


class Word(View, frozen=True, kw_only=True):
    """A word that may stand in a pipeline, prompt or settings file, and what it means, in one sentence."""

    name: str
    meaning: str
    type: str = ""
    default: str = ""
    """As a file would have it; empty where there is none."""
    values: tuple[str, ...] = ()
    """The values it can have, where they are few."""


class Table(View, frozen=True, kw_only=True):
    """A table of a TOML file; `name` as in its header, empty for the top of the file."""

    name: str
    meaning: str
    keys: tuple[Word, ...]


class Variable(View, frozen=True, kw_only=True):
    """A variable of templates; without parts it is a text."""

    name: str
    meaning: str
    parts: tuple[Word, ...] = ()


class VocabularyView(View, frozen=True, kw_only=True):
    """Everything that can be written in pipeline, prompt and settings files."""

    pipeline: tuple[Table, ...]
    settings: tuple[Table, ...]
    gates: tuple[Word, ...]
    tools: tuple[Word, ...]
    models: tuple[Word, ...]
    variables: tuple[Variable, ...]
    filters: tuple[Word, ...]
    tests: tuple[Word, ...]
    """What can stand behind `is` in a template."""


class PipelineList(View, frozen=True, kw_only=True):
    """The pipelines that a project can use, and the files that can't be."""

    pipelines: tuple[PipelineView, ...]
    faults: tuple[FaultView, ...] = ()


class TrustItem(View, frozen=True, kw_only=True):
    """Something a project brings that would run, or be sent to the agent."""

    path: str
    what: str
    changed: bool = False


class TrustView(View, frozen=True, kw_only=True):
    """What trusting a project means, now."""

    state: Literal["none_needed", "untrusted", "trusted", "changed"]
    hash: str
    sentence: str
    items: tuple[TrustItem, ...] = ()


class Garbage(View, frozen=True, kw_only=True):
    """What retention removes."""

    attempts: tuple[str, ...]
    bytes: int
