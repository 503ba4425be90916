"""Pipeline, prompt and settings files as an editor holds them: what is wrong with them, saved or not (ED-5).

The judgement is that of the loaders; here it only gets an end, a fix, and a place in the text at hand.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from promptside_daemon import settings
from promptside_daemon.engine.pipeline import Origin
from promptside_daemon.fixes import fix_for, token_end
from promptside_daemon.pipelines import prompt as prompts
from promptside_daemon.pipelines.load import Loaded, from_text, load
from promptside_daemon.pipelines.template import MAX_SOURCE
from promptside_daemon.toml_source import MAX_BYTES, Document, Place, at_start, parse, shown
from promptside_protocol import paths
from promptside_protocol.queries import CheckText
from promptside_protocol.views import FaultView, TextCheck, TextFault, TextStage

Kind = Literal["toml", "pipeline", "prompt", "settings"]

MAX_PIPELINES = 50
"""Files of one directory that are looked through for the stages of a prompt."""


def check(query: CheckText) -> TextCheck:
    """Faults and stages of a text that stands, or will stand, at `query.path`; never raises."""
    file = Path(query.path)
    text = query.text.removeprefix("\ufeff").replace("\r\n", "\n")
    if (fault := _too_long(query.kind, text, file)) is not None:
        return TextCheck(faults=(_told(fault, query.kind, text, file),))
    match query.kind:
        case "pipeline":
            return _pipeline(text, file)
        case "prompt":
            faults = prompts.check(text, shown(file))
            return TextCheck(
                faults=tuple(_told(fault, "prompt", text, file) for fault in faults),
                stages=_stages_of_prompt(file),
            )
        case "settings":
            found = settings.check(text, file)
            kind: Kind = "settings" if isinstance(parse(text, shown(file)), Document) else "toml"
            return TextCheck(faults=tuple(_told(fault, kind, text, file) for fault in found))


def _too_long(kind: Kind, text: str, file: Path) -> FaultView | None:
    limit = MAX_SOURCE if kind == "prompt" else MAX_BYTES
    if len(text.encode()) <= limit:
        return None
    return at_start(shown(file), f"This is larger than {limit // 1024} KiB.", "Split it, or shorten it.")


def _pipeline(text: str, file: Path) -> TextCheck:
    loaded = from_text(text, file, _origin(file))
    document = parse(text, shown(file))
    if isinstance(document, FaultView):
        return TextCheck(faults=(_told(document, "toml", text, file),))
    own = {Place(1, 1), *document.keys.values(), *document.values.values()}
    faults: list[TextFault] = []
    for fault in loaded.faults:
        place = None if fault.file == shown(file) else _named_at(document, file, fault.file)
        inline = place is None and Place(fault.line, fault.column) not in own
        faults.append(_told(fault, "prompt" if inline else "pipeline", text, file, place))
    return TextCheck(faults=tuple(faults), stages=_stages(loaded, document))


def _origin(file: Path) -> Origin:
    return "user" if file.is_relative_to(paths.config_dir()) else "project"


def _named_at(document: Document, file: Path, prompt: str) -> Place:
    """Where a pipeline names the prompt file that a fault is in."""
    for number, stage in enumerate(_tables(document)):
        for key in ("prompt", "preparation"):
            name = stage.get(key)
            if isinstance(name, str) and shown(file.parent / name) == prompt:
                return document.values.get(("stage", number, key), Place(1, 1))
    return Place(1, 1)


def _tables(document: Document) -> list[dict[str, Any]]:
    stages = document.data.get("stage")
    return [stage for stage in stages if isinstance(stage, dict)] if isinstance(stages, list) else []


def _stages(loaded: Loaded, document: Document, prompt: Path | None = None) -> tuple[TextStage, ...]:
    if loaded.sketch is None:
        return ()
    tables = _tables(document)
    found = []
    for number, stage in enumerate(loaded.sketch.stages):
        named = [tables[number].get(key) for key in ("prompt", "preparation")] if number < len(tables) else []
        found.append(
            TextStage(
                file=shown(loaded.file),
                line=document.keys.get(("stage", number), Place(1, 1)).line,
                id=stage.id,
                name=stage.name,
                artifact=stage.artifact or f"{number + 1:02}-{stage.id}.md",
                uses=any(isinstance(name, str) and loaded.file.parent / name == prompt for name in named),
            )
        )
    return tuple(found)


def _stages_of_prompt(prompt: Path) -> tuple[TextStage, ...]:
    """The stages of every pipeline, above the prompt's directory, that takes it for one of its stages."""
    found: list[TextStage] = []
    for directory in prompt.parents:
        if directory.name != "pipelines":
            continue
        for file in sorted(directory.glob("*.toml"))[:MAX_PIPELINES]:
            loaded = load(file, _origin(file))
            text = _read(file)
            document = parse(text, shown(file))
            if isinstance(document, Document):
                stages = _stages(loaded, document, prompt)
                found += stages if any(stage.uses for stage in stages) else ()
        break
    return tuple(found)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""  # the loader, which read it a moment ago, says what is wrong with it


def _told(fault: FaultView, kind: Kind, text: str, file: Path, place: Place | None = None) -> TextFault:
    """A fault of a loader with its end and its fix; with a place, it really is in another file."""
    lines = text.split("\n")
    line = min(place.line if place else fault.line, len(lines))
    column = place.column if place else fault.column
    elsewhere = f"{Path(fault.file).name}, line {fault.line}: " if place else ""
    begin, end = column, token_end(lines[line - 1], column)
    fix = None if place else fix_for(fault, lines, file)
    if fix is not None and not fix.create and fix.line == line and fix.column < fix.end_column:
        begin, end = fix.column, fix.end_column
    elif kind == "prompt":
        begin, end = _whole(lines[line - 1])
    return TextFault(
        kind=kind,
        line=line,
        column=begin,
        end_line=line,
        end_column=end,
        message=elsewhere + fault.message,
        hint=fault.hint,
        severity=fault.severity,
        fix=fix,
        source=fault if place else None,
    )


def _whole(line: str) -> tuple[int, int]:
    """A line without the blanks around it: a template knows the line of a fault, not its column."""
    inner = re.search(r"\S(?:.*\S)?", line)
    return (inner.start() + 1, inner.end() + 1) if inner else (1, 1)
