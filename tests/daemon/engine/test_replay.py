"""Random orders and observations: the journal folds to the same task, and what must be so is so at every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import engine_builders as b
from engine_builders import ADA, PLAYS, definition, faults, happenings, orders, reencoded, replayed
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from promptside_daemon.engine import effects as x
from promptside_daemon.engine import events as e
from promptside_daemon.engine import step as steps
from promptside_daemon.engine.decide import decide
from promptside_daemon.engine.offers import offers
from promptside_daemon.engine.task import (
    Archived,
    Queued,
    Running,
    Task,
    Usage,
    find_attempt,
    live_attempt,
)
from promptside_daemon.engine.view import Places, view
from promptside_protocol.errors import Refused

LIKELY = st.sampled_from(("grant", "grant", "start", "turn", "turn", "end", "ask", "leave", "wake"))


class Engine(RuleBasedStateMachine):
    """A loop without a disk: what is ordered is decided and stepped, what happens comes in any order."""

    @initialize(name=st.sampled_from(list(PLAYS)))
    def new(self, name: str) -> None:
        self.play = PLAYS[name]()
        self.delivered: dict[str, list[tuple[int, Any]]] = {}
        self.started = {f.attempt for f in self.play.effects if isinstance(f, x.StartAttempt)}

    @property
    def task(self) -> Task:
        return self.play.task

    # --- orders ----------------------------------------------------------------------------------------

    @rule(data=st.data())
    def order(self, data: st.DataObject) -> None:
        """Any order that is possible now, in any of its forms."""
        possible = list(self.possible())
        if possible:
            self.tell(data.draw(st.sampled_from(possible)))

    @rule(data=st.data())
    def offered(self, data: st.DataObject) -> None:
        """What a person would do: one of the offers."""
        free = [o for o in offers(self.task) if o.blocked is None and not o.command.endswith("abandon")]
        if free:
            tag = data.draw(st.sampled_from(free)).command.removeprefix("promptside.")
            same = [ev for order, ev in self.decided() if order.__struct_config__.tag == tag]
            if same:
                self.tell(data.draw(st.sampled_from(same)))

    def possible(self) -> Iterator[e.AnyEvent]:
        return (event for _, event in self.decided() if not isinstance(event, e.TaskAbandoned))

    def decided(self) -> Iterator[tuple[Any, e.AnyEvent]]:
        self.play.now += 1
        for order in orders(self.task):
            try:
                yield order, decide(self.task, order, b.given(self.task, order, self.play.now))
            except Refused:
                continue

    @rule()
    def abandon(self) -> None:
        """Only late: little follows after it."""
        if len(self.play.journal) > 40 and not isinstance(self.task.life, Archived):
            self.tell(e.TaskAbandoned(at=self.play.now, by=ADA))

    # --- observations ----------------------------------------------------------------------------------

    @rule(steps_=st.integers(1, 5))
    def goes_on(self, steps_: int) -> None:
        """What happens next where nothing goes wrong."""
        for _ in range(steps_):
            attempt, run = live_attempt(self.task), self.task.run
            if attempt is None or attempt.live is None:
                if run is None or not isinstance(run.status, Queued):
                    return
                self.play.granted()
            elif attempt.started is None:
                self.play.started()
            elif attempt.live.closed is None and attempt.live.ending is None:
                self.play.turn()
            else:
                self.play.ended()
            self.saw()

    @rule(what=LIKELY, data=st.data())
    def happens(self, what: str, data: st.DataObject) -> None:
        """What usually happens next, and sometimes at the wrong time."""
        play, attempt, run = self.play, live_attempt(self.task), self.task.run
        if what == "grant" and run is not None:
            if isinstance(run.status, Queued) and attempt is None:
                play.granted()
        elif what == "wake":
            if self.task.wake_at is not None:
                play.woke()
        elif attempt is None or attempt.live is None:
            return
        elif what == "start" and attempt.started is None:
            play.started()
        elif what == "ask":
            play.asks(b.ONE, b.OPTIONAL, request=f"r{len(self.task.decisions)}")
        elif what == "leave":
            play.asks_leave(request=f"p{len(self.task.decisions)}")
        elif what == "turn":
            self.turn(attempt.n, data)
        elif what == "end":
            play.ended(
                failure=data.draw(st.sampled_from((None, *b.failures()))),
                proof=data.draw(st.sampled_from((None, None, b.BREACH))),
                changes=data.draw(st.sampled_from(((), b.CHANGED))),
            )
        self.saw()

    def turn(self, n: int, data: st.DataObject) -> None:
        outcome = data.draw(st.sampled_from(("fits", "fits", "raw", "fails")))
        found = find_attempt(self.task, live_attempt(self.task).id)  # type: ignore[union-attr]
        stage = self.task.pipeline.stages[found[0]]  # type: ignore[index]
        usage = Usage(input_tokens=1, output_tokens=1, session_cost=0.1)
        if outcome == "fails":
            self.play.turn(failure=data.draw(st.sampled_from(b.failures())))
        else:
            of = definition(stage.id if outcome == "fits" else "research", n)
            invalid = "no object" if outcome == "raw" else ""
            shown = b.forms.shown(of, b.forms.render(of))
            self.play.turn(usage=usage, definition=of, shown=shown, text="t", invalid=invalid)

    @rule(data=st.data())
    def anything(self, data: st.DataObject) -> None:
        """Any observation at all, also of attempts that are over or never were."""
        seen = [
            ev
            for ev in happenings(self.task)
            if not isinstance(ev, e.Ordered | e.StepFailed | e.SlotGranted | e.TaskCreated)
        ]
        event = data.draw(st.sampled_from(seen))
        # The line at the end of the world would make everything after it look known.
        if getattr(event, "offset", 0) < 10**9 and not isinstance(event, e.Woke):
            self.tell(event)

    @rule()
    def restart(self) -> None:
        """Another daemon: the task comes from the disk, and the transcript is read from its start."""
        before = self.task
        self.play.task = reencoded(before)
        self.tell(e.DaemonStarted(at=self.play.now))
        assert self.task == before
        attempt = live_attempt(before)
        told = [ev for ev in self.play.journal if isinstance(ev, e.Observed) and ev.offset > 0]
        for event in told:
            if attempt is not None and event.attempt == attempt.id:
                again, effects = steps.step(self.task, event)
                assert again is self.task
                assert effects == ()

    # --- what is always so -----------------------------------------------------------------------------

    def tell(self, event: e.AnyEvent) -> None:
        self.play.tell(event)
        self.saw()

    def saw(self) -> None:
        for effect in self.play.last:
            if isinstance(effect, x.StartAttempt):
                self.started.add(effect.attempt)
            if isinstance(effect, x.Deliver):
                self.deliver(effect.attempt)

    def deliver(self, attempt: str) -> None:
        """The keeper: a number is never used for two messages."""
        found = find_attempt(self.task, attempt)
        live = found[2].live if found is not None else None
        kept = self.delivered.setdefault(attempt, [])
        for message in live.outbox if live is not None else ():
            assert all(message == old for number, old in kept if number == message.number)
            if (message.number, message) not in kept:
                kept.append((message.number, message))
        assert [number for number, _ in kept] == sorted({number for number, _ in kept})

    @invariant()
    def is_valid(self) -> None:
        if hasattr(self, "play"):
            assert faults(self.task) == []

    @invariant()
    def nothing_runs_that_was_not_started(self) -> None:
        if hasattr(self, "play"):
            running = [r.last.id for r in self.task.stages if isinstance(r.status, Running) and r.last]
            assert set(running) <= self.started

    @invariant()
    def who_waits_for_a_slot_has_asked_for_one(self) -> None:
        """A stage that is queued with nothing left to end is wanted by an effect of its own."""
        run = self.task.run if hasattr(self, "play") else None
        if run is not None and isinstance(run.status, Queued) and live_attempt(self.task) is None:
            wants = [f for f in self.play.effects if isinstance(f, x.WantSlot)]
            assert wants
            assert wants[-1].stage == run.id

    @invariant()
    def can_be_shown(self) -> None:
        if hasattr(self, "play"):
            view(self.task, 1, Places("/attempts"))

    @invariant()
    def a_person_can_do_something(self) -> None:
        if hasattr(self, "play") and not isinstance(self.task.life, Archived):
            assert any(o.blocked is None for o in offers(self.task))

    def teardown(self) -> None:
        if hasattr(self, "play"):
            assert replayed(self.play.journal) == self.task


TestEngine = Engine.TestCase
TestEngine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
