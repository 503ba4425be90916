"""Command lines: ST-9, ST-14; nothing of a pipeline or a person becomes an option."""

from typing import Any

import msgspec
import pytest

from promptside_daemon.world.claude.argv import (
    Driven,
    Launch,
    NewSession,
    ResumedSession,
    ThrowAway,
    driven,
    environment,
    stage_rule,
)
from promptside_daemon.world.claude.version import COMPLETE, OLDEST

ID = "11111111-1111-4111-8111-111111111111"
READING = ("Read", "Glob", "Grep")


def launched(**changes: Any) -> Driven:
    return driven(launch(**changes))


def launch(**changes: Any) -> Launch:
    base: dict[str, Any] = {
        "binary": "/opt/claude",
        "version": COMPLETE,
        "directory": "/data/attempts/7 a",
        "session": NewSession(ID),
        "tools": "all",
        "permission": "ask",
        "read_only": False,
        "attended": True,
        "trusted": True,
    }
    return Launch(**{**base, **changes})


def test_st_9_a_read_only_stage_is_restricted_by_its_tools() -> None:
    run = launched(tools=READING, permission="deny", read_only=True, attended=False)
    assert run.argv == (
        "/opt/claude",
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool=stdio",
        "--permission-mode=dontAsk",
        f"--session-id={ID}",
        "--tools=Read,Glob,Grep",
        "--setting-sources=user",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--settings=/data/attempts/7 a/claude-settings.json",
        "--system-prompt-snapshot=off",
    )
    assert run.offered == frozenset({"Read", "Glob", "Grep"})
    assert run.on_ask == "deny"
    assert msgspec.json.decode(run.files["claude-settings.json"]) == {"disableAllHooks": True}


def test_st_14_where_a_person_can_be_asked_questions_get_through() -> None:
    run = launched(tools=(*READING, "WebSearch", "WebFetch"), permission="deny", read_only=True)
    assert "--permission-mode=default" in run.argv
    assert "--tools=Read,Glob,Grep,WebSearch,WebFetch,AskUserQuestion" in run.argv
    assert "--allowedTools=WebSearch,WebFetch" in run.argv
    assert run.on_ask == "deny"


@pytest.mark.parametrize(
    ("permission", "attended", "where", "mode", "on_ask"),
    [
        ("deny", True, {}, "default", "deny"),
        ("deny", False, {}, "dontAsk", "deny"),
        ("ask", True, {"root": True}, "acceptEdits", "ask"),
        ("ask", False, {}, "acceptEdits", "deny"),
        ("allow", True, {}, "bypassPermissions", "allow"),
        ("allow", True, {"root": True, "sandboxed": True}, "bypassPermissions", "allow"),
        ("allow", True, {"root": True}, "acceptEdits", "allow"),
    ],
)
def test_st_14_the_mode_of_a_writing_stage(
    permission: str, attended: bool, where: dict[str, bool], mode: str, on_ask: str
) -> None:
    run = launched(permission=permission, attended=attended, **where)
    assert (run.mode, run.on_ask) == (mode, on_ask)
    assert f"--permission-mode={mode}" in run.argv
    # What everything is allowed to is never done without saying so.
    assert bool(run.remarks) == (permission == "allow")


def test_a_read_only_stage_stays_read_only_whatever_its_permission_says() -> None:
    run = launched(tools=READING, permission="allow", read_only=True)
    assert (run.mode, run.on_ask) == ("default", "deny")
    assert stage_rule(launch(permission="allow", read_only=True)) == "read-only"


def test_an_unattended_run_has_no_tool_that_waits_for_a_person() -> None:
    assert "--disallowedTools=AskUserQuestion,EnterPlanMode,ExitPlanMode" in launched(attended=False).argv
    run = launched(tools=("Read", "AskUserQuestion"), attended=False)
    assert "--tools=Read" in run.argv
    assert run.offered == frozenset({"Read"})


def test_a_project_that_is_not_trusted_brings_nothing_of_its_own() -> None:
    run = launched(trusted=False, memory="MEMORY")
    assert "--setting-sources=user" in run.argv
    assert run.files["system-prompt.md"] == b"MEMORY"
    trusted = launched(trusted=True, memory="MEMORY")
    assert not any(part.startswith("--setting-sources") for part in trusted.argv)
    assert trusted.files == {}


def test_a_list_of_tools_means_no_tools_of_servers_but_those_named() -> None:
    assert "--strict-mcp-config" in launched(tools=("Read",)).argv
    run = launched(tools=("Read", "mcp__db__query"), attended=False)
    assert "--strict-mcp-config" not in run.argv
    assert "--tools=Read" in run.argv
    assert launched(tools="all").offered is None


def test_no_tools_at_all() -> None:
    assert "--tools=" in launched(tools=(), attended=False).argv
    assert "--tools=AskUserQuestion" in launched(tools=(), attended=True).argv


def test_the_tool_with_two_names_may_appear_under_both() -> None:
    assert launched(tools=("Agent",), attended=False).offered == frozenset({"Agent", "Task"})


@pytest.mark.parametrize(
    "name", ["--dangerously-skip-permissions", "default", "Read,Bash", "Bash(npm *)", "", "a b", "Read\n"]
)
def test_what_is_no_tool_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a tool"):
        launched(tools=("Read", name))


@pytest.mark.parametrize("tools", ["all", ("Read", "Write"), ("Bash",)])
def test_a_read_only_stage_with_tools_that_change_things_is_refused(tools: Any) -> None:
    with pytest.raises(ValueError, match="read-only stage"):
        launched(tools=tools, read_only=True)


def test_sessions_are_new_resumed_or_thrown_away() -> None:
    assert f"--resume={ID}" in launched(session=ResumedSession(ID)).argv
    assert "--no-session-persistence" in launched(session=ThrowAway()).argv
    with pytest.raises(ValueError, match="UUID"):
        launched(session=ResumedSession("--continue"))


def test_a_value_that_looks_like_an_option_stays_a_value() -> None:
    argv = launched(model="--dangerously-skip-permissions", rules=("--x",)).argv
    assert "--model=--dangerously-skip-permissions" in argv
    assert "--dangerously-skip-permissions" not in argv
    assert "--x" not in argv


def test_rules_go_by_file_as_they_are() -> None:
    rules = ("Bash(make test)", 'Bash(python3 -c "print(1, 2)")', "Edit(src/**)")
    settings = msgspec.json.decode(launched(rules=rules).files["claude-settings.json"])
    assert settings == {"permissions": {"allow": list(rules)}}


def test_instructions_and_memory_share_one_file_for_only_the_last_one_counts() -> None:
    run = launched(tools=READING, read_only=True, instructions="STAGE", memory="MEMORY")
    assert run.files["system-prompt.md"] == b"STAGE\n\nMEMORY"
    assert run.argv.count("--append-system-prompt-file=/data/attempts/7 a/system-prompt.md") == 1
    assert run.preface == ""


def test_cw_20_an_older_version_gets_its_instructions_in_the_message() -> None:
    run = launched(version=OLDEST, instructions="STAGE", memory="MEMORY", trusted=False)
    assert run.preface == "STAGE"
    assert run.files["system-prompt.md"] == b"MEMORY"
    assert not any("snapshot" in part for part in run.argv)


def test_a_schema_goes_on_the_command_line_or_if_it_is_too_large_as_a_message() -> None:
    small = launched(schema={"type": "object"}, tools=(), attended=False)
    assert '--json-schema={"type":"object"}' in small.argv
    assert small.first == ()
    assert small.offered == frozenset({"StructuredOutput"})
    schema = {"type": "object", "description": "x" * 200_000}
    large = launched(schema=schema)
    assert max(len(part.encode()) for part in large.argv) < 131_071
    request = msgspec.json.decode(large.first[0])
    assert request["request"] == {"subtype": "initialize", "jsonSchema": schema}


def test_limits_are_passed_on() -> None:
    argv = launched(max_turns=200, max_budget_usd=2.5, model="sonnet").argv
    assert {"--max-turns=200", "--max-budget-usd=2.5", "--model=sonnet"} <= set(argv)


def test_da_10_the_environment_is_the_clients_without_marks_of_another_claude() -> None:
    base = {"PATH": "/bin", "CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "ANTHROPIC_API_KEY": "k"}
    assert environment(base, attempt="a7") == {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "PROMPTSIDE_ATTEMPT": "a7",
    }


def test_st_14_the_stage_line_says_its_rule() -> None:
    said = [stage_rule(launch(permission=permission)) for permission in ("deny", "ask", "allow")]
    assert said == ["what the rules allow", "edits allowed, asks for the rest", "everything allowed"]
