"""What can be written in pipeline, prompt and settings files, each word with one sentence (ED-6).

Types, defaults and values are read off the Structs that the loaders fill, so that they can't say anything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct

from promptside_daemon import settings
from promptside_daemon.engine.pipeline import (
    READING_TOOLS,
    Gate,
    Persona,
    Pipeline,
    Stage,
    StageLimits,
)
from promptside_daemon.pipelines import find
from promptside_daemon.pipelines.budget import FILTERS, TESTS
from promptside_daemon.pipelines.load import PIPELINE_KEYS
from promptside_daemon.pipelines.prompt import KNOWN
from promptside_daemon.pipelines.tools import TOOLS
from promptside_daemon.settings import Settings
from promptside_protocol.views import Table, Variable, VocabularyView, Word

Meanings = dict[str, str]


def vocabulary(project: Path | None = None) -> VocabularyView:
    """All of it; a project adds the models that its files, and the person's, name already."""
    return VocabularyView(
        pipeline=_pipeline_tables(),
        settings=tuple(_settings_tables((), Settings)),
        gates=(*(_gate(kind) for kind in get_args(Gate)), Word(name="none", meaning=NO_GATE)),
        tools=tuple(Word(name=tool, meaning=_tool(tool)) for tool in TOOLS),
        models=_models(project),
        variables=tuple(
            Variable(
                name=name,
                meaning=VARIABLES[name],
                parts=tuple(Word(name=part, meaning=PARTS[f"{name}.{part}"]) for part in sorted(parts)),
            )
            for name, parts in KNOWN.items()
        ),
        filters=tuple(Word(name=name, meaning=FILTER[name]) for name in FILTERS),
        tests=tuple(Word(name=name, meaning=TEST[name]) for name in TESTS),
    )


# --- pipelines --------------------------------------------------------------------------------------

TOP: Meanings = {
    "title": "What people see; the file's name is the pipeline's name.",
    "description": "One sentence: what this pipeline is for.",
    "persona": "Who the agent can be: tables `[persona.NAME]`, which stages take by name.",
    "stage": "The stages, in their order: one `[[stage]]` for each.",
}
STAGE: Meanings = {
    "id": "Names the stage in orders and files; kebab case, unique.",
    "name": "What people see.",
    "description": "One sentence about what the stage does.",
    "prompt": "The template that the agent is asked with, or the name of its file, which ends in `.j2`.",
    "input": "What the stage starts from; with `user` or `both` it waits for `promptside run`.",
    "output": "The form of the stage's document, and so of what a person decides in it.",
    "schema": "JSON Schema of the output, as a table or as JSON text.",
    "gate": "What a person has to do before the next stage begins.",
    "fix": "Earlier stage that an item of a checklist can be sent back to, to have it fixed.",
    "tools": "Tools that the agent has; a stage with none but reading ones is read-only, and proved so.",
    "permission": "What happens when the agent wants what no rule allows.",
    "rules": "What needs no asking, in the syntax of the Claude CLI: `Bash(npm test)`, `Edit(./**)`.",
    "persona": "Who the agent is: the name of a `[persona.NAME]`, or a table.",
    "preparation": "A template: a quick, throw-away run that refines your input first.",
    "model": "The model for this stage.",
    "session": "A new conversation, or that of the stage before.",
    "artifact": "File name of the stage's document.",
    "limits": "When an attempt is stopped, and how often it is tried again.",
}
PERSONA: Meanings = {
    "name": "What people see.",
    "system_prompt": "Who the agent is, in words; it goes before the prompt.",
    "model": "The model for stages with this persona.",
}
LIMITS: Meanings = {
    "agents": "Agents at work at once, over all projects of this machine.",
    "silence_s": "Seconds without a line, while no tool call and no question is open.",
    "stage_s": "Seconds of one attempt, counted while the machine is awake.",
    "turns": "Turns of one attempt.",
    "retries": "How often a failed attempt is tried again by itself.",
    "park_s": "Seconds after which an open question ends the process; the answer resumes the conversation.",
    "budget_usd": "US dollars of one attempt; 0 is no limit.",
}
GATES: Meanings = {
    "require_approval": "The person reads the document and approves.",
    "require_selection": "The person selects between `min` and `max` options.",
    "require_all_checked": "The person ticks every item of a checklist.",
    "require_fields": "The fields named in `fields` must not be blank.",
}
NO_GATE = "Nobody is asked: the stage passes by itself."
GATE: Meanings = {
    "type": "Which gate it is.",
    "min": "The fewest options that can be selected.",
    "max": "The most options that can be selected.",
    "fields": "Names of fields that must not be blank.",
}
_TYPES: Meanings = {
    "prompt": "a template, or a file's name",
    "gate": "a gate's name, a table `{ type = … }`, or JSON",
    "tools": 'a list of texts, `[]` for none, or "all"',
    "schema": "a table, or JSON text",
    "persona": "a name, or a table",
}
_DEFAULTS: Meanings = {
    "id": "from the name",
    "input": '"previous"; of the first stage "user"',
    "gate": "the one that fits the output",
    "schema": "the format's own",
    "tools": '"all"',
    "artifact": "NN-<id>.md",
    "model": "the settings'",
    "limits": "the settings'",
    "fix": "none",
}


def _pipeline_tables() -> tuple[Table, ...]:
    gates = tuple(_tag(kind) for kind in get_args(Gate))
    stage = [
        _word(key, Stage, STAGE[key], type_=_TYPES.get(key, ""), default=_DEFAULTS.get(key))
        for key in Stage.__struct_fields__
    ]
    known = {"gate": (*gates, "none"), "tools": ("all",)}
    stage = [msgspec.structs.replace(w, values=known[w.name]) if w.name in known else w for w in stage]
    top = [
        _word(key, Pipeline, TOP[key])
        if key in Pipeline.__struct_fields__
        else Word(name=key, meaning=TOP[key], type="tables")
        for key in PIPELINE_KEYS
    ]
    whole = Word(name="type", meaning=GATE["type"], type="text", values=gates)
    counts = [Word(name=key, meaning=GATE[key], type="whole number", default="1") for key in ("min", "max")]
    fields = Word(name="fields", meaning=GATE["fields"], type="list of texts")
    limits = [
        _word(key, StageLimits, LIMITS[key], default="the settings'") for key in StageLimits.__struct_fields__
    ]
    personas = [_word(key, Persona, PERSONA[key], default="") for key in Persona.__struct_fields__]
    return (
        Table(name="", meaning="A pipeline.", keys=tuple(top)),
        Table(name="stage", meaning="A step of the pipeline.", keys=tuple(stage)),
        Table(name="stage.gate", meaning=STAGE["gate"], keys=(whole, *counts, fields)),
        Table(name="stage.limits", meaning=STAGE["limits"], keys=tuple(limits)),
        Table(name="stage.persona", meaning=STAGE["persona"], keys=tuple(personas)),
        Table(name="persona", meaning=TOP["persona"], keys=tuple(personas)),
    )


def _gate(kind: type[Struct]) -> Word:
    return Word(name=_tag(kind), meaning=GATES[_tag(kind)], values=tuple(kind.__struct_fields__))


def _tag(kind: type[Struct]) -> str:
    return str(kind.__struct_config__.tag)


# --- settings ---------------------------------------------------------------------------------------

SETTINGS: Meanings = {
    "agent": "Which program works.",
    "agent.default": "The agent of a task that names none.",
    "agent.claude": "The Claude CLI.",
    "agent.claude.command": "The program; `PROMPTSIDE_CLAUDE` goes before it.",
    "agent.claude.model": "The model where no stage and no persona names one.",
    "agent.claude.env": "Variables that its process gets on top.",
    "pipeline": "What a task goes through.",
    "pipeline.default": "The pipeline of a task that names none.",
    "limits": "When an attempt is stopped, and how often it is tried again.",
    **{f"limits.{key}": meaning for key, meaning in LIMITS.items()},
    "git": "Branches and worktrees.",
    "git.base": "What branches begin at; empty is the remote's HEAD, else the current branch.",
    "git.branch": "Name of a task's branch, with `{id}`, `{slug}` and `{type}`.",
    "git.push": "Whether a task's branch is pushed.",
    "git.worktrees": "Directory of the worktrees, inside of the project.",
    "checks": "Commands that writing stages may run without asking.",
    "checks.test": "Runs the tests.",
    "checks.lint": "Looks for faults without running.",
    "checks.build": "Builds the project.",
    "checks.skip": "Checks that are left out.",
    "notify": "What the desktop tells.",
    "notify.desktop": "Whether it tells anything.",
    "notify.stage_change": "A stage began or ended.",
    "notify.questions": "The agent asks something.",
    "notify.blocker": "Something holds up a task.",
    "notify.pr_created": "A pull request was made.",
    "notify.pr_merged": "A pull request was merged.",
    "notify.review_done": "A review ended.",
    "retention": "How long, and how much of, what finished tasks left is kept.",
    "retention.days": "Days that attempts of finished tasks are kept; 0 keeps all.",
    "retention.size_mb": "Megabytes that they may take; 0 keeps all.",
    "environment": "The environment that agents get.",
    "environment.allow": "Names that reach the agent beside the usual ones; `X_*` takes all that begin so.",
    "daemon": "The daemon itself.",
    "daemon.keep_awake": "Whether the machine is kept awake while an agent works.",
}
WHO: dict[settings.Scope, str] = {
    "anyone": "A project may set it.",
    "trusted": "A project may set it when you trust it.",
    "person": "Only your own file may set it.",
}


def _settings_tables(path: tuple[str, ...], kind: type[Struct]) -> list[Table]:
    tables: list[Table] = []
    keys: list[Word] = []
    for name, hint in get_type_hints(kind).items():
        at = (*path, name)
        dotted = ".".join(at)
        if isinstance(hint, type) and issubclass(hint, Struct):
            tables += _settings_tables(at, hint)
            keys.append(Word(name=name, meaning=SETTINGS[dotted], type="table"))
        else:
            meaning = f"{SETTINGS[dotted]} {WHO[settings.scope_of(dotted)]}"
            keys.append(_word(name, kind, meaning))
    name = ".".join(path)
    meaning = SETTINGS[name] if name else "Settings: yours, or a project's."
    return [Table(name=name, meaning=meaning, keys=tuple(keys)), *tables]


# --- templates, tools and models --------------------------------------------------------------------

VARIABLES: Meanings = {
    "task_description": "Title and description of the task.",
    "previous_output": "The approved output of the stage before, as you left it.",
    "user_input": "What you added for this stage.",
    "user_decision": "What you decided at the gate before: options with their text, ticks, fields.",
    "feedback": "What you said with a redo.",
    "failure": "Why the attempt before failed, cut to 4,000 characters.",
    "task": "The task; name a part of it.",
    "project": "The project; name a part of it.",
    "stage": "This stage; name a part of it.",
}
PARTS: Meanings = {
    "task.id": "Its number.",
    "task.title": "Its title.",
    "task.type": "`feature`, `bug_fix`, `refactor`, `chore`, `docs` or `hotfix`.",
    "task.work_type": "`coding`, `documentation` or `operations`.",
    "task.priority": "From 0 to 100.",
    "task.files": "The files that it names; a list.",
    "task.criteria": "Its acceptance criteria; a list.",
    "task.directory": "Where its documents lie, those of earlier stages too.",
    "project.name": "Its name.",
    "project.path": "Its directory.",
    "stage.id": "The stage's id.",
    "stage.name": "The stage's name.",
}
FILTER: Meanings = {
    "default": "Another value where there is none; with `true` behind it, also where it is empty.",
    "d": "The same as `default`.",
    "first": "The first item, or character.",
    "last": "The last item, or character.",
    "length": "How many items, or characters.",
    "count": "The same as `length`.",
    "join": "The items of a list as one text, with what is given between them.",
    "indent": "Every line but the first moved to the right, by 4 or by the number given.",
    "replace": "One text in place of another, everywhere.",
    "trim": "Without the blanks at both ends.",
    "lower": "In small letters.",
    "upper": "In capitals.",
    "title": "Each Word With a Capital.",
    "capitalize": "The first letter a capital.",
}
TEST: Meanings = {
    "defined": "There is such a variable.",
    "undefined": "There is no such variable.",
    "none": "It is nothing.",
}
TOOL: Meanings = {
    "Read": "Reads a file.",
    "Glob": "Finds files by name.",
    "Grep": "Finds text in files.",
    "Edit": "Changes a file.",
    "Write": "Writes a whole file.",
    "NotebookEdit": "Changes a cell of a notebook.",
    "Bash": "Runs a command.",
    "WebSearch": "Searches the web.",
    "WebFetch": "Reads a page of the web.",
    "Task": "Starts a subagent.",
    "Agent": "Starts a subagent.",
    "Skill": "Uses a skill.",
    "TodoWrite": "Keeps the agent's own list of steps.",
    "BashOutput": "Reads what a command in the background wrote.",
    "KillShell": "Ends a command in the background.",
}
MODELS: Meanings = {
    "opus": "The Claude CLI's name for its latest Opus.",
    "sonnet": "The Claude CLI's name for its latest Sonnet.",
    "haiku": "The Claude CLI's name for its latest Haiku.",
    "fable": "The Claude CLI's name for its latest Fable.",
}


def _tool(name: str) -> str:
    says = TOOL.get(name, "A tool of the Claude CLI.")
    return f"{says} It changes nothing." if name in READING_TOOLS else says


def _models(project: Path | None) -> tuple[Word, ...]:
    named: dict[str, str] = {}
    in_force = settings.load(project, trusted=True).settings.agent.claude.model
    if in_force:
        named[in_force] = "Your settings name it."
    for loaded in find.list_all(project):
        for stage in loaded.sketch.stages if loaded.sketch else ():
            for model in (stage.model, stage.persona.model if stage.persona else ""):
                if model:
                    named.setdefault(model, f"The pipeline `{loaded.name}` names it.")
    return tuple(Word(name=name, meaning=meaning) for name, meaning in {**named, **MODELS}.items())


# --- types, as people call them ---------------------------------------------------------------------


def _word(key: str, kind: type[Struct], meaning: str, *, type_: str = "", default: str | None = None) -> Word:
    hint = get_type_hints(kind)[key]
    return Word(
        name=key,
        meaning=meaning,
        type=type_ or _type(hint),
        default=_default(kind, key) if default is None else default,
        values=_values(hint),
    )


def _type(hint: Any) -> str:
    known = {str: "text", bool: "true or false", int: "whole number", float: "number"}
    if hint in known:
        return known[hint]
    if get_origin(hint) is Literal:
        return "text"
    if get_origin(hint) is tuple:
        return "list of tables" if _is_struct(get_args(hint)[0]) else "list of texts"
    inner = [argument for argument in get_args(hint) if argument is not type(None)]
    if type(None) in get_args(hint) and len(inner) == 1:
        return _type(inner[0])
    return "table"


def _values(hint: Any) -> tuple[str, ...]:
    if hint is bool:
        return ("true", "false")
    if get_origin(hint) is Literal:
        return tuple(map(str, get_args(hint)))
    return _values(get_args(hint)[0]) if get_origin(hint) is tuple else ()


def _default(kind: type[Struct], key: str) -> str:
    """As a file has it; empty where there is none, or an empty one."""
    field = next(field for field in msgspec.structs.fields(kind) if field.name == key)
    if field.default is NODEFAULT or not isinstance(field.default, str | int | float | bool):
        return ""
    if field.default == "":
        return ""
    return msgspec.json.encode(field.default).decode()


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)
