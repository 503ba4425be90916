"""An agent that says what the test tells it to, line by line, until the test lets it end."""

import os
from pathlib import Path

from rig.fake_claude import fake_claude
from rig.user import User

SCRIPT = """
prompt()
init()
with open({pipe!r}) as said:
    for words in said:
        words = words.rstrip("\\n")
        if words.startswith("read "):
            use("Read", {{"file_path": words.removeprefix("read ")}}, words)
            used("", words)
        else:
            text(words)
result("Done.")
end()
"""

STAGE = """
[[stage]]
id = "work"
name = "Work"
input = "user"
prompt = "Work on it: {{ task_description }}"
tools = ["Read"]
permission = "deny"
"""


class Speaker:
    """A context manager; the agent runs as long as it is open."""

    def __init__(self, user: User, *, edits: bool = False) -> None:
        """With `edits` the files that change while it works are its own changes."""
        self.pipe = user.base / "say"
        os.mkfifo(self.pipe)
        program = fake_claude(user.base, SCRIPT.format(pipe=str(self.pipe)))
        self.program = str(program)
        user.environment["PROMPTSIDE_CLAUDE"] = self.program
        pipelines = user.data / "config" / "pipelines"
        pipelines.mkdir(parents=True, exist_ok=True)
        (pipelines / "spoken.toml").write_text(
            STAGE.replace('["Read"]', '["Read", "Edit"]') if edits else STAGE, encoding="utf-8"
        )
        # Open for reading too: the agent may not be there yet.
        self._end = os.open(self.pipe, os.O_RDWR)

    def say(self, *words: str) -> None:
        """Have the agent say this, each a message of its own; `read x` is the use of a tool."""
        for word in words:
            data = f"{word}\n".encode()
            while data:
                data = data[os.write(self._end, data) :]

    def stop(self) -> None:
        """Let the agent end when it has said everything."""
        os.close(self._end)

    @staticmethod
    def new_task() -> dict[str, str]:
        """What New Task takes."""
        return {"title": "Say something", "pipeline": "spoken", "agent": "claude", "key": Path("say").name}
