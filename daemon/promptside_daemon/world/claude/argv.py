"""Command line, files and environment of a Claude CLI, from what a stage is allowed (CLAUDE_CLI.md 0, ST-14).

Nothing that came from a pipeline, a project or a person becomes an option: values are joined to their option
by "=", tool names are checked, and what can be long or strange goes by file.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import Struct

from promptside_daemon.world.claude import messages
from promptside_daemon.world.claude.version import COMPLETE, Version


class NewSession(Struct, frozen=True, tag=True):
    """A session with an id of ours, which no session had before: an id can't be used twice."""

    id: str


class ResumedSession(Struct, frozen=True, tag=True):
    id: str


class ThrowAway(Struct, frozen=True, tag=True):
    """A run that nobody goes on with: a preparation step, a fallback parser."""


Session = NewSession | ResumedSession | ThrowAway


class Launch(Struct, frozen=True, kw_only=True):
    """What is to be started. `directory` is the attempt's, where the files of `Driven` will be.

    `tools`: "all" or the stage's list; `AskUserQuestion` is in neither: it is added if the run is `attended`.
    `instructions` is the stage's and persona's text for the system prompt, `memory` the project's CLAUDE.md.
    `root` and `sandboxed` (IS_SANDBOX=1) say as whom and where the agent runs.
    """

    binary: str
    version: Version
    directory: str
    session: Session
    tools: Literal["all"] | tuple[str, ...]
    permission: Literal["deny", "ask", "allow"]
    read_only: bool
    attended: bool
    trusted: bool
    rules: tuple[str, ...] = ()
    model: str | None = None
    instructions: str = ""
    memory: str = ""
    schema: dict[str, Any] | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    root: bool = False
    sandboxed: bool = False
    before_edits: str = ""
    """A command that is run before a tool changes a file, and may have it asked about."""


class Driven(Struct, frozen=True, kw_only=True):
    """How it is started and driven.

    `files`: to be written into the attempt's directory, by name. `first`: lines to send before the message.
    `preface`: to stand before the first message, where the version can't take it as a system prompt.
    `on_ask`: what a permission ask gets ("deny" and "allow" without a person). `offered`: the tools that
    `init` may name, None for any. `remarks`: what a person should know.
    """

    argv: tuple[str, ...]
    files: dict[str, bytes]
    first: tuple[bytes, ...]
    preface: str
    on_ask: Literal["ask", "deny", "allow"]
    mode: str
    offered: frozenset[str] | None
    remarks: tuple[str, ...]


def driven(launch: Launch) -> Driven:
    """Raise ValueError, with a sentence, for what can't be started so."""
    mode, on_ask, remarks = _permissions(launch)
    project_is_read = launch.trusted and not launch.read_only
    argv = [
        launch.binary,
        "-p",
        "--input-format=stream-json",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool=stdio",
        f"--permission-mode={mode}",
        *_session(launch.session),
    ]
    if launch.model:
        argv.append(f"--model={launch.model}")
    tool_options, offered = _tools(launch)
    argv += tool_options
    if not project_is_read:
        # A project's hooks, skills, agents and .mcp.json servers run without asking (CLAUDE_CLI.md 0.11);
        # this stops them all and keeps the user's own. "" would also lose a login that stands in settings.
        argv.append("--setting-sources=user")
    if launch.read_only or (launch.tools != "all" and not any(map(_is_mcp, launch.tools))):
        argv.append("--strict-mcp-config")
    if launch.read_only:
        argv.append("--disable-slash-commands")
    if launch.max_turns is not None:
        argv.append(f"--max-turns={launch.max_turns}")
    if launch.max_budget_usd is not None:
        argv.append(f"--max-budget-usd={launch.max_budget_usd}")

    files: dict[str, bytes] = {}
    if settings := _settings(launch):
        files[_SETTINGS] = msgspec.json.format(msgspec.json.encode(settings))
        argv.append(f"--settings={launch.directory}/{_SETTINGS}")

    fresh_prompt = launch.version >= COMPLETE
    preface = "" if fresh_prompt else launch.instructions
    memory = "" if project_is_read else launch.memory
    # Only the last of several such files counts (measured): both texts go into one.
    system_prompt = "\n\n".join(
        text for text in (launch.instructions if fresh_prompt else "", memory) if text
    )
    if fresh_prompt:
        argv.append("--system-prompt-snapshot=off")
    if system_prompt:
        files[_SYSTEM_PROMPT] = system_prompt.encode()
        argv.append(f"--append-system-prompt-file={launch.directory}/{_SYSTEM_PROMPT}")

    first: tuple[bytes, ...] = ()
    if launch.schema is not None:
        schema = msgspec.json.encode(launch.schema)
        if len(schema) < _LONGEST_ARGUMENT:
            argv.append(f"--json-schema={schema.decode()}")
        else:
            first = (messages.initialize(f"{launch.directory} schema", launch.schema),)
    return Driven(
        argv=tuple(argv),
        files=files,
        first=first,
        preface=preface,
        on_ask=on_ask,
        mode=mode,
        offered=offered,
        remarks=remarks,
    )


def environment(base: Mapping[str, str], *, attempt: str) -> dict[str, str]:
    """The agent's environment: `base` without the marks of a Claude CLI around us, and with ours."""
    kept = {name: value for name, value in base.items() if name not in _DROPPED}
    return kept | {
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "PROMPTSIDE_ATTEMPT": attempt,
    }


def stage_rule(launch: Launch) -> str:
    """What the stage may do, in the words of the stage line (UX.md 9)."""
    if launch.read_only or launch.permission == "deny":
        return "read-only" if launch.read_only else "what the rules allow"
    return "everything allowed" if launch.permission == "allow" else "edits allowed, asks for the rest"


_SETTINGS = "claude-settings.json"
_SYSTEM_PROMPT = "system-prompt.md"
# The kernel takes 131072 bytes with the option's name and a NUL (CLAUDE_CLI.md 2).
_LONGEST_ARGUMENT = 120_000
_DROPPED = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"})

_TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_ASK = "AskUserQuestion"
# Tools that only the host can answer: without one they would wait for nobody.
_HOSTED = (_ASK, "EnterPlanMode", "ExitPlanMode")
# They reach out and change nothing here; without a rule each call would ask, or be denied (measured).
_LOOKING_OUT = ("WebSearch", "WebFetch")
# One tool with two names: the first in `init`, the second in its calls (CLAUDE_CLI.md 4).
_SUBAGENT = frozenset({"Task", "Agent"})
_CHANGING = frozenset({"Bash", "Write", "Edit", "MultiEdit", "NotebookEdit"})


def _permissions(launch: Launch) -> tuple[str, Literal["ask", "deny", "allow"], tuple[str, ...]]:
    if launch.read_only or launch.permission == "deny":
        # Where a person can be asked, questions must get through: `dontAsk` denies them itself (measured).
        return ("default" if launch.attended else "dontAsk"), "deny", ()
    if launch.permission == "ask":
        return "acceptEdits", ("ask" if launch.attended else "deny"), ()
    if launch.root and not launch.sandboxed:
        remark = (
            "Everything is allowed in this stage. The agent runs as root, where its own mode for that is "
            "refused (IS_SANDBOX=1 lifts it); so each of its asks is answered with yes."
        )
        return "acceptEdits", "allow", (remark,)
    return "bypassPermissions", "allow", ("Everything is allowed in this stage: the agent asks for nothing.",)


def in_terminal(binary: str, session: str) -> tuple[str, ...]:
    """A conversation in a person's own terminal: who sits there decides on tools and permissions."""
    return binary, f"--resume={UUID(session)}"


def _session(session: Session) -> list[str]:
    match session:
        case NewSession(id=id):
            return [f"--session-id={UUID(id)}"]
        case ResumedSession(id=id):
            return [f"--resume={UUID(id)}"]
        case ThrowAway():
            return ["--no-session-persistence"]


def _tools(launch: Launch) -> tuple[list[str], frozenset[str] | None]:
    if launch.tools == "all":
        if launch.read_only:
            raise ValueError("A read-only stage must name its tools.")
        return ([] if launch.attended else [f"--disallowedTools={','.join(_HOSTED)}"]), None
    for name in launch.tools:
        if not _TOOL_NAME.fullmatch(name) or name == "default":
            raise ValueError(f"{name!r} is not the name of a tool.")
        if launch.read_only and name in _CHANGING:
            raise ValueError(f"A read-only stage can't have the tool {name}.")
    named = [name for name in dict.fromkeys(launch.tools) if name not in _HOSTED]
    if launch.attended:
        named.append(_ASK)
    options = [f"--tools={','.join(name for name in named if not _is_mcp(name))}"]
    if looking_out := [name for name in _LOOKING_OUT if name in named]:
        options.append(f"--allowedTools={','.join(looking_out)}")
    offered = set(named)
    if launch.schema is not None:
        offered.add("StructuredOutput")
    if offered & _SUBAGENT:
        offered |= _SUBAGENT
    return options, frozenset(offered)


def _settings(launch: Launch) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if launch.read_only:
        settings["disableAllHooks"] = True
    elif launch.before_edits:
        hook = {"type": "command", "command": launch.before_edits}
        settings["hooks"] = {
            "PreToolUse": [{"matcher": "Edit|Write|MultiEdit|NotebookEdit", "hooks": [hook]}]
        }
    if launch.rules:
        # By file, not by --allowedTools: a rule may hold commas, brackets and more than a command line takes.
        settings["permissions"] = {"allow": list(launch.rules)}
    return settings


def _is_mcp(name: str) -> bool:
    # No built-in tools: `--tools` knows none of them, the servers bring them all.
    return name.startswith("mcp__")
