"""Turns what a transcript says into the engine's events, and the engine's messages into lines for the agent.

The authority over permissions is here: rules, grants and the stage itself are asked before a person is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from promptside_daemon.engine import events
from promptside_daemon.engine.events import AnyEvent, Condemned
from promptside_daemon.engine.pipeline import Stage
from promptside_daemon.engine.task import (
    AllowTool,
    DenyTool,
    Failure,
    GiveAnswers,
    Interrupt,
    Outgoing,
    SayText,
    Task,
    Usage,
    find_attempt,
)
from promptside_daemon.engine.task import Attempt as AttemptState
from promptside_daemon.world.activity import brief
from promptside_daemon.world.answer import Answer
from promptside_daemon.world.attempt import Attempt
from promptside_daemon.world.claude import messages, readings, rules, unsaved_hook
from promptside_daemon.world.claude.outcome import Ending, Outcome, hopeless
from promptside_daemon.world.claude.reader import Reader
from promptside_daemon.world.claude.readings import Reading
from promptside_daemon.world.claude.toollines import shown_path
from promptside_daemon.world.evidence import Evidence
from promptside_daemon.world.launch import Driving
from promptside_daemon.world.redact import Redactor
from promptside_protocol.views import OptionView

log = logging.getLogger(__name__)

Acted = Callable[[Reading, Redactor], None]
"""Told of each reading, with what its words must be redacted by."""
_UNSAVED = "Unsaved"
"""Tool of the rules that allow changing a file which an editor holds unsaved; the CLI has none of that name."""
WHAT_LIMIT = 64 * 1024
"""Characters of a command that a person is asked about; it is kept with the task."""
SETTLED_LIMIT = 500
"""Characters of one that nobody was asked about."""


class Listener:
    """One attempt's transcript, heard line by line; it can be heard from its start again."""

    def __init__(
        self,
        *,
        attempt: AttemptState,
        stage: Stage,
        root: Path,
        current: Callable[[], Task | None],
        reader: Reader,
        evidence: Evidence,
        driving: Driving,
        given_for_good: Callable[[], tuple[str, ...]],
        stage_rules: tuple[str, ...],
        answer: Answer,
        redactor: Redactor,
        hand: Attempt,
        tell: Callable[[AnyEvent], None],
        acted: Acted,
        clock: Callable[[], float],
    ) -> None:
        self._id = attempt.id
        self._stage = stage
        self._root = str(root)
        self._current = current
        self._reader = reader
        self._evidence = evidence
        self._driving = driving
        self._given_for_good = given_for_good
        self._stage_rules = stage_rules
        self._answer = answer
        self._redactor = redactor
        self._hand = hand
        self._tell = tell
        self._acted = acted
        self._clock = clock
        self._asks: dict[str, readings.Asked | readings.PermissionAsked | readings.PlanOffered] = {}
        self._outcome: Outcome | None = None
        self._used: Usage | None = None
        self.note = " ".join(driving.remarks)
        self._sent = 0

    @property
    def done(self) -> bool:
        """Whether the agent gave a good result, after which nothing was begun."""
        last = self._reader.last
        return last is not None and last.outcome.ok and not self._reader.in_turn

    @property
    def busy(self) -> bool:
        """Whether silence says nothing: a tool or a question is open, or the agent owes us nothing (GA-8)."""
        if self._reader.busy:
            return True
        task = self._current()
        found = find_attempt(task, self._id) if task is not None else None
        if task is None or found is None or found[2].live is None:
            return True
        return bool(task.open_decisions) or found[2].live.finished

    def hear(self, line: bytes, offset: int) -> None:
        """One line of the transcript; `offset` is the byte behind it."""
        for reading in self._reader.read(line, offset):
            try:
                self._hear(reading)
            except Exception:
                # One line that nobody foresaw must not cost the run.
                log.exception("attempt %s: a reading was not understood at byte %d", self._id, offset)
                self._unheard(reading)
            self._evidence.add(reading)
            self._acted(reading, self._redactor)

    def torn(self, offset: int) -> None:
        """Half a line at the very end: the process died in it."""
        log.info("attempt %s ends in half a line at byte %d", self._id, offset)

    def usage(self) -> Usage | None:
        """What was used, as far as a result told it."""
        return self._used

    def judge(self, code: int | None, signal: int | None, words: str, *, stderr: str) -> Failure | None:
        """Why the whole run failed; None if it did not."""
        outcome = self._reader.judge(exit_code=code, signal=signal, stderr=stderr)
        if outcome.ok or outcome.kind is Ending.NO_STRUCTURED_OUTPUT:
            return None
        failure = self._failure(outcome)
        if outcome.kind is Ending.DIED and words:
            return Failure(
                kind="died",
                sentence=f"The agent ended without a result: {self._redactor.text(words)}.",
                retryable=True,
            )
        return failure

    # --- from the agent -----------------------------------------------------------------------------------

    def _hear(self, reading: Reading) -> None:
        match reading:
            case readings.SessionStarted():
                self._say(
                    events.SessionOpened(
                        at=self._clock(),
                        attempt=self._id,
                        offset=reading.at,
                        session=reading.session,
                        model=reading.model,
                    )
                )
            case readings.Asked():
                self._asks[reading.request] = reading
                self._say(self._questions(reading))
            case readings.PermissionAsked():
                self._asks[reading.request] = reading
                self._say(self._permission(reading))
            case readings.PlanOffered():
                self._asks[reading.request] = reading
                self._say(
                    self._settled(
                        reading.at, reading.request, "ExitPlanMode", "", "Plans are approved at gates."
                    )
                )
            case readings.AskWithdrawn():
                self._say(
                    events.AskWithdrawn(
                        at=self._clock(), attempt=self._id, offset=reading.at, request=reading.request
                    )
                )
            case readings.ToolFinished():
                what = self._evidence.breach(reading, self._driving.offered)
                if what:
                    kind = "read-only" if self._stage.read_only else "limited to its tools"
                    sentence = (
                        f"{self._stage.name} is {kind}, but the agent used: {self._redactor.text(what)}."
                    )
                    hint = "Undo the changes, then redo the stage."
                    self._condemn(Failure(kind="breach", sentence=sentence, hint=hint))
            case readings.Retrying(status=status):
                ending = hopeless(status)
                if ending is not None:
                    outcome = Outcome(kind=ending, detail="")
                    self._condemn(self._failure(outcome))
            case readings.TurnEnded():
                self._turn_ended(reading)
            case readings.OutputLost():
                self._condemn(
                    Failure(
                        kind="output_lost",
                        sentence="A part of the agent's output was lost: its transcript has a torn line.",
                        hint="Is the disk full? Make room, then retry.",
                    )
                )
            case (
                readings.ToolUsed()
                | readings.RateLimited()
                | readings.Denied()
                | readings.ModelFellBack()
                | readings.ContextFill()
                | readings.Compacted()
            ):
                pass  # shown in the output; nothing follows from it
            case _:
                assert_never(reading)

    def _unheard(self, reading: Reading) -> None:
        """Let the agent go on where it waits for us."""
        if isinstance(reading, readings.Asked | readings.PermissionAsked | readings.PlanOffered):
            words = "Promptside could not read this request."
            tool = getattr(reading, "tool", "AskUserQuestion")
            self._say(self._settled(reading.at, reading.request, tool, "", words))

    def _questions(self, asked: readings.Asked) -> AnyEvent:
        questions = tuple(
            events.Question(
                kind=d.kind,
                text=self._redactor.text(d.text),
                header=self._redactor.text(d.header),
                options=tuple(
                    OptionView(
                        id=o.id,
                        title=self._redactor.text(o.title),
                        description=self._redactor.text(o.description),
                        recommended=o.recommended,
                    )
                    for o in d.options
                ),
                other=d.other,
            )
            for d in messages.decisions(asked)
        )
        return events.QuestionsAsked(
            at=self._clock(), attempt=self._id, offset=asked.at, request=asked.request, questions=questions
        )

    def _permission(self, asked: readings.PermissionAsked) -> AnyEvent:
        what = self._redactor.text(rules.wanted(asked))
        if len(what) > WHAT_LIMIT:
            what = f"{what[:WHAT_LIMIT]} … ({len(what) - WHAT_LIMIT} more characters)"
        held = _held(asked)
        if held is not None and (event := self._of_unsaved(asked, what, held)) is not None:
            return event
        if self._driving.on_ask == "allow":
            return self._settled(asked.at, asked.request, asked.tool, what, "")
        allowed = self._rules()
        if rules.covered(allowed, asked, self._root) and not self._stage.read_only:
            return self._settled(asked.at, asked.request, asked.tool, what, "")
        if self._driving.on_ask == "deny":
            reason = (
                f"{self._stage.name} is read-only."
                if self._stage.read_only
                else "Nobody is there to be asked, and no rule allows it."
            )
            return self._settled(asked.at, asked.request, asked.tool, what, reason)
        rule = str(rules.always(asked, self._root) or "")
        if self._redactor.text(rule) != rule:
            rule = ""  # a rule that lasts must not hold a secret
        # Redacted before it is shortened: half a secret is not known for one any more.
        shown = replace(asked, input=self._redactor.data(brief(asked.input)))
        return events.PermissionAsked(
            at=self._clock(),
            attempt=self._id,
            offset=asked.at,
            request=asked.request,
            tool=asked.tool,
            what=what,
            text=rules.sentence(shown, self._stage.name, self._root),
            why=self._redactor.text(asked.reason or ""),
            rule=rule,
        )

    def _of_unsaved(self, asked: readings.PermissionAsked, what: str, held: _Held) -> AnyEvent | None:
        """A change of a file that an editor holds unsaved is a person's to allow, whatever the rules say (ED-11).

        None if the stage may not make it anyhow.
        """
        allowed = self._rules()
        if self._driving.on_ask == "deny" and not rules.covered(allowed, asked, self._root):
            return None
        name = shown_path(held.file, self._root)
        rule = rules.Rule(_UNSAVED, name)
        if rule in allowed:
            return self._settled(asked.at, asked.request, asked.tool, what, "")
        task = self._current()
        said = f"{name} has unsaved changes in {held.client}."
        if task is None or task.on_ask != "wait":
            reason = f"{said} Leave that file alone: nobody is there to be asked."
            return self._settled(asked.at, asked.request, asked.tool, what, reason)
        shown = replace(asked, input=self._redactor.data(brief(asked.input)))
        return events.PermissionAsked(
            at=self._clock(),
            attempt=self._id,
            offset=asked.at,
            request=asked.request,
            tool=asked.tool,
            what=what,
            text=rules.sentence(shown, self._stage.name, self._root),
            why=f"{said} Save it first, or allow this and keep your version in the editor.",
            rule=str(rule),
            held=held.file,
        )

    def _settled(self, at: int, request: str, tool: str, what: str, reason: str) -> AnyEvent:
        return events.PermissionSettled(
            at=self._clock(),
            attempt=self._id,
            offset=at,
            request=request,
            tool=tool,
            what=what[:SETTLED_LIMIT],
            allowed=not reason or tool == "ExitPlanMode",
            reason=reason,
        )

    def _rules(self) -> tuple[rules.Rule, ...]:
        """Everything that allows something here: the stage's rules, those for good, this task's grants."""
        task = self._current()
        found = find_attempt(task, self._id) if task is not None else None
        granted: list[str] = []
        if task is not None and found is not None:
            for grant in task.grants:
                here = grant.stage == self._stage.id and grant.attempt == found[2].n
                if grant.scope == "task" or here:
                    granted.append(grant.rule)
        parsed: list[rules.Rule] = []
        for text in (*self._stage_rules, *self._given_for_good(), *granted):
            try:
                parsed.append(rules.parse(text))
            except ValueError:
                log.warning("a rule that is none is left out: %s", text)
        return tuple(parsed)

    def _turn_ended(self, reading: readings.TurnEnded) -> None:
        used = reading.metrics
        usage = Usage(
            input_tokens=used.input_tokens + used.cache_read_tokens + used.cache_written_tokens,
            output_tokens=used.output_tokens,
            session_cost=used.session_cost_usd,
            turns=used.turns,
        )
        self._used = usage
        event = events.TurnEnded(at=self._clock(), attempt=self._id, offset=reading.at, usage=usage)
        outcome = reading.outcome
        if outcome.kind is Ending.INTERRUPTED:
            self._say(replace(event, interrupted=True, failure=self._failure(outcome)))
            return
        if outcome.ok or outcome.kind in (Ending.NO_STRUCTURED_OUTPUT, Ending.SCHEMA_RETRIES):
            task = self._current()
            if task is None:
                return
            found = self._answer.read(task, self._id, self._stage, reading.structured, reading.text)
            self._say(
                replace(
                    event,
                    definition=found.definition,
                    shown=found.shown,
                    text=found.text,
                    invalid=found.invalid,
                )
            )
            return
        self._say(replace(event, failure=self._failure(outcome)))

    def _failure(self, outcome: Outcome) -> Failure:
        return Failure(
            kind=str(outcome.kind),
            sentence=self._redactor.text(outcome.sentence),
            hint=outcome.hint,
            retryable=outcome.retryable,
            until=outcome.until,
        )

    def _condemn(self, failure: Failure) -> None:
        self._say(Condemned(at=self._clock(), attempt=self._id, failure=failure))

    def _say(self, event: AnyEvent) -> None:
        self._tell(event)

    # --- to the agent -------------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Send what is in the outbox; what the keeper has under its number is not sent again."""
        task = self._current()
        found = find_attempt(task, self._id) if task is not None else None
        if found is None or found[2].live is None:
            return
        known = max(self._sent, self._hand.forwarded() - self._driving.before)
        for message in found[2].live.outbox:
            if message.number > known:
                self._hand.send(message.number + self._driving.before, self._line(message).rstrip(b"\n"))
                self._sent = message.number
                self._asks.pop(getattr(message, "request", ""), None)

    def _line(self, message: Outgoing) -> bytes:
        order = f"{self._id}/{message.number}"
        match message:
            case SayText(text=text):
                return messages.user_message(text, order=order)
            case Interrupt():
                return messages.interrupt(order)
            case AllowTool(request=request):
                asked = self._asks.get(request)
                # What is allowed is the very input that was asked about: it takes the place of the tool's own.
                return messages.allow(request, asked.input) if asked is not None else _lost(request)
            case DenyTool(request=request, message=words, interrupt=interrupt):
                return messages.deny(request, words, interrupt=interrupt)
            case GiveAnswers(request=request, answers=given):
                asked = self._asks.get(request)
                if not isinstance(asked, readings.Asked) or len(given) != len(asked.questions):
                    return _lost(request)
                said = [messages.Answered(chosen=g.options, other=g.words) for g in given]
                return messages.answer_questions(asked, said)
            case _:
                assert_never(message)


class _Held(Struct, frozen=True, kw_only=True):
    """The file that is about to be changed, and the editor that holds it unsaved."""

    file: str
    client: str


def _held(asked: readings.PermissionAsked) -> _Held | None:
    """What our hook said, where it was our hook that had this asked."""
    reason = asked.reason or ""
    if asked.reason_kind != "hook" or not reason.startswith(unsaved_hook.MARK):
        return None
    try:
        return msgspec.json.decode(reason.removeprefix(unsaved_hook.MARK), type=_Held)
    except msgspec.DecodeError:
        return None


def _lost(request: str) -> bytes:
    return messages.deny(request, "The request was lost. Ask again.")
