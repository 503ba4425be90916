"""Endings of turns and runs: what is retried, what people are told."""

import pytest

from promptside_daemon.world.claude import metrics
from promptside_daemon.world.claude.lines import Result, Usage
from promptside_daemon.world.claude.outcome import Ending, Outcome, hopeless, judge_run, judge_turn


def failed(**fields: object) -> Result:
    return Result(is_error=True, subtype="success", **{"terminal_reason": "api_error", **fields})  # type: ignore[arg-type]  # a table of fields


@pytest.mark.parametrize(
    ("result", "api_error", "kind"),
    [
        (failed(api_error_status=401), "authentication_failed", Ending.LOGIN),
        (failed(api_error_status=403), None, Ending.LOGIN),
        (failed(result="Not logged in · Please run /login"), None, Ending.LOGIN),
        (failed(api_error_status=400, result="Credit balance is too low"), "billing_error", Ending.CREDIT),
        (failed(api_error_status=400, result="API Error: 400 bad"), "unknown", Ending.REQUEST_REFUSED),
        (failed(api_error_status=404), "model_not_found", Ending.MODEL_UNKNOWN),
        (failed(api_error_status=429), "rate_limit", Ending.RATE_LIMITED),
        (failed(api_error_status=529), "server_error", Ending.OVERLOADED),
        (failed(api_error_status=503), "server_error", Ending.SERVER_ERROR),
        (failed(result="API Error: Connection refused"), "server_error", Ending.NETWORK),
        (failed(terminal_reason="prompt_too_long"), None, Ending.PROMPT_TOO_LONG),
        (failed(terminal_reason="blocking_limit", result="Prompt is too long"), None, Ending.PROMPT_TOO_LONG),
        (failed(terminal_reason="max_turns"), None, Ending.MAX_TURNS),
        (failed(terminal_reason="budget_exhausted"), None, Ending.BUDGET),
        (failed(terminal_reason="aborted_streaming"), None, Ending.INTERRUPTED),
        (failed(terminal_reason="aborted_tools"), None, Ending.INTERRUPTED),
        (
            Result(is_error=True, subtype="error_max_structured_output_retries"),
            None,
            Ending.SCHEMA_RETRIES,
        ),
        (
            Result(
                is_error=True,
                subtype="error_during_execution",
                errors=("No conversation found with session ID: x",),
            ),
            None,
            Ending.SESSION_GONE,
        ),
        (Result(is_error=True, subtype="error_during_execution"), None, Ending.FAILED),
        (Result(is_error=False, subtype="error_max_turns"), None, Ending.DONE),
    ],
)
def test_a_turn_is_judged_by_what_its_result_says_not_by_its_subtype(
    result: Result, api_error: str | None, kind: Ending
) -> None:
    assert judge_turn(result, api_error=api_error).kind is kind


def test_a_plan_limit_knows_when_it_ends() -> None:
    ended = judge_turn(failed(api_error_status=429), resets_at=1_800_000_000)
    assert ended.until == 1_800_000_000
    assert judge_turn(failed(api_error_status=529), resets_at=1_800_000_000).until is None


def test_a_schema_that_was_asked_for_must_be_answered() -> None:
    assert judge_turn(Result(), wants_structured=True).kind is Ending.NO_STRUCTURED_OUTPUT
    assert judge_turn(Result(structured_output=None), wants_structured=True).kind is Ending.DONE


NEVER_BY_ITSELF = {
    Ending.LOGIN,
    Ending.CREDIT,
    Ending.MODEL_UNKNOWN,
    Ending.MAX_TURNS,
    Ending.BUDGET,
    Ending.INTERRUPTED,
    # The same command line, the same request and the same prompt would meet the same end.
    Ending.BAD_USAGE,
    Ending.REQUEST_REFUSED,
    Ending.PROMPT_TOO_LONG,
    Ending.DONE,
}


@pytest.mark.parametrize("kind", Ending)
def test_each_ending_has_words_and_says_if_it_is_tried_again(kind: Ending) -> None:
    ended = Outcome(kind=kind, detail="what the CLI said")
    assert ended.retryable == (kind not in NEVER_BY_ITSELF)
    assert ended.sentence.endswith(".")
    assert ended.hint or kind in {Ending.DONE, Ending.INTERRUPTED}


@pytest.mark.parametrize(
    ("code", "signal", "stderr", "kind", "sentence"),
    [
        (None, 9, "", Ending.DIED, "The agent ended without a result (SIGKILL)."),
        (143, None, "", Ending.DIED, "The agent ended without a result (SIGTERM)."),
        (0, None, "", Ending.DIED, "The agent ended without a result (exit code 0)."),
        (None, None, "", Ending.DIED, "The agent ended without a result (how is not known)."),
        (
            1,
            None,
            "note\nerror: unknown option '--x'\n",
            Ending.BAD_USAGE,
            "The agent did not start: error: unknown option '--x'.",
        ),
        (
            1,
            None,
            "Error: Session ID 1-2 is already in use.\n",
            Ending.SESSION_IN_USE,
            "The agent's session number is taken.",
        ),
        (
            1,
            None,
            "No conversation found with session ID: 1-2\n",
            Ending.SESSION_GONE,
            "The agent's conversation is gone.",
        ),
    ],
)
def test_a_run_without_a_result(
    code: int | None, signal: int | None, stderr: str, kind: Ending, sentence: str
) -> None:
    ended = judge_run(last=None, in_turn=False, started=False, exit_code=code, signal=signal, stderr=stderr)
    assert (ended.kind, ended.sentence) == (kind, sentence)


def test_a_run_that_dies_in_its_next_turn_has_died_whatever_the_last_result_said() -> None:
    done = Outcome(kind=Ending.DONE)
    died = judge_run(last=done, in_turn=True, started=True, exit_code=None, signal=9, stderr="")
    assert died.kind is Ending.DIED
    assert judge_run(last=done, in_turn=False, started=True, exit_code=None, signal=9, stderr="") is done


def test_a_complaint_after_the_start_is_no_wrong_usage() -> None:
    stderr = "Error parsing streaming input line: …"
    ended = judge_run(last=None, in_turn=True, started=True, exit_code=1, signal=None, stderr=stderr)
    assert (ended.kind, ended.detail) == (Ending.DIED, stderr)


def test_a_401_is_hopeless_at_its_first_retry() -> None:
    assert hopeless(401) is Ending.LOGIN
    assert hopeless(403) is Ending.LOGIN
    assert hopeless(529) is None
    assert hopeless(None) is None


def test_cost_is_of_the_session_and_usage_of_the_turn() -> None:
    turns = [
        metrics.of_turn(
            Result(usage=Usage(input_tokens=10, output_tokens=2), total_cost_usd=0.5, num_turns=2)
        ),
        metrics.of_turn(
            Result(usage=Usage(input_tokens=5, output_tokens=1), total_cost_usd=0.75, num_turns=1)
        ),
    ]
    both = turns[0].plus(turns[1])
    assert (both.input_tokens, both.output_tokens, both.turns, both.session_cost_usd) == (15, 3, 3, 0.75)
    assert metrics.attempt_cost(both.session_cost_usd, before_usd=0.25) == 0.5
    assert metrics.attempt_cost(0.0, before_usd=0.25) == 0.0
