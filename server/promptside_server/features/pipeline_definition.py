"""Where a word of a pipeline or prompt file leads: to a prompt, a persona, a stage, or a stage's documents (ED-6)."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from promptside_server.checked import checked, path_of
from promptside_server.pipelines import TEMPLATES, tasks_through
from promptside_server.places import in_characters, lines_of
from promptside_server.server import Server
from promptside_server.shared import give
from promptside_server.templates import named_at
from promptside_server.toml_lines import Table, spot, stages_of, tables, word_at

EARLIER = frozenset({"previous_output", "user_decision"})
"""Variables that come from the stage before."""


def register(server: Server) -> None:
    """Answer for the files that are ours."""
    files = checked(server)

    def define(params: types.DefinitionParams) -> list[types.Location]:
        uri = params.text_document.uri
        kind, text = files.kind(uri), server.document(uri)
        if kind not in {"pipeline", "prompt"} or text is None:
            return []
        lines = lines_of(text)
        at = in_characters(server, lines, params.position)
        if kind == "prompt":
            return _from_prompt(server, uri, lines, at)
        return _from_pipeline(server, uri, lines, at)

    give(server, types.TEXT_DOCUMENT_DEFINITION, define)


def _from_prompt(server: Server, uri: str, lines: list[str], at: tuple[int, int]) -> list[types.Location]:
    """To the stage before, or to the stage itself, of each pipeline that takes this prompt."""
    named = named_at("\n".join(lines), *at)
    check = checked(server).outline(uri)
    if named is None or check is None:
        return []
    word = named.owner or named.word
    found: list[types.Location] = []
    for number, stage in enumerate(check.stages):
        if not stage.uses:
            continue
        if word == "stage":
            found.append(_location(stage.file, stage.line - 1))
        elif word in EARLIER and number and check.stages[number - 1].file == stage.file:
            before = check.stages[number - 1]
            found.append(_location(before.file, before.line - 1))
    return found


def _from_pipeline(server: Server, uri: str, lines: list[str], at: tuple[int, int]) -> list[types.Location]:
    path = path_of(uri)
    text = "\n".join(lines)
    where = spot(text, *at)
    stages = stages_of(text)
    if path is None or not 0 <= where.number < len(stages) or not where.table.startswith("stage"):
        return []
    stage = stages[where.number]
    word = lines[at[0]][slice(*word_at(lines[at[0]], at[1]))]
    key = where.key or word
    if key in TEMPLATES and where.quote and len(where.quote) == 3:
        named = named_at(text, *at)
        earlier = named is not None and named.word in EARLIER and where.number > 0
        return [_location(str(path), stages[where.number - 1].line)] if earlier else []
    if key in TEMPLATES:
        return _prompt(path, stage, key)
    if key == "persona":
        wanted = f"persona.{stage.text('persona')}"
        return [_location(str(path), t.line) for t in tables(text) if t.name == wanted]
    if key == "artifact":
        return _documents(server, uri, where.number)
    if where.header or key in {"name", "id"}:
        return [*_prompt(path, stage, "prompt"), *_documents(server, uri, where.number)]
    return []


def _prompt(path: Path, stage: Table, key: str) -> list[types.Location]:
    name = stage.text(key)
    file = path.parent / name
    return [_location(str(file), 0)] if name.endswith(".j2") and file.is_file() else []


def _documents(server: Server, uri: str, number: int) -> list[types.Location]:
    """What this stage wrote in the tasks that go through the pipeline."""
    check = checked(server).outline(uri)
    if check is None or number >= len(check.stages):
        return []
    wanted = check.stages[number].id
    files = [
        Path(task.project) / stage.artifact
        for task in tasks_through(server, uri)
        for stage in task.stages
        if stage.id == wanted and stage.artifact
    ]
    return [_location(str(file), 0) for file in files if file.is_file()]


def _location(file: str, line: int) -> types.Location:
    at = types.Position(line=line, character=0)
    return types.Location(uri=from_fs_path(file) or "", range=types.Range(start=at, end=at))
