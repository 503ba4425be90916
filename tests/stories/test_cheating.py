"""An agent that would decide in a person's place gets nothing by it."""

import json
import sys

from rig.messages_api import MessagesAPI, Reply, Use, say
from rig.short_pipeline import NAME, short
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


def test_an_agent_that_ticks_a_form_on_disk_has_ticked_nothing(user: User, api: MessagesAPI) -> None:
    """The form that waits is ticked by an agent at work in the same tree, before a person approves."""
    review = Reply((Use("StructuredOutput", ITEMS),))
    form = ".promptside/tasks/1-cheat/01-work.md"
    ticks = bash(f"sed -i 's/\\[ \\]/[x]/' {form}")
    api.add(short(user, review, ticks, review, output='"checklist"', gate=CHECKLIST, permission='"allow"'))
    for number in ("1", "2"):
        user.promptside("task", "new", "Cheat", "--pipeline", NAME)
        user.promptside("run", number, code=3)
    assert "[x]" in (user.project / form).read_text("utf-8")
    refused = user.promptside("approve", "1", "--json", code=4)
    assert "promptside open" in json.dumps(refused.data["error"])
    task = user.task(1)
    assert task["stages"][0]["approval"] is None
    assert [item["ticked"] for item in task["waiting_for"]["gate"]["items"]] == [False]
