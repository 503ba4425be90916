"""What the stories begin with: the recorded project, a task in it, and the way to the stage that a story is about."""

import json
import os
import shutil
from importlib import resources
from pathlib import Path
from unittest import mock

from rig.user import User

from promptside_protocol import connect
from promptside_protocol.blocking import request
from promptside_protocol.commands import NewTask
from promptside_protocol.errors import PromptsideError
from vscode_rig.workbench import Workbench

TITLE = "Leave common words out"


def sample(user: User) -> None:
    """The project that the recordings of `standard` belong to."""
    with resources.as_file(resources.files("promptside_daemon") / "rehearsals/standard/project") as project:
        shutil.copytree(
            project, user.project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    user.commit_all()


def new_task(user: User, agent: str = "rehearsal-fast:standard", title: str = TITLE) -> None:
    """A task that a recorded agent will work at."""
    user.promptside("task", "new", title, "--description", "Name words that are left out.", "--agent", agent)


LINES = 5000
"""What a slow stage says behind its first action: ten minutes of it."""


def slow(user: User, *stages: str) -> Path:
    """Recordings of `standard` in which some stages work until they are stopped."""
    recorded = user.base / "recorded"
    with resources.as_file(resources.files("promptside_daemon") / "rehearsals/standard") as shipped:
        shutil.copytree(shipped, recorded, ignore=shutil.ignore_patterns("project"))
    for path in [found for stage in stages for found in recorded.glob(f"{stage}.*.ndjson")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        at = next(n for n, line in enumerate(lines) if json.loads(line).get("type") == "user") + 1
        busy = json.dumps({"type": "system", "subtype": "status", "session_id": "{{session}}"})
        path.write_text("\n".join([*lines[:at], *([busy] * LINES), *lines[at:], ""]), encoding="utf-8")
    return recorded


def bring_to(user: User, wanted: str) -> None:
    """Answer everything in the terminal, until the gate of this stage waits."""
    user.promptside("run", "1", code=None)
    while True:
        view = user.look()
        if view["waiting_for"] is None:
            view = user.until(lambda task: task["waiting_for"] is not None)
        waits = view["waiting_for"]
        stage = waits["stage"]
        match waits["kind"]:
            case "decision":
                asked = waits["decisions"][0]
                how = ["--option", "always"] if asked["kind"] == "permission" else ["--recommended"]
                words = ["answer", "1", asked["id"], *how]
            case "input":
                words = ["run", "1", "--input", "Nothing more."]
            case "gate" if stage == wanted:
                return
            case "gate":
                more = {"high-level-approaches": ["--select", "A"], "security-review": ["--check", "all"]}
                words = ["approve", "1", *more.get(stage, [])]
            case _:
                raise AssertionError(f"{stage} waits for a person: {waits['reason']}")
        user.promptside(*words, code=None)


def now(user: User) -> tuple[str, str]:
    """Which stage waits, and for what; neither while none does."""
    try:
        waiting = user.look()["waiting_for"] or {}
    except PromptsideError:  # there is no such task yet
        waiting = {}
    return waiting.get("stage", ""), waiting.get("kind", "")


def waits(window: Workbench, user: User, stage: str, kind: str = "gate") -> None:
    """Wait until a stage waits for this."""
    window.until(lambda: now(user) == (stage, kind))


def new_tasks(user: User, titles: list[str], pipeline: str = "") -> None:
    """Many tasks at once, by one program."""
    with mock.patch.dict(os.environ, user.environment, clear=True):
        for title in titles:
            order = NewTask(
                project=str(user.project.resolve()),
                key=f"{pipeline} {title}",
                title=title,
                pipeline=pipeline,
                agent="rehearsal-fast:standard",
            )
            request(connect.hello("terminal"), order)
