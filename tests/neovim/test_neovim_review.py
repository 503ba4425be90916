"""Looking at what an attempt changed, commenting on it, taking it back, and permissions (ED-12, ST-14)."""

from collections.abc import Callable
from pathlib import Path

from nvim_editor import Neovim, until
from rig.user import User

AtStage = Callable[[int], None]


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
