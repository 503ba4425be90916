"""Every scene of the pipeline panel, as a real daemon tells it, in its own page without a window (ED-7, UX 3.4).

Each is tried as a person would have it: what is offered and nothing else, with the reasons of what is not possible; in
all themes and widths; by keyboard; and a picture of each is kept.
"""

import asyncio
import fcntl
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from panel_scenes.made import NAMED, UNTRUSTED, Scene, made
from panel_scenes.page import DIST, THEMES, USED, PanelPage
from playwright.sync_api import BrowserContext, expect
from rig.user import new_user
from vscode_rig.workbench import PICTURES

pytestmark = pytest.mark.timeout(300)
"""All scenes are made when the first is asked for."""

QUIET = (
    "standard: done",
    "done",
    "standard: a stage that is over",
    "standard: a stage ahead",
    "abandoned",
    "archived",
)
"""Where nothing is waited for, no button says that it should be pressed."""
LOOK = (("dark", 1280), ("light", 320), ("high-contrast", 1280), ("high-contrast-light", 620))
LOOKS = re.compile(
    "Show (output|changes|decisions)|(Open|Edit) document|Open (transcript|the prompt as sent)|New task…|Back to .*"
    "|Compare attempts…?"
)
"""What only shows something, or begins something else: no daemon has to offer it."""
WORDS = {"redo": "feedback", "interrupt": "text", "skip": "reason", "deny": "text"}
"""Where in an order what the person writes stands."""


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """All of them; of several processes that run these tests, one makes them."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    with (shared / "scenes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = shared / "scenes.json"
        if not file.exists():
            for user in new_user():
                with ThreadPoolExecutor(1) as beside:  # this thread's loop is Playwright's
                    found = beside.submit(lambda who=user: asyncio.run(made(who))).result()
                plain = {name: [scene.shown, scene.documents] for name, scene in found.items()}
                file.write_text(json.dumps(plain), encoding="utf-8")
    told = json.loads(file.read_text(encoding="utf-8"))
    return {name: Scene(shown=shown, documents=tuple(documents)) for name, (shown, documents) in told.items()}


@pytest.fixture(scope="module")
def only_page(browser: BrowserContext) -> Iterator[PanelPage]:
    page = PanelPage(browser)
    yield page
    page.close()


@pytest.fixture
def panel(only_page: PanelPage) -> Iterator[PanelPage]:
    """The page; a test in which its script failed, or its policy forbade something, has failed."""
    only_page.faults.clear()
    only_page.width(1280)
    yield only_page
    assert only_page.faults == []


# --- every scene ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED)
def test_scene(panel: PanelPage, scenes: dict[str, Scene], name: str) -> None:
    scene = scenes[name]
    panel.show(scene)
    what_is_offered_is_drawn_and_nothing_else(panel, scene, name)
    it_can_be_read(panel, name)
    everything_is_reached_and_has_a_name(panel)
    what_is_offered_is_ordered_and_what_is_blocked_says_why(panel, scene)


def what_is_offered_is_drawn_and_nothing_else(panel: PanelPage, scene: Scene, name: str) -> None:
    drawn = panel.look("drawn")
    offers = {titled(offer, scene) for offer in scene.offers}
    suggested = {one["title"] for one in (scene.shown["form"] or {"suggestions": []})["suggestions"]}
    assert {one["title"] for one in drawn} >= offers
    orders = {one["title"] for one in drawn if one["where"] != "form" and not LOOKS.fullmatch(one["title"])}
    assert orders - suggested <= offers
    wanted = [titled(one, scene) for one in scene.offers if one["primary"] and name not in QUIET][:1]
    assert [one["title"] for one in drawn if one["primary"]] == wanted
    goes_on = scene.task["state"] == "taken" and not scene.task["waiting_for"] and not scene.task["terminal"]
    assert len(wanted) == (0 if name in QUIET or goes_on else 1)


def titled(offer: Any, scene: Scene) -> str:
    """An approval names what it approves."""
    selected = ((scene.task["waiting_for"] or {}).get("gate") or {}).get("selected", ())
    named = offer["command"] == "promptside.approve" and not offer["blocked"] and not offer["place"]
    return " ".join([offer["title"], ", ".join(selected)]).strip() if named else str(offer["title"])


def it_can_be_read(panel: PanelPage, name: str) -> None:
    """Enough contrast in each theme, nothing too wide in each width, and a picture of a wide one and a narrow one."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for theme, width in LOOK:
        panel.width(width)
        panel.dress(theme)
        panel.settle()
        assert panel.look("contrast") == [], theme
        assert panel.look("wide") == [], width
        if theme in ("dark", "light"):
            file = re.sub(r"\W+", "-", name.lower())
            panel.page.screenshot(path=str(PICTURES / f"scene-{file}-{theme}.png"))


def everything_is_reached_and_has_a_name(panel: PanelPage) -> None:
    """With Tab alone, and it can be seen where one is."""
    for _ in range(panel.look("begin") + 2):  # round once: it begins at what is to be decided
        panel.page.keyboard.press("Tab")
    assert panel.look("missed") == []
    assert panel.nameless() == []


def what_is_offered_is_ordered_and_what_is_blocked_says_why(panel: PanelPage, scene: Scene) -> None:
    for offer in scene.offers:
        tag, reason = (
            offer["command"].removeprefix("promptside."),
            scene.shown["hindrance"] or offer["blocked"],
        )
        came = panel.order(titled(offer, scene))
        if reason:
            assert came["given"] == []
            assert reason in came["status"]
            continue
        (given,) = came["given"]
        assert given["command"] == offer["command"]
        if tag != "goBack" or offer["place"]:
            assert offer["args"].items() <= given["args"].items()
        assert came["asked"] == (offer["needs_text"] and tag in WORDS)
        if came["asked"]:
            assert given["args"][WORDS[tag]] == "So and so."
        if tag in ("approve", "send") and not offer["place"]:
            assert given["args"]["shown"] == scene.shown["form"]["shown"]


# --- nobody to ask ----------------------------------------------------------------------------------------------------


NOWHERE = {"project": "", "task": 0, "stage": "", "scroll": 0}
NOBODY: dict[str, tuple[dict[str, Any], str, str]] = {
    "no task": ({"task": None}, "No task yet", "promptside.newTask"),
    "daemon down": ({"up": False}, "The Promptside daemon is not running", "promptside.daemonStart"),
    "no program": ({"server": "missing"}, "Promptside was not found", "promptside.install"),
    "not started": ({"server": "failed"}, "Promptside could not be started", "promptside.restart"),
    "starting": ({"server": "starting", "task": None}, "Promptside is starting", ""),
    "nothing told yet": ({"told": False, "task": None}, "Looking for the task", ""),
    "not trusted, no task": (
        {"task": None, "trusted": False, "hindrance": UNTRUSTED},
        "This folder is not trusted",
        "workbench.trust.manage",
    ),
    "a task that is gone": (
        {"task": None, "state": {**NOWHERE, "task": 9}},
        "This task is not here any more",
        "promptside.openTask",
    ),
}
"""What the extension says, what is drawn then, and what its one primary button orders."""


@pytest.mark.parametrize("name", NOBODY)
def test_without_a_task_there_is_one_clear_next_step(
    panel: PanelPage, scenes: dict[str, Scene], name: str
) -> None:
    more, title, order = NOBODY[name]
    told = {"state": NOWHERE, "form": None, "activity": None, "pipeline": None, **more}
    panel.show(scenes["standard: running"].but(**told))
    expect(panel.page.get_by_role("heading", level=2).filter(visible=True)).to_have_text(title)
    primary = panel.page.locator(".btn.p").filter(visible=True)
    expect(primary).to_have_count(1 if order else 0)
    if order:
        assert panel.nameless() == []
        primary.click()
        assert [one["command"] for one in panel.sent("give")] == [order]
    it_can_be_read(panel, name)


# --- what single scenes say -------------------------------------------------------------------------------------------


def test_a_retry_counts_down(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    """M15: when it comes is told by the daemon; soon in seconds, later by the clock."""
    scene = scenes["a retry is due"]
    at = scene.task["stages"][0]["retry_at"]
    panel.show(scene)
    panel.time(at - 19.5)
    lead = panel.page.locator(".picture .notice p").first
    expect(lead).to_have_text("Attempt 3 starts in 20 s.")
    panel.time(at - 11.5)
    expect(lead).to_have_text("Attempt 3 starts in 12 s.")
    expect(panel.stages.first).to_contain_text("Next attempt in 12 s")
    panel.time(at - 600)
    expect(lead).to_have_text(re.compile(r"^Attempt 3 starts at \d\d:\d\d, in 10 min\.$"))


def test_what_a_person_stopped_is_no_failure(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    panel.show(scenes["stopped by a person"])
    expect(panel.page.locator(".host")).to_contain_text("Stopped by you.")
    expect(panel.page.locator(".bad, .codicon-error")).to_have_count(0)
    expect(panel.page.locator(".host")).not_to_contain_text(re.compile("fail|automatic", re.IGNORECASE))
    panel.show(scenes["failed, no retry left"])
    expect(panel.page.locator(".notice.bad")).to_be_visible()


def test_a_pause_promises_nothing_that_the_daemon_does_not_keep(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    panel.show(scenes["held"])
    expect(panel.page.locator(".notice")).to_contain_text(
        re.compile(r"^Paused since \d\d:\d\d\.Resuming goes on")
    )
    panel.show(scenes["paused at its gate"])
    expect(panel.page.locator(".notice")).to_contain_text("Resuming brings back what waited for you.")
    expect(panel.page.locator(".host")).not_to_contain_text("hours")


def test_light_work_shows_no_stages_and_nothing_is_there_that_was_not_built(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    """UX 1.9; the plan and the TODO board have their tabs when they exist."""
    panel.show(scenes["one stage, at its gate"])
    expect(panel.page.get_by_role("navigation", name="Stages")).to_have_count(0)
    panel.show(scenes["standard: a text"])
    expect(panel.stages).to_have_count(7)
    expect(panel.page.get_by_role("tab")).to_have_count(0)


def test_from_what_was_done_there_is_a_way_back_to_the_summary(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    panel.show(scenes["standard: done"])
    expect(panel.page.get_by_role("heading", level=2, name="Done")).to_be_visible()
    panel.stages.nth(2).click()
    expect(panel.page.get_by_role("heading", level=2, name="Planning")).to_be_visible()
    panel.group("Decide").get_by_role("button", name="Back to the summary").click()
    expect(panel.page.get_by_role("heading", level=2, name="Done")).to_be_visible()


def test_what_was_sent_back_stands_above_what_came_of_it_and_in_the_summary(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    """CW-22: a person's words to the agent, their changes and choices are told with their approvals."""

    def again(stage: dict[str, Any]) -> dict[str, Any]:
        last = stage["attempts"][-1]
        redone = {**last, "n": 2, "cause": "redo", "feedback": "Shorter, please."}
        return {**stage, "attempts": [last, redone]}

    scene = scenes["standard: a text"]
    at = [again(one) if one["status"] == "waiting" else one for one in scene.task["stages"]]
    panel.show(scene.but(task={**scene.task, "stages": at}))
    expect(panel.page.locator(".host")).to_contain_text(
        "You sent the attempt before back: “Shorter, please.”"
    )
    panel.group("Decide").get_by_role("button", name="Compare attempts").click()
    (order,) = panel.sent("give")
    waiting = next(one["id"] for one in at if one["status"] == "waiting")
    assert (order["command"], order["args"]) == ("promptside.compareAttempts", {"stage": waiting})

    scene = scenes["standard: done"]
    stages = [
        {**again(one), "input": "Mind the tests."} if at == 0 else one
        for at, one in enumerate(scene.task["stages"])
    ]
    stages[2]["approval"] = {**stages[2]["approval"], "edited": True}
    panel.show(scene.but(task={**scene.task, "stages": stages}))
    decided = panel.page.locator(".decided")
    for words in (
        "Research sent back: Shorter, please.",
        "For Research: Mind the tests.",
        "High-Level Approaches approved: A",
        "Planning approved with your changes",
    ):
        expect(decided).to_contain_text(words)


def test_a_text_is_corrected_in_its_document(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    panel.show(scenes["standard: a text"])
    panel.page.get_by_role("button", name="its document").click()
    (wish,) = panel.sent("openFile")
    assert wish["path"] == scenes["standard: a text"].shown["form"]["document"]
    panel.group("Decide").get_by_role("button", name="Edit document").click()
    assert [(one["command"], one["args"]) for one in panel.sent("give")] == [
        ("promptside.openDocument", {"file": True})
    ]


def test_what_is_not_trusted_can_be_read_and_not_answered(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    panel.show(scenes["restricted, at a gate"])
    expect(panel.page.get_by_role("radio").first).to_be_disabled()
    panel.page.get_by_role("button", name="Manage trust").click()
    assert [one["command"] for one in panel.sent("give")] == ["workbench.trust.manage"]


def test_a_title_goes_in_its_own_direction(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    panel.show(scenes["right to left"])
    expect(panel.page.locator("h1 .title")).to_have_css("direction", "rtl")
    expect(panel.page.locator("h1 .no")).to_have_text("#" + str(scenes["right to left"].task["id"]))


# --- what a push leaves as it is --------------------------------------------------------------------------------------


def test_a_push_leaves_the_stages_where_they_were_scrolled_to(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    scene = scenes["thirteen stages, a long title"]
    for width, height, side in ((1280, 420, "scrollTop"), (320, 800, "scrollLeft")):
        panel.width(width, height)
        panel.show(scene)
        rail = panel.page.locator(".rail")
        rail.evaluate(f"rail => rail.{side} = 90")
        panel.push(later(scene))
        expect(rail).to_have_js_property(side, 90)
        panel.page.keyboard.press("Tab")
        panel.stages.last.click()
        expect(panel.stages.last).to_be_in_viewport()


def later(scene: Scene, **changed: Any) -> Scene:
    """The same task a moment after, when its first stage has another name and its metrics have grown."""
    first, *rest = scene.task["stages"]
    stages = [{**first, "name": "Renamed"}, *rest]
    return scene.but(task={**scene.task, "stages": stages, **changed})


def test_a_push_leaves_focus_scroll_and_what_is_being_typed(
    panel: PanelPage, scenes: dict[str, Scene]
) -> None:
    scene = scenes["standard: fields"]
    panel.width(1280, 500)
    panel.show(scene)
    box = panel.page.get_by_role("textbox").nth(1)
    box.click()
    box.press("Control+End")
    panel.page.keyboard.type(" More.")
    main = panel.page.locator(".main")
    main.evaluate("main => main.scrollTo(0, 130)")
    panel.push(later(scene))
    expect(panel.stages.first).to_contain_text("Renamed")
    expect(box).to_be_focused()
    expect(box).to_have_value(re.compile(r" More\.$"))
    expect(main).to_have_js_property("scrollTop", 130)


def test_what_was_opened_stays_open(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    """An earlier stage's document, while one after it is approved elsewhere."""
    scene = scenes["thirteen stages, a long title"]
    panel.show(scene)
    earlier = panel.page.locator(".earlier details")
    earlier.nth(1).locator("summary").click()
    expect(earlier.nth(1)).to_contain_text("Done")
    panel.push(later(scene))
    expect(earlier.first).to_contain_text("Renamed")
    expect(earlier.nth(1)).to_have_attribute("open", "")
    expect(earlier.nth(1).locator("summary")).to_be_focused()


def test_focus_is_not_lost_with_the_button_that_had_it(panel: PanelPage, scenes: dict[str, Scene]) -> None:
    """From there Tab goes on in the panel, and no key does what nobody has seen."""
    running = scenes["approved, the next runs"]
    before = scenes["approved, the next not started"]
    panel.show(before)
    panel.group("Decide").get_by_role("button").first.focus()
    panel.push(before.but(task={**running.task, "id": before.task["id"]}, form=None))
    expect(panel.group("Decide").get_by_role("button", name="Stop")).to_be_visible()
    expect(panel.page.get_by_role("main").filter(visible=True)).to_be_focused()


# --- the rig ----------------------------------------------------------------------------------------------------------


def test_every_colour_that_is_used_was_taken_from_a_real_window() -> None:
    used = set(re.findall(USED, (DIST / "panel.css").read_text(encoding="utf-8")))
    for kind, _ in LOOK:
        taken = json.loads((THEMES / f"{kind}.json").read_text(encoding="utf-8"))["variables"]
        assert used <= taken.keys(), "they are to be taken anew: panel_scenes/take_themes.py"
