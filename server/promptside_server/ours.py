"""The methods of our own, beside LSP's: what a client that announces `experimental.promptside` is told and may ask.

This is the one place where they are listed; nothing that a person can do depends on them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from promptside_protocol.forms import FormView
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.page import Span
from promptside_protocol.views import Activity, Offer, TaskView

PageName = Literal["tasks", "task", "history", "rules", "doctor", "pipelines", "pipeline", "projects"]


class TaskNews(Struct, frozen=True, kw_only=True):
    """A task as it is now, whole; told for each task that changed, and for all of them at the beginning."""

    project: str
    seq: int
    task: TaskView


class GoneNews(Struct, frozen=True, kw_only=True):
    """A project was removed: its tasks are to be forgotten."""

    project: str


class ActivityNews(Struct, frozen=True, kw_only=True):
    """What an agent does now; at most 30 times a second, and dropped while the editor is behind."""

    activity: Activity


class DaemonNews(Struct, frozen=True, kw_only=True):
    """Whether the daemon is there; while it isn't, everything that is shown is stale."""

    up: bool
    sentence: str = ""


class Follow(Struct, frozen=True, kw_only=True):
    """Ask for the output of an attempt from a cursor on; empty and 0 take the newest."""

    project: str = ""
    task: int = 0
    stage: str = ""
    attempt: int = 0
    cursor: int = 0


class Followed(Struct, frozen=True, kw_only=True):
    """The number that each `promptside/output` of this wish bears."""

    flow: int


class Unfollow(Struct, frozen=True, kw_only=True):
    """Ask for no more of it."""

    flow: int


class OutputNews(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt wrote up to `cursor`, since the last of this flow: no gap, no repeat.

    With `error` the flow has ended because the output can't be had.
    """

    flow: int
    project: str
    task: int
    stage: str
    attempt: int
    cursor: int
    entries: tuple[OutputEntry, ...]
    ended: bool = False
    error: str = ""


class OpenPage(Struct, frozen=True, kw_only=True):
    """Ask for a page, and to be told when it is another; asked again, it is drawn anew.

    An empty project takes all of them for `tasks`, else the one that is before the person; so does task 0.
    """

    name: PageName
    project: str = ""
    task: int = 0
    pipeline: str = ""
    width: int = 100
    unicode: bool = True
    zone_minutes: int | None = None


class PageLine(Struct, frozen=True, kw_only=True):
    """One line: its spans, what it is about, and what can be opened and done there.

    `uri` and `line` (from 1, 0 is none) are a document to open, `page` is a page of the line's project and task.
    An offer's `args` are to be completed by the line's project and task.
    """

    spans: tuple[Span, ...]
    fold: str = ""
    ref: str = ""
    offers: tuple[Offer, ...] = ()
    project: str = ""
    task: int = 0
    uri: str = ""
    line: int = 0
    page: str = ""


class PageShown(Struct, frozen=True, kw_only=True):
    """A page as it is now; with `stale`, what is shown may be old, and that is why."""

    name: str
    project: str
    task: int
    title: str
    lines: tuple[PageLine, ...]
    stale: str = ""


class PageNews(Struct, frozen=True, kw_only=True):
    """A page that is open would be drawn otherwise now; at most five times a second."""

    name: str
    project: str
    task: int


class ClosePage(Struct, frozen=True, kw_only=True):
    """Ask for no more word of a page: name, project and task as they were answered."""

    name: PageName
    project: str = ""
    task: int = 0


class OpenForm(Struct, frozen=True, kw_only=True):
    """Ask for the form of a document, or without one for whatever a task waits with, and for each change of it."""

    project: str = ""
    task: int = 0
    uri: str = ""


class FormNews(Struct, frozen=True, kw_only=True):
    """A form as it is now; None where the task waits with none. `document` is empty if no uri was asked for."""

    project: str
    task: int
    document: str = ""
    form: FormView | None = None


class CloseForm(Struct, frozen=True, kw_only=True):
    """Ask for no more word of a form, by what it was asked for with."""

    project: str = ""
    task: int = 0
    uri: str = ""


class GiveAnswer(Struct, frozen=True, kw_only=True):
    """Answer one item of a form, or with `answers` several: the draft is changed, and nothing else.

    `version` and `attempt` are those of the form that the person saw: what others answered since is kept, and where
    it is the same item, the answer is refused with what they did. None takes an answer away.
    """

    project: str = ""
    task: int = 0
    uri: str = ""
    id: str = ""
    value: Any = None
    answers: dict[str, Any] = {}
    version: int = -1
    attempt: int = 0


class Answered(Struct, frozen=True, kw_only=True):
    """Where the change stands in its project."""

    seq: int
    task: int


class Ask(Struct, frozen=True, kw_only=True):
    """Ask the daemon what only is read: `type` is a query of this document, its fields stand beside it."""

    type: str


class OpenChanges(Struct, frozen=True, kw_only=True):
    """Ask which files an attempt changed; empty and 0 take the newest."""

    project: str = ""
    task: int = 0
    stage: str = ""
    attempt: int = 0
    whole: bool = False
    """All attempts of the task together; the answer's stage is empty then, and its attempt 0."""


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A file that an attempt changed: its address before and after, and its own, which `after` is while it runs."""

    path: str
    kind: Literal["added", "modified", "deleted", "type"]
    added: int | None
    removed: int | None
    before: str
    after: str
    uri: str


class Changes(Struct, frozen=True, kw_only=True):
    """What an attempt changed; `before` and `after` open by `workspace/textDocumentContent`."""

    project: str
    task: int
    stage: str
    attempt: int
    running: bool
    files: tuple[ChangedFile, ...]


NOTIFICATIONS: dict[str, type[Struct]] = {
    "promptside/task": TaskNews,
    "promptside/gone": GoneNews,
    "promptside/activity": ActivityNews,
    "promptside/daemon": DaemonNews,
    "promptside/output": OutputNews,
    "promptside/pageChanged": PageNews,
    "promptside/form": FormNews,
}
REQUESTS: dict[str, tuple[type[Struct], type[Struct] | None]] = {
    "promptside/follow": (Follow, Followed),
    "promptside/unfollow": (Unfollow, None),
    "promptside/page": (OpenPage, PageShown),
    "promptside/closePage": (ClosePage, None),
    "promptside/openForm": (OpenForm, FormNews),
    "promptside/closeForm": (CloseForm, None),
    "promptside/answer": (GiveAnswer, Answered),
    "promptside/changes": (OpenChanges, Changes),
    "promptside/query": (Ask, None),
}
EDITOR_COMMANDS: dict[str, str] = {
    "next": "Opens what has waited longest; from there, what waits behind it.",
    "openTask": "Opens the document that a task waits with, else the task's own.",
    "openFile": "Opens a file of a project, at a line.",
    "showDocument": "Opens the document of an older attempt.",
    "showLack": "Goes to what a document still lacks.",
    "showOutput": "Opens the output of an attempt as a file that grows.",
    "showTranscript": "Opens everything that an attempt wrote.",
    "showPrompt": "Opens what an attempt was told.",
    "showChanges": "Opens what an attempt changed; to a client of ours it names the files, as `promptside/changes`.",
    "showDifference": "Opens what differs between the document here and the daemon's.",
    "takeMine": "Gives the document as it stands here to the daemon.",
    "takeTheirs": "Puts the daemon's document in the place of the one here.",
    "note": "Begins a note to the agent in the document.",
    "restore": "Puts a document right that can't be read, or one item of it; what can be read of the answers stays.",
    "removeNotes": "Takes the notes to the agent out of a document.",
    "editPipeline": "Opens a pipeline to be edited; a shipped one is copied beside the project first.",
    "newPipeline": "Makes another pipeline, `name`, of `copy_of`, and opens it.",
    "editPrompt": "Opens the prompt of a stage to be edited; a shipped pipeline is copied beside the project first.",
    "copyPipeline": "Copies a pipeline to `project` or `user`, `as` another if that is given; answers with the path.",
    "createTask": "Makes a task of what was filled in.",
    "doctor": "Checks the set-up and opens what was found.",
    "daemonStart": "Starts the daemon, if it is not there.",
}
"""LSP commands beside the protocol's; without arguments they are about what the person looks at."""
