"""One file per thing that an editor shows; each has `register(server)` and knows nothing of the others."""

from __future__ import annotations

from promptside_server import desk, drafts
from promptside_server.features import (
    actions,
    commands,
    completion_forms,
    diagnostics,
    edits,
    findings,
    folding,
    hints,
    lenses,
    life,
    links,
    navigation,
    notes,
    output,
    pipeline_completion,
    pipeline_definition,
    pipeline_files,
    pipeline_hover,
    pipeline_outline,
    progress,
    state,
    symbols,
    transcripts,
    waiting,
)
from promptside_server.server import Server


def register_all(server: Server) -> None:
    """Every feature, in the order in which an editor meets them."""
    for feature in (
        life,
        commands,
        state,
        output,
        progress,
        transcripts,
        navigation,
        pipeline_completion,
        pipeline_definition,
        pipeline_files,
        pipeline_hover,
        pipeline_outline,
        edits,
        diagnostics,
        lenses,
        actions,
        notes,
        hints,
        folding,
        symbols,
        links,
        completion_forms,
        findings,
        waiting,
        desk,
        drafts,
    ):
        feature.register(server)
