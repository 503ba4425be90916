"""Where a verb writes: colours, marks, folds, errors as words or data, and the exit code of each failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from promptside_cli import call as calling
from promptside_cli import place
from promptside_cli.editor import chosen, copy_of
from promptside_cli.exits import Stopped, UsageError, exit_for
from promptside_cli.terminal import Terminal, unfolded, visible
from promptside_protocol import errors
from promptside_protocol.pages.page import Line, Page, Span
from promptside_protocol.pages.task import task_page
from promptside_protocol.views import TaskView

Make = Callable[..., Terminal]
GREEN = Line(spans=(Span("ok", "done"), Span(" plain")))


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PROMPTSIDE")}
    return subprocess.run(
        [sys.executable, "-m", "promptside_cli", *words],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        stdin=subprocess.DEVNULL,
        check=False,
    )


# --- colours and marks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "environment", "coloured"),
    [
        ({"tty": True, "color": "auto"}, {}, True),
        ({"tty": False, "color": "auto"}, {}, False),
        ({"tty": True, "color": "auto"}, {"NO_COLOR": "1"}, False),
        ({"tty": True, "color": "auto"}, {"TERM": "dumb"}, False),
        ({"tty": True, "color": "never"}, {}, False),
        ({"tty": False, "color": "always"}, {"NO_COLOR": "1"}, True),
    ],
)
def test_when_there_are_colours(
    terminal: Make,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, bool],
    environment: dict[str, str],
    coloured: bool,
) -> None:
    """UX 6: four of the sixteen and dim, off with NO_COLOR, TERM=dumb, --color never and in a pipe."""
    terminal()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = terminal(**options, term=environment.get("TERM", "xterm"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    from promptside_cli.terminal import Terminal as Again

    made = Again(json=False, color=str(options["color"]), stdout=made.data, stderr=made.err)
    made.line(GREEN)
    written = made.data.getvalue()  # type: ignore[attr-defined]  # the fixture's string
    assert written == ("\x1b[32mok\x1b[0m plain\n" if coloured else "ok plain\n")


def test_words_for_people_never_mix_with_data(terminal: Make) -> None:
    made = terminal(json=True)
    made.say("for people")
    made.document({"a": (1, 2)})
    assert made.data.getvalue() == '{"a":[1,2]}\n'  # type: ignore[attr-defined]  # the fixture's string
    assert made.err.getvalue() == "for people\n"  # type: ignore[attr-defined]  # see above


def test_closed_folds_hide_what_is_inside(task: Callable[..., TaskView]) -> None:
    inside = Line(spans=(Span("in"),), fold="inside")
    page = Page(
        title="t",
        lines=(
            Line(spans=(Span("A"),), fold="closed"),
            inside,
            Line(spans=(Span("B"),), fold="open"),
            inside,
            Line(spans=(Span("C"),)),
        ),
    )
    assert ["".join(s.text for s in one.spans) for one in visible(page)] == ["A", "B", "in", "C"]
    assert len(visible(unfolded(page))) == 5
    whole = task_page(task(), terminal_look())
    assert len(visible(unfolded(whole))) == len(whole.lines)


def terminal_look() -> object:
    from promptside_protocol.pages.page import Look

    return Look(now=0.0)


# --- failures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.Refused, 4),
        (errors.NotAllowed, 4),
        (errors.InvalidParams, 2),
        (errors.Unreachable, 5),
        (errors.ProtocolMismatch, 5),
        (errors.UnknownMethod, 5),
        (errors.Internal, 1),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_what_the_daemon_says_becomes_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: type[errors.PromptsideError],
    code: int,
    as_json: bool,
) -> None:
    """CLI.md: an error is a document with --json, with the same exit code."""

    def refuse(_: object) -> None:
        raise kind(errors.Refusal(code="state", message="Not \x1b[31mnow.", hint="Later."))

    monkeypatch.setattr(place, "task", refuse)
    assert calling.call(["approve", "12", *(["--json"] if as_json else [])]) == code
    out, err = capsys.readouterr()
    assert err == "promptside: Not now.\nLater.\n"
    if as_json:
        assert json.loads(out) == {
            "error": {"code": "state", "message": "Not \x1b[31mnow.", "hint": "Later."}
        }
    else:
        assert out == ""


def test_every_error_of_the_protocol_has_an_exit_code() -> None:
    for kind in errors.PromptsideError.__subclasses__():
        assert exit_for(kind(errors.Refusal(code="c", message="m"))) in (1, 2, 4, 5)


def test_a_difference_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """M11: other bytes than the daemon has."""

    def refuse(_: object) -> None:
        raise errors.refused("other_bytes", "Nothing was approved.", "promptside open 12", "-a\n+b\n")

    monkeypatch.setattr(place, "task", refuse)
    assert calling.call(["approve", "--json"]) == 4
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["difference"] == "-a\n+b\n"
    assert err.endswith("promptside open 12\n-a\n+b\n")


def test_usage_errors_end_with_2() -> None:
    for words in (["aprove"], ["run", "--on-ask", "x"], ["answer", "12", "Q1"], ["agent"], []):
        ended = run(*words)
        assert ended.returncode == 2, words
        assert ended.stdout == ""
        assert ended.stderr.startswith("promptside: ")
    ended = run("task", "new", "--json")
    assert json.loads(ended.stdout)["error"]["code"] == "usage"
    assert "usage: promptside task new TITLE" in ended.stderr


def test_help_and_version() -> None:
    assert run("--version").stdout.startswith("promptside 0.")
    assert "promptside VERB --help" in run("--help").stdout
    ended = run("approve", "--help")
    assert ended.returncode == 0
    assert "Example: promptside approve 12 --select A" in ended.stdout
    assert ended.stdout == run("--help", "approve").stdout


def test_a_short_call_imports_little() -> None:
    """P6s: neither `--version` nor `task list` pays for what it doesn't use."""
    probe = (
        "import sys; sys.argv = ['promptside', *{words!r}]\n"
        "try:\n import promptside_cli.__main__ as m; m.main()\n"
        "except BaseException: pass\n"
        "print(*sorted({{n.split('.')[0] for n in sys.modules}}), file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", probe.format(words=["--version"])], capture_output=True, text=True, check=True
    ).stderr.split()
    assert "promptside_cli" in loaded
    assert not {"msgspec", "asyncio", "rich", "jinja2", "argparse"} & set(loaded)
    listing = (
        "import sys, promptside_cli.call, promptside_cli.task, promptside_cli.wire\n"
        "import promptside_protocol.pages.tasks\n"
        "print(*sorted({n.split('.')[0] for n in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", listing], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "promptside_protocol" in loaded
    assert not {"asyncio", "rich", "jinja2", "argparse", "subprocess", "unicodedata"} & set(loaded)


def test_a_reader_that_goes_away_is_no_fault() -> None:
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "promptside_cli", "--help"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_locale_without_our_letters_breaks_nothing() -> None:
    ended = run("aprove", PYTHONIOENCODING="ascii")
    assert ended.returncode == 2
    assert "\\u201caprove\\u201d" in ended.stderr


# --- places and the editor ---------------------------------------------------------------------------------


def test_the_git_top_level(tmp_path: Path) -> None:
    inner = tmp_path / "a b" / "c"
    inner.mkdir(parents=True)
    assert place.git_top(inner) == inner
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")  # a worktree has a file
    assert place.git_top(inner) == tmp_path


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"VISUAL": "code --wait", "EDITOR": "vi"}, ["code", "--wait"]),
        ({"EDITOR": "'/my editors/e' -x"}, ["/my editors/e", "-x"]),
        ({"VISUAL": "", "EDITOR": "ed"}, ["ed"]),
    ],
)
def test_which_editor(environment: dict[str, str], words: list[str]) -> None:
    assert chosen(environment) == words


def editor(tmp_path: Path, script: str) -> str:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.parametrize(
    ("script", "written"),
    [('printf new > "$1"', "new"), ("true", None), ('printf new > "$1"; exit 1', None)],
)
def test_what_an_editor_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, written: str | None
) -> None:
    """An editor that ends badly (`:cq`) has changed nothing."""
    monkeypatch.setenv("VISUAL", editor(tmp_path, script))
    copy = copy_of("old\r\n")
    assert copy.path.stat().st_mode & 0o777 == 0o600
    assert copy.path.suffix == ".md"
    assert copy.path.read_bytes() == b"old\r\n"
    assert copy.edited() == written
    copy.remove()
    assert not copy.path.exists()


def test_an_editor_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/nowhere/editor")
    copy = copy_of("x")
    with pytest.raises(Stopped, match="can't be started"):
        copy.edited()
    copy.remove()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("VISUAL")
    monkeypatch.delenv("EDITOR", raising=False)
    with pytest.raises(Stopped, match="no editor"):
        chosen(os.environ)


@pytest.mark.parametrize(
    ("words", "priority"), [([], 50), (["--priority", "high"], 90), (["--priority", "7"], 7)]
)
def test_priorities(monkeypatch: pytest.MonkeyPatch, words: list[str], priority: int) -> None:
    """CLI.md: medium 50, low 10, high 90."""
    from promptside_cli import task as tasks
    from promptside_cli import wire

    given: list[object] = []

    def ask(order: object) -> object:
        given.append(order)
        raise Stopped("enough", "enough")

    monkeypatch.setattr(wire, "ask", ask)
    monkeypatch.setattr(place, "project_made", lambda _: "/p")
    assert calling.call(["task", "new", "-t", *words]) == 4
    assert (given[0].priority, given[0].title) == (priority, "-t")  # type: ignore[attr-defined]  # a NewTask
    assert len(given[0].key) == 32  # type: ignore[attr-defined]  # see above
    assert tasks.PRIORITIES["low"] == 10


def test_a_priority_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calling.call(["task", "new", "t", "--priority", "urgent"]) == 2


def test_usage_errors_carry_their_parts() -> None:
    error = UsageError("m", "u", "h")
    assert (error.message, error.usage, error.hint) == ("m", "u", "h")
