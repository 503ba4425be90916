"""The stages of a pipeline file: as document symbols, and with lenses that say which tasks go through them (ED-2).

Which tasks there are is known from the mirror; the lens runs nothing, it begins the order for a new task.
"""

from __future__ import annotations

from lsprotocol import types

from promptside_protocol.views import TaskView, TextCheck
from promptside_server.checked import checked, path_of, project_of
from promptside_server.pipelines import is_through, tasks_through
from promptside_server.places import lines_of, span
from promptside_server.server import Server
from promptside_server.shared import give
from promptside_server.toml_lines import Table, stages_of, tables


def register(server: Server) -> None:
    """Answer for the pipeline files that are open."""
    files = checked(server)

    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        uri = params.text_document.uri
        text = server.document(uri)
        if text is None or files.kind(uri) not in {"pipeline", "settings"}:
            return []
        lines = lines_of(text)
        return [_symbol(server, table, lines) for table in tables("\n".join(lines)) if table.name]

    def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        text = server.document(uri)
        if text is None or files.kind(uri) != "pipeline":
            return []
        lines = lines_of(text)
        stages = stages_of("\n".join(lines))
        known = files.outline(uri)
        through = tasks_through(server, uri)
        return [
            types.CodeLens(
                range=span(server, lines, (table.line, 0), (table.line, len(lines[table.line]))),
                command=_run(uri, _title(number, known, through, uri)),
            )
            for number, table in enumerate(stages)
        ]

    def told(uri: str, _: TextCheck | None) -> None:
        if files.kind(uri) == "pipeline":
            _refresh(server)

    def task_changed(task: TaskView) -> None:
        if any(files.kind(uri) == "pipeline" and is_through(task, uri) for uri in files.files()):
            _refresh(server)

    files.listeners.append(told)
    server.on_task.append(task_changed)
    give(server, types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, symbols)
    give(server, types.TEXT_DOCUMENT_CODE_LENS, lenses, types.CodeLensOptions(resolve_provider=False))


def _title(number: int, known: TextCheck | None, through: list[TaskView], uri: str) -> str:
    path = path_of(uri)
    run = f"Run with {path.stem}" if path else ""
    if not through:
        return run
    stage = known.stages[number].id if known is not None and number < len(known.stages) else ""
    here = sum(task.current == stage for task in through) if stage else 0
    used = f"Used by {len(through)} task{'s' if len(through) > 1 else ''}"
    return " · ".join([f"{used}, {here} in this stage" if here else used, run])


def _run(uri: str, title: str) -> types.Command:
    """It begins with a draft, which is a document; clients of ours may ask for a title first."""
    path = path_of(uri)
    arguments: dict[str, str] = {"pipeline": path.stem if path else ""}
    if project := project_of(uri):
        arguments["project"] = project
    return types.Command(title=title, command="promptside.newTask", arguments=[arguments])


def _symbol(server: Server, table: Table, lines: list[str]) -> types.DocumentSymbol:
    stage = table.name == "stage" and table.array
    header = (table.line, 0), (table.line, len(lines[table.line]))
    return types.DocumentSymbol(
        name=(table.text("name") or table.text("id") or "stage") if stage else table.name,
        detail=table.text("output") or None if stage else None,
        kind=types.SymbolKind.Function if stage else types.SymbolKind.Namespace,
        range=span(server, lines, header[0], (table.last, len(lines[table.last]))),
        selection_range=span(server, lines, *header),
    )


def _refresh(server: Server) -> None:
    if server.editor.lens_refresh:
        server.workspace_code_lens_refresh(None)
