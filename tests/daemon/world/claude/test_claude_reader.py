"""The fold from lines to readings."""

from typing import Any

import msgspec

from promptside_daemon.world.claude.outcome import Ending
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import (
    Asked,
    AskWithdrawn,
    Compacted,
    ContextFill,
    Denied,
    ModelFellBack,
    OutputLost,
    PermissionAsked,
    PlanOffered,
    RateLimited,
    Reading,
    Retrying,
    SessionStarted,
    ToolFinished,
    ToolUsed,
    TurnEnded,
)

INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "s",
    "model": "m",
    "tools": ["Read"],
    "permissionMode": "default",
}
DONE = {
    "type": "result",
    "is_error": False,
    "terminal_reason": "completed",
    "session_id": "s",
    "result": "ok",
}


def call(use: str, name: str, parent: str | None = None, **tool_input: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": use, "name": name, "input": tool_input}
    return {
        "type": "assistant",
        "message": {"id": f"m-{use}", "content": [block]},
        "parent_tool_use_id": parent,
    }


def result(use: str, content: Any = "ok", *, error: bool = False, **meta: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use, "content": content, "is_error": error}
    return {
        "type": "user",
        "message": {"content": [block]},
        "tool_result_meta": [{"id": use, **meta}] if meta else None,
    }


def ask(request: str, tool_use: str, tool: str, **tool_input: Any) -> dict[str, Any]:
    wanted = {"subtype": "can_use_tool", "tool_name": tool, "input": tool_input, "tool_use_id": tool_use}
    return {"type": "control_request", "request_id": request, "request": wanted}


def read(*lines: dict[str, Any] | bytes, reader: Reader | None = None) -> list[Reading]:
    reader = reader or Reader()
    found: list[Reading] = []
    at = 0
    for line in lines:
        raw = line if isinstance(line, bytes) else msgspec.json.encode(line)
        at += len(raw) + 1
        found += reader.read(raw, at)
    return found


def kinds(readings: list[Reading]) -> list[type]:
    return [type(reading) for reading in readings]


def test_a_session_starts_once_and_again_when_it_changes() -> None:
    readings = read(INIT, INIT, {**INIT, "permissionMode": "plan"})
    assert kinds(readings) == [SessionStarted, SessionStarted]


def test_calls_are_paired_with_their_ends_and_name_their_parent() -> None:
    readings = read(
        call("a", "Agent"), call("b", "Read", parent="a", file_path="/x"), result("b"), result("a")
    )
    assert kinds(readings) == [ToolUsed, ToolUsed, ToolFinished, ToolFinished]
    assert isinstance(readings[1], ToolUsed)
    assert readings[1].parent == "a"


def test_a_denied_call_did_not_run_and_an_absent_tool_did_not_either() -> None:
    absent = "<tool_use_error>Error: No such tool available: Write. Write is disabled</tool_use_error>"
    readings = read(
        result("a", error=True, permission_decision={"decision": "reject", "source": "config"}),
        result("b", absent, error=True),
        result("c", "Exit code 1", error=True),
        result("d", "stopped", error=True, non_execution_kind="user-rejected"),
    )
    ends = [reading for reading in readings if isinstance(reading, ToolFinished)]
    assert [(end.denied, end.ran) for end in ends] == [
        (True, False),
        (False, False),
        (False, True),
        (False, True),
    ]
    assert ends[0].decided_by == "config"


QUESTIONS = [
    {
        "question": "Which?",
        "header": "H",
        "multiSelect": True,
        "options": [{"label": "A", "description": "a"}],
    }
]


def test_asks_are_told_apart() -> None:
    readings = read(
        ask("1", "a", "AskUserQuestion", questions=QUESTIONS),
        ask("2", "b", "Bash", command="npm i"),
        call("c", "ExitPlanMode", plan="1. do it"),
        ask("3", "c", "ExitPlanMode"),
        ask("4", "d", "AskUserQuestion", questions="?"),
    )
    assert kinds(readings) == [Asked, PermissionAsked, ToolUsed, PlanOffered, PermissionAsked]
    assert isinstance(readings[0], Asked)
    assert readings[0].questions[0].several
    assert isinstance(readings[3], PlanOffered)
    assert readings[3].plan == "1. do it"  # the request itself leaves it out


def test_an_ask_is_withdrawn_by_the_cli_or_by_the_end_of_its_turn() -> None:
    reader = Reader()
    readings = read(ask("1", "a", "Bash"), ask("2", "b", "Bash"), ask("3", "c", "Bash"), reader=reader)
    assert list(reader.open_asks) == ["1", "2", "3"]
    cancel = {"type": "control_cancel_request", "request_id": "1"}
    readings = read(cancel, cancel, result("b"), DONE, reader=reader)
    assert [reading.request for reading in readings if isinstance(reading, AskWithdrawn)] == ["1", "3"]
    assert kinds(readings)[-1] is TurnEnded
    assert not reader.open_asks


def test_ga_8_silence_does_not_count_while_a_call_or_a_question_is_open() -> None:
    reader = Reader()
    read(INIT, reader=reader)
    assert not reader.busy
    read(call("a", "Bash"), reader=reader)
    assert reader.busy
    read(result("a"), reader=reader)
    assert not reader.busy
    read(ask("1", "b", "Bash"), reader=reader)
    assert reader.busy
    read(DONE, reader=reader)
    assert not reader.busy


def test_a_limit_that_was_named_in_the_stream_ends_the_turn_with_its_time() -> None:
    limit = {"status": "rejected", "resetsAt": 1_800_000_000, "rateLimitType": "five_hour"}
    failed = {**DONE, "is_error": True, "api_error_status": 429, "terminal_reason": "api_error"}
    readings = read({"type": "rate_limit_event", "rate_limit_info": limit}, failed)
    assert isinstance(readings[0], RateLimited)
    assert (readings[0].rejected, readings[0].kind) == (True, "five_hour")
    assert isinstance(readings[1], TurnEnded)
    assert readings[1].outcome.kind is Ending.RATE_LIMITED
    assert readings[1].outcome.until == 1_800_000_000


def test_the_error_of_the_last_message_tells_one_400_from_another() -> None:
    spoken = {"type": "assistant", "message": {"id": "m", "content": []}, "error": "billing_error"}
    failed = {**DONE, "is_error": True, "api_error_status": 400, "terminal_reason": "api_error"}
    ends = [reading for reading in read(spoken, failed, failed) if isinstance(reading, TurnEnded)]
    assert [end.outcome.kind for end in ends] == [Ending.CREDIT, Ending.REQUEST_REFUSED]


def test_context_fill_is_of_the_main_agent_and_told_when_it_changes() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 1,
        "output_tokens": 9,
    }

    def start(parent: str | None) -> dict[str, Any]:
        event = {"type": "message_start", "message": {"id": "m", "usage": usage}}
        return {"type": "stream_event", "event": event, "parent_tool_use_id": parent}

    window = {**DONE, "modelUsage": {"m": {"contextWindow": 1000}}}
    readings = read(INIT, start(None), start(None), start("sub"), window, start(None))
    fills = [(reading.tokens, reading.window) for reading in readings if isinstance(reading, ContextFill)]
    assert fills == [(16, None), (16, 1000)]


def test_what_the_cli_reports_on_the_way_is_read() -> None:
    readings = read(
        {
            "type": "system",
            "subtype": "api_retry",
            "attempt": 1,
            "max_retries": 10,
            "retry_delay_ms": 500,
            "error_status": None,
        },
        {"type": "system", "subtype": "model_fallback", "original_model": "a", "fallback_model": "b"},
        {
            "type": "system",
            "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": 9},
        },
        {"type": "system", "subtype": "status", "compact_result": "failed"},
        {"type": "system", "subtype": "permission_denied", "tool_name": "Bash", "message": "no"},
        b'{"type":"assi{"type":"user"}',
        b"[debug] chatter",
    )
    assert kinds(readings) == [Retrying, ModelFellBack, Compacted, Compacted, Denied, OutputLost]
    assert isinstance(readings[0], Retrying)
    assert (readings[0].delay, readings[0].status) == (0.5, None)


def test_a_turn_of_the_clis_own_is_marked_and_counts_as_one() -> None:
    reader = Reader()
    readings = read(INIT, DONE, INIT, reader=reader)
    assert reader.in_turn
    assert reader.judge(exit_code=None, signal=9, stderr="").kind is Ending.DIED
    readings = read({**DONE, "origin": {"kind": "task-notification"}}, reader=reader)
    assert isinstance(readings[0], TurnEnded)
    assert readings[0].by_itself
    assert not reader.in_turn


def test_a_structured_answer_is_handed_on() -> None:
    reader = Reader(wants_structured=True)
    readings = read({**DONE, "structured_output": {"a": [1]}}, DONE, reader=reader)
    assert isinstance(readings[0], TurnEnded)
    assert (readings[0].structured, readings[0].outcome.kind) == ({"a": [1]}, Ending.DONE)
    assert isinstance(readings[1], TurnEnded)
    assert readings[1].outcome.kind is Ending.NO_STRUCTURED_OUTPUT
