"""Facts, in the past tense: what was ordered and accepted, and what was observed. `step` can't refuse them.

Whatever is random, timed or read from the world (ids, times, hashes, outcomes) arrives inside the event, so
that folding the journal again gives exactly the same task.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from promptside_daemon.engine.pipeline import Limits, Pipeline
from promptside_daemon.engine.task import Failure, Person, Usage
from promptside_protocol.commands import OnAsk, Scope
from promptside_protocol.forms import Definition
from promptside_protocol.views import Change, OptionView, ProofView


class Event(Struct, frozen=True, kw_only=True):
    """A fact; `at` is when it became known, in seconds since 1970."""

    at: float


class Ordered(Event, frozen=True, kw_only=True):
    """A fact that a person brought about."""

    by: Person


# --- ordered -----------------------------------------------------------------------------------------


class TaskCreated(Ordered, frozen=True, kw_only=True, tag="task_created"):
    """A task was written down, with the pipeline it keeps."""

    id: int
    project: str
    slug: str
    title: str
    description: str
    kind: str
    work_type: str
    priority: int
    criteria: tuple[str, ...]
    files: tuple[str, ...]
    agent: str
    pipeline: Pipeline
    limits: Limits
    draft: bool


class TaskReadied(Ordered, frozen=True, kw_only=True, tag="task_readied"):
    """A draft may be run."""


class RunOrdered(Ordered, frozen=True, kw_only=True, tag="run_ordered"):
    """The current stage is to run."""

    input: str
    stage_only: bool
    on_ask: OnAsk
    limits: Limits


class GateApproved(Ordered, frozen=True, kw_only=True, tag="gate_approved"):
    """A person vouches for these bytes (CW-23)."""

    stage: str
    answers: dict[str, Any]
    shown: str
    text: str
    """Hash under which the approved bytes are kept in the attempt directory."""
    note: str = ""
    all_at_once: bool = False


class ApprovalTakenBack(Ordered, frozen=True, kw_only=True, tag="approval_taken_back"):
    """The gate waits again."""

    stage: str


class RedoOrdered(Ordered, frozen=True, kw_only=True, tag="redo_ordered"):
    """The stage is to be done again, with feedback."""

    feedback: str
    fresh: bool
    limits: Limits
    document: str = ""
    """Where notes to the agent were that went with it; empty: there were none."""
    shown: str = ""
    """Of that document without them."""
    text: str = ""


class RetryOrdered(Ordered, frozen=True, kw_only=True, tag="retry_ordered"):
    """A failed stage is to be tried again now."""

    limits: Limits


class StageSkipped(Ordered, frozen=True, kw_only=True, tag="stage_skipped"):
    """The current stage is left out."""

    reason: str


class WentBack(Ordered, frozen=True, kw_only=True, tag="went_back"):
    """An earlier stage is the current one again; the later ones run again after it."""

    stage: str
    reason: str


class TaskPaused(Ordered, frozen=True, kw_only=True, tag="task_paused"):
    """Hold everything; the session stays."""


class TaskResumed(Ordered, frozen=True, kw_only=True, tag="task_resumed"):
    """Go on where it was paused."""

    limits: Limits


class ConversationTaken(Ordered, frozen=True, kw_only=True, tag="conversation_taken"):
    """A person goes on in a terminal with the conversation of an attempt (ED-14)."""

    stage: str
    attempt: int
    session: str
    clock: str
    pid: int = 0
    pid_started: str = ""


class ConversationReturned(Ordered, frozen=True, kw_only=True, tag="conversation_returned"):
    """The person is back from the terminal; what changed meanwhile, and where the CLI wrote down what was said."""

    changes: tuple[Change, ...] = ()
    transcript: str = ""


class StopOrdered(Ordered, frozen=True, kw_only=True, tag="stop_ordered"):
    """End the running attempt; no retry follows."""


class PersonSaid(Ordered, frozen=True, kw_only=True, tag="person_said"):
    """Feedback in the middle of a turn."""

    text: str


class TaskAbandoned(Ordered, frozen=True, kw_only=True, tag="task_abandoned"):
    """Put away undone; branch and files stay."""


class TaskArchived(Ordered, frozen=True, kw_only=True, tag="task_archived"):
    """Put away."""


class DraftChanged(Ordered, frozen=True, kw_only=True, tag="draft_changed"):
    """The answers of a form that waits."""

    document: str
    answers: dict[str, Any]
    shown: str
    text: str


class Reply(Struct, frozen=True, kw_only=True):
    """A person's answer to one question: as data, and in words for the agent."""

    decision: str
    value: Any
    words: str


class QuestionsAnswered(Ordered, frozen=True, kw_only=True, tag="questions_answered"):
    """A person answered questions; `shown` is the hash of their document afterwards."""

    replies: tuple[Reply, ...]
    shown: str = ""
    send: bool = False
    """Send what there is, though optional questions are open."""


class PermissionAnswered(Ordered, frozen=True, kw_only=True, tag="permission_answered"):
    """A person allowed or denied a tool use."""

    decision: str
    allowed: bool
    scope: Scope = "once"
    text: str = ""


class FilesUndone(Ordered, frozen=True, kw_only=True, tag="files_undone"):
    """What an attempt changed is to be taken back."""

    stage: str
    attempt: int
    paths: tuple[str, ...]


# --- observed ----------------------------------------------------------------------------------------


class SlotGranted(Event, frozen=True, kw_only=True, tag="slot_granted"):
    """The stage may start an attempt; its id names the attempt directory."""

    stage: str
    attempt: str


class Observed(Event, frozen=True, kw_only=True):
    """A fact about one attempt; `offset` is the byte of its transcript behind the line that told it, 0 if none.

    A transcript is read from its start again after a restart. What a line tells twice is told once: `step`
    returns the very same task for it, and it is no fact for the journal.
    """

    attempt: str
    offset: int = 0


class AttemptStarted(Observed, frozen=True, kw_only=True, tag="attempt_started"):
    """The keeper runs; before it, the tree was kept under `checkpoint`."""

    checkpoint: str = ""
    note: str = ""


class SessionOpened(Observed, frozen=True, kw_only=True, tag="session_opened"):
    """The agent told its session and model."""

    session: str
    model: str


class Question(Struct, frozen=True, kw_only=True):
    """One question of a request."""

    kind: Literal["one", "any", "text", "long_text", "files", "code", "yes_no"]
    text: str
    header: str = ""
    options: tuple[OptionView, ...] = ()
    other: bool = True
    required: bool = True
    priority: int = 1


class QuestionsAsked(Observed, frozen=True, kw_only=True, tag="questions_asked"):
    """The agent waits for answers under one request (AskUserQuestion)."""

    request: str
    questions: tuple[Question, ...]


class PermissionAsked(Observed, frozen=True, kw_only=True, tag="permission_asked"):
    """The agent waits for a permission that no rule settles."""

    request: str
    tool: str
    what: str
    text: str
    why: str = ""
    rule: str = ""
    held: str = ""
    """The file that the agent wants to change while an editor holds it unsaved (ED-11); empty: it is not so."""


class PermissionSettled(Observed, frozen=True, kw_only=True, tag="permission_settled"):
    """A rule, a grant or the stage itself settled a permission; nobody was asked."""

    request: str
    tool: str
    what: str
    allowed: bool
    reason: str


class AskWithdrawn(Observed, frozen=True, kw_only=True, tag="ask_withdrawn"):
    """The agent no longer waits under this request."""

    request: str


class TurnEnded(Observed, frozen=True, kw_only=True, tag="turn_ended"):
    """The agent gave a result: an output that fits, one that doesn't (`invalid`), or a failure."""

    usage: Usage
    failure: Failure | None = None
    interrupted: bool = False
    definition: Definition | None = None
    """The output as a form; of a text output everything but the text."""
    shown: str = ""
    text: str = ""
    """Hash under which the document's text is kept in the attempt directory, where it is not just a rendering."""
    invalid: str = ""


class Condemned(Observed, frozen=True, kw_only=True, tag="condemned"):
    """We end this attempt: silence, a breach of read-only, a login that can't work, output lost."""

    failure: Failure


class AttemptEnded(Observed, frozen=True, kw_only=True, tag="attempt_ended"):
    """Its process and everything that it had started are gone."""

    failure: Failure | None = None
    """Of the whole run; None if the agent ended in order."""
    usage: Usage | None = None
    """What was used where no result told it."""
    after: str = ""
    """The tree when it had ended."""
    changes: tuple[Change, ...] = ()
    proof: ProofView | None = None
    note: str = ""


class ArtifactChanged(Event, frozen=True, kw_only=True, tag="artifact_changed"):
    """An approved document is no longer what was approved."""

    stage: str
    shown: str


class UnsavedCleared(Event, frozen=True, kw_only=True, tag="unsaved_cleared"):
    """The file that a permission is about has no unsaved changes any more; the person decides all the same."""

    decision: str
    words: str


class FilesRestored(Event, frozen=True, kw_only=True, tag="files_restored"):
    """What was ordered to be undone is; `left` names what somebody else had changed."""

    stage: str
    attempt: int
    paths: tuple[str, ...]
    left: tuple[str, ...] = ()


class Woke(Event, frozen=True, kw_only=True, tag="woke"):
    """The time that the state asked for has come; `late` if no daemon was there at it (DA-12)."""

    late: bool = False


class DaemonStarted(Event, frozen=True, kw_only=True, tag="daemon_started"):
    """A daemon took the task over: every effect is asked whether it happened."""


class StepFailed(Event, frozen=True, kw_only=True, tag="step_failed"):
    """A fault of ours: this task can't go on, the others can."""

    reason: str


AnyEvent = (
    TaskCreated | TaskReadied | RunOrdered | GateApproved | ApprovalTakenBack | RedoOrdered | RetryOrdered
    | StageSkipped | WentBack | TaskPaused | TaskResumed | ConversationTaken | ConversationReturned
    | StopOrdered | PersonSaid | TaskAbandoned
    | TaskArchived | DraftChanged | QuestionsAnswered | PermissionAnswered | FilesUndone
    | SlotGranted | AttemptStarted | SessionOpened | QuestionsAsked | PermissionAsked | PermissionSettled
    | AskWithdrawn | TurnEnded | Condemned | AttemptEnded | ArtifactChanged | UnsavedCleared
    | FilesRestored | Woke
    | DaemonStarted | StepFailed
)  # fmt: skip
