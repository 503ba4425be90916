"""`promptside demo`: the seven stages of `standard` on a scratch repository, without a model, a key or a cost.

It plays a recorded run through a daemon of its own, gives the answers itself, and prints each as the command
that gives it. Nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from promptside_cli import exits
from promptside_cli.arguments import Arguments

TITLE = "Leave common words out of the list"
DESCRIPTION = (
    "The first ten words of almost any English text are “the”, “and”, “of”, “to”. Let me name words that "
    "wordcount leaves out."
)
ANSWERS: dict[str, list[str]] = {
    "high-level-approaches": ["--select", "A"],
    "security-review": ["--check", "all"],
}
"""What the demo adds to `approve`, by stage."""
REDO = {
    "planning": "Put the tests of each step before its code, and say what happens when the list is not UTF-8.",
}
"""Stages that are sent back once, with these words, before they are approved."""
INPUT = "I keep one list for each language. Let --stop-words be given more than once, and think of standard input."
LAST = 60
"""Orders after which a demo that goes in circles ends; a whole run takes about twenty."""


def main(arguments: Arguments) -> int:
    """Run the whole pipeline; the exit code of the first command that fails, else 0."""
    scratch = Path(tempfile.mkdtemp(prefix="promptside-demo-"))
    stage = Rehearsal(scratch, fast=arguments.given("--fast"))
    try:
        return stage.play()
    except KeyboardInterrupt:
        return exits.DETACHED
    finally:
        stage.clear()


class Rehearsal:
    """A scratch repository and a daemon of its own, driven by the commands that a person would type."""

    def __init__(self, scratch: Path, *, fast: bool) -> None:
        self._scratch = scratch
        self._project = scratch / "wordcount"
        self._agent = "rehearsal-fast:standard" if fast else "rehearsal:standard"
        self._environment = {
            **os.environ,
            "PROMPTSIDE_HOME": str(scratch / "home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }
        self._redone: set[str] = set()

    def play(self) -> int:
        """From an empty directory to the pull request's text."""
        self._make_repository()
        print(f"A scratch repository: {self._project}. A recorded agent plays; no model, no key, no cost.\n")
        self._say("task", "new", TITLE, "--description", DESCRIPTION, "--agent", self._agent)
        self._say("run", "1")
        for _ in range(LAST):
            task = self._task()
            if task["state"] == "completed":
                self._end(task)
                return exits.DONE
            words = self._next(task)
            if words is None:
                print(task["error"] or "The demo does not know how to go on.", file=sys.stderr)
                return exits.FAILED
            code = self._say(*words)
            if code not in (exits.DONE, exits.WAITS):
                return code
            if words[0] != "run":
                self._say("run", "1") if self._is_under_way() else None
        return exits.FAILED

    def clear(self) -> None:
        """Stop the daemon, and remove everything."""
        self._run("daemon", "stop", quiet=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _next(self, task: dict[str, Any]) -> list[str] | None:
        """What a person would do now; None if nothing can be done."""
        waits = task["waiting_for"]
        if waits is None:
            return None
        stage = waits["stage"]
        match waits["kind"]:
            case "decision":
                asked = waits["decisions"][0]
                how = ["--option", "always"] if asked["kind"] == "permission" else ["--recommended"]
                return ["answer", "1", asked["id"], *how]
            case "input":
                return ["run", "1", "--input", INPUT]
            case "gate" if stage in REDO and stage not in self._redone:
                self._redone.add(stage)
                return ["redo", "1", "-m", REDO[stage]]
            case "gate":
                return ["approve", "1", *ANSWERS.get(stage, [])]
            case _:
                return None

    def _end(self, task: dict[str, Any]) -> None:
        document = task["stages"][-1]["artifact"]
        print(f"The pull request, as it stands in {document}:\n")
        print((self._project / document).read_text(encoding="utf-8"))
        self._say("diff", "1", "--stage", "implementation")
        print("That was the demo; the scratch repository is removed.")
        print("In a repository of yours: promptside task new “…”, then promptside run.")

    def _is_under_way(self) -> bool:
        task = self._task()
        return task["waiting_for"] is None and task["state"] == "taken"

    def _task(self) -> dict[str, Any]:
        shown = self._run("task", "show", "1", "--json", quiet=True)
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    def _say(self, *words: str) -> int:
        """Print a command as a person would type it, and run it."""
        print(f"$ promptside {' '.join(_quoted(w) for w in words)}", flush=True)
        code = self._run(*words).returncode
        print(flush=True)
        return code

    def _run(self, *words: str, quiet: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "promptside_cli", *words],
            cwd=self._project,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if quiet else None,
            stderr=subprocess.PIPE if quiet else None,
            text=True,
            check=False,
        )

    def _make_repository(self) -> None:
        # The recordings ship with the daemon's package; they are data, nothing of it is imported.
        with resources.as_file(
            resources.files("promptside_daemon") / "rehearsals/standard/project"
        ) as sample:
            shutil.copytree(sample, self._project, ignore=shutil.ignore_patterns("__pycache__"))
        who = ["-c", "user.name=Promptside", "-c", "user.email=demo@promptside.invalid"]
        for words in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "A word counter"]):
            subprocess.run(["git", *words], cwd=self._project, env=self._environment, check=True)


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word
