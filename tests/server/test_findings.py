"""Points of a checklist at the lines they speak of, with what can be done about them there (ED-5)."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rig.inside import Inside, view, waits
from rig.lsp_buffers import MINIMAL, PLAIN, Buffers
from rig.lsp_editor import OURS
from rig.server_stories import FAST, at_checklist
from rig.server_stories import waits as waited
from rig.user import User

from promptside_protocol.commands import EditDraft, GoBack
from promptside_protocol.views import GateView, ItemView, Offer, TaskView

DOCUMENT = ".promptside/tasks/1-add-a-login/01-work.md"
LINES = "import os\nprint('🦊 wide 漢字')\nlast = 1\n"


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def item(ref: str, path: str, line: int | None = None, **more: Any) -> ItemView:
    severity: Any = {"C": "critical", "W": "warning", "I": "info"}[ref[0]]
    return ItemView(id=ref, text=f"Point {ref}", severity=severity, path=path, line=line, **more)


def review(folder: Path, *items: ItemView, number: int = 1, **more: Any) -> TaskView:
    gate = GateView(type="require_all_checked", shown="", items=items)
    return view(folder, number, waiting_for=waits("gate", DOCUMENT, gate=gate), **more)


def found(editor: Inside) -> dict[str, list[tuple[int, int, int, str]]]:
    """Line, width, severity and words by file."""
    return {
        Path(uri).name: [
            (d["range"]["start"]["line"], d["range"]["end"]["character"], d["severity"], d["message"])
            for d in said
            if d["code"] == "finding"
        ]
        for uri, said in editor.said.items()
        if any(d["code"] == "finding" for d in said)
    }


async def told(editor: Inside) -> dict[str, list[tuple[int, int, int, str]]]:
    """The findings when everything that the daemon said has been told: an answer comes after it."""
    await editor.ask("textDocument/codeAction", at(editor.project / "nothing.md", 0))
    return found(editor)


def at(file: Path, line: int) -> Any:
    place = {"line": line, "character": 0}
    return {
        "textDocument": {"uri": file.as_uri()},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }


PLACES: dict[str, tuple[ItemView, dict[str, list[tuple[int, int, int, str]]]]] = {
    "a critical point at its line": (item("C1", "a.py", 1), {"a.py": [(0, 9, 1, "C1 Point C1")]}),
    "a warning, the width counted in UTF-16": (item("W1", "a.py", 2), {"a.py": [(1, 19, 2, "W1 Point W1")]}),
    "an information without a line": (item("I1", "a.py"), {"a.py": [(0, 9, 3, "I1 Point I1")]}),
    "a line past the end": (item("C1", "a.py", 900), {"a.py": [(3, 0, 1, "C1 Point C1")]}),
    "a line before the beginning": (item("C1", "a.py", -4), {"a.py": [(0, 9, 1, "C1 Point C1")]}),
    "in an empty file": (item("C1", "empty.py", 7), {"empty.py": [(0, 0, 1, "C1 Point C1")]}),
    "in a file that is no text": (item("C1", "raw.bin", 1), {"raw.bin": [(0, 3, 1, "C1 Point C1")]}),
    "a file that is not there": (item("C1", "gone.py", 4), {}),
    "a folder": (item("C1", "sub", 4), {}),
    "a file outside": (item("C1", "../outside.py", 1), {}),
    "a file outside, by its whole path": (item("C1", "/etc/hostname", 1), {}),
    "a file outside, by a link": (item("C1", "link.py", 1), {}),
    "a file inside, by way of outside": (
        item("C1", "sub/../a.py", 1),
        {"a.py": [(0, 9, 1, "C1 Point C1")]},
    ),
    "a name that is none": (item("C1", "a\0b", 1), {}),
    "a blank and more in the name": (
        item("C1", "sub/with blank%20é.py", 1),
        {"with%20blank%2520%C3%A9.py": [(0, 1, 1, "C1 Point C1")]},
    ),
    "reviewed already": (item("C1", "a.py", 1, ticked=True), {}),
    "no place at all": (item("C1", ""), {}),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with files, and one outside that a link leads to."""
    folder = tmp_path / "a project"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("secret\n")
    (folder / "a.py").write_text(LINES, "utf-8")
    (folder / "empty.py").write_text("")
    (folder / "raw.bin").write_bytes(b"\xff\x00\xfe\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "sub" / "with blank%20é.py").write_text("x\n")
    return folder


@pytest.mark.parametrize("case", PLACES)
def test_ed5_a_point_stands_at_its_line(project: Path, case: str) -> None:
    point, wanted = PLACES[case]

    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            editor.changed(review(project, point))
            assert await told(editor) == wanted

    run(story())


def test_ed5_a_point_goes_when_it_is_decided_wherever_that_was(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            one, two = item("C1", "a.py", 1), item("C2", "a.py", 3)
            editor.changed(review(project, one, two))
            assert len((await told(editor))["a.py"]) == 2
            editor.changed(review(project, msgspec.structs.replace(one, ticked=True), two))
            assert [d[3] for d in (await told(editor))["a.py"]] == ["C2 Point C2"]
            editor.changed(view(project))
            assert await told(editor) == {}
        async with Inside(project, PLAIN) as again:
            again.changed(review(project, one, two))
            assert len((await told(again))["a.py"]) == 2

    run(story())


@pytest.mark.parametrize("capabilities", [PLAIN, MINIMAL], ids=["plain", "minimal"])
def test_ed5_what_can_be_done_is_offered_at_the_line_only(
    project: Path, capabilities: dict[str, Any]
) -> None:
    args = {"stage": "work", "reason": "Fix C2: Point C2"}
    offers = (
        Offer(command="promptside.goBack", title="Have C2 fixed", args=args, place="C2"),
        Offer(command="promptside.goBack", title="Have C1 fixed", place="C1", blocked="Not now."),
    )

    async def story() -> None:
        async with Inside(project, capabilities) as editor:
            points = item("C1", "a.py", 1), item("C2", "a.py", 3, note="mine")
            editor.changed(review(project, *points, offers=offers))
            file = editor.visit(project / "a.py")
            assert {a["title"] for a in await editor.actions(file, 2)} == {
                "Mark C2 reviewed",
                "Have C2 fixed",
                "Open the review",
            }
            assert not await editor.actions(file, 1)
            first = {a["title"]: a for a in await editor.actions(file, 0)}
            if capabilities is PLAIN:
                assert first["Have C1 fixed"]["disabled"]["reason"] == "Not now."
                (diagnostic,) = first["Mark C1 reviewed"]["diagnostics"]
                assert diagnostic["message"] == "C1 Point C1"
            else:
                assert "Have C1 fixed" not in first
            await editor.choose(file, "Mark C2 reviewed", 2)
            await editor.choose(file, "Have C2 fixed", 2)
            (tick,) = editor.ordered(EditDraft)
            assert (tick.document, tick.answers) == (DOCUMENT, {"C2": {"ticked": True, "note": "mine"}})
            (fix,) = editor.ordered(GoBack)
            assert (fix.stage, fix.reason) == ("work", "Fix C2: Point C2")

    run(story())


def test_ed5_in_a_changed_buffer_a_point_stays_inside_it(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            point = item("C1", "a.py", 3)
            file = editor.visit(project / "a.py")
            editor.type(file, "only one line")
            task = editor.changed(review(project, point))
            assert await told(editor) == {"a.py": [(0, 13, 1, "C1 Point C1")]}
            titles = [a["title"] for a in await editor.actions(file, 0)]
            assert "Mark C1 reviewed" in titles
            editor.changed(msgspec.structs.replace(task, title="The same again"))
            assert await told(editor) == {"a.py": [(0, 13, 1, "C1 Point C1")]}

    run(story())


def test_ed5_points_of_two_tasks_in_one_file_are_told_apart(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            editor.changed(review(project, item("C1", "a.py", 3)))
            editor.changed(review(project, item("C1", "a.py", 3), number=2))
            assert sorted(d[3] for d in (await told(editor))["a.py"]) == ["#1 C1 Point C1", "#2 C1 Point C1"]
            file = editor.visit(project / "a.py")
            await editor.choose(file, "Mark C1 reviewed (#2)", 2)
            assert [order.task for order in editor.ordered(EditDraft)] == [2]
            editor.changed(view(project, 2))
            assert [d[3] for d in (await told(editor))["a.py"]] == ["C1 Point C1"]

    run(story())


def test_ed5_a_file_that_the_editor_names_in_another_way_is_the_same(project: Path) -> None:
    async def story() -> None:
        async with Inside(project, PLAIN) as editor:
            file = project / "sub" / "with blank%20é.py"
            editor.changed(review(project, item("C1", "sub/with blank%20é.py", 1)))
            where = at(file, 0)
            where["textDocument"]["uri"] = file.as_uri().replace("sub", "%73ub")
            assert len(await editor.ask("textDocument/codeAction", where)) == 2

    run(story())


def test_findings_of_a_project_that_is_not_open_here_are_not_told(project: Path, tmp_path: Path) -> None:
    async def story() -> None:
        other = tmp_path / "other"
        other.mkdir()
        async with Inside(other, PLAIN) as editor:
            editor.changed(review(project, item("C1", "a.py", 3)))
            assert await told(editor) == {}

    run(story())


def test_a_project_that_is_removed_elsewhere_leaves_nothing_behind(project: Path) -> None:
    """Its diagnostics, its lenses and its actions go; what another project says stays."""

    async def story() -> None:
        capabilities = {
            "workspace": {**PLAIN["workspace"], "codeLens": {"refreshSupport": True}},
            "textDocument": {**PLAIN["textDocument"], "codeLens": {}},
        }
        async with Inside(project, capabilities) as editor:
            editor.changed(review(project, item("C1", "a.py", 3)))
            other = project.parent
            editor.changed(review(other, item("C1", "outside.py", 1), number=2))
            page = editor.visit(editor.file(".promptside/tasks/1-add-a-login/task.md", "# It\n"))
            lenses = {"textDocument": {"uri": page}}
            assert await editor.ask("textDocument/codeLens", lenses)
            asked = len(editor.heard)
            editor.removed(str(project))
            assert set(await told(editor)) == {"outside.py"}
            assert not any(
                said for uri, said in editor.said.items() if "a-login" in uri and project.name in uri
            )
            assert await editor.ask("textDocument/codeLens", lenses) == []
            assert await editor.actions(page) == []
            await editor.until(lambda m: m.get("method") == "workspace/codeLens/refresh", asked)
            editor.changed(review(project, item("C1", "a.py", 3)))
            assert "a.py" in await told(editor)

    run(story())


def test_a_project_that_the_terminal_removes_leaves_the_editor_and_can_come_back(user: User) -> None:
    """With a real daemon: the findings, the list of what waits, and the lenses."""

    def of(editor: Buffers, code: str) -> int:
        return sum(d["code"] == code for said in editor.said.values() for d in said)

    async def story() -> None:
        async with Buffers(user, PLAIN) as editor:
            review = await at_checklist(editor)
            findings = of(editor, "finding")
            assert findings
            assert of(editor, "gate-waits") == 1
            await asyncio.to_thread(user.promptside, "project", "remove", str(user.project))
            await editor.until(lambda _: not any(editor.said.values()))
            page = editor.visit(review)
            assert await editor.actions(page) == []
            ack = await editor.command(
                "newTask", project=str(user.project), title="Another", agent=FAST, key="k2"
            )
            assert ack["task"] == 1, "the project is there again, with a database of its own"
            assert await editor.actions(page) == []
            await editor.command("run", project=str(user.project), task=1)
            await waited(editor, "01-research.md")

    run(story())


def test_a_client_of_ours_is_told_that_a_project_went_and_of_its_tasks_when_it_is_there_again(
    project: Path,
) -> None:
    async def story() -> None:
        async with Inside(project, {**PLAIN, **OURS}) as editor:
            editor.changed(view(project))
            await editor.task(lambda t: t["id"] == 1)
            at = len(editor.heard)
            editor.removed(str(project))
            editor.changed(view(project, title="Anew"))
            await editor.task(lambda t: t["title"] == "Anew", at)
            news = [m for m in editor.heard[at:] if m.get("method") in ("promptside/gone", "promptside/task")]
            assert [m["method"] for m in news] == ["promptside/gone", "promptside/task"]
            assert news[0]["params"] == {"project": str(project)}

    run(story())
