"""What clients follow: no gap, no repeat, whoever is slow or comes back (CW-16)."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
from rig.bench import STAGE, Bench, last, rests, talks

from promptside_protocol.commands import AddProject, RemoveProject
from promptside_protocol.errors import PromptsideError
from promptside_protocol.notices import (
    ActivityChanged,
    CaughtUp,
    EventHappened,
    Notice,
    OutputCame,
    ProjectGone,
    TaskChanged,
)
from promptside_protocol.output import OutputEntry
from promptside_protocol.queries import FollowOutput, Output, OutputPage, Watch


def play(bench: Bench, story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        async with bench.begin():
            await story(bench)

    asyncio.run(main())


def watching(bench: Bench, cursor: int = 0, **more: bool) -> AsyncGenerator[Notice, None]:
    query = Watch(project=str(bench.root), cursors={str(bench.root): cursor}, **more)
    return bench.daemon.flow(query, bench.who, 1)


async def until(flow: AsyncGenerator[Notice, None], enough: Callable[[Notice], object]) -> list[Notice]:
    """The notices up to the first that is enough, it included."""
    found: list[Notice] = []
    async for notice in flow:
        found.append(notice)
        if enough(notice):
            return found
    raise AssertionError(f"it ended before that: {found}")


# --- tasks -------------------------------------------------------------------------------------------------


def test_everything_is_told_before_it_is_said_that_this_was_all(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        for number in range(230):
            await bench.new(f"Task {number}")
        notices = await until(watching(bench), lambda one: isinstance(one, CaughtUp))
        told = [one.task.id for one in notices if isinstance(one, TaskChanged)]
        assert told == list(range(1, 231))
        assert notices[-1] == CaughtUp(flow=1, project=str(bench.root), seq=bench.project.store.head)

    play(bench, story)


@pytest.mark.parametrize("events", [True, False])
def test_who_comes_back_at_any_cursor_misses_nothing_and_hears_nothing_twice(
    bench: Bench, events: bool
) -> None:
    """Read in pieces of any length while tasks are being made, each piece by another connection."""

    async def story(bench: Bench) -> None:
        async def make() -> None:
            for number in range(60):
                await bench.new(f"Task {number}")

        making = asyncio.create_task(make())
        seqs: list[int] = []
        tasks: set[int] = set()
        piece = 0
        while len(tasks) < 60:
            piece = piece % 7 + 1
            flow = watching(bench, seqs[-1] if seqs else 0, events=events)
            taken = 0
            async for notice in flow:
                if isinstance(notice, TaskChanged):
                    seqs.append(notice.seq)
                    tasks.add(notice.task.id)
                elif isinstance(notice, EventHappened):
                    seqs.append(notice.seq)
                    tasks.add(notice.task)
                taken += 1
                if taken >= piece or len(tasks) == 60:
                    break
            await flow.aclose()
        await making
        assert seqs == sorted(set(seqs))
        if events:
            assert seqs == list(range(1, 61))

    play(bench, story)


def test_a_task_that_changes_often_is_told_as_it_is_now(bench: Bench) -> None:
    """A slow client skips states, never the last one."""

    async def story(bench: Bench) -> None:
        flow = watching(bench)
        await until(flow, lambda one: isinstance(one, CaughtUp))
        await bench.started()
        await bench.rests()
        first = await anext(flow)
        assert isinstance(first, TaskChanged)
        assert first.seq == bench.project.store.head
        assert first.task.waiting_for is not None
        await flow.aclose()

    play(bench, story)


def test_what_the_agent_does_is_told_also_if_it_came_while_something_else_was_told(bench: Bench) -> None:
    bench.claude("prompt(); init(); use('Bash', {'command': 'make one'}); end()")

    async def story(bench: Bench) -> None:
        flow = watching(bench, activity=True)
        await bench.started()
        notices = await until(flow, lambda one: isinstance(one, ActivityChanged))
        assert isinstance(notices[-1], ActivityChanged)
        assert "make one" in notices[-1].activity.line
        await flow.aclose()

    play(bench, story)


def test_a_watch_of_all_projects_meets_new_ones_and_outlives_those_that_go(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        other = bench.base / "another"
        other.mkdir()
        flow = bench.daemon.flow(Watch(), bench.who, 1)
        await until(flow, lambda one: isinstance(one, CaughtUp))
        await bench.order(AddProject(project=str(other)))
        assert await anext(flow) == CaughtUp(flow=1, project=str(other), seq=0)
        await bench.order(RemoveProject(project=str(other)))
        await bench.new()
        assert await anext(flow) == ProjectGone(flow=1, project=str(other))
        notice = await anext(flow)
        assert isinstance(notice, TaskChanged)
        await flow.aclose()

    play(bench, story)


def test_who_comes_back_is_told_of_a_project_that_has_gone_meanwhile(bench: Bench) -> None:
    """Also of one that is there again, with another database: its cursor means nothing there."""

    async def story(bench: Bench) -> None:
        root = str(bench.root)
        await bench.new()
        cursors = {root: 999, str(bench.base / "never was"): 7}
        flow = bench.daemon.flow(Watch(cursors=cursors), bench.who, 1)
        assert await anext(flow) == ProjectGone(flow=1, project=root)
        assert await anext(flow) == ProjectGone(flow=1, project=str(bench.base / "never was"))
        assert isinstance(await anext(flow), TaskChanged)
        await flow.aclose()

    play(bench, story)


def test_a_watch_of_a_project_that_goes_is_told(bench: Bench) -> None:
    async def story(bench: Bench) -> None:
        flow = watching(bench)
        await anext(flow)
        following = asyncio.ensure_future(anext(flow))
        await asyncio.sleep(0)
        await bench.order(RemoveProject(project=str(bench.root)))
        with pytest.raises(PromptsideError, match="no project"):
            await following

    play(bench, story)


# --- output ------------------------------------------------------------------------------------------------

SPEAKS = """
prompt(); init()
def delta(**event):
    line(type='stream_event', event=event)
for n in range(6):
    message = {'id': f'm{n}', 'type': 'message', 'role': 'assistant', 'model': 'fake'}
    delta(type='message_start', message={**message, 'content': [], 'usage': {}})
    delta(type='content_block_start', index=0, content_block={'type': 'text', 'text': ''})
    words = f'Sentence {n} of it. Another line\\n'
    for at in range(0, len(words), 5):
        delta(type='content_block_delta', index=0, delta={'type': 'text_delta', 'text': words[at:at + 5]})
    delta(type='content_block_stop', index=0)
    line(type='assistant', message={**message, 'content': [{'type': 'text', 'text': words}]})
    delta(type='message_stop')
    use('Bash', {'command': f'make {n}'}, f't{n}'); used('made', f't{n}')
result('Done.'); end()
"""


def said(entries: list[OutputEntry]) -> str:
    """All that was shown, as one text."""
    return "".join(f"{e.role}:{e.text}" if e.role != "text" else e.text for e in entries)


async def follow(bench: Bench, cursor: int = 0) -> list[OutputCame]:
    flow = bench.daemon.flow(FollowOutput(project=str(bench.root), task=1, cursor=cursor), bench.who, 1)
    return [notice async for notice in flow if isinstance(notice, OutputCame)]


def test_output_that_is_resumed_at_any_cursor_is_the_same_output(bench: Bench) -> None:
    bench.claude(SPEAKS)

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.rests()
        whole = await follow(bench)
        assert whole[-1].ended
        entries = [entry for notice in whole for entry in notice.entries]
        text = said(entries)
        assert text.count("Sentence 3 of it.") == 1
        for cut in sorted({entry.cursor for entry in entries}):
            before = [entry for entry in entries if entry.cursor <= cut]
            after = [entry for notice in await follow(bench, cut) for entry in notice.entries]
            if cut == entries[-1].cursor:
                after = [entry for entry in after if entry.cursor > cut]
            assert said(before + after) == text, cut

    play(bench, story)


def test_output_is_followed_while_it_comes_and_ends_with_its_attempt(bench: Bench) -> None:
    go = bench.gate()
    bench.claude(f"prompt(); init(); text('One'); hold({str(go)!r}); text('Two'); result('Three'); end()")

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.until(talks)
        came: list[OutputEntry] = []
        async for notice in bench.daemon.flow(FollowOutput(project=str(bench.root), task=1), bench.who, 1):
            assert isinstance(notice, OutputCame)
            came += notice.entries
            if "One" in said(came) and "Two" not in said(came):
                await bench.let_go(go)
        assert "Two" in said(came)

    play(bench, story)


def test_a_follower_that_never_reads_holds_up_nobody(bench: Bench) -> None:
    bench.claude("prompt(); init()\nfor n in range(2000): text('x' * 500 + str(n))\nresult('Done.'); end()")

    async def story(bench: Bench) -> None:
        flow = bench.daemon.flow(FollowOutput(project=str(bench.root), task=1), bench.who, 1)
        watch = watching(bench, activity=True)
        await bench.started()
        await anext(watch)
        await bench.until(talks)
        await anext(flow)
        await bench.rests()
        rest = [notice async for notice in flow]
        assert rest[-1].ended if isinstance(rest[-1], OutputCame) else False
        await watch.aclose()

    play(bench, story)


def test_many_followers_of_an_end_all_hear_it(bench: Bench) -> None:
    """Woken by the very commit that ends the attempt, each finds it ended."""
    bench.claude("prompt(); init(); result('Done.'); end()")

    async def story(bench: Bench) -> None:
        for number in range(1, 6):
            await bench.started(f"Task {number}")
            await bench.until(lambda task: task.stages[0].attempts, number)
            query = FollowOutput(project=str(bench.root), task=number)

            async def hear(query: FollowOutput = query) -> bool:
                return [
                    n.ended async for n in bench.daemon.flow(query, bench.who, 1) if isinstance(n, OutputCame)
                ][-1]

            assert all(await asyncio.gather(*(hear() for _ in range(10))))

    play(bench, story)


def test_pages_of_output_are_the_same_as_the_whole(bench: Bench) -> None:
    bench.claude(SPEAKS + "\n")

    async def story(bench: Bench) -> None:
        await bench.started()
        await bench.rests()
        whole = said([entry for notice in await follow(bench) for entry in notice.entries])
        entries: list[OutputEntry] = []
        cursor = 0
        while True:
            query = Output(project=str(bench.root), task=1, cursor=cursor, limit=1)
            page = await bench.daemon.ask(query, bench.who)
            assert isinstance(page, OutputPage)
            entries += page.entries
            if page.ended:
                break
            assert page.cursor > cursor
            cursor = page.cursor
        assert said(entries) == whole

    play(bench, story)


def test_the_end_of_a_flood_on_standard_error_is_shown_and_the_rest_not_read(bench: Bench) -> None:
    bench.claude(
        "prompt(); init()\nfor n in range(20000): sys.stderr.write(f'line {n} ' + 'e' * 100 + chr(10))\n"
        "sys.stderr.flush(); result('Done.'); end()"
    )

    async def story(bench: Bench) -> None:
        await bench.started()
        task = await bench.rests()
        entries = [entry for notice in await follow(bench) for entry in notice.entries]
        lines = [entry.text for entry in entries if entry.role == "stderr"]
        assert lines[-1].startswith("line 19999 ")
        assert all(line.startswith("line ") for line in lines)
        assert len(lines) <= 200
        assert (bench.directory(last(task)) / "stderr.log").stat().st_size > 2_000_000

    play(bench, story)


def test_an_attempt_that_waits_for_its_slot_is_followed_from_its_start(bench: Bench) -> None:
    bench.settings("[limits]\nagents = 1\n")
    bench.pipeline("small", STAGE)
    go = bench.gate()
    bench.claude(f"said = prompt(); init(); 'One' in said and hold({str(go)!r}); result('Done.'); end()")

    async def story(bench: Bench) -> None:
        await bench.started("One")
        await bench.until(talks)
        await bench.started("Two")
        assert not (await bench.task(2)).stages[0].attempts, "one agent at a time"
        await bench.let_go(go)
        await bench.until(rests, 2)

    play(bench, story)
