"""A project's effects made real: files put back, times kept, slots given, and what is let go."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable

import pytest
from rig.bench import STAGE, Bench, at_gate, last, rests, stage, talks

import promptside_daemon.world.project as world_module
from promptside_daemon.engine import effects, events
from promptside_daemon.engine.task import RetryDue, Running, live_attempt
from promptside_daemon.loop import Loop
from promptside_protocol.commands import Abandon, Approve, Retry, Stop, UndoFiles
from promptside_protocol.errors import Refused
from promptside_protocol.queries import Diff, DiffView

READING = STAGE.replace('"ask"', '"deny"') + 'tools = ["Read", "Glob"]\n'


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def repository(bench: Bench, *, git: bool) -> None:
    """A project with two files, in git or not."""
    (bench.root / "old.txt").write_text("old\n")
    (bench.root / "gone.txt").write_text("gone\n")
    if git:
        bench.git("init", "--quiet")
        bench.git("add", "--all")
        bench.git("commit", "--quiet", "--message=Begin")


EDITS = (
    "prompt(); init(); use('Write', {'file_path': 'new.txt', 'content': 'new'});"
    "open('new.txt', 'w').write('new\\n'); open('old.txt', 'a').write('more\\n'); os.remove('gone.txt');"
    "used(); result(); end()"
)


# --- diff and undo -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
def test_what_an_attempt_changed_is_shown_and_taken_back_exactly(bench: Bench, *, git: bool) -> None:
    repository(bench, git=git)
    bench.claude(EDITS)

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task), last(task).failure
        changed = {(c.path, c.kind) for c in last(task).changes}
        assert changed == {("new.txt", "added"), ("old.txt", "modified"), ("gone.txt", "deleted")}
        (bench.root / "mine.txt").write_text("mine\n")  # by a person, since
        view = await bench.daemon.ask(Diff(project=str(bench.root), task=1), bench.who)
        assert isinstance(view, DiffView)
        assert "+more" in view.diff
        assert "mine.txt" not in view.diff
        await bench.order(UndoFiles(project=str(bench.root), task=1))
        await bench.until(lambda task: task.undoing is None)
        assert "files_restored" in await bench.kinds()

    play(bench, story)
    assert (bench.root / "old.txt").read_text() == "old\n"
    assert (bench.root / "gone.txt").read_text() == "gone\n"
    assert not (bench.root / "new.txt").exists()
    assert (bench.root / "mine.txt").exists()


def test_work_of_somebody_else_since_is_not_undone_unless_the_rest_is_named(bench: Bench) -> None:
    repository(bench, git=True)
    bench.claude(EDITS)

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.rests()
        (bench.root / "old.txt").write_text("mine\n")
        with pytest.raises(Refused, match=r"old\.txt"):
            await bench.order(UndoFiles(project=str(bench.root), task=1))
        await bench.order(UndoFiles(project=str(bench.root), task=1, paths=("new.txt", "gone.txt")))
        await bench.until(lambda task: task.undoing is None)

    play(bench, story)
    assert (bench.root / "old.txt").read_text() == "mine\n"
    assert not (bench.root / "new.txt").exists()


def test_an_undo_that_was_cut_off_is_carried_out_by_the_next_daemon(bench: Bench) -> None:
    repository(bench, git=True)
    bench.claude(EDITS)

    async def first(bench: Bench) -> None:
        await bench.started()
        await bench.rests()
        real = bench.project.world._act

        def without_undo(task: object, effect: object) -> None:
            if not isinstance(effect, effects.RestoreFiles):
                real(task, effect)  # type: ignore[arg-type]  # handed on as it came

        bench.project.world._act = without_undo  # type: ignore[method-assign]
        await bench.order(Approve(project=str(bench.root), task=1))
        await bench.order(UndoFiles(project=str(bench.root), task=1))

    async def second(bench: Bench) -> None:
        await bench.until(lambda task: task.undoing is None)

    play(bench, first)
    assert (bench.root / "new.txt").exists()
    play(bench, second)
    assert not (bench.root / "new.txt").exists()


# --- the read-only proof (ST-16) ---------------------------------------------------------------------------


def test_a_file_that_a_person_saves_meanwhile_fails_nothing(bench: Bench) -> None:
    repository(bench, git=True)
    bench.pipeline("small", READING)
    bench.claude(
        "prompt(); init(('Read', 'Glob')); use('Read', {'file_path': 'old.txt'}); used();"
        "open('old.txt', 'w').write('saved by somebody\\n'); result(); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert at_gate(task), last(task).failure
        proof = last(task).proof
        assert proof is not None
        assert proof.verdict == "meanwhile"
        assert proof.meanwhile == ("old.txt: unknown",)
        assert last(task).changes == (), "undo never touches it"

    play(bench, story)


def test_a_file_that_another_attempt_touched_is_told_so_also_when_that_has_ended(bench: Bench) -> None:
    repository(bench, git=True)
    bench.pipeline("small", READING)
    bench.pipeline("writing", STAGE)
    go = bench.gate()
    reads = f"init(('Read', 'Glob')); hold({str(go)!r}); result(); end()"
    writes = (
        "init(); use('Write', {'file_path': 'old.txt'}); open('old.txt', 'w').write('other\\n'); used();"
        "result(); end()"
    )
    bench.claude(f"said = prompt()\nif 'Reads' in said:\n    {reads}\n{writes}")

    async def story(bench: Bench) -> None:
        await bench.started("Reads")
        await bench.until(talks)
        await bench.started("Writes", pipeline="writing")
        await bench.rests(2)
        await bench.let_go(go)
        task = await bench.rests()
        proof = last(task).proof
        assert proof is not None
        assert proof.meanwhile == ("old.txt: changed meanwhile, not by the agent",)

    play(bench, story)


def test_a_read_only_stage_that_wrote_is_failed_with_the_path(bench: Bench) -> None:
    repository(bench, git=True)
    bench.pipeline("small", READING)
    bench.claude(
        "prompt(); init(('Read', 'Glob')); use('Read', {'file_path': 'x'}); used();"
        "use('Write', {'file_path': os.path.abspath('old.txt')}); open('old.txt', 'w').write('bad\\n'); used();"
        "result(); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        failure = last(task).failure
        assert failure is not None
        assert failure.kind == "breach"
        assert [c.path for c in last(task).changes] == ["old.txt"]
        await bench.order(UndoFiles(project=str(bench.root), task=1))
        await bench.until(lambda task: task.undoing is None)

    play(bench, story)
    assert (bench.root / "old.txt").read_text() == "old\n"


# --- time (DA-12) ------------------------------------------------------------------------------------------


class Clock:
    """A wall clock that a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_wall_clock_that_is_set_back_or_jumps_wakes_nobody_too_early(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world_module, "NAP_SECONDS", 0.001)

    async def story(bench: Bench) -> None:
        world = bench.project.world
        clock = Clock(1000.0)
        world._clock = clock
        woken: list[events.Woke] = []
        came = asyncio.Event()

        class Ear(Loop):
            def __init__(self) -> None:
                pass

            def observe(self, task: int, event: object) -> None:
                assert isinstance(event, events.Woke)
                woken.append(event)
                came.set()

        real, world._loop = world._loop, Ear()
        world._wake_at(1, 1010.0)
        clock.now = 500.0  # set back
        loop = asyncio.get_running_loop()
        several = asyncio.Event()
        loop.call_later(0.02, several.set)
        await several.wait()
        assert woken == []
        clock.now = 1011.0
        await came.wait()
        assert woken == [events.Woke(at=1011.0, late=False)]
        came.clear()
        world._wake_at(1, 10.0)  # due long ago: no daemon was there
        await came.wait()
        assert woken[-1].late
        world._loop = real
        assert world._timers == {}

    play(bench, story)


def test_a_retry_that_came_due_while_no_daemon_was_there_happens_once_and_is_marked_late(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settings("[limits]\nretries = 1\n")
    count = bench.base / "count"
    bench.claude(
        f"prompt(); open({str(count)!r}, 'a').write('x')\n"
        f"if open({str(count)!r}).read() == 'x': sys.exit(1)\ninit(); result(); end()"
    )

    async def first(bench: Bench) -> None:
        bench.project.world._wake_at = lambda *_: None  # type: ignore[method-assign]
        await bench.started()
        await bench.until(lambda task: isinstance(stage(task).status, RetryDue))

    async def second(bench: Bench) -> None:
        task = await bench.rests()
        assert at_gate(task), last(task).failure
        facts = await bench.project.store.facts_since(0, 1000)
        woke = [fact for fact in facts if fact.kind == "woke"]
        assert len(woke) == 1
        assert b'"late":true' in woke[0].body

    play(bench, first)
    monkeypatch.setattr(world_module, "LATE_SECONDS", -1e9)
    play(bench, second)
    assert count.read_text() == "xx"


# --- slots -------------------------------------------------------------------------------------------------


def test_a_slot_is_given_to_the_next_as_soon_as_one_is_free(bench: Bench) -> None:
    bench.settings("[limits]\nagents = 2\n")
    bench.claude("prompt(); init(); end()")

    async def story(bench: Bench) -> None:
        for number in range(4):
            await bench.started(f"Task {number}")
        await bench.until(talks, 1)
        await bench.until(talks, 2)
        assert len(bench.project.loop.live()) == 2
        await bench.order(Stop(project=str(bench.root), task=1))
        await bench.until(talks, 3)
        assert len(bench.project.loop.live()) == 2
        for number in (2, 3, 4):
            await bench.order(Abandon(project=str(bench.root), task=number))
        for number in (2, 3, 4):
            await bench.until(lambda task: live_attempt(task) is None, number)

    play(bench, story)


def test_what_runs_already_is_counted_before_a_new_daemon_gives_a_slot(bench: Bench) -> None:
    bench.settings("[limits]\nagents = 1\n")
    other = bench.base / "another"
    other.mkdir()
    bench.claude("prompt(); init(); end()")

    async def first(bench: Bench) -> None:
        await bench.started()
        await bench.until(talks)

    play(bench, first)
    bench.root, whole = other, bench.root

    async def second(bench: Bench) -> None:
        await bench.started()
        task = await bench.task()
        assert task.stages[0].attempts == ()
        bench.root = whole
        await bench.order(Stop(project=str(whole), task=1))
        await bench.rests()
        bench.root = other
        await bench.until(talks)
        await bench.order(Stop(project=str(other), task=1))
        await bench.rests()

    play(bench, second)


# --- what is ours stays out of the person's way ------------------------------------------------------------


def test_our_files_stay_out_of_the_persons_commits(bench: Bench) -> None:
    """DA-11."""
    repository(bench, git=True)

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.rests()

    play(bench, story)
    said = subprocess.run(
        ["git", "status", "--porcelain"], cwd=bench.root, capture_output=True, text=True, check=True
    )
    assert said.stdout == ""


def test_a_project_that_is_behind_a_link_is_the_same_project(bench: Bench) -> None:
    link = bench.base / "link"
    link.symlink_to(bench.root)

    async def story(bench: Bench) -> None:
        await bench.new()
        real, bench.root = bench.root, link
        await bench.run()
        bench.root = real
        assert at_gate(await bench.rests())
        assert list(bench.daemon.projects) == [str(real)]

    play(bench, story)


def test_a_stage_can_be_tried_again_after_its_attempt_was_lost(bench: Bench) -> None:
    bench.settings("[limits]\nretries = 0\n")
    bench.claude("sys.exit(2)")

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        assert not isinstance(stage(task).status, Running)
        bench.claude("prompt(); init(); result(); end()")
        await bench.order(Retry(project=str(bench.root), task=1))
        assert at_gate(await bench.until(lambda task: len(stage(task).attempts) == 2 and rests(task)))

    play(bench, story)
