"""docs/protocol.md is what the source says now, and each of its examples is understood by a real daemon."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.speaker import Speaker
from rig.user import User

from promptside_protocol import document, errors, frames
from promptside_protocol.codes import CODES
from promptside_protocol.commands import COMMANDS, Ack
from promptside_protocol.notices import NOTICES
from promptside_protocol.queries import ANSWERS, QUERIES

CHECKOUT = Path(__file__).parents[2]
DOCUMENT = (CHECKOUT / "docs" / "protocol.md").read_text()
EXAMPLE_PROJECT, EXAMPLE_TASK = "/home/ada/lantern", 12

FIRST = ("hello", "addProject", "newTask", "run")
LAST = (
    "collectGarbage",
    "abandon",
    "archive",
    "removeRule",
    "revokeTrust",
    "renameProject",
    "removeProject",
    "shutdown",
)
OVER: dict[str, dict[str, Any]] = {
    "newTask": {"agent": "rehearsal-fast", "draft": False, "pipeline": "standard", "files": []},
    "hello": {"environment": {}},
    "run": {"stage_only": False},
    "form": {"document": ""},
    "output": {"stage": "", "attempt": 0, "cursor": 0},
    "followOutput": {"stage": "", "attempt": 0, "cursor": 0},
    "diff": {"stage": "", "attempt": 0},
    "unfollow": {"flow": 1},
    "shutdown": {"reason": ""},
}
"""What of an example can't be so in this test's project."""
MUST_SUCCEED = {
    *(
        "hello",
        "addProject",
        "newTask",
        "run",
        "projects",
        "findProject",
        "tasks",
        "task",
        "form",
        "decisions",
    ),
    *(
        "output",
        "followOutput",
        "watch",
        "unfollow",
        "diff",
        "rules",
        "pipelines",
        "pipeline",
        "checkPipeline",
    ),
    *(
        "checkText",
        "vocabulary",
        "copyPipeline",
        "trustState",
        "doctor",
        "garbage",
        "status",
        "renameProject",
    ),
    *("abandon", "collectGarbage", "shutdown"),
}
"""The others are refused, with a code that the document names."""


def sections() -> dict[str, list[dict[str, Any]]]:
    """By method, the examples that stand below its heading."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in re.split(r"^##+ ", DOCUMENT, flags=re.MULTILINE):
        if name := re.match(r"((?:notice )?`[^`]+`)\n", part):
            blocks = re.findall(r"^```json\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
            found[name[1].replace("`", "")] = [json.loads(block) for block in blocks]
    return found


SECTIONS = sections()


def test_the_document_is_not_stale() -> None:
    remedy = "python -m promptside_protocol.document > docs/protocol.md"
    assert document.document() == DOCUMENT, f"stale; run: {remedy}"


def test_every_method_is_in_it_with_an_example() -> None:
    for method in (*COMMANDS, *QUERIES):
        assert [example.get("method") for example in SECTIONS[method]] == (
            [method, None] if method in QUERIES else [method]
        )
    for method in NOTICES:
        assert [example["method"] for example in SECTIONS[f"notice {method}"]] == [method]
    for method in document.own_methods():
        asked = method in document.own_methods(table="REQUESTS")
        examples = [example.get("method") for example in SECTIONS[method]]
        assert examples == ([method, None] if asked else [method])
    source = (CHECKOUT / "server" / "promptside_server" / "ours.py").read_text()
    assert set(re.findall(r'^    "(promptside/\w+)":', source, flags=re.MULTILINE)) == set(
        document.own_methods()
    )


def test_every_code_is_printed_with_what_it_means() -> None:
    for code, meaning in CODES.items():
        assert f"| `{code}` | {meaning} |" in DOCUMENT


def test_every_link_leads_to_a_heading() -> None:
    headings = re.findall(r"^##+ (.+)$", DOCUMENT, flags=re.MULTILINE)
    seen: dict[str, int] = {}
    anchors = set()
    for heading in headings:
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if anchor in seen else anchor)
        seen[anchor] = seen.get(anchor, 0) + 1
    links = set(re.findall(r"\]\(#([^)]+)\)", DOCUMENT))
    assert links <= anchors, links - anchors


def test_every_number_of_an_error_is_named() -> None:
    assert set(document.NUMBERS) >= set(errors.BY_NUMBER)
    for number in document.NUMBERS:
        assert f"| {number} |" in DOCUMENT


def test_the_codes_of_the_terminal_are_named() -> None:
    source = (CHECKOUT / "clients" / "cli" / "promptside_cli" / "exits.py").read_text()
    for number in re.findall(r"^[A-Z]+ = (\d+)$", source, flags=re.MULTILINE):
        assert f"| {number} |" in DOCUMENT[DOCUMENT.index("## The terminal") :]


# --- the examples, sent to a daemon -------------------------------------------------------------------------


class Wire:
    """A client of a few lines, made from the document alone."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(60)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._last = 0
        self.notices: list[dict[str, Any]] = []

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request; its answer, or its error. Notices that come before it are kept."""
        self._last += 1
        self._socket.sendall(json.dumps({**request, "id": self._last}).encode() + b"\n")
        while (message := self.next()).get("id") != self._last:
            self.notices.append(message)
        return message

    def next(self) -> dict[str, Any]:
        line = self._lines.readline()
        assert line, "the daemon closed the connection"
        message: dict[str, Any] = json.loads(line)
        return message

    def until(self, method: str) -> dict[str, Any]:
        """The first notice of a kind, from those that came and will come."""
        for notice in self.notices:
            if notice.get("method") == method:
                return notice
        while (message := self.next()).get("method") != method:
            self.notices.append(message)
        return message

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def wire(user: User) -> Iterator[Wire]:
    user.commit_all()
    user.promptside("project", "list")
    wire = Wire(user.data / "run" / "daemon.sock")
    yield wire
    wire.close()


def here(value: Any, user: User, task: int) -> Any:
    """An example's values in this test's project: its path and its task."""
    match value:
        case str():
            return value.replace(EXAMPLE_PROJECT, str(user.project))
        case dict():
            return {
                here(key, user, task): task
                if key == "task" and inner == EXAMPLE_TASK
                else here(inner, user, task)
                for key, inner in value.items()
            }
        case list():
            return [here(inner, user, task) for inner in value]
        case _:
            return value


def test_every_example_is_understood_and_answered_as_it_says(wire: Wire, user: User) -> None:
    (user.project / "src").mkdir()
    (user.project / ".promptside" / "pipelines").mkdir(parents=True)
    (user.project / ".promptside" / "pipelines" / "mine.toml").write_text(
        '[[stage]]\nname = "A"\nprompt = "Go."\n'
    )
    methods = [m for m in (*QUERIES, *COMMANDS) if m not in {*FIRST, *LAST}]
    task, succeeded = 0, set()
    for method in (*FIRST, *methods, *LAST):
        example = here(SECTIONS[method][0], user, task)
        if method == "checkPipeline":
            OVER[method] = {"name": str(user.project / ".promptside" / "pipelines" / "mine.toml")}
        example["params"] |= OVER.get(method, {})
        message = wire.ask(example)
        if "error" in message:
            error = msgspec.convert(message["error"], frames.Error)
            assert error.code == errors.REFUSED, f"{method}: {error}"
            assert error.data is not None
            assert f"| `{error.data.code}` |" in DOCUMENT, f"{method}: {error.data}"
            assert method not in MUST_SUCCEED, f"{method}: {error.data}"
            continue
        succeeded.add(method)
        kind = ANSWERS[QUERIES[method]] if method in QUERIES else Ack
        msgspec.convert(message["result"], kind)
        if method in QUERIES:
            assert shape(message["result"]) <= shape(SECTIONS[method][1]["result"]), method
        if method == "newTask":
            task = message["result"]["task"]
        if method == "run":
            user.waits("gate", task)
    assert succeeded >= MUST_SUCCEED


def test_an_approval_of_what_was_not_shown_is_refused_as_the_example_says(wire: Wire, user: User) -> None:
    """The refusal of a stale approval carries the difference (M10)."""
    for method in FIRST:
        example = here(SECTIONS[method][0], user, 1)
        example["params"] |= OVER.get(method, {})
        assert "result" in wire.ask(example), method
    user.waits("gate", 1)
    approve = here(SECTIONS["approve"][0], user, 1)
    approve["params"] |= {"stage": "", "answers": {}, "note": "", "sign_off": False}
    message = wire.ask(approve)
    assert message["error"]["code"] == errors.REFUSED
    assert message["error"]["data"].keys() == {"code", "message", "hint", "difference"}


def test_every_notice_is_told_as_its_example_says(user: User) -> None:
    """One story in which each of them comes: an agent at work, a project removed, the daemon stopped."""
    user.commit_all()
    speaker = Speaker(user)
    user.promptside("project", "list")
    wire = Wire(user.data / "run" / "daemon.sock")
    told: dict[str, dict[str, Any]] = {}

    def ask(method: str, **over: Any) -> dict[str, Any]:
        example = here(SECTIONS[method][0], user, 1)
        example["params"] |= OVER.get(method, {}) | over
        answer = wire.ask(example)
        assert "result" in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    def until(method: str) -> None:
        told[method] = wire.until(method)["params"]

    project = str(user.project)
    ask("hello", environment={"PATH": user.environment["PATH"], "PROMPTSIDE_CLAUDE": speaker.program})
    ask("addProject")
    everything = ask("watch", project="", cursors={}, activity=True, events=False)["flow"]
    facts = ask("watch", project=project, cursors={}, activity=False, events=True)["flow"]
    until("caughtUp")
    ask("newTask", pipeline="spoken", agent="claude")
    ask("run")
    until("taskChanged")
    until("event")
    speaker.say("read a.txt")
    until("activity")
    output = ask("followOutput")["flow"]
    speaker.say("one")
    until("output")
    speaker.stop()
    user.waits("gate", 1)
    ask("removeProject")
    until("projectGone")
    until("flowFailed")
    ask("shutdown")
    until("daemon")
    wire.close()

    assert told.keys() == NOTICES.keys()
    for method, params in told.items():
        msgspec.convert(params, NOTICES[method])
        assert shape(params) <= shape(SECTIONS[f"notice {method}"][0]["params"]), method
    flows = {method: params["flow"] for method, params in told.items() if "flow" in params}
    assert flows == {
        "caughtUp": everything,
        "taskChanged": everything,
        "event": facts,
        "activity": everything,
        "output": output,
        "projectGone": everything,
        "flowFailed": facts,
    }


def test_before_hello_nothing_is_answered(wire: Wire) -> None:
    message = wire.ask(SECTIONS["status"][0])
    assert message["error"]["code"] == errors.NOT_ALLOWED
    assert message["error"]["data"]["code"] == "no-hello"


FREE = {"definition", "answers", "args", "body", "cursors", "gate", "environment"}
"""Fields that hold data of any shape."""


def shape(value: Any, at: str = "") -> set[str]:
    """The path of every field in it; what is in a list counts once."""
    match value:
        case dict():
            found: set[str] = set()
            for key, inner in value.items():
                found.add(f"{at}.{key}")
                found |= set() if key in FREE else shape(inner, f"{at}.{key}")
            return found
        case list():
            return {path for inner in value for path in shape(inner, f"{at}[]")}
        case _:
            return set()
