"""What an agent says becomes events, and what the engine sends becomes lines: permissions, questions, secrets."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from rig.bench import STAGE, Bench, at_gate, last, rests

from promptside_daemon.engine.task import Stuck, Task
from promptside_protocol.commands import Allow, Answer, Deny, Redo
from promptside_protocol.queries import Watch

SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
ANSWERS = "prompt(); init(); answer = {ask}; result(json.dumps(answer)); end()"


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def asks(task: Task) -> bool:
    """Whether the agent waits for a person, or its stage rests."""
    return bool(task.open_decisions) or rests(task)


def answered(bench: Bench, task: Task) -> Any:
    """What the agent got as the answer to what it asked."""
    lines = (bench.directory(last(task)) / "transcript.ndjson").read_bytes().splitlines()
    results = [line for line in map(json.loads, lines) if line["type"] == "result"]
    return json.loads(results[-1]["result"])


def test_what_is_allowed_is_the_very_input_that_was_asked_about(bench: Bench) -> None:
    bench.claude(ANSWERS.format(ask="ask('Bash', {'command': 'make it', 'description': 'Make'})"))

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(asks)
        assert [d.id for d in task.open_decisions] == ["P1"]
        assert task.open_decisions[0].what == "make it"
        await bench.order(Allow(project=str(bench.root), task=1))
        task = await bench.rests()
        given = answered(bench, task)
        assert given == {
            "behavior": "allow",
            "updatedInput": {"command": "make it", "description": "Make"},
        }

    play(bench, story)


def test_always_holds_for_the_very_next_call(bench: Bench) -> None:
    """ST-14: the rule is there before the agent is answered, so that it can't ask a second time."""
    bench.claude(
        "prompt(); init(); first = ask('Bash', {'command': 'make it'}); used();"
        "second = ask('Bash', {'command': 'make it'}, 'r2', 't2'); used(number='t2');"
        "result(json.dumps([first['behavior'], second['behavior']])); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.until(asks)
        await bench.order(Allow(project=str(bench.root), task=1, scope="always"))
        task = await bench.until(asks)
        assert at_gate(task), task.open_decisions
        assert answered(bench, task) == ["allow", "allow"]
        assert len(await bench.project.store.rules()) == 1

    play(bench, story)


def test_unattended_it_is_denied_with_the_reason_and_listed(bench: Bench) -> None:
    bench.claude(ANSWERS.format(ask="ask('Bash', {'command': 'make it'})"))

    async def story(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, on_ask="deny")
        task = await bench.rests()
        assert answered(bench, task)["behavior"] == "deny"
        assert "Nobody is there" in answered(bench, task)["message"]
        assert [denial.what for denial in last(task).denials] == ["make it"]

    play(bench, story)


def test_a_word_goes_with_a_denial(bench: Bench) -> None:
    bench.claude(ANSWERS.format(ask="ask('Bash', {'command': 'make it'})"))

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.until(asks)
        await bench.order(Deny(project=str(bench.root), task=1, text="Use ninja"))
        task = await bench.rests()
        assert answered(bench, task)["message"] == "Use ninja"

    play(bench, story)


def test_a_read_only_stage_denies_what_is_asked_and_fails_for_what_ran(bench: Bench) -> None:
    reading = STAGE.replace('"ask"', '"deny"') + 'tools = ["Read"]\n'
    bench.pipeline("small", reading)
    bench.claude(
        "prompt(); init(('Read',)); use('Write', {'file_path': 'a.txt', 'content': 'x'});"
        "answer = ask('Write', {'file_path': 'a.txt', 'content': 'x'});"
        "open('denied' if answer['behavior'] == 'deny' else 'allowed', 'w').close(); used(); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "breach"
        assert isinstance(task.run.status if task.run else None, Stuck)
        assert (bench.root / "denied").exists()

    play(bench, story)


def test_a_question_is_answered_by_option_and_in_words(bench: Bench) -> None:
    questions = [
        {"question": "Which?", "header": "H", "options": [{"label": "One (Recommended)"}, {"label": "Two"}]},
        {"question": "Why?", "options": []},
    ]
    bench.claude(ANSWERS.format(ask=f"ask('AskUserQuestion', {{'questions': {questions!r}}})"))

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(asks)
        first, second = task.open_decisions
        assert [o.title for o in first.options] == ["One", "Two"]
        assert [o.recommended for o in first.options] == [True, False]
        assert first.required
        assert first.priority == 1
        assert first.other
        await bench.order(Answer(project=str(bench.root), task=1, decision=first.id, recommended=True))
        await bench.order(Answer(project=str(bench.root), task=1, decision=second.id, text="Because"))
        task = await bench.rests()
        given = answered(bench, task)
        assert given["updatedInput"]["answers"] == {"Which?": "One (Recommended)", "Why?": "Because"}

    play(bench, story)


@pytest.mark.parametrize(
    "ask",
    [
        "ask('AskUserQuestion', {'questions': []})",
        "ask('AskUserQuestion', {'questions': 'none'})",
        "ask('AskUserQuestion', {'questions': [{'question': '', 'options': [{'label': ''}, {'label': ''}]}]})",
        "ask('Bash', {'command': 17})",
        "ask('', {})",
        "ask('mcp__a__b', {'deep': [[[['x']]]]})",
        "ask('ExitPlanMode', {})",
    ],
)
def test_whatever_is_asked_the_agent_is_never_left_waiting(bench: Bench, ask: str) -> None:
    bench.claude(ANSWERS.format(ask=ask))

    async def story(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, on_ask="deny")
        task = await bench.until(asks)
        for decision in task.open_decisions:
            await bench.order(Answer(project=str(bench.root), task=1, decision=decision.id, text="x"))
        assert at_gate(await bench.rests())

    play(bench, story)


def test_a_fault_of_ours_in_reading_a_request_denies_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("promptside_daemon.world.listener.rules.covered", broken)
    bench.claude(ANSWERS.format(ask="ask('Bash', {'command': 'make it'})"))

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert answered(bench, task)["message"] == "Promptside could not read this request."

    play(bench, story)


def test_no_secret_leaves_the_transcript(bench: Bench) -> None:
    """DA-6: database, artifacts, log, what clients see; by the value of the environment and by its form."""
    value = "value-of-the-environment"
    both = f"{SECRET} and {value}"
    bench.environment["ANTHROPIC_API_KEY"] = value
    bench.claude(
        f"prompt(); init(); s = {both!r};"
        "use('Bash', {'command': 'curl -H ' + s, 'description': s});"
        "ask('Bash', {'command': 'echo ' + s}); used();"
        "ask('AskUserQuestion', {'questions': [{'question': s, 'header': s, 'options':"
        " [{'label': s, 'description': s}, {'label': 'B'}]}]}, 'r2', 't2');"
        "sys.stderr.write('Error: ' + s + chr(10)); result(s); end()"
    )
    seen: list[bytes] = []

    async def watch(bench: Bench) -> None:
        async for notice in bench.daemon.flow(Watch(activity=True, events=True), bench.who, 1):
            seen.append(msgspec.json.encode(notice))  # noqa: PERF401  it is cancelled in the middle

    async def story(bench: Bench) -> None:
        watching = asyncio.create_task(watch(bench))
        await bench.started()
        task = await bench.until(asks)
        (asked,) = task.open_decisions
        assert asked.rule == "", "a rule that lasts would hold the secret"
        await bench.order(Allow(project=str(bench.root), task=1))
        task = await bench.until(lambda task: any(d.kind == "one" for d in task.open_decisions))
        await bench.order(Answer(project=str(bench.root), task=1, decision="Q1", options=("B",)))
        await bench.rests()
        await bench.order(Redo(project=str(bench.root), task=1, feedback="Once more"))
        await bench.until(asks)
        watching.cancel()

    play(bench, story)
    told = b"".join(seen)
    assert b"[redacted]" in told
    for secret in (SECRET.encode(), value.encode()):
        assert secret not in told
        holding = [file for file in bench.base.rglob("*") if file.is_file() and secret in file.read_bytes()]
        # What the agent was sent holds what it had asked about: it is as raw, and as private, as the transcript.
        raw = {
            "transcript.ndjson",
            "stderr.log",
            "secrets.json",
            "environment",
            "environment-1.json",
            "claude",
        }
        assert {file.name for file in holding if file.parent.name != "inbox"} <= raw
        assert all(file.stat().st_mode & 0o077 == 0 for file in holding if file.name != "claude")
