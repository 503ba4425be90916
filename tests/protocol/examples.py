"""One example of every message, made by hand; `python tests/protocol/examples.py` writes the golden files.

A golden file is written once. If a test finds that one has changed, clients out there read or write the old
one: give a new field a default, and leave the file as it is.
"""

import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from promptside_protocol import errors, frames
from promptside_protocol.commands import (
    Abandon,
    Ack,
    AddProject,
    Allow,
    Answer,
    Approve,
    Archive,
    CollectGarbage,
    Deny,
    EditDraft,
    GiveBack,
    GoBack,
    NewTask,
    Pause,
    Ready,
    Redo,
    RemoveProject,
    RemoveRule,
    RenameProject,
    Resume,
    Retry,
    RevokeTrust,
    Run,
    Say,
    SendAnswers,
    Shutdown,
    Skip,
    Stop,
    TakeBack,
    TakeOver,
    Trust,
    UndoFiles,
)
from promptside_protocol.notices import (
    ActivityChanged,
    CaughtUp,
    DaemonSays,
    EventHappened,
    FlowFailed,
    OutputCame,
    ProjectGone,
    TaskChanged,
)
from promptside_protocol.output import OutputEntry
from promptside_protocol.queries import (
    CheckPipeline,
    CheckText,
    CopyPipeline,
    Decisions,
    Diff,
    DiffView,
    DoctorQuery,
    Document,
    DocumentView,
    FileAt,
    FileView,
    FindProject,
    Following,
    FollowOutput,
    Form,
    GetForm,
    GetGarbage,
    GetPipeline,
    GetTask,
    GetTerminal,
    GetTrust,
    HeldDocument,
    Hello,
    Hold,
    ItemChange,
    Nothing,
    Output,
    OutputPage,
    Path,
    Pipelines,
    Projects,
    Rules,
    Seen,
    Status,
    Tasks,
    Terminal,
    Unfollow,
    Unsaved,
    Vocabulary,
    Watch,
    Welcome,
)
from promptside_protocol.views import (
    Activity,
    Approval,
    AttemptView,
    Change,
    Check,
    DaemonView,
    DecisionView,
    Denial,
    Doctor,
    FaultView,
    Fix,
    Garbage,
    GateView,
    ItemView,
    Metrics,
    Offer,
    OptionView,
    PipelineList,
    PipelineStageView,
    PipelineView,
    ProjectView,
    ProofView,
    RuleView,
    StageView,
    Step,
    Table,
    TaskView,
    TerminalView,
    TerminalWorkView,
    TextCheck,
    TextFault,
    TextStage,
    TrustItem,
    TrustView,
    Variable,
    VocabularyView,
    WaitingFor,
    Word,
)

GOLDEN = pathlib.Path(__file__).parent / "golden"
P = "/home/ada/lantern"

option = OptionView(id="A", title="Keep a ring buffer", description="Bounded memory.", recommended=True)
item = ItemView(
    id="c1",
    text="Tokens are compared in constant time",
    severity="critical",
    ticked=True,
    note="seen",
    path="src/auth.py",
    line=40,
)
gate = GateView(
    type="require_selection",
    shown="9f2c",
    min=1,
    max=1,
    options=(option,),
    selected=("A",),
    items=(item,),
    fields=("title",),
    lacks=("title",),
    version=3,
)
decision = DecisionView(
    id="Q1",
    kind="one",
    priority=1,
    required=True,
    text="Which clock?\nMonotonic or wall?",
    stage="plan",
    attempt=2,
    header="Clock",
    options=(option,),
    other=True,
    status="answered",
    answer="A",
    asked=1760000000.5,
    answered=1760000060.0,
    by="ada",
    client="neovim",
)
permission = DecisionView(
    id="P1",
    kind="permission",
    priority=1,
    required=True,
    text="Run a command?",
    tool="Bash",
    what="pytest -q",
    why="to see whether it works",
    options=tuple(
        OptionView(id=scope, title=scope) for scope in ("once", "attempt", "task", "always", "deny")
    ),
)
attempt = AttemptView(
    n=1,
    id="01JX",
    status="done",
    cause="run",
    session="5d0c",
    started=1760000000.0,
    ended=1760000090.25,
    duration_s=90.25,
    input_tokens=1200,
    output_tokens=340,
    cost_usd=0.0125,
    model="a-model",
    prompt="/data/a/prompt.md",
    transcript="/data/a/transcript.ndjson",
    error=None,
    hint="",
    changes=(Change(path="src/auth.py", kind="modified", added=12, removed=3),),
    proof=ProofView(verdict="meanwhile", meanwhile=("notes.md",)),
    denials=(Denial(tool="Write", what="src/x.py", reason="this stage only reads"),),
    resumed=True,
    note="",
    terminals=(
        TerminalWorkView(
            by="ada",
            client="terminal",
            since=1760000091.0,
            until=1760000095.0,
            session="5d0c",
            transcript="/home/ada/.claude/projects/-p/5d0c.jsonl",
            changes=(Change(path="src/auth.py", kind="modified", added=1, removed=0),),
            unlisted=1,
        ),
    ),
)
stage = StageView(
    id="high-level-approaches",
    name="High-Level Approaches",
    status="waiting",
    format="options",
    tools=("Read", "Grep"),
    rule="read-only",
    attempts=(attempt,),
    artifact="tasks/12-lantern/APPROACHES.md",
    since=1760000091.0,
    reason="",
    approval=Approval(by="ada", client="vscode", at=1760000100.0, shown="9f2c", note="go", all_at_once=False),
)
offer = Offer(
    command="approve",
    title="Approve",
    args={"task": 12, "stage": "plan"},
    place="",
    primary=True,
    blocked="Select 1 option.",
    hint="promptside approve 12 --select A",
)
task = TaskView(
    seq=42,
    id=12,
    project=P,
    title='Say "hello"\nto 🎭 -f',
    description="A lantern.",
    state="taken",
    state_since=1760000000.0,
    claimed_by="ada",
    reason=None,
    pipeline="standard",
    type="feature",
    work_type="coding",
    priority=50,
    agent="claude",
    stages=(stage,),
    current="high-level-approaches",
    waiting_for=WaitingFor(
        kind="gate",
        stage="high-level-approaches",
        since=1760000091.0,
        document="APPROACHES.md",
        gate=gate,
        decisions=(permission,),
        reason="",
    ),
    decisions=(decision,),
    offers=(offer,),
    branch="task/12-lantern",
    worktree=None,
    directory=".promptside/tasks/12-lantern",
    error=None,
    terminal=TerminalView(
        since=1760000091.0,
        by="ada",
        client="terminal",
        stage="high-level-approaches",
        attempt=1,
        session="5d0c",
        words="You work on it in a terminal since 14:05.",
    ),
    created=1759999999.0,
    metrics=Metrics(
        input_tokens=1200, output_tokens=340, cost_usd=0.0125, duration_s=90.25, agent_runs=1, loc_added=12
    ),
)
project = ProjectView(
    id="p1", name="lantern", path=P, added=1759990000.0, waiting=1, tasks=1, trust="changed"
)
fault = FaultView(
    file="p.toml", line=3, column=1, message="no such stage", hint="see `plan`", severity="warning"
)
entry = OutputEntry(
    cursor=812, role="tool", text="Read src/auth.py", block="b1", path="src/auth.py", line=1, ok=True
)
pipeline = PipelineView(
    name="standard",
    title="Standard",
    version="1",
    origin="shipped",
    path="standard.toml",
    stages=(
        PipelineStageView(
            id="pm",
            name="PM",
            output="structured",
            gate={"type": "require_fields", "fields": ["title"]},
            tools=None,
            artifact="PR.md",
            skip=("docs",),
            description="Describe it.",
            prompt="/p/prompts/standard/pm.md.j2",
        ),
    ),
)
word = Word(name="output", meaning="Its form.", type="text", default='"text"', values=("text", "options"))
activity = Activity(
    project=P,
    task=12,
    stage="plan",
    attempt=1,
    cursor=900,
    line="reads src/auth.py",
    context_percent=31,
    step=2,
    steps=5,
    last=(Step(role="tool", text="Read", path="src/auth.py", line=1, at=1760000001.0, ok=True),),
)

AT: dict[str, Any] = {"project": P, "task": 12}
COMMAND_EXAMPLES = (
    AddProject(project=P, name="Lantern"),
    RemoveProject(project=P),
    RenameProject(project=P, name="Lamp"),
    Trust(project=P, hash="ab12"),
    RevokeTrust(project=P),
    RemoveRule(project=P, rule=3),
    NewTask(
        project=P,
        key="k-1",
        title="Lantern",
        description="line\nline",
        pipeline="standard",
        kind="bug_fix",
        work_type="documentation",
        priority=90,
        criteria=("it glows",),
        files=("a b.py",),
        draft=True,
        agent="rehearsal:/r",
        usual_pipeline="feature",
        usual_agent="claude",
    ),
    Ready(**AT),
    Abandon(**AT),
    Archive(**AT),
    Run(**AT, input="mind the oil", stage_only=True, on_ask="deny", anyway=True),
    Approve(
        **AT,
        answers={"select": ["A"], "c1": {"ticked": True}},
        anyway=True,
        note="fine",
        sign_off=True,
        shown="9f2c",
        stage="plan",
    ),
    TakeBack(**AT),
    Redo(**AT, feedback="smaller", fresh=True, anyway=True),
    Retry(**AT, anyway=True),
    Skip(**AT, reason="known", anyway=True),
    GoBack(**AT, stage="research", reason="missed one", anyway=True),
    Pause(**AT),
    Resume(**AT, anyway=True),
    Stop(**AT),
    TakeOver(**AT, holds=True),
    GiveBack(**AT),
    Say(**AT, text="not that file", attach=("notes.md",)),
    UndoFiles(**AT, stage="implementation", attempt=2, paths=("src/auth.py",)),
    EditDraft(**AT, document="PR.md", version=3, answers={"title": "Lantern"}, text="# PR\n"),
    Answer(**AT, decision="Q1", options=("A",), text="and log it", files=("a.py",), recommended=True),
    SendAnswers(**AT, answers={"Q1": "A"}, shown="9f2c"),
    Allow(**AT, decision="P1", scope="always"),
    Deny(**AT, decision="P1", text="use make"),
    Shutdown(reason="upgrade"),
    CollectGarbage(),
)

QUERY_EXAMPLES = (
    (
        Hello(client="neovim", version="0.1.0", protocol=1, environment={"PATH": "/usr/bin"}, cwd=P),
        Welcome(version="0.1.0", protocol=1, pid=4711, session="person", sentence="The daemon was replaced."),
    ),
    (Projects(), (project,)),
    (FindProject(path=f"{P}/src"), project),
    (Tasks(project=P, state="taken", work_type="coding", limit=20, offset=40), (task,)),
    (GetTask(**AT), task),
    (
        GetForm(**AT, document="APPROACHES.md", shown="77aa"),
        Form(
            document="APPROACHES.md",
            version=3,
            text="# Approaches\n",
            shown="9f2c",
            satisfied=False,
            lacks=("Select 1 option.",),
            problems=(fault,),
            definition={"items": ["A"]},
            answers={"select": []},
            original="# Approaches\n\nThe agent's.\n",
            seen=Seen(
                version=2,
                attempt=1,
                answers={"A": True},
                changes=(
                    ItemChange(
                        ref="A",
                        sentence="A was unselected in VS Code at 14:05, after you opened this.",
                        at=1760000070.0,
                        client="vscode",
                    ),
                ),
            ),
        ),
    ),
    (Hold(documents=(HeldDocument(**AT, document="APPROACHES.md", unsaved=True),)), Nothing()),
    (
        Document(**AT, stage="plan", attempt=1),
        DocumentView(
            stage="plan",
            attempt=1,
            document="APPROACHES.md",
            kind="options",
            text="# Approaches\n",
            approved=True,
        ),
    ),
    (Decisions(**AT), (decision, permission)),
    (
        Output(**AT, stage="plan", attempt=1, cursor=10, limit=5),
        OutputPage(stage="plan", attempt=1, entries=(entry,), cursor=812, ended=False),
    ),
    (FollowOutput(**AT, stage="plan", attempt=1, cursor=812), Following(flow=2, stage="plan", attempt=1)),
    (Watch(project=P, cursors={P: 41}, activity=True, events=True), Following(flow=1)),
    (Unfollow(flow=2), Nothing()),
    (Unsaved(files=(f"{P}/src/auth.py",)), Nothing()),
    (
        Diff(**AT, stage="plan", attempt=1),
        DiffView(
            stage="plan",
            attempt=1,
            changes=(Change(path="a", kind="added", added=1, removed=0),),
            diff="+a\n",
        ),
    ),
    (
        FileAt(**AT, path="src/auth.py", side="after", stage="plan", attempt=1),
        FileView(
            stage="plan", attempt=1, path="src/auth.py", side="after", kind="text", text="login()\n", bytes=8
        ),
    ),
    (
        Rules(project=P),
        (RuleView(id=3, rule="Bash(pytest:*)", task=12, stage="plan", by="ada", client="terminal", at=1.5),),
    ),
    (Pipelines(project=P), PipelineList(pipelines=(pipeline,), faults=(fault,))),
    (GetPipeline(name="standard", project=P), pipeline),
    (CheckPipeline(name="mine.toml", project=P), (fault,)),
    (
        CheckText(
            path=f"{P}/.promptside/pipelines/mine.toml", kind="pipeline", text="[[stage]]\nnam = 'A'\n"
        ),
        TextCheck(
            faults=(
                TextFault(
                    kind="pipeline",
                    line=2,
                    column=1,
                    end_line=2,
                    end_column=4,
                    message="`stage` has no key `nam`.",
                    hint="Did you mean `name`?",
                    severity="warning",
                    fix=Fix(
                        title="Write `name`",
                        file=f"{P}/.promptside/pipelines/mine.toml",
                        line=2,
                        column=1,
                        end_line=2,
                        end_column=4,
                        text="name",
                        create=True,
                    ),
                    source=fault,
                ),
            ),
            stages=(TextStage(file="mine.toml", line=1, id="a", name="A", artifact="01-a.md", uses=True),),
        ),
    ),
    (
        Vocabulary(project=P),
        VocabularyView(
            pipeline=(Table(name="stage", meaning="A step.", keys=(word,)),),
            settings=(Table(name="git", meaning="Branches.", keys=(word,)),),
            gates=(word,),
            tools=(word,),
            models=(word,),
            variables=(Variable(name="task", meaning="The task.", parts=(word,)),),
            filters=(word,),
            tests=(word,),
        ),
    ),
    (
        CopyPipeline(name="standard", to="project", project=P, new_name="careful"),
        Path(path=f"{P}/.promptside/standard.toml"),
    ),
    (
        GetTerminal(**AT),
        Terminal(command=("claude", "--resume=5d0c"), cwd=P, environment={"LANG": "C"}),
    ),
    (
        GetTrust(project=P),
        TrustView(
            state="changed",
            hash="ab12",
            sentence="A prompt changed.",
            items=(TrustItem(path="plan.md.j2", what="a prompt", changed=True),),
        ),
    ),
    (
        DoctorQuery(project=P),
        Doctor(ok=False, checks=(Check(name="claude", ok=False, found="", needed="2.1", hint="install it"),)),
    ),
    (GetGarbage(), Garbage(attempts=("01JX",), bytes=123456)),
    (
        Status(),
        DaemonView(
            pid=4711,
            version="0.1.0",
            protocol=1,
            uptime_s=12.5,
            attempts=("01JX",),
            clients=2,
            log="/l/daemon.log",
        ),
    ),
)

REFUSAL = errors.Refusal(
    code="changed", message="It is not what you saw.", hint="Look again.", difference="-a\n+b\n"
)
NOTICE_EXAMPLES = (
    TaskChanged(flow=1, project=P, seq=42, task=task),
    CaughtUp(flow=1, project=P, seq=42),
    ProjectGone(flow=1, project=P),
    EventHappened(
        flow=1, project=P, seq=41, at=1760000000.5, task=12, kind="gateApproved", body={"by": "ada"}
    ),
    OutputCame(flow=2, task=12, stage="plan", attempt=1, cursor=812, entries=(entry,), ended=True),
    ActivityChanged(flow=1, activity=activity),
    FlowFailed(flow=2, refusal=REFUSAL),
    DaemonSays(state="warning", message="The database of “lantern” can't be read."),
)
ERROR_EXAMPLES = tuple(kind(REFUSAL) for kind in errors.BY_NUMBER.values())
ANSWER_TO_AN_ORDER = Ack(seq=42, task=12)


def examples() -> Iterator[tuple[str, frames.Sendable, object]]:
    """File name, the frame on the wire, and what its inside is: the message or the error."""
    for command in COMMAND_EXAMPLES:
        yield f"command.{frames.method_of(command)}", frames.request(1, command), command
    yield "answer.ack", frames.response(1, ANSWER_TO_AN_ORDER), ANSWER_TO_AN_ORDER
    for query, answer in QUERY_EXAMPLES:
        yield f"query.{frames.method_of(query)}", frames.request(1, query), query
        yield f"answer.{frames.method_of(query)}", frames.response(1, answer), answer
    for notice in NOTICE_EXAMPLES:
        yield f"notice.{frames.method_of(notice)}", frames.notification(notice), notice
    for error in ERROR_EXAMPLES:
        yield f"error.{type(error).__name__}", frames.failure(1, error), error


def golden_text(frame: frames.Sendable) -> str:
    return msgspec.json.format(msgspec.json.encode(frame), indent=2).decode() + "\n"


def main() -> None:
    """Write the files that are missing; with `--all` the others, too."""
    GOLDEN.mkdir(exist_ok=True)
    for name, frame, _ in examples():
        path = GOLDEN / f"{name}.json"
        if "--all" in sys.argv or not path.exists():
            path.write_text(golden_text(frame))


if __name__ == "__main__":
    main()
