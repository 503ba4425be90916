"""The TypeScript that needs no editor: words, colours, Markdown, answers; run by Node's own test runner."""

import re
import subprocess

from rig.editor_tools import EXTENSION, environment, node, npm_program


def test_the_units_pass() -> None:
    """As many as there are files of tests, at least; one that is not found by the runner would be left out unseen."""
    files = [*EXTENSION.glob("src/**/*.test.ts"), *EXTENSION.glob("webview/**/*.test.ts")]
    ran = subprocess.run(
        [str(node()), str(npm_program()), "test", "--silent"],
        cwd=EXTENSION,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"pass (\d+)", ran.stdout)
    assert passed is not None, ran.stdout
    assert int(passed[1]) >= len(files), ran.stdout
