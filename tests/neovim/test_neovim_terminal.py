"""The agent's own screen in a terminal of Neovim: the real program, and a model that says what the test scripts."""

import json
from collections.abc import Callable

from nvim_editor import Neovim, until
from rig.messages_api import MessagesAPI, say
from rig.stages import in_stage
from rig.user import User


def test_ed14_a_conversation_is_gone_on_with_in_a_terminal_and_given_back(
    sample: User, api: MessagesAPI, editors: Callable[..., Neovim]
) -> None:
    api.add(in_stage("research", say("Long."), say("Agreed.")))
    sample.promptside("task", "new", "Look at it")
    sample.promptside("run", code=3)
    settings = sample.home / ".claude.json"  # the person has used the program in this folder before
    known = json.loads(settings.read_text())
    known |= {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy-key"], "rejected": []},
        "projects": {str(sample.project): {"hasTrustDialogAccepted": True}},
    }
    settings.write_text(json.dumps(known))
    nvim = editors()
    nvim.do("")
    nvim.waits("research")
    before = nvim.api.current.window
    nvim.do("takeover 1")
    until(lambda: nvim.lua("return vim.bo.buftype") == "terminal", lambda: nvim.said)
    nvim.see("\u276f")
    screen = nvim.api.current.buffer

    def types(words: str) -> None:
        nvim.lua("vim.api.nvim_chan_send(vim.bo[...].channel, select(2, ...))", screen.number, words)

    types("Leave the tables out.")
    nvim.see("Leave the tables out.")
    types("\r")
    nvim.see("Agreed.")
    assert nvim.view["terminal"]["words"].startswith("You work on it in a terminal"), nvim.view["terminal"]
    assert [offer["title"] for offer in nvim.view["offers"]] == ["Give back to the agent"]
    types("/exit")
    nvim.see("/exit")
    types("\r")
    until(lambda: "has ended" in nvim.lua("return vim.wo.winbar"), lambda: nvim.text)
    until(lambda: nvim.view.get("terminal") is None, lambda: nvim.view["terminal"])
    nvim.waits("research")
    (attempt,) = nvim.view["stages"][0]["attempts"]
    assert [work["session"] for work in attempt["terminals"]] == [attempt["session"]]
    nvim.keys("q")
    assert nvim.api.current.window == before
    nvim.never_blocked()
    sample.promptside("task", "abandon", "1")
