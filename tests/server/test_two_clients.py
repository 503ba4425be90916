"""Two editors, each with a server of its own, on one task: both show the same, and nothing is lost (ED-10)."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from rig.lsp_client import OURS, LspClient, lsp_client
from rig.user import User

from promptside_daemon.world.rehearsal import SHIPPED

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
FAILED = -32803
"""LSP's number for a request that failed for a reason that a person understands."""
BLIND = types.ClientCapabilities(experimental={"promptside": True})
"""A client that is told each task, and takes no edits: its buffers stay as they were opened."""


@pytest.fixture
def review(user: User) -> User:
    """A person whose pipeline is the shipped review, with warnings that are critical: C1 and C2."""
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
    recorded = "security-review.1.ndjson"
    said = (SHIPPED / "standard" / recorded).read_text("utf-8")
    _rehearsal(user).mkdir()
    (_rehearsal(user) / recorded).write_text(said.replace("warning", "critical"), "utf-8")
    return user


def _rehearsal(user: User) -> Path:
    return user.base / "rehearsal"


async def ordered(client: LspClient, user: User) -> None:
    """Write the task down."""
    agent = f"rehearsal-fast:{_rehearsal(user)}"
    await client.command(
        "newTask", {"title": "Review it", "pipeline": "review", "agent": agent, "key": "one"}
    )


def test_ed10_both_show_the_same_after_every_step_and_edits_of_both_stand(review: User) -> None:
    async def story() -> None:
        async with lsp_client(review, OURS, "Neovim") as first, lsp_client(review, OURS, "Emacs") as second:
            both = Both(first, second)
            await ordered(first, review)
            await both.show(lambda t: t.state == "ready")
            await second.command("run", {"task": 1})
            await both.show(waits)
            file = Path(first.task.project) / first.task.waiting_for.document
            uri = file.as_uri()
            for one in both.clients:
                one.visit(file)
                assert not await approvals(one, uri)  # and by now its server has the form as it was opened

            # Each has typed before it has heard of the other.
            first.replace(uri, "- [ ] **C1**", "- [x] **C1**")
            second.replace(uri, "- [ ] **C2**", "- [x] **C2**")
            await both.show(lambda t: ticked(t) == {"C1", "C2"})
            await both.stand(uri, lambda text: marks(text) == {"C1": "x", "C2": "x"})

            seen = first.task.waiting_for.gate.shown
            rest = {item.id: {"ticked": True} for item in first.task.waiting_for.gate.items}
            document = first.task.waiting_for.document
            await second.command("editDraft", {"task": 1, "document": document, "answers": rest})
            await both.show(lambda t: ticked(t) == set(rest))
            await both.stand(uri, lambda text: "[ ]" not in text)

            # What was seen before is no more what is there.
            before = first.task
            with pytest.raises(JsonRpcException) as stale:
                await first.command("approve", {"task": 1, "shown": seen})
            assert stale.value.code == FAILED
            assert "**I1**" in difference_of(stale.value)
            assert "**C1**" not in difference_of(stale.value)
            assert await both.show(waits) == before

            for one in both.clients:
                assert await approvals(one, uri) == ["Approve"]
                assert offers(one.task)["promptside.approve"] is None
            await second.choose(uri, "Approve")
            done = await both.show(lambda t: t.state == "completed")
            assert done.stages[0].approval.client == "emacs"
            for one in both.clients:
                assert not await approvals(one, uri)
                assert "promptside.approve" not in offers(one.task)
            with pytest.raises(JsonRpcException, match=r"approved already|Not possible now"):
                await first.command("approve", {"task": 1, "shown": seen})
            assert await both.show(lambda t: t.state == "completed") == done

    asyncio.run(story())


def test_ed10_a_stale_buffer_and_a_stale_hash_are_refused_with_the_difference(review: User) -> None:
    async def story() -> None:
        async with lsp_client(review, BLIND, "Neovim") as first, lsp_client(review, OURS, "Emacs") as second:
            both = Both(first, second)
            await ordered(first, review)
            await both.show(lambda t: t.state == "ready")
            await first.command("run", {"task": 1})
            task = await both.show(waits)
            uri = first.visit(Path(task.project) / task.waiting_for.document)
            await first.actions(uri)  # the form was read by now
            seen = task.waiting_for.gate.shown
            ticks = {item.id: {"ticked": True} for item in task.waiting_for.gate.items}
            await second.command(
                "editDraft", {"task": 1, "document": task.waiting_for.document, "answers": ticks}
            )
            before = await both.show(lambda t: ticked(t) == set(ticks))
            for shown in ({}, {"shown": seen}):
                with pytest.raises(JsonRpcException) as stale:
                    await first.command("approve", {"task": 1, **shown})
                assert stale.value.code == FAILED
                for ref in ticks:
                    assert f"**{ref}**" in difference_of(stale.value)
                assert await both.show(waits) == before
                if uri in first.texts:
                    first.leave(uri)  # and now there is nothing but what it says that it saw

    asyncio.run(story())


class Both:
    """Two clients that have to be told the same."""

    def __init__(self, first: LspClient, second: LspClient) -> None:
        self.clients = (first, second)

    async def show(self, condition: Callable[[Any], object]) -> Any:
        """The task when both were told last that it is so; whatever both were told on the way was the same."""
        first, second = self.clients
        for one in self.clients:
            await told(one, condition)
        while first.task.seq != second.task.seq:
            await self._caught_up(max(first.task.seq, second.task.seq))
        assert condition(first.task)
        by_seq = {task.seq: task for task in first.tasks}
        assert all(by_seq.get(task.seq, task) == task for task in second.tasks)
        assert first.task == second.task
        return first.task

    async def stand(self, uri: str, condition: Callable[[str], object]) -> None:
        """Wait until this stands in the buffers of both."""
        for one in self.clients:
            await stood(one, uri, condition)

    async def _caught_up(self, seq: int) -> None:
        for one in self.clients:
            await told(one, lambda task: task.seq >= seq)


async def told(client: LspClient, condition: Callable[[Any], object]) -> None:
    await client.until(lambda: client.task is not None and condition(client.task))


async def stood(client: LspClient, uri: str, condition: Callable[[str], object]) -> None:
    await client.until(lambda: condition(client.texts[uri]))


async def approvals(client: LspClient, uri: str) -> list[str]:
    """The code actions of a document by which it would be approved."""
    return [action.title for action in await client.actions(uri) if action.title.startswith("Approve")]


def waits(task: Any) -> bool:
    return bool(task.waiting_for) and task.waiting_for.kind == "gate"


def ticked(task: Any) -> set[str]:
    gate = task.waiting_for.gate if task.waiting_for else None
    return {item.id for item in gate.items if item.ticked} if gate else set()


def marks(text: str) -> dict[str, str]:
    """What stands in the brackets of the critical points."""
    return {ref: text.partition(f"] **{ref}**")[0][-1:] for ref in ("C1", "C2")}


def difference_of(error: JsonRpcException) -> str:
    assert error.data is not None
    found: str = error.data["difference"]
    return found


def offers(task: Any) -> dict[str, str | None]:
    return {offer.command: offer.blocked for offer in task.offers}
