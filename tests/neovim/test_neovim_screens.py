"""What a person sees in a terminal: a whole run from `:Promptside`, messages without Enter, data that hurts."""

from collections.abc import Callable

import pytest
from nvim_editor import Neovim, Terminal, until
from rig.user import User

Screen = Callable[..., Terminal]
AtStage = Callable[[int], None]
LONG = "A title that goes on and on, " * 7


def test_a_standard_run_with_what_the_screen_offers(terminals: Screen, sample: User) -> None:
    """From an empty list to the end with `:Promptside` and the keys that `g?` shows, on a screen of 90 by 34."""
    screen = terminals(columns=90, lines=34)
    screen.see("README.md")
    screen.type(":Promptside\r")
    screen.see("> New Task…", "> Check the set-up")  # the daemon has answered: before, Enter would start it
    screen.type("j")
    screen.keys("Enter")
    screen.see("# New task", ",a creates and runs the task")
    screen.type("oLeave common words out")
    screen.keys("Escape")
    screen.type("]]oLet me name words that are left out.")
    screen.keys("Escape")
    screen.type("/] rehearsal:standard\r")
    screen.keys("Enter")
    screen.see("- [x] rehearsal:standard")
    screen.type(":s/rehearsal:/rehearsal-fast:/\r")
    screen.type("gg")
    screen.see("Create and run")
    screen.type(",a")
    screen.see("Waits for you: 1 question", "> Open document", "Ask      Where should")
    screen.keys("Enter")
    screen.see("# Questions: Research", "0 of 1 required answered")
    screen.type("/A file that is named\r")
    screen.keys("Enter")
    screen.see("- [x] A · A file that is named")
    screen.type(",a")
    for stage in ("Research", "High-Level Approaches", "Planning"):
        screen.see(f"waits for you: {stage[:8]}")
        screen.type(":Promptside next\r")
        screen.see(f"# {stage}", "Approve" if stage != "High-Level Approaches" else "Select 1 of 3")
        if stage == "High-Level Approaches":
            screen.type("/] Select A\r")
            screen.keys("Enter")
            screen.see("Approve A")
        screen.type(",a")
        screen.see("Approved.")
    screen.type(":Promptside\r")
    screen.see("1 permission", "       The agent wants to run `python3 -m unittest` in Implementation.")
    screen.keys("Enter")
    screen.see(
        "Bash  python3 -m unittest",
        "> Allow once              a  :Promptside allow",
        "> Allow for this task        :Promptside allow task",
        "> Deny…                      :Promptside deny",
        "Implementation 1   running, and waits for you   :Promptside next",
    )
    screen.keys("Enter")
    screen.see("Waits for you: your approval")
    screen.type("a")
    screen.see("Refinement takes a word of yours first, or none: :Promptside run 1")
    screen.type("r")
    screen.see("What should Refinement know? (may be empty)")
    screen.keys("Enter")
    screen.see("> Allow once")
    screen.type("a")
    screen.see("Waits for you: your approval", "> Show changes")
    screen.type("a")
    screen.see("0 of 5 reviewed")
    screen.type(":Promptside next\r")
    screen.see("# Security Review")
    for item in ("W1", "W2", "I1", "I2", "I3"):
        screen.type(f"/\\*{item}\r")
        screen.keys("Enter")
    screen.type("gg")
    screen.see("5 of 5 reviewed")
    screen.type(",a")
    screen.see("Approved.")
    until(lambda: sample.stage("pr-preparation")["status"] == "waiting", lambda: screen.screen)
    screen.type(":Promptside next\r")
    screen.see("# PR Preparation")
    screen.type(",a")
    screen.see("All stages are done.")
    screen.type(":Promptside\r")
    screen.see("Done (1)")
    screen.keys("Enter")
    screen.see("What you can do", "> Show changes")
    screen.type("/Show changes\r")
    screen.keys("Enter")
    screen.see("all stages: ", "<CR> compares")


def test_stopping_is_asked_about_and_the_same_key_is_yes(terminals: Screen, at_stage: AtStage) -> None:
    at_stage(0)
    screen = terminals(columns=90, lines=30)
    screen.see("README.md")
    screen.type(":Promptside open 1\r")
    screen.see("Waits for you: 1 question")
    screen.type("s")
    screen.see("Stop Research? The files stay as they are.", "q leaves")
    screen.type("q")
    screen.see("Waits for you: 1 question")
    screen.type("s")
    screen.see("Stop Research?")
    screen.type("s")
    screen.see("Waits for you: Stopped by you")


@pytest.mark.parametrize("height", [0, 1])
def test_messages_are_one_line_whatever_they_are(terminals: Screen, height: int) -> None:
    """Long, many at once, with line breaks, in insert mode, on a narrow screen, with a command line of no height."""
    screen = terminals(
        init=f"vim.o.cmdheight = {height}; _G.say = require('promptside.message').say"
        "; vim.o.statusline = '%f %{get(g:, \"told\")} told'",
        columns=46,
        lines=12,
    )
    screen.see("README.md")
    screen.type(":lua for n = 1, 9 do say(n .. (' a long story\\n'):rep(30), 'warning') end\r")
    screen.see("9 a long story a long story")
    screen.type(":lua vim.schedule(function() say(('x'):rep(500)) end) say('first')\r")
    screen.see("xxxxxxxxxxxxxxxxxxxx…")
    screen.type("i:lua ")
    screen.keys("Escape")
    screen.type(
        ":lua vim.defer_fn(function() say('said while typing') vim.g.told = 1 vim.cmd.redrawstatus() end, 50)\rA"
    )
    screen.type(" typed on")
    screen.see("typed on", "1 told")
    assert "said while typing" not in screen.screen
    screen.keys("Escape")
    screen.see("said while typing")
    screen.type(":Promptside log\r")
    screen.see("said while typing")
    screen.type(":Promptside nonsense that is far longer than the window is wide, by a lot\r")
    screen.see("“nonsense” is nothing")


@pytest.mark.parametrize("height", [0, 1])
def test_forty_columns_cut_nothing_without_a_mark(terminals: Screen, at_stage: AtStage, height: int) -> None:
    """A page, a question, keys, a document and output on a screen of 40 by 12."""
    at_stage(0)
    screen = terminals(init=f"vim.o.cmdheight = {height}; vim.o.more = true", columns=40, lines=12)
    screen.see("# wordcount")
    screen.type(":Promptside open 1\r")
    screen.see("> Open document", "Q1  Where should the words come from\n         that are left out?")
    screen.type("gg")
    assert "1 que…\n" in screen.see("+ ! Research  ")
    screen.type("s")
    asked = screen.see("Stop Research? The files stay as", "they are.", "1  Stop", "<CR> picks, q leaves")
    assert "│they are." in asked
    screen.type("q")
    screen.type("g?")
    screen.see("<CR>  open what the line is about,", "│       or do what it says", "more below, q closes")
    screen.type("q")
    screen.type(":Promptside next\r")
    screen.see(
        "0 of 1 required answered\n", "Tick the recommended\n", "──── Q1 is required and still empty.\n"
    )
    screen.type(":Promptside output\r")
    screen.see(
        "#1 Research 1", "following", "Ask      Where should the words come\n         from that are left"
    )
    screen.type(":Promptside approve\r")
    screen.see("Not possible now:", "…")


def test_data_that_hurts(editors: Callable[..., Neovim], sample: User, new_task: Callable[..., int]) -> None:
    """200 tasks, titles of 200 characters, right-to-left text, a pipeline of 13 stages, 40 columns."""
    folder = sample.data / "config" / "pipelines"
    folder.mkdir(parents=True)
    stage = (
        '[[stage]]\nid = "stage-%d"\nname = "Stage %d of a rather long name"\nprompt = "Say something."\n'
        'input = "%s"\noutput = "text"\ngate = { type = "require_approval" }\n\n'
    )
    (folder / "long.toml").write_text(
        'title = "Long"\n\n' + "".join(stage % (n, n, "previous" if n > 1 else "user") for n in range(1, 14))
    )
    for number in range(1, 198):
        new_task(f"Task number {number}")
    new_task(LONG[:200].strip())
    new_task("שלום עולם, וגם סימני פיסוק")
    new_task("Thirteen stages", pipeline="long")
    nvim = editors()
    nvim.api.command("set columns=40 lines=20")
    nvim.do("")
    nvim.see("Ready (200)")
    nvim.see("שלום")
    nvim.see("A title that goes")
    wide = [
        line
        for line in nvim.api.current.buffer[:]
        if "Research" in line and nvim.lua("return vim.fn.strdisplaywidth(...)", line) > 40
    ]
    assert wide == []
    nvim.goto("Ready (200)")
    assert nvim.lua("return vim.fn.foldclosed('.')") == -1, "nothing else is there to be seen"
    nvim.keys("]]<CR>")
    until(lambda: nvim.name.startswith("promptside://") and nvim.name[-1].isdigit(), lambda: nvim.name)
    nvim.see("Stage 13 of a rather long name")
    nvim.never_blocked()
