"""The rehearsal of `standard`, played: real edits, real answers, and the reader sees what was recorded."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace
from rig.playing import Playing

from promptside_daemon.engine.pipeline import OutputFormat, Pipeline
from promptside_daemon.pipelines.find import SHIPPED
from promptside_daemon.pipelines.load import load
from promptside_daemon.world import player, rehearsal
from promptside_daemon.world.claude import messages
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import (
    Asked,
    PermissionAsked,
    SessionStarted,
    ToolFinished,
    ToolUsed,
)
from promptside_protocol import forms

STANDARD = rehearsal.SHIPPED / "standard"
AFTER: dict[str, str] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "rehearsals" / "standard-after.json").read_text("utf-8")
)
RECORDINGS = sorted(path.stem for path in STANDARD.glob("*.ndjson"))
SESSION = "0f6b6c1e-3f55-4d0b-8f4e-0b8a3a1f9d11"
# In the order in which a person goes through them.
PLAYED = [
    "research.1",
    "high-level-approaches.1",
    "planning.1",
    "planning.2",
    "implementation.1",
    "refinement.1",
    "security-review.1",
    "pr-preparation.1",
]

Play = Callable[..., Playing]


@pytest.fixture(scope="module")
def standard() -> Pipeline:
    pipeline = load(SHIPPED / "standard.toml", "shipped").pipeline
    assert pipeline is not None
    return pipeline


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the sample, in a directory whose name needs care."""
    root = tmp_path / "Zoë's sample"
    shutil.copytree(STANDARD / "project", root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


@pytest.fixture
def play(project: Path, tmp_path: Path) -> Iterator[Play]:
    """Start a player in the sample, for a shipped recording, for lines, or for a made-up output."""
    started: list[Playing] = []

    def play(
        recorded: Path | None,
        *,
        output: OutputFormat = "text",
        schema: dict[str, Any] | None = None,
    ) -> Playing:
        made_up = tmp_path / "made-up.json"
        command = rehearsal.command(
            recorded=recorded, output=output, schema=schema, made_up=made_up, session=SESSION, fast=True
        )
        started.append(Playing(command, project, structured=schema is not None))
        return started[-1]

    yield play
    for playing in started:
        playing.process.kill()
        playing.process.wait()
        for pipe in (playing.process.stdin, playing.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


def recording(name: str) -> Path:
    return STANDARD / f"{name}.ndjson"


def prompt(number: int = 1) -> bytes:
    return messages.user_message("Go on.", order=f"test/{number}")


def schema_of(standard: Pipeline, name: str) -> dict[str, Any] | None:
    stage = next(stage for stage in standard.stages if stage.id == name.partition(".")[0])
    return stage.schema or forms.SCHEMAS.get(stage.output)


def tree(root: Path) -> dict[str, str]:
    return {p.relative_to(root).as_posix(): p.read_text("utf-8") for p in root.rglob("*") if p.is_file()}


# --- what is shipped -----------------------------------------------------------------------------------


def test_every_stage_is_recorded_and_one_is_redone(standard: Pipeline) -> None:
    assert sorted(PLAYED) == RECORDINGS
    assert {name.partition(".")[0] for name in PLAYED} == {stage.id for stage in standard.stages}


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_tells_nothing_of_the_machine_where_it_was_made(name: str) -> None:
    text = recording(name).read_text("utf-8")
    assert len(text) < 300_000
    assert re.findall(r"(?<![\w}.])/(?:home|root|tmp|Users|private|var|run)/[^\s\"]*", text) == []
    assert {m[0] for m in re.finditer(r'"session_id":"([^"]*)"', text)} == {'"session_id":"{{session}}"'}
    assert set(re.findall(r'"cwd":"([^"]*)"', text)) == {"{{cwd}}"}


def test_the_places_named_by_the_security_review_are_there() -> None:
    last = json.loads(recording("security-review.1").read_text("utf-8").splitlines()[-1])
    said = {
        (item["file"], item["line"]): AFTER[item["file"]].splitlines()[item["line"] - 1]
        for item in last["structured_output"]["items"]
    }
    assert said == {
        ("wordcount/counting.py", 13): "    for line in lines:",
        ("wordcount/__main__.py", 34): (
            '            print(f"wordcount: {name}: {reason(error)}", file=sys.stderr)'
        ),
        ("wordcount/counting.py", 8): r'WORD = re.compile(r"[^\W\d_]+(?:' + "['’]" + r'[^\W\d_]+)*")',
        ("wordcount/__main__.py", 54): '    with open(name, encoding="utf-8") as file:',
        ("pyproject.toml", 1): "[project]",
    }


def test_the_tests_of_the_sample_pass_before_and_after(project: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    for path, text in AFTER.items():
        (after / path).parent.mkdir(parents=True, exist_ok=True)
        (after / path).write_text(text, "utf-8")
    for root, number in ((project, 6), (after, 11)):
        ran = subprocess.run(
            [sys.executable, "-m", "unittest"], cwd=root, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert f"Ran {number} tests" in ran.stderr


# --- playing -------------------------------------------------------------------------------------------


def test_a_whole_rehearsal_leaves_the_tree_that_was_recorded(play: Play, project: Path) -> None:
    for name in PLAYED:
        playing = play(recording(name))
        playing.send(prompt())
        _, ended = playing.turn()
        assert ended.outcome.ok
        assert playing.end() == 0
    assert tree(project) == AFTER


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_replay_is_read_as_the_recording_is(
    name: str, play: Play, project: Path, standard: Pipeline
) -> None:
    schema = schema_of(standard, name)
    text = recording(name).read_text("utf-8")
    here = json.dumps(str(project))[1:-1]
    reader = Reader(wants_structured=schema is not None)
    expected = [
        reading
        for line in text.replace("{{cwd}}", here).replace("{{session}}", SESSION).splitlines()
        for reading in reader.read(line.encode(), 0)
    ]
    playing = play(recording(name), schema=schema)
    playing.send(prompt())
    seen, ended = playing.turn()
    assert [replace(reading, at=0) for reading in seen] == expected
    if schema is not None:
        jsonschema.validate(ended.structured, schema)
    assert ended.metrics.output_tokens > 0
    assert ended.session == SESSION


def test_a_question_takes_the_answer_that_is_given_here(play: Play) -> None:
    playing = play(recording("research.1"))
    playing.send(prompt())
    asked = playing.until(Asked)
    playing.send(messages.answer_questions(asked, [messages.Answered(other="from the web")]))
    assert playing.until(ToolFinished) == playing_finished(asked.tool_use, playing)
    said = json.loads(playing.lines[-1])["message"]["content"][0]["content"]
    assert '"Where should the words come from that are left out?"="from the web"' in said
    assert "(Recommended)" not in said
    assert playing.turn()[1].outcome.ok


def playing_finished(use: str, playing: Playing) -> ToolFinished:
    at = sum(map(len, playing.lines))
    return ToolFinished(at=at, id=use, ok=True, ran=True, decided_by="user_temporary")


@pytest.fixture
def asks_to_write(tmp_path: Path, project: Path) -> Path:
    """A recording in which a Write was asked for and allowed; it has two messages, the second one of words."""

    def event(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "stream_event", "parent_tool_use_id": None, "event": {"type": name, **fields}}

    use = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Write",
        "input": {"file_path": "{{cwd}}/new.txt", "content": "new"},
    }
    done = {"type": "create", "filePath": "{{cwd}}/new.txt", "content": "new"}
    written = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "written"}
    words = {"type": "text", "text": "It is written."}
    tail = {
        "subtype": "success",
        "is_error": False,
        "terminal_reason": "completed",
        "session_id": "{{session}}",
    }
    lines: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "{{session}}", "model": "m", "tools": ["Write"]},
        event("message_start", message={"id": "msg_1", "content": []}),
        {"type": "assistant", "message": {"id": "msg_1", "content": [use]}, "parent_tool_use_id": None},
        event("message_stop"),
        {
            "type": "control_request",
            "request_id": "r1",
            "request": {
                "subtype": "can_use_tool",
                "tool_name": "Write",
                "input": use["input"],
                "tool_use_id": "toolu_1",
            },
        },
        {"type": "user", "message": {"role": "user", "content": [written]}, "tool_use_result": done},
        event("message_start", message={"id": "msg_2", "content": []}),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "It is written."}),
        {"type": "assistant", "message": {"id": "msg_2", "content": [words]}, "parent_tool_use_id": None},
        event("message_stop"),
        {"type": "result", "result": "It is written.", "permission_denials": [], **tail},
    ]
    file = tmp_path / "asks.ndjson"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def test_an_edit_is_made_when_it_is_allowed(asks_to_write: Path, play: Play, project: Path) -> None:
    playing = play(asks_to_write)
    playing.send(prompt())
    asked = playing.until(PermissionAsked)
    assert not (project / "new.txt").exists()
    playing.send(messages.allow(asked.request, asked.input))
    playing.turn()
    assert (project / "new.txt").read_text() == "new"


def test_an_edit_that_is_denied_is_not_made_and_listed(
    asks_to_write: Path, play: Play, project: Path
) -> None:
    playing = play(asks_to_write)
    playing.send(prompt())
    asked = playing.until(PermissionAsked)
    playing.send(messages.deny(asked.request, "Not this file."))
    finished = playing.until(ToolFinished)
    assert (finished.ok, finished.ran, finished.denied) == (False, False, True)
    assert b"Not this file." in playing.lines[-1]
    assert playing.turn()[1].denials == ("Write",)
    assert not (project / "new.txt").exists()


@pytest.mark.parametrize("how", ["interrupt", "park"])
def test_a_call_that_is_broken_off_is_not_made_later(
    how: str, asks_to_write: Path, play: Play, project: Path
) -> None:
    playing = play(asks_to_write)
    playing.send(prompt())
    asked = playing.until(PermissionAsked)
    park = messages.deny(asked.request, "Later.", interrupt=True)
    playing.send(messages.interrupt("test/stop") if how == "interrupt" else park)
    seen, ended = playing.turn()
    assert [finished.ran for finished in seen if isinstance(finished, ToolFinished)] == [False]
    assert ended.outcome.kind == "interrupted"
    playing.send(prompt(2))
    seen, ended = playing.turn()
    assert (ended.outcome.ok, ended.text) == (True, "It is written.")
    assert not any(isinstance(reading, ToolUsed | ToolFinished | PermissionAsked) for reading in seen)
    assert playing.end() == 0
    assert not (project / "new.txt").exists()


def test_an_interrupt_between_two_turns_breaks_nothing_off(play: Play) -> None:
    playing = play(recording("planning.1"))
    playing.send(messages.interrupt("test/stop"))
    playing.send(prompt())
    assert playing.turn()[1].outcome.ok


def test_a_message_that_is_cut_short_is_said_again_as_another(
    asks_to_write: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    host = CuttingHost(after="It is written.")
    played = player.Recording(str(asks_to_write), host)
    with pytest.raises(player.Interrupted):
        played.play()
    assert played.break_off() is False
    host.after = ""
    host.sent.clear()
    assert played.play()
    kinds = [(event["type"], (event.get("event") or {}).get("type")) for event in host.sent]
    assert kinds[:3] == [
        ("system", None),
        ("stream_event", "message_start"),
        ("stream_event", "content_block_start"),
    ]
    ids = {event["message"]["id"] for event in host.sent if event["type"] == "assistant"}
    assert ids == {"msg_2-again"}


class CuttingHost(player.Host):
    """A host that allows everything and breaks off once some words have been sent."""

    def __init__(self, after: str) -> None:
        super().__init__("session", 0.0)
        self.after = after
        self.sent: list[dict[str, Any]] = []

    def send(self, event: dict[str, Any]) -> None:
        self.sent.append(event)

    def answer(self, request: str) -> dict[str, Any]:
        return {"behavior": "allow"}

    def pause(self, seconds: float) -> None:
        if self.after and self.sent and self.after in json.dumps(self.sent[-1]):
            raise player.Interrupted


def test_what_is_asked_beyond_the_end_is_answered_and_said_to_be_beyond_it(play: Play) -> None:
    playing = play(recording("planning.1"))
    playing.send(prompt())
    playing.turn()
    playing.send(messages.user_message("Once more, please.", order="test/2"))
    _, ended = playing.turn()
    assert ended.outcome.ok
    assert ended.text == "There is nothing more in this rehearsal. You said: Once more, please."


def test_no_edit_leaves_the_directory(asks_to_write: Path, play: Play, project: Path) -> None:
    outside = project.parent / "outside.txt"
    asks_to_write.write_text(asks_to_write.read_text().replace("{{cwd}}/new.txt", "{{cwd}}/../outside.txt"))
    playing = play(asks_to_write)
    playing.send(prompt())
    assert playing.turn()[1].outcome.ok
    assert not outside.exists()


# --- the end of input ----------------------------------------------------------------------------------


def test_without_a_message_it_says_nothing_and_ends_well(play: Play) -> None:
    playing = play(recording("planning.1"))
    assert playing.end() == 0
    assert playing.lines == []


def test_a_question_that_nobody_can_answer_any_more_is_denied_and_the_turn_ends(
    asks_to_write: Path, play: Play, project: Path
) -> None:
    playing = play(asks_to_write)
    playing.send(prompt())
    playing.until(PermissionAsked)
    assert playing.end() == 0
    last = json.loads(playing.lines[-1])
    assert (last["type"], last["is_error"]) == ("result", False)
    assert not (project / "new.txt").exists()


# --- made up -------------------------------------------------------------------------------------------


STRUCTURED: dict[str, Any] = {
    "type": "object",
    "required": ["name", "kind", "many", "count", "maybe"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 12, "maxLength": 20},
        "kind": {"enum": ["one", "two"]},
        "many": {"type": "array", "minItems": 2, "items": {"type": "string", "maxLength": 3}},
        "count": {"type": "integer", "minimum": 3},
        "maybe": {"type": ["null", "string"]},
    },
}


@pytest.mark.parametrize(
    ("output", "schema"),
    [
        ("text", None),
        ("options", forms.SCHEMAS["options"]),
        ("checklist", forms.SCHEMAS["checklist"]),
        ("structured", STRUCTURED),
        ("structured", forms.fields_schema(("title", "test_plan"))),
    ],
)
def test_a_stage_without_a_recording_gets_an_output_of_its_format_that_says_so(
    output: OutputFormat, schema: dict[str, Any] | None, play: Play, tmp_path: Path
) -> None:
    playing = play(tmp_path / "none.ndjson", output=output, schema=schema)
    playing.send(prompt())
    seen, ended = playing.turn()
    assert isinstance(seen[0], SessionStarted)
    assert ended.outcome.ok
    assert rehearsal.MADE_UP in ended.text
    if schema is not None:
        jsonschema.validate(ended.structured, schema)
        forms.definition_of(output, ended.structured, task=1, stage="s", title="S", attempt=1, schema=schema)
    assert playing.end() == 0
