"""`doctor`: what is there, what is missing, and what to do about it (DA-8, CW-20)."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from promptside_daemon.engine.task import Failure
from promptside_daemon.pipelines import find
from promptside_daemon.settings import load
from promptside_daemon.world import git
from promptside_daemon.world.claude import version
from promptside_daemon.world.launch import REHEARSE, find_claude
from promptside_protocol import paths
from promptside_protocol.errors import Refusal
from promptside_protocol.views import Check, Doctor

if TYPE_CHECKING:
    from promptside_daemon.project import Project

FREE_MB = 500
LOGINS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)
"""Variables any of which is a login."""


async def examine(
    project: Project | None, environment: Mapping[str, str], broken: Mapping[str, Refusal]
) -> Doctor:
    """Every check, with the environment that an agent of this client would get."""
    checks = [_python(), await _git(environment), await asyncio.to_thread(_claude, project, environment)]
    checks.append(await asyncio.to_thread(_login, environment))
    checks.append(_path(environment))
    checks.append(_space())
    checks += await asyncio.to_thread(_settings, project)
    checks += [
        Check(
            name="database",
            ok=False,
            found=f"{path}: {refusal.message}",
            needed="a database that can be used",
            hint=refusal.hint,
        )
        for path, refusal in broken.items()
    ]
    if project is not None:
        checks.append(_project(project))
        checks.append(await asyncio.to_thread(_trust, project))
    return Doctor(ok=all(c.ok for c in checks), checks=tuple(checks))


def _python() -> Check:
    found = ".".join(str(n) for n in sys.version_info[:3])
    systems = {"linux": "Linux", "darwin": "macOS (not tested)"}
    system = systems.get(sys.platform)
    return Check(
        name="python",
        ok=system is not None,
        found=f"{found} on {system or sys.platform}",
        needed="3.11 on Linux or macOS",
        hint="" if system else "Run Promptside on Linux or macOS; on Windows in WSL.",
    )


async def _git(environment: Mapping[str, str]) -> Check:
    found = await git.version(environment)
    cost = git.cost_of(found)
    return Check(
        name="git",
        ok=cost is None,
        found=".".join(map(str, found)) if found else "not found",
        needed="2.38",
        hint=cost or "",
    )


def _claude(project: Project | None, environment: Mapping[str, str]) -> Check:
    settings = load(project.root if project else None).settings
    found = find_claude(environment.get("PROMPTSIDE_CLAUDE") or settings.agent.claude.command, environment)
    if isinstance(found, Failure):
        hint = found.hint if found.hint != "promptside doctor" else "Update it: npm install -g " + PACKAGE
        return Check(
            name="claude",
            ok=False,
            found=found.sentence,
            needed=str(version.OLDEST),
            hint=hint if hint.endswith(REHEARSE) else f"{hint} {REHEARSE}",
        )
    binary, its_version = found
    return Check(
        name="claude",
        ok=True,
        found=f"{its_version} at {binary}",
        needed=f"{version.OLDEST}, better {version.COMPLETE}",
        hint=" ".join(version.fitness(its_version).losses),
    )


PACKAGE = "@anthropic-ai/claude-code"


def _login(environment: Mapping[str, str]) -> Check:
    """Whether a login can be found without running anything; only the agent itself knows whether it still works."""
    named = next((k for k in LOGINS if environment.get(k)), None)
    home = Path(environment.get("HOME", "~")).expanduser()
    base = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    stored = (base / ".credentials.json").exists() or sys.platform == "darwin"
    helper = _has_helper(base / "settings.json")
    found = named or ("a stored login" if stored else "apiKeyHelper" if helper else "")
    return Check(
        name="login",
        ok=bool(found),
        found=found or "none found",
        needed="a login of the Claude CLI, or an API key",
        hint="" if found else "Run “claude” once in a terminal and log in, or set ANTHROPIC_API_KEY.",
    )


def _has_helper(settings: Path) -> bool:
    try:
        return "apiKeyHelper" in settings.read_text(errors="replace")
    except OSError:
        return False


def _path(environment: Mapping[str, str]) -> Check:
    """Which PATH an agent gets (DA-10)."""
    found = environment.get("PATH", "")
    return Check(name="path", ok=bool(found), found=found or "empty", needed="the PATH that agents get")


def _space() -> Check:
    directory = paths.data_dir()
    while not directory.exists():
        directory = directory.parent
    free = shutil.disk_usage(directory).free >> 20
    return Check(
        name="space",
        ok=free >= FREE_MB,
        found=f"{free} MB free in {directory}",
        needed=f"{FREE_MB} MB",
        hint="" if free >= FREE_MB else "Make room: promptside gc shows what can go.",
    )


def _settings(project: Project | None) -> list[Check]:
    read = load(project.root if project else None, trusted=True)
    faults = [*read.faults]
    for loaded in find.list_all(project.root if project else None):
        faults += loaded.faults
    return [
        Check(
            name="settings",
            ok=False,
            found=f"{f.file}:{f.line}: {f.message}",
            needed="files without faults",
            hint=f.hint,
        )
        for f in faults
        if f.severity == "error"
    ]


def _project(project: Project) -> Check:
    return Check(name="project", ok=True, found=f"{project.row.name}, {project.row.path}", needed="")


def _trust(project: Project) -> Check:
    found = project.trust()
    ok = found.state in ("trusted", "none_needed")
    return Check(
        name="trust",
        ok=ok,
        found=found.sentence,
        needed="your word before a project's own commands run",
        hint="" if ok else "promptside trust --show",
    )
