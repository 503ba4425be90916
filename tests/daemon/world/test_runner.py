"""One attempt from its prompt to its last process, with agents that behave as none should."""

import asyncio
import json
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rig.bench import Bench, at_gate, last, rests, talks

import promptside_daemon.world.runner as runner_module
from promptside_daemon.engine.task import RetryDue, Stuck, Task, live_attempt
from promptside_daemon.world import processes
from promptside_protocol.commands import Abandon, Approve, Redo, Retry, Say, Stop

GOOD = "prompt(); init(); text('Hello'); result('Hello'); end()"


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    """Tell a story with the core at work."""

    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def failed(task: Task) -> bool:
    """Whether the stage failed and waits for a person, or for its retry."""
    return task.run is not None and isinstance(task.run.status, Stuck | RetryDue)


def test_an_attempt_runs_to_its_gate_and_leaves_nothing(bench: Bench) -> None:
    bench.claude(GOOD)

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task)
        assert last(task).status == "done"
        directory = bench.directory(last(task))
        assert not (directory / "environment").exists()
        assert directory.stat().st_mode & 0o777 == 0o700
        for record in ("prompt.md", "transcript.ndjson", "secrets.json", "before.json"):
            assert (directory / record).stat().st_mode & 0o077 == 0, record

    play(bench, story)
    assert "Hello" in (bench.root / ".promptside/tasks/1-a-task/01-work.md").read_text(encoding="utf-8")
    assert not list(bench.base.glob("**/environment*")), "DA-10: kept until it ends"


def test_an_agent_without_a_result_fails_and_may_be_tried_again(bench: Bench) -> None:
    bench.claude("prompt(); init(); sys.stderr.write('Error: no reason given\\n'); sys.exit(3)")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(failed)
        failure = last(task).failure
        assert failure is not None
        assert "no reason given" in failure.sentence
        assert failure.retryable
        assert isinstance(task.run.status if task.run else None, RetryDue)

    play(bench, story)


def test_a_killed_agent_fails_with_that_reason(bench: Bench) -> None:
    bench.claude("prompt(); init(); os.kill(os.getpid(), signal.SIGKILL)")

    async def story(bench: Bench) -> None:
        await bench.started()
        failure = last(await bench.until(failed)).failure
        assert failure is not None
        assert "SIGKILL" in failure.sentence
        assert failure.retryable

    play(bench, story)


def test_children_in_sessions_of_their_own_end_with_the_attempt(bench: Bench) -> None:
    bench.claude(
        "prompt(); init(); subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=subprocess.DEVNULL);"
        "result(); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task)
        assert processes.marked(last(task).id) == []

    play(bench, story)


def test_a_killed_keeper_takes_its_agent_along(bench: Bench) -> None:
    bench.claude("prompt(); init(); signal.signal(signal.SIGTERM, signal.SIG_IGN); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(talks)
        runner = bench.project.world.runners[last(task).id]
        keeper = runner.hand.keeper()
        assert keeper is not None
        assert processes.send_signal(keeper, signal.SIGKILL)
        task = await bench.until(failed)
        failure = last(task).failure
        assert failure is not None
        assert "the process that held the agent was killed" in failure.sentence
        assert processes.marked(last(task).id) == []

    play(bench, story)


def test_a_keeper_that_does_not_obey_is_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "STOP_SECONDS", 0.05)
    bench.claude("prompt(); init(); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(talks)
        keeper = bench.project.world.runners[last(task).id].hand.keeper()
        assert keeper is not None
        assert processes.send_signal(keeper, signal.SIGSTOP)
        await bench.order(Stop(project=str(bench.root), task=1))
        task = await bench.rests()
        assert last(task).status == "stopped"
        assert processes.marked(last(task).id) == []

    play(bench, story)


def test_silence_ends_an_attempt_with_all_its_processes(bench: Bench) -> None:
    bench.settings("[limits]\nsilence_s = 0.2\nretries = 0\n")
    bench.claude("prompt(); init(); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(failed)
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "silence"
        assert "0.2 s" in failure.sentence

    play(bench, story)


@pytest.mark.parametrize(
    "busy",
    [
        "use('Bash', {'command': 'make'}); time.sleep(3); used()",
        "ask('AskUserQuestion', {'questions': [{'question': 'Which?', 'options': [{'label': 'A'}]}]})",
        "ask('Bash', {'command': 'make it'})",
    ],
    ids=["a tool", "a question", "a permission"],
)
def test_silence_does_not_count_while_something_is_open(bench: Bench, busy: str) -> None:
    """GA-8: the tool runs longer than silence may last; what is asked waits for a person."""
    bench.settings("[limits]\nsilence_s = 2\nretries = 0\n")  # a busy machine is silent, too
    bench.claude(f"prompt(); init(); {busy}; result(); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(lambda task: task.open_decisions or rests(task))
        if task.open_decisions:
            loop = asyncio.get_running_loop()
            over = asyncio.Event()
            loop.call_later(2.5, over.set)
            await over.wait()
            task = await bench.task()
            assert live_attempt(task) is not None
            assert "condemned" not in await bench.kinds()
            await bench.order(Abandon(project=str(bench.root), task=1))
            await bench.rests()
        else:
            assert at_gate(task)

    play(bench, story)


def test_the_time_limit_of_a_stage_is_said_and_tried_again(bench: Bench) -> None:
    """Also where the agent gives a result of its own when it is interrupted."""
    bench.settings("[limits]\nstage_s = 0.3\n")
    bench.claude(
        "prompt(); init(); m = heard();"
        "result(subtype='error_during_execution', is_error=True, terminal_reason='aborted_streaming'); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(failed)
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "time_limit"
        assert failure.retryable

    play(bench, story)


def test_a_login_that_can_not_work_ends_the_attempt_at_once(bench: Bench) -> None:
    bench.claude(
        "prompt(); init(); line(type='system', subtype='api_retry', attempt=1, max_retries=10,"
        " retry_delay_ms=500, error_status=401, error='authentication_failed'); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "login"
        assert isinstance(task.run.status if task.run else None, Stuck), "never tried again by itself"

    play(bench, story)


def test_a_limit_with_an_end_goes_on_by_itself_then(bench: Bench) -> None:
    bench.claude(
        "prompt(); init();"
        "line(type='rate_limit_event', rate_limit_info={'status': 'rejected', 'resetsAt': time.time() + 1e5,"
        " 'rateLimitType': 'five_hour'});"
        "result('You have hit your limit', is_error=True, api_error_status=429); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(failed)
        status = task.run.status if task.run else None
        assert isinstance(status, RetryDue)
        assert status.at - last(task).queued == pytest.approx(1e5, abs=60)
        assert bench.daemon.due() == status.at, "no idle exit before that (DA-12)"
        assert list(bench.project.directory.glob("environment-1.json")), "it starts without another order"

    play(bench, story)


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ("result(subtype='error_max_turns', is_error=True, terminal_reason='max_turns')", "max_turns"),
        (
            "result(subtype='error_max_budget_usd', is_error=True, terminal_reason='budget_exhausted')",
            "budget",
        ),
        ("result('no such model', is_error=True, api_error_status=404)", "model_unknown"),
        ("result('Credit balance is too low', is_error=True)", "credit"),
        ("result('Not logged in', is_error=True)", "login"),
    ],
)
def test_what_does_not_go_away_is_never_tried_again_by_itself(bench: Bench, end: str, kind: str) -> None:
    bench.claude(f"prompt(); init(); {end}; end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == kind
        assert isinstance(task.run.status if task.run else None, Stuck)

    play(bench, story)


def test_lines_that_nobody_can_read_are_passed_over(bench: Bench) -> None:
    bench.claude(
        "prompt(); init(); write(b'[debug] not json\\n'); write(b'\\xff\\xfe\\n');"
        "line(type='a_new_kind', anything=[1]); write(b'\\n');"
        "text('x' * 5_000_000);"
        "result('Good'); write(b'half a li'); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task), last(task).failure

    play(bench, story)


def test_a_torn_line_means_that_output_was_lost(bench: Bench) -> None:
    bench.claude('prompt(); init(); write(b\'{"type":"assistant","mess\\n\'); end()')

    async def story(bench: Bench) -> None:
        await bench.started()
        failure = last(await bench.rests()).failure
        assert failure is not None
        assert failure.kind == "output_lost"

    play(bench, story)


def test_a_stop_is_obeyed_while_the_start_is_being_prepared(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = asyncio.Event()

    async def for_ever(*_: object) -> None:
        began.set()
        await asyncio.Event().wait()

    async def story(bench: Bench) -> None:
        monkeypatch.setattr(bench.project.world.launcher, "prepare", for_ever)
        await bench.started()
        await began.wait()
        await bench.order(Stop(project=str(bench.root), task=1))
        task = await bench.rests()
        assert last(task).status == "stopped"
        assert not (bench.directory(last(task)) / "keeper.json").exists()

    play(bench, story)


def test_the_attempt_directory_removed_under_us_fails_the_attempt(bench: Bench) -> None:
    bench.claude("prompt(); init(); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(talks)
        await asyncio.to_thread(shutil.rmtree, bench.directory(last(task)))
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "directory_gone"
        assert processes.marked(last(task).id) == []

    play(bench, story)


def test_a_fault_of_ours_ends_the_agent_before_it_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.claude("prompt(); init(); end()")

    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(runner_module.Runner, "_hear", broken)

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "fault"
        assert processes.marked(last(task).id) == []
        assert isinstance(task.run.status if task.run else None, Stuck)

    play(bench, story)


def test_nothing_is_started_without_room_for_its_transcript(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "FREE_BYTES", 1 << 62)

    async def story(bench: Bench) -> None:
        await bench.started()
        failure = last(await bench.rests()).failure
        assert failure is not None
        assert failure.kind == "disk_full"
        monkeypatch.setattr(runner_module, "FREE_BYTES", 0)
        await bench.order(Retry(project=str(bench.root), task=1))
        assert at_gate(await bench.rests())

    play(bench, story)


def test_a_disk_that_fills_up_ends_what_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.claude("prompt(); init(); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(talks)
        monkeypatch.setattr(runner_module, "LAST_BYTES", 1 << 62)
        bench.project.world.runners[last(task).id].deliver()
        failure = last(await bench.rests()).failure
        assert failure is not None
        assert failure.kind == "disk_full"

    play(bench, story)


def test_a_project_whose_directory_is_gone_says_so_and_is_not_made_anew(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        await bench.new()
        bench.root.rename(bench.base / "elsewhere")
        await bench.run()
        failure = last(await bench.rests()).failure
        assert failure is not None
        assert failure.kind == "no_directory"

    play(bench, story)
    assert not bench.root.exists()


# --- the daemon ends, the agent doesn't --------------------------------------------------------------------


def test_the_next_daemon_goes_on_where_the_last_one_stopped(bench: Bench) -> None:
    go = bench.gate()
    bench.claude(f"prompt(); init(); text('One'); hold({str(go)!r}); result('Two'); end()")

    async def first(bench: Bench) -> None:
        await bench.started()
        await bench.until(talks)

    async def second(bench: Bench) -> None:
        before = await bench.kinds()
        await bench.let_go(go)
        task = await bench.rests()
        assert at_gate(task)
        kinds = await bench.kinds()
        assert kinds[: len(before)] == before
        assert kinds.count("session_opened") == 1, "what was told is told once"
        assert len(task.stages[0].attempts) == 1

    play(bench, first)
    play(bench, second)


def test_what_ended_while_no_daemon_was_there_is_found(bench: Bench) -> None:
    bench.claude("prompt(); init(); result('Good'); end()")

    async def first(bench: Bench) -> None:
        await bench.started()
        await bench.until(lambda task: task.stages[0].last and last(task).started)
        # Gone before it can hear the result: as if it had been killed here.
        bench.project.loop.observe = lambda *_: None  # type: ignore[method-assign]

    play(bench, first)
    specs = list(bench.base.glob("**/attempts/*/keeper.json"))
    assert len(specs) == 1
    keeper = processes.Process(**json.loads(specs[0].read_bytes()))

    async def second(bench: Bench) -> None:
        task = await bench.rests()
        assert at_gate(task)
        assert not processes.alive(keeper)

    play(bench, second)


def test_an_order_to_end_that_was_cut_off_is_carried_out_by_the_next_daemon(bench: Bench) -> None:
    bench.claude("prompt(); init(); end()")

    async def first(bench: Bench) -> None:
        await bench.started()
        task = await bench.until(talks)
        bench.project.world.runners[last(task).id].stop = lambda _: None  # type: ignore[method-assign]
        await bench.order(Stop(project=str(bench.root), task=1))

    async def second(bench: Bench) -> None:
        assert last(await bench.rests()).status == "stopped"

    play(bench, first)
    play(bench, second)


def test_a_queued_stage_gets_its_slot_from_the_next_daemon(bench: Bench) -> None:
    async def first(bench: Bench) -> None:
        bench.daemon._grant = lambda: None  # type: ignore[method-assign]
        bench.project.loop.changed = lambda: None
        await bench.started()

    async def second(bench: Bench) -> None:
        assert at_gate(await bench.rests())

    play(bench, first)
    play(bench, second)


# --- words -------------------------------------------------------------------------------------------------


def test_feedback_reaches_the_same_conversation(bench: Bench) -> None:
    """ST-8: only what is new is said; the session is the one that was told."""
    bench.claude(
        "said = prompt(); init(); result(json.dumps({'said': said, 'argv': sys.argv}), session_id=SESSION); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started("A “task” -- with\nlines & émoji 🎉")
        await bench.rests()
        await bench.order(Redo(project=str(bench.root), task=1, feedback="Shorter, please."))
        task = await bench.until(lambda task: len(task.stages[0].attempts) == 2 and rests(task))
        first, second = (_told(bench, attempt.id) for attempt in task.stages[0].attempts)
        assert "émoji 🎉" in first["said"]
        assert second["said"] == "Shorter, please."
        assert any("6a1d0e0e-0000-4000-8000-000000000001" in word for word in second["argv"])

    play(bench, story)


def _told(bench: Bench, attempt: str) -> dict[str, list[str]]:
    transcript = bench.project.world.attempts / attempt / "transcript.ndjson"
    lines = [json.loads(line) for line in transcript.read_bytes().splitlines()]
    found: dict[str, list[str]] = json.loads(
        next(line["result"] for line in lines if line["type"] == "result")
    )
    return found


def test_an_interrupt_is_followed_by_the_persons_words(bench: Bench) -> None:
    bench.claude(
        "prompt(); init(); m = heard(); assert m['request']['subtype'] == 'interrupt', m;"
        "result(subtype='error_during_execution', is_error=True, terminal_reason='aborted_streaming');"
        "said = prompt(); init(); result('You said ' + said); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.until(talks)
        await bench.order(Say(project=str(bench.root), task=1, text="Stop that"))
        task = await bench.rests()
        assert at_gate(task)

    play(bench, story)
    document = bench.root / ".promptside/tasks/1-a-task/01-work.md"
    assert "You said Stop that" in document.read_text(encoding="utf-8")


def test_an_approved_task_is_done_and_nothing_of_it_is_watched_any_more(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.rests()
        await bench.order(Approve(project=str(bench.root), task=1))
        world = bench.project.world
        assert world._watches == {}
        assert world._timers == {}
        assert bench.project.loop.task(1) is None

    play(bench, story)


def test_paths_with_blanks_newlines_and_dashes_work(bench: Bench) -> None:
    odd = bench.base / "-a\nproject with 'quotes' 🎉"
    bench.root.rename(odd)
    bench.root = odd
    bench.claude("prompt(); init(); open('made by it', 'w').close(); result('Good'); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task)
        assert [change.path for change in last(task).changes] == ["made by it"]

    play(bench, story)


def test_the_environment_is_that_of_the_client_that_ordered(bench: Bench) -> None:
    """DA-10, and DA-6: what is secret of it is in no database and no artifact."""
    bench.claude(
        "prompt(); init(); result(f\"{os.environ['ANTHROPIC_API_KEY']} {os.environ['LC_ALL']}\"); end()"
    )

    async def story(bench: Bench) -> None:
        bench.environment |= {"ANTHROPIC_API_KEY": "quite-secret-value-1", "LC_ALL": "C"}
        await bench.started()
        await bench.rests()
        bench.environment |= {"ANTHROPIC_API_KEY": "quite-secret-value-2", "LC_ALL": "C.UTF-8"}
        await bench.order(Redo(project=str(bench.root), task=1, feedback="Again"))
        task = await bench.until(lambda task: len(task.stages[0].attempts) == 2 and rests(task))
        form = task.stages[0].form
        assert form is not None
        assert bench.project.world.documents.draft(task, form).count("C.UTF-8") == 1

    play(bench, story)
    where = {
        str(file.relative_to(bench.base))
        for file in bench.base.rglob("*")
        if file.is_file() and b"quite-secret-value" in file.read_bytes()
    }
    assert {Path(one).name for one in where} == {"transcript.ndjson", "secrets.json"}
