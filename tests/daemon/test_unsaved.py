"""Texts that an editor holds: judged as the loaders judge files, with ends and fixes; and the words for them."""

import re
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptside_daemon import unsaved
from promptside_daemon import vocabulary as words
from promptside_daemon.engine.pipeline import Limits, Persona, Stage, StageLimits
from promptside_daemon.pipelines.budget import FILTERS, TESTS
from promptside_daemon.pipelines.find import SHIPPED
from promptside_daemon.pipelines.load import load
from promptside_daemon.pipelines.prompt import KNOWN
from promptside_daemon.pipelines.tools import TOOLS
from promptside_daemon.settings import Settings
from promptside_protocol.queries import CheckText
from promptside_protocol.views import TextCheck, TextFault

DOCS = Path(__file__).parents[2] / "docs"
STAGE = '[[stage]]\nname = "A"\nprompt = "Go on."\n'


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROMPTSIDE_HOME", str(tmp_path / "home"))
    made = tmp_path / ".promptside" / "pipelines"
    (made / "prompts").mkdir(parents=True)
    return made


def pipeline(directory: Path, text: str) -> TextCheck:
    return unsaved.check(CheckText(path=str(directory / "mine.toml"), kind="pipeline", text=text))


def marked(text: str, fault: TextFault) -> str:
    assert fault.line == fault.end_line
    return text.split("\n")[fault.line - 1][fault.column - 1 : fault.end_column - 1]


def test_a_text_is_judged_as_its_file_would_be(directory: Path) -> None:
    text = 'titel = "x"\n' + STAGE.replace("name", "nmae")
    (directory / "mine.toml").write_text(text)
    saved = load(directory / "mine.toml", "project").faults
    told = pipeline(directory, text).faults
    assert [(f.message, f.hint, f.severity) for f in told] == [(f.message, f.hint, f.severity) for f in saved]
    assert len(told) == 3


def test_the_shipped_pipelines_and_prompts_are_in_order() -> None:
    for file in SHIPPED.rglob("*.toml"):
        found = unsaved.check(CheckText(path=str(file), kind="pipeline", text=file.read_text()))
        assert not found.faults
        assert len(found.stages) == len(load(file, "shipped").pipeline.stages)  # type: ignore[union-attr]  # it is there
    for file in SHIPPED.rglob("*.j2"):
        found = unsaved.check(CheckText(path=str(file), kind="prompt", text=file.read_text()))
        assert not found.faults
        assert sum(stage.uses for stage in found.stages) >= 1


def test_windows_line_ends_and_a_mark_move_nothing(directory: Path) -> None:
    text = "titel = 1\n" + STAGE
    plain = pipeline(directory, text)
    assert pipeline(directory, "\ufeff" + text.replace("\n", "\r\n")) == plain


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("titel = 1\n" + STAGE, "titel"),
        ("description = 1\n" + STAGE, "1"),
        (STAGE + "nothing_like_it_at_all = 1\n", "nothing_like_it_at_all"),
        (STAGE + 'output = "zzz"\n', '"zzz"'),
        (STAGE.replace("Go on.", "{{ zzzzzz }}"), "prompt"),
        (STAGE + "[stage.limits]\nturns = -1\n", "-1"),
    ],
)
def test_a_fault_reaches_to_the_end_of_its_word(directory: Path, text: str, under: str) -> None:
    (fault,) = pipeline(directory, text).faults
    assert marked(text, fault) == under


def test_a_text_that_is_no_toml_says_so_and_has_no_stages(directory: Path) -> None:
    found = pipeline(directory, STAGE + "[[stage\n")
    assert [fault.kind for fault in found.faults] == ["toml"]
    assert found.stages == ()


def test_a_text_that_is_too_long_is_not_read(directory: Path) -> None:
    (fault,) = pipeline(directory, "# " + "x" * 300_000).faults
    assert "larger than 256 KiB" in fault.message


def test_a_fault_of_a_prompt_stands_where_the_prompt_is_named(directory: Path) -> None:
    (directory / "prompts" / "a.md.j2").write_text("x\n{{ nothing.at_all }}\n")
    text = STAGE.replace("Go on.", "prompts/a.md.j2")
    (fault,) = pipeline(directory, text).faults
    assert marked(text, fault) == '"prompts/a.md.j2"'
    assert fault.source is not None
    assert (Path(fault.source.file).name, fault.source.line) == ("a.md.j2", 2)


def test_a_prompt_knows_the_stages_that_take_it(directory: Path) -> None:
    prompt = directory / "prompts" / "a.md.j2"
    prompt.write_text("x")
    (directory / "mine.toml").write_text(
        STAGE + STAGE.replace('"A"', '"B"').replace("Go on.", "prompts/a.md.j2")
    )
    (directory / "other.toml").write_text(STAGE)
    found = unsaved.check(CheckText(path=str(prompt), kind="prompt", text="x"))
    assert [(s.id, s.artifact, s.line, s.uses) for s in found.stages] == [
        ("a", "01-a.md", 1, False),
        ("b", "02-b.md", 4, True),
    ]


@given(text=st.text(alphabet="[]{}=\"'.,#\n stage name prompt{%|}", max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_is_judged(text: str) -> None:
    """Whatever is typed: an answer, with places inside of the text."""
    lines = text.split("\n")
    for kind in ("pipeline", "prompt", "settings"):
        query = CheckText(path="/nowhere/.promptside/pipelines/x.toml", kind=kind, text=text)  # type: ignore[arg-type]  # one of them
        for fault in unsaved.check(query).faults:
            assert 1 <= fault.line <= max(len(lines), 1)
            assert 1 <= fault.column <= fault.end_column


# --- words ----------------------------------------------------------------------------------------------------


def test_every_word_has_its_meaning() -> None:
    assert set(words.STAGE) == set(Stage.__struct_fields__)
    assert set(words.PERSONA) == set(Persona.__struct_fields__)
    assert set(words.LIMITS) == set(Limits.__struct_fields__) >= set(StageLimits.__struct_fields__)
    assert set(words.VARIABLES) == set(KNOWN)
    assert set(words.PARTS) == {f"{name}.{part}" for name, parts in KNOWN.items() for part in parts}
    assert set(words.FILTER) == set(FILTERS)
    assert set(words.TEST) == set(TESTS)
    assert set(words.TOOL) <= set(TOOLS)
    assert set(words.SETTINGS) == set(keys_of(Settings, ""))


def keys_of(kind: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    for name, hint in typing.get_type_hints(kind).items():
        yield prefix + name
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from keys_of(hint, f"{prefix}{name}.")


def test_the_handbook_and_the_vocabulary_name_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPTSIDE_HOME", str(tmp_path))
    found = words.vocabulary()
    text = (DOCS / "pipelines.md").read_text()
    section = text[text.index("## Keys of a stage") : text.index("## Templates")]
    keys = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    stage = next(table for table in found.pipeline if table.name == "stage")
    assert {key.name for key in stage.keys} == set(keys)
    templates = text[text.index("## Templates") :]
    for variable in found.variables:
        assert f"`{variable.name}" in templates


def test_models_that_are_named_already_are_offered_first(directory: Path) -> None:
    (directory / "mine.toml").write_text(STAGE + 'model = "a-model-of-ours"\n')
    names = [model.name for model in words.vocabulary(directory.parents[1]).models]
    assert names[0] == "a-model-of-ours"
    assert {"opus", "sonnet", "haiku"} < set(names)
