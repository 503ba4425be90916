"""What the stories begin with: the recorded project, a task in it, and the way to the stage that a story is about."""

import shutil
from importlib import resources

from rig.user import User

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


def bring_to(user: User, wanted: str) -> None:
    """Answer everything in the terminal, until the gate of this stage waits."""
    user.promptside("run", "1", code=None)
    while True:
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
        user.until(lambda task, before=view["seq"]: task["seq"] > before)
