"""ST-14: rules cover what they name and nothing else."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon.world.claude.readings import PermissionAsked
from promptside_daemon.world.claude.rules import Rule, always, covered, covers, parse, sentence, wanted

CWD = "/project/tree"


def asked(tool: str, suggested: str | None = None, **tool_input: Any) -> PermissionAsked:
    suggestions: tuple[dict[str, Any], ...] = ({"type": "setMode", "mode": "acceptEdits"},)
    if suggested is not None:
        rules = [{"toolName": tool, "ruleContent": suggested}]
        suggestions += ({"type": "addRules", "rules": rules, "behavior": "allow"},)
    return PermissionAsked(
        at=1, request="r", tool_use="t", tool=tool, input=tool_input, suggestions=suggestions
    )


def runs(rule: str, command: str) -> bool:
    return covers(parse(rule), "Bash", {"command": command}, CWD)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Read", Rule("Read")),
        ("Bash(npm test:*)", Rule("Bash", "npm test:*")),
        ('Bash(python3 -c "print(1)")', Rule("Bash", 'python3 -c "print(1)"')),
        ("WebFetch(domain:x.example)", Rule("WebFetch", "domain:x.example")),
        ("mcp__srv__tool", Rule("mcp__srv__tool")),
        ("mcp__srv__*", Rule("mcp__srv__*")),
        ("Bash(*)", Rule("Bash")),
    ],
)
def test_a_rule_is_read(text: str, rule: Rule) -> None:
    assert parse(text) == rule
    assert parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "(x)", "Bash(x", "Bash(x) y", "--x", "two words"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no permission rule"):
        parse(text)


@pytest.mark.parametrize("rule", ["Bash(npm test:*)", "Bash(npm test *)"])
def test_a_prefix_covers_the_command_with_any_plain_arguments(rule: str) -> None:
    for command in ("npm test", "npm test -- upload", "npm test 'a; b' \"c & d\" --x=1 src/*.ts"):
        assert runs(rule, command)


HOSTILE = [
    "npm testfoo",
    "npm  test",
    " npm test",
    "npm test && rm -rf /",
    "npm test || x",
    "npm test; x",
    "npm test & x",
    "npm test | tee f",
    "npm test |& x",
    "npm test > f",
    "npm test >> f",
    "npm test < f",
    "npm test 2>f",
    "npm test $(x)",
    "npm test `x`",
    "npm test ${X}",
    "npm test $X",
    "npm test <(x)",
    "npm test\nx",
    "npm test\rx",
    "npm test a\x00b",
    'npm test "$(x)"',
    'npm test "`x`"',
    "npm test \\; x",
    "npm test 'a",
    'npm test "a',
    "npm test 'a'b\"; x",
    "npm test {a,b}",
    "npm test #x",
    "npm test !x",
    "(npm test)",
    "X=1 npm test",
    "npm test 'a' ; 'b'",
    "npm test \u2028x",
    "rm -rf / # npm test",
]


@pytest.mark.parametrize("command", HOSTILE)
@pytest.mark.parametrize(
    "rule", ["Bash(npm test:*)", "Bash(npm test *)", "Bash(npm test)", "Bash(npm:*)", "Bash(*:*)"]
)
def test_a_prefix_never_covers_more_than_one_simple_command(rule: str, command: str) -> None:
    if rule == "Bash(npm:*)" and command in {"npm testfoo", "npm  test"}:
        assert runs(rule, command)
    else:
        assert not runs(rule, command)


@settings(deadline=None)
@given(st.text(alphabet=";&|<>$`\\\n(){}#! a", min_size=1), st.text(alphabet="abc '\"", max_size=6))
def test_no_prefix_covers_what_the_shell_could_take_apart(special: str, around: str) -> None:
    command = f"npm test {around}{special}{around}"
    if runs("Bash(npm test:*)", command):
        # Then each special character stands between quotes that take its meaning away.
        bare, quote = [], ""
        for character in command:
            if quote:
                assert quote == "'" or character not in "$`\\"
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            else:
                bare.append(character)
        assert not set(bare) & set(";&|<>$`\\\n(){}#!")


def test_an_exact_rule_covers_exactly_that() -> None:
    compound = "make -v && touch zz"
    assert runs(f"Bash({compound})", compound)
    assert not runs(f"Bash({compound})", f"{compound} x")
    assert not runs("Bash(make)", "make all")
    # A star is never taken literally, so a rule that ends with one can't smuggle in more than its prefix.
    assert not runs("Bash(rm -rf build/*)", "rm -rf build/*")


def test_a_tool_without_brackets_is_covered_whole() -> None:
    assert runs("Bash", "anything; at && all")
    assert not covers(parse("Bash"), "Write", {"file_path": "x"}, CWD)
    assert covers(parse("Edit"), "Write", {"file_path": "/anywhere"}, CWD)
    assert covers(parse("Read"), "Grep", {"pattern": "x"}, CWD)
    assert not covers(parse("Write"), "Edit", {"file_path": "x"}, CWD)


@pytest.mark.parametrize(
    ("rule", "path", "does"),
    [
        ("Edit(src/**)", "/project/tree/src/a/b.py", True),
        ("Edit(src/**)", "src/a.py", True),
        ("Edit(./src/*)", "src/a.py", True),
        ("Edit(/src/*)", "src/a.py", True),
        ("Edit(src/*)", "src/a/b.py", False),
        ("Edit(src/**)", "src/../secret", False),
        ("Edit(src/**)", "/project/tree/src/../../x", False),
        ("Edit(src/**)", "/other/src/a.py", False),
        ("Edit(src/**)", "srcs/a.py", False),
        ("Edit(a?.py)", "ab.py", True),
        ("Edit(a.py)", "axpy", False),
        ("Edit(//etc/**)", "/etc/hosts", True),
        ("Edit(//etc/**)", "/etcetera", False),
        ("Edit(~/**)", "/home/u/x", False),
        ("Edit(src/**)", "src/a\0b", False),
    ],
)
def test_a_path_rule_covers_what_lies_below(rule: str, path: str, does: bool) -> None:
    assert covers(parse(rule), "Write", {"file_path": path}, CWD) == does


@pytest.mark.parametrize(
    ("url", "does"),
    [
        ("https://x.example/a", True),
        ("http://X.EXAMPLE:8080", True),
        ("https://evil.x.example", False),
        ("https://x.example.evil", False),
        ("https://x.example@evil/", False),
        ("https://evil/?x.example", False),
        ("http://[bad", False),
        ("x.example", False),
    ],
)
def test_a_domain_rule_covers_that_host(url: str, does: bool) -> None:
    assert covers(parse("WebFetch(domain:x.example)"), "WebFetch", {"url": url, "prompt": "p"}, CWD) == does


def test_rules_for_servers() -> None:
    assert covers(parse("mcp__db"), "mcp__db__query", {}, CWD)
    assert covers(parse("mcp__db__*"), "mcp__db__query", {}, CWD)
    assert covers(parse("mcp__db__query"), "mcp__db__query", {}, CWD)
    assert not covers(parse("mcp__db__query"), "mcp__db__drop", {}, CWD)
    assert not covers(parse("mcp__db"), "mcp__dbs__query", {}, CWD)
    assert not covers(parse("mcp__*"), "mcp__db__query", {}, CWD)
    assert not covers(parse("Skill(x)"), "Skill", {"skill": "y"}, CWD)


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (asked("Bash", "npm install *", command="npm install"), "Bash(npm install *)"),
        (asked("Bash", "pytest -q", command="pytest -q"), "Bash(pytest -q)"),
        # What the CLI suggests for a part of a compound command would not cover it: the whole is taken.
        (
            asked("Bash", "git commit *", command="git commit -m x && rm -f y"),
            "Bash(git commit -m x && rm -f y)",
        ),
        (asked("Bash", "npm test *", command="npm test > f"), "Bash(npm test > f)"),
        (asked("Bash", command="echo $(whoami)"), "Bash(echo $(whoami))"),
        # A rule with a star would be read as a pattern.
        (asked("Bash", command="rm -rf build/* && x"), None),
        (asked("WebFetch", "domain:x.example", url="https://x.example/"), "WebFetch(domain:x.example)"),
        (asked("WebFetch", "domain:evil", url="https://x.example/"), None),
        (asked("Read", "//etc/**", file_path="/etc/hostname"), "Read(//etc/hostname)"),
        (asked("Write", file_path="/project/tree/a b.txt"), "Edit(a b.txt)"),
        (asked("Write", file_path="/elsewhere/x"), "Edit(//elsewhere/x)"),
        (asked("Write", file_path="/project/tree/[x]"), None),
        (asked("mcp__db__query", query="q"), "mcp__db__query"),
    ],
)
def test_always_makes_a_rule_that_covers_the_ask_and_little_more(
    ask: PermissionAsked, rule: str | None
) -> None:
    made = always(ask, CWD)
    assert (str(made) if made else None) == rule
    if made:
        assert covered((Rule("Other"), made), ask, CWD)
        assert covered((parse(str(made)),), ask, CWD)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (asked("Bash", command="npm install"), "The agent wants to run `npm install` in Implementation."),
        (asked("Bash", command="echo `x`"), "The agent wants to run “echo `x`” in Implementation."),
        (asked("Bash", command="a\x1b[2Jb"), "The agent wants to run `ab` in Implementation."),
        (asked("Read", file_path="/etc/hosts"), "The agent wants to read `/etc/hosts` in Implementation."),
        (asked("Write", file_path="/project/tree/x"), "The agent wants to write `x` in Implementation."),
        (asked("WebFetch", url="https://x"), "The agent wants to fetch `https://x` in Implementation."),
        (asked("mcp__db__query", query="q"), "The agent wants to use db query q in Implementation."),
        (asked("EnterWorktree"), "The agent wants to use EnterWorktree in Implementation."),
    ],
)
def test_an_ask_is_said_in_a_sentence(ask: PermissionAsked, said: str) -> None:
    assert sentence(ask, "Implementation", CWD) == said


def test_the_exact_command_is_kept_whole() -> None:
    command = "cat <<X\n" + "y" * 5000 + "\nX"
    assert wanted(asked("Bash", command=command, description="d")) == command
    assert wanted(asked("EnterWorktree")) == ""
