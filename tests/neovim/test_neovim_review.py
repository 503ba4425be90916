"""Looking at what an attempt changed, commenting on it, taking it back, and permissions (ED-12, ST-14)."""

from collections.abc import Callable
from pathlib import Path

from nvim_editor import Neovim, until
from rig.user import User

AtStage = Callable[[int], None]
MAPPED = "return vim.tbl_map(function(map) return map.lhs end, vim.api.nvim_buf_get_keymap(0, 'n'))"


def asked_for_permission(nvim: Neovim, at_stage: AtStage) -> None:
    """Implementation asks for its first permission."""
    at_stage(3)
    nvim.do("")
    nvim.waits("implementation", "decision")


def implemented(nvim: Neovim, at_stage: AtStage) -> None:
    """Implementation has changed files and waits at its gate."""
    asked_for_permission(nvim, at_stage)
    nvim.do("allow task")
    nvim.waits("implementation")


def test_a_permission_allowed_for_good_is_listed_and_removed(nvim: Neovim, at_stage: AtStage) -> None:
    """ST-14"""
    asked_for_permission(nvim, at_stage)
    until(lambda: nvim.lua("return require('promptside').statusline()") == "[!1]")
    nvim.do("allow always")
    nvim.waits("implementation")
    nvim.do("rules")
    nvim.see("python3 -m unittest")
    nvim.goto("python3 -m unittest")
    nvim.answer("Remove")
    nvim.keys("<CR>")
    nvim.hear("Removed: the agent asks again.")
    nvim.do("rules")
    until(lambda: "Bash" not in nvim.text, lambda: nvim.text)


def test_the_page_of_a_task_allows_and_denies(nvim: Neovim, at_stage: AtStage) -> None:
    """ST-14"""
    asked_for_permission(nvim, at_stage)
    nvim.do("open 1")
    nvim.see("python3 -m unittest")
    nvim.keys("a")
    nvim.waits("implementation")


def test_a_denial_carries_a_word_to_the_agent(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """ST-14"""
    asked_for_permission(nvim, at_stage)
    nvim.do("deny Only read the tests, please.")
    nvim.hear("Denied")
    decision = until(lambda: [d for d in sample.task()["decisions"] if d["status"] == "denied"])
    assert decision[0]["answer"] == "denied: Only read the tests, please."


def test_changes_are_listed_and_compared(nvim: Neovim, at_stage: AtStage) -> None:
    """ED-12"""
    implemented(nvim, at_stage)
    nvim.do("changes")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    listed = nvim.lua(
        "return vim.tbl_map(function(i) return vim.fn.bufname(i.bufnr) .. ' ' .. i.text end, vim.fn.getqflist())"
    )
    assert any(one.endswith("wordcount/counting.py changed +6 -1") for one in listed), listed
    at = next(row for row, one in enumerate(listed, 1) if "counting.py" in one)
    nvim.api.current.window.cursor = (at, 0)
    nvim.keys("<CR>")
    until(lambda: len(nvim.api.tabpages) == 2, lambda: nvim.said)
    sides = nvim.api.current.tabpage.windows
    until(lambda: len(sides[0].buffer) > 1, "what was before")
    assert [side.buffer.name.startswith("promptside://before/") for side in sides] == [True, False]
    assert all(nvim.lua("return vim.wo[...].diff", side.handle) for side in sides)
    nvim.api.command("tabclose")
    nvim.api.command("cclose")
    nvim.do("changes!")
    until(lambda: len(nvim.api.tabpages) == len(listed) + 1, lambda: nvim.said)
    nvim.api.command("tablast")
    left, right = nvim.api.current.tabpage.windows
    assert left.buffer.name.startswith("promptside://before/1/implementation/1/wordcount/"), left.buffer.name
    until(lambda: len(left.buffer) > 1, "what was before")
    assert left.buffer[:] != right.buffer[:]
    assert nvim.lua("return vim.wo[...].diff", left.handle) is True
    assert nvim.lua("return vim.bo[...].filetype", left.buffer.number) == "python"
    assert "W10" not in nvim.lua("return vim.fn.execute('messages')")  # it would wait a second for each file


def listed(nvim: Neovim, at_stage: AtStage) -> list[str]:
    """The list of what Implementation has changed, opened from the page of the task; its paths."""
    implemented(nvim, at_stage)
    nvim.do("open 1")
    nvim.see("Waits for you: your approval")
    nvim.do("output")
    nvim.keys("c")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    return [line.split()[0] for line in nvim.api.current.buffer[:]]


def sides(nvim: Neovim) -> list[str]:
    """The names of the windows of the tab, from the left."""
    return [window.buffer.name for window in nvim.api.current.tabpage.windows]


def test_the_list_of_changes_has_keys_and_goes_back_where_one_was(nvim: Neovim, at_stage: AtStage) -> None:
    """ED-12"""
    paths = listed(nvim, at_stage)
    at = paths.index("wordcount/counting.py")
    assert nvim.api.current.buffer[at].split() == ["wordcount/counting.py", "changed", "+6", "-1"]
    assert len({line.find("changed") for line in nvim.api.current.buffer[:] if "changed" in line}) == 1
    nvim.keys("g?")
    assert "the file beside what it was" in nvim.text
    nvim.keys("q")
    nvim.keys("q")
    assert nvim.name == "promptside://1"
    assert nvim.lua("return vim.fn.getqflist({ winid = 0 }).winid") == 0
    nvim.keys("c")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    places = nvim.api.current.window.handle
    nvim.api.current.window.cursor = (at + 1, 0)
    nvim.keys("gf")
    assert nvim.name.endswith("/wordcount/counting.py")
    assert nvim.api.current.window.handle != places
    assert "promptside://1" not in sides(nvim), "it took the place of the page, where one came from"
    assert any("output" in name for name in sides(nvim))
    assert nvim.lua("return vim.fn.getqflist({ idx = 0 }).idx") == at + 1


def test_a_list_of_somebody_else_keeps_its_own_keys(nvim: Neovim, at_stage: AtStage) -> None:
    """ED-12"""
    listed(nvim, at_stage)
    assert {"<CR>", "gf", "o", "q", "g?"} <= set(nvim.lua(MAPPED))
    nvim.lua(
        "vim.fn.setqflist({}, ' ', { items = { { filename = 'README.md', lnum = 1, text = 'theirs' } } })"
    )
    nvim.see("README.md|1| theirs")
    assert not {"gf", "o", "q", "g?"} & set(nvim.lua(MAPPED))
    nvim.keys("<CR>")
    assert nvim.name.endswith("/README.md")
    nvim.api.command("copen")
    nvim.api.command("colder")
    nvim.see("changed +6 -1")
    assert {"<CR>", "gf", "o", "q", "g?"} <= set(nvim.lua(MAPPED))


def test_files_are_compared_one_after_the_other_in_one_tab(nvim: Neovim, at_stage: AtStage) -> None:
    """ED-12"""
    paths = listed(nvim, at_stage)
    at = paths.index("wordcount/counting.py")
    nvim.api.current.window.cursor = (at + 1, 0)
    nvim.keys("<CR>")
    until(lambda: len(nvim.api.tabpages) == 2, lambda: nvim.said)

    def compared(path: str) -> None:
        until(
            lambda: [name.split("/1/implementation/1/")[-1] for name in sides(nvim)] == [path, path],
            lambda: sides(nvim),
        )
        left, right = nvim.api.current.tabpage.windows
        assert left.buffer.name.startswith("promptside://before/")
        assert right.buffer.name.startswith("promptside://after/")
        assert [nvim.lua("return vim.wo[...].diff", w.handle) for w in (left, right)] == [True, True]
        bars = [nvim.lua("return vim.wo[...].winbar", window.handle) for window in (left, right)]
        assert f"Before: {path}" in bars[0], bars
        assert "After Implementation, attempt 1" in bars[1], bars
        assert f"{paths.index(path) + 1} of {len(paths)}  g? help" in bars[0]
        assert "]q [q  q close" in bars[1]

    compared(paths[at])
    right = nvim.api.current.tabpage.windows[1]
    first = "return vim.api.nvim_win_call(..., function() return vim.fn.diff_hlID(vim.fn.line('.'), 1) end)"
    until(lambda: right.cursor[0] > 1, "the first change")
    assert nvim.lua(first, right.handle) > 0
    assert nvim.lua("return vim.fn.getqflist({ idx = 0 }).idx") == at + 1
    nvim.keys("[q")
    compared(paths[at - 1])
    nvim.keys("]q")
    compared(paths[at])
    nvim.api.command("cprevious")
    compared(paths[at - 1])
    nvim.api.current.window = nvim.api.current.tabpage.windows[0]
    nvim.api.command("cnext")
    compared(paths[at])
    nvim.keys("99[q")
    nvim.hear("This is the first file.")
    nvim.keys("[q")
    compared(paths[at - 1])
    nvim.keys("g?")
    assert "close, and back to the list" in nvim.text
    nvim.keys("q")
    nvim.keys("q")
    assert len(nvim.api.tabpages) == 1
    assert nvim.lua("return vim.bo.buftype") == "quickfix"
    assert nvim.api.current.window.cursor[0] == at, "where one has come to meanwhile"


def test_another_file_is_no_side_of_a_comparison(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """ED-12: and a file that is still written keeps its own keys, and its own look, when it was compared."""
    (sample.project / "mine.txt").write_text("mine\n")
    asked_for_permission(nvim, at_stage)
    nvim.do("changes")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    nvim.keys("<CR>")
    until(lambda: len(nvim.api.tabpages) == 2, lambda: nvim.said)
    left, right = nvim.api.current.tabpage.windows
    own = right.buffer.name
    assert own.startswith(str(sample.project)), own
    assert nvim.api.current.window.handle == left.handle, "where the keys are"
    nvim.api.current.window = right
    assert not {"q", "]q", "[q", "g?"} & set(nvim.lua(MAPPED))
    bar = nvim.lua("return vim.wo[...].winbar", right.handle)
    assert "Now" in bar, bar
    assert "keys: in the left window" in bar, bar
    nvim.api.current.window = left
    nvim.keys("]q")
    until(lambda: right.buffer.name not in ("", own), lambda: sides(nvim))
    nvim.api.command("edit mine.txt")
    until(lambda: not nvim.lua("return vim.wo[...].diff", right.handle), "no side of a comparison")
    assert not nvim.lua("return vim.wo[...].diff", left.handle)
    assert [nvim.lua("return vim.wo[...].winbar", window.handle) for window in (left, right)] == ["", ""]
    nvim.api.command("tabclose")
    nvim.api.command("cclose")
    nvim.api.command(f"edit {own}")
    assert nvim.lua("return { vim.wo.winbar, vim.wo.diff, vim.wo.scrollbind }") == ["", False, False]
    nvim.never_blocked()


def test_the_output_has_the_keys_of_its_task_and_stays(nvim: Neovim, at_stage: AtStage) -> None:
    """ED-8: what is opened from it opens beside it."""
    asked_for_permission(nvim, at_stage)
    nvim.do("output")
    output = next(window for window in nvim.api.windows if "output" in window.buffer.name)

    def there() -> bool:
        return bool(output.buffer.name.endswith("/output"))

    nvim.api.current.window = output
    nvim.keys(",w")
    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    assert there()
    nvim.api.current.window = output
    nvim.answer("Allow for this task")
    nvim.keys(".")
    nvim.waits("implementation")
    assert any("Redo…" in label or "Allow" in label for label in nvim.asked[-1]["labels"])
    nvim.hear("Allowed.")
    nvim.hear("“Leave common words out” waits for you: Implementation.  :Promptside next")
    assert nvim.api.current.window.handle == output.handle
    nvim.keys("c")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    nvim.keys("q")
    assert nvim.api.current.window.handle == output.handle
    nvim.api.command("only")
    nvim.do("")
    assert nvim.name == "promptside://tasks"
    assert there(), "it is the only window, and stays"
    nvim.api.current.window = output
    nvim.answer("Shorter, please.")
    nvim.keys("R")
    nvim.hear("Sent back to the agent.")


def test_what_waits_after_an_approval_is_said_where_it_is_in_view_too(
    nvim: Neovim, at_stage: AtStage
) -> None:
    """ED-8: the line would stay at `Approved.`, as if nothing had come of it."""
    at_stage(2)
    nvim.do("open 1")
    nvim.waits("planning")
    nvim.see("Waits for you: your approval")
    said = nvim.said.count("waits for you: Planning.")
    nvim.do("redo Shorter.")
    nvim.hear("Sent back to the agent.")
    until(lambda: nvim.said.count("waits for you: Planning.") == said + 1, lambda: nvim.said)
    assert nvim.said.endswith("“Leave common words out” waits for you: Planning.  :Promptside next")


def test_line_comments_go_back_as_one_redo(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """ED-12"""
    implemented(nvim, at_stage)
    nvim.api.command("edit wordcount/counting.py")
    nvim.api.command("3,4Promptside comment Say why.")
    nvim.hear("1 comment for task 1")
    nvim.api.current.window.cursor = (8, 0)
    nvim.answer("And this too.")
    nvim.do("comment")
    nvim.hear("2 comments for task 1")
    nvim.do("redo")
    nvim.hear("Sent back to the agent.")
    attempt = until(lambda: (a := sample.stage("implementation")["attempts"])[1:] and a[1])
    prompt = Path(attempt["prompt"]).read_text("utf-8")
    assert "About `wordcount/counting.py`, lines 3-4:" in prompt, prompt
    assert "Say why." in prompt
    assert "About `wordcount/counting.py`, line 8:" in prompt
    assert "And this too." in prompt
    assert nvim.lua("return require('promptside.comments').of('', 1)") == []


def test_one_file_is_taken_back(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """ED-12, ED-11: the buffer is loaded anew."""
    nvim.api.command("edit wordcount/counting.py")
    before = nvim.text
    implemented(nvim, at_stage)
    nvim.api.command("buffer wordcount/counting.py")
    until(lambda: nvim.text != before, "what the agent wrote")
    nvim.do("undo! wordcount/counting.py")
    nvim.hear("as before the attempt")
    until(lambda: nvim.text == before, lambda: nvim.text)
    assert "stop" in (sample.project / "wordcount" / "__main__.py").read_text()
    nvim.never_blocked()


def test_older_attempts_transcript_and_prompt_are_to_be_read(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(2)
    nvim.do("")
    nvim.waits("planning")
    nvim.do("redo Shorter.")
    until(lambda: len(nvim.view["stages"][2]["attempts"]) == 2)
    nvim.waits("planning")
    nvim.api.command("edit promptside://1/planning/1")
    nvim.see("# Plan")
    assert nvim.lua("return {vim.bo.filetype, vim.bo.readonly, vim.bo.modifiable}") == [
        "markdown",
        True,
        False,
    ]
    nvim.do("transcript 1")
    nvim.see("Done")
    nvim.do("prompt 1")
    nvim.see("Shorter.")
    assert nvim.name == "promptside://prompt/1/planning-2.md"
