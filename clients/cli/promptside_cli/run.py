"""`run`: go on until something waits, fails or is done; at a terminal what waits is asked in place."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from promptside_cli import asking, place, wire
from promptside_cli import open as documents
from promptside_cli.arguments import Arguments
from promptside_cli.drawing import Drawing
from promptside_cli.exits import DETACHED, DONE, FAILED, WAITS, UsageError, exit_for
from promptside_cli.following import Following
from promptside_cli.keyboard import Keyboard
from promptside_cli.orders import after
from promptside_cli.stream import wrap
from promptside_cli.terminal import WIDEST, Terminal
from promptside_protocol.commands import OnAsk, Run, Stop
from promptside_protocol.errors import PromptsideError
from promptside_protocol.pages.plain import harmless, one_line
from promptside_protocol.queries import GetForm, GetTask
from promptside_protocol.views import StageView, TaskView, WaitingFor

if TYPE_CHECKING:
    from promptside_protocol.client import Connection
    from promptside_protocol.notices import Notice

TWICE_S = 2.0
"""A second Ctrl-C within this time asks to stop."""


def run(arguments: Arguments) -> int:
    """`run`"""
    view = place.task(arguments)
    terminal = Terminal.of(arguments)
    if not arguments.given("--detach"):
        return follow(arguments, terminal, view)
    wire.ask(order(arguments, view))
    view = wire.ask(GetTask(project=view.project, task=view.id))
    if terminal.json:
        Drawing(terminal).end(view, DONE, [])
    else:
        after(arguments, view)
    return DONE


def follow(arguments: Arguments, terminal: Terminal, view: TaskView) -> int:
    """Follow a task to where it rests, with what the person is asked in between."""
    try:
        return asyncio.run(_follow(arguments, terminal, view))
    except PromptsideError as error:
        if not terminal.json:
            raise
        # The last line of a flow is its end, whatever ended it; it carries the error as any document does.
        refusal, code = error.refusal, exit_for(error)
        fault = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
        terminal.document({"event": "end", "exit": code, "seq": view.seq, "task": view, "error": fault})
        print(harmless(f"promptside: {refusal.message}"), file=terminal.err)
        return code


def order(arguments: Arguments, view: TaskView) -> Run:
    """The order that the words of `run` give."""
    on_ask: OnAsk = "deny" if arguments.one("--on-ask") == "deny" else "wait"
    return Run(
        project=view.project,
        task=view.id,
        input=arguments.one("--input"),
        stage_only=arguments.given("--stage"),
        on_ask=on_ask,
        anyway=arguments.given("--anyway"),
    )


def to_be_ordered(view: TaskView, *, has_input: bool, asks: bool) -> bool:
    """Whether following begins with an order: not where the task is under way or waits for more."""
    if has_input:
        return True
    waiting = view.waiting_for
    if waiting is not None:
        # An input stage is started by `run`; a person who can be asked is asked first.
        return waiting.kind == "person" or (waiting.kind == "input" and not asks)
    # Taken and nothing waits: it runs, or stands in line for a slot or a retry.
    return view.state not in ("taken", "completed")


def verdict(view: TaskView, only: str = "") -> int | None:
    """The exit code where a task rests, None while it goes on; after the stage `only` it is enough."""
    match view.state:
        case "completed":
            return DONE
        case "failed" | "archived" | "expired":
            return FAILED
        case "paused":
            return WAITS
        case _:
            pass
    stages = {stage.id: stage for stage in view.stages}
    if only and only != view.current and only in stages and stages[only].status in ("approved", "skipped"):
        return DONE
    current = stages.get(view.current or "")
    if current is not None and current.status == "failed":
        return FAILED
    return WAITS if view.waiting_for is not None else None


def denied(before: TaskView, view: TaskView) -> list[dict[str, Any]]:
    """What was denied without asking a person since `before`, by stage and attempt."""
    known = {(s.id, a.n): len(a.denials) for s in before.stages for a in s.attempts}
    return [
        {"stage": s.id, "attempt": a.n, "tool": d.tool, "what": d.what, "reason": d.reason}
        for s in view.stages
        for a in s.attempts
        for d in a.denials[known.get((s.id, a.n), 0) :]
    ]


async def _follow(arguments: Arguments, terminal: Terminal, view: TaskView) -> int:
    async with wire.session() as daemon:
        following = Following(daemon, Drawing(terminal), view)
        return await _Course(arguments, terminal, following).run()


class _Interrupted(Exception):  # Ctrl-C is no fault
    """The person pressed Ctrl-C."""


class _Course:
    """One run from its first line to its last."""

    def __init__(self, arguments: Arguments, terminal: Terminal, following: Following) -> None:
        self._terminal = terminal
        self._following = following
        self._before = following.view
        self._order = order(arguments, following.view) if arguments.verb.name == "run" else None
        self._has_input = arguments.given("--input") and self._order is not None
        self._only = (
            following.view.current or "" if self._order is not None and self._order.stage_only else ""
        )
        self._interrupted = asyncio.Event()
        self._notices: AsyncIterator[Notice | Connection] = wire.notices(following.daemon)
        self._next: asyncio.Task[Notice | Connection] | None = None
        self._keyboard = Keyboard(terminal) if terminal.asks else None
        self._passed_over: set[str] = set()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted.set)
        try:
            return await self._run()
        except _Interrupted:
            return await self._detach()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            if self._next is not None:
                self._next.cancel()

    async def _run(self) -> int:
        following = self._following
        await following.begin()
        asks = self._keyboard is not None
        if self._order is not None and to_be_ordered(following.view, has_input=self._has_input, asks=asks):
            await following.daemon.call(self._order)
            await following.refresh()
            if not self._only and self._order.stage_only:
                self._only = following.view.current or ""
        while True:
            code = verdict(following.view, self._only)
            if code is None:
                await following.take(await self._notice())
            elif code != WAITS or self._keyboard is None or not await self._asked(self._keyboard):
                return self._end(code)

    def _end(self, code: int) -> int:
        following = self._following
        following.drawing.close()
        if code in (WAITS, FAILED):
            following.drawing.waits(following.view)
        following.drawing.end(following.view, code, denied(self._before, following.view))
        return code

    # --- waiting -----------------------------------------------------------------------------------------

    async def _notice(self) -> Notice | Connection:
        if self._next is None:
            self._next = asyncio.ensure_future(anext(self._notices))
        await self._first(self._next)
        done, self._next = self._next, None
        return done.result()

    async def _first(self, *waited: asyncio.Future[Any]) -> None:
        """Until one of these is done; raises when the person presses Ctrl-C."""
        pressed = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait((*waited, pressed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pressed.cancel()
        if self._interrupted.is_set():
            raise _Interrupted

    # --- asking ------------------------------------------------------------------------------------------

    async def _asked(self, keyboard: Keyboard) -> bool:
        """Ask for what waits; False when the person left, or nothing can be asked."""
        following = self._following
        view = following.view
        waiting = view.waiting_for
        asked = _asked_for(waiting, self._passed_over) if waiting is not None else ""
        if waiting is None or not asked:
            return False
        following.drawing.close()
        following.drawing.asking = True
        keyboard.forget()
        talk = asyncio.ensure_future(self._talk(keyboard, view, waiting))
        try:
            while not talk.done():
                if self._next is None:
                    self._next = asyncio.ensure_future(anext(self._notices))
                await self._first(talk, self._next)
                if talk.done():
                    break
                done, self._next = self._next, None
                await following.take(done.result())
                if not _still(following.view, asked):
                    following.drawing.says("This was decided elsewhere.")
                    return True
                if not following.drawing.asking:
                    return True  # something was printed behind the question: it is put again
            following.drawing.asking = False
            return await self._give(talk.result(), asked)
        finally:
            talk.cancel()
            with contextlib.suppress(asyncio.CancelledError, PromptsideError):
                await talk

    def _talk(self, keyboard: Keyboard, view: TaskView, waiting: WaitingFor) -> Awaitable[asking.Reply]:
        stage = next((one for one in view.stages if one.id == waiting.stage), None)
        if waiting.kind == "input":
            run_order = self._order or Run(project=view.project, task=view.id)
            return asking.for_input(keyboard.line, view, stage.name if stage else waiting.stage, run_order)
        if waiting.kind == "decision":
            decision = next(d for d in waiting.decisions if d.id not in self._passed_over)
            return asking.decision(keyboard.line, self._terminal.say, view, decision)
        return self._at_gate(keyboard, view, waiting)

    async def _at_gate(self, keyboard: Keyboard, view: TaskView, waiting: WaitingFor) -> asking.Reply:
        gate = waiting.gate
        if gate is None:
            return "leave"
        if gate.type in ("require_approval", "require_fields"):
            # What is approved must have been seen: the document itself, and the hash of exactly this.
            form = await self._following.daemon.call(GetForm(project=view.project, task=view.id))
            self._terminal.say()
            for line in harmless(form.text).rstrip().split("\n"):
                self._terminal.say("\n".join(wrap(line, min(self._terminal.columns, WIDEST))))
            self._terminal.say()
            gate = replace(gate, shown=form.shown)
        return await asking.at_gate(keyboard.line, self._terminal.say, view, gate, waiting.stage)

    async def _give(self, reply: asking.Reply, asked: str) -> bool:
        following = self._following
        if reply == "leave":
            return False
        try:
            if reply == "edit":
                await asyncio.to_thread(
                    documents.edit, self._terminal, following.view.project, following.view.id
                )
            elif reply == "passed over":
                self._passed_over.add(asked)
                waiting = following.view.waiting_for
                if waiting is not None and all(d.id in self._passed_over for d in waiting.decisions):
                    await following.daemon.call(asking.rest(following.view))
            else:
                await following.daemon.call(reply)
        except PromptsideError as error:
            self._terminal.fail(error.refusal.code, error.refusal.message, error.refusal.hint)
        except UsageError as error:
            self._terminal.fail("usage", error.message, error.hint)
        await following.refresh()
        return True

    # --- leaving -----------------------------------------------------------------------------------------

    async def _detach(self) -> int:
        following, task = self._following, self._following.view.id
        # A stage that waits for an answer goes on too: its agent is there.
        running = next(
            (s for s in following.view.stages if s.attempts and s.attempts[-1].status == "running"), None
        )
        following.drawing.close()
        self._terminal.say()
        goes_on = "The stage goes on." if running is not None else "Nothing was changed."
        self._terminal.say(f"{goes_on} promptside watch {task} / promptside stop {task}")
        if self._keyboard is not None and running is not None:
            self._interrupted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TWICE_S):
                    await self._interrupted.wait()
                await self._stop(self._keyboard, running)
        following.drawing.end(following.view, DETACHED, denied(self._before, following.view))
        return DETACHED

    async def _stop(self, keyboard: Keyboard, stage: StageView) -> None:
        self._interrupted.clear()
        keyboard.forget()
        reply = asyncio.ensure_future(keyboard.line(f"\nStop {one_line(stage.name)}? [y/N]: "))
        try:
            await self._first(reply)
        except _Interrupted:
            return
        finally:
            reply.cancel()
        if (reply.result() or "").strip().lower() in ("y", "yes"):
            view = self._following.view
            await self._following.daemon.call(Stop(project=view.project, task=view.id))
            self._terminal.say(f"{one_line(stage.name)} is being stopped.")


def _asked_for(waiting: WaitingFor, passed_over: set[str]) -> str:
    """What a question is about, to tell whether it still is; empty if there is nothing to ask in place."""
    match waiting.kind:
        case "decision":
            return next((d.id for d in waiting.decisions if d.id not in passed_over), "")
        case "gate" | "input":
            return f"{waiting.kind} {waiting.stage} {waiting.since}"
        case "person":
            return ""


def _still(view: TaskView, asked: str) -> bool:
    waiting = view.waiting_for
    if waiting is None:
        return False
    if waiting.kind == "decision":
        return any(decision.id == asked for decision in waiting.decisions)
    return _asked_for(waiting, set()) == asked
