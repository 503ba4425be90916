"""Data that hurts: many tasks, a long pipeline, long titles, right-to-left text; made by one program in seconds."""

import os
from collections.abc import Iterable
from unittest import mock

from rig import short_pipeline
from rig.user import User

from promptside_protocol import connect
from promptside_protocol.commands import NewTask

LONG = ("Leave words out that are in the file of stop words, whatever their case is, " * 3)[:200].strip()
"""As long as a title may be: three lines of a panel don't hold it."""
HEBREW = "להשמיט מילים נפוצות מהספירה, וגם סימני פיסוק"
MARKED = "<b>bold</b> $(error) [x](command:y) &amp; **stars** `code`"
"""What a client might take for markup of its own."""
STAGES = 13
NAMES = {2: "A stage whose name is long enough to need a second line", 3: "שלב בעברית"}


def long_pipeline(user: User) -> str:
    """Give the person a pipeline of many stages; its name."""
    into = user.data / "config/pipelines"
    into.mkdir(parents=True, exist_ok=True)
    keys = 'input = "user"\noutput = "text"\ngate = { type = "require_approval" }\nprompt = "Do your part."\n'
    stages = [
        f'[[stage]]\nid = "stage-{n}"\nname = "{NAMES.get(n, f"Stage {n}")}"\n{keys}'
        for n in range(1, STAGES + 1)
    ]
    (into / "long.toml").write_text("\n".join(['title = "A long one"\n', *stages]), encoding="utf-8")
    return "long"


def many_tasks(user: User, titles: Iterable[str], *, pipeline: str = "") -> None:
    """Tasks with these titles, in this order, through one connection; of one stage, unless it is said."""
    if not pipeline:
        short_pipeline.short(user)
    with mock.patch.dict(os.environ, user.environment, clear=True):
        wire, _welcome = connect.greet(connect.hello("terminal"), start=True)
    project = str(user.project.resolve())
    try:
        for title in titles:
            wire.ask(
                NewTask(
                    project=project,
                    key=f"{pipeline} {title}",
                    title=title,
                    pipeline=pipeline or short_pipeline.NAME,
                    agent="rehearsal-fast",
                )
            )
    finally:
        wire.close()
