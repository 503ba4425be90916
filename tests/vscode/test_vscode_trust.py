"""Nothing of a folder runs that the person does not trust, and what to do then is said (UX M23, 3.2)."""

import shutil
from collections.abc import Callable
from importlib import resources

from playwright.sync_api import expect
from rig.user import User
from vscode_rig.stories import new_task, sample
from vscode_rig.workbench import Workbench


def test_program_of_an_untrusted_folder_is_not_run(user: User, open_window: Callable[..., Workbench]) -> None:
    """Not even looked for; once the folder is trusted it is found, and so is what the project itself brings."""
    sample(user)
    new_task(user)
    pipelines = user.project / ".promptside/pipelines"
    with resources.as_file(resources.files("promptside_daemon") / "pipelines") as shipped:
        pipelines.mkdir()
        shutil.copy(shipped / "standard.toml", pipelines / "ours.toml")
        shutil.copytree(shipped / "prompts", pipelines / "prompts")
    window = open_window(trust=False, on_path=False)
    window.page.keyboard.press("Escape")
    window.open_tasks()
    window.install_in_venv(user)
    side = window.page.locator(".sidebar")
    expect(
        side.filter(has_text="This folder is not trusted, so no program of it is run").first
    ).to_be_visible()
    window.picture("untrusted")
    side.locator(".monaco-button", has_text="Manage Trust").click()
    window.page.locator(".workspace-trust-editor .monaco-button", has_text="Trust").first.click()
    window.see_row("Leave common words out")
    window.page.locator(".workspace-trust-editor", has_text="You trust this folder").click(
        position={"x": 20, "y": 20}
    )
    window.page.keyboard.press("Escape")
    expect(window.page.locator(".workspace-trust-editor")).to_have_count(0)

    window.until(lambda: window.offers("Trust This Project's Pipeline…"))
    window.palette("Trust This Project's Pipeline…")
    dialog = window.page.locator(".monaco-dialog-box")
    expect(dialog).to_contain_text("ours.toml")
    window.picture("project")
    dialog.locator(".monaco-button", has_text="Trust").first.click()
    window.until(lambda: not window.offers("Trust This Project's Pipeline…"))
    assert user.promptside("trust", "--show", "--json").data["state"] == "trusted"
