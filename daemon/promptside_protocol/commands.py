"""Every order a person can give, one Struct each; the first line of its docstring is its title in a palette.

A Struct is at once the request on the wire, the argument of an editor's command and the input of `decide`.
Its tag is the method: `approve` on the wire is `promptside.approve` in an editor.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

OnAsk = Literal["wait", "deny"]
TaskType = Literal["feature", "bug_fix", "refactor", "chore", "docs", "hotfix"]
WorkType = Literal["documentation", "coding", "operations"]
Scope = Literal["once", "attempt", "task", "always"]


class Command(Struct, frozen=True, kw_only=True):
    """An order; the project is the path of its root directory."""

    project: str


class TaskCommand(Command, frozen=True, kw_only=True):
    """An order for one task of a project."""

    task: int


class StartCommand(TaskCommand, frozen=True, kw_only=True):
    """An order after which a stage may start."""

    anyway: bool = False
    """Start also a stage that may write to files which an editor holds with unsaved changes (ED-11)."""


class Ack(Struct, frozen=True, kw_only=True):
    """An accepted order: what it took effect as."""

    seq: int
    task: int = 0
    said: str = ""
    """What the person is told of it, where there is more to say than that it is done; the words are the same in
    every client."""


# --- projects ---------------------------------------------------------------------------------------


class AddProject(Command, frozen=True, kw_only=True, tag="addProject", tag_field="type"):
    """Add This Folder as a Project"""

    name: str = ""


class RemoveProject(Command, frozen=True, kw_only=True, tag="removeProject", tag_field="type"):
    """Remove Project from the List"""


class RenameProject(Command, frozen=True, kw_only=True, tag="renameProject", tag_field="type"):
    """Rename Project…"""

    name: str


class Trust(Command, frozen=True, kw_only=True, tag="trust", tag_field="type"):
    """Trust This Project's Pipeline…

    `hash` is that of the inventory the person saw: trusting anything else is refused (DA-5).
    """

    hash: str


class RevokeTrust(Command, frozen=True, kw_only=True, tag="revokeTrust", tag_field="type"):
    """Trust This Project No Longer"""


class RemoveRule(Command, frozen=True, kw_only=True, tag="removeRule", tag_field="type"):
    """Remove a Permission Given for Good"""

    rule: int


# --- tasks ------------------------------------------------------------------------------------------


class NewTask(Command, frozen=True, kw_only=True, tag="newTask", tag_field="type"):
    """New Task…

    `key` is made by the client: the same key twice is the same task, so a retry after a lost connection
    creates nothing. An empty pipeline takes the settings' default.
    """

    key: str
    title: str
    description: str = ""
    pipeline: str = ""
    kind: TaskType = "feature"
    work_type: WorkType = "coding"
    priority: int = 50
    criteria: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    draft: bool = False
    agent: str = ""
    """`claude` or `rehearsal:DIRECTORY`; empty takes the settings' default."""
    usual_pipeline: str = ""
    """What this client takes where the project's own settings name no pipeline; the person's file comes after it."""
    usual_agent: str = ""


class Abandon(TaskCommand, frozen=True, kw_only=True, tag="abandon", tag_field="type"):
    """Abandon Task…"""


class Archive(TaskCommand, frozen=True, kw_only=True, tag="archive", tag_field="type"):
    """Archive Task"""


class Ready(TaskCommand, frozen=True, kw_only=True, tag="ready", tag_field="type"):
    """Mark Task Ready"""


# --- stages -----------------------------------------------------------------------------------------


class Run(StartCommand, frozen=True, kw_only=True, tag="run", tag_field="type"):
    """Run Stage

    Goes on until something waits, fails or is done; with `stage_only` the task stops after this stage.
    """

    input: str = ""
    stage_only: bool = False
    on_ask: OnAsk = "wait"


class Approve(StartCommand, frozen=True, kw_only=True, tag="approve", tag_field="type"):
    """Approve

    `answers` are laid over the draft, by item; `shown` is the hash of what the person saw (CW-23), empty
    to vouch for the document as the daemon has it.
    """

    answers: dict[str, Any] = {}
    note: str = ""
    sign_off: bool = False
    shown: str = ""
    stage: str = ""
    """Guards against approving what came after; empty is the stage that waits."""


class TakeBack(TaskCommand, frozen=True, kw_only=True, tag="takeBack", tag_field="type"):
    """Take Back Approval"""


class Redo(StartCommand, frozen=True, kw_only=True, tag="redo", tag_field="type"):
    """Redo Stage with Feedback…

    Goes on in the same conversation unless `fresh` (ST-8).
    """

    feedback: str = ""
    fresh: bool = False


class Retry(StartCommand, frozen=True, kw_only=True, tag="retry", tag_field="type"):
    """Retry Stage"""


class Skip(StartCommand, frozen=True, kw_only=True, tag="skip", tag_field="type"):
    """Skip Stage…"""

    reason: str = ""


class GoBack(StartCommand, frozen=True, kw_only=True, tag="goBack", tag_field="type"):
    """Go Back to Stage…

    With a reason the stage runs again and is told it; without one its last output waits at its gate again.
    """

    stage: str
    reason: str = ""


class Pause(TaskCommand, frozen=True, kw_only=True, tag="pause", tag_field="type"):
    """Pause Task"""


class Resume(StartCommand, frozen=True, kw_only=True, tag="resume", tag_field="type"):
    """Resume Task"""


class TakeOver(TaskCommand, frozen=True, kw_only=True, tag="takeOver", tag_field="type"):
    """Continue in a Terminal

    Ends a running attempt as pausing does, and locks the task: nothing of the daemon goes on with its session until
    it is given back. The client then asks for `terminal` and runs what that says.
    """

    holds: bool = False
    """The process that orders this holds the terminal, and gives back at its end: while it lives, nobody else does."""


class GiveBack(TaskCommand, frozen=True, kw_only=True, tag="giveBack", tag_field="type"):
    """Give Back to the Agent"""


class Stop(TaskCommand, frozen=True, kw_only=True, tag="stop", tag_field="type"):
    """Stop Stage"""


class Say(TaskCommand, frozen=True, kw_only=True, tag="interrupt", tag_field="type"):
    """Interrupt with Feedback…"""

    text: str
    attach: tuple[str, ...] = ()


class UndoFiles(TaskCommand, frozen=True, kw_only=True, tag="undo", tag_field="type"):
    """Undo What the Attempt Changed…

    `attempt` 0 is the last one of the current stage, `paths` empty all of them. A path that somebody else
    changed since is left alone and named in the refusal.
    """

    stage: str = ""
    attempt: int = 0
    paths: tuple[str, ...] = ()


# --- answers ----------------------------------------------------------------------------------------


class EditDraft(TaskCommand, frozen=True, kw_only=True, tag="editDraft", tag_field="type"):
    """Change the Draft of a Form

    `answers` by item, based on draft `version`; `text` is the whole document as the person left it and is
    parsed by the daemon (`promptside open`). One of the two.
    """

    document: str
    """Path of the form document, relative to the project."""
    version: int = -1
    """The draft's version the person saw; -1 takes the newest."""
    answers: dict[str, Any] = {}
    text: str | None = None


class Answer(TaskCommand, frozen=True, kw_only=True, tag="answer", tag_field="type"):
    """Answer a Question

    One decision, by id (`Q3`). Choices go by option id; a permission takes `once`, `attempt`, `task`,
    `always` or `deny`, the last with a word to the agent in `text`.
    """

    decision: str
    options: tuple[str, ...] = ()
    text: str = ""
    files: tuple[str, ...] = ()
    recommended: bool = False


class SendAnswers(TaskCommand, frozen=True, kw_only=True, tag="send", tag_field="type"):
    """Send Answers

    Sends the draft of the open questions; `answers` are laid over it, `shown` as in Approve.
    """

    answers: dict[str, Any] = {}
    shown: str = ""


class Allow(TaskCommand, frozen=True, kw_only=True, tag="allow", tag_field="type"):
    """Allow…"""

    decision: str = ""
    scope: Scope = "once"


class Deny(TaskCommand, frozen=True, kw_only=True, tag="deny", tag_field="type"):
    """Deny…"""

    decision: str = ""
    text: str = ""


# --- the daemon -------------------------------------------------------------------------------------


class Shutdown(Struct, frozen=True, kw_only=True, tag="shutdown", tag_field="type"):
    """Stop the Daemon

    Agents at work go on; the next daemon finds them.
    """

    reason: str = ""


class CollectGarbage(Struct, frozen=True, kw_only=True, tag="collectGarbage", tag_field="type"):
    """Remove What Retention Allows

    Transcripts and attempts of finished tasks, by age and total size; the query `garbage` shows them (DA-9).
    """


StageCommand = (
    Ready | Abandon | Archive | Run | Approve | TakeBack | Redo | Retry | Skip | GoBack | Pause | Resume
    | TakeOver | GiveBack | Stop | Say | UndoFiles | EditDraft | Answer | SendAnswers | Allow | Deny
)  # fmt: skip
"""Orders that a task's engine decides."""

ProjectCommand = AddProject | RemoveProject | RenameProject | Trust | RevokeTrust | RemoveRule | NewTask
DaemonCommand = Shutdown | CollectGarbage
AnyCommand = StageCommand | ProjectCommand | DaemonCommand

COMMANDS: dict[str, type[Struct]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        AddProject, RemoveProject, RenameProject, Trust, RevokeTrust, RemoveRule, NewTask,
        Ready, Abandon, Archive, Run, Approve, TakeBack, Redo, Retry, Skip, GoBack, Pause, Resume, TakeOver, GiveBack,
        Stop, Say, UndoFiles, EditDraft, Answer, SendAnswers, Allow, Deny, Shutdown, CollectGarbage,
    )
}  # fmt: skip
"""Method name to Struct, in the order of a palette."""


def title(command: type[Struct]) -> str:
    """The palette title of a command: the first line of its docstring."""
    return (command.__doc__ or "").strip().split("\n", 1)[0]


WORDS: dict[str, str] = {
    "takeBack": "take-back",
    "takeOver": "take-over",
    "giveBack": "give-back",
    "goBack": "back",
    "interrupt": "say",
    "newTask": "task new",
    "abandon": "task abandon",
    "archive": "task archive",
    "ready": "task ready",
    "addProject": "project add",
    "removeProject": "project remove",
    "renameProject": "project rename",
    "removeRule": "rules remove",
    "revokeTrust": "trust --revoke",
    "shutdown": "daemon stop",
    "collectGarbage": "gc",
}
"""The terminal's words where they differ from the method (CLI.md); Neovim's have a column of their own later."""
