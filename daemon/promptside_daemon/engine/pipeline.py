"""A pipeline as data: what the engine needs to know of it, and nothing about where it was read from.

A task keeps the whole pipeline it started with (ST-3), so that an edited file never changes work under way.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

InputSource = Literal["user", "previous", "both"]
OutputFormat = Literal["text", "options", "checklist", "structured"]
Permission = Literal["deny", "ask", "allow"]
Session = Literal["new", "continue"]
Origin = Literal["shipped", "user", "project"]

READING_TOOLS = frozenset({"Read", "Glob", "Grep", "WebSearch", "WebFetch"})
"""Tools of the Claude CLI that change nothing; a stage that has no other is read-only and proved so (ST-16)."""


class RequireApproval(Struct, frozen=True, tag="require_approval", tag_field="type"):
    """The person reads it and approves."""


class RequireSelection(Struct, frozen=True, tag="require_selection", tag_field="type"):
    """The person selects between `min` and `max` options."""

    min: int = 1
    max: int = 1


class RequireAllChecked(Struct, frozen=True, tag="require_all_checked", tag_field="type"):
    """The person ticks every item of a checklist."""


class RequireFields(Struct, frozen=True, tag="require_fields", tag_field="type"):
    """The named fields must not be blank."""

    fields: tuple[str, ...] = ()


Gate = RequireApproval | RequireSelection | RequireAllChecked | RequireFields
"""The four gates, in the source's words and JSON form (ST-5)."""


class Persona(Struct, frozen=True, kw_only=True):
    """Who the agent is in a stage (ST-12)."""

    name: str
    system_prompt: str = ""
    model: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """When to stop an attempt and how often to try again; seconds of awake time, turns, US dollars (GA-7, GA-8).

    Zero means no limit, except for `retries` and `agents`.
    """

    agents: int = 4
    silence_s: float = 600.0
    stage_s: float = 14400.0
    turns: int = 200
    retries: int = 5
    park_s: float = 1800.0
    budget_usd: float = 0.0


class StageLimits(Struct, frozen=True, kw_only=True):
    """What a stage sets over the settings' limits; None leaves a limit as it is."""

    silence_s: float | None = None
    stage_s: float | None = None
    turns: int | None = None
    retries: int | None = None
    park_s: float | None = None
    budget_usd: float | None = None


class Stage(Struct, frozen=True, kw_only=True):
    """One step of a pipeline (ST-2, ST-3)."""

    id: str
    """Kebab case, unique in the pipeline: `high-level-approaches`."""
    name: str
    description: str = ""
    prompt: str
    """The Jinja2 source itself, so that a task can be rendered after the file is gone."""
    input: InputSource = "previous"
    output: OutputFormat = "text"
    schema: dict[str, Any] | None = None
    """JSON Schema of the output; None takes the format's own."""
    gate: Gate | None = field(default_factory=RequireApproval)
    """None: the stage passes by itself."""
    fix: str = ""
    """Earlier stage that an item of a checklist can be sent back to, to have it fixed; empty: none."""
    tools: tuple[str, ...] | None = None
    """None: all tools of the agent; empty: none (ST-9)."""
    permission: Permission = "ask"
    rules: tuple[str, ...] = ()
    """Permission rules in the CLI's syntax that need no asking (ST-14)."""
    persona: Persona | None = None
    preparation: str = ""
    """Prompt of a quick, throw-away run that refines the input first (ST-12)."""
    model: str = ""
    session: Session = "new"
    artifact: str = ""
    """File name of the document beside the code; empty takes `NN-<id>.md`."""
    limits: StageLimits = field(default_factory=StageLimits)

    @property
    def read_only(self) -> bool:
        """Whether no tool of this stage can change the tree."""
        return self.tools is not None and READING_TOOLS.issuperset(self.tools)


class Pipeline(Struct, frozen=True, kw_only=True):
    """An ordered list of stages."""

    name: str
    title: str = ""
    description: str = ""
    version: str = ""
    """Hash of what it was read from; tells two states of one file apart."""
    origin: Origin = "shipped"
    stages: tuple[Stage, ...]

    def index(self, stage: str) -> int:
        """Position of a stage by id; -1 if there is none."""
        return next((i for i, s in enumerate(self.stages) if s.id == stage), -1)


def limits_for(settings: Limits, stage: Stage) -> Limits:
    """The limits in force for one stage: the settings', with what the stage itself sets on top."""
    own = stage.limits
    return Limits(
        agents=settings.agents,
        silence_s=settings.silence_s if own.silence_s is None else own.silence_s,
        stage_s=settings.stage_s if own.stage_s is None else own.stage_s,
        turns=settings.turns if own.turns is None else own.turns,
        retries=settings.retries if own.retries is None else own.retries,
        park_s=settings.park_s if own.park_s is None else own.park_s,
        budget_usd=settings.budget_usd if own.budget_usd is None else own.budget_usd,
    )
