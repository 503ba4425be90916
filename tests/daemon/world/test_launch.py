"""What is started and what it is told: the binary that is there or isn't, prompts, preparation, hostile files."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rig.bench import STAGE, Bench, at_gate, last, rests, stage
from rig.fake_claude import fake_claude

import promptside_daemon.world.launch as launch_module
from promptside_daemon.engine.task import Failure, Stuck
from promptside_daemon.world import processes
from promptside_daemon.world.claude.version import Version
from promptside_daemon.world.launch import find_claude, read_version
from promptside_protocol.commands import Approve, Redo, Stop
from promptside_protocol.errors import Refused

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


# --- the binary --------------------------------------------------------------------------------------------


def program(directory: Path, text: str, mode: int = 0o755) -> str:
    file = directory / "claude"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def sentence(found: object) -> str:
    assert isinstance(found, Failure)
    assert not found.retryable, "what is not there does not come by itself"
    assert found.hint
    return found.sentence


def test_no_claude_is_said_with_what_to_do(tmp_path: Path) -> None:
    assert "not found" in sentence(find_claude("claude", {"PATH": str(tmp_path)}))


def test_a_claude_that_may_not_be_executed_is_said(tmp_path: Path) -> None:
    found = find_claude(program(tmp_path, "#!/bin/sh\n", 0o644), ENVIRONMENT)
    assert "may not be executed" in sentence(found)
    assert isinstance(found, Failure)
    assert "chmod +x" in found.hint


def test_an_old_claude_is_said_with_both_versions(tmp_path: Path) -> None:
    found = find_claude(program(tmp_path, "#!/bin/sh\necho '2.0.9 (Claude Code)'\n"), ENVIRONMENT)
    assert "2.1.197 is needed; 2.0.9 is here" in sentence(found)


def test_another_program_of_that_name_is_said(tmp_path: Path) -> None:
    found = find_claude(program(tmp_path, "#!/bin/sh\necho 'claude the cat'\n"), ENVIRONMENT)
    assert "does not say its version" in sentence(found)


def test_a_program_that_can_not_run_here_is_said(tmp_path: Path) -> None:
    found = find_claude(program(tmp_path, "#!/no/such/interpreter\n"), ENVIRONMENT)
    assert "No such file" in sentence(found)


def test_a_claude_that_hangs_is_given_up_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_module, "VERSION_SECONDS", 0.2)
    mark = f"hangs-{os.getpid()}"
    hangs = program(tmp_path, "#!/bin/sh\nsleep 600 & sleep 600\n")
    found = find_claude(hangs, {**ENVIRONMENT, processes.MARK: mark})
    assert "did not answer within 0.2 s" in sentence(found)
    for process in processes.marked(mark):  # killed, and perhaps not dead in this very instant
        asyncio.run(asyncio.wait_for(processes.death(process), 60))


def test_a_version_is_asked_once_and_a_failure_is_not_remembered(tmp_path: Path) -> None:
    """A launcher that needs `node` fails with one PATH and works with the next (DA-10)."""
    count = tmp_path / "count"
    text = f"#!/bin/sh\necho x >> '{count}'\n[ -n \"$NODE\" ] && echo '2.1.330 (Claude Code)'\n"
    claude = program(tmp_path, text)
    assert read_version(claude, ENVIRONMENT) is None
    for _ in range(3):
        assert read_version(claude, {**ENVIRONMENT, "NODE": "1"}) == Version(2, 1, 330)
    assert count.read_text().count("x") == 2


def test_a_stage_says_why_its_agent_can_not_start_and_goes_on_when_it_can(bench: Bench) -> None:
    bench.environment["PROMPTSIDE_CLAUDE"] = str(bench.base / "nothing")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "no_claude"
        assert isinstance(stage(task).status, Stuck)
        bench.environment["PROMPTSIDE_CLAUDE"] = str(
            fake_claude(bench.base, "prompt(); init(); result(); end()")
        )
        await bench.order(Redo(project=str(bench.root), task=1))
        assert at_gate(await bench.until(lambda task: len(stage(task).attempts) == 2 and rests(task)))

    play(bench, story)


# --- prompts -----------------------------------------------------------------------------------------------

ECHO = "said = prompt(); init(); result(said); end()"


async def told(bench: Bench, attempt: int = 1) -> str:
    task = await bench.task()
    found = next(a for a in stage(task).attempts if a.n == attempt)
    return (bench.directory(found) / "prompt.md").read_text(encoding="utf-8")


def test_a_megabyte_of_any_text_reaches_the_agent_as_it_is(bench: Bench) -> None:
    """Through stdin, never through a shell or an argument."""
    words = "$(touch oops) `touch oops` '\";\n--help\x00\t é🎉 {{ 7 * 7 }} \\u0041 " * 20_000
    bench.claude("said = prompt(); init(); open('said', 'w', encoding='utf-8').write(said); result(); end()")

    async def story(bench: Bench) -> None:
        await bench.started("--title -- 'it'", description=words)
        task = await bench.rests()
        assert at_gate(task), last(task).failure

    play(bench, story)
    said = (bench.root / "said").read_bytes().decode()
    assert words in said
    assert not (bench.root / "oops").exists()


@pytest.mark.parametrize("language", ["C", "de_DE.ISO-8859-1"])
def test_the_language_of_the_client_spoils_no_letter(bench: Bench, language: str) -> None:
    bench.environment |= {"LANG": language, "LC_ALL": language}
    bench.claude("said = prompt(); init(); result('ok' if 'Grüße 🎉' in said else 'spoilt ' + said); end()")

    async def story(bench: Bench) -> None:
        await bench.started("Grüße 🎉")
        task = await bench.rests()
        form = stage(task).form
        assert form is not None
        assert "spoilt" not in bench.project.world.documents.draft(task, form)

    play(bench, story)


@pytest.mark.parametrize(
    "prompt",
    [
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% include '/etc/passwd' %}",
        "{{ nothing.at.all }}",
    ],
    ids=["a loop", "an escape", "a file", "unknown"],
)
def test_a_hostile_prompt_fails_its_stage_and_nothing_is_sent(bench: Bench, prompt: str) -> None:
    bench.pipeline("small", STAGE.replace("Work on it: {{ task_description }}", prompt))
    bench.claude("open('sent', 'w').close(); end()")

    async def story(bench: Bench) -> None:
        with contextlib.suppress(Refused):  # or it is said when the task is made
            await bench.started()
        if "task_created" not in await bench.kinds():
            return
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "prompt"
        assert isinstance(stage(task).status, Stuck)

    play(bench, story)
    assert not (bench.root / "sent").exists()


def test_a_claude_md_that_is_a_pipe_holds_up_nobody(bench: Bench) -> None:
    """CW-18: it is read for a stage that does not let the CLI read the project's settings."""
    bench.pipeline("small", STAGE.replace('"ask"', '"deny"') + 'tools = ["Read"]\n')
    os.mkfifo(bench.root / "CLAUDE.md")

    async def story(bench: Bench) -> None:
        await bench.started()
        assert at_gate(await bench.rests())

    play(bench, story)


def test_the_projects_memory_reaches_a_read_only_stage(bench: Bench) -> None:
    bench.pipeline("small", STAGE.replace('"ask"', '"deny"') + 'tools = ["Read"]\n')
    (bench.root / "CLAUDE.md").write_text("Use tabs. 🎉", encoding="utf-8")
    bench.claude(
        "prompt(); init(('Read',)); at = [a for a in sys.argv if a.startswith('--append-system-prompt-file=')];"
        "result(open(at[0].split('=', 1)[1], encoding='utf-8').read() if at else 'none'); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        form = stage(task).form
        assert form is not None
        assert "Use tabs. 🎉" in bench.project.world.documents.draft(task, form)

    play(bench, story)


# --- preparation (ST-12) -----------------------------------------------------------------------------------

PREPARED = (
    STAGE.replace("{{ task_description }}", "{{ user_input }}") + 'preparation = "Refine: {{ user_input }}"\n'
)
REFINES = """
said = prompt()
init()
if said.startswith('Refine: '):
    open('refined', 'a').write('x')
    result(said.removeprefix('Refine: ').strip().upper())
else:
    result(said)
end()
"""


def test_the_input_is_refined_by_a_run_of_its_own(bench: Bench) -> None:
    bench.pipeline("small", PREPARED)
    bench.claude(REFINES)

    async def story(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, input="louder")
        task = await bench.rests()
        assert at_gate(task), last(task).failure
        assert "LOUDER" in await told(bench)
        room = bench.directory(last(task)) / "preparation"
        assert (room / "exit.json").exists()
        assert not (room / "environment").exists()

    play(bench, story)


def test_a_preparation_survives_the_daemon(bench: Bench) -> None:
    bench.pipeline("small", PREPARED)
    go = bench.gate()
    waits = f"    open('begun', 'w').close()\n    hold({str(go)!r})\n"
    bench.claude(REFINES.replace("    open('refined'", waits + "    open('refined'"))
    begun = bench.root / "begun"

    async def first(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, input="louder")
        await bench.comes(begun)

    async def second(bench: Bench) -> None:
        await bench.let_go(go)
        task = await bench.rests()
        assert at_gate(task), last(task).failure
        assert "LOUDER" in await told(bench)

    play(bench, first)
    play(bench, second)
    assert (bench.root / "refined").read_text() == "x", "once"


def test_a_preparation_that_fails_fails_the_attempt_with_its_reason_redacted(bench: Bench) -> None:
    bench.pipeline("small", PREPARED)
    bench.environment["ANTHROPIC_API_KEY"] = "quite-a-secret-value"
    bench.claude("prompt(); init(); result('bad key quite-a-secret-value', is_error=True); end()")

    async def story(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, input="louder")
        task = await bench.until(lambda task: stage(task).last and last(task).failure)
        failure = last(task).failure
        assert failure is not None
        assert "The preparation failed" in failure.sentence
        assert "quite-a-secret-value" not in failure.sentence

    play(bench, story)


def test_a_stop_ends_a_preparation(bench: Bench) -> None:
    bench.pipeline("small", PREPARED)
    bench.claude("said = prompt(); init(); open('begun', 'w').close(); end()")

    async def story(bench: Bench) -> None:
        number = await bench.new()
        await bench.run(number, input="louder")
        await bench.comes(bench.root / "begun")
        await bench.order(Stop(project=str(bench.root), task=1))
        task = await bench.rests()
        assert last(task).status == "stopped"
        assert processes.marked(last(task).id) == []

    play(bench, story)


# --- what comes before -------------------------------------------------------------------------------------


def test_a_stage_is_told_what_was_approved_before_it(bench: Bench) -> None:
    two = STAGE + STAGE.replace('"work"', '"second"').replace('"Work"', '"Second"').replace(
        "Work on it: {{ task_description }}", "Before: {{ previous_output }} / {{ user_decision }}"
    ).replace('"user"', '"previous"')
    bench.pipeline("small", two)
    bench.claude(ECHO)

    async def story(bench: Bench) -> None:
        await bench.started("Nice words")
        await bench.rests()
        await bench.order(Approve(project=str(bench.root), task=1))
        task = await bench.until(lambda task: task.current == 1 and rests(task))
        prompt = (bench.directory(last(task, 1)) / "prompt.md").read_text(encoding="utf-8")
        assert prompt.startswith("Before: Work on it: Nice words / ")

    play(bench, story)
