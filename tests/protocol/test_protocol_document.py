"""docs/protocol.md is what the source says now, and each of its examples is understood by a real daemon."""

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.user import User

from promptside_protocol import document, errors, frames
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
    assert set(document.own_methods()) <= SECTIONS.keys()
    source = (CHECKOUT / "server" / "promptside_server" / "ours.py").read_text()
    assert set(re.findall(r'^    "(promptside/\w+)":', source, flags=re.MULTILINE)) == set(
        document.own_methods()
    )


def test_every_code_that_the_source_can_refuse_with_is_named() -> None:
    """Found here by another way than the one that makes the document."""
    for package in document.SOURCES:
        for file in (CHECKOUT / package).rglob("*.py"):
            text = file.read_text()
            for code in re.findall(r'\b(?:refused|refusal|Refusal)\(\s*(?:code=)?"([\w-]+)"', text):
                assert f"| `{code}` |" in DOCUMENT, f"{code} of {file}"
    for code, sentence in document.codes().items():
        assert sentence, f"nothing says what `{code}` means"


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


def test_a_flow_tells_as_the_examples_say(wire: Wire, user: User) -> None:
    for method in FIRST:
        example = here(SECTIONS[method][0], user, 1)
        example["params"] |= OVER.get(method, {})
        assert "result" in wire.ask(example), method
    watch = SECTIONS["watch"][0]
    watch["params"] |= {"project": str(user.project), "cursors": {}, "events": False}
    flow = wire.ask(watch)["result"]["flow"]
    changed = wire.until("taskChanged")
    assert changed["params"]["flow"] == flow
    msgspec.convert(changed["params"], NOTICES["taskChanged"])
    assert shape(changed["params"]) <= shape(SECTIONS["notice taskChanged"][0]["params"])
    caught = wire.until("caughtUp")
    assert shape(caught["params"]) == shape(SECTIONS["notice caughtUp"][0]["params"])


def test_before_hello_nothing_is_answered(wire: Wire) -> None:
    message = wire.ask(SECTIONS["status"][0])
    assert message["error"]["code"] == errors.NOT_ALLOWED
    assert message["error"]["data"]["code"] == "no_hello"


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
