"""What can be written next in a pipeline, prompt or settings file: keys, values, variables, artifacts (ED-6).

The words are the daemon's vocabulary; here only the place in the text is found out.
"""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from promptside_protocol.errors import PromptsideError
from promptside_protocol.queries import Pipelines
from promptside_protocol.views import Table, VocabularyView, Word
from promptside_server.checked import checked, path_of, project_of
from promptside_server.pipelines import TEMPLATES, table_of
from promptside_server.places import in_characters, lines_of, span
from promptside_server.server import Server
from promptside_server.shared import give
from promptside_server.templates import TAGS, Blank, blank
from promptside_server.toml_lines import Spot, spot, tables, word_at

Kind = types.CompletionItemKind
MAX_PROMPTS = 200
"""Prompt files that are offered; a directory could hold any number."""
FORMS = ("Edit(./**)", "Write(./**)", "Bash(…)", "WebFetch(domain:…)")
"""Rules as they are mostly written; a tool alone is one, too."""


def register(server: Server) -> None:
    """Answer for the files that are ours."""
    files = checked(server)

    async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        uri = params.text_document.uri
        kind, text = files.kind(uri), server.document(uri)
        if kind is None or text is None:
            return []
        words = await files.vocabulary(uri)
        if words is None:
            return []
        lines = lines_of(text)
        line, column = in_characters(server, lines, params.position)
        if kind == "prompt":
            found = blank("\n".join([*lines[:line], lines[line][:column]]))
            return _template(server, uri, words, lines, (line, column), found)
        at = spot("\n".join(lines), line, column)
        if kind == "pipeline" and at.quote and at.table == "stage" and at.key in TEMPLATES:
            found = blank(at.word)
            if found is not None or len(at.quote) == 3:
                return _template(server, uri, words, lines, (line, column), found)
        known = words.pipeline if kind == "pipeline" else words.settings
        if at.header:
            return _headers(server, kind, known, lines, (line, column))
        table = table_of(known, at)
        if table is None:
            return []
        if not at.key:
            return _keys(server, table, lines, (line, column), at)
        return await _values(server, uri, words, table, lines, (line, column), at)

    give(
        server,
        types.TEXT_DOCUMENT_COMPLETION,
        complete,
        types.CompletionOptions(trigger_characters=['"', "'", "{", ".", "|", "=", "[", "/", "%", ","]),
    )


def _keys(
    server: Server, table: Table, lines: list[str], at: tuple[int, int], where: Spot
) -> list[types.CompletionItem]:
    line, column = at
    start = column - len(where.word)
    nested = "{" in lines[line][:start] or "," in lines[line][:start]
    rest = lines[line][word_at(lines[line], column)[1] :].lstrip()
    behind = "" if rest.startswith("=") else " = "
    there = _there(lines, where) if not nested else set()
    items = []
    for word in table.keys:
        if word.name in there and word.name != where.word:
            continue
        tables_ = word.type in {"table", "tables"}
        if tables_ and not table.name:
            continue  # its place is a header
        items.append(_item(server, word, Kind.Property, lines, at, start, word.name + behind))
    return items


def _there(lines: list[str], where: Spot) -> set[str]:
    """Keys that the table has already."""
    for table in tables("\n".join(lines)):
        if table.name == where.table and table.number == where.number:
            return {entry.key for entry in table.entries}
    return set()


def _headers(
    server: Server, kind: str, known: Iterable[Table], lines: list[str], at: tuple[int, int]
) -> list[types.CompletionItem]:
    line, column = at
    start = len(lines[line][:column]) - len(lines[line][:column].lstrip())
    items = []
    for table in known:
        if not table.name or table.name == "stage.persona":
            continue
        header = f"[{table.name}]"
        if kind == "pipeline":
            header = {"stage": "[[stage]]", "persona": "[persona.NAME]"}.get(table.name, header)
        word = Word(name=header, meaning=table.meaning)
        end = word_at(lines[line], column)[1]
        while lines[line][end : end + 1] == "]":
            end += 1
        items.append(_item(server, word, Kind.Module, lines, at, start, header, end))
    return items


async def _values(
    server: Server,
    uri: str,
    words: VocabularyView,
    table: Table,
    lines: list[str],
    at: tuple[int, int],
    where: Spot,
) -> list[types.CompletionItem]:
    key = next((word for word in table.keys if word.name == where.key), None)
    if key is None:
        return []
    line, column = at
    word = where.word.rpartition("\n")[2]
    start = column - len(word)
    quote = '"' if not where.quote else ""
    found = await _known_values(server, uri, words, table, key, lines, where)
    bare = key.type == "true or false"
    return [
        _item(
            server,
            value,
            Kind.File if key.name in TEMPLATES else Kind.Value,
            lines,
            at,
            start,
            value.name if bare else f"{quote}{value.name}{quote}",
            _end_of_string(lines[line], column, where.quote),
        )
        for value in found
    ]


async def _known_values(
    server: Server,
    uri: str,
    words: VocabularyView,
    table: Table,
    key: Word,
    lines: list[str],
    where: Spot,
) -> list[Word]:
    match table.name, key.name:
        case "stage", "gate":
            return list(words.gates)
        case "stage.gate", "type":
            return [gate for gate in words.gates if gate.name in key.values]
        case "stage", "tools":
            everything = Word(name="all", meaning="All tools that the agent has.")
            return list(words.tools) if where.in_list else [everything]
        case "stage", "rules" if where.in_list:
            forms = [Word(name=form, meaning="A rule with what it is for.") for form in FORMS]
            return [*forms, *words.tools]
        case "stage", "persona":
            found = tables("\n".join(lines))
            names = [t.name.partition(".")[2] for t in found if t.name.startswith("persona.")]
            return [Word(name=name, meaning="A persona of this pipeline.") for name in names]
        case "stage", "artifact":
            check = checked(server).outline(uri)
            stages = check.stages if check is not None else ()
            own = stages[where.number : where.number + 1]
            return [Word(name=s.artifact, meaning="What it is called if you say nothing.") for s in own]
        case "stage", "prompt" | "preparation":
            return _prompts(uri)
        case "pipeline", "default":
            return await _pipelines(server, uri)
        case _, "model":
            return list(words.models)
        case _:
            return [Word(name=value, meaning=key.meaning) for value in key.values]


def _prompts(uri: str) -> list[Word]:
    """Files below the pipeline's directory that can be its prompts."""
    path = path_of(uri)
    if path is None:
        return []
    files = sorted((path.parent / "prompts").rglob("*.j2"))[:MAX_PROMPTS]
    says = "A prompt of this directory."
    return [Word(name=str(file.relative_to(path.parent)), meaning=says) for file in files]


async def _pipelines(server: Server, uri: str) -> list[Word]:
    try:
        answer = await server.link.call(Pipelines(project=project_of(uri)))
    except PromptsideError:
        return []  # the daemon went away meanwhile, which is said elsewhere
    return [Word(name=one.name, meaning=one.title) for one in answer.pipelines]


def _template(
    server: Server,
    uri: str,
    words: VocabularyView,
    lines: list[str],
    at: tuple[int, int],
    found: Blank | None,
) -> list[types.CompletionItem]:
    if found is None:
        return []
    chosen: list[Word] = []
    kind = Kind.Variable
    match found.kind:
        case "variable":
            chosen = [Word(name=v.name, meaning=v.meaning) for v in words.variables]
        case "part":
            kind = Kind.Field
            chosen = [part for v in words.variables if v.name == found.owner for part in v.parts]
        case "filter":
            kind, chosen = Kind.Function, list(words.filters)
        case "test":
            kind, chosen = Kind.Keyword, list(words.tests)
        case "tag":
            kind, chosen = Kind.Keyword, [Word(name=name, meaning=says) for name, says in TAGS.items()]
        case "artifact":
            kind, chosen = Kind.File, _artifacts(server, uri, lines, at)
    start = at[1] - len(found.word)
    return [_item(server, word, kind, lines, at, start, word.name) for word in chosen]


def _artifacts(server: Server, uri: str, lines: list[str], at: tuple[int, int]) -> list[Word]:
    """Documents that lie there when this prompt is sent: those of the stages before."""
    check = checked(server).outline(uri)
    stages = list(check.stages) if check is not None else []
    if checked(server).kind(uri) == "prompt":
        uses = [number for number, stage in enumerate(stages) if stage.uses]
        before = [
            s for n, s in enumerate(stages) if any(n < use and s.file == stages[use].file for use in uses)
        ]
    else:
        before = stages[: spot("\n".join(lines), *at).number]
    return [Word(name=s.artifact, meaning=f"The document of {s.name}.") for s in before]


def _item(
    server: Server,
    word: Word,
    kind: types.CompletionItemKind,
    lines: list[str],
    at: tuple[int, int],
    start: int,
    text: str,
    end: int | None = None,
) -> types.CompletionItem:
    line, column = at
    if end is None:
        end = max(word_at(lines[line], column)[1], column)
    return types.CompletionItem(
        label=word.name,
        kind=kind,
        detail=", default ".join(part for part in (word.type, word.default) if part) or None,
        documentation=word.meaning,
        filter_text=lines[line][start : start + 1] + word.name if text[:1] in "\"'[" else word.name,
        text_edit=types.TextEdit(
            range=span(server, lines, (line, start), (line, end)),
            new_text=text,
        ),
    )


def _end_of_string(line: str, column: int, quote: str) -> int:
    """Where the string ends that a place is in; without an end, where the word does."""
    if len(quote) == 1:
        end = line.find(quote, column)
        if end >= 0 and not any(mark in line[column:end] for mark in ",=[]"):
            return end
    return max(word_at(line, column)[1], column)
