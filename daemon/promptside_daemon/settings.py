"""What can be set, with its defaults, and who may set it: shipped, then the person, then the project (DA-11).

A project is somebody else's code. Until the person trusts it, it sets names in git and nothing more; and
never, trusted or not, which program runs, with which environment, what is kept, or who is told (DA-5).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct, convert, field

from promptside_daemon.engine.pipeline import Limits, Stage
from promptside_daemon.toml_reader import Reader
from promptside_daemon.toml_source import KeyPath, parse, read_text
from promptside_protocol import paths
from promptside_protocol.views import FaultView

CheckName = Literal["test", "lint", "build"]
AgentName = Literal["claude", "promptside", "rehearsal"]
Scope = Literal["anyone", "trusted", "person"]
"""Whose file may set a key: any project's, a trusted project's, only the person's own."""


class Claude(Struct, frozen=True, kw_only=True):
    """`[agent.claude]`: the Claude CLI."""

    command: str = "claude"
    model: str = ""
    env: dict[str, str] = field(default_factory=dict)


class Agent(Struct, frozen=True, kw_only=True):
    """`[agent]`: which program works."""

    default: AgentName = "claude"
    claude: Claude = field(default_factory=Claude)


class PipelineDefault(Struct, frozen=True, kw_only=True):
    """`[pipeline]`: what a task goes through."""

    default: str = "standard"


class Git(Struct, frozen=True, kw_only=True):
    """`[git]`: branches and worktrees; an empty base is the remote's HEAD, else the current branch."""

    base: str = ""
    branch: str = "task/{id}-{slug}"
    push: bool = True
    worktrees: str = ".promptside/worktrees"


class Checks(Struct, frozen=True, kw_only=True):
    """`[checks]`: commands that decide whether a stage may pass."""

    test: str = ""
    lint: str = ""
    build: str = ""
    skip: tuple[CheckName, ...] = ()


class Notify(Struct, frozen=True, kw_only=True):
    """`[notify]`: what the desktop tells."""

    desktop: bool = True
    stage_change: bool = True
    questions: bool = True
    blocker: bool = True
    pr_created: bool = True
    pr_merged: bool = True
    review_done: bool = True


class Retention(Struct, frozen=True, kw_only=True):
    """`[retention]`: how long, and how much of, what finished tasks left is kept; 0 keeps all (DA-9)."""

    days: int = 90
    size_mb: int = 4096


class Environment(Struct, frozen=True, kw_only=True):
    """`[environment]`: names that reach the agent beside the usual ones; `X_*` is a beginning (DA-10)."""

    allow: tuple[str, ...] = ()


class Daemon(Struct, frozen=True, kw_only=True):
    """`[daemon]`: the daemon itself (DA-12)."""

    keep_awake: bool = False


class Settings(Struct, frozen=True, kw_only=True):
    """All settings; the names are those of the files and of the editors."""

    agent: Agent = field(default_factory=Agent)
    pipeline: PipelineDefault = field(default_factory=PipelineDefault)
    limits: Limits = field(default_factory=Limits)
    git: Git = field(default_factory=Git)
    checks: Checks = field(default_factory=Checks)
    notify: Notify = field(default_factory=Notify)
    retention: Retention = field(default_factory=Retention)
    environment: Environment = field(default_factory=Environment)
    daemon: Daemon = field(default_factory=Daemon)


class Read(Struct, frozen=True, kw_only=True):
    """Settings as the files give them. A value with a fault does not count: the one below it does."""

    settings: Settings
    faults: tuple[FaultView, ...] = ()
    of_project: frozenset[str] = frozenset()
    """Keys that the project sets, and that count."""
    untrusted: tuple[str, ...] = ()
    """Keys that the project sets, and that wait for the person's trust."""


SCOPES: dict[str, Scope] = {
    "git.base": "anyone",
    "git.branch": "anyone",
    "git.worktrees": "anyone",
    "agent.default": "trusted",
    "agent.claude.model": "trusted",
    "pipeline": "trusted",
    "limits": "trusted",
    "limits.agents": "person",  # one number for all projects of the machine
    "git.push": "trusted",
    "checks": "trusted",
}
"""By key, else by its table; what is not here is the person's."""


def load(project: Path | None = None, *, trusted: bool = False) -> Read:
    """The settings in force, of the person and of a project; never raises."""
    merged: dict[str, Any] = {}
    faults: list[FaultView] = []
    waiting: list[str] = []
    of_project: set[str] = set()
    files: list[tuple[Path, bool]] = [(paths.config_dir() / "config.toml", True)]
    if project is not None:
        files.append((project / ".promptside" / "config.toml", False))
    for file, own in files:
        given, found = read_file(file)
        faults += found
        for key, (value, fault) in given.items():
            scope = scope_of(key)
            if own or scope == "anyone" or (scope == "trusted" and trusted):
                _put(merged, key, value)
                of_project |= set() if own else {key}
            elif scope == "trusted":
                waiting.append(key)
            else:
                faults.append(fault)
    return Read(
        settings=convert(merged, Settings),
        faults=tuple(faults),
        of_project=frozenset(of_project),
        untrusted=tuple(waiting),
    )


def scope_of(key: str) -> Scope:
    """Whose file may set a key such as `checks.test`."""
    while key:
        if key in SCOPES:
            return SCOPES[key]
        key = key.rpartition(".")[0]
    return "person"


def rules_with_checks(stage: Stage, checks: Checks) -> tuple[str, ...]:
    """A stage's rules, and where it may run commands and asks, the check commands word for word (ST-14)."""
    may_run = stage.permission == "ask" and (stage.tools is None or "Bash" in stage.tools)
    commands = [checks.test, checks.lint, checks.build] if may_run else []
    return tuple(dict.fromkeys([*stage.rules, *(f"Bash({command})" for command in commands if command)]))


def read_file(file: Path) -> tuple[dict[str, tuple[Any, FaultView]], list[FaultView]]:
    """What one file sets, by dotted key, each with what is said if it is in a file that may not set it.

    A file that is not there sets nothing.
    """
    text = read_text(file)
    if isinstance(text, FaultView) and not os.path.lexists(file):
        return {}, []
    return ({}, [text]) if isinstance(text, FaultView) else read_given(text, str(file))


def check(text: str, file: Path) -> tuple[FaultView, ...]:
    """Everything that is wrong with the text of a settings file, saved or not."""
    given, faults = read_given(text, str(file))
    if not file.is_relative_to(paths.config_dir()):
        faults += [fault for key, (_, fault) in given.items() if scope_of(key) == "person"]
    return tuple(faults)


def read_given(text: str, file: str) -> tuple[dict[str, tuple[Any, FaultView]], list[FaultView]]:
    """As `read_file`, of a text that need not be saved."""
    document = parse(text, file)
    if isinstance(document, FaultView):
        return {}, [document]
    read = Reader(document)
    given: dict[str, tuple[Any, FaultView]] = {}
    for path, value in _values(read, (), Settings):
        key = ".".join(map(str, path))
        refused = document.fault(
            path,
            f"A project can't set `{key}`; it does not count.",
            f"Put it into your own {paths.config_dir() / 'config.toml'}.",
            severity="warning",
        )
        given[key] = (value, refused)
    return given, list(read.faults)


def _values(read: Reader, path: KeyPath, kind: type[Struct]) -> list[tuple[KeyPath, Any]]:
    known = get_type_hints(kind)
    read.unknown(path, tuple(known))
    found: list[tuple[KeyPath, Any]] = []
    for key in read.table(path):
        at = (*path, key)
        wanted = known.get(key)
        if wanted is None:
            continue
        if isinstance(wanted, type) and issubclass(wanted, Struct):
            found += _values(read, at, wanted)
            continue
        before = len(read.faults)
        value = _value(read, at, wanted)
        if len(read.faults) == before:
            _judge(read, at, value)
        if len(read.faults) == before:
            found.append((at, value))
    return found


def _value(read: Reader, at: KeyPath, wanted: Any) -> Any:
    if wanted is str:
        return read.line(at)
    if wanted is bool:
        if not isinstance(read.value(at), bool):
            read.wrong(at, "`true` or `false`")
        return read.value(at)
    if wanted in (int, float):
        return read.number(at, whole=wanted is int)
    if get_origin(wanted) is Literal:
        return read.choice(at, get_args(wanted), "")
    if get_origin(wanted) is tuple:
        words = read.words(at)
        inner = get_args(wanted)[0]
        if get_origin(inner) is Literal:
            return tuple(read.choice((*at, number), get_args(inner), "") for number in range(len(words)))
        return words
    return {name: read.text((*at, name)) for name in read.table(at)}


# --- values that are of the right kind, and still can't be meant ------------------------------------

_REF = re.compile(r"(?!-)(?!.*(?:\.\.|//|@\{|/\.|\.lock(?:/|$)))[^\x00-\x20~^:?*\[\\\x7f]+(?<![./])")
_PLACES = re.compile(r"\{(?:id|slug|type)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_PIPELINE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _judge(read: Reader, at: KeyPath, value: Any) -> None:
    key = ".".join(map(str, at))
    if (rule := _RULES.get(key)) is not None and (sentence := rule(value)):
        read.fault(at, f"`{key}` {sentence}.", at="value")


def _at_least_one(value: float) -> str:
    return "" if value >= 1 else "must be at least 1"


def _ref(value: str) -> str:
    return "" if not value or _REF.fullmatch(value) else "can't be the name of a branch"


def _branch(value: str) -> str:
    plain = _PLACES.sub("x", value)
    if "{" in plain or "}" in plain:
        return "knows `{id}`, `{slug}` and `{type}` only"
    if "{id}" not in value:
        return "needs `{id}`, or two tasks could get the same branch"
    return _ref(plain)


def _inside(value: str) -> str:
    path = PurePosixPath(value)
    if not value or path.is_absolute() or ".." in path.parts or value.startswith("~") or not path.parts:
        return "must be a directory inside of the project"
    return "can't be inside of `.git`" if path.parts[0].lower() == ".git" else ""


def _command(value: str) -> str:
    try:
        shlex.split(value)
    except ValueError as error:
        return f"can't be split into words: {str(error).lower()}"
    return ""


def _not_empty(value: str) -> str:
    return "" if value else "is empty"


def _pipeline(value: str) -> str:
    return "" if _PIPELINE.fullmatch(value) else "must be the name of a pipeline"


def _variables(value: Any) -> str:
    wrong = [name for name in value if not _VARIABLE.fullmatch(name)]
    return f"holds {wrong[0]!r}, which can't be a variable's name" if wrong else ""


_RULES: dict[str, Callable[[Any], str]] = {
    "agent.claude.command": _not_empty,
    "agent.claude.env": _variables,
    "pipeline.default": _pipeline,
    "limits.agents": _at_least_one,
    "git.base": _ref,
    "git.branch": _branch,
    "git.worktrees": _inside,
    "checks.test": _command,
    "checks.lint": _command,
    "checks.build": _command,
    "environment.allow": _variables,
}


def _put(tree: dict[str, Any], key: str, value: Any) -> None:
    *tables, last = key.split(".")
    for table in tables:
        tree = tree.setdefault(table, {})
    tree[last] = value
