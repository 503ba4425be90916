"""Forms in the panel: each kind filled in by mouse and by key, with the document beside them saying the same (ED-7).

One pipeline has all the forms that an agent can hand over; its stages are recordings, or made up.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, expect
from rig.user import User
from vscode_rig.panel import Panel
from vscode_rig.stories import sample
from vscode_rig.workbench import Workbench

TITLE = "Leave common words out"
PLAIN = {
    "editor.autoClosingBrackets": "never",
    "editor.autoSurround": "never",
    "promptside.output.open": "never",
}
"""What is typed is what stands there."""
QUESTIONS = [
    {
        "question": "Where should the words come from?",
        "header": "Stop words",
        "multiSelect": False,
        "options": [
            {"label": "A file that is named (Recommended)", "description": "Works for **every** language."},
            {"label": "A list of ours", "description": "Nothing to prepare."},
        ],
    },
    {
        "question": "Which commands take it?",
        "header": "Commands",
        "multiSelect": True,
        "options": [
            {"label": "`count`", "description": ""},
            {"label": "`top`", "description": ""},
            {"label": "`all`", "description": ""},
        ],
    },
    {"question": "What is the option called?", "header": "Commands", "multiSelect": False, "options": []},
]
PIPELINE = """\
title = "Forms"
[[stage]]
id = "research"
name = "Research"
output = "text"
gate = { type = "require_approval" }
tools = ["Read", "Glob", "Grep"]
prompt = "Look."
[[stage]]
id = "high-level-approaches"
name = "Approaches"
output = "options"
gate = { type = "require_selection", min = 1, max = 1 }
tools = ["Read", "Glob", "Grep"]
prompt = "Propose."
[[stage]]
id = "parts"
name = "Parts"
output = "options"
gate = { type = "require_selection", min = 1, max = 2 }
tools = ["Read", "Glob", "Grep"]
prompt = "Divide."
[[stage]]
id = "implementation"
name = "Implementation"
output = "text"
gate = { type = "require_approval" }
permission = "ask"
tools = "all"
rules = ["Edit(./**)", "Write(./**)"]
prompt = "Do it."
[[stage]]
id = "security-review"
name = "Security Review"
output = "checklist"
gate = { type = "require_all_checked" }
tools = ["Read", "Glob", "Grep"]
prompt = "Review."
[[stage]]
id = "entry"
name = "Entry"
output = "structured"
gate = { type = "require_fields", fields = ["title", "note", "breaking"] }
tools = ["Read", "Glob", "Grep"]
prompt = "Describe."
[stage.schema]
type = "object"
required = ["title", "note"]
[stage.schema.properties.title]
type = "string"
maxLength = 40
[stage.schema.properties.note]
type = "string"
[stage.schema.properties.kind]
enum = ["feature", "fix"]
[stage.schema.properties.breaking]
type = "boolean"
[stage.schema.properties.areas]
type = "array"
items = { enum = ["api", "web", "docs"] }
[stage.schema.properties.reviewers]
type = "array"
items = { type = "string" }
[stage.schema.properties.risk]
type = "object"
"""


def every_form(user: User) -> None:
    """A task in a pipeline with each kind of form."""
    sample(user)
    config = user.data / "config/pipelines"
    config.mkdir(parents=True)
    (config / "forms.toml").write_text(PIPELINE, encoding="utf-8")
    recorded = user.base / "recorded"
    with resources.as_file(resources.files("promptside_daemon") / "rehearsals/standard") as shipped:
        shutil.copytree(shipped, recorded, ignore=shutil.ignore_patterns("project"))
    asks(recorded / "research.1.ndjson")
    words = ("--pipeline", "forms", "--agent", f"rehearsal-fast:{recorded}")
    user.promptside("task", "new", TITLE, "--description", "Name words that are left out.", *words)


def asks(recording: Path) -> None:
    """Have the agent ask these questions, where it asked another."""

    def other(value: Any) -> Any:
        if isinstance(value, list):
            return [other(one) for one in value]
        if isinstance(value, dict):
            return {k: QUESTIONS if k == "questions" else other(v) for k, v in value.items()}
        return value

    lines = recording.read_text(encoding="utf-8").splitlines()
    recording.write_text(
        "".join(f"{json.dumps(other(json.loads(line)))}\n" for line in lines), encoding="utf-8"
    )


class Form(Panel):
    """The pipeline panel in a window, with the document that waits beside it."""

    def __init__(self, user: User, window: Workbench, document: str = "") -> None:
        super().__init__(window)
        self.user = user
        self.form: Locator = self.frame.locator(".form:not(.permissions)")
        self.document = self.page.locator(".editor-group-container").first
        window.open_tasks()
        window.see_row(TITLE)
        if document:
            window.row(TITLE).click()
            expect(self.page.locator(".tabs-container .tab.active", has_text=document)).to_be_visible()
        else:
            window.open_file("README.md")
        self.open()
        expect(self.frame.locator(".form").first).to_be_attached()
        self.command("View: Move Editor into Right Group")
        expect(self.page.locator(".editor-group-container")).to_have_count(2)

    def command(self, title: str) -> None:
        """A command of the editor's own; a key that is pressed while focus moves may go nowhere."""
        box = self.page.locator(".quick-input-widget input.input")

        def asked() -> bool:
            if not box.is_visible():
                self.page.keyboard.press("F1")
            return box.is_visible()

        self.window.until(asked)
        box.fill(f">{title}")
        self.page.locator(".quick-input-list .monaco-list-row", has_text=title).first.click()

    def written(self, *lines: str) -> None:
        """Lines that stand in the document beside."""
        for line in lines:
            words = re.compile(re.escape(line).replace(r"\ ", r"\s"))
            expect(self.document.locator(".view-line", has_text=words).first).to_be_visible()

    def write(self, old: str, new: str) -> None:
        """Put words in the place of others in the document beside, by key."""
        self.document.locator(".view-lines").first.click()
        self.page.keyboard.press("Control+f")
        box = self.document.locator(".find-widget textarea.input").first
        box.wait_for(state="visible")
        box.fill(old)
        expect(self.document.locator(".find-widget .matchesCount")).to_contain_text("1 of 1")
        self.page.keyboard.press("Escape")
        self.page.keyboard.insert_text(new)

    def elsewhere(self, old: str, new: str) -> None:
        """The same in a terminal, in the person's other editor."""
        script = self.user.base / "editor"
        script.write_text(f"#!{sys.executable}\n{EDITOR.format(old=old, new=new)}", encoding="utf-8")
        script.chmod(0o700)
        self.user.promptside("open", "1", code=None, more={"EDITOR": str(script)})

    def beside(self, name: str, heading: str) -> None:
        """Have the document that waits now beside the panel, in place of the one before."""
        self.page.keyboard.press("Control+1")
        expect(self.document).to_have_class(re.compile(r"\bactive\b"))
        self.window.row(TITLE).click()
        expect(self.document.locator(".tab.active", has_text=name)).to_be_visible()
        self.written(heading)
        self.document.locator(".view-lines").first.click()
        expect(self.document.locator(".monaco-editor.focused")).to_be_visible()

    def enter(self, control: Locator) -> None:
        """Go from the document into the panel, to this control."""
        control.click()
        expect(control).to_be_focused()
        expect(self.document.locator(".monaco-editor.focused")).to_have_count(0)

    def draft(self) -> Any:
        """The answers as the daemon has them."""
        return self.user.promptside("open", "1", "--json", more={"EDITOR": "true"}).data["answers"]

    def caret(self) -> int:
        """Where the caret is in the text box that has focus in the panel."""
        place = "document.activeElement.selectionStart"
        found: int = self.frame.locator("body").evaluate(f"() => {place}")
        return found

    def opens(self, kind: str) -> None:
        """The panel shows a form of this kind."""
        expect(self.frame.locator(f".form.{kind}")).to_be_visible()


FILLED = {
    "title": "Leave words out",
    "note": "Words of a list are left out.",
    "kind": "fix",
    "breaking": True,
    "areas": ["web"],
    "reviewers": ["ada", "grace"],
    "risk": {"level": 2},
}
EDITOR = """\
import sys
from pathlib import Path
file = Path(sys.argv[1])
text = file.read_text()
assert {old!r} in text, text
file.write_text(text.replace({old!r}, {new!r}))
"""


def test_questions_and_options_by_mouse(user: User, open_window: Callable[..., Workbench]) -> None:
    """What is done in the panel stands in the document at once, and the other way about."""
    every_form(user)
    user.promptside("run", "1", code=None)
    panel = Form(user, open_window(settings=PLAIN), "01-research-questions-1.md")
    questions(panel)
    panel.opens("text")
    expect(panel.form.locator(".document")).not_to_be_empty()
    panel.window.picture("text")
    panel.press("Approve")
    panel.opens("options")
    panel.beside("high-level-approaches.md", "# Approaches")
    expect(panel.form.locator(":checked")).to_have_count(0)
    panel.blocked("Approve", "Select 1 option")
    radios = panel.form.get_by_role("radio")
    radios.nth(1).click()
    panel.written("- [x] Select B")
    panel.window.picture("options")
    panel.form.locator(".card").nth(0).locator("h3").click()
    expect(panel.form.locator(":checked")).to_have_count(1)
    panel.written("- [x] Select A")
    user.until(lambda task: task["waiting_for"]["gate"]["selected"] == ["A"])
    panel.press("Approve")
    user.until(lambda task: (task["waiting_for"] or {}).get("stage") == "parts")
    ticks = panel.form.get_by_role("checkbox")
    expect(ticks).to_have_count(2)
    ticks.nth(0).check()
    ticks.nth(1).check()
    user.until(lambda task: task["waiting_for"]["gate"]["selected"] == ["A", "B"])
    ticks.nth(0).uncheck()
    user.until(lambda task: task["waiting_for"]["gate"]["selected"] == ["B"])
    panel.window.picture("parts")


def questions(panel: Form) -> None:
    """One, any and a text: from here into the document, from there to here."""
    form = panel.form
    expect(form).to_contain_text("Where should the words come from?")
    expect(form.locator(":checked")).to_have_count(0)
    panel.blocked("Send answers", "required")
    panel.window.picture("questions")
    first = form.get_by_role("radiogroup", name="Q1")
    first.get_by_label("A list of ours").check()
    panel.written("- [x] B · A list of ours")
    first.get_by_label("Other", exact=True).check()
    panel.page.keyboard.type("Both of them")
    panel.written("- [ ] B · A list of ours", "- [x] Other: Both of them")
    second = form.get_by_role("group", name="Q2")
    second.get_by_label("count").check()
    second.get_by_label("top").check()
    second.get_by_label("count").uncheck()
    panel.written("- [ ] A · `count`", "- [x] B · `top`")
    panel.write("[ ] C ·", "[x] C ·")
    expect(second.get_by_label("all")).to_be_checked()
    # Words that are being typed here stay, with the caret in them, whatever is answered elsewhere.
    third = form.get_by_label("Q3 ·")
    third.click()
    panel.page.keyboard.type("--stop-word")
    panel.written("--stop-word")
    panel.page.keyboard.press("ArrowLeft")
    panel.page.keyboard.press("ArrowLeft")
    panel.elsewhere("- [x] C · `all`", "- [ ] C · `all`")
    expect(second.get_by_label("all")).not_to_be_checked()
    expect(third).to_be_focused()
    assert panel.caret() == len("--stop-word") - 2
    panel.page.keyboard.press("End")
    panel.page.keyboard.type("s")
    panel.written("--stop-words")
    # Nobody's words are overwritten while they are being typed; when the box is left, it shows what holds.
    panel.elsewhere("--stop-words", "--ignore")
    panel.written("--ignore")
    expect(third).to_have_value("--stop-words")
    second.get_by_label("count").focus()
    expect(third).to_have_value("--ignore")
    panel.window.picture("questions-answered")
    panel.press("Send answers")
    panel.user.waits("gate")
    answers = {one["id"]: one["answer"] for one in panel.user.task()["decisions"]}
    assert answers["Q3"] == "--ignore"
    assert "Both of them" in answers["Q1"]
    assert "top" in answers["Q2"]


def test_permission_checklist_and_fields_by_key(user: User, open_window: Callable[..., Workbench]) -> None:
    """No mouse is needed in a form; what is missing blocks the approval, with its reason."""
    every_form(user)
    for _ in range(3):
        user.promptside("skip", "1", "--reason", "Not here.", code=None)
    user.promptside("run", "1", code=None)
    user.waits("decision")
    panel = Form(user, open_window(settings=PLAIN))
    permission(panel)
    user.until(lambda task: (task["waiting_for"] or {}).get("kind") == "gate")
    panel.press("Approve")
    panel.opens("checklist")
    panel.beside("security-review.md", "# Security Review")
    checklist(panel)
    panel.press("Approve")
    panel.opens("fields")
    panel.beside("entry.md", "# Entry")
    fields(panel)
    panel.press("Approve")
    user.until(lambda task: task["state"] == "completed")


def permission(panel: Form) -> None:
    """Denied with a word, by key."""
    card = panel.frame.locator(".permission")
    expect(card).to_contain_text("The agent wants to run python3 -m unittest in Implementation.")
    titles = [
        "Allow once",
        "Allow for this attempt",
        "Allow for this task",
        "Always in this project",
        "Deny…",
    ]
    for title in titles:
        expect(card.get_by_role("button", name=title)).to_be_visible()
    panel.window.picture("permission")
    card.get_by_role("button", name="Deny…").focus()
    panel.page.keyboard.press("Enter")
    panel.page.keyboard.type("Run one test only.")
    panel.window.picture("denial")
    panel.page.keyboard.press("Tab")
    panel.page.keyboard.press("Enter")
    expect(card).to_have_count(0)
    (asked,) = [one for one in panel.user.task()["decisions"] if one["kind"] == "permission"]
    assert (asked["status"], asked["answer"]) == ("denied", "denied: Run one test only.")


def checklist(panel: Form) -> None:
    """Ticks, a note and a place, and a line that can't be read."""
    form, keys = panel.form, panel.page.keyboard
    expect(form.locator(":checked")).to_have_count(0)
    expect(form.locator(".sev").first).to_contain_text("0 of 2")
    panel.blocked("Approve", "W1")
    form.get_by_role("checkbox").first.focus()
    keys.press("Space")
    expect(form.locator(".sev").first).to_contain_text("1 of 2")
    form.get_by_role("button", name="Add a note on W1").focus()
    keys.press("Enter")
    keys.type("Known, see #4")
    expect(form.get_by_label("Note on W1", exact=True)).to_be_focused()
    panel.written("- [x] **W1**", "- Note: Known, see #4")
    panel.write("- [ ] **W2**", "- [y] **W2**")
    expect(form.get_by_text("Not a tick")).to_be_visible()
    panel.blocked("Approve", "can't be read")
    panel.window.picture("broken")
    form.get_by_role("button", name="Restore W2").focus()
    keys.press("Enter")
    expect(form.get_by_text("Not a tick")).to_have_count(0)
    panel.written("- [ ] **W2**", "- Note: Known, see #4")
    form.get_by_role("button", name="Tick all infos").focus()
    keys.press("Enter")
    expect(form.locator(".sev").last).to_contain_text("3 of 3")
    panel.frame.get_by_role("button", name=re.compile("^Approve")).focus()
    keys.press("Enter")
    expect(form.get_by_text("W2 is not ticked.")).to_be_visible()
    panel.window.picture("checklist")
    form.get_by_role("checkbox").nth(1).focus()
    keys.press("Space")
    expect(form.get_by_text("W2 is not ticked.")).to_have_count(0)


def fields(panel: Form) -> None:
    """Each kind of field, and one that is missing."""
    form, keys = panel.form, panel.page.keyboard
    panel.enter(form.get_by_label("Title"))
    keys.press("Control+a")
    keys.type("Leave words out")
    keys.press("Tab")
    keys.press("Control+a")
    keys.press("Delete")
    keys.press("Tab")
    panel.written("Leave words out")
    expect(form.get_by_text("Note is required and still empty.")).to_be_visible()
    panel.blocked("Approve", "Note is required and still empty.")
    panel.window.picture("fields")
    expect(form.get_by_label("feature")).to_be_focused()
    keys.press("ArrowDown")
    expect(form.get_by_label("fix")).to_be_checked()
    breaking = form.get_by_role("radiogroup", name="Breaking")
    breaking.get_by_label("No").focus()
    keys.press("ArrowUp")
    expect(breaking.get_by_label("Yes")).to_be_checked()
    form.get_by_label("web").focus()
    keys.press("Space")
    expect(form.get_by_label("web")).to_be_checked()
    form.get_by_label("Reviewers").focus()
    keys.type("ada")
    keys.press("Enter")
    keys.type("grace")
    form.get_by_label("Risk").focus()
    keys.press("Control+a")
    keys.type('{"level": ')
    expect(form.get_by_text("This is not valid JSON")).to_be_visible()
    keys.type("2}")
    expect(form.get_by_text("This is not valid JSON")).to_have_count(0)
    form.get_by_label("Note").focus()
    keys.type("Words of a list are left out.")
    expect(form.get_by_text("Note is required and still empty.")).to_have_count(0)
    panel.window.until(lambda: panel.draft() == FILLED)
    panel.window.picture("fields-filled")
