"""The rehearsal: an agent that plays recorded transcripts, for demos, tests, and trying out pipelines.

A rehearsal is a directory with one transcript per stage and attempt, `<stage>.<n>.ndjson`. An attempt without one
plays the last that there is of its stage; a stage without any gets an output of its format that says it is made
up. Keeper, attempt directory and reader are the real ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from promptside_daemon.engine.pipeline import OutputFormat
from promptside_daemon.world import player
from promptside_daemon.world.scene import NOWHERE, Scene

SHIPPED = Path(__file__).parent.parent / "rehearsals"
MADE_UP = "This output is made up: the rehearsal has no recording of this stage."


def place(name: str) -> Path:
    """The directory of a rehearsal: a path, or the name of one that ships with the product."""
    return Path(name) if "/" in name else SHIPPED / name


def recording(directory: Path, stage: str, n: int) -> Path | None:
    """What an attempt plays: its own recording, else the newest one before it; None where there is none."""
    found = (directory / f"{stage}.{number}.ndjson" for number in range(n, 0, -1))
    return next((path for path in found if path.is_file()), None)


def command(
    *,
    recorded: Path | None,
    output: OutputFormat,
    schema: dict[str, Any] | None,
    made_up: Path,
    session: str,
    fast: bool,
    scene: Scene = NOWHERE,
) -> tuple[str, ...]:
    """What to run, behind the interpreter; writes the made-up output where there is no recording."""
    pace = "0" if fast else "1"
    if recorded is not None and recorded.is_file():
        kind = "elsewhere" if scene.elsewhere else "recorded"
        return (player.__file__, kind, str(recorded), session, pace, scene.remark)
    made_up.write_text(json.dumps(invent(output, schema)))
    return (player.__file__, "made-up", str(made_up), session, pace)


def invent(output: OutputFormat, schema: dict[str, Any] | None) -> dict[str, Any]:
    """An output of a format, as `text` for people and `structured` where the format has a schema."""
    match output:
        case "text":
            return {"text": f"# Made up\n\n{MADE_UP}\n", "structured": None}
        case "options":
            options = [
                {
                    "title": "The first way",
                    "description": MADE_UP,
                    "pros": ["It is there"],
                    "cons": ["Made up"],
                },
                {"title": "The second way", "description": MADE_UP, "pros": [], "cons": []},
            ]
            return {"text": MADE_UP, "structured": {"options": options}}
        case "checklist":
            items = [{"severity": "info", "title": "Nothing was reviewed", "detail": MADE_UP}]
            return {"text": MADE_UP, "structured": {"items": items}}
        case "structured":
            return {"text": MADE_UP, "structured": _filled(schema or {})}


def _filled(schema: dict[str, Any]) -> Any:
    """The plainest value that fits a schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties: dict[str, Any] = schema.get("properties", {})
            return {key: _filled(value) for key, value in properties.items()}
        case "array":
            return [_filled(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "null":
            return None
        case _:
            return "Made up".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]
