"""Record the rehearsal of `standard` anew: `python tests/rig/record_rehearsal.py`, some 20 seconds.

Each stage is run by the real `claude`, with the command line that the daemon would give it, in a scratch copy of
the sample project; only the model's replies are scripted. What says something of the machine, the day or the
person is left out or named by a placeholder, so that a recording made elsewhere is the same one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptside_daemon.engine.pipeline import RequireFields, Stage
from promptside_daemon.pipelines import prompt as prompts
from promptside_daemon.pipelines.find import SHIPPED
from promptside_daemon.pipelines.load import load
from promptside_daemon.world.claude import argv, messages
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import Asked, PermissionAsked, Reading, ToolFinished, TurnEnded
from promptside_daemon.world.claude.version import COMPLETE
from promptside_protocol import forms

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rig.claude_binary import claude_binary  # noqa: E402  run by path, this file finds its neighbours itself
from rig.messages_api import MessagesAPI, Rule  # noqa: E402
from rig.standard_replies import replies  # noqa: E402
from rig.standard_texts import DESCRIPTION, REDO_FEEDBACK, REFINEMENT_INPUT, TITLE  # noqa: E402

REHEARSAL = ROOT / "daemon" / "promptside_daemon" / "rehearsals" / "standard"
AFTER = ROOT / "tests" / "fixtures" / "rehearsals" / "standard-after.json"
"""What the sample is when all has been played: text by path."""

DAY = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
"""When every recording was made, so to speak."""
MS_PER_TOKEN = 18
"""How fast the model is, so to speak: a scripted one answers at once."""

# What is kept of the lines that tell much; a reader needs no more, and the rest tells of a machine and its user.
KEPT = {
    "init": ("cwd", "session_id", "tools", "mcp_servers", "model", "permissionMode", "claude_code_version"),
    "result": (
        *("is_error", "result", "errors", "structured_output", "stop_reason", "terminal_reason", "num_turns"),
        *("duration_ms", "duration_api_ms", "total_cost_usd", "usage", "modelUsage", "permission_denials"),
        "session_id",
    ),
}
LEFT_OUT = frozenset({"command_lifecycle", "rate_limit_event", "ui_invalidate"})
DROPPED = frozenset({"uuid", "user_message_uuid", "user_message_uuids", "ttft_ms", "request_id"})


class Scene(Struct, frozen=True, kw_only=True):
    """One attempt that is recorded: where, which, and with which model."""

    home: Path
    root: Path
    stage: Stage
    attempt: int
    session: str
    api: str

    @property
    def name(self) -> str:
        """The recording's name, without its ending."""
        return f"{self.stage.id}.{self.attempt}"


def main() -> None:
    """Write `<stage>.<n>.ndjson` beside the sample, and what the sample becomes into the tests' fixtures."""
    pipeline = load(SHIPPED / "standard.toml", "shipped").pipeline
    assert pipeline is not None
    stages = {stage.id: stage for stage in pipeline.stages}
    with tempfile.TemporaryDirectory() as name:
        home, root = Path(name).resolve() / "home", Path(name).resolve() / "project"
        home.mkdir()
        shutil.copytree(REHEARSAL / "project", root, ignore=shutil.ignore_patterns("__pycache__"))
        for command in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=The sample")):
            subprocess.run(["git", *command], cwd=root, env=environment(home), check=True)
        sessions = {stage: str(uuid.uuid4()) for stage in stages}
        for recording, script in replies(root).items():
            stage, _, number = recording.partition(".")
            with MessagesAPI(Rule("", script)) as api:
                scene = Scene(
                    home=home,
                    root=root,
                    stage=stages[stage],
                    attempt=int(number),
                    session=sessions[stage],
                    api=api.url,
                )
                text = neutral(scene, play(scene))
                assert not api.unexpected, f"{recording}: the script is too short"
                assert len(api.requests) == len(script), f"{recording}: the script is too long"
            (REHEARSAL / f"{recording}.ndjson").write_text(text, encoding="utf-8")
            print(f"{recording}: {len(text) / 1000:.0f} kB")
        AFTER.parent.mkdir(parents=True, exist_ok=True)
        AFTER.write_text(json.dumps(tree(root), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def play(scene: Scene) -> Iterator[bytes]:
    """The lines of one attempt, as the CLI writes them; what it asks is answered with the recommended and yes."""
    with tempfile.TemporaryDirectory(dir=scene.home) as directory:
        driven = argv.driven(launch(scene, directory))
        for name, content in driven.files.items():
            (Path(directory) / name).write_bytes(content)
        with subprocess.Popen(
            driven.argv,
            cwd=scene.root,
            env=argv.environment(environment(scene.home, scene.api), attempt=scene.name),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as agent:
            assert agent.stdin is not None
            assert agent.stdout is not None
            reader, at = Reader(wants_structured=schema(scene.stage) is not None), 0
            for message in (*driven.first, messages.user_message(told(scene), order=scene.name)):
                agent.stdin.write(message)
            agent.stdin.flush()
            for line in agent.stdout:
                yield line
                at += len(line)
                for reading in reader.read(line.rstrip(b"\n"), at):
                    if (answer := answered(reading)) is not None:
                        agent.stdin.write(answer)
                        agent.stdin.flush()
                    if isinstance(reading, TurnEnded):
                        assert reading.outcome.ok, reading.outcome.sentence
                        agent.stdin.close()
        assert agent.returncode == 0, f"{scene.name}: exit code {agent.returncode}"


def launch(scene: Scene, directory: str) -> argv.Launch:
    """As the daemon starts this stage with a person there."""
    resumed = scene.attempt > 1
    return argv.Launch(
        binary=str(claude_binary()),
        version=COMPLETE,
        directory=directory,
        session=argv.ResumedSession(scene.session) if resumed else argv.NewSession(scene.session),
        tools="all" if scene.stage.tools is None else scene.stage.tools,
        permission=scene.stage.permission,
        read_only=scene.stage.read_only,
        attended=True,
        trusted=False,
        rules=scene.stage.rules,
        schema=schema(scene.stage),
        max_turns=200,
        root=os.geteuid() == 0,
    )


def told(scene: Scene) -> str:
    """The message that begins the attempt."""
    if scene.attempt > 1:
        return REDO_FEEDBACK
    variables = prompts.Variables(
        task_description=f"{TITLE}\n\n{DESCRIPTION}",
        user_input=REFINEMENT_INPUT if scene.stage.input == "both" else "",
        task=prompts.TaskFacts(id=1, title=TITLE),
        project=prompts.ProjectFacts(name=scene.root.name, path=str(scene.root)),
        stage=prompts.StageFacts(id=scene.stage.id, name=scene.stage.name),
    )
    return prompts.render(scene.stage.prompt, variables)


def schema(stage: Stage) -> dict[str, Any] | None:
    """What the output must fit; None for text."""
    if stage.output == "structured" and stage.schema is None:
        return forms.fields_schema(stage.gate.fields if isinstance(stage.gate, RequireFields) else ())
    return stage.schema or forms.SCHEMAS.get(stage.output)


def answered(reading: Reading) -> bytes | None:
    """What a person would send who takes what is recommended and allows what is asked."""
    match reading:
        case Asked():
            asked = messages.decisions(reading)
            chosen = [tuple(o.id for o in one.options if o.recommended) for one in asked]
            return messages.answer_questions(reading, [messages.Answered(chosen=ids) for ids in chosen])
        case PermissionAsked():
            return messages.allow(reading.request, reading.input)
        case ToolFinished(ok=False):
            raise AssertionError(f"a tool call failed: {reading.id}")
        case _:
            return None


def neutral(scene: Scene, lines: Iterator[bytes]) -> str:
    """A transcript with nothing of this machine, this day and this run in it."""
    events = [event for line in lines if (event := trimmed(json.loads(line))) is not None]
    text = "".join(f"{json.dumps(e, separators=(',', ':'), ensure_ascii=False)}\n" for e in events)
    text = text.replace(str(scene.root), "{{cwd}}").replace(scene.session, "{{session}}")
    text = renamed(text, r"(?<=\b(?:msg|req)_)\w{20,}|(?<=\btoolu_)\w{20,}", scene.name, 24)
    text = renamed(text, r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", scene.name, 36)
    text = moved(text)
    for mark in (str(scene.home.parent), scene.api, str(Path.home())):
        assert mark not in text, f"{scene.name} tells of this machine: {mark}"
    return text


def trimmed(event: dict[str, Any]) -> dict[str, Any] | None:
    """An event without what nobody reads; None if nothing of it is read."""
    if not LEFT_OUT.isdisjoint({event["type"], event.get("subtype")}):
        return None
    kept = KEPT.get(event.get("subtype", ""), ()) or KEPT.get(event["type"], ())
    if event["type"] == "result":
        spent = event["usage"]["output_tokens"] * MS_PER_TOKEN
        event |= {"duration_ms": spent, "duration_api_ms": spent}
    if kept:
        event = {name: event[name] for name in ("type", "subtype", *kept) if name in event}
    if event["type"] == "control_request":
        return event
    return {name: value for name, value in event.items() if name not in DROPPED}


def renamed(text: str, pattern: str, seed: str, length: int) -> str:
    """Ids by the order in which they come, so that the next recording has the same ones."""
    found = dict.fromkeys(match[0] for match in re.finditer(pattern, text))
    names = {
        name: str(uuid.uuid5(uuid.NAMESPACE_URL, f"{seed}/{pattern}/{n}")) for n, name in enumerate(found)
    }
    return re.sub(
        pattern,
        lambda match: names[match[0]] if length == 36 else names[match[0]].replace("-", "")[:length],
        text,
    )


def moved(text: str) -> str:
    """Times as they would be if the recording had begun on `DAY`."""
    pattern = r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    first = re.search(pattern, text)
    if first is None:
        return text
    start = datetime.fromisoformat(first[0])

    def later(match: re.Match[str]) -> str:
        passed: timedelta = datetime.fromisoformat(match[0]) - start
        return (DAY + passed).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    return re.sub(pattern, later, text)


def tree(root: Path) -> dict[str, str]:
    """Every file of a project, without git's own and what Python leaves."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if not {".git", "__pycache__"} & set(path.relative_to(root).parts)
    }


def environment(home: Path, api: str = "") -> dict[str, str]:
    """Nothing of the caller's but the PATH."""
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "ANTHROPIC_API_KEY": "dummy-key",
        "ANTHROPIC_BASE_URL": api,
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in PERSON},
        "GIT_CONFIG_NOSYSTEM": "1",
    }


PERSON = (("NAME", "A Person"), ("EMAIL", "person@example.invalid"))


if __name__ == "__main__":
    main()
