"""A task in every state that it can be in, brought there by orders in a real daemon, with a made-up agent.

The model that a stage of a made-up pipeline names is what its agent does there. Which statuses a state is made of
is read off the engine's own record, so that a test knows what it has covered.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from rig.fake_claude import fake_claude
from rig.lsp_buffers import PLAIN, Buffers
from rig.lsp_editor import OURS, Message
from rig.user import User

from promptside_daemon.engine.task import Task

AGENT = """
kind = next(word.partition("=")[2] for word in sys.argv if word.startswith("--model="))
said = prompt()
init(session=os.environ["PROMPTSIDE_ATTEMPT"])

def next_message():
    message = heard()
    if message is None:
        sys.exit(0)
    return message

def broken_off(message):
    answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
    line(type="control_response", response=answer)
    result("", subtype="error_during_execution", is_error=True, errors=[], terminal_reason="aborted_streaming")

def works():
    while True:
        message = next_message()
        if message["type"] == "control_request":
            broken_off(message)
        elif message["type"] == "user":
            init(session=os.environ["PROMPTSIDE_ATTEMPT"])
            text("I was told: " + message["message"]["content"])

def wait_for(request):
    while True:
        message = next_message()
        if message["type"] == "control_request":
            broken_off(message)
            works()
        if message["type"] == "control_response" and message["response"]["request_id"] == request:
            return message["response"]["response"]

def wants(name, given, request, number):
    use(name, given, number)
    wanted = {"subtype": "can_use_tool", "tool_name": name, "input": given, "tool_use_id": number}
    line(type="control_request", request_id=request, request=wanted)

def question(words, several=False, count=2):
    options = [{"label": f"Way {n}" + (" (Recommended)" if n == 2 else ""), "description": ""}
               for n in range(1, count + 1)]
    return {"question": words, "header": "Ways", "options": options, "multiSelect": several}

def questions(*asked, request="r1", number="toolu_1"):
    wants("AskUserQuestion", {"questions": list(asked)}, request, number)
    wait_for(request)
    used("answered", number)

def bash(command, request="p1", number="toolu_p"):
    wants("Bash", {"command": command}, request, number)
    used("done", number, failed=wait_for(request).get("behavior") == "deny")

match kind:
    case "works":
        works()
    case "deaf":
        while next_message()["type"] != "control_request":
            pass
        while next_message()["type"] != "control_request":
            pass
    case "fails":
        sys.exit(3)
    case "limit":
        info = {"status": "rejected", "resetsAt": time.time() + 3600, "rateLimitType": "five_hour"}
        line(type="rate_limit_event", rate_limit_info=info)
        result("", is_error=True, api_error_status=429, terminal_reason="api_error")
    case "asks":
        questions(question("Which way?"), question("Which of them?", several=True, count=4))
        questions(question("And then?"), request="r2", number="toolu_2")
        result("# Asked")
    case "leave":
        bash("npm install " + os.environ["PROMPTSIDE_ATTEMPT"])
        result("# Installed")
    case "no-rule":
        bash("rm *.txt")
        result("# Installed")
    case "everything":
        wants("AskUserQuestion", {"questions": [question("Which way?")]}, "r", "t")
        bash("npm install " + os.environ["PROMPTSIDE_ATTEMPT"])
        works()
    case "writes":
        made = "made-" + os.environ["PROMPTSIDE_ATTEMPT"]
        open(made, "w").write("made")
        use("Write", {"file_path": os.path.abspath(made), "content": "made"})
        used()
        result("# Written")
    case "options":
        ways = [{"title": f"Way {n}", "description": "So.", "pros": [], "cons": []} for n in (1, 2, 3)]
        result("", structured_output={"options": ways})
    case "checklist":
        points = [{"severity": s, "title": f"A {s} point", "detail": "Look.", "file": "src/a.py", "line": 1}
                  for s in ("critical", "warning", "info")]
        result("", structured_output={"items": points})
    case "fields":
        result("", structured_output={"title": "Add it", "test_plan": ""})
    case "raw":
        result("It does not fit.")
        prompt()
        init(session=os.environ["PROMPTSIDE_ATTEMPT"])
        result("It still does not fit.")
    case _:
        text("Here it is.")
        result("# Done")
end()
"""

SLOTS = 64
Keys = dict[str, str]
FIELDS = '{ type = "require_fields", fields = ["title", "test_plan"] }'


def a_stage(name: str, does: str, **keys: str) -> Keys:
    return {
        "id": f'"{name}"',
        "name": f'"{name.title()}"',
        "prompt": '"Do it."',
        "model": f'"{does}"',
        **keys,
    }


ONCE = "{ retries = 0 }"
AFTER = a_stage("after", "text", input='"user"')
PIPELINES: dict[str, tuple[Keys, ...]] = {
    "one": (a_stage("work", "text"),),
    "text": (a_stage("work", "text"), AFTER),
    "chain": (a_stage("work", "text"), a_stage("next", "works"), AFTER),
    "free": (a_stage("work", "text", gate='"none"'), a_stage("next", "works")),
    "chain-fails": (a_stage("work", "text"), a_stage("next", "fails", limits=ONCE)),
    "fails": (a_stage("work", "fails", limits=ONCE), AFTER),
    "silent": (a_stage("work", "works", limits="{ retries = 0, silence_s = 0.3 }"), AFTER),
    "parks": (a_stage("work", "asks", limits="{ park_s = 0.3 }"), AFTER),
    "breach": (a_stage("work", "writes", tools='["Read"]', permission='"deny"'), AFTER),
    "options": (a_stage("work", "options", output='"options"'), AFTER),
    "fields": (a_stage("work", "fields", output='"structured"', gate=FIELDS), AFTER),
    "raw": (a_stage("work", "raw", output='"options"'), AFTER),
    "review": (
        a_stage("build", "text", gate='"none"'),
        a_stage("work", "checklist", output='"checklist"', fix='"build"'),
        AFTER,
    ),
    **{
        does: (a_stage("work", does, limits="{ park_s = 0 }"), AFTER)
        for does in ("works", "deaf", "limit", "asks", "leave", "no-rule", "everything", "writes")
    },
}


class State(Struct, frozen=True, kw_only=True):
    """How a task gets into a state, and what the engine then says of it."""

    pipeline: str
    steps: tuple[Any, ...] = ()
    """Orders, with their arguments where they have some; `@` waits for a word of `WAITS`, or for a shape."""
    shape: str
    """`life/status,status`: the tags of the task's life and of each stage's status."""
    form: str = ""
    """The kind of the document that waits."""
    asks: str = ""
    """What is asked for: questions, permission, both, or a permission of which no rule can be made."""
    draft: bool = False
    alone: bool = False
    """Must be tried while no other task runs: it writes to the tree, or wants all slots."""

    def kind(self, current: int) -> str:
        """What orders depend on: the task's life, the status of the current stage, and what waits."""
        life, _, statuses = self.shape.partition("/")
        stages = statuses.split(",")
        status = stages[current] if current < len(stages) else ""
        return f"{life} {status} {self.form or self.asks}"


def _told(**answers: Any) -> tuple[str, dict[str, Any]]:
    return "editDraft", {"answers": answers}


GATE = ("run", "@gate")
RUNS = ("run", "@started")
ASKED = ("run", "@decision")
TICKED = {"ticked": True, "note": ""}
CHANGED = ("editDraft", {"document": "01-work.md", "text": "# Done otherwise\n"})
STATES: dict[str, State] = {
    "draft": State(pipeline="text", shape="draft/ahead,ahead", draft=True),
    "ready": State(pipeline="text", shape="ready/ahead,ahead"),
    "ready, the first stage skipped": State(pipeline="text", steps=("skip",), shape="ready/skipped,ahead"),
    "queued": State(pipeline="text", steps=("run",), shape="taken/queued,ahead", alone=True),
    "running": State(pipeline="works", steps=RUNS, shape="taken/running,ahead"),
    "told something": State(
        pipeline="deaf", steps=(*RUNS, ("interrupt", {"text": "Shorter."})), shape="taken/running,ahead"
    ),
    "asking": State(
        pipeline="asks", steps=ASKED, shape="taken/running,ahead", form="questions", asks="questions"
    ),
    "asking, answered in the draft": State(
        pipeline="asks",
        steps=(*ASKED, _told(Q1=["A"], Q2=["A", "C"])),
        shape="taken/running,ahead",
        form="questions",
        asks="questions",
    ),
    "asking once more": State(
        pipeline="asks",
        steps=(*ASKED, _told(Q1=["A"], Q2=["A"]), "send", "@second round"),
        shape="taken/running,ahead",
        form="questions",
        asks="questions",
    ),
    "asking leave": State(pipeline="leave", steps=ASKED, shape="taken/running,ahead", asks="permission"),
    "asking leave without a rule": State(
        pipeline="no-rule", steps=ASKED, shape="taken/running,ahead", asks="permission-once"
    ),
    "asking everything": State(
        pipeline="everything",
        steps=("run", "@both"),
        shape="taken/running,ahead",
        form="questions",
        asks="permission questions",
    ),
    "parked": State(
        pipeline="parks", steps=("run",), shape="taken/parked,ahead", form="questions", asks="questions"
    ),
    "held": State(pipeline="works", steps=(*RUNS, "pause"), shape="paused/held,ahead"),
    "paused at its gate": State(pipeline="text", steps=(*GATE, "pause"), shape="paused/at_gate,ahead"),
    "paused while asking": State(
        pipeline="asks", steps=(*ASKED, "pause"), shape="paused/parked,ahead", asks="questions"
    ),
    "paused after failing": State(
        pipeline="fails", steps=("run", "@person", "pause"), shape="paused/stuck,ahead"
    ),
    "waiting for the end of a limit": State(pipeline="limit", steps=("run",), shape="taken/retry_due,ahead"),
    "failed, no retry left": State(pipeline="fails", steps=("run",), shape="taken/stuck,ahead"),
    "stopped for its silence": State(pipeline="silent", steps=("run",), shape="taken/stuck,ahead"),
    "stopped by a person": State(pipeline="works", steps=(*RUNS, "stop"), shape="taken/stuck,ahead"),
    "stopped for a breach": State(pipeline="breach", steps=("run",), shape="taken/stuck,ahead", alone=True),
    "a text at its gate": State(pipeline="text", steps=GATE, shape="taken/at_gate,ahead", form="text"),
    "a text at its gate, files changed": State(
        pipeline="writes", steps=GATE, shape="taken/at_gate,ahead", form="text", alone=True
    ),
    "options, none selected": State(
        pipeline="options", steps=GATE, shape="taken/at_gate,ahead", form="options"
    ),
    "options, one selected": State(
        pipeline="options", steps=(*GATE, _told(B=True)), shape="taken/at_gate,ahead", form="options"
    ),
    "a checklist, one open": State(
        pipeline="review",
        steps=(*GATE, _told(W1=TICKED, I1=TICKED)),
        shape="taken/passed,at_gate,ahead",
        form="checklist",
    ),
    "a checklist, all reviewed": State(
        pipeline="review",
        steps=(*GATE, _told(C1=TICKED, W1=TICKED, I1=TICKED)),
        shape="taken/passed,at_gate,ahead",
        form="checklist",
    ),
    "fields, one empty": State(pipeline="fields", steps=GATE, shape="taken/at_gate,ahead", form="fields"),
    "fields, filled": State(
        pipeline="fields", steps=(*GATE, _told(test_plan="Look.")), shape="taken/at_gate,ahead", form="fields"
    ),
    "what does not fit, at its gate": State(
        pipeline="raw", steps=GATE, shape="taken/at_gate,ahead", form="text"
    ),
    "approved, the next not started": State(
        pipeline="text", steps=(*GATE, "approve"), shape="taken/passed,awaits_input"
    ),
    "approved, the next runs": State(
        pipeline="chain", steps=(*GATE, "approve", "@started"), shape="taken/passed,running,ahead"
    ),
    "approved, the next failed": State(
        pipeline="chain-fails", steps=(*GATE, "approve"), shape="taken/passed,stuck"
    ),
    "passed by itself": State(
        pipeline="free", steps=("run", "@taken/passed,running", "@started"), shape="taken/passed,running"
    ),
    "approval void, it waits again": State(
        pipeline="text", steps=(*GATE, "approve", CHANGED), shape="taken/at_gate,ahead", form="text"
    ),
    "approval void, the next runs": State(
        pipeline="chain", steps=(*GATE, "approve", "@started", CHANGED), shape="taken/passed,running,ahead"
    ),
    "gone back": State(
        pipeline="chain",
        steps=(*GATE, "approve", "@started", ("goBack", {"stage": "work"})),
        shape="taken/at_gate,ahead,ahead",
        form="text",
    ),
    "skipped": State(pipeline="text", steps=(*GATE, "skip"), shape="taken/skipped,awaits_input"),
    "done": State(pipeline="one", steps=(*GATE, "approve"), shape="completed/passed"),
    "abandoned": State(pipeline="text", steps=(*GATE, "abandon"), shape="archived/at_gate,ahead"),
    "archived": State(pipeline="one", steps=(*GATE, "approve", "archive"), shape="archived/passed"),
}


def _current(view: Any) -> Any:
    return next((stage for stage in view["stages"] if stage["id"] == view["current"]), None)


def _kind(view: Any) -> str:
    return str((view["waiting_for"] or {}).get("kind"))


def _decisions(view: Any) -> list[str]:
    return [d["kind"] for d in view["decisions"] if d["status"] in ("open", "parked")]


WAITS: dict[str, Callable[[Any], object]] = {
    "gate": lambda view: _kind(view) == "gate",
    "decision": lambda view: _kind(view) == "decision",
    "person": lambda view: _kind(view) == "person",
    "both": lambda view: len(_decisions(view)) == 2,
    "second round": lambda view: any(d["id"] == "Q3" and d["status"] == "open" for d in view["decisions"]),
    "started": lambda view: (
        (stage := _current(view)) is not None
        and stage["attempts"]
        and stage["attempts"][-1]["status"] == "running"
        and stage["attempts"][-1]["session"]
    ),
}


class Watcher(Buffers):
    """An editor of ours that knows every task as it was told last."""

    def __init__(self, user: User) -> None:
        super().__init__(user, {**PLAIN, **OURS})
        self.tasks: dict[int, Any] = {}

    def _hear(self, message: Message) -> None:
        if message.get("method") == "promptside/task":
            task = message["params"]["task"]
            self.tasks[task["id"]] = task
        super()._hear(message)


class World:
    """One daemon and one project with a task for each state; an editor of ours watches, and gives the orders."""

    def __init__(self, user: User, watcher: Watcher) -> None:
        self.user = user
        self.watcher = watcher
        self.project = str(user.project)

    def view(self, number: int) -> Any:
        """The task as it was told last."""
        return self.watcher.tasks[number]

    async def until(self, number: int, condition: Callable[[Any], object]) -> Any:
        """The task when it fulfils the condition."""
        at = len(self.watcher.heard)
        while not condition(view := self.view(number)):
            try:
                await self.watcher.task(lambda task: task["id"] == number, at)
            except TimeoutError as error:
                raise AssertionError(f"{self.recorded(number)}: this rests: {view}") from error
            at = len(self.watcher.heard)
        return view

    async def shaped(self, number: int, wanted: str) -> Any:
        """The task when the engine says so of it."""
        return await self.until(number, lambda view: self.recorded(number, view["seq"]) == wanted)

    def recorded(self, number: int, seq: int = 0) -> str:
        """The shape of a task in the daemon's database; empty if it is not the one that was told as `seq`."""
        task, now = self._stored(number)
        if seq not in (0, now):
            return ""
        tags = [str(run.status.__struct_config__.tag) for run in task.stages]
        return f"{task.life.__struct_config__.tag}/{','.join(tags)}"

    def task(self, number: int) -> Task:
        """The engine's task, as it is stored."""
        return self._stored(number)[0]

    def _stored(self, number: int) -> tuple[Task, int]:
        (file,) = self.user.data.glob("data/projects/*/project.db")
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
            row = database.execute("select body, seq from tasks where id = ?", (number,)).fetchone()
        database.close()
        return msgspec.json.decode(row[0], type=Task), row[1]

    async def order(self, name: str, number: int, **args: Any) -> None:
        """An order as a script would give it."""
        if name == "editDraft":
            waiting = self.view(number)["waiting_for"] or {}
            document = args.get("document")
            args["document"] = (
                f"{self.view(number)['directory']}/{document}" if document else waiting["document"]
            )
        ack = await self.watcher.command(name, project=self.project, task=number, **args)
        await self.until(number, lambda view: view["seq"] >= ack["seq"])

    async def put_away(self, number: int) -> None:
        """Abandon a task that is not over: its agent holds a slot."""
        if self.view(number)["state"] in ("taken", "paused"):
            await self.order("abandon", number)

    async def rest(self) -> None:
        """Put away everything that is open, and wait until no agent is left."""
        for number in sorted(self.watcher.tasks):
            await self.put_away(number)
        async with asyncio.timeout(60):
            while self.user.agents():  # noqa: ASYNC110  # nobody tells of it
                await asyncio.sleep(0.02)

    @contextlib.asynccontextmanager
    async def taken_up(self, name: str) -> AsyncIterator[None]:
        """Everything that a state needs beside its own task: a task that waits for a slot needs one that has it."""
        if "queued" in STATES[name].shape:
            slots(self.user, 1)
            await self.bring("running")
        yield
        slots(self.user, SLOTS)

    async def bring(self, name: str) -> int:
        """A new task in this state; its number."""
        return await self.make(STATES[name], name.title())

    async def make(self, state: State, title: str) -> int:
        """The same with a title of its own, in a state that need not be among `STATES`."""
        made = {"title": title, "pipeline": state.pipeline, "agent": "claude", "draft": state.draft}
        ack = await self.watcher.command("newTask", project=self.project, **made)
        number: int = ack["task"]
        at = 0
        while number not in self.watcher.tasks:
            await self.watcher.task(lambda task: task["id"] == number, at)
            at = len(self.watcher.heard)
        for step in state.steps:
            if isinstance(step, tuple):
                await self.order(step[0], number, **step[1])
            elif not step.startswith("@"):
                await self.order(step, number)
            elif "/" in step:
                await self.shaped(number, step[1:])
            else:
                await self.until(number, WAITS[step[1:]])
        await self.shaped(number, state.shape)
        return number


def prepare(user: User) -> None:
    """The pipelines, the settings and the agent."""
    directory = user.data / "config" / "pipelines"
    directory.mkdir(parents=True)
    for name, stages in PIPELINES.items():
        write(directory, name, stages)
    slots(user, SLOTS)
    (user.project / "src").mkdir()
    (user.project / "src" / "a.py").write_text("pass\n")
    user.environment["PROMPTSIDE_CLAUDE"] = str(fake_claude(user.base, AGENT))


def write(directory: Path, name: str, stages: tuple[Keys, ...]) -> Path:
    """The file of a pipeline."""
    file = directory / f"{name}.toml"
    tables = (["[[stage]]", *(f"{key} = {value}" for key, value in stage.items())] for stage in stages)
    file.write_text("\n\n".join("\n".join(lines) for lines in tables) + "\n")
    return file


def slots(user: User, count: int) -> None:
    """How many agents may work at once."""
    (user.data / "config" / "config.toml").write_text(f"[limits]\nagents = {count}\n")


async def file_there(file: Path) -> None:
    """Wait until the daemon has written a document: it tells of a task a moment before."""
    async with asyncio.timeout(60):
        while not file.exists():  # noqa: ASYNC110  # nobody tells of it
            await asyncio.sleep(0.01)
