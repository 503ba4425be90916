"""A pipeline, tasks in every status, events of every kind, and what is always true of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from promptside_daemon.engine import events as e
from promptside_daemon.engine import step as steps
from promptside_daemon.engine.decide import Given, decide
from promptside_daemon.engine.effects import Effect
from promptside_daemon.engine.gate import Sheet, waiting
from promptside_daemon.engine.pipeline import (
    Limits,
    Pipeline,
    RequireAllChecked,
    RequireFields,
    RequireSelection,
    Stage,
)
from promptside_daemon.engine.task import (
    Ahead,
    Archived,
    AtGate,
    AwaitsInput,
    Completed,
    Draft,
    Failed,
    Failure,
    FormState,
    Held,
    Life,
    Parked,
    Passed,
    Paused,
    Person,
    Queued,
    Ready,
    RetryDue,
    Running,
    Skipped,
    Taken,
    Task,
    Usage,
    find_attempt,
    live_attempt,
)
from promptside_protocol import commands as c
from promptside_protocol import forms
from promptside_protocol.views import Change, OptionView, ProofView

ADA = Person(user="ada", client="Neovim")
PROJECT = "/home/ada/shop"
AT: dict[str, Any] = {"project": PROJECT, "task": 12}

PIPELINE = Pipeline(
    name="small",
    stages=(
        Stage(id="research", name="Research", prompt="r", tools=("Read", "Grep"), permission="deny"),
        Stage(
            id="approaches",
            name="Approaches",
            prompt="a",
            output="options",
            gate=RequireSelection(min=1, max=1),
            tools=(),
        ),
        Stage(id="notes", name="Notes", prompt="n", gate=None),
        Stage(id="build", name="Build", prompt="b", input="both", session="continue"),
        Stage(
            id="review",
            name="Review",
            prompt="s",
            output="checklist",
            gate=RequireAllChecked(),
            fix="build",
            tools=("Read",),
        ),
        Stage(
            id="pr",
            name="PR",
            prompt="p",
            output="structured",
            gate=RequireFields(fields=("title", "description")),
            artifact="PR.md",
        ),
    ),
)
"""Each gate once, one stage without any, one that waits for input, one that goes on in the session before it."""

APPROVALS: dict[str, dict[str, Any]] = {
    "research": {},
    "approaches": {"A": True},
    "build": {},
    "review": {"C1": {"ticked": True}, "W1": {"ticked": True, "note": "seen"}},
    "pr": {"title": "Add login", "description": "Sessions in Postgres."},
}
"""Answers that satisfy each gate."""


def definition(stage: str, attempt: int = 1) -> forms.Definition:
    """What a stage's agent hands over."""
    of = next(s for s in PIPELINE.stages if s.id == stage)
    frame: dict[str, Any] = {"task": 12, "stage": stage, "attempt": attempt, "title": of.name}
    match of.output:
        case "options":
            options = (
                forms.Option(id="A", title="Cookies", recommended=True),
                forms.Option(id="B", title="Tokens"),
            )
            return forms.OptionsDefinition(**frame, options=options)
        case "checklist":
            items = (
                forms.CheckItem(id="C1", severity="critical", title="Injection", path="a.py", line=4),
                forms.CheckItem(id="W1", severity="warning", title="Long session"),
            )
            return forms.ChecklistDefinition(**frame, items=items)
        case "structured":
            fields = (
                forms.Field(key="title", label="Title", widget="line", required=True),
                forms.Field(key="description", label="Description", required=True),
            )
            return forms.FieldsDefinition(**frame, fields=fields)
        case _:
            return forms.TextDefinition(**frame)


def created(**changes: Any) -> e.TaskCreated:
    """A task as `task new` makes it."""
    plain: dict[str, Any] = {
        "at": 1.0,
        "by": ADA,
        "id": 12,
        "project": PROJECT,
        "slug": "add-login",
        "title": "Add login",
        "description": "With sessions.",
        "kind": "feature",
        "work_type": "coding",
        "priority": 50,
        "criteria": (),
        "files": (),
        "agent": "claude",
        "pipeline": PIPELINE,
        "limits": Limits(),
        "draft": False,
    }
    return e.TaskCreated(**{**plain, **changes})


def sheet(form: FormState, laid: dict[str, Any] | None = None, **changes: Any) -> Sheet:
    """A form document as the loop reads it: the draft, with an order's answers laid over it."""
    try:
        answers = forms.from_plain(form.definition, {**form.answers, **(laid or {})})
    except forms.FormError:  # answers for another form: the loop refuses them before anything is decided
        answers = forms.from_plain(form.definition, form.answers)
    text = forms.render(form.definition, answers)
    plain: dict[str, Any] = {
        "document": form.document,
        "answers": forms.to_plain(forms.parse(form.definition, text).answers),
        "shown": forms.shown(form.definition, text),
        "before": form.shown,
    }
    return Sheet(**{**plain, **changes})


def given(task: Task, command: Any, at: float = 1e6, **changes: Any) -> Given:
    """What the loop reads for an order."""
    form: FormState | None = None
    laid = getattr(command, "answers", {})
    match command:
        case c.Approve(stage=stage):
            run = waiting(task, stage)
            form = run.form if run is not None else None
        case c.SendAnswers():
            form = task.questions
        case c.EditDraft(document=document):
            of_stages = [r.form for r in task.stages if r.form is not None]
            found = [f for f in (task.questions, *of_stages) if f is not None and f.document == document]
            form = found[0] if found else None
        case _:
            pass
    of = sheet(form, laid) if form is not None else None
    return Given(**{"at": at, "by": ADA, "sheet": of, **changes})


class Play:
    """One task, told what is ordered and what happens; keeps the journal and every effect."""

    def __init__(self, **changes: Any) -> None:
        first = created(**changes)
        self.now = 1.0
        self.journal: list[e.AnyEvent] = [first]
        self.offset = 0
        self.task, effects = steps.step(steps.born(first), first)
        self.effects: list[Effect] = list(effects)
        self.last: tuple[Effect, ...] = effects

    # --- what comes in ---------------------------------------------------------------------------------

    def tell(self, event: e.AnyEvent) -> Play:
        self.task, self.last = steps.step(self.task, event)
        self.journal.append(event)
        self.effects += self.last
        return self

    def order(self, command: Any, **changes: Any) -> Play:
        self.now += 1
        return self.tell(decide(self.task, command, given(self.task, command, self.now, **changes)))

    def on(self, kind: type[e.Observed], *, line: bool = True, **fields: Any) -> Play:
        """Something the live attempt told, as a new line of its transcript unless it is no line."""
        self.now += 1
        self.offset += 10 if line else 0
        attempt = live_attempt(self.task)
        name = fields.pop("attempt", attempt.id if attempt is not None else "none")
        return self.tell(kind(at=self.now, attempt=name, offset=self.offset if line else 0, **fields))

    # --- what happens ----------------------------------------------------------------------------------

    def granted(self) -> Play:
        run = self.task.run
        self.now += 1
        n = sum(len(r.attempts) for r in self.task.stages) + 1
        return self.tell(e.SlotGranted(at=self.now, stage=run.id if run else "", attempt=f"t12-{n:04}"))

    def started(self) -> Play:
        attempt = live_attempt(self.task)
        session = attempt.order.resume or f"session-{attempt.id}" if attempt is not None else ""
        self.offset = 0
        self.on(e.AttemptStarted, line=False, checkpoint="tree-1")
        return self.on(e.SessionOpened, session=session, model="opus")

    def runs(self) -> Play:
        return self.granted().started()

    def turn(self, **fields: Any) -> Play:
        """A result; without anything said of it one that fits."""
        stage, attempt = self.task.stage, live_attempt(self.task)
        if not fields.keys() & {"failure", "definition", "interrupted"} and stage is not None:
            of = definition(stage.id, attempt.n if attempt is not None else 1)
            fields = {"definition": of, "shown": forms.shown(of, forms.render(of)), "text": "kept", **fields}
        usage = fields.pop("usage", Usage(input_tokens=100, output_tokens=10, session_cost=0.5, turns=1))
        return self.on(e.TurnEnded, usage=usage, **fields)

    def ended(self, **fields: Any) -> Play:
        return self.on(e.AttemptEnded, line=False, **fields)

    def done(self) -> Play:
        """The current stage, from its slot to its gate."""
        return self.runs().turn().ended()

    def fails(self, **fields: Any) -> Play:
        plain: dict[str, Any] = {"kind": "died", "sentence": "The agent died.", "retryable": True}
        return self.runs().ended(failure=Failure(**{**plain, **fields}))

    def asks(self, *questions: e.Question, request: str = "r1") -> Play:
        return self.on(e.QuestionsAsked, request=request, questions=questions or (ONE,))

    def asks_leave(self, request: str = "p1", rule: str = "Bash(npm install)") -> Play:
        return self.on(
            e.PermissionAsked,
            request=request,
            tool="Bash",
            what="npm install",
            text="The agent wants to run `npm install`.",
            rule=rule,
        )

    def woke(self, at: float | None = None) -> Play:
        self.now = max(self.now, self.task.wake_at or self.now) if at is None else at
        return self.tell(e.Woke(at=self.now))

    def approved(self, **changes: Any) -> Play:
        stage = self.task.stage
        return self.order(
            c.Approve(**AT, answers=APPROVALS.get(stage.id, {}) if stage is not None else {}, **changes)
        )

    def to(self, stage: str) -> Play:
        """Go on until this stage wants a slot."""
        if isinstance(self.task.life, Ready):
            self.order(c.Run(**AT))
        while self.task.run is not None and self.task.run.id != stage:
            self.done()
            if self.task.run is not None and isinstance(self.task.run.status, AtGate):
                self.approved()
            if self.task.run is not None and isinstance(self.task.run.status, AwaitsInput):
                self.order(c.Run(**AT))
        return self

    # --- what is so ------------------------------------------------------------------------------------

    @property
    def status(self) -> Any:
        return self.task.run.status if self.task.run is not None else None

    def statuses(self) -> list[str]:
        return [str(r.status.__struct_config__.tag) for r in self.task.stages]

    @property
    def attempt(self) -> Any:
        return live_attempt(self.task)

    def kinds(self) -> list[str]:
        return [str(x.__struct_config__.tag) for x in self.last]


def question(text: str = "Which login?", **changes: Any) -> e.Question:
    options = (OptionView(id="A", title="Sessions", recommended=True), OptionView(id="B", title="Tokens"))
    return e.Question(**{"kind": "one", "text": text, "options": options, **changes})


ONE = question()
OPTIONAL = question("Any wishes?", kind="text", options=(), required=False)
BREACH = ProofView(verdict="breach", breach=("src/a.py",))
CHANGED = (Change(path="src/a.py", kind="modified", added=3, removed=1),)
FAILED = Failure(kind="died", sentence="The agent died.", retryable=True)


CHANGED_SINCE = e.ArtifactChanged(at=900.0, stage="research", shown="other")


def ran() -> Play:
    return Play().order(c.Run(**AT))


PLAYS: dict[str, Callable[[], Play]] = {
    "draft": lambda: Play(draft=True),
    "ready": Play,
    "ready, first stage skipped": lambda: Play().order(c.Skip(**AT)),
    "queued": ran,
    "starting": lambda: ran().granted(),
    "running": lambda: ran().runs(),
    "asking": lambda: ran().runs().asks(ONE, OPTIONAL),
    "asking twice": lambda: ran().runs().asks(ONE).asks(question("Which test?"), request="r2"),
    "asking leave": lambda: ran().runs().asks_leave(),
    "asking leave without a rule": lambda: ran().runs().asks_leave(rule=""),
    "asking everything": lambda: ran().runs().asks().asks_leave().asks_leave(request="p2"),
    "told something": lambda: ran().runs().order(c.Say(**AT, text="Shorter.")),
    "asked again": lambda: ran().runs().turn(invalid="no object"),
    "finished": lambda: ran().runs().turn(),
    "stopping": lambda: ran().runs().order(c.Stop(**AT)),
    "stopping before the start": lambda: ran().granted().order(c.Stop(**AT)),
    "condemned": lambda: ran().runs().on(e.Condemned, line=False, failure=FAILED),
    "pausing": lambda: ran().runs().order(c.Pause(**AT)),
    "pausing, resumed": lambda: ran().runs().order(c.Pause(**AT)).order(c.Resume(**AT)),
    "pausing with a question": lambda: ran().runs().asks().order(c.Pause(**AT)),
    "parking": lambda: ran().runs().asks(ONE, OPTIONAL).woke(),
    "parked": lambda: ran().runs().asks(ONE, OPTIONAL).woke().turn(interrupted=True, failure=FAILED).ended(),
    "leave parked": lambda: ran().runs().asks_leave().woke().ended(),
    "taken over at the gate": lambda: ran().done().order(c.TakeOver(**AT), clock="14:05"),
    "taken over, still ending": lambda: ran().runs().order(c.TakeOver(**AT), clock="14:05"),
    "taken over, held": lambda: ran().runs().order(c.TakeOver(**AT), clock="14:05").ended(),
    "taken over while parked": lambda: PLAYS["parked"]().order(c.TakeOver(**AT), clock="14:05"),
    "taken over while paused": lambda: (
        ran().done().order(c.Pause(**AT)).order(c.TakeOver(**AT), clock="14:05")
    ),
    "given back at the gate": lambda: PLAYS["taken over at the gate"]().order(c.GiveBack(**AT)),
    "given back, held": lambda: PLAYS["taken over, held"]().order(c.GiveBack(**AT)),
    "held": lambda: ran().order(c.Pause(**AT)),
    "held with a session": lambda: ran().runs().order(c.Pause(**AT)).ended(),
    "paused at the gate": lambda: ran().done().order(c.Pause(**AT)),
    "paused while parked": lambda: ran().runs().asks().order(c.Pause(**AT)).ended(),
    "paused after failing": lambda: (
        ran().runs().on(e.Condemned, line=False, failure=FAILED).order(c.Pause(**AT)).ended()
    ),
    "retry due": lambda: ran().fails(),
    "limit due": lambda: ran().fails(until=1e6),
    "stuck": lambda: ran().fails(retryable=False),
    "stuck without an attempt": lambda: ran().order(c.Stop(**AT)),
    "breach": lambda: ran().runs().turn().ended(proof=BREACH, changes=CHANGED),
    "text at its gate": lambda: ran().done(),
    "options at their gate": lambda: ran().to("approaches").done(),
    "raw options at their gate": lambda: (
        ran().to("approaches").runs().turn(invalid="x").turn(definition=definition("research"), invalid="y")
    ).ended(),
    "no gate, but raw": lambda: ran().to("notes").runs().turn(invalid="x").turn(invalid="y").ended(),
    "checklist at its gate": lambda: ran().to("review").done(),
    "fields at their gate": lambda: ran().to("pr").done(),
    "waits for input": lambda: Play().order(c.Run(**AT, stage_only=True)).done().approved(),
    "redone, queued": lambda: ran().done().order(c.Redo(**AT, feedback="Shorter.")),
    "redone, running": lambda: ran().done().order(c.Redo(**AT, feedback="Shorter.")).runs(),
    "taken back, still ending": lambda: ran().done().approved().runs().order(c.TakeBack(**AT)),
    "approved again, still ending": lambda: (
        ran().done().approved().runs().order(c.TakeBack(**AT)).approved(stage="research")
    ),
    "gone back": lambda: ran().to("notes").order(c.GoBack(**AT, stage="research")),
    "gone back with a reason": lambda: (
        ran().to("notes").runs().order(c.GoBack(**AT, stage="research", reason="Too thin."))
    ),
    "void, waits again": lambda: ran().done().approved().tell(CHANGED_SINCE),
    "void, the next stage runs": lambda: ran().done().approved().runs().tell(CHANGED_SINCE),
    "void, the next stage at its gate": lambda: ran().done().approved().done().tell(CHANGED_SINCE),
    "skipped": lambda: ran().done().order(c.Skip(**AT, reason="Known.")),
    "undoing": lambda: (
        ran().runs().turn().ended(changes=CHANGED).order(c.UndoFiles(**AT, stage="research", attempt=1))
    ),
    "completed": lambda: ran().to("pr").done().approved(),
    "abandoned": lambda: ran().done().order(c.Abandon(**AT)),
    "abandoned while queued": lambda: ran().order(c.Abandon(**AT)),
    "abandoned, still ending": lambda: ran().runs().asks().order(c.Abandon(**AT)),
    "archived": lambda: ran().to("pr").done().approved().order(c.Archive(**AT)),
    "broken": lambda: ran().done().tell(e.StepFailed(at=900.0, reason="A fault in Promptside.")),
    "broken, still ending": lambda: ran().runs().asks().tell(e.StepFailed(at=900.0, reason="A fault.")),
    "broken while queued": lambda: ran().tell(e.StepFailed(at=900.0, reason="A fault.")),
}
"""A task in every status that can be reached, by name."""


def tasks() -> dict[str, Task]:
    """All of them."""
    return {name: play().task for name, play in PLAYS.items()}


def lives() -> tuple[Life, ...]:
    """Every state a task can have."""
    return (
        Draft(since=2.0),
        Ready(since=2.0),
        Taken(since=2.0, by=ADA),
        Paused(since=2.0, by=ADA),
        Completed(since=2.0),
        Failed(since=2.0, reason="A fault."),
        Archived(since=2.0, reason="abandoned"),
    )


def orders(task: Task) -> Iterator[Any]:
    """Every order a person can give, in the forms that a task makes different."""
    stages = [s.id for s in task.pipeline.stages]
    yield from (c.Ready(**AT), c.Abandon(**AT), c.Archive(**AT), c.TakeBack(**AT), c.Retry(**AT))
    yield from (c.Pause(**AT), c.Resume(**AT), c.Stop(**AT), c.SendAnswers(**AT))
    yield from (c.TakeOver(**AT), c.GiveBack(**AT))
    yield from (c.Run(**AT), c.Run(**AT, input="More.", stage_only=True, on_ask="deny"))
    yield from (c.Redo(**AT), c.Redo(**AT, feedback="Shorter."), c.Redo(**AT, fresh=True))
    yield from (c.Skip(**AT), c.Skip(**AT, reason="Known."))
    for stage in ("", *stages, "nowhere"):
        yield c.Approve(**AT, stage=stage, answers=APPROVALS.get(stage or _current(task), {}))
    yield c.Approve(**AT)
    for stage in (*stages, "nowhere"):
        yield from (c.GoBack(**AT, stage=stage), c.GoBack(**AT, stage=stage, reason="Too thin."))
    yield from (c.Say(**AT, text="Shorter."), c.Say(**AT, text=" "))
    yield from (c.UndoFiles(**AT), c.UndoFiles(**AT, stage="research", attempt=1, paths=("src/a.py",)))
    yield c.UndoFiles(**AT, stage="nowhere")
    for document in (*_documents(task), "nowhere.md"):
        yield c.EditDraft(**AT, document=document)
    for decision in (*(d.id for d in task.decisions), "Q9"):
        yield c.Answer(**AT, decision=decision, options=("A",))
        yield c.Answer(**AT, decision=decision, options=("once",))
        yield c.Answer(**AT, decision=decision, options=("always",))
        yield c.Answer(**AT, decision=decision, text="mine")
        yield c.Answer(**AT, decision=decision, recommended=True)
        yield c.Answer(**AT, decision=decision)
    for decision in ("", *(d.id for d in task.decisions), "P9"):
        yield c.Deny(**AT, decision=decision, text="Not now.")
        for scope in ("once", "attempt", "task", "always"):
            yield c.Allow(**AT, decision=decision, scope=scope)
    if task.questions is not None:
        yield c.SendAnswers(**AT, answers={d.id: ["A"] for d in task.open_questions if d.options})


def _current(task: Task) -> str:
    return task.run.id if task.run is not None else ""


def _documents(task: Task) -> list[str]:
    found = [r.form.document for r in task.stages if r.form is not None]
    return [*found, task.questions.document] if task.questions is not None else found


def happenings(task: Task) -> Iterator[e.AnyEvent]:
    """An event of every kind, about what is there, what was, and what never was."""
    at = 2e6
    by: dict[str, Any] = {"at": at, "by": ADA}
    yield created(at=at)
    yield from (e.TaskReadied(**by), e.TaskPaused(**by), e.StopOrdered(**by), e.TaskAbandoned(**by))
    yield from (e.TaskArchived(**by), e.StageSkipped(**by, reason="Known."), e.PersonSaid(**by, text="Hm."))
    yield from (e.TaskResumed(**by, limits=Limits()), e.RetryOrdered(**by, limits=Limits()))
    yield e.ConversationTaken(**by, stage="research", attempt=1, session="s", clock="14:05")
    yield e.ConversationReturned(**by, changes=CHANGED, transcript="/home/ada/s.jsonl")
    yield e.RunOrdered(**by, input="", stage_only=False, on_ask="wait", limits=Limits())
    for fresh in (False, True):
        yield e.RedoOrdered(**by, feedback="Shorter.", fresh=fresh, limits=Limits())
    for stage in (*(s.id for s in task.pipeline.stages), "nowhere"):
        answers = APPROVALS.get(stage, {})
        yield e.GateApproved(**by, stage=stage, answers=answers, shown="s", text="t")
        yield e.ApprovalTakenBack(**by, stage=stage)
        yield e.WentBack(**by, stage=stage, reason="")
        yield e.WentBack(**by, stage=stage, reason="Too thin.")
        yield e.ArtifactChanged(at=at, stage=stage, shown="other")
        yield e.SlotGranted(at=at, stage=stage, attempt="t12-9999")
    for document in (*_documents(task), "nowhere.md"):
        yield e.DraftChanged(**by, document=document, answers={}, shown="s", text="")
    for decision in (*(d.id for d in task.decisions), "Q9"):
        reply = e.Reply(decision=decision, value=["A"], words="Sessions")
        for send in (False, True):
            yield e.QuestionsAnswered(**by, replies=(reply,), shown="s", send=send)
        for allowed in (False, True):
            yield e.PermissionAnswered(**by, decision=decision, allowed=allowed, scope="task")
    yield e.QuestionsAnswered(**by, replies=(), send=True)
    yield e.FilesUndone(**by, stage="research", attempt=1, paths=())
    yield e.FilesRestored(at=at, stage="research", attempt=1, paths=())
    yield from (e.Woke(at=at), e.Woke(at=0.0), e.DaemonStarted(at=at), e.StepFailed(at=at, reason="A fault."))
    attempts = [a.id for r in task.stages for a in r.attempts]
    for attempt in (*attempts, "t12-nobody"):
        for offset in (0, 1, 10**9):
            yield from _observed(at, attempt, offset)


def _observed(at: float, attempt: str, offset: int) -> Iterator[e.AnyEvent]:
    of: dict[str, Any] = {"at": at, "attempt": attempt, "offset": offset}
    text = definition("research")
    usage = Usage(input_tokens=5, output_tokens=1, session_cost=0.1)
    yield e.AttemptStarted(**of, checkpoint="tree-2")
    yield e.SessionOpened(**of, session="s", model="m")
    yield e.QuestionsAsked(
        **of, request="r7", questions=(ONE, OPTIONAL, question("Sure?", kind="yes_no", options=()))
    )
    yield e.PermissionAsked(**of, request="p7", tool="Bash", what="ls", text="May I?", rule="Bash(ls)")
    for allowed in (False, True):
        yield e.PermissionSettled(
            **of, request="p8", tool="Bash", what="ls", allowed=allowed, reason="It is read-only."
        )
    yield e.PermissionAsked(
        **of, request="p9", tool="Edit", what="/p/a", text="May I?", rule="Unsaved(a)", held="/p/a"
    )
    for decision in ("P1", "Q1", "P9"):
        yield e.UnsavedCleared(at=at, decision=decision, words="It was saved meanwhile.")
    for request in ("r1", "p1", "r9"):
        yield e.AskWithdrawn(**of, request=request)
    yield e.TurnEnded(**of, usage=usage)
    yield e.TurnEnded(**of, usage=usage, definition=text, shown="s", text="t")
    yield e.TurnEnded(**of, usage=usage, definition=text, shown="s", text="t", invalid="no object")
    for failure in failures():
        yield e.TurnEnded(**of, usage=usage, failure=failure, interrupted=failure.kind == "interrupted")
        yield e.Condemned(**of, failure=failure)
        yield e.AttemptEnded(**of, failure=failure)
    yield e.AttemptEnded(**of, usage=usage, changes=CHANGED)
    yield e.AttemptEnded(**of, proof=BREACH, changes=CHANGED)


def failures() -> tuple[Failure, ...]:
    """A failure of each sort that something different follows from."""
    return (
        FAILED,
        Failure(kind="login", sentence="The agent is not logged in."),
        Failure(kind="session_gone", sentence="The agent's conversation is gone.", retryable=True),
        Failure(kind="rate_limited", sentence="The plan limit is reached.", retryable=True, until=3e6),
        Failure(kind="breach", sentence="The agent wrote a file.", retryable=True),
        Failure(kind="interrupted", sentence="The agent was stopped."),
    )


def reencoded(task: Task) -> Task:
    """The task as the database gives it back."""
    return msgspec.json.decode(msgspec.json.encode(task), type=Task)


# --- what is always true -----------------------------------------------------------------------------


def faults(task: Task) -> list[str]:
    """What is wrong with a task; empty if everything is as it must be."""
    return [*_faults_of_stages(task), *_faults_of_attempts(task), *_faults_of_decisions(task)]


def _faults_of_stages(task: Task) -> Iterator[str]:
    over = isinstance(task.life, Archived | Failed)
    count = len(task.stages)
    if not 0 <= task.current <= count:
        yield "current is no stage"
    if isinstance(task.life, Completed) and task.current != count:
        yield "completed before its last stage"
    if task.current == count and not (over or isinstance(task.life, Completed)):
        yield "all stages are passed, but the task is not completed"
    for index, run in enumerate(task.stages):
        status = run.status
        if index < task.current and not isinstance(status, Passed | Skipped):
            yield f"{run.id} lies behind, but is {status}"
        if index > task.current and not isinstance(status, Ahead):
            yield f"{run.id} lies ahead, but is {status}"
        if index == task.current and isinstance(status, Passed | Skipped):
            yield f"{run.id} is the current stage, but is {status}"
        if isinstance(status, Running) and (run.last is None or run.last.live is None):
            yield f"{run.id} runs without an attempt"
        if isinstance(status, AtGate) and run.form is None:
            yield f"{run.id} waits at its gate without a form"
        if isinstance(status, Passed) and status.by is not None and run.form is None:
            yield f"{run.id} was approved without a form"
        if isinstance(status, Queued | RetryDue) and not isinstance(task.life, Taken):
            yield f"{run.id} is to start in a task that is {task.life}"
        if isinstance(status, Held) and not isinstance(task.life, Paused):
            yield f"{run.id} is held in a task that is {task.life}"
        if isinstance(task.life, Draft | Ready) and not isinstance(status, Ahead | Skipped):
            yield f"{run.id} was started in a task that was not"
    if task.taken_over is not None and not isinstance(task.life, Paused):
        yield f"taken over in a task that is {task.life}"
    if task.wake_at != steps.due(task):
        yield f"wakes at {task.wake_at}, but is due at {steps.due(task)}"


def _faults_of_attempts(task: Task) -> Iterator[str]:
    live = [(run, a) for run in task.stages for a in run.attempts if a.live is not None]
    if len(live) > 1:
        yield "two attempts are alive"
    for run in task.stages:
        if [a.n for a in run.attempts] != list(range(1, len(run.attempts) + 1)):
            yield f"the attempts of {run.id} are not numbered"
        for a in run.attempts:
            if (a.live is None) != (a.status != "running") or (a.live is None) != (a.ended is not None):
                yield f"attempt {a.id} is {a.status}, alive and ended at once"
    for run, a in live:
        assert a.live is not None
        if run.last != a:
            yield "a live attempt is not the newest of its stage"
        if not isinstance(run.status, Running) and a.live.ending is None:
            yield f"{run.id} does not run, but its attempt lives on"
        numbers = [m.number for m in a.live.outbox]
        if numbers != list(range(2, a.live.sent + 1)):
            yield f"messages are numbered {numbers}"
        if a.live.finished and a.live.closed is None:
            yield "a finished agent was not let go"


def _faults_of_decisions(task: Task) -> Iterator[str]:
    questions = [d.id for d in task.decisions if d.kind != "permission"]
    permissions = [d.id for d in task.decisions if d.kind == "permission"]
    if questions != [f"Q{n}" for n in range(1, len(questions) + 1)]:
        yield f"questions are called {questions}"
    if permissions != [f"P{n}" for n in range(1, len(permissions) + 1)]:
        yield f"permissions are called {permissions}"
    if (task.questions is not None) != bool(task.open_questions):
        yield "the questions' document is there without questions, or they without it"
    alive = live_attempt(task)
    for d in task.decisions:
        found = task.run is not None and task.run.id == d.stage
        if d.status == "open":
            waits = alive is not None and alive.live is not None and not alive.live.finished
            if not waits or alive is None or alive.n != d.attempt or alive.live.ending is not None:  # type: ignore[union-attr]
                yield f"{d.id} is open, but nobody waits for it"
        if d.status == "parked":
            ending = alive is not None and alive.live is not None and alive.live.ending is not None
            if not found or not (ending or isinstance(task.run.status, Parked)):  # type: ignore[union-attr]
                yield f"{d.id} is parked, but its stage is not"
        if (d.answered is not None) != (d.status in ("answered", "denied")):
            yield f"{d.id} is {d.status}, answered {d.answered}"
    if task.run is not None and isinstance(task.run.status, Parked) and not task.open_decisions:
        yield "parked without a question"
    if isinstance(task.life, Archived | Failed | Completed) and task.open_decisions:
        yield "a question is open in a task that is over"


def replayed(journal: list[e.AnyEvent]) -> Task:
    """The task that a journal folds to."""
    first = journal[0]
    assert isinstance(first, e.TaskCreated)
    task = steps.born(first)
    for event in journal:
        task, _ = steps.step(task, event)
    return task


def is_live(task: Task, attempt: str) -> bool:
    found = find_attempt(task, attempt)
    return found is not None and found[2].live is not None


def with_life(task: Task, life: Life) -> Task:
    return replace(task, life=life)
