"""Every question a client can put to the daemon, one Struct each; asking changes nothing.

The tag is the method, the parameter of `Query` what comes back. `watch` and `followOutput` open a flow of
notices.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct

from promptside_protocol.output import OutputEntry
from promptside_protocol.views import (
    Change,
    DaemonView,
    DecisionView,
    Doctor,
    FaultView,
    Garbage,
    PipelineList,
    PipelineView,
    ProjectView,
    RuleView,
    TaskView,
    TextCheck,
    TrustView,
    View,
    VocabularyView,
)

A = TypeVar("A")


class Query(Struct, Generic[A], frozen=True, kw_only=True):
    """A question that is answered with an `A`."""


class Welcome(View, frozen=True, kw_only=True):
    """The answer to Hello."""

    version: str
    protocol: int
    pid: int
    session: str
    """`person`, or `attempt` for a peer that one of our agents started (DA-13)."""
    sentence: str = ""
    """What the person should know: the daemon was replaced, the client is too old, …"""


class Hello(Query[Welcome], frozen=True, kw_only=True, tag="hello", tag_field="type"):
    """The first request of a session: who speaks, which protocol, and with which environment (DA-10)."""

    client: str
    """`terminal`, `vscode`, `neovim`, … ; stands in every approval as where it came from."""
    version: str
    protocol: int
    environment: dict[str, str] = {}
    cwd: str = ""


class Projects(Query[tuple[ProjectView, ...]], frozen=True, kw_only=True, tag="projects", tag_field="type"):
    """All projects."""


class FindProject(Query[ProjectView | None], frozen=True, kw_only=True, tag="findProject", tag_field="type"):
    """The project that holds a directory, or None."""

    path: str


class Tasks(Query[tuple[TaskView, ...]], frozen=True, kw_only=True, tag="tasks", tag_field="type"):
    """Tasks of one project, or of all; newest change first."""

    project: str = ""
    state: str = ""
    work_type: str = ""
    limit: int = 0
    offset: int = 0


class GetTask(Query[TaskView], frozen=True, kw_only=True, tag="task", tag_field="type"):
    """One task; 0 is `@`: the only one that is not completed, failed or archived, else the last changed."""

    project: str
    task: int = 0


class ItemChange(View, frozen=True, kw_only=True):
    """What was done to an item of a form last, with who and when in words (M10); `ref` is empty for the text."""

    ref: str
    sentence: str
    at: float
    client: str = ""


class Seen(View, frozen=True, kw_only=True):
    """A version of a form that a client saw, and what was done since."""

    version: int
    attempt: int
    answers: dict[str, object] = {}
    changes: tuple[ItemChange, ...] = ()


class Form(View, frozen=True, kw_only=True):
    """A form document as the daemon has it."""

    document: str
    """Path, relative to the project."""
    version: int
    text: str
    shown: str
    satisfied: bool
    lacks: tuple[str, ...] = ()
    problems: tuple[FaultView, ...] = ()
    definition: dict[str, object] = {}
    answers: dict[str, object] = {}
    original: str = ""
    """Of a text: what the agent handed over, where that is no longer what stands there."""
    seen: Seen | None = None
    """The version that was asked about, if it is known and not this one."""


class GetForm(Query[Form], frozen=True, kw_only=True, tag="form", tag_field="type"):
    """The form that a task waits with: its gate's, or its open questions'.

    `shown` is the hash of what the client has before it: what was done since that version is told along.
    """

    project: str
    task: int
    document: str = ""
    shown: str = ""


class HeldDocument(View, frozen=True, kw_only=True):
    """A document of a task that an editor has open; `unsaved` if its buffer is not what the file is."""

    project: str
    task: int
    document: str
    """Path, relative to the project."""
    unsaved: bool = False


class Nothing(View, frozen=True, kw_only=True):
    """An answer without content."""


class Hold(Query[Nothing], frozen=True, kw_only=True, tag="hold", tag_field="type"):
    """Say which documents of tasks this client has open and takes edits of.

    What changes in them is not written to their files while they are held, since the client puts it into its
    buffers; a new attempt's document is, unless there are unsaved changes. The list takes the place of what the
    same connection said before, and goes with it.
    """

    documents: tuple[HeldDocument, ...] = ()


class DocumentView(View, frozen=True, kw_only=True):
    """The document of one attempt as it was last."""

    stage: str
    attempt: int
    document: str
    """Path that it has or had, relative to the project."""
    kind: str
    """`text`, `options`, `checklist` or `fields`."""
    text: str
    approved: bool


class Document(Query[DocumentView], frozen=True, kw_only=True, tag="document", tag_field="type"):
    """What an attempt left as its document, also where a newer one has taken its place.

    An empty stage takes the newest that ran, attempt 0 its last.
    """

    project: str
    task: int
    stage: str = ""
    attempt: int = 0


class Decisions(
    Query[tuple[DecisionView, ...]], frozen=True, kw_only=True, tag="decisions", tag_field="type"
):
    """Every decision of a task, oldest first."""

    project: str
    task: int


class OutputPage(View, frozen=True, kw_only=True):
    """A piece of an attempt's output; `ended` when nothing will follow."""

    stage: str
    attempt: int
    entries: tuple[OutputEntry, ...]
    cursor: int
    ended: bool


class Output(Query[OutputPage], frozen=True, kw_only=True, tag="output", tag_field="type"):
    """What an attempt wrote, from a cursor, as entries for people; at most `limit` of them."""

    project: str
    task: int
    stage: str = ""
    attempt: int = 0
    cursor: int = 0
    limit: int = 1000


class Following(View, frozen=True, kw_only=True):
    """A flow that was opened; its id stands in each of its notices."""

    flow: int
    stage: str = ""
    attempt: int = 0


class FollowOutput(Query[Following], frozen=True, kw_only=True, tag="followOutput", tag_field="type"):
    """From now on, send `output` notices of one attempt from a cursor until it ends; answers with the id."""

    project: str
    task: int
    stage: str = ""
    attempt: int = 0
    cursor: int = 0


class Watch(Query[Following], frozen=True, kw_only=True, tag="watch", tag_field="type"):
    """From now on, send `taskChanged` for each task that changed past a cursor, whole, once (CW-16).

    `cursors` by project path; a project that is not named starts at 0. An empty `project` watches all. With
    `events`, the facts of the journal come in their place.
    """

    project: str = ""
    cursors: dict[str, int] = {}
    activity: bool = False
    events: bool = False


class Unfollow(Query[Nothing], frozen=True, kw_only=True, tag="unfollow", tag_field="type"):
    """End a flow."""

    flow: int


class DiffView(View, frozen=True, kw_only=True):
    """Changes of an attempt, as a list and as a unified diff."""

    stage: str
    attempt: int
    changes: tuple[Change, ...]
    diff: str


class Diff(Query[DiffView], frozen=True, kw_only=True, tag="diff", tag_field="type"):
    """What an attempt changed, against its checkpoint; attempt 0 is the last one of the stage."""

    project: str
    task: int
    stage: str = ""
    attempt: int = 0


class FileView(View, frozen=True, kw_only=True):
    """A file as it was on one side of an attempt; `text` is empty where it is none."""

    stage: str
    attempt: int
    path: str
    side: Literal["before", "after"]
    kind: Literal["text", "binary", "absent", "large", "link", "repository"]
    """`link` has its target as text; of what is `large` and of a `repository` within the project nothing is kept."""
    text: str = ""
    bytes: int = 0


class FileAt(Query[FileView], frozen=True, kw_only=True, tag="fileAt", tag_field="type"):
    """A file of the project as it was before an attempt, or after it; while it runs, `after` is now.

    An empty stage takes the newest that ran, attempt 0 its last; the path is relative to the project.
    """

    project: str
    task: int
    path: str
    side: Literal["before", "after"] = "before"
    stage: str = ""
    attempt: int = 0


class Rules(Query[tuple[RuleView, ...]], frozen=True, kw_only=True, tag="rules", tag_field="type"):
    """Permissions given for good in a project."""

    project: str


class Pipelines(Query[PipelineList], frozen=True, kw_only=True, tag="pipelines", tag_field="type"):
    """The pipelines that can be used here."""

    project: str = ""


class GetPipeline(Query[PipelineView], frozen=True, kw_only=True, tag="pipeline", tag_field="type"):
    """One pipeline by name or file."""

    name: str
    project: str = ""


class CheckPipeline(
    Query[tuple[FaultView, ...]], frozen=True, kw_only=True, tag="checkPipeline", tag_field="type"
):
    """Everything that is wrong with a pipeline file and its prompts."""

    name: str
    project: str = ""


class CheckText(Query[TextCheck], frozen=True, kw_only=True, tag="checkText", tag_field="type"):
    """Everything that is wrong with a text as an editor holds it, saved or not; nothing is written.

    `path` is where the text is, or will be; prompts that it names are read from the disk.
    """

    path: str
    kind: Literal["pipeline", "prompt", "settings"]
    text: str


class Vocabulary(Query[VocabularyView], frozen=True, kw_only=True, tag="vocabulary", tag_field="type"):
    """What can be written in pipeline, prompt and settings files; `project` adds the models it names."""

    project: str = ""


class Path(View, frozen=True, kw_only=True):
    """A path."""

    path: str


class CopyPipeline(Query[Path], frozen=True, kw_only=True, tag="copyPipeline", tag_field="type"):
    """Write a pipeline and its prompts where the person can edit them; answers with the path.

    Nothing that is there is overwritten.
    """

    name: str
    to: str
    """`project` or `user`."""
    project: str = ""
    new_name: str = ""
    """What the copy is called; empty: the same."""


class Terminal(View, frozen=True, kw_only=True):
    """How a conversation is gone on with in a terminal; `environment` is laid over the person's own."""

    command: tuple[str, ...]
    cwd: str
    environment: dict[str, str] = {}


class GetTerminal(Query[Terminal], frozen=True, kw_only=True, tag="terminal", tag_field="type"):
    """What to run in the terminal of a person who took a task over (ED-14); refused where nobody did."""

    project: str
    task: int


class GetTrust(Query[TrustView], frozen=True, kw_only=True, tag="trustState", tag_field="type"):
    """What this project brings that would run, and whether it is trusted."""

    project: str


class Unsaved(Query[Nothing], frozen=True, kw_only=True, tag="unsaved", tag_field="type"):
    """Say which files this client holds with changes that are not saved (ED-11).

    Absolute paths; they take the place of what the same connection said before, and go with it.
    """

    files: tuple[str, ...] = ()


class DoctorQuery(Query[Doctor], frozen=True, kw_only=True, tag="doctor", tag_field="type"):
    """Check the set-up."""

    project: str = ""


class GetGarbage(Query[Garbage], frozen=True, kw_only=True, tag="garbage", tag_field="type"):
    """What retention allows to remove (DA-9)."""


class Status(Query[DaemonView], frozen=True, kw_only=True, tag="status", tag_field="type"):
    """The daemon itself."""


QUERIES: dict[str, type[Query[Any]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        Hello, Projects, FindProject, Tasks, GetTask, GetForm, Hold, Document, Decisions, Output, FollowOutput, Watch,
        Unfollow, Diff, FileAt, Rules, Pipelines, GetPipeline, CheckPipeline, CheckText, Vocabulary,
        CopyPipeline, GetTerminal, GetTrust, Unsaved,
        DoctorQuery, GetGarbage, Status,
    )
}  # fmt: skip
ANSWERS: dict[type[Query[Any]], Any] = {
    kind: kind.__dict__["__orig_bases__"][0].__args__[0] for kind in QUERIES.values()
}
"""What each query is answered with."""
