"""What stands in Neovim's buffers: keys, output, unsaved files, other clients, what is missing (ED-8, ED-11)."""

from collections.abc import Callable
from pathlib import Path

import pytest
from nvim_editor import PLUGIN, Neovim, Terminal, until
from rig.user import User

AtStage = Callable[[int], None]
Open = Callable[..., Neovim]
MAPPED = "return vim.tbl_map(function(map) return map.lhs end, vim.api.nvim_buf_get_keymap(0, 'n'))"


def test_keys_are_those_that_the_help_shows(nvim: Neovim) -> None:
    nvim.do("")
    nvim.see("New Task…")
    mapped = set(nvim.lua(MAPPED))
    nvim.keys("g?")
    shown = [line.split()[0] for line in nvim.text.split("\n\n")[0].splitlines()]
    assert set(shown) == mapped
    assert len(shown) == len(set(shown))
    nvim.keys("q")
    assert nvim.name == "promptside://tasks"


def test_the_keys_of_a_form_say_what_its_signs_are(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.open_waiting()
    nvim.keys("g?")
    assert "E W I H in the margin: what is wrong or lacking; ]d goes there, <C-W>d says it" in nvim.text
    assert "<C-X><C-O> while you type: the paths and choices that can stand there" in nvim.text


def test_a_page_begins_at_what_waits_whenever_something_new_does(nvim: Neovim, at_stage: AtStage) -> None:
    """But never under the hand: Enter would do something else than what was read."""
    at_stage(1)
    nvim.do("open 1")
    nvim.waits("high-level-approaches")
    nvim.see("PR Preparation")
    nvim.goto("PR Preparation")
    nvim.do("select A")
    until(lambda: nvim.view["waiting_for"]["gate"]["selected"] == ["A"], lambda: nvim.said)
    nvim.do("approve")
    nvim.waits("planning")
    nvim.see("! Planning")
    assert "PR Preparation" in nvim.api.current.line
    nvim.do("")
    nvim.see("Waiting for you (1)")
    nvim.keys("<CR>")
    until(lambda: nvim.api.current.line.strip() == "> Open document", lambda: nvim.text)


def test_enter_on_an_option_opens_it_there_and_selects_it(nvim: Neovim, at_stage: AtStage) -> None:
    """The other options give way, and a second Enter takes nothing back."""
    at_stage(1)
    nvim.do("open 1")
    nvim.waits("high-level-approaches")
    nvim.see("B  ")
    nvim.do("select A")
    until(lambda: nvim.view["waiting_for"]["gate"]["selected"] == ["A"], lambda: nvim.said)
    for _ in range(2):
        nvim.goto(" B  ")
        nvim.keys("<CR>")
        until(
            lambda: nvim.api.current.line.startswith("## B · "),
            lambda: f"{nvim.name}: {nvim.api.current.line}",
        )
        nvim.see("- [x] Select B")
        until(lambda: nvim.said.endswith("B is ticked; ,a approves."), lambda: nvim.said)
        assert "- [ ] Select A" in nvim.text
        nvim.lens("Approve B")
        nvim.api.command("buffer promptside://1")
        nvim.see("selected")
    nvim.goto(" C  ")
    nvim.keys("o")
    until(lambda: nvim.api.current.line.startswith("## C · "), lambda: nvim.api.current.line)
    assert "- [ ] Select C" in nvim.text, "it was only to be looked at"
    assert nvim.view["waiting_for"]["gate"]["selected"] == ["B"]


def test_enter_on_a_choice_of_a_question_ticks_it(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(0)
    nvim.do("open 1")
    nvim.waits("research", "decision")
    nvim.see("B  ")
    for choice in "ABB":
        nvim.goto(f"      {choice}  ")
        nvim.keys("<CR>")
        nvim.see(f"- [x] {choice} ·")
        assert nvim.text.count("- [x]") == 1, nvim.text
        assert nvim.api.current.line.startswith(f"- [x] {choice} ·")
        until(lambda c=choice: nvim.said.endswith(f"{c} is ticked; ,a sends the answers."), lambda: nvim.said)
        nvim.api.command("buffer promptside://1")
    nvim.goto("      A  ")
    nvim.keys("gO")
    until(lambda: nvim.api.current.line.startswith("- [ ] A ·"), lambda: nvim.api.current.line)
    nvim.keys(",a")
    nvim.waits("research")


def test_enter_on_what_is_reviewed_ticks_nothing(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(5)
    nvim.do("open 1")
    nvim.waits("security-review")
    nvim.see("W1  ")
    nvim.goto("W1  ")
    nvim.keys("<CR>")
    until(lambda: "**W1**" in nvim.api.current.line, lambda: nvim.api.current.line)
    until(lambda: nvim.lenses, "it is served")
    assert "- [x]" not in nvim.text
    assert "is ticked" not in nvim.said


def test_the_text_of_a_form_stays_where_it_is(nvim: Neovim, at_stage: AtStage) -> None:
    """Signs come and go beside it; a window that shows something else has no column for them."""
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.open_waiting()
    columns = "return vim.fn.getwininfo(vim.api.nvim_get_current_win())[1].textoff"
    wide = nvim.lua(columns)
    until(lambda: nvim.lua("return #vim.diagnostic.get(0)") > 0, "what is lacking")
    nvim.goto("] Select A")
    nvim.keys("<CR>")
    until(lambda: nvim.lua("return #vim.diagnostic.get(0)") == 0, lambda: nvim.text)
    assert nvim.lua(columns) == wide == 2
    form = nvim.name
    nvim.api.command("edit README.md")
    assert nvim.lua("return vim.wo.signcolumn") == "auto"
    nvim.api.command(f"split {form}")
    assert nvim.lua(columns) == 2


def test_no_keys_where_none_are_wanted(editors: Open) -> None:
    nvim = editors(init="vim.g.promptside = { keys = false }")
    nvim.do("")
    nvim.see("New Task…")
    assert nvim.lua(MAPPED) == []


def test_verbs_tasks_options_and_stages_are_completed(nvim: Neovim, at_stage: AtStage) -> None:
    def completed(line: str) -> list[str]:
        found: list[str] = nvim.lua("return vim.fn.getcompletion(..., 'cmdline')", line)
        return found

    assert {"next", "new", "run", "approve", "takeback"} <= set(completed("Promptside "))
    assert not {"plan", "todos", "work", "merge", "pr"} & set(completed("Promptside "))
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    assert completed("Promptside open ") == ["1-leave-common-words-out"]
    assert completed("Promptside select ") == ["A", "B", "C"]
    assert completed("Promptside back ") == ["research"]
    assert completed("Promptside allow ") == ["once", "attempt", "task", "always"]


def test_an_option_is_selected_from_anywhere(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.do("select b")
    until(lambda: nvim.view["waiting_for"]["gate"]["selected"] == ["B"], lambda: nvim.said)
    nvim.do("select A")
    until(lambda: nvim.view["waiting_for"]["gate"]["selected"] == ["A"], lambda: nvim.said)
    nvim.answer("Go back")
    nvim.do("back research")
    until(lambda: nvim.view["current"] == "research", lambda: nvim.said)
    assert nvim.asked[-1]["prompt"].startswith("Go back to Research?")


def test_output_follows_where_the_cursor_is_at_the_end(nvim: Neovim, at_stage: AtStage) -> None:
    """ST-11"""
    at_stage(2)
    nvim.do("")
    nvim.waits("planning")
    nvim.do("output")
    output = until(lambda: next((w for w in nvim.api.windows if "output" in w.buffer.name), None))
    until(lambda: any("Done" in line for line in output.buffer[:]), lambda: output.buffer[:])
    assert output.cursor[0] == len(output.buffer)
    assert nvim.name == "promptside://tasks"
    stream = """
      local stream = require('promptside.stream')
      for flow = 1, 9 do
        stream.take({ flow = flow, project = '', task = 1, stage = 'planning', attempt = 1, entries = ... })
      end
    """
    nvim.lua(stream, [{"role": "text", "text": "one more"}])
    until(lambda: output.buffer[-1] == "one more")
    assert output.cursor[0] == len(output.buffer)
    output.cursor = (2, 0)
    nvim.lua(stream, [{"role": "text", "text": "a"}, {"role": "text", "text": "b"}])
    until(lambda: output.buffer[-1] == "b")
    assert output.cursor[0] == 2
    assert "2 new lines, G to follow" in nvim.lua("return vim.wo[...].winbar", output.handle)
    nvim.api.current.window = output
    nvim.keys("3G")
    assert output.cursor[0] == 3
    nvim.keys("G")
    assert output.cursor[0] == len(output.buffer)


def test_the_window_with_output_goes_to_the_task_that_runs_on(nvim: Neovim, at_stage: AtStage) -> None:
    """ST-11: unless another agent still writes there; and none is opened for it."""
    at_stage(2)
    at_stage(2)
    nvim.do("")
    nvim.see("Waiting for you (2)")
    nvim.do("output 2")
    until(lambda: {window.buffer.name for window in nvim.api.windows} >= {"promptside://2/planning/1/output"})
    nvim.do("approve 1")
    until(
        lambda: (
            "promptside://1/implementation/1/output" in {window.buffer.name for window in nvim.api.windows}
        ),
        lambda: nvim.said,
    )
    assert len(nvim.api.windows) == 2
    nvim.do("approve 2")
    nvim.see("#2 Leave common words out  Implementation  1 permission")
    assert "promptside://1/implementation/1/output" in {window.buffer.name for window in nvim.api.windows}


def test_unsaved_files_are_named_before_an_agent_may_write(nvim: Neovim, sample: User) -> None:
    """ED-11, M14"""
    sample.promptside("task", "new", "Leave common words out", "--agent", "rehearsal-fast:standard")
    for _ in range(3):
        sample.promptside("skip", "1", "--reason", "Not here.")
    nvim.do("")
    nvim.see("Leave common words out")
    nvim.api.command("edit wordcount/counting.py")
    nvim.keys("Go# mine<Esc>")
    nvim.answer("Cancel")
    nvim.do("run 1")
    until(lambda: nvim.asked, lambda: nvim.said)
    assert "counting.py" in nvim.asked[0]["prompt"]
    assert nvim.asked[0]["labels"] == ["Save and run", "Run anyway", "Cancel"]
    nvim.answer("Save and run")
    nvim.do("run 1")
    nvim.waits("implementation", "decision")
    assert "# mine" in (sample.project / "wordcount" / "counting.py").read_text()


def test_unsaved_files_that_the_agent_changed_are_named_at_the_end(
    nvim: Neovim, at_stage: AtStage, sample: User
) -> None:
    """ED-11"""
    at_stage(3)
    nvim.do("")
    nvim.waits("implementation", "decision")
    nvim.api.command("edit wordcount/counting.py")
    nvim.keys("Go# mine<Esc>")
    nvim.do("allow task")
    nvim.waits("implementation")
    nvim.hear("counting.py: changed by the agent, and unsaved here.")
    assert "# mine" in nvim.text
    assert "# mine" not in (sample.project / "wordcount" / "counting.py").read_text()
    nvim.never_blocked()


def test_an_answer_in_another_editor_arrives_and_leaves_no_changes(
    nvim: Neovim, editors: Open, at_stage: AtStage
) -> None:
    """ED-10"""
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    other = editors()
    other.do("")
    other.waits("high-level-approaches")
    other.open_waiting()
    nvim.open_waiting()
    nvim.goto("] Select B")
    nvim.keys("<CR>")
    other.see("- [x] Select B")
    other.lens("Approve B")
    until(lambda: not other.lua("return vim.bo.modified"), "nothing to save")
    other.keys(",a")
    nvim.waits("planning")
    other.waits("planning")
    until(lambda: nvim.view == other.view, lambda: f"{nvim.view}\n{other.view}")


def test_the_daemon_is_killed_and_comes_back(nvim: Neovim, at_stage: AtStage, sample: User) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    sample.kill(sample.daemon())
    nvim.hear(":Promptside daemon starts it.")
    until(lambda: nvim.lua("return require('promptside').statusline()") == "[x]")
    nvim.see("Start it")
    nvim.do("daemon")
    nvim.hear("there again")
    until(lambda: nvim.lua("return require('promptside').statusline()") == "[!1]")
    until(lambda: "Start it" not in nvim.text, lambda: nvim.text)
    nvim.do("select A")
    nvim.hear("Answered.")
    nvim.do("approve")
    nvim.waits("planning")


def test_without_promptside_one_next_step(editors: Open, tmp_path: Path) -> None:
    nvim = editors(PATH="/usr/bin:/bin")
    nvim.do("")
    nvim.hear("promptside was not found. Install it with")
    assert nvim.lua("return vim.lsp.get_clients()") == []
    nvim.api.command("checkhealth promptside")
    nvim.see("promptside was not found")
    nvim.never_blocked()


def test_health_says_what_is_there(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.api.command("checkhealth promptside")
    text = nvim.see("tasks are known")
    for words in ("Neovim 0.11", "from PATH", "runs for", "lenses are asked for", "version", "claude"):
        assert words in text, text


def test_the_help_has_its_tags(nvim: Neovim, tmp_path: Path) -> None:
    nvim.api.command(f"silent !cp -r {PLUGIN}/doc {tmp_path}/doc")
    nvim.api.command(f"helptags {tmp_path}/doc")
    tags = (tmp_path / "doc" / "tags").read_text()
    assert "promptside.txt\t" in tags
    verbs = nvim.lua("return vim.tbl_keys(require('promptside.verbs').all)")
    assert not [verb for verb in verbs if f":Promptside-{verb}\t" not in tags]
    assert not [verb for verb in verbs if not nvim.api.funcs.maparg(f"<Plug>(promptside-{verb})", "n")]


def test_the_help_has_every_setting_and_colour(nvim: Neovim) -> None:
    text = (PLUGIN / "doc" / "promptside.txt").read_text("utf-8")
    settings = nvim.lua("return vim.tbl_keys(require('promptside.settings').get())")
    colours = nvim.lua("return vim.fn.getcompletion('Promptside', 'highlight')")
    assert {"keys", "output"} <= set(settings)
    assert "PromptsideWaiting" in colours
    assert not [name for name in (*settings, "cmd") if f"    {name} = " not in text]
    assert not [name for name in colours if f"\n  {name} " not in text]


def test_a_page_keeps_its_place_and_the_jump_list_though_it_changes(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.do("open 1")
    nvim.see("Select 1 option to approve.")
    nvim.goto("> Redo…")
    nvim.do("")
    until(lambda: nvim.name == "promptside://tasks", lambda: nvim.name)
    nvim.do("select A")
    until(lambda: nvim.view["waiting_for"]["gate"]["selected"] == ["A"], lambda: nvim.said)
    nvim.keys("<C-o>")
    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    until(lambda: "Select 1 option" not in nvim.text, lambda: nvim.text)
    assert nvim.api.current.line.strip() == "> Redo…", nvim.text
    nvim.keys("<C-o>")
    until(lambda: nvim.name != "promptside://1", lambda: nvim.name)
    nvim.keys("<C-i>")
    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    assert nvim.api.current.line.strip() == "> Redo…", nvim.text
    nvim.api.current.window.cursor = (1, 0)
    nvim.keys("3]]")
    row = nvim.api.current.window.cursor[0]
    nvim.api.current.window.cursor = (1, 0)
    nvim.keys("]]]]]]")
    assert nvim.api.current.window.cursor[0] == row > 3


def test_a_form_that_two_editors_have_is_saved_without_a_question(
    nvim: Neovim, editors: Open, at_stage: AtStage
) -> None:
    """ED-10: the one without changes saves what the other typed; the other then saves the same."""
    at_stage(1)
    nvim.do("")
    nvim.waits("high-level-approaches")
    nvim.open_waiting()
    other = editors()
    other.do("")
    other.waits("high-level-approaches")
    other.open_waiting()
    nvim.goto("] Select B")
    nvim.lua("require('promptside.ticks').toggle(0, vim.fn.line('.') - 1)")  # as if typed: it is not saved
    assert nvim.lua("return vim.bo.modified") is True
    path = Path(nvim.name)
    until(lambda: "- [x] Select B" in path.read_text("utf-8"), lambda: other.text)
    nvim.api.input(":write<CR>")
    until(lambda: nvim.api.api.get_mode()["blocking"] or not nvim.lua("return vim.bo.modified"))
    nvim.never_blocked()
    assert path.read_text("utf-8") == nvim.text + "\n"


def test_a_new_task_takes_the_selection_along(nvim: Neovim) -> None:
    """ED-13"""
    nvim.do("")
    nvim.see("New Task…")
    nvim.api.command("edit wordcount/counting.py")
    nvim.api.command("11,13Promptside new")
    nvim.see("# New task")
    assert "wordcount/counting.py:11-13" in nvim.text


def test_a_new_task_takes_what_is_wrong_here_along(nvim: Neovim) -> None:
    """ED-13"""
    nvim.do("")
    nvim.see("New Task…")
    nvim.api.command("edit wordcount/counting.py")
    nvim.lua(
        "vim.diagnostic.set(vim.api.nvim_create_namespace('checker'), 0,"
        " { { lnum = 11, col = 0, message = 'Counter is not a dict here', source = 'checker' } })"
    )
    nvim.api.current.window.cursor = (12, 0)
    nvim.do("new")
    draft = nvim.see("# New task")
    assert "## Title (required)\n\nCounter is not a dict here" in draft, draft
    assert "In `wordcount/counting.py`, line 12:" in draft, draft
    assert "> Counter is not a dict here" in draft, draft


def test_a_screen_of_a_person(terminals: Callable[..., Terminal], at_stage: AtStage) -> None:
    """What is said is one line: nothing asks for Enter, in a narrow window too."""
    at_stage(1)
    terminal = terminals(columns=80, lines=24)
    terminal.see("README.md")
    terminal.type(":Promptside\r")
    terminal.see("Waiting for you (1)", "select 1 of 3", "g? help")
    terminal.keys("Enter")
    terminal.see("> Open document", "Select 1 option to approve.")
    terminal.type(":Promptside next\r")
    terminal.see("# High-Level Approaches", "Select 1 of 3")
    terminal.type(":Promptside approve\r")
    terminal.see("Not approved: Select 1 option to approve.")
    terminal.type(":Promptside nonsense that is far longer than the window is wide, by a lot\r")
    terminal.see("“nonsense” is nothing that Promptside", ":Promptside <Tab> lists it.")


@pytest.mark.parametrize("words", ["tasks", "1", "1/history", "rules", "doctor", "pipelines", "projects"])
def test_every_page_opens_by_its_name(nvim: Neovim, sample: User, words: str) -> None:
    sample.promptside("task", "new", "Leave common words out", "--agent", "rehearsal-fast:standard")
    nvim.api.command(f"edit promptside://{words}")
    until(lambda: "One moment" not in nvim.text and nvim.lua("return vim.wo.winbar") != "", lambda: nvim.text)
    assert nvim.lua("return vim.bo.filetype") == "promptside"
    assert "can't" not in nvim.text


def test_names_that_mean_nothing_are_said_so(nvim: Neovim, new_task: Callable[..., int]) -> None:
    new_task()
    for name, words in {
        "nonsense": "There is nothing with the name promptside://nonsense.",
        "9": "There is no task 9",
        "9/research/1": "task 9",
        "9/research/1/output": "There is no task 9",
        "1/research/7": "There is no such attempt yet.",
    }.items():
        nvim.api.command(f"edit promptside://{name}")
        until(lambda words=words: words in nvim.text, lambda name=name: f"{name}: {nvim.text}\n{nvim.said}")
        nvim.never_blocked()
