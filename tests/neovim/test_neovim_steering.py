"""Steering a task from Neovim: interrupted, paused, stopped, skipped, gone back, taken back, abandoned (ED-8)."""

from collections.abc import Callable

from nvim_editor import Neovim, until
from rig.user import User

AtStage = Callable[[int], None]


def attempts(nvim: Neovim, stage: str) -> list[str]:
    """How each attempt of a stage stands."""
    found = next(one for one in nvim.view["stages"] if one["id"] == stage)
    return [attempt["status"] for attempt in found["attempts"]]


def stands(nvim: Neovim, **wanted: str) -> None:
    """Wait until the task is like this."""
    until(
        lambda: {key: nvim.view[key] for key in wanted} == wanted,
        lambda: f"{wanted}: {nvim.view['state']}, {nvim.view['current']}\n{nvim.said}",
    )


def test_a_stage_is_interrupted_paused_skipped_and_gone_back_to(nvim: Neovim, at_stage: AtStage) -> None:
    at_stage(0)
    nvim.do("open 1")
    nvim.waits("research", "decision")
    nvim.see("> Interrupt with feedback…")
    nvim.do("interrupt Look at the tests first.")
    nvim.hear("The agent is told.")
    nvim.waits("research")
    nvim.do("pause")
    nvim.hear("Paused; the conversation is kept.")
    stands(nvim, state="paused")
    nvim.see("> Resume")
    nvim.keys("-")
    nvim.hear("Resumed.")
    nvim.waits("research")
    nvim.answer("I know it all.")
    nvim.do("skip")
    nvim.waits("high-level-approaches")
    assert nvim.asked[-1]["prompt"].startswith("Why is it skipped?")
    assert nvim.view["stages"][0]["reason"] == "I know it all."
    nvim.answer("Leave it as it is")
    nvim.do("back research")
    assert nvim.asked[-1]["labels"] == ["Go back", "Leave it as it is"]
    assert nvim.view["current"] == "high-level-approaches"
    nvim.do("back! research")
    stands(nvim, current="research")
    nvim.answer("Abandon")
    nvim.do("abandon")
    stands(nvim, state="archived")
    assert nvim.asked[-1]["prompt"].startswith("Abandon “Leave common words out”?")
    nvim.never_blocked()


def test_a_stage_is_stopped_and_retried_and_an_approval_taken_back(
    nvim: Neovim, at_stage: AtStage, sample: User
) -> None:
    at_stage(3)
    nvim.do("")
    nvim.waits("implementation", "decision")
    nvim.answer("Leave it as it is", "Stop")
    nvim.do("stop")
    assert nvim.asked[-1]["prompt"].startswith("Stop Implementation?")
    assert attempts(nvim, "implementation") == ["running"]
    nvim.do("stop")
    nvim.hear("Stopped; the files stay as they are.")
    nvim.waits("implementation", "person")
    nvim.do("retry")
    nvim.hear("Started again.")
    nvim.waits("implementation", "decision")
    nvim.do("allow")
    nvim.waits("implementation")
    assert attempts(nvim, "implementation") == ["stopped", "done"]
    nvim.do("approve")
    nvim.waits("refinement", "input")
    nvim.do("takeback")
    nvim.hear("The approval is taken back.")
    nvim.waits("implementation")
    assert sample.stage("implementation")["approval"] is None
    nvim.do("approve")
    nvim.waits("refinement", "input")
    nvim.answer("")
    nvim.do("run")
    nvim.waits("refinement", "decision")
    nvim.do("takeover")
    nvim.hear("A rehearsal has no session to continue.")
