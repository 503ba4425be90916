"""Pipelines by name and file, from three places, and copies that load equal (ST-3, DA-11)."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from promptside_daemon.pipelines.find import CopyError, copy, find, list_all

STAGE = '[[stage]]\nname = "{}"\nprompt = "Do it."\n'


def put(directory: Path, name: str, stage: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.toml").write_text(STAGE.format(stage))
    return directory / f"{name}.toml"


def first_stage(name: str, project: Path | None = None) -> str:
    found = find(name, project)
    assert found.pipeline is not None, found.faults
    return found.pipeline.stages[0].name


def test_da11_the_project_wins_over_the_person_and_the_person_over_what_is_shipped(
    person: Path, project: Path
) -> None:
    assert first_stage("standard", project) == "Research"
    put(person / "pipelines", "standard", "Of the person")
    assert first_stage("standard", project) == "Of the person"
    put(project / ".promptside/pipelines", "standard", "Of the project")
    assert first_stage("standard", project) == "Of the project"
    assert first_stage("standard") == "Of the person"
    assert find("standard", project).origin == "project"


def test_a_faulty_pipeline_is_not_passed_over_for_another_of_its_name(project: Path) -> None:
    put(project / ".promptside/pipelines", "standard", "x").write_text("[[stage]]")
    found = find("standard", project)
    assert found.pipeline is None
    assert found.faults[0].file == str(project / ".promptside/pipelines/standard.toml")


def test_the_list_has_each_name_once_and_the_faulty_too(person: Path, project: Path) -> None:
    put(person / "pipelines", "standard", "x")
    put(person / "pipelines", "broken", "x").write_text("=")
    put(project / ".promptside/pipelines", "mine", "x")
    listed = {found.name: (found.origin, found.pipeline is None) for found in list_all(project)}
    assert listed["standard"] == ("user", False)
    assert listed["broken"] == ("user", True)
    assert listed["mine"] == ("project", False)
    assert "mine" not in {found.name for found in list_all()}


def test_a_name_that_is_not_there_gets_the_nearest(person: Path) -> None:
    (fault,) = find("standart").faults
    assert "no pipeline `standart`" in fault.message
    assert fault.hint == "Did you mean `standard`?"


def test_a_file_by_its_path(tmp_path: Path, person: Path) -> None:
    elsewhere = put(tmp_path / "else where", "mine", "x")
    assert find(str(elsewhere)).origin == "project"
    assert find(str(put(person / "pipelines", "mine", "x"))).origin == "user"
    roundabout = person / "pipelines" / ".." / ".." / ".." / "else where" / "mine.toml"
    assert find(str(roundabout)).origin == "project"
    assert find("nope.toml").pipeline is None
    assert find("a\0b.toml").pipeline is None


@pytest.mark.parametrize("to", ["project", "user"])
def test_st3_a_copy_loads_equal(to: str, project: Path) -> None:
    original = find("standard").pipeline
    file = copy("standard", "project" if to == "project" else "user", project)
    copied = find("standard", project)
    assert copied.file == file
    assert copied.pipeline is not None
    assert copied.origin == to
    assert original is not None
    assert msgspec.structs.replace(copied.pipeline, origin="shipped") == original


def test_a_copy_of_a_file_takes_its_prompts_along(tmp_path: Path, project: Path) -> None:
    source = put(tmp_path / "source", "mine", "x")
    source.write_text('# mine\n[[stage]]\nname = "A"\nprompt = "deep/er/a.md.j2"\npreparation = "b.j2"\n')
    (tmp_path / "source/deep/er").mkdir(parents=True)
    (tmp_path / "source/deep/er/a.md.j2").write_text("A {{task_description}}")
    (tmp_path / "source/b.j2").write_text("B")
    file = copy(str(source), "project", project)
    assert file.read_text().startswith("# mine")
    shutil.rmtree(tmp_path / "source")
    found = find("mine", project).pipeline
    assert found is not None
    assert (found.stages[0].prompt, found.stages[0].preparation) == ("A {{task_description}}", "B")


def test_a_copy_overwrites_only_when_told(project: Path) -> None:
    file = copy("standard", "project", project)
    prompt = file.parent / "prompts/standard/research.md.j2"
    prompt.write_text("my own words")
    file.unlink()
    with pytest.raises(CopyError, match="is there already"):
        copy("standard", "project", project)
    assert prompt.read_text() == "my own words"
    assert not file.exists()
    copy("standard", "project", project, overwrite=True)
    assert prompt.read_text() != "my own words"
    assert not list(file.parent.rglob(".copy-*"))


def test_a_copy_never_follows_a_link(tmp_path: Path, project: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    pipelines = project / ".promptside/pipelines"
    pipelines.mkdir(parents=True)
    (pipelines / "standard.toml").symlink_to(precious)
    with pytest.raises(CopyError, match="is there already"):
        copy("standard", "project", project)
    copy("standard", "project", project, overwrite=True)
    assert precious.read_text() == "keep"
    shutil.rmtree(pipelines)
    (tmp_path / "out").mkdir()
    pipelines.symlink_to(tmp_path / "out")
    with pytest.raises(CopyError, match="leads out"):
        copy("standard", "project", project)
    pipelines.unlink()
    pipelines.mkdir()
    (pipelines / "prompts").symlink_to(tmp_path / "out")
    with pytest.raises(CopyError, match="can't be written"):
        copy("standard", "project", project)
    assert not list((tmp_path / "out").rglob("*.j2"))


def test_a_copy_brings_back_what_was_shipped_and_takes_a_projects_own_to_the_person(
    person: Path, project: Path
) -> None:
    put(project / ".promptside/pipelines", "standard", "Changed")
    copy("standard", "project", project, overwrite=True)
    assert first_stage("standard", project) == "Research"
    put(project / ".promptside/pipelines", "mine", "Of the project")
    assert copy("mine", "user", project) == person / "pipelines" / "mine.toml"
    assert first_stage("mine") == "Of the project"


def test_a_faulty_pipeline_is_not_copied(tmp_path: Path, project: Path) -> None:
    source = put(tmp_path / "source", "mine", "x")
    source.write_text("[[stage]]\n")
    with pytest.raises(CopyError, match=r"mine\.toml:1: `name` is missing"):
        copy(str(source), "project", project)
    with pytest.raises(CopyError, match="no project"):
        copy("standard", "project")
