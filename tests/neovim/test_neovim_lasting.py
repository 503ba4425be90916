"""What survives: the output over `:edit`, another editor, a dead daemon and a dead server, without gap or repeat."""

from collections.abc import Callable
from pathlib import Path

from nvim_editor import Neovim, until
from rig.user import User

AtStage = Callable[[int], None]
Open = Callable[..., Neovim]
ADDRESS = "promptside://1/research/1/output"


def written(nvim: Neovim) -> list[str]:
    """Every line of the output, when it has come to rest at these words."""
    lines: list[str] = nvim.lua(
        "return vim.api.nvim_buf_get_lines(vim.fn.bufnr('^' .. ... .. '$'), 0, -1, false)", ADDRESS
    )
    return lines


def at_question(nvim: Neovim) -> list[str]:
    """The output up to the agent's question."""
    until(lambda: any(line.startswith("Ask ") for line in written(nvim)), lambda: written(nvim))
    return written(nvim)


def test_output_is_whole_after_edit_and_in_the_next_editor(
    editors: Open, at_stage: AtStage, sample: User
) -> None:
    """ST-11, reload in mid-stage: the attempt runs and asks while editors come and go."""
    at_stage(0)
    first = editors(file=ADDRESS)
    before = at_question(first)
    assert before[0].startswith("I look at the project first."), before
    first.api.command("edit")
    until(lambda: written(first)[:1] == before[:1])
    assert at_question(first) == before
    first.close()

    second = editors(file=ADDRESS)
    assert at_question(second) == before
    second.do("")
    second.waits("research", "decision")
    sample.kill(sample.daemon())
    second.hear("The Promptside daemon stopped.")
    assert written(second) == before
    second.do("daemon")
    second.hear("The Promptside daemon is there again.")
    second.open_waiting()
    second.goto("] A ·")
    second.keys("<CR>")
    second.lens("Send answers")
    second.keys(",a")
    second.waits("research")
    until(lambda: any(line.startswith("Done:") for line in written(second)), lambda: written(second))
    whole = written(second)
    assert whole[: len(before)] == before
    assert len([line for line in whole if line.startswith("Ask ")]) == 1

    third = editors(file=ADDRESS)
    until(lambda: any(line.startswith("Done:") for line in written(third)), lambda: written(third))
    assert written(third) == whole


def test_a_server_that_died_is_started_again_and_nothing_asks_for_enter(
    nvim: Neovim, at_stage: AtStage, sample: User
) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    servers = [pid for pid, words in sample.processes().items() if words.rstrip().endswith("promptside lsp")]
    assert len(servers) == 1, sample.processes()
    sample.kill(*servers)
    nvim.hear("it is started again")
    until(lambda: nvim.lua("return require('promptside.client').get() ~= nil"))
    nvim.see("Leave common words out")
    nvim.waits("high-level-approaches")
    nvim.never_blocked()
    assert "quit with exit code" not in nvim.lua("return vim.fn.execute('messages')")


def test_a_session_brings_pages_and_output_back(editors: Open, at_stage: AtStage, tmp_path: Path) -> None:
    at_stage(1)
    first = editors()
    first.do("open 1")
    first.see("Select 1 option to approve.")
    first.do("output 1")
    first.api.command("tab Promptside doctor")
    first.see("git ")
    first.api.command(f"mksession {tmp_path}/session.vim")
    first.close()
    second = editors(file="")
    second.api.command(f"silent source {tmp_path}/session.vim")
    second.never_blocked()

    def shown() -> dict[str, str]:
        return {window.buffer.name: "\n".join(window.buffer[:]) for window in second.api.windows}

    wanted = {
        "promptside://1": "Select 1 option to approve.",
        "promptside://1/high-level-approaches/1/output": "Done:",
        "promptside://doctor": "git ",
    }
    until(
        lambda: (there := shown()) and all(words in there.get(name, "") for name, words in wanted.items()),
        shown,
    )


def test_windows_line_ends_stay(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """A form that somebody keeps with CRLF is read, answered and approved, and keeps its line ends."""
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.open_waiting()
    nvim.api.command("set fileformat=dos")
    nvim.api.command("write")
    nvim.goto("] Select A")
    nvim.keys("<CR>")
    nvim.see("- [x] Select A")
    nvim.lens("Approve A")
    nvim.goto("] Select B")
    nvim.keys("<CR>")
    nvim.lens("Approve B")
    assert "- [x] Select A" not in nvim.text
    path = Path(nvim.name)
    nvim.keys(",a")
    nvim.waits("planning")
    until(lambda: not nvim.lua("return vim.bo.modified"))
    text = path.read_bytes()
    assert b"- [x] Select B\r\n" in text
    assert text.count(b"\n") == text.count(b"\r\n")


def test_several_projects_are_one_inbox(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    """ED-15, ED-16: `next` begins with this folder and goes over all; where one is at a task, its step comes first."""
    other = sample.base / "other"
    other.mkdir()
    (other / ".promptside").mkdir()
    (other / "README.md").write_text("# Other\n")
    sample.promptside("project", "add", cwd=other)
    new = ("task", "new", "Answer me", "--agent", "rehearsal-fast:standard")
    sample.promptside(*new, cwd=other)
    sample.promptside("run", "1", cwd=other, code=3)
    at_stage(1)
    nvim.do("")
    nvim.see("Waiting for you (2)")
    assert "a project" in nvim.text
    assert "other" in nvim.text
    # The page is of the server, the statusline of the views, which come for themselves.
    until(lambda: nvim.lua("return require('promptside').statusline()") == "[!2]")
    nvim.do("next")
    until(lambda: nvim.name.startswith(str(sample.project / ".promptside/tasks/")), lambda: nvim.name)
    nvim.do("next")
    until(lambda: nvim.name.startswith(str(other / ".promptside/tasks/")), lambda: nvim.name)
    nvim.api.command("edit promptside://1?project=" + str(other))
    nvim.see("Answer me")
    nvim.do("next")
    until(lambda: nvim.name.startswith(str(other / ".promptside/tasks/")), lambda: nvim.name)
