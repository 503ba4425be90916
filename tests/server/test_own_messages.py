"""The language server's own messages: their golden files, and their examples replayed against a real server."""

import asyncio
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from rig.lsp_editor import LspEditor
from rig.speaker import Speaker
from rig.user import User

from promptside_protocol.commands import COMMANDS
from promptside_server.ours import EDITOR_COMMANDS, NOTIFICATIONS, REQUESTS

HERE = Path(__file__).parent
DOCUMENT = (HERE.parents[1] / "docs" / "protocol.md").read_text()
FREE = {"definition", "args", "gate"}
"""Fields that hold data of any shape."""


def _examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("own_examples", HERE / "own_examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLES = _examples()
CASES: dict[str, dict[str, Any]] = dict(EXAMPLES.examples())


def documented(method: str) -> list[dict[str, Any]]:
    """The examples that stand below a heading of docs/protocol.md."""
    part = re.split(r"^##+ ", DOCUMENT.partition(f"\n### `{method}`\n")[2], flags=re.MULTILINE)[0]
    return [
        json.loads(one) for one in re.findall(r"^```json\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
    ]


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


@pytest.mark.parametrize("name", CASES)
def test_a_message_is_its_golden_file(name: str) -> None:
    assert EXAMPLES.golden_text(CASES[name]) == (HERE / "golden" / f"{name}.json").read_text()


def test_every_message_has_its_golden_file_and_is_read_back_from_it() -> None:
    requests = {method.removeprefix("promptside/") for method in REQUESTS}
    told = {method.removeprefix("promptside/") for method in NOTIFICATIONS}
    both = {*requests, "executeCommand"}
    assert {*told, *both, *(f"{name}.answer" for name in both)} == CASES.keys()
    assert {path.stem for path in (HERE / "golden").iterdir()} == CASES.keys()
    for method, kind in NOTIFICATIONS.items():
        name = method.removeprefix("promptside/")
        message = json.loads((HERE / "golden" / f"{name}.json").read_text())
        assert msgspec.convert(message["params"], kind) == EXAMPLES.TOLD[name]


def test_every_message_is_told_and_answered_as_its_example_says(user: User) -> None:
    """One story in which each of them comes: an agent at work, an output followed, a project removed."""
    user.commit_all()
    speaker = Speaker(user)

    async def ask(editor: LspEditor, method: str, params: dict[str, Any]) -> Any:
        example, answer = documented(method)
        assert shape(params) <= shape(example["params"]), "only what the example has"
        result = await editor.ask(example["method"], params)
        assert shape(result) == shape(answer["result"])
        return result

    async def story() -> None:
        async with LspEditor(user) as editor:
            await editor.command("newTask", **speaker.new_task())
            (example, _) = documented("workspace/executeCommand")
            await ask(editor, "workspace/executeCommand", example["params"])
            running = await editor.task(
                lambda t: any(a["status"] == "running" for a in t["stages"][0]["attempts"])
            )
            await ask(editor, "promptside/page", {"name": "tasks", "unicode": False})
            assert (await editor.ask("promptside/openForm", {"task": 1}))["form"] is None, "none waits yet"
            assert await editor.ask("promptside/query", {"type": "rules"}) == []
            speaker.say("read a.txt")
            await editor.note("promptside/activity", lambda p: "a.txt" in p["activity"]["line"])
            (user.project / "new.txt").write_text("one\n")
            await ask(editor, "promptside/changes", {})
            wish = {"project": running["project"], "task": 1, "stage": "work", "attempt": 1, "cursor": 0}
            flow = (await ask(editor, "promptside/follow", wish))["flow"]
            speaker.say("one")
            await editor.note("promptside/output", lambda p: p["flow"] == flow)
            await ask(editor, "promptside/unfollow", {"flow": flow})
            speaker.stop()
            waiting = await editor.task(lambda t: t["waiting_for"])
            news = await editor.note("promptside/form", lambda p: p["form"])
            assert news["form"]["uri"].endswith(waiting["waiting_for"]["document"])
            await editor.note("promptside/pageChanged")
            await ask(editor, "promptside/closePage", {"name": "tasks"})
            await ask(editor, "promptside/closeForm", {"task": 1})
            await editor.command("removeProject", project=running["project"])
            await editor.note("promptside/gone")
            for method, kind in NOTIFICATIONS.items():
                notes = editor.notes(method)
                assert notes, f"{method} was not told"
                (example,) = documented(method)
                for params in notes:
                    msgspec.convert(params, kind)
                    assert shape(params) <= shape(example["params"]), method

    asyncio.run(story())


def test_the_commands_that_a_server_announces_are_those_of_the_document(user: User) -> None:
    async def story() -> None:
        async with LspEditor(user) as editor:
            announced = set(editor.server_can["executeCommandProvider"]["commands"])
            assert announced == {f"promptside.{name}" for name in (*COMMANDS, *EDITOR_COMMANDS)}

    asyncio.run(story())
    for name in EDITOR_COMMANDS:
        assert f"| `promptside.{name}` |" in DOCUMENT
