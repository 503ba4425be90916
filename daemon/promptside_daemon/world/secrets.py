"""The secret values of an attempt's environment, by which its output is redacted (DA-6).

While it runs all of them are kept beside it, in a file that only the owner reads; afterwards only those that
its transcript holds anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from promptside_daemon.world.documents import write_json
from promptside_daemon.world.redact import Redactor, secret_values

NAME = "secrets.json"
CHUNK_BYTES = 1 << 20


def note_secrets(directory: Path, environment: Mapping[str, str]) -> None:
    """Keep what has to be redacted in this attempt."""
    write_json(directory / NAME, sorted(secret_values(environment)))


def redactor_for(directory: Path) -> Redactor:
    """Redacts by pattern, and by the values of this attempt."""
    return Redactor(_noted(directory))


def keep_secrets_told(directory: Path) -> None:
    """After the end: forget every value that the transcript does not hold."""
    values = _noted(directory)
    if values:
        write_json(directory / NAME, sorted(_held(directory / "transcript.ndjson", values)))


def _noted(directory: Path) -> list[str]:
    try:
        return msgspec.json.decode((directory / NAME).read_bytes(), type=list[str])
    except (FileNotFoundError, msgspec.DecodeError):
        return []


def _held(transcript: Path, values: list[str]) -> set[str]:
    """Which of the values stand in the file, as they are or as JSON writes them."""
    wanted = {value: {value.encode(), msgspec.json.encode(value)[1:-1]} for value in values}
    overlap = max(len(form) for forms in wanted.values() for form in forms)
    found: set[str] = set()
    try:
        with transcript.open("rb") as file:
            piece = b""
            while len(found) < len(wanted) and (chunk := file.read(CHUNK_BYTES)):
                piece = piece[-overlap:] + chunk
                found |= {
                    v for v, forms in wanted.items() if v not in found and any(f in piece for f in forms)
                }
    except FileNotFoundError:
        pass
    return found
