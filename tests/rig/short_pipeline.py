"""A person's own pipeline of one stage, for stories that need no more than that."""

from rig.messages_api import Failure, Reply, Rule
from rig.user import User

NAME = "short"
WORDS = "Do what the short pipeline says."


def short(user: User, *replies: Reply | Failure, **keys: str) -> Rule:
    """Give the person a pipeline with one stage, `work`, that has these keys; the model's answers in it."""
    directory = user.data / "config" / "pipelines"
    directory.mkdir(parents=True, exist_ok=True)
    settings = {"permission": '"ask"', **keys}
    lines = [f"{key} = {value}" for key, value in settings.items()]
    prompt = f'"{WORDS} {{{{ task_description }}}}"'
    stage = ["[[stage]]", 'id = "work"', 'name = "Work"', 'input = "user"', f"prompt = {prompt}", *lines]
    (directory / f"{NAME}.toml").write_text("\n".join([*stage, ""]), encoding="utf-8")
    return Rule(WORDS, replies)
