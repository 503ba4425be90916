"""Entries for people: text once, calls in a line, nothing that can harm a screen, no secret."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.world.claude.harmless import HarmlessStream, harmless, one_line
from promptside_daemon.world.claude.rendering import Renderer, stderr_entry
from promptside_daemon.world.claude.toollines import call_line, changed_lines, duration
from promptside_daemon.world.redact import REDACTED, Redactor
from promptside_protocol.output import OutputEntry

TOKEN = "sk-" + "ant-api03-" + "Zx9_Yw8-" * 5


def event(kind: str, message: str = "m", **fields: Any) -> dict[str, Any]:
    outer = {"abandoned_blocks": fields.pop("abandoned_blocks")} if "abandoned_blocks" in fields else {}
    return {"type": "stream_event", "event": {"type": kind, **fields}, "api_message_id": message, **outer}


def streamed(*pieces: str, index: int = 0, message: str = "m") -> list[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    deltas = [
        event("content_block_delta", message, index=index, delta={"type": "text_delta", "text": piece})
        for piece in pieces
    ]
    return [event("content_block_start", message, index=index, content_block=block), *deltas]


def said(*blocks: dict[str, Any], message: str = "m", **fields: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": message, "content": blocks}, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id_: str, name: str, **tool_input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": tool_input}


def answered(id_: str, content: str = "", *, error: bool = False, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id_, "content": content, "is_error": error}
    return {"type": "user", "message": {"content": [block]}, **fields}


def render(*lines: dict[str, Any], redactor: Redactor | None = None) -> list[OutputEntry]:
    renderer = Renderer(cwd="/project/tree", redactor=redactor)
    found: list[OutputEntry] = []
    for at, line in enumerate(lines, start=1):
        found += renderer.render(msgspec.json.encode(line), at)
    return found


def painted(entries: list[OutputEntry]) -> list[str]:
    shown: dict[str, str] = {}
    for number, entry in enumerate(entries):
        key = entry.block or f"#{number}"
        shown[key] = entry.text if entry.replace else shown.get(key, "") + entry.text
    return [words for words in shown.values() if words]


REJECTED = {"id": "t", "permission_decision": {"decision": "reject"}}
STOPPED = {"id": "t", "non_execution_kind": "user-rejected"}
START = event("message_start", message="m")


def test_pieces_are_shown_as_they_come_and_not_again_when_the_whole_block_comes() -> None:
    entries = render(START, *streamed("The queue ", "drops it"), said(text("The queue drops it")))
    assert [entry.text for entry in entries] == ["The queue ", "drops ", "it"]
    assert {entry.block for entry in entries} == {"m/0"}


def test_the_whole_block_is_the_truth() -> None:
    entries = render(START, *streamed("The cue "), said(text("The queue drops it")))
    assert painted(entries) == ["The queue drops it"]
    assert entries[-1].replace


def test_abandoned_blocks_are_taken_back_and_finished_ones_before_them_stay() -> None:
    lines = [
        START,
        *streamed("kept "),
        said(text("kept ")),
        *streamed("half a ", index=1),
        event("message_stop", abandoned_blocks={"api_message_id": "m", "from_block_index": 1}),
        said(text("anew"), message="n"),
    ]
    assert painted(render(*lines)) == ["kept ", "anew"]


def test_an_abandoned_call_is_taken_back() -> None:
    lines = [
        START,
        event("content_block_start", index=0, content_block=use("t", "Bash")),
        said(use("t", "Bash", command="make")),
        event("message_stop", abandoned_blocks={"api_message_id": "m", "from_block_index": 0}),
    ]
    assert painted(render(*lines)) == []


def test_a_message_whose_start_was_lost_does_not_mix_with_the_one_before() -> None:
    lines = [START, *streamed("one "), *streamed("two ", message="n"), said(text("two "), message="n")]
    assert painted(render(*lines)) == ["one ", "two "]


def test_text_that_nobody_finishes_is_shown_when_the_run_is_over() -> None:
    renderer = Renderer()
    entries = [
        entry
        for at, line in enumerate([START, *streamed("half a wor")])
        for entry in renderer.render(msgspec.json.encode(line), at)
    ]
    entries += renderer.close(9)
    entries += renderer.close(9)
    assert painted(entries) == ["half a wor"]


def test_a_call_a_subagent_makes_is_indented() -> None:
    entries = render(
        said(use("a", "Agent", description="look around", prompt="p")),
        said(use("b", "Read", file_path="/project/tree/x.py"), parent_tool_use_id="a"),
        said(text("inner words"), parent_tool_use_id="a"),
    )
    assert [(entry.role, entry.text) for entry in entries] == [
        ("tool", "Agent    look around"),
        ("tool", "  Read     x.py"),
        ("note", "inner words"),
    ]


@pytest.mark.parametrize(
    ("name", "tool_input", "line"),
    [
        ("Read", {"file_path": "/project/tree/src/x.py"}, "Read     src/x.py"),
        ("Read", {"file_path": "/etc/hosts"}, "Read     /etc/hosts"),
        ("Read", {"file_path": "/project/trees/x"}, "Read     /project/trees/x"),
        ("Bash", {"command": "npm test -- upload", "description": "d"}, "Run      npm test -- upload"),
        ("Bash", {"command": "cat <<X\na\nX"}, "Run      cat <<X …"),
        ("Grep", {"pattern": "retryUpload"}, "Search   retryUpload"),
        ("Glob", {"pattern": "**/*.py"}, "Find     **/*.py"),
        ("WebSearch", {"query": "flaky"}, "Search   flaky"),
        ("WebFetch", {"url": "https://x.example", "prompt": "p"}, "Fetch    https://x.example"),
        ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Ask      Which?"),
        ("StructuredOutput", {"title": 1, "body": 2}, "Answer   title, body"),
        ("mcp__db__query", {"query": "select 1"}, "db       query select 1"),
        ("Novel", {}, "Novel"),
        ("Bad\x1b[31mName", {"command": 5}, "BadName"),
    ],
)
def test_a_call_is_one_line(name: str, tool_input: dict[str, Any], line: str) -> None:
    assert call_line(name, tool_input, "/project/tree").text == line


def test_what_an_edit_changed_stands_behind_it() -> None:
    patch = [{"newStart": 41, "lines": [" a", "+b", "+c", "-d"]}, {"newStart": 90, "lines": ["+e"]}]
    entries = render(
        said(use("t", "Edit", file_path="/project/tree/a.py")),
        answered("t", "ok", tool_use_result={"structuredPatch": patch}),
    )
    assert painted(entries) == ["Edit     a.py +3 -1"]
    assert (entries[-1].path, entries[-1].line) == ("a.py", 41)
    assert changed_lines({"structuredPatch": [], "type": "create", "content": "a\nb\n"}) == ("+2 -0", 1)
    assert changed_lines("Error: no") == ("", None)


@pytest.mark.parametrize(
    ("name", "result", "line"),
    [
        ("Bash", answered("t", "fine"), "exit 0"),
        ("Bash", answered("t", "Exit code 1\n\nno script\nmore", error=True), "exit 1: no script"),
        ("Bash", answered("t", "Command timed out", error=True), "failed: Command timed out"),
        ("Bash", answered("t", tool_use_result={"backgroundTaskId": "b"}), "goes on in the background"),
        (
            "Edit",
            answered("t", "<tool_use_error>Not found</tool_use_error>", error=True),
            "failed: Not found",
        ),
        ("Write", answered("t", "No.", error=True, tool_result_meta=[REJECTED]), "denied: No."),
        ("Bash", answered("t", "…", error=True, tool_result_meta=[STOPPED]), "stopped"),
        (
            "AskUserQuestion",
            answered("t", tool_use_result={"answers": {"Which?": "A", "What?": "x"}}),
            "A; x",
        ),
    ],
)
def test_how_a_call_ended_is_said_in_a_few_words(name: str, result: dict[str, Any], line: str) -> None:
    entries = render(said(use("t", name)), result)
    assert entries[-1].role == "result"
    assert entries[-1].text == line
    assert entries[-1].ok == (not result["message"]["content"][0]["is_error"])


def test_the_time_a_command_took_is_said_but_not_the_time_a_person_took() -> None:
    call = said(use("t", "Bash", command="make"), timestamp="2026-11-21T20:00:00.000Z")
    ended = answered("t", "Exit code 2\nno rule", error=True, timestamp="2026-11-21T20:00:04.100Z")
    assert render(call, ended)[-1].text == "exit 2, 4 s: no rule"
    wanted = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
    asked = {"type": "control_request", "request_id": "r", "request": wanted}
    assert render(call, asked, ended)[-1].text == "exit 2: no rule"
    assert [duration(seconds) for seconds in (4, 60, 72.4)] == ["4 s", "1 min", "1 min 12 s"]


def test_a_read_that_went_well_needs_no_second_line() -> None:
    assert [
        entry.role for entry in render(said(use("t", "Read", file_path="x")), answered("t", "1\thello"))
    ] == ["tool"]


def test_da_6_no_secret_is_shown_in_text_lines_or_paths() -> None:
    cut = len(TOKEN) // 2
    lines = [
        START,
        *streamed(f"the key is {TOKEN[:cut]}", f"{TOKEN[cut:]} and ", "more "),
        said(text(f"the key is {TOKEN} and more ")),
        said(use("t", "Bash", command=f"curl -H 'x: {TOKEN}'")),
        answered("t", f"Exit code 1\nbad {TOKEN}", error=True),
        said(use("u", "Read", file_path=f"/x/{TOKEN}")),
        said(text("hunter2 works"), message="n"),
    ]
    entries = render(*lines, redactor=Redactor(["hunter2"]))
    assert TOKEN not in repr(entries)
    assert "hunter2" not in repr(entries)
    assert painted(entries)[0] == f"the key is {REDACTED} and more "
    assert stderr_entry(f"bad {TOKEN}", 7, Redactor()) == OutputEntry(
        cursor=7, role="stderr", text=f"bad {REDACTED}"
    )


def test_escape_sequences_do_nothing() -> None:
    words = "\x1b[2J\x1b]0;title\x07red\x1b[31m\tx\r\ny\rz\x00\x9b1m\u202eabc\x1b(B\x1b"
    assert harmless(words) == "red    x\ny\nzabc"
    assert harmless("plain ✓ text\n") == "plain ✓ text\n"
    assert one_line("\n\n  \x1b[1mfirst\x1b[0m  \nsecond") == "first"
    assert one_line("x" * 300) == "x" * 199 + "…"


@settings(deadline=None)
@given(st.lists(st.integers(0, 200)))
def test_escape_sequences_that_are_cut_do_nothing_either(cuts: list[int]) -> None:
    words = "a \x1b[31mred\x1b[0m b\r\nc \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ d"
    ends = sorted({cut % (len(words) + 1) for cut in cuts} | {0, len(words)})
    stream = HarmlessStream()
    shown = "".join(stream.feed(words[start:end]) for start, end in pairwise(ends)) + stream.flush()
    assert shown == harmless(words) == "a red b\nc link d"


@settings(deadline=None)
@given(st.text(alphabet="\x1b[]0;31m\x07\\ab\t\r\n\x9b\u202e(B?"))
def test_nothing_that_moves_a_cursor_is_left(words: str) -> None:
    assert not set(harmless(words)) & set("\x1b\x07\t\r\x9b\u202e")


def test_what_happens_on_the_way_is_told() -> None:
    system = {"type": "system"}
    entries = render(
        {
            **system,
            "subtype": "api_retry",
            "attempt": 1,
            "max_retries": 10,
            "retry_delay_ms": 4200,
            "error_status": 529,
            "error": "overloaded",
        },
        {**system, "subtype": "status", "status": "compacting"},
        {**system, "subtype": "compact_boundary", "compact_metadata": {"pre_tokens": 120, "post_tokens": 8}},
        {**system, "subtype": "model_fallback", "original_model": "a", "fallback_model": "b"},
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "allowed_warning", "rateLimitType": "five_hour"},
        },
        {"type": "user", "message": {"content": [text("[Request interrupted by user]")]}},
        {"type": "result", "is_error": False, "num_turns": 1, "duration_ms": 72_000},
        {
            "type": "result",
            "is_error": True,
            "terminal_reason": "api_error",
            "api_error_status": 401,
            "result": "Invalid API key",
        },
    )
    assert [(entry.role, entry.text) for entry in entries] == [
        ("status", "Try 1 of 10 failed (529 overloaded); the next in 4 s."),
        ("status", "The conversation is being summarised."),
        ("note", "The conversation was summarised: 120 tokens became 8."),
        ("note", "a was not to be had; b goes on."),
        ("status", "The plan limit (five hour) is near."),
        ("note", "Interrupted."),
        ("status", "Done: 1 turn, 1 min 12 s."),
        (
            "status",
            "The agent is not logged in: Invalid API key. Run “claude” once in a terminal, then retry.",
        ),
    ]
