"""How a turn and how a whole run ended, with a sentence for people and what to do.

Judged by `is_error`, `terminal_reason` and `api_error_status`, never by `subtype` or the exit code alone,
both of which mislead (CLAUDE_CLI.md 0.4 and 5). A missing result means that the process died.
"""

import re
import signal as signals
from enum import StrEnum
from typing import assert_never

import msgspec
from msgspec import Struct

from promptside_daemon.world.claude.lines import Result


class Ending(StrEnum):
    """Why a turn or a run ended."""

    DONE = "done"
    NO_STRUCTURED_OUTPUT = "no_structured_output"
    LOGIN = "login"
    CREDIT = "credit"
    MODEL_UNKNOWN = "model_unknown"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    NETWORK = "network"
    REQUEST_REFUSED = "request_refused"
    PROMPT_TOO_LONG = "prompt_too_long"
    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    SCHEMA_RETRIES = "schema_retries"
    INTERRUPTED = "interrupted"
    SESSION_GONE = "session_gone"
    SESSION_IN_USE = "session_in_use"
    BAD_USAGE = "bad_usage"
    FAILED = "failed"
    DIED = "died"
    SILENCE = "silence"


class Outcome(Struct, frozen=True, kw_only=True):
    """`detail` is the CLI's own word; `until` (seconds since 1970) is a rate limit's end, if it was said."""

    kind: Ending
    detail: str = ""
    until: float | None = None
    exit_code: int | None = None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        return self.kind is Ending.DONE

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        if self.kind is Ending.DIED:
            return (
                f"The agent ended without a result ({_how(self.exit_code, self.signal)}){_colon(self.detail)}"
            )
        text = _WORDS[self.kind].sentence
        return f"{text}{_colon(self.detail)}" if _WORDS[self.kind].with_detail else f"{text}."

    @property
    def hint(self) -> str:
        """What to do about it, for people; empty if there is nothing to do."""
        return _WORDS[self.kind].hint

    @property
    def retryable(self) -> bool:
        """May this be tried again without a person (as far as `limits.retries` allows)?"""
        return _WORDS[self.kind].retryable


def judge_turn(
    result: Result,
    *,
    api_error: str | None = None,
    resets_at: float | None = None,
    wants_structured: bool = False,
) -> Outcome:
    """The outcome of one turn.

    `api_error` is the `error` of the turn's last assistant line (it tells "not logged in" and "no credit"
    from other errors of the same status), `resets_at` the end of a plan limit that the stream has named.
    """
    said = result.result or "; ".join(result.errors)
    if not result.is_error:
        if wants_structured and result.structured_output is msgspec.UNSET:
            return Outcome(kind=Ending.NO_STRUCTURED_OUTPUT)
        return Outcome(kind=Ending.DONE)
    kind = _of_turn(result, api_error, said)
    return Outcome(
        kind=kind,
        detail=_first_line(said) if kind is not Ending.INTERRUPTED else "",
        until=resets_at if kind is Ending.RATE_LIMITED else None,
    )


def judge_run(
    *,
    last: Outcome | None,
    in_turn: bool,
    started: bool,
    exit_code: int | None,
    signal: int | None,
    stderr: str,
) -> Outcome:
    """The outcome of a whole run: what its last result said, if no turn was cut short after it.

    `in_turn`: lines of another turn came after the last result; `started`: the CLI got as far as `init`;
    `stderr`: the tail of what it wrote there. A process killed after a good result has done its work.
    """
    if last is not None and not in_turn:
        return last
    if "No conversation found with session ID" in stderr:
        return Outcome(kind=Ending.SESSION_GONE)
    if re.search(r"Session ID \S+ is already in use", stderr):
        return Outcome(kind=Ending.SESSION_IN_USE)
    complaint = _complaint(stderr)
    if not started and not signal and exit_code == 1 and complaint:
        return Outcome(kind=Ending.BAD_USAGE, detail=complaint)
    return Outcome(kind=Ending.DIED, detail=complaint, exit_code=exit_code, signal=signal)


def hopeless(error_status: int | None) -> Ending | None:
    """Is the CLI retrying what can't succeed? It retries a 401 for three minutes (CLAUDE_CLI.md 0.9)."""
    return Ending.LOGIN if error_status in {401, 403} else None


def _of_turn(result: Result, api_error: str | None, said: str) -> Ending:
    match result.terminal_reason:
        case "max_turns":
            return Ending.MAX_TURNS
        case "budget_exhausted":
            return Ending.BUDGET
        case "prompt_too_long" | "blocking_limit":
            return Ending.PROMPT_TOO_LONG
        case str(reason) if reason.startswith("aborted"):
            return Ending.INTERRUPTED
        case _:
            pass
    if result.subtype == "error_max_structured_output_retries":
        return Ending.SCHEMA_RETRIES
    if "No conversation found with session ID" in said:
        return Ending.SESSION_GONE
    by_name = _API_ERRORS.get(api_error or "")
    if by_name is not None:
        return by_name
    match result.api_error_status:
        case 401 | 403:
            return Ending.LOGIN
        case 402:
            return Ending.CREDIT
        case 404:
            return Ending.MODEL_UNKNOWN
        case 413:
            return Ending.PROMPT_TOO_LONG
        case 429:
            return Ending.RATE_LIMITED
        case 529:
            return Ending.OVERLOADED
        case int(status) if status >= 500:
            return Ending.SERVER_ERROR
        case int():
            return Ending.REQUEST_REFUSED
        case None:
            return _without_status(result, said)
        case unreachable:
            assert_never(unreachable)


def _without_status(result: Result, said: str) -> Ending:
    if "Not logged in" in said:
        return Ending.LOGIN
    if "Credit balance" in said:
        return Ending.CREDIT
    if result.api_error == "connection_failed" or result.terminal_reason == "api_error":
        # An API error without a status means that no answer came.
        return Ending.NETWORK
    return Ending.FAILED


# "server_error" is not here: the CLI says it of 500, of 529 and of a refused connection alike.
_API_ERRORS = {
    "authentication_failed": Ending.LOGIN,
    "billing_error": Ending.CREDIT,
    "model_not_found": Ending.MODEL_UNKNOWN,
    "rate_limit": Ending.RATE_LIMITED,
}


class _Words(Struct, frozen=True):
    sentence: str
    hint: str
    retryable: bool
    with_detail: bool = True


_WORDS: dict[Ending, _Words] = {
    Ending.DONE: _Words("The agent is done", "", retryable=False, with_detail=False),
    Ending.NO_STRUCTURED_OUTPUT: _Words(
        "The agent did not give its answer in the form that was asked for",
        "It is asked once more; after that its text is shown as it is.",
        retryable=True,
    ),
    Ending.LOGIN: _Words(
        "The agent is not logged in", "Run “claude” once in a terminal, then retry.", retryable=False
    ),
    Ending.CREDIT: _Words(
        "The agent's account has no credit left",
        "Add credit or change the account, then retry.",
        retryable=False,
    ),
    Ending.MODEL_UNKNOWN: _Words(
        "The agent's model is not known or not open to this account",
        "Choose another model for this stage, then retry.",
        retryable=False,
    ),
    Ending.RATE_LIMITED: _Words(
        "The agent's plan limit is reached", "It goes on by itself when the limit ends.", retryable=True
    ),
    Ending.OVERLOADED: _Words(
        "The model's service is overloaded", "Try again in a few minutes.", retryable=True
    ),
    Ending.SERVER_ERROR: _Words(
        "The model's service had a fault", "Try again in a few minutes.", retryable=True
    ),
    Ending.NETWORK: _Words(
        "The agent could not reach the model's service", "Look at the network, then retry.", retryable=True
    ),
    Ending.REQUEST_REFUSED: _Words(
        "The model's service refused the request",
        "Read the reason; the same request gets the same answer.",
        retryable=False,
    ),
    Ending.PROMPT_TOO_LONG: _Words(
        "The prompt is too long for the model",
        "Shorten the description or the earlier documents.",
        retryable=False,
    ),
    Ending.MAX_TURNS: _Words(
        "The agent has used all its turns",
        "Raise the stage's turn limit, or redo with a smaller aim.",
        retryable=False,
    ),
    Ending.BUDGET: _Words(
        "The agent has used its budget",
        "Raise the stage's budget, or redo with a smaller aim.",
        retryable=False,
    ),
    Ending.SCHEMA_RETRIES: _Words(
        "The agent's answer did not fit its form, also after several tries",
        "Redo, or write it into the form yourself.",
        retryable=True,
    ),
    Ending.INTERRUPTED: _Words("The agent was stopped", "", retryable=False),
    Ending.SESSION_GONE: _Words(
        "The agent's conversation is gone",
        "The stage starts anew, with the prompt, the last output and what you said.",
        retryable=True,
        with_detail=False,
    ),
    Ending.SESSION_IN_USE: _Words(
        "The agent's session number is taken",
        "The stage starts with another one.",
        retryable=True,
        with_detail=False,
    ),
    Ending.BAD_USAGE: _Words(
        "The agent did not start",
        "Read the reason: a setting or the agent's version does not fit.",
        retryable=False,
    ),
    Ending.FAILED: _Words("The agent failed", "See its output for the reason.", retryable=True),
    Ending.DIED: _Words("", "See its output and its errors.", retryable=True),
    Ending.SILENCE: _Words(
        "The agent was silent for too long and was stopped, with every process it had started",
        "See its output for where it stood still.",
        retryable=True,
    ),
}


def _complaint(stderr: str) -> str:
    """The line of stderr that names the fault: the last that begins with "error", else the last of all."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith("error")]
    return (named or lines or [""])[-1]


def _how(exit_code: int | None, signal: int | None) -> str:
    if signal is None and exit_code is not None and exit_code > 128:
        signal = exit_code - 128  # the CLI catches SIGTERM and SIGHUP and reports them as shells do
    if signal is not None:
        try:
            return signals.Signals(signal).name
        except ValueError:
            return f"signal {signal}"
    return f"exit code {exit_code}" if exit_code is not None else "how is not known"


def _colon(detail: str) -> str:
    if not detail:
        return "."
    return f": {detail}" if detail[-1] in ".!?…" else f": {detail}."


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]
