"""Settings: names, defaults, who wins, who may set what, and faults at their line (DA-5, DA-9 to DA-12)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from promptside_daemon.engine.pipeline import Limits, Stage
from promptside_daemon.settings import Checks, Settings, load, rules_with_checks, scope_of

# The table of the terminal's contract, and what the daemon's rows DA-9, DA-10 and DA-12 add.
DEFAULTS: dict[str, dict[str, object]] = {
    "agent": {"default": "claude", "claude": {"command": "claude", "model": "", "env": {}}},
    "pipeline": {"default": "standard"},
    "limits": {
        "agents": 4, "silence_s": 600, "stage_s": 14400, "turns": 200, "retries": 5, "park_s": 1800,
        "budget_usd": 0,
    },
    "git": {"base": "", "branch": "task/{id}-{slug}", "push": True, "worktrees": ".promptside/worktrees"},
    "checks": {"test": "", "lint": "", "build": "", "skip": []},
    "notify": {
        "desktop": True, "stage_change": True, "questions": True, "blocker": True, "pr_created": True,
        "pr_merged": True, "review_done": True,
    },
    "retention": {"days": 90, "size_mb": 4096},
    "environment": {"allow": []},
    "daemon": {"keep_awake": False},
}  # fmt: skip


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's settings file."""
    monkeypatch.setenv("PROMPTSIDE_HOME", str(tmp_path / "person"))
    (tmp_path / "person/config").mkdir(parents=True)
    return tmp_path / "person/config/config.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/.promptside").mkdir(parents=True)
    return tmp_path / "project"


def of_project(project: Path, text: str) -> None:
    (project / ".promptside/config.toml").write_text(text)


def test_names_and_defaults_are_the_contracts() -> None:
    assert msgspec.json.decode(msgspec.json.encode(Settings())) == DEFAULTS
    read = load()
    assert (read.settings, read.faults, read.untrusted) == (Settings(), (), ())


def test_da11_later_wins_and_what_is_not_set_stays(own: Path, project: Path) -> None:
    own.write_text("[limits]\nturns = 10\nretries = 1\n[git]\nbase = 'main'\n")
    of_project(project, "[limits]\nturns = 20\n[checks]\ntest = 'make test'\nskip = ['lint']\n")
    read = load(project, trusted=True)
    assert read.faults == ()
    assert read.settings.limits == Limits(turns=20, retries=1)
    assert read.settings.git.base == "main"
    assert read.settings.checks == Checks(test="make test", skip=("lint",))
    assert load().settings.limits.turns == 10


def test_da5_an_untrusted_project_sets_names_in_git_and_nothing_else(own: Path, project: Path) -> None:
    own.write_text("[checks]\ntest = 'mine'\n[limits]\nbudget_usd = 1\n")
    of_project(
        project,
        "[checks]\ntest = 'theirs'\n[pipeline]\ndefault = 'evil'\n[limits]\nbudget_usd = 0\n[git]\n"
        "push = false\n"
        "base = 'trunk'\nbranch = 'x/{id}'\n[agent]\ndefault = 'rehearsal'\n[agent.claude]\nmodel = 'opus'\n",
    )
    read = load(project)
    assert read.faults == ()
    assert read.settings.checks.test == "mine"
    assert read.settings.pipeline.default == "standard"
    assert read.settings.limits.budget_usd == 1
    assert read.settings.agent == Settings().agent
    assert (read.settings.git.push, read.settings.git.base, read.settings.git.branch) == (
        True,
        "trunk",
        "x/{id}",
    )
    assert set(read.untrusted) == {
        "checks.test", "pipeline.default", "limits.budget_usd", "git.push", "agent.default",
        "agent.claude.model",
    }  # fmt: skip
    assert load(project, trusted=True).settings.checks.test == "theirs"


PERSONAL = [
    ("[agent.claude]", "command = './evil'"),
    ("[agent.claude]", "env = { LD_PRELOAD = './evil.so' }"),
    ("[environment]", "allow = ['AWS_SECRET']"),
    ("[retention]", "days = 1"),
    ("[limits]", "agents = 1000"),
    ("[notify]", "questions = false"),
    ("[daemon]", "keep_awake = true"),
]


@pytest.mark.parametrize(("table", "line"), PERSONAL)
@pytest.mark.parametrize("trusted", [False, True])
def test_da5_no_project_chooses_programs_environment_or_what_is_the_persons(
    project: Path, table: str, line: str, trusted: bool
) -> None:
    of_project(project, f"{table}\n{line}\n")
    read = load(project, trusted=trusted)
    assert read.settings == Settings()
    (fault,) = read.faults
    assert (fault.severity, fault.line) == ("warning", 2)
    assert "can't set" in fault.message
    assert "config.toml" in fault.hint


@pytest.mark.parametrize(("table", "line"), PERSONAL)
def test_the_person_sets_them(own: Path, table: str, line: str) -> None:
    own.write_text(f"{table}\n{line}\n")
    read = load()
    assert read.faults == ()
    assert read.settings != Settings()


def test_every_setting_has_somebody_who_may_set_it() -> None:
    keys = [f"{table}.{key}" for table, value in DEFAULTS.items() for key in value if table != "agent"]
    scopes = {
        key: scope_of(key) for key in [*keys, "agent.default", "agent.claude.command", "agent.claude.model"]
    }
    assert {key for key, scope in scopes.items() if scope == "anyone"} == {
        "git.base",
        "git.branch",
        "git.worktrees",
    }
    assert scope_of("something.new") == "person"


# The fault is in the last line.
FAULTS = {
    "unknown table": ("[limit]", "Did you mean `limits`?"),
    "unknown key": ("[limits]\nturn = 3", "Did you mean `turns`?"),
    "unknown key of the agent": ("[agent.claude]\ncmd = 'x'", "no key `cmd`"),
    "table as text": ("limits = 'x'", "must be a table"),
    "text as number": ("[limits]\nturns = '3'", "must be a whole number"),
    "truth as number": ("[limits]\nagents = true", "must be a whole number"),
    "fraction": ("[limits]\nretries = 0.5", "must be a whole number"),
    "below nothing": ("[limits]\nstage_s = -1", "must be from 0"),
    "no end": ("[limits]\nsilence_s = inf", "must be from 0"),
    "no number": ("[limits]\nsilence_s = nan", "must be from 0"),
    "no agent": ("[limits]\nagents = 0", "at least 1"),
    "number as truth": ("[notify]\ndesktop = 1", "must be `true` or `false`"),
    "no such agent": ("[agent]\ndefault = 'cloude'", "Did you mean `claude`?"),
    "no command": ("[agent.claude]\ncommand = ''", "is empty"),
    "environment of numbers": ("[agent.claude]\nenv = { A = 1 }", "must be a text"),
    "environment's name": ("[agent.claude]\nenv = { 'A=B' = 'x' }", "can't be a variable's name"),
    "list as text": ("[environment]\nallow = 'A'", "must be a list of texts"),
    "variable's name": ("[environment]\nallow = ['A B']", "can't be a variable's name"),
    "no such check": ("[checks]\nskip = ['tests']", "Did you mean `test`?"),
    "open quote": ('[checks]\ntest = "echo \'x"', "can't be split"),
    "two lines": ('[checks]\ntest = "a\\nb"', "one line"),
    "an option as branch": ("[git]\nbase = '--upload-pack=x'", "can't be the name of a branch"),
    "branch without id": ("[git]\nbranch = 'task'", "needs `{id}`"),
    "unknown place": ("[git]\nbranch = '{id}{name}'", "`{slug}`"),
    "no branch's name": ("[git]\nbranch = 'a..{id}'", "can't be the name of a branch"),
    "worktrees elsewhere": ("[git]\nworktrees = '../x'", "inside of the project"),
    "worktrees from the root": ("[git]\nworktrees = '/tmp'", "inside of the project"),
    "worktrees in git": ("[git]\nworktrees = '.git/x'", "inside of `.git`"),
    "pipeline by path": ("[pipeline]\ndefault = '../x.toml'", "name of a pipeline"),
    "no TOML": ("[git]\nbase = ", "not TOML"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_said_at_its_line_and_its_value_does_not_count(own: Path, name: str) -> None:
    text, words = FAULTS[name]
    own.write_text(text)
    read = load()
    (fault,) = read.faults
    assert (fault.file, fault.line, fault.severity) == (str(own), text.count("\n") + 1, "error")
    assert words in f"{fault.message} {fault.hint}"
    assert read.settings == Settings()


def test_one_fault_leaves_the_other_settings_in_force(own: Path) -> None:
    own.write_text("[limits]\nturns = 'x'\nretries = 2\n")
    read = load()
    assert len(read.faults) == 1
    assert read.settings.limits == Limits(retries=2)


def test_a_file_that_can_not_be_read_is_said(own: Path, project: Path) -> None:
    own.symlink_to(own)
    (project / ".promptside/config.toml").mkdir()
    assert [fault.file for fault in load(project).faults] == [
        str(own),
        str(project / ".promptside/config.toml"),
    ]


def test_st14_check_commands_need_no_asking_where_commands_may_run() -> None:
    checks = Checks(test="make test", lint="ruff check .", build="")
    writing = Stage(id="a", name="A", prompt="x", rules=("Edit(./**)",))
    assert rules_with_checks(writing, checks) == ("Edit(./**)", "Bash(make test)", "Bash(ruff check .)")
    for stage in (
        Stage(id="a", name="A", prompt="x", tools=("Read",)),
        Stage(id="a", name="A", prompt="x", permission="deny"),
    ):
        assert rules_with_checks(stage, checks) == ()


@hypothesis(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.booleans())
def test_loading_never_raises(project: Path, raw: bytes, trusted: bool) -> None:
    (project / ".promptside/config.toml").write_bytes(raw)
    load(project, trusted=trusted)


KEYS = [f"{table}.{key}" for table, value in DEFAULTS.items() for key in value]
VALUES = [
    "1",
    "-1",
    "1.5",
    "nan",
    "true",
    '"x"',
    '""',
    "[]",
    "['x']",
    "[1]",
    "{}",
    "{a = 'b'}",
    "{a = 1}",
    "2024-01-01",
]


@pytest.mark.parametrize("key", KEYS)
def test_any_value_is_taken_or_said_to_be_wrong(own: Path, key: str) -> None:
    for value in VALUES:
        own.write_text(f"{key} = {value}\n")
        read = load()
        assert (read.settings == Settings()) or not read.faults
