"""The panel's page without VS Code: its own template, script, sheet and policy, and an editor of a few lines.

What the page tells the editor is kept in `sent`; what VS Code lays over a page in each theme was taken from a real one
(`take_themes.py`).
"""

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Locator, Page, Route
from rig.editor_tools import EXTENSION

from panel_scenes.made import Scene

DIST = EXTENSION / "dist"
THEMES = Path(__file__).parent / "themes"
USED = r"--vscode-[\w-]+"
ADDRESS = "http://panel.invalid"
CONTROLS = {"button", "link", "textbox", "radio", "checkbox", "menuitem", "radiogroup", "DisclosureTriangle"}
KINDS_OF_FILE = {".css": "text/css", ".js": "text/javascript", ".ttf": "font/ttf"}
EDITOR = """
window.sent = [];
window.documents = [];
window.acquireVsCodeApi = () => ({
    postMessage: message => {
        sent.push(message);
        if (message.type === 'answer') postMessage({ type: 'taken', answer: message.answer, ok: true });
        if (message.type !== 'document') return;
        const { stage, attempt } = message;
        const document = documents.find(one => one.stage === stage && one.attempt === attempt) ?? null;
        postMessage({ type: 'document', stage, attempt, document });
    },
    getState: () => undefined,
    setState: state => (window.kept = state),
});
"""


class PanelPage:
    """One page; `show` draws a scene in it from nothing, `push` as a change of what is there."""

    def __init__(self, browser: BrowserContext) -> None:
        self.faults: list[str] = []
        """Errors of the script, and what the policy forbade."""
        self.page: Page = browser.new_page()
        self.page.add_init_script(EDITOR)
        self.page.add_init_script(path=Path(__file__).with_name("look.js"))
        self._files = _served()
        self._themes = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in THEMES.iterdir()}
        self.page.route(f"{ADDRESS}/**", self._serve)
        self.page.on("pageerror", self._threw)
        self.page.on("console", self._said)

    def close(self) -> None:
        self.page.close()

    def show(self, scene: Scene, *, theme: str = "dark") -> None:
        """The page anew, with this as what it is told first."""
        self.page.goto(f"{ADDRESS}/")
        self.dress(theme)
        self.push(scene)

    def push(self, scene: Scene) -> None:
        """Tell it something more; when this returns it is drawn."""
        told = [scene.shown, list(scene.documents)]
        self.page.evaluate("([shown, all]) => { documents = all; window.postMessage(shown) }", told)
        self.settle()

    def time(self, seconds: float) -> None:
        """Its clock stands at that; Playwright's own would stand still for every other page, too."""
        self.page.evaluate("now => { Date.now = () => now }", seconds * 1000)

    def settle(self) -> None:
        """Until what was told is heard, and drawn."""
        self.page.evaluate(
            "() => new Promise(done => { postMessage({}); addEventListener('message', () => setTimeout(() => "
            "requestAnimationFrame(() => done()), 0), { once: true }) })"
        )

    def dress(self, theme: str) -> None:
        """Another theme, as VS Code changes it while the page is open."""
        self.page.evaluate(
            """({ body, variables }) => {
                document.body.className = body;
                const { style } = document.documentElement;
                for (const [name, value] of Object.entries(variables)) style.setProperty(name, value);
            }""",
            self._themes[theme],
        )

    def width(self, pixels: int, height: int = 800) -> None:
        self.page.set_viewport_size({"width": pixels, "height": height})

    def look(self, what: str) -> Any:
        """The answer of a function in `look.js`."""
        return self.page.evaluate(f"look.{what}()")

    def order(self, title: str) -> Any:
        """What comes of the button with this title; with words, where some are asked for."""
        return self.page.evaluate("title => look.order(title)", title)

    def nameless(self) -> list[str]:
        """Controls that a screen reader would call nothing."""
        session = self.page.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        of_interest = [one for one in nodes if not one["ignored"] and one["role"]["value"] in CONTROLS]
        assert of_interest, "there is nothing to be done here"
        return [one["role"]["value"] for one in of_interest if not one["name"]["value"].strip()]

    def sent(self, kind: str) -> list[Any]:
        """What the page told the editor, of one type."""
        found: list[Any] = self.page.evaluate("kind => sent.filter(one => one.type === kind)", kind)
        return found

    @property
    def stages(self) -> Locator:
        return self.page.get_by_role("navigation", name="Stages").get_by_role("button")

    def group(self, name: str) -> Locator:
        return self.page.get_by_role("group", name=name, exact=True)

    def _serve(self, route: Route) -> None:
        name = route.request.url.removeprefix(f"{ADDRESS}/").partition("?")[0]
        kind, body = self._files[name]
        route.fulfill(content_type=kind, body=body)

    def _threw(self, error: Error) -> None:
        self.faults.append(str(error))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)


def _served() -> dict[str, tuple[str, bytes]]:
    """What the page is made of; its sheet names the font by address."""
    files = {
        file.name: (KINDS_OF_FILE[file.suffix], file.read_bytes())
        for file in DIST.glob("*.*")
        if file.suffix in KINDS_OF_FILE
    }
    return {"": ("text/html", _frame().encode()), **files}


def _frame() -> str:
    """The page that `panel.ts` makes, with what VS Code puts in front of it."""
    source = (EXTENSION / "src/panel.ts").read_text(encoding="utf-8")
    (html,) = re.findall(r"<!DOCTYPE html>.*?</html>", source, re.DOTALL)
    (policy,) = re.findall(r"const policy = `(.*?)`", source)
    known = {"policy": policy, "webview.cspSource": ADDRESS, "nonce": "once"}
    known |= {f"address('{name}')": f"{ADDRESS}/{name}" for name in ("panel.css", "panel.js")}
    for name, value in known.items():
        html = html.replace(f"${{{name}}}", value)
    assert "${" not in html, "the template of panel.ts has something that is not known here"
    sheet = json.loads((THEMES / "dark.json").read_text(encoding="utf-8"))["sheet"]  # the same in all
    return str(html.replace("<head>", f"<head><style>{sheet}</style>"))
