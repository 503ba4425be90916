"""Following attempt directories and reading transcripts: nothing missed, nothing halved, memory flat."""

import asyncio
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptside_daemon.world import follow
from promptside_daemon.world.follow import Follower, LineReader, read_lines


class Wakes:
    """Counts wakes, and waits for the next."""

    def __init__(self) -> None:
        self.count = 0
        self._woken = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._woken.set()

    async def next(self) -> None:
        async with asyncio.timeout(60):
            await self._woken.wait()
        self._woken.clear()


def following(test: Callable[[Follower], Awaitable[None]]) -> None:
    async def run() -> None:
        follower = Follower(asyncio.get_running_loop())
        try:
            await test(follower)
        finally:
            follower.close()

    asyncio.run(run())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_wake_comes_for_what_was_written_before_and_for_each_kind_of_news(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        wakes = Wakes()
        transcript = tmp_path / "transcript.ndjson"
        with transcript.open("ab", buffering=0) as file, follower.watch(tmp_path, wakes):
            await wakes.next()
            for text in (b"a line\n", b"half a li"):
                file.write(text)
                await wakes.next()
            (tmp_path / "keeper.new").touch()
            await wakes.next()
            (tmp_path.parent / "beside").touch()
            (tmp_path.parent / "beside").rename(tmp_path / "exit.json")
            await wakes.next()
            os.link(transcript, tmp_path / "linked")
            await wakes.next()

    following(test)


def test_each_directory_wakes_its_own_readers_until_they_are_closed(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        one, two = tmp_path / "1", tmp_path / "2"
        one.mkdir()
        two.mkdir()
        first, second, other = Wakes(), Wakes(), Wakes()
        watches = [follower.watch(one, first), follower.watch(one, second), follower.watch(two, other)]
        for wakes in (first, second, other):
            await wakes.next()
        (one / "news").touch()
        await first.next()
        await second.next()
        assert other.count == 1
        watches[0].close()
        watches[0].close()
        (one / "more").touch()
        await second.next()
        watches[1].close()
        (one / "nobody").touch()
        (two / "news").touch()
        await other.next()
        assert (first.count, second.count, other.count) == (2, 3, 2)

    following(test)


def test_a_wake_on_its_way_to_a_closed_watch_is_dropped(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        closed, last = Wakes(), Wakes()
        follower.watch(tmp_path, closed).close()
        follower.watch(tmp_path, last)
        await last.next()
        assert closed.count == 0

    following(test)


def test_an_error_in_one_reader_stops_no_other(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        reported: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: reported.append(str(context["exception"]))
        )

        def fail() -> None:
            raise RuntimeError("a bug")

        wakes = Wakes()
        with follower.watch(tmp_path, fail), follower.watch(tmp_path, wakes):
            await wakes.next()
            (tmp_path / "news").touch()
            await wakes.next()
        assert reported == ["a bug", "a bug"]

    following(test)


def test_more_news_than_the_system_keeps_wakes_everybody(tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("the system keeps more than a test can write")

    async def test(follower: Follower) -> None:
        busy, late = tmp_path / "busy", tmp_path / "late"
        busy.mkdir()
        late.mkdir()
        first, second = Wakes(), Wakes()
        with follower.watch(busy, first), follower.watch(late, second):
            await first.next()
            await second.next()
            with (busy / "a").open("wb", buffering=0) as a, (busy / "b").open("wb", buffering=0) as b:
                # The same news twice in a row counts once.
                for _ in range(most // 2 + 1):
                    a.write(b".")
                    b.write(b".")
            (late / "lost").touch()
            await second.next()

    following(test)


def test_a_directory_that_is_gone_or_never_was(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        with pytest.raises(FileNotFoundError, match="can't be followed"):
            follower.watch(tmp_path / "nowhere", Wakes())
        (tmp_path / "file").touch()
        with pytest.raises(NotADirectoryError):
            follower.watch(tmp_path / "file", Wakes())
        gone, stays = Wakes(), Wakes()
        (tmp_path / "gone").mkdir()
        watch = follower.watch(tmp_path / "gone", gone)
        follower.watch(tmp_path, stays)
        (tmp_path / "gone").rmdir()
        watch.close()
        await stays.next()
        (tmp_path / "news").touch()
        await stays.next()

    following(test)


def test_many_directories_need_one_instance(tmp_path: Path) -> None:
    async def test(follower: Follower) -> None:
        before = descriptors()
        wakes = [Wakes() for _ in range(200)]
        for number, wake in enumerate(wakes):
            (tmp_path / str(number)).mkdir()
            follower.watch(tmp_path / str(number), wake)
        assert descriptors() == before
        for wake in wakes:
            await wake.next()
        for number in range(len(wakes)):
            (tmp_path / str(number) / "news").touch()
        for wake in wakes:
            await wake.next()

    following(test)


def test_lines_are_split_at_newlines_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lines = [b"", b"a\r", "\u2028\x85\x0b\x0c\x1c".encode(), b"\xff\xfe", b"last"]
    path.write_bytes(b"\n".join(lines) + b"\nhalf")
    read, offset = read_lines(path, 0)
    assert read == lines
    assert offset == path.stat().st_size - len(b"half")
    assert read_lines(path, offset) == ([], offset)
    with path.open("ab") as file:
        file.write(b" no more\n")
    assert read_lines(path, offset) == ([b"half no more"], path.stat().st_size)


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    reader = LineReader(tmp_path / "t")
    assert reader.read() == []
    assert reader.unfinished() == b""
    reader.path.write_bytes(b"now\n")
    assert reader.read() == [b"now"]


def test_the_half_line_of_an_agent_that_died_can_be_had(tmp_path: Path) -> None:
    reader = LineReader(tmp_path / "t")
    reader.path.write_bytes(b'{"whole": 1}\n{"hal')
    assert reader.read() == [b'{"whole": 1}']
    assert reader.read() == []
    assert reader.unfinished() == b'{"hal'
    assert reader.offset == 13


@given(st.binary(max_size=60).map(lambda b: b.replace(b"0", b"\n")), st.data())
def test_however_it_arrives_every_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    reader = LineReader(path)
    got: list[bytes] = []
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)))))
    with path.open("wb", buffering=0) as file:
        for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
            file.write(content[start:end])
            limit = data.draw(st.integers(1, 20))
            while lines := reader.read(limit):
                got += lines
                assert len(lines) == 1 or sum(len(line) + 1 for line in lines) <= limit
    *expected, rest = content.split(b"\n")
    assert got == expected
    assert reader.unfinished() == rest
    assert reader.offset == len(content) - len(rest)


def test_a_line_of_megabytes_is_searched_once_while_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    pread = os.pread

    def counting(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal read
        chunk = pread(descriptor, length, offset)
        read += len(chunk)
        return chunk

    monkeypatch.setattr(os, "pread", counting)
    reader = LineReader(tmp_path / "t")
    size = 5_000_000
    with reader.path.open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x" * (size // 100))
            assert reader.read() == []
        file.write(b"\nnext\n")
    assert reader.read() == [b"x" * size]
    assert reader.read() == [b"next"]
    assert read < 2 * size + 3 * follow.CHUNK_BYTES


def test_a_line_without_measure_is_cut_and_the_next_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LONGEST_LINE_BYTES", 1000)
    reader = LineReader(tmp_path / "t")
    reader.path.write_bytes(b"x" * 5000 + b"\nnext\n")
    assert reader.read(100) == [b"x" * 1000]
    assert reader.offset == 5001
    assert reader.read(100) == [b"next"]


def test_memory_stays_flat_however_long_the_transcript(tmp_path: Path) -> None:
    reader = LineReader(tmp_path / "t")
    block = (b"x" * 999 + b"\n") * 1000
    with reader.path.open("wb") as file:
        for _ in range(100):
            file.write(block)
    count = 0
    tracemalloc.start()
    try:
        while lines := reader.read():
            count += len(lines)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 4 * follow.CHUNK_BYTES
