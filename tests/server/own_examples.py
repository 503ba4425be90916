"""One example of every message of the language server's own; `python tests/server/own_examples.py` writes the files.

Written once, as those of the protocol are: if a test finds that one has changed, editors out there read the old one.
"""

import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from promptside_protocol import forms
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.page import Span
from promptside_protocol.views import Activity, Offer, TaskView
from promptside_server.ours import (
    ActivityNews,
    Answered,
    ChangedFile,
    Changes,
    CloseForm,
    ClosePage,
    DaemonNews,
    Follow,
    Followed,
    FormNews,
    GiveAnswer,
    GoneNews,
    OpenChanges,
    OpenForm,
    OpenPage,
    OutputNews,
    PageLine,
    PageNews,
    PageShown,
    TaskNews,
    Unfollow,
)

GOLDEN = pathlib.Path(__file__).parent / "golden"
PROTOCOL = pathlib.Path(__file__).parents[1] / "protocol" / "golden"
P = "/home/ada/lantern"


def golden(name: str) -> Any:
    return json.loads((PROTOCOL / f"{name}.json").read_text())


task = msgspec.convert(golden("answer.task")["result"], TaskView)
activity = msgspec.convert(golden("notice.activity")["params"]["activity"], Activity)
entries = msgspec.convert(golden("notice.output")["params"]["entries"], tuple[OutputEntry, ...])

document = ".promptside/tasks/12-polish-the-lens/01-review.md"
uri = f"file://{P}/{document}"
approve = Offer(
    command="promptside.approve",
    title="Approve",
    args={"stage": "review"},
    place="",
    primary=True,
    danger=False,
    needs_text=False,
    blocked="C1 is not ticked.",
    hint="promptside approve 12 --check C1",
)
form = forms.FormView(
    project=P,
    task=12,
    document=document,
    uri=uri,
    stage="review",
    attempt=1,
    version=3,
    kind="checklist",
    title="Review",
    sentence='Tick every item you have reviewed. A note goes behind "Note:".',
    waits=True,
    items=(
        forms.FormItem(
            id="C1",
            line=7,
            title="The lens is not cleaned",
            body="Dust dims the light.",
            answer={"ticked": False, "note": "tomorrow"},
            lacks="C1 is not ticked.",
            group="Critical",
            required=True,
            severity="critical",
            path="src/lens.py",
            path_line=41,
            choices=(forms.FormChoice(id="A", title="Soap", description="Mild.", recommended=True),),
        ),
    ),
    notes=(forms.FormNote(line=12, item="C1", text="mind the oil"),),
    problems=(
        forms.FormProblem(line=7, severity="hint", code="gate-lacks", text="C1 is not ticked.", item="C1"),
    ),
    lacks=("C1 is not ticked.",),
    shown="9f2c",
    text="# Review\n",
    offers=(approve,),
    suggestions=(forms.FormSuggestion(title="Tick all infos", answers={"I1": {"ticked": True, "note": ""}}),),
)
page = PageShown(
    name="tasks",
    project="",
    task=0,
    title="tasks",
    lines=(
        PageLine(
            spans=(Span("Waiting for you", "title"), Span(" (1)", "muted")), fold="open", ref="group/waiting"
        ),
        PageLine(
            spans=(Span("!", "waiting"), Span(" #12 Polish the lens")),
            fold="inside",
            ref="task/12",
            offers=(approve,),
            project=P,
            task=12,
            uri=uri,
            line=0,
            page="task",
        ),
    ),
    stale="",
)
AT = "12/review/1/src/lens.py?project=/home/ada/lantern"

TOLD = {
    "pageChanged": PageNews(name="tasks", project="", task=0),
    "form": FormNews(project=P, task=12, document="", form=form),
    "task": TaskNews(project=P, seq=42, task=task),
    "gone": GoneNews(project=P),
    "activity": ActivityNews(activity=activity),
    "daemon": DaemonNews(up=False, sentence="The Promptside daemon stopped."),
    "output": OutputNews(
        flow=1,
        project=P,
        task=12,
        stage="plan",
        attempt=1,
        cursor=812,
        entries=entries,
        ended=True,
        error="The transcript is gone.",
    ),
}
ASKED = {
    "follow": (Follow(project=P, task=12, stage="plan", attempt=1, cursor=812), Followed(flow=1)),
    "unfollow": (Unfollow(flow=1), None),
    "page": (
        OpenPage(name="tasks", project="", task=0, pipeline="", width=100, unicode=True, zone_minutes=60),
        page,
    ),
    "closePage": (ClosePage(name="tasks", project="", task=0), None),
    "openForm": (OpenForm(project=P, task=12, uri=""), FormNews(project=P, task=12, document="", form=form)),
    "closeForm": (CloseForm(project=P, task=12, uri=""), None),
    "answer": (
        GiveAnswer(
            project=P, task=12, uri="", id="C1", value={"ticked": True}, answers={}, version=3, attempt=1
        ),
        Answered(seq=43, task=12),
    ),
    "changes": (
        OpenChanges(project=P, task=12, stage="review", attempt=1),
        Changes(
            project=P,
            task=12,
            stage="review",
            attempt=1,
            running=False,
            files=(
                ChangedFile(
                    path="src/lens.py",
                    kind="modified",
                    added=3,
                    removed=1,
                    before=f"promptside://before/{AT}",
                    after=f"promptside://after/{AT}",
                    uri=f"file://{P}/src/lens.py",
                ),
            ),
        ),
    ),
    "query": ({"type": "rules", "project": P}, golden("answer.rules")["result"]),
}
COMMAND = {"command": "promptside.run", "arguments": [{"input": "mind the oil"}]}


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """File name, and the message as it goes over the pipe."""
    for name, params in TOLD.items():
        yield name, {"jsonrpc": "2.0", "method": f"promptside/{name}", "params": params}
    for name, (wish, answer) in ASKED.items():
        yield name, {"jsonrpc": "2.0", "id": 1, "method": f"promptside/{name}", "params": wish}
        yield f"{name}.answer", {"jsonrpc": "2.0", "id": 1, "result": answer}
    yield (
        "executeCommand",
        {"jsonrpc": "2.0", "id": 1, "method": "workspace/executeCommand", "params": COMMAND},
    )
    yield "executeCommand.answer", {"jsonrpc": "2.0", "id": 1, "result": {"seq": 42, "task": 12, "said": ""}}


def golden_text(message: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(message), indent=2).decode() + "\n"


def main() -> None:
    """Write the files that are missing; with `--all` the others, too."""
    GOLDEN.mkdir(exist_ok=True)
    for name, message in examples():
        path = GOLDEN / f"{name}.json"
        if "--all" in sys.argv or not path.exists():
            path.write_text(golden_text(message))


if __name__ == "__main__":
    main()
