"""What is started for an attempt, and what it is told: from a stage, an order and the settings to a directory.

The rehearsal differs in its argv only; keeper, directory and reader are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec import Struct

from promptside_daemon.engine.pipeline import Stage, limits_for
from promptside_daemon.engine.task import Attempt as AttemptState
from promptside_daemon.engine.task import Failure, Order, Passed, StageRun, Task
from promptside_daemon.pipelines import prompt as prompts
from promptside_daemon.pipelines.template import PromptError
from promptside_daemon.settings import Settings, rules_with_checks
from promptside_daemon.toml_source import read_bytes
from promptside_daemon.world import rehearsal
from promptside_daemon.world.attempt import Attempt, AttemptSpec, Limits
from promptside_daemon.world.claude import argv, messages, unsaved_hook, version
from promptside_daemon.world.claude.version import Version
from promptside_daemon.world.documents import Documents, write_json
from promptside_daemon.world.preparation import Preparation
from promptside_daemon.world.processes import MARK
from promptside_daemon.world.scene import NOWHERE, Scene, set_up
from promptside_daemon.world.secrets import note_secrets, redactor_for
from promptside_protocol import forms
from promptside_protocol.queries import Terminal

UNSAVED = "unsaved.json"
"""In an attempt's directory: the files that editors hold unsaved, each with its editor; empty if there are none."""
GRACE_SECONDS = 5.0
MEMORY_BYTES = 200_000
"""Of a CLAUDE.md; the CLI itself warns from 40,000 characters on."""
VERSION_SECONDS = 30.0
"""How long `claude --version` may take; it takes one, and more on a machine that swaps."""


class Driving(Struct, frozen=True, kw_only=True):
    """How a started attempt is driven; kept beside it, so that the next daemon drives it the same way."""

    before: int
    """Lines that were sent before the prompt: the numbers of all messages move up by as many."""
    on_ask: str
    offered: tuple[str, ...] | None
    remarks: tuple[str, ...]


class Launcher:
    """Prepares the attempts of one project."""

    def __init__(
        self,
        *,
        root: Path,
        documents: Documents,
        settings: Callable[[], Settings],
        trusted: Callable[[], bool],
        environment: Callable[[int], Mapping[str, str]],
    ) -> None:
        self.root = root
        self._documents = documents
        self._settings = settings
        self._trusted = trusted
        self._environment = environment
        self._setting_up = asyncio.Lock()

    def schema(self, stage: Stage) -> dict[str, Any] | None:
        """The JSON Schema that the output must fit; None for text."""
        if stage.output == "text":
            return None
        if stage.output == "structured":
            return stage.schema or forms.fields_schema(_fields(stage))
        return stage.schema or forms.SCHEMAS[stage.output]

    def rules(self, stage: Stage) -> tuple[str, ...]:
        """The stage's own permission rules, with the check commands of the settings (ST-14)."""
        return rules_with_checks(stage, self._settings().checks)

    # --- a directory ----------------------------------------------------------------------------------------

    async def set_up(self, task: Task) -> Scene:
        """Make the project's folder fit for a rehearsal, before its files are kept; nothing for another agent."""
        name, _, place = task.agent.partition(":")
        if not (name.startswith("rehearsal") and place):
            return NOWHERE
        async with self._setting_up:
            return await set_up(self.root, rehearsal.place(place), self._environment(task.id))

    async def prepare(
        self, hand: Attempt, task: Task, attempt: AttemptState, stage: Stage, scene: Scene = NOWHERE
    ) -> Failure | None:
        """Write the whole directory; a failure says what is wrong and what to do."""
        base = dict(self._environment(task.id))
        try:
            if task.agent.startswith("rehearsal"):
                await asyncio.to_thread(self._rehearse, hand, task, attempt, stage, base, scene)
                return None
            return await self._claude(hand, task, attempt, stage, base)
        except PromptError as error:
            return Failure(
                kind="prompt",
                sentence=f"The prompt of {stage.name} can't be rendered: {error}",
                hint=f"promptside pipeline check {task.pipeline.name}",
            )

    async def _claude(
        self, hand: Attempt, task: Task, attempt: AttemptState, stage: Stage, base: dict[str, str]
    ) -> Failure | None:
        found = await asyncio.to_thread(self.find_claude, base)
        if isinstance(found, Failure):
            return found
        binary, its_version = found
        settings = await asyncio.to_thread(self._settings)
        environment = argv.environment({**base, **settings.agent.claude.env}, attempt=attempt.id)
        await asyncio.to_thread(note_secrets, hand.directory, environment)
        refined = ""
        if stage.preparation and not _goes_on(attempt.order):
            redactor = redactor_for(hand.directory)
            room = hand.directory / "preparation"
            preparing = Preparation(room, binary, its_version, str(self.root), redactor)
            asked = await asyncio.to_thread(self._refinement, task, attempt, stage)
            result = await preparing.run(asked, environment)
            if isinstance(result, Failure):
                return result
            refined = result
        return await asyncio.to_thread(
            self._lay_out, hand, task, attempt, stage, environment, settings, binary, its_version, refined
        )

    def _lay_out(
        self,
        hand: Attempt,
        task: Task,
        attempt: AttemptState,
        stage: Stage,
        environment: dict[str, str],
        settings: Settings,
        binary: str,
        its_version: Version,
        refined: str,
    ) -> Failure | None:
        text = self.told(task, attempt, stage, refined)
        trusted = self._trusted()
        limits = limits_for(task.limits, stage)
        launch = argv.Launch(
            binary=binary,
            version=its_version,
            directory=str(hand.directory),
            session=_session(attempt),
            tools="all" if stage.tools is None else stage.tools,
            permission=stage.permission,
            read_only=stage.read_only,
            attended=task.on_ask == "wait",
            trusted=trusted,
            rules=rules_with_checks(stage, settings.checks),
            model=stage.model
            or (stage.persona.model if stage.persona else "")
            or settings.agent.claude.model
            or None,
            instructions=stage.persona.system_prompt if stage.persona else "",
            memory=self._memory() if stage.read_only or not trusted else "",
            schema=self.schema(stage),
            max_turns=limits.turns or None,
            max_budget_usd=limits.budget_usd or None,
            root=os.geteuid() == 0,
            sandboxed=environment.get("IS_SANDBOX") == "1",
            before_edits=_before_edits(hand.directory / UNSAVED),
        )
        try:
            driven = argv.driven(launch)
        except ValueError as error:
            return Failure(kind="stage", sentence=str(error), hint="promptside pipeline check")
        for name, content in driven.files.items():
            (hand.directory / name).write_bytes(content)
        for number, line in enumerate(driven.first, 1):
            (hand.directory / f"first-{number}.json").write_bytes(line)
        driving = Driving(
            before=len(driven.first),
            on_ask=driven.on_ask,
            offered=tuple(sorted(driven.offered)) if driven.offered is not None else None,
            remarks=driven.remarks,
        )
        write_json(hand.directory / "driving.json", driving)
        spec = AttemptSpec(
            id=attempt.id,
            argv=driven.argv,
            cwd=str(self.root),
            limits=Limits(wall_seconds=limits.stage_s or None, grace_seconds=GRACE_SECONDS),
            interrupt=messages.interrupt(f"{attempt.id}/stop").decode().rstrip("\n"),
        )
        prefaced = f"{driven.preface}\n\n{text}" if driven.preface else text
        hand.create(spec, environment, prefaced)
        return None

    def _rehearse(
        self,
        hand: Attempt,
        task: Task,
        attempt: AttemptState,
        stage: Stage,
        base: dict[str, str],
        scene: Scene,
    ) -> None:
        text = self.told(task, attempt, stage)
        environment = {**base, MARK: attempt.id}
        note_secrets(hand.directory, environment)
        name, _, place = task.agent.partition(":")
        command = rehearsal.command(
            recorded=rehearsal.recording(rehearsal.place(place), stage.id, attempt.n) if place else None,
            output=stage.output,
            schema=self.schema(stage),
            made_up=hand.directory / "made-up.json",
            session=attempt.order.resume or str(uuid5(NAMESPACE_URL, f"promptside:{attempt.id}")),
            fast=name == "rehearsal-fast",
            scene=scene,
        )
        offered = (
            None
            if stage.tools is None
            else tuple(sorted({*stage.tools, "AskUserQuestion", "StructuredOutput"}))
        )
        driving = Driving(
            before=0,
            on_ask="ask" if task.on_ask == "wait" else "deny",
            offered=offered,
            remarks=(scene.remark,) if scene.remark else (),
        )
        write_json(hand.directory / "driving.json", driving)
        limits = limits_for(task.limits, stage)
        spec = AttemptSpec(
            id=attempt.id,
            argv=(sys.executable, "-I", "-S", *command),
            cwd=str(self.root),
            limits=Limits(wall_seconds=limits.stage_s or None, grace_seconds=GRACE_SECONDS),
            interrupt=messages.interrupt(f"{attempt.id}/stop").decode().rstrip("\n"),
        )
        hand.create(spec, environment, text)

    def greet(self, hand: Attempt) -> None:
        """Put what comes first, and the prompt, into the inbox; doing it twice is harmless."""
        driving = self.driving(hand)
        for number in range(1, driving.before + 1):
            hand.send(number, (hand.directory / f"first-{number}.json").read_bytes().rstrip(b"\n"))
        text = (hand.directory / "prompt.md").read_text(encoding="utf-8")
        line = messages.user_message(text, order=f"{hand.directory.name}/1")
        hand.send(driving.before + 1, line.rstrip(b"\n"))

    def driving(self, hand: Attempt) -> Driving:
        """How this attempt is driven."""
        return msgspec.json.decode((hand.directory / "driving.json").read_bytes(), type=Driving)

    # --- what it is told ----------------------------------------------------------------------------------

    def told(self, task: Task, attempt: AttemptState, stage: Stage, refined: str = "") -> str:
        """The first message: the whole prompt for a new conversation, only what is new for one that goes on."""
        order = attempt.order
        if _goes_on(order):
            parts = [order.answers, order.feedback, _failed(order.failure)]
            again = "Do it again." if order.cause == "redo" else "Go on where you stopped."
            return "\n\n".join(p for p in parts if p) or again
        run = task.stages[task.pipeline.index(stage.id)]
        before = _previous(task, run)
        text = prompts.render(
            stage.prompt,
            prompts.Variables(
                task_description=_description(task),
                previous_output=self._approved(task, before) if before else "",
                user_input=refined or run.input,
                user_decision=self._decided(task, before) if before else "",
                feedback=order.feedback,
                failure=prompts.cut(order.failure),
                task=prompts.TaskFacts(
                    id=task.id,
                    title=task.title,
                    type=task.kind,
                    work_type=task.work_type,
                    priority=task.priority,
                    files=task.files,
                    criteria=task.criteria,
                    directory=task.directory,
                ),
                project=prompts.ProjectFacts(name=self.root.name, path=str(self.root)),
                stage=prompts.StageFacts(id=stage.id, name=stage.name),
            ),
        )
        last = self._last_output(task, run) if order.feedback or order.answers else ""
        extra = [f"## Your last output\n\n{last}" if last else "", order.answers]
        return "\n".join([text, *(f"{p}\n" for p in extra if p)])

    def _refinement(self, task: Task, attempt: AttemptState, stage: Stage) -> str:
        run = task.stages[task.pipeline.index(stage.id)]
        return prompts.render(
            stage.preparation,
            prompts.Variables(
                task_description=_description(task),
                user_input=run.input,
                feedback=attempt.order.feedback,
                stage=prompts.StageFacts(id=stage.id, name=stage.name),
                project=prompts.ProjectFacts(name=self.root.name, path=str(self.root)),
            ),
        )

    def _approved(self, task: Task, run: StageRun) -> str:
        """The approved output of a stage, as the person left it."""
        if run.form is None:
            return ""
        return content(run.form.definition, self._documents.draft(task, run.form))

    def _decided(self, task: Task, run: StageRun) -> str:
        if run.form is None or not isinstance(run.status, Passed):
            return ""
        answers = forms.from_plain(run.form.definition, run.form.answers)
        return forms.decision_text(run.form.definition, self._documents.draft(task, run.form), answers)

    def _last_output(self, task: Task, run: StageRun) -> str:
        return self._approved(task, run) if run.form is not None else ""

    def _memory(self) -> str:
        """The project's CLAUDE.md, which the CLI leaves out when it may not read the project's settings (CW-18)."""
        try:
            return read_bytes(self.root / "CLAUDE.md", MEMORY_BYTES)[:MEMORY_BYTES].decode(errors="replace")
        except OSError:
            return ""

    def in_terminal(self, session: str, environment: Mapping[str, str]) -> Terminal | Failure:
        """How a person goes on with a conversation in a terminal of this environment. Blocks as `find_claude`."""
        found = self.find_claude(environment)
        if isinstance(found, Failure):
            return found
        return Terminal(
            command=argv.in_terminal(found[0], session),
            cwd=str(self.root),
            environment=self._settings().agent.claude.env,
        )

    # --- the binary ---------------------------------------------------------------------------------------

    def find_claude(self, environment: Mapping[str, str]) -> tuple[str, Version] | Failure:
        """The Claude CLI of this environment and its version, or what to do about it. Blocks for its start."""
        wanted = environment.get("PROMPTSIDE_CLAUDE") or self._settings().agent.claude.command
        return find_claude(wanted, environment)


def find_claude(wanted: str, environment: Mapping[str, str]) -> tuple[str, Version] | Failure:
    """The binary and its version, or why it can't be used and what to do. Blocks for its start."""
    named = os.path.expanduser(wanted)  # noqa: PTH111  a name on the PATH, or a path
    binary = shutil.which(named, path=environment.get("PATH"))
    if binary is None:
        is_file = os.sep in named and Path(named).is_file()
        found = "may not be executed" if is_file else "was not found"
        return Failure(
            kind="no_claude",
            sentence=f"The Claude CLI is not there: {wanted} {found}.",
            hint=f"{f'Make it executable: chmod +x {named}.' if is_file else INSTALL} {REHEARSE}",
        )
    try:
        found_version = read_version(binary, environment)
    except VersionUnknown as error:
        return Failure(
            kind="old_claude",
            sentence=f"{binary} does not say its version: {error}",
            hint="Try “claude --version” in a terminal.",
        )
    fit = version.fitness(found_version)
    if found_version is None or not fit.usable:
        return Failure(kind="old_claude", sentence=fit.losses[0], hint="promptside doctor")
    return binary, found_version


INSTALL = (
    "Install it (npm install -g @anthropic-ai/claude-code), run “claude” once to log in, then retry; or set "
    "PROMPTSIDE_CLAUDE."
)
REHEARSE = "A new task with the agent rehearsal:standard needs no Claude: it plays a recorded run."


class VersionUnknown(Exception):
    """The program could not be asked, or did not answer; the sentence says why."""


_versions: dict[tuple[str, float, int], Version] = {}


def read_version(binary: str, environment: Mapping[str, str]) -> Version | None:
    """What `claude --version` says; remembered for as long as the file is the same. Raises VersionUnknown."""
    try:
        stat = Path(binary).stat()
        key = (binary, stat.st_mtime, stat.st_size)
        if key not in _versions:
            found = version.parse(_said_by(binary, environment))
            if found is None:
                return None  # not remembered: what it needs to run may be there the next time
            _versions[key] = found
    except OSError as error:
        raise VersionUnknown(f"{error.strerror}.") from error
    return _versions[key]


def _said_by(binary: str, environment: Mapping[str, str]) -> str:
    """The answer to `--version`. It gets a session of its own, and is ended with all it started."""
    asked = subprocess.Popen(
        [binary, "--version"],
        env={**environment, "DISABLE_AUTOUPDATER": "1"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        said, _ = asked.communicate(timeout=VERSION_SECONDS)
    except subprocess.TimeoutExpired as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(asked.pid, signal.SIGKILL)  # not reaped yet: the number is still its own
        asked.wait()
        if asked.stdout is not None:
            asked.stdout.close()
        raise VersionUnknown(f"it did not answer within {VERSION_SECONDS:g} s.") from error
    return said[:1000].decode(errors="replace")


def content(definition: forms.Definition, text: str) -> str:
    """What a document says, without the frame that is there for the person."""
    if isinstance(definition, forms.TextDefinition):
        return forms.parse(definition, text).bodies.get("", text).strip()
    lines = text.split("\n")
    return "\n".join(line for line in lines if not line.startswith(("> ", "<!-- promptside "))).strip()


def _before_edits(held: Path) -> str:
    """The hook as a shell's line: nothing is started while the list is empty, and a fault of ours blocks nothing."""
    program = shlex.join([sys.executable, "-I", "-S", unsaved_hook.__file__, str(held)])
    return f"[ -s {shlex.quote(str(held))} ] || exit 0; {program} 2>/dev/null || exit 0"


def _goes_on(order: Order) -> bool:
    """Whether the stage's prompt is in the conversation already; where a stage begins in an older one it isn't."""
    return bool(order.resume) and order.cause in ("redo", "resumed", "answered")


def _session(attempt: AttemptState) -> argv.Session:
    if attempt.order.resume:
        return argv.ResumedSession(attempt.order.resume)
    return argv.NewSession(str(uuid5(NAMESPACE_URL, f"promptside:{attempt.id}")))


def _previous(task: Task, run: StageRun) -> StageRun | None:
    """The nearest earlier stage that left an output."""
    earlier = task.stages[: task.stages.index(run)]
    return next((r for r in reversed(earlier) if r.form is not None), None)


def _description(task: Task) -> str:
    return f"{task.title}\n\n{task.description}" if task.description else task.title


def _failed(failure: str) -> str:
    return f"The attempt before this one failed: {prompts.cut(failure)}" if failure else ""


def _fields(stage: Stage) -> tuple[str, ...]:
    return getattr(stage.gate, "fields", ())
