"""A whole `standard` run in Neovim by rehearsal, with its commands and keys only (ED-8, ST-11, ST-13)."""

from nvim_editor import Neovim, until


def new_task(nvim: Neovim) -> None:
    """From the empty list to a task that runs."""
    nvim.do("")
    nvim.see("New Task…")
    nvim.goto("> New Task…")
    nvim.keys("<CR>")
    nvim.see("# New task")
    nvim.goto("## Title")
    nvim.keys("oLeave common words out<Esc>")
    nvim.goto("## Description")
    nvim.keys("oLet me name words that are left out.<Esc>")
    nvim.goto("] rehearsal:standard")
    nvim.keys("<CR>")
    nvim.see("- [x] rehearsal:standard")
    nvim.keys(":s/rehearsal:/rehearsal-fast:/<CR>")
    nvim.lens("Create and run")
    nvim.keys(",a")


def test_a_standard_run_from_an_empty_list(nvim: Neovim) -> None:
    new_task(nvim)
    nvim.waits("research", "decision")

    def shown() -> list[str]:
        return [window.buffer.name for window in nvim.api.windows]

    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    until(lambda: "promptside://1/research/1/output" in shown(), shown)

    nvim.see("A  A file that is named")
    nvim.goto("A  A file that is named")
    nvim.keys("<CR>")
    until(lambda: nvim.name.endswith("01-research-questions-1.md"), lambda: nvim.name)
    nvim.see("- [x] A ·")
    assert nvim.api.current.line.startswith("- [x] A ·"), "it is opened where one stood"
    nvim.lens("Send answers")
    nvim.keys(",a")
    nvim.waits("research")

    nvim.open_waiting()
    nvim.keys(",a")
    nvim.waits("high-level-approaches")

    nvim.open_waiting()
    nvim.keys(",a")
    nvim.hear("Not approved")
    nvim.goto("] Select A")
    nvim.keys("<CR>")
    nvim.see("- [x] Select A")
    nvim.lens("Approve A")
    nvim.do("approve")
    nvim.waits("planning")

    nvim.open_waiting()
    nvim.do("redo Put the tests of each step before its code.")
    nvim.lens("Attempt 2")
    nvim.waits("planning")
    nvim.do("approve")
    nvim.waits("implementation", "decision")
    nvim.hear(
        "The agent wants to run `python3 -m unittest` in Implementation.  :Promptside next, allow, deny"
    )
    nvim.keys(",a")
    nvim.hear("This is not what waits for you now.  :Promptside next")
    nvim.keys(",w")
    until(lambda: nvim.name == "promptside://1", lambda: nvim.name)
    until(lambda: nvim.api.current.line.strip() == "> Allow once", lambda: nvim.text)
    nvim.goto("P1  The agent wants to run")
    nvim.answer("Allow for this task")
    nvim.keys("<CR>")
    nvim.waits("implementation")
    nvim.do("approve")
    nvim.waits("refinement", "input")
    nvim.answer("Mind the README.")
    nvim.do("run")
    nvim.waits("refinement")
    assert nvim.view["stages"][4]["input"] == "Mind the README."
    nvim.do("approve")
    nvim.waits("security-review")

    nvim.open_waiting()
    for item in ("W1", "W2", "I1", "I2", "I3"):
        nvim.goto(f"**{item}**")
        nvim.keys("0<CR>")
    nvim.lens("Approve")
    nvim.keys(",a")
    nvim.waits("pr-preparation")
    nvim.open_waiting()
    nvim.do("approve")
    nvim.waits_no_more()
    nvim.do("changes")
    until(lambda: nvim.lua("return vim.bo.buftype") == "quickfix", lambda: nvim.said)
    assert nvim.lua("return vim.w.quickfix_title").startswith("Promptside: all stages: ")
    assert "wordcount/counting.py" in nvim.text, "which Implementation changed, and no stage after it"
    places = nvim.text
    nvim.do("")
    nvim.see("Done (1)")
    assert places in ["\n".join(window.buffer[:]) for window in nvim.api.windows], "the list stays a list"

    assert nvim.api.current.line.strip().startswith("v #1 Leave common words out"), "it is all there is"
    nvim.see("Next: > New Task…")
    nvim.goto("Done (1)")
    nvim.keys("<CR>")
    assert nvim.lua("return vim.fn.foldclosed('.')") == 1
    nvim.keys("<CR>")
    assert nvim.lua("return vim.fn.foldclosed('.')") == -1
    assert nvim.name == "promptside://tasks"
    nvim.never_blocked()
