"""Streams of an agent drawn for a pipe and for a terminal, of which a small model tells what is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptside_cli.stream import Stream, wrap
from promptside_cli.terminal import Terminal
from promptside_protocol.output import OutputEntry
from promptside_protocol.pages.plain import cells

Make = Callable[..., Terminal]


def text(said: str, block: str | None = "m/0", *, replace: bool = False) -> OutputEntry:
    return OutputEntry(cursor=0, role="text", text=said, block=block, replace=replace)


def tool(said: str, block: str, *, replace: bool = False) -> OutputEntry:
    return OutputEntry(cursor=0, role="tool", text=said, block=block, replace=replace)


def result(said: str, *, ok: bool = True, block: str | None = None) -> OutputEntry:
    return OutputEntry(cursor=0, role="result", text=said, ok=ok, block=block)


def piped(terminal: Terminal, entries: Iterable[OutputEntry], **more: object) -> list[str]:
    stream = Stream(terminal, **more)  # type: ignore[arg-type]  # options of a stream
    stream.add(entries)
    stream.close()
    return terminal.out.getvalue().splitlines()  # type: ignore[attr-defined]  # the fixture's string


class Screen:
    """What a person sees: rows of text, a cursor, and the three movements that we use."""

    def __init__(self) -> None:
        self.rows = [""]
        self.row = 0
        self.column = 0

    def feed(self, data: str) -> None:
        for move in re.findall(r"\x1b\[\d*[AJKm]|\x1b\[[0-9;]*m|\n|\r|[^\x1b\n\r]+", data):
            if move == "\n":
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.rows):
                    self.rows.append("")
            elif move == "\r":
                self.column = 0
            elif move.endswith("A") and move.startswith("\x1b"):
                self.row -= int(move[2:-1] or "1")
                assert self.row >= 0
            elif move == "\x1b[J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                del self.rows[self.row + 1 :]
            elif not move.startswith("\x1b"):
                kept = self.rows[self.row][: self.column]
                self.rows[self.row] = kept + move
                self.column += len(move)

    def seen(self) -> list[str]:
        return [row for row in self.rows if row.strip()]


def on_screen(terminal: Terminal, entries: Iterable[OutputEntry]) -> list[str]:
    stream = Stream(terminal)
    stream.add(entries)
    stream.close()
    screen = Screen()
    screen.feed(terminal.out.getvalue())  # type: ignore[attr-defined]  # the fixture's string
    return screen.seen()


# --- a pipe ------------------------------------------------------------------------------------------------


def test_a_block_is_printed_once_and_whole(terminal: Make) -> None:
    """ST-11: pieces of one block are one text."""
    entries = [text("Hel"), text("lo\nwor"), text("ld"), tool("Read     a.py", "t1"), result("12 lines")]
    assert piped(terminal(), entries) == ["Hello", "world", "Read     a.py", "12 lines"]


def test_the_same_text_again_changes_nothing(terminal: Make) -> None:
    entries = [text("Hello"), text("Hello", replace=True), tool("Read", "t")]
    assert piped(terminal(), entries) == ["Hello", "Read"]


def test_what_is_taken_back_before_it_was_printed_is_never_seen(terminal: Make) -> None:
    assert piped(terminal(), [text("Draft"), text("", replace=True), text("Final", "m/1")]) == ["Final"]


def test_what_is_taken_back_after_it_was_printed_is_said(terminal: Make) -> None:
    entries = [text("Draft"), tool("Read", "t"), text("", replace=True), text("Final", "m/1")]
    assert piped(terminal(), entries) == ["Draft", "Read", "(the agent took this back)", "Final"]


def test_what_a_call_made_is_told_with_the_call_when_others_stand_between(terminal: Make) -> None:
    entries = [
        tool("Edit     a.py", "t1"),
        tool("Run      x", "t2"),
        tool("Edit     a.py  +6 -3", "t1", replace=True),
        result("exit 1, 4 s", ok=False, block="t2/result"),
    ]
    printed = ["Edit     a.py", "Run      x", "Edit     a.py  +6 -3", "Run      x  exit 1, 4 s"]
    assert piped(terminal(), entries) == printed


def test_what_was_printed_and_changed_is_said(terminal: Make) -> None:
    entries = [text("One"), tool("Read", "t"), text("Two", replace=True)]
    assert piped(terminal(), entries) == ["One", "Read", "(the agent took this back and wrote:)", "Two"]


def test_paragraphs_come_as_they_are_whole(terminal: Make) -> None:
    into = terminal()
    stream = Stream(into)
    stream.add([text("First.\n\nSecond is not yet wh")])
    assert into.out.getvalue() == "First.\n\n"  # type: ignore[attr-defined]  # the fixture's string
    stream.add([text("ole.\n")])
    stream.close()
    assert into.out.getvalue() == "First.\n\nSecond is not yet whole.\n"  # type: ignore[attr-defined]  # see above


def test_lines_are_stamped_and_never_wrapped_in_a_pipe(terminal: Make) -> None:
    long = "word " * 60
    lines = piped(terminal(), [text(f"{long}\nnext")], stamped=True, indent="  ")
    assert [re.fullmatch(r"\d\d:\d\d:\d\d    (.*)", line)[1] for line in lines] == [long.strip(), "next"]  # type: ignore[index]  # matches


def test_only_the_lines_that_are_wanted(terminal: Make) -> None:
    """GA-10: `log --grep`."""
    entries = [text("a\nb\nab"), result("b")]
    assert piped(terminal(), entries, only=re.compile("b")) == ["b", "ab", "b"]


@pytest.mark.parametrize("tty", [False, True])
def test_nothing_of_an_agent_reaches_the_terminal_raw(terminal: Make, *, tty: bool) -> None:
    into = terminal(tty=tty)
    stream = Stream(into)
    stream.add([text("\x1b[2Jcle\x07ar"), result("\x1b]0;title\x07done"), tool("Run \x9b31m", "t")])
    stream.close()
    written = into.out.getvalue()  # type: ignore[attr-defined]  # the fixture's string
    assert "\x07" not in written
    assert "[2J" not in written
    assert "title" not in written
    assert "\x9b" not in written


def test_roles_have_their_colours(terminal: Make) -> None:
    into = terminal(tty=True, color="always")
    stream = Stream(into)
    stream.add([result("exit 1", ok=False), tool("Run      x", "t")])
    stream.close()
    written = into.out.getvalue()  # type: ignore[attr-defined]  # the fixture's string
    assert "\x1b[31mexit 1\x1b[0m" in written
    assert "\x1b[2mRun      x\x1b[0m" in written


# --- a terminal --------------------------------------------------------------------------------------------


def test_a_block_grows_in_place(terminal: Make) -> None:
    entries = [text("The que"), text("ue drops "), text("it.\nThen"), text(" more."), result("done")]
    assert on_screen(terminal(tty=True), entries) == ["The queue drops it.", "Then more.", "done"]


def test_a_block_that_is_taken_back_vanishes(terminal: Make) -> None:
    entries = [result("before"), text("Draft\nof two"), text("", replace=True), text("Final", "m/1")]
    assert on_screen(terminal(tty=True), entries) == ["before", "Final"]


def test_a_block_that_is_replaced_is_drawn_again(terminal: Make) -> None:
    entries = [result("before"), text("One\nTwo\n"), text("Eins\nZwei", replace=True), tool("Read", "t")]
    assert on_screen(terminal(tty=True), entries) == ["before", "Eins", "Zwei", "Read"]


def test_a_block_that_is_out_of_reach_is_said_to_be_replaced(terminal: Make) -> None:
    tall = "\n".join(f"line {n}" for n in range(60))
    seen = on_screen(terminal(tty=True), [text(tall), text("Short.", replace=True)])
    assert seen[-2:] == ["(the agent took this back and wrote:)", "Short."]


def test_a_dumb_terminal_is_never_moved_in(terminal: Make) -> None:
    into = terminal(tty=True, term="dumb")
    stream = Stream(into)
    stream.add([text("One"), text("Two", replace=True)])
    stream.close()
    assert into.out.getvalue() == "Two\n"  # type: ignore[attr-defined]  # the fixture's string


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.text("xy é日\n", max_size=30), st.booleans()),
        max_size=12,
    )
)
def test_the_screen_shows_each_block_as_it_ended(steps: list[tuple[str, str, bool]]) -> None:
    """One block after the other, in pieces and replaced: what is seen is what they are in the end."""
    import os

    os.environ["TERM"] = "xterm"
    from io import StringIO

    class Tty(StringIO):
        def isatty(self) -> bool:
            return True

    into = Terminal(json=False, color="never", stdout=Tty(), stderr=Tty())
    ended = {"a": "", "b": ""}
    entries = []
    for block, said, replace in sorted(steps, key=lambda step: step[0]):
        ended[block] = said if replace else ended[block] + said
        entries.append(text(said, block, replace=replace))
    wanted = [line.rstrip() for block in "ab" for line in ended[block].split("\n") if line.strip()]
    assert on_screen(into, entries) == [row for line in wanted for row in wrap(line, 100)]


# --- wrapping ----------------------------------------------------------------------------------------------


def test_wrapping_keeps_indents_and_never_cuts_a_path() -> None:
    assert wrap("short", 10) == ["short"]
    assert wrap("one two three four", 9) == ["one two", "three", "four"]
    assert wrap("  - item that is long enough", 16) == ["  - item that is", "    long enough"]
    path = "/a/very/long/path/that/is/wider/than/it.py"
    assert wrap(f"see {path} there", 12) == ["see", path, "there"]


@given(st.text("ab  -日", max_size=80), st.integers(min_value=4, max_value=40))
def test_wrapping_loses_no_letter_and_fits_where_it_can(line: str, width: int) -> None:
    rows = wrap(line, width)
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")
    longest = max((cells(word) for word in line.split(" ")), default=0)
    if longest <= width // 2:
        assert all(cells(row.rstrip()) <= width for row in rows)
