"""An agent that would decide in a person's place gets nothing by it."""

import json
import sys

from rig.messages_api import MessagesAPI, Reply, Use, say
from rig.short_pipeline import NAME, short
from rig.stages import in_stage
from rig.user import User

CHECKLIST = '{ type = "require_all_checked" }'
ITEMS = {"items": [{"severity": "critical", "title": "The door is open"}]}

OPEN_THE_SOCKET = """
import json, os, pathlib, socket
path = pathlib.Path(os.environ["PROMPTSIDE_HOME"]) / "run" / "daemon.sock"
s = socket.socket(socket.AF_UNIX)
s.connect(str(path))
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"approve","params":{"project":"%s","task":1}}\\n')
print(s.recv(4096).decode())
"""


def bash(command: str) -> Reply:
    """A message that runs a command."""
    return Reply((Use("Bash", {"command": command, "description": "Help myself"}),))


def test_da13_an_agent_that_calls_approve_is_refused(user: User, api: MessagesAPI) -> None:
    api.add(
        short(
            user,
            bash(f"{sys.executable} -m promptside_cli approve 1; echo exit $?"),
            bash(f"env -u PROMPTSIDE_ATTEMPT {sys.executable} -m promptside_cli approve 1; echo exit $?"),
            bash(f"{sys.executable} -m promptside_cli answer 1 P1 --option always; echo exit $?"),
            say("I tried."),
            permission='"allow"',
        )
    )
    user.promptside("task", "new", "Cheat", "--pipeline", NAME)
    user.promptside("run", code=3)
    said = [request.last for request in api.requests[1:]]
    assert len(said) == 3
    assert all("exit " in words and "exit 0" not in words for words in said)
    task = user.task()
    assert task["waiting_for"]["kind"] == "gate"
    assert task["stages"][0]["approval"] is None
    assert user.promptside("rules", "--json").data == []


def test_da13_an_agent_that_opens_the_socket_is_refused(user: User, api: MessagesAPI) -> None:
    script = user.home / "open.py"
    script.write_text(OPEN_THE_SOCKET)
    api.add(short(user, bash(f"{sys.executable} {script}; true"), say("I tried."), permission='"allow"'))
    user.promptside("task", "new", "Cheat", "--pipeline", NAME)
    user.promptside("run", code=3)
    assert '"result"' not in api.requests[-1].last
    assert user.task()["stages"][0]["status"] == "waiting"


def test_an_agent_that_ticks_its_form_on_disk_has_ticked_nothing(user: User, api: MessagesAPI) -> None:
    """The form of the first round is ticked by the agent of the second, before a person approves."""
    review = Reply((Use("StructuredOutput", ITEMS),))
    api.add(in_stage("research", say("x")))
    api.add(short(user, review, review, output='"checklist"', gate=CHECKLIST, permission='"allow"'))
    user.promptside("task", "new", "Cheat", "--pipeline", NAME)
    user.promptside("run", code=3)
    form = user.project / user.task()["stages"][0]["artifact"]
    text = form.read_text("utf-8")
    assert "[ ]" in text
    form.write_text(text.replace("[ ]", "[x]"), "utf-8")
    refused = user.promptside("approve", "--json", code=4)
    assert "promptside open" in json.dumps(refused.data["error"])
    assert user.task()["stages"][0]["approval"] is None
