"""Making a pipeline one's own: a shipped one is copied beside the project first, then it is opened (ST-2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from promptside_protocol import queries
from promptside_protocol.commands import AddProject
from promptside_protocol.errors import refused
from promptside_protocol.queries import CopyPipeline, GetPipeline, Pipelines
from promptside_protocol.views import PipelineView
from promptside_server import readonly
from promptside_server.features.commands import offer, typed
from promptside_server.server import Server
from promptside_server.target import active, pick, project

PIPELINE_FIRST = "standard"
"""What a new pipeline is a copy of, if nobody says otherwise."""


class EditPipeline(Struct, frozen=True, kw_only=True):
    """Edit Pipeline…; without a name the one that is meant is asked for."""

    name: str = ""
    project: str = ""
    uri: str = ""
    to: str = "project"


class NewPipeline(Struct, frozen=True, kw_only=True):
    """New Pipeline…"""

    name: str
    copy_of: str = PIPELINE_FIRST
    project: str = ""
    uri: str = ""
    to: str = "project"


class EditPrompt(Struct, frozen=True, kw_only=True):
    """Edit Stage Prompt…; without a stage that of the task which the person looks at."""

    pipeline: str = ""
    stage: str = ""
    project: str = ""
    uri: str = ""
    to: str = "project"


class Copy(Struct, frozen=True, kw_only=True, rename={"new_name": "as"}):
    """Copy Pipeline; `as` is the name of the copy."""

    name: str
    to: str = "project"
    project: str = ""
    uri: str = ""
    new_name: str = ""


def register(server: Server) -> None:
    """Four commands; none changes a file that is there."""

    async def edit_pipeline(given: dict[str, Any]) -> readonly.Shown:
        wish: EditPipeline = typed("editPipeline", given, EditPipeline)
        where = wish.project or await project(server, wish.uri)
        found = await _own(server, wish.name or await _chosen(server, where), where, wish.to)
        return await _open(server, found.path)

    async def new_pipeline(given: dict[str, Any]) -> readonly.Shown:
        wish: NewPipeline = typed("newPipeline", given, NewPipeline)
        where = wish.project or await project(server, wish.uri)
        made = await _copied(server, wish.copy_of, wish.to, where, wish.name)
        return await _open(server, made.path)

    async def edit_prompt(given: dict[str, Any]) -> readonly.Shown:
        wish: EditPrompt = typed("editPrompt", given, EditPrompt)
        task = active(server, wish.uri)
        where = wish.project or (task.project if task is not None else await project(server, wish.uri))
        name = wish.pipeline or (task.pipeline if task is not None else await _chosen(server, where))
        stage = wish.stage or (task.current or "" if task is not None and task.pipeline == name else "")
        shown = await server.link.call(GetPipeline(name=name, project=where))
        if not stage:
            names = {one.name: one.id for one in shown.stages}
            which = refused(
                "which", f"{shown.name} has the stages {', '.join(names.values())}.", 'Give {"stage": …}.'
            )
            stage = await pick(server, "The prompt of which stage?", names, which)
        if stage not in {one.id for one in shown.stages}:
            raise refused("no-stage", f"There is no stage {stage} in {shown.name}.")
        found = await _own(server, name, where, wish.to)
        prompt = next((one.prompt for one in found.stages if one.id == stage), "")
        return await _open(server, prompt or found.path)

    async def copy_pipeline(given: dict[str, Any]) -> queries.Path:
        wish: Copy = typed("copyPipeline", given, Copy)
        where = wish.project or await project(server, wish.uri)
        return await _copied(server, wish.name, wish.to, where, wish.new_name)

    for name, perform in (
        ("editPipeline", edit_pipeline),
        ("newPipeline", new_pipeline),
        ("editPrompt", edit_prompt),
        ("copyPipeline", copy_pipeline),
    ):
        offer(server, name, perform)


async def _chosen(server: Server, where: str) -> str:
    """The pipeline that is meant: the only one there is, else the one that the person names."""
    listed = await server.link.call(Pipelines(project=where))
    names = {one.name: one.name for one in listed.pipelines}
    if len(names) == 1:
        return next(iter(names))
    which = refused("which", f"There are the pipelines {', '.join(names)}.", 'Give {"name": …}.')
    return await pick(server, "Which pipeline?", names, which)


async def _own(server: Server, name: str, where: str, to: str) -> PipelineView:
    """A pipeline that can be edited: the person's or the project's own, else a copy of the shipped one."""
    found = await server.link.call(GetPipeline(name=name, project=where))
    if found.origin != "shipped":
        return found
    made = await _copied(server, name, to, where, "")
    return await server.link.call(GetPipeline(name=made.path, project=where))


async def _copied(server: Server, name: str, to: str, where: str, new_name: str) -> queries.Path:
    """Where no project is yet, one is made, as a new task does."""
    if to == "project":
        await server.link.call(AddProject(project=where))
    return await server.link.call(CopyPipeline(name=name, to=to, project=where, new_name=new_name))


async def _open(server: Server, path: str) -> readonly.Shown:
    return await readonly.show(server, server.seen_as(readonly.uri_of(Path(path))))
