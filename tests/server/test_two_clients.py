"""Two editors, each with a server of its own, on one task: both show the same, and nothing is lost (ED-10)."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, make_test_lsp_client
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

DEADLINE_SECONDS = 60.0
PIPELINE = """
[[stage]]
id = "security-review"
name = "Security Review"
input = "user"
output = "checklist"
gate = { type = "require_all_checked" }
tools = ["Read", "Glob", "Grep"]
permission = "deny"
prompt = "Review it: {{ task_description }}"
"""
"""One stage, of which the shipped rehearsal has a recording with several items."""


class Client:
    """A pytest-lsp client that keeps the newest of each task."""

    def __init__(self, lsp: LanguageClient) -> None:
        self.lsp = lsp
        self.tasks: dict[int, Any] = {}
        self._came = asyncio.Event()

        @lsp.feature("promptside/task")
        def task(params: Any) -> None:
            self.tasks[params.task.id] = params.task
            self._came.set()

        for method in ("activity", "daemon", "output", "form"):
            lsp.feature(f"promptside/{method}")(_ignored())

    async def order(self, name: str, **arguments: Any) -> Any:
        return await self.lsp.workspace_execute_command_async(
            types.ExecuteCommandParams(command=f"promptside.{name}", arguments=[arguments])
        )

    async def until(self, condition: Callable[[Any], object]) -> Any:
        """The task when it fulfils the condition."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while 1 not in self.tasks or not condition(self.tasks[1]):
                self._came.clear()
                await self._came.wait()
        return self.tasks[1]

    async def caught_up(self, other: "Client") -> None:
        """Wait until this one has been told what the other was."""
        await self.until(lambda task: task.seq >= other.tasks[1].seq)


def _ignored() -> Callable[[Any], None]:
    def ignore(params: Any) -> None:
        pass

    return ignore


@asynccontextmanager
async def client(user: User, name: str) -> AsyncIterator[Client]:
    lsp = make_test_lsp_client()
    made = Client(lsp)
    await lsp.start_io(sys.executable, "-m", "promptside_server", env=user.environment, cwd=user.project)
    folder = types.WorkspaceFolder(uri=user.project.as_uri(), name="project")
    await lsp.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(experimental={"promptside": True}),
            client_info=types.ClientInfo(name=name),
            workspace_folders=[folder],
            root_uri=folder.uri,
        )
    )
    try:
        yield made
    finally:
        await lsp.shutdown_session()


@pytest.fixture
def review(user: User) -> User:
    """A person whose pipeline is a review, in the shipped sample."""
    shutil.copytree(
        SHIPPED / "standard" / "project",
        user.project,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    user.commit_all()
    pipelines = user.data / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "review.toml").write_text(PIPELINE, encoding="utf-8")
    return user


NEW = {"title": "Review it", "pipeline": "review", "agent": "rehearsal-fast:standard", "key": "one"}


def gate(task: Any) -> bool:
    return bool(task.waiting_for) and task.waiting_for.kind == "gate"


def test_ed10_both_show_the_same_after_every_step_and_edits_of_both_stand(review: User) -> None:
    async def story() -> None:
        async with client(review, "Neovim") as first, client(review, "Emacs") as second:
            await first.order("newTask", **NEW)
            await second.until(lambda t: t.state == "ready")
            await second.order("run", task=1)
            for one in (first, second):
                await one.until(gate)
            await same(first, second)
            task = first.tasks[1]
            ids = [item.id for item in task.waiting_for.gate.items]
            assert len(ids) >= 2
            document = task.waiting_for.document
            # Both based on the same version: the second merges with what the first did.
            version = task.waiting_for.gate.version
            await asyncio.gather(
                *(
                    one.order(
                        "editDraft",
                        task=1,
                        document=document,
                        version=version,
                        answers={item: {"ticked": True}},
                    )
                    for one, item in ((first, ids[0]), (second, ids[1]))
                )
            )
            for one in (first, second):
                await one.until(lambda t: ticked(t) == ids[:2])
            await same(first, second)

            seen = first.tasks[1].waiting_for.gate.shown
            rest = {item: {"ticked": True} for item in ids[2:]}
            await second.order("editDraft", task=1, document=document, answers=rest)
            for one in (first, second):
                await one.until(lambda t: ticked(t) == ids)
            with pytest.raises(JsonRpcException, match="is not what the daemon has") as stale:
                await first.order("approve", task=1, shown=seen)
            assert stale.value.code == -32803

            assert offers(first.tasks[1])["promptside.approve"] is None
            await second.order("approve", task=1, shown=second.tasks[1].waiting_for.gate.shown)
            for one in (first, second):
                await one.until(lambda t: t.state == "completed")
                assert "promptside.approve" not in offers(one.tasks[1])
            await same(first, second)
            assert first.tasks[1].stages[0].approval.client == "emacs"
            with pytest.raises(JsonRpcException, match=r"approved already|Not possible now"):
                await first.order("approve", task=1, shown=seen)

    asyncio.run(story())


def test_ed10_a_stale_buffer_is_refused_with_the_difference(review: User) -> None:
    async def story() -> None:
        async with client(review, "Neovim") as first, client(review, "Emacs") as second:
            await first.order("newTask", **NEW)
            await first.order("run", task=1)
            task = await first.until(gate)
            file = Path(task.project) / task.waiting_for.document
            # An editor that takes no edits shows what stood there when it was opened.
            item = types.TextDocumentItem(
                uri=file.as_uri(), language_id="markdown", version=1, text=file.read_text(encoding="utf-8")
            )
            first.lsp.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
            lenses = types.CodeLensParams(types.TextDocumentIdentifier(uri=file.as_uri()))
            assert await first.lsp.text_document_code_lens_async(lenses)  # the form was read by now
            ids = [found.id for found in task.waiting_for.gate.items]
            ticks = {item: {"ticked": True} for item in ids}
            await second.order("editDraft", task=1, document=task.waiting_for.document, answers=ticks)
            await first.until(lambda t: ticked(t) == ids)
            with pytest.raises(JsonRpcException) as stale:
                await first.order("approve", task=1)
            assert stale.value.code == -32803
            assert f"**{ids[0]}**" in stale.value.data["difference"], stale.value.data
            assert not first.tasks[1].stages[0].approval

    asyncio.run(story())


async def same(first: Client, second: Client) -> None:
    """Both were told the same."""
    await first.caught_up(second)
    await second.caught_up(first)
    assert first.tasks[1] == second.tasks[1]


def ticked(task: Any) -> list[str]:
    waits = task.waiting_for
    return [item.id for item in waits.gate.items if item.ticked] if waits and waits.gate else []


def offers(task: Any) -> dict[str, str | None]:
    return {offer.command: offer.blocked for offer in task.offers}
