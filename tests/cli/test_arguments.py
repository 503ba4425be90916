"""Reading command lines: what is an option, what is text, which task, and what a wrong line is told."""

from __future__ import annotations

import pytest

from promptside_cli import help as help_text
from promptside_cli.arguments import Arguments, common_first, read
from promptside_cli.call import find
from promptside_cli.exits import UsageError
from promptside_cli.verbs import LATER, VERBS


def given(line: str) -> Arguments:
    """A line as a shell would split it; `_` stands for a blank inside a word."""
    front, rest = common_first([word.replace("_", " ") for word in line.split()])
    verb, left = find(rest)
    return read(verb, front + left)


def wrong(line: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        given(line)
    return caught.value


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("task new Add_login", "Add login"),
        ("task new --weird", "--weird"),
        ("task new -x", "-x"),
        ("task new -", "-"),
        ("task new --", "--"),
        ("task new -- --json", "--json"),
        ("task new -- --", "--"),
        ("task new --priority high -m", "-m"),
        ("task new 12", "12"),
        ("task new --state=ready", "--state=ready"),
    ],
)
def test_a_word_that_is_no_option_is_text(line: str, title: str) -> None:
    """CLI.md: also when it begins with `-`."""
    assert given(line).word("TITLE") == title


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("approve 12", 12),
        ("approve #12", 12),
        ("approve @", 0),
        ("approve", 0),
        ("run --json", 0),
        ("--json run 7", 7),
        ("back planning", 0),
        ("back 3 planning", 3),
        ("say 3 stop it now", 3),
        ("say stop it now", 0),
        ("answer Q1 --option A", 0),
        ("answer 4 Q1 --option A", 4),
    ],
)
def test_a_task_is_a_number_or_the_open_one(line: str, task: int) -> None:
    assert given(line).task == task


def test_options_with_values() -> None:
    read_in = given("redo 12 -m no_table --fresh")
    assert (read_in.one("--feedback"), read_in.given("--fresh")) == ("no table", True)
    assert given("redo 12 --feedback=a=b").one("--feedback") == "a=b"
    assert given("redo 12 -m --fresh").one("--feedback") == "--fresh"
    assert given("redo 12 --feedback=").one("--feedback", "x") == ""
    many = given("approve --select A --select B --check C1=fixed_it --check all --field title=a=b")
    assert many.all("--select") == ("A", "B")
    assert many.all("--check") == ("C1=fixed it", "all")
    assert many.one("--field") == "title=a=b"


@pytest.mark.parametrize("line", ["answer 4 Q2 --option A B", "answer --option A --option B 4 Q2"])
def test_a_list_takes_the_words_that_follow(line: str) -> None:
    """`answer TASK DECISION (--option O… | …)`"""
    read_in = given(line)
    assert read_in.all("--option") == ("A", "B")
    assert (read_in.task, read_in.word("DECISION")) == (4, "Q2")


def test_say_joins_its_words() -> None:
    assert given("say 3 use --the queue").word("TEXT") == "use --the queue"


def test_common_options_stand_anywhere() -> None:
    for line in (
        "--project /p --json task list",
        "task list --json --project=/p",
        "--json task list --project /p",
    ):
        read_in = given(line)
        assert (read_in.json, read_in.one("--project")) == (True, "/p")


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("aprove 12", "“aprove” is no verb.", "Did you mean “promptside approve”?"),
        ("task lst", "“task lst” is no verb.", "Did you mean “promptside task list”?"),
        ("approve 12 --selct A", "“--selct” is no option of approve.", "Did you mean --select?"),
        (
            "task new Add login",
            "“login” is one word too many for task new.",
            "Put a text of several words in quotes.",
        ),
        ("task new --prority high x", "“--prority” is no option of task new.", "Did you mean --priority?"),
        ("run twelve", "“twelve” is no task: give its number, or @.", ""),
        ("approve 12 13", "“13” is one word too many for approve.", ""),
        ("run --on-ask never", "--on-ask takes wait or deny, not “never”.", ""),
        ("task list --state redy", "“redy”", "Did you mean --state ready?"),
        ("redo -m", "-m needs a value: -m TEXT.", ""),
        ("run --json=yes", "--json takes no value.", ""),
        ("run --input a --input b", "--input was given twice.", ""),
        ("task new", "TITLE is missing.", ""),
        ("say 12", "TEXT is missing.", ""),
        ("answer 12", "DECISION is missing.", ""),
        ("task", "promptside task does what?", ""),
        ("agent", "promptside agent comes with a later version.", ""),
        ("task claim 3", "promptside task claim comes with a later version.", ""),
        ("zzz", "“zzz” is no verb.", ""),
    ],
)
def test_a_wrong_line_is_told_what_is_meant(line: str, message: str, hint: str) -> None:
    error = wrong(line)
    assert message in error.message
    assert error.hint == hint


def test_no_words_at_all() -> None:
    with pytest.raises(UsageError, match="What is to be done"):
        find([])


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_verb_reads_its_own_example(name: str) -> None:
    """The example that `--help` shows is a line that works."""
    verb = VERBS[name]
    words = [word.strip('"') for word in _shell(verb.example)[1:]]
    found, left = find(words)
    assert found.module == verb.module
    read(found, left)
    assert verb.usage.startswith(f"promptside {name.removesuffix(' list') if name == 'rules list' else name}")
    assert f"Example: {verb.example}" in help_text.of(verb)
    assert name == "rules list" or f"  {name}  " in help_text.overview()


@pytest.mark.parametrize("name", sorted(VERBS))
def test_every_verb_has_a_function_behind_it(name: str) -> None:
    from importlib import import_module

    module, _, function = VERBS[name].module.partition(":")
    assert callable(getattr(import_module(module), function))


def test_every_option_of_a_verb_is_in_its_usage() -> None:
    hidden = {"--limit", "--offset", "--conversation", "--both", "--agent", "--stage", "--attempt"}
    for verb in VERBS.values():
        for option in verb.options:
            assert option.name in verb.usage or option.name in hidden, (verb.name, option.name)


def test_no_verb_is_both_here_and_later() -> None:
    assert not LATER & VERBS.keys()


def _shell(line: str) -> list[str]:
    import shlex

    return shlex.split(line)
