"""Every recorded run of the real CLI: read to its outcome, rendered once, resumed anywhere."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from promptside_daemon.world.claude import lines, stream
from promptside_daemon.world.claude.harmless import harmless
from promptside_daemon.world.claude.reader import Reader, blocks
from promptside_daemon.world.claude.readings import Asked, Reading, TurnEnded
from promptside_daemon.world.claude.rendering import Renderer
from promptside_daemon.world.claude.resuming import resume_point
from promptside_protocol.output import OutputEntry


def read(recorded: Any) -> tuple[Reader, list[Reading]]:
    reader = Reader(wants_structured=recorded.schema)
    return reader, [reading for line, at in recorded.lines for reading in reader.read(line, at)]


def rendered(recorded: Any) -> list[OutputEntry]:
    renderer = Renderer(cwd="/tmp/proj")
    return [entry for line, at in recorded.lines for entry in renderer.render(line, at)]


def painted(entries: Iterable[OutputEntry]) -> dict[str, str]:
    """What a client shows in the end, by block."""
    shown: dict[str, str] = {}
    for entry in entries:
        if entry.block is not None:
            before = "" if entry.replace else shown.get(entry.block, "")
            shown[entry.block] = before + entry.text
    return shown


def test_the_collection_is_whole(transcripts: dict[str, Any]) -> None:
    with_command_line = [run for run in transcripts.values() if run.name not in DIALOGUES]
    assert len(with_command_line) == 156
    assert sum(not run.turns for run in with_command_line) == 23


DIALOGUES = {
    "92-bash-group-SIGTERM",
    "93-bash-group-SIGKILL",
    "110-sj-multiturn",
    "112-sj-init-interrupt",
    "120-can-use-tool",
    "123-ask-user-question",
    "124-exit-plan-mode",
    "125-controls",
    "126-stdin-closed-mid-turn",
    "127-stdin-closed-no-message",
    "264-bg-SIGTERM-after-result",
    "265-bg-SIGINT-after-result",
    "284-interrupt-during-bash",
    "285-terminate-sequence",
}


def test_a_recorded_run_is_judged(recorded: Any) -> None:
    reader, readings = read(recorded)
    ended = reader.judge(
        exit_code=recorded.exit if recorded.exit >= 0 else None,
        signal=-recorded.exit if recorded.exit < 0 else None,
        stderr=recorded.stderr,
    )
    assert ended.kind == recorded.run
    assert [reading.outcome.kind for reading in readings if isinstance(reading, TurnEnded)] == [
        *recorded.turns
    ]
    assert ended.sentence.endswith((".", "!", "?", "…"))


def test_every_line_of_a_recorded_run_is_decoded(recorded: Any) -> None:
    known = {"assistant", "user", "result", "stream_event", "rate_limit_event", "control_cancel_request"}
    for line, _ in recorded.lines:
        decoded = stream.decode(line)
        assert not isinstance(decoded, lines.Unreadable)
        if isinstance(decoded, lines.Unknown):
            assert decoded.kind not in known
            assert decoded.kind not in {"system/init", "system/api_retry", "control_request/can_use_tool"}


def test_each_text_of_the_agent_is_shown_once(recorded: Any) -> None:
    said: list[str] = []
    for line, _ in recorded.lines:
        decoded = stream.decode(line)
        if isinstance(decoded, lines.Assistant) and decoded.error is None:
            said += [block.text for block in blocks(decoded.message) if block.type == "text"]
    entries = rendered(recorded)
    texts = {entry.block for entry in entries if entry.block and entry.role in {"text", "note"}}
    shown = [text for block, text in painted(entries).items() if block in texts and text]
    if recorded.run == "died" and recorded.turns == () and len(shown) > len(said):
        # Killed in the middle of a block: the person has seen its beginning, and nothing else will come.
        shown.pop()
    assert shown == [harmless(text) for text in said]


def test_each_tool_call_is_one_line(recorded: Any) -> None:
    called: list[str] = []
    for line, _ in recorded.lines:
        decoded = stream.decode(line)
        if isinstance(decoded, lines.Assistant):
            called += [block.id for block in blocks(decoded.message) if block.type == "tool_use"]
    entries = rendered(recorded)
    first = Counter(entry.block for entry in entries if entry.role == "tool" and not entry.replace)
    assert first == Counter(called)
    assert all(
        "\n" not in entry.text for entry in entries if entry.role in {"tool", "result", "note", "status"}
    )


def test_a_reader_that_resumes_anywhere_misses_nothing_and_sees_nothing_twice(
    recorded: Any, tmp_path: Path
) -> None:
    path = tmp_path / "transcript.ndjson"
    path.write_bytes(recorded.data)
    whole = rendered(recorded)
    ends = [at for _, at in recorded.lines]
    for cursor in [0, *ends, *(end - 1 for end in ends)]:
        start = resume_point(path, cursor)
        assert start <= cursor
        renderer = Renderer(cwd="/tmp/proj")
        resumed = [
            entry
            for line, at in recorded.lines
            if at - len(line) - 1 >= start
            for entry in renderer.render(line, at)
            if entry.cursor > cursor
        ]
        assert resumed == [entry for entry in whole if entry.cursor > cursor]


def test_rendering_resumes_at_a_message_not_at_the_start(transcripts: dict[str, Any], tmp_path: Path) -> None:
    run = transcripts["02-partial"]
    path = tmp_path / "transcript.ndjson"
    path.write_bytes(run.data)
    start = resume_point(path, len(run.data))
    assert start > len(run.data) // 2
    assert run.data[start:].startswith(b'{"type":"stream_event","event":{"type":"message_start"')


def test_a_resume_point_is_found_across_the_borders_of_what_is_read_at_once(
    transcripts: dict[str, Any], tmp_path: Path
) -> None:
    run = transcripts["02-partial"]
    starts = [at - len(line) - 1 for line, at in run.lines if b'"type":"message_start"' in line]
    path = tmp_path / "transcript.ndjson"
    filler = b'{"type":"other","text":"\\"type\\":\\"message_start\\"","more":"%s"}\n'
    for size in (256 * 1024 - 900, 256 * 1024 - 300, 256 * 1024, 700_000):
        padding = filler % (b"x" * size)
        path.write_bytes(run.data[: starts[1]] + run.lines[-1][0] + b"\n" + padding * 2)
        assert resume_point(path, path.stat().st_size) == starts[0]


def test_readings_are_the_same_when_a_run_is_read_again(recorded: Any) -> None:
    assert read(recorded)[1] == read(recorded)[1]


def test_the_question_of_a_recorded_run_is_read(transcripts: dict[str, Any]) -> None:
    _, readings = read(transcripts["123-ask-user-question"])
    (asked,) = (reading for reading in readings if isinstance(reading, Asked))
    assert [choice.label for choice in asked.questions[0].choices] == ["Red", "Blue"]


@pytest.mark.parametrize("name", ["290-bash-timeout", "96-bg-ceiling-2s"])
def test_a_process_killed_after_a_good_result_has_done_its_work(
    transcripts: dict[str, Any], name: str
) -> None:
    reader, _ = read(transcripts[name])
    assert transcripts[name].exit == -9
    assert reader.judge(exit_code=None, signal=9, stderr="").ok
