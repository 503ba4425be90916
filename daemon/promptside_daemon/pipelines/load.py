"""From a TOML file and its prompts to a Pipeline, with everything that is wrong said at its place (ST-3).

Loading never raises and runs nothing: a file that can't be used gives faults in place of a pipeline.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, cast, get_args

from msgspec import Struct

from promptside_daemon.engine.pipeline import (
    InputSource,
    Origin,
    OutputFormat,
    Permission,
    Persona,
    Pipeline,
    Session,
    Stage,
    StageLimits,
)
from promptside_daemon.pipelines import prompt as prompts
from promptside_daemon.pipelines.gate import read_gate
from promptside_daemon.pipelines.schema import read_schema
from promptside_daemon.pipelines.template import MAX_SOURCE
from promptside_daemon.pipelines.tools import read_rules, read_tools
from promptside_daemon.toml_reader import Reader
from promptside_daemon.toml_source import KeyPath, at_start, did_you_mean, parse, read_text, reason, shown
from promptside_protocol.views import FaultView

MAX_STAGES = 100
MAX_FAULTS = 100
MAX_PROMPTS = 400_000
"""Characters of all prompts of a pipeline; the shipped ones have a few thousand each."""

PIPELINE_KEYS = ("title", "description", "persona", "stage")
PERSONA_KEYS = Persona.__struct_fields__
LIMIT_KEYS = StageLimits.__struct_fields__
STAGE_KEYS = Stage.__struct_fields__

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
"""Of pipelines and stages: kebab case."""
_ARTIFACT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,75}\.md")
_LOOKS_LIKE_A_FILE = re.compile(r"[^\s{}]*(?:/[^\s{}]*|\.(?:md|txt|j2|toml))")


class Loaded(Struct, frozen=True, kw_only=True):
    """What a file holds: a pipeline, or the faults that keep it from being one; warnings beside either."""

    name: str
    file: Path
    origin: Origin
    pipeline: Pipeline | None
    sketch: Pipeline | None = None
    """What could be read of it, faulty or not: to be shown, never to be run."""
    faults: tuple[FaultView, ...] = ()
    files: tuple[Path, ...] = ()
    """Everything it was read from, the pipeline file first."""
    prompts: dict[str, Path] = {}
    """The file of each stage's prompt, by the stage's id; a prompt that stands in the pipeline file has none."""


def load(file: Path, origin: Origin, *, within: Path | None = None) -> Loaded:
    """One pipeline file with its prompts; `within` is the directory that links must not lead out of.

    The file's name, without `.toml`, is the pipeline's name.
    """
    name = shown(Path(file.stem))
    if (fault := _misplaced(file, within)) is not None:
        return Loaded(name=name, file=file, origin=origin, pipeline=None, faults=(fault,))
    text = read_text(file)
    if isinstance(text, FaultView):
        return Loaded(name=name, file=file, origin=origin, pipeline=None, faults=(text,))
    return from_text(text, file, origin)


def from_text(text: str, file: Path, origin: Origin) -> Loaded:
    """The same of a text that `file` does not hold yet; its prompts are read from the disk."""
    name = shown(Path(file.stem))
    document = parse(text, shown(file))
    if isinstance(document, FaultView):
        return Loaded(name=name, file=file, origin=origin, pipeline=None, faults=(document,), files=(file,))
    reading = _Reading(Reader(document), file)
    pipeline = reading.pipeline(name, origin, text)
    faults = _in_order(reading.read.faults, shown(file))
    broken = any(fault.severity == "error" for fault in faults)
    return Loaded(
        name=name,
        file=file,
        origin=origin,
        pipeline=None if broken else pipeline,
        sketch=pipeline,
        faults=faults,
        files=(file, *dict.fromkeys(reading.prompt_files)),
        prompts=reading.prompts,
    )


class _Prompt(Struct, frozen=True):
    """A template, and where it stands."""

    text: str
    file: str
    first_line: int


class _Reading:
    """One pass over a pipeline file."""

    def __init__(self, read: Reader, file: Path) -> None:
        self.read = read
        self.prompt_files: list[Path] = []
        self.prompts: dict[str, Path] = {}
        self._file = file
        self._personas: dict[str, Persona] = {}
        self._checked: set[_Prompt] = set()
        self._room = MAX_PROMPTS

    def pipeline(self, name: str, origin: Origin, text: str) -> Pipeline:
        read = self.read
        if not NAME.fullmatch(name):
            read.fault((), f"`{name}` can't be a pipeline's name.", "Name the file like `my-pipeline.toml`.")
        hint = ""
        if "name" in read.data:
            hint = f"The file's name is the pipeline's name; `title` is what people see: `{name}`."
        read.unknown((), PIPELINE_KEYS, hint=hint)
        for key in read.table(("persona",)):
            persona = self._persona(("persona", key), key)
            if persona is not None:
                self._personas[key] = persona
        stages = self._stages()
        return Pipeline(
            name=name,
            title=read.line(("title",)) or name,
            description=read.text(("description",)),
            version=_version(text, stages),
            origin=origin,
            stages=stages,
        )

    def _stages(self) -> tuple[Stage, ...]:
        read = self.read
        tables = read.tables(("stage",))
        if not tables:
            read.fault((), "A pipeline has at least one stage.", "Begin one with `[[stage]]`.")
        if tables > MAX_STAGES:
            read.fault(("stage", MAX_STAGES), f"A pipeline has at most {MAX_STAGES} stages.")
            return ()
        stages = [self._stage(number) for number in range(tables)]
        self._duplicates([stage.id for stage in stages], "id", "id")
        self._duplicates([stage.artifact.casefold() for stage in stages], "artifact", "artifact")
        self._fixes(stages)
        return tuple(stages)

    def _duplicates(self, words: list[str], key: str, what: str) -> None:
        first: dict[str, int] = {}
        for number, word in enumerate(words):
            if word and word in first:
                path: KeyPath = ("stage", number, key)
                other = self.read.where(("stage", first[word]))
                self.read.fault(path, f"Two stages have the {what} `{word}`; the first is in line {other}.")
            first.setdefault(word, number)

    def _fixes(self, stages: list[Stage]) -> None:
        for number, stage in enumerate(stages):
            at: KeyPath = ("stage", number, "fix")
            earlier = tuple(before.id for before in stages[:number])
            if stage.fix and stage.output != "checklist":
                self.read.fault(at, "Only the items of a checklist are sent back to be fixed.")
            elif stage.fix and stage.fix not in earlier:
                self.read.fault(
                    at,
                    f"There is no earlier stage `{stage.fix}`.",
                    did_you_mean(stage.fix, earlier),
                    at="value",
                )

    def _stage(self, number: int) -> Stage:
        read, at = self.read, ("stage", number)
        read.unknown(at, STAGE_KEYS)
        name = read.line((*at, "name"), required=True)
        output = cast("OutputFormat", read.choice((*at, "output"), get_args(OutputFormat), "text"))
        schema = read_schema(read, (*at, "schema"), output)
        gate, schema = read_gate(read, (*at, "gate"), output, schema)
        prompt = self._prompt((*at, "prompt"), required=True)
        named = read.value((*at, "prompt"))
        preparation = self._prompt((*at, "preparation"))
        id_ = self._id((*at, "id"), name)
        if isinstance(named, str) and self._file.parent / named in self.prompt_files:
            self.prompts[id_] = self._file.parent / named
        return Stage(
            id=id_,
            name=name,
            description=read.text((*at, "description")),
            prompt=prompt,
            input=self._input((*at, "input"), first=number == 0),
            output=output,
            schema=schema,
            gate=gate,
            fix=read.line((*at, "fix")),
            tools=read_tools(read, (*at, "tools")),
            permission=cast("Permission", read.choice((*at, "permission"), get_args(Permission), "ask")),
            rules=read_rules(read, (*at, "rules")),
            persona=self._persona_of((*at, "persona")),
            preparation=preparation,
            model=read.line((*at, "model")),
            session=cast("Session", read.choice((*at, "session"), get_args(Session), "new")),
            artifact=self._artifact((*at, "artifact")),
            limits=self._limits((*at, "limits")),
        )

    def _id(self, at: KeyPath, name: str) -> str:
        read = self.read
        given = read.line(at)
        if not given:
            given = "-".join(re.findall(r"[a-z0-9]+", name.lower()))
            if name and not given:
                read.fault(
                    at, f"No id can be made from the name {name!r}.", 'Give the stage one: `id = "…"`.'
                )
        elif not NAME.fullmatch(given) or len(given) > 60:
            read.fault(at, f"`{given}` can't be an id.", "Small letters, digits and single hyphens.")
        return given

    def _input(self, at: KeyPath, *, first: bool) -> InputSource:
        chosen = self.read.choice(at, get_args(InputSource), "user" if first else "previous")
        if first and chosen == "previous":
            self.read.fault(at, "The first stage has no stage before it.", 'Take `input = "user"`.')
        return cast("InputSource", chosen)

    def _artifact(self, at: KeyPath) -> str:
        artifact = self.read.line(at)
        if artifact and not _ARTIFACT.fullmatch(artifact):
            self.read.fault(
                at, f"`{artifact}` can't be an artifact's name.", "A plain file name that ends in `.md`."
            )
        elif artifact.casefold() == "task.md":
            self.read.fault(at, "`task.md` is the task's own document.", "Take another name.")
        return artifact

    def _limits(self, at: KeyPath) -> StageLimits:
        read = self.read
        read.unknown(at, LIMIT_KEYS)
        whole = {"turns", "retries"}
        given = {
            key: read.number((*at, key), whole=key in whole) for key in read.table(at) if key in LIMIT_KEYS
        }
        return StageLimits(**cast("dict[str, Any]", given))

    def _persona(self, at: KeyPath, name: str) -> Persona | None:
        read = self.read
        if not isinstance(read.value(at), dict):
            read.wrong(at, "a table")
            return None
        read.unknown(at, PERSONA_KEYS)
        return Persona(
            name=read.line((*at, "name")) or name,
            system_prompt=read.text((*at, "system_prompt")),
            model=read.line((*at, "model")),
        )

    def _persona_of(self, at: KeyPath) -> Persona | None:
        value = self.read.value(at)
        if isinstance(value, dict):
            return self._persona(at, "persona")
        name = self.read.line(at)
        if name and name not in self._personas:
            hint = did_you_mean(name, tuple(self._personas)) or f"Describe it in a table `[persona.{name}]`."
            self.read.fault(at, f"There is no persona `{name}`.", hint)
        return self._personas.get(name)

    def _prompt(self, at: KeyPath, *, required: bool = False) -> str:
        """A template by the name of its file (which ends in `.j2`), or the template itself."""
        read = self.read
        value = read.text(at, required=required)
        if not value.strip():
            if value or (required and at[-1] in read.table(at[:-1])):
                read.fault(at, "The prompt is empty.", at="value")
            return ""
        if "\n" not in value and value.endswith(".j2"):
            found = self._prompt_file(at, value)
            if found is None:
                return ""
        elif _LOOKS_LIKE_A_FILE.fullmatch(value):
            read.fault(
                at, f"{value!r} looks like a file's name.", "The name of a prompt's file ends in `.md.j2`."
            )
            return ""
        else:
            found = _Prompt(value, read.file, read.first_line(at))
        self._room -= len(found.text)
        if self._room < 0:
            read.fault(at, f"The prompts of one pipeline have at most {MAX_PROMPTS:,} characters in all.")
        elif found not in self._checked:
            self._checked.add(found)
            read.add(prompts.check(found.text, found.file, found.first_line))
        return found.text

    def _prompt_file(self, at: KeyPath, name: str) -> _Prompt | None:
        read = self.read
        try:
            directory = self._file.resolve().parent
            file = (directory / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that go round
            read.fault(at, f"{name!r} can't be found: {reason(error)}.", at="value")
            return None
        if not file.is_relative_to(directory):
            read.fault(
                at,
                f"{name!r} lies outside of the pipeline's directory.",
                "Put prompts beside the pipeline: `prompts/NAME.md.j2`.",
                at="value",
            )
            return None
        text = read_text(file, MAX_SOURCE, name=shown(self._file.parent / name))
        if isinstance(text, FaultView):
            if os.path.isfile(file):  # noqa: PTH113  # the other one raises where it may not look
                read.add([text])
            else:
                read.fault(
                    at, f"There is no prompt file {name!r}.", f"It should be {shown(file)}.", at="value"
                )
            return None
        self.prompt_files.append(self._file.parent / name)
        return _Prompt(text, shown(self._file.parent / name), 1)


def _in_order(faults: tuple[FaultView, ...], file: str) -> tuple[FaultView, ...]:
    """By place, the pipeline file first; the worst of them, if there are very many."""
    worst = sorted(faults, key=lambda fault: fault.severity != "error")[:MAX_FAULTS]
    return tuple(sorted(worst, key=lambda fault: (fault.file != file, fault.file, fault.line, fault.column)))


def _misplaced(file: Path, within: Path | None) -> FaultView | None:
    try:
        if within is None or file.resolve().is_relative_to(within.resolve()):
            return None
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that go round
        return at_start(shown(file), f"This file can't be found: {reason(error)}.")
    return at_start(shown(file), "This file is a link that leads elsewhere.", "Copy the file in its place.")


def _version(text: str, stages: tuple[Stage, ...]) -> str:
    digest = hashlib.sha256()
    for part in (text, *(part for stage in stages for part in (stage.prompt, stage.preparation))):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(raw) + raw)
    return digest.hexdigest()[:16]
