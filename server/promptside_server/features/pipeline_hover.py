"""What the word under the pointer means, in a pipeline, prompt or settings file (ED-6)."""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol.views import VocabularyView, Word
from promptside_server.checked import checked
from promptside_server.pipelines import TEMPLATES, table_of
from promptside_server.places import in_characters, lines_of, span
from promptside_server.server import Server
from promptside_server.shared import answer
from promptside_server.templates import TAGS, Blank, named_at
from promptside_server.toml_lines import spot, word_at


def register(server: Server) -> None:
    """Answer for the files that are ours."""
    files = checked(server)

    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        kind, text = files.kind(uri), server.document(uri)
        if kind is None or text is None:
            return None
        words = await files.vocabulary(uri)
        if words is None:
            return None
        lines = lines_of(text)
        line, column = in_characters(server, lines, params.position)
        start, end = word_at(lines[line], column)
        if start == end:
            return None
        if kind == "prompt":
            found = _in_template(words, named_at("\n".join(lines), line, column))
        else:
            found = _in_toml(words, kind, lines, (line, start), (line, end))
        if found is None:
            return None
        return types.Hover(
            contents=_content(server, found),
            range=span(server, lines, (line, start), (line, end)),
        )

    answer(server, types.TEXT_DOCUMENT_HOVER, hover)


def _in_toml(
    words: VocabularyView, kind: str, lines: list[str], start: tuple[int, int], end: tuple[int, int]
) -> Word | None:
    text = "\n".join(lines)
    at = spot(text, *end)
    known = words.pipeline if kind == "pipeline" else words.settings
    name = lines[start[0]][start[1] : end[1]]
    if at.header:
        return next(
            (
                Word(name=table.name, meaning=table.meaning)
                for table in known
                if table.name in {at.word, at.word.partition(".")[0]} and table.name.endswith(name)
            ),
            None,
        )
    if at.quote and at.table == "stage" and at.key in TEMPLATES:
        return _in_template(words, named_at(text, *end))
    table = table_of(known, at)
    if table is None:
        return None
    if not at.key:
        dotted = next((t for t in known if t.name == name), None)
        key = next((word for word in table.keys if word.name == name), None)
        return key or (Word(name=name, meaning=dotted.meaning) if dotted else None)
    key = next((word for word in table.keys if word.name == at.key), None)
    if key is None:
        return None
    if spot(text, *start).key != at.key:
        return key
    values: tuple[Word, ...] = ()
    match table.name, at.key:
        case "stage", "tools" | "rules":
            values = words.tools
        case ("stage", "gate") | ("stage.gate", "type"):
            values = words.gates
        case _, "model":
            values = words.models
        case _:
            pass  # what the key means says it all
    return next((value for value in values if value.name == name), key)


def _in_template(words: VocabularyView, found: Blank | None) -> Word | None:
    if found is None:
        return None
    match found.kind:
        case "part":
            parts = [part for v in words.variables if v.name == found.owner for part in v.parts]
            named = next((part for part in parts if part.name == found.word), None)
            return Word(name=f"{found.owner}.{named.name}", meaning=named.meaning) if named else None
        case "filter":
            return next((word for word in words.filters if word.name == found.word), None)
        case "test":
            return next((word for word in words.tests if word.name == found.word), None)
        case "tag":
            says = TAGS.get(found.word)
            return Word(name=found.word, meaning=says) if says else None
        case _:
            variable = next((v for v in words.variables if v.name == found.word), None)
            if variable is None:
                return None
            names = tuple(f"{variable.name}.{part.name}" for part in variable.parts)
            return Word(name=variable.name, meaning=variable.meaning, values=names)


def _content(server: Server, word: Word) -> types.MarkupContent:
    of = ", default ".join(part for part in (word.type, word.default) if part)
    one_of = f"One of: {', '.join(word.values)}." if word.values else ""
    if _reads_markdown(server):
        head = f"**{word.name}**" + (f" ({of})" if of else "")
        lines = [head, word.meaning, one_of]
        kind = types.MarkupKind.Markdown
    else:
        lines = [f"{word.name} ({of})" if of else word.name, word.meaning, one_of]
        kind = types.MarkupKind.PlainText
    return types.MarkupContent(kind=kind, value="\n\n".join(line for line in lines if line))


def _reads_markdown(server: Server) -> bool:
    documents = server.client_capabilities.text_document
    known = documents.hover.content_format if documents is not None and documents.hover is not None else None
    return known is None or types.MarkupKind.Markdown in known
