"""Which pipelines there are: shipped with the product, the person's own, the project's; later wins by name.

Reading a project's pipelines is harmless, running them is not (DA-5): whoever looks for one to run passes the
project only if it is trusted.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Literal

from promptside_daemon.engine.pipeline import Origin
from promptside_daemon.pipelines.load import NAME, Loaded, load
from promptside_daemon.toml_source import MAX_BYTES, at_start, did_you_mean, read_bytes, reason
from promptside_protocol import paths
from promptside_protocol.views import FaultView

SHIPPED = Path(__file__).parent
MAX_FILES = 50
"""Pipelines of one directory; a project could bring any number."""


class CopyError(Exception):
    """Nothing was copied; the message is a sentence that says why."""


def find(name_or_path: str, project: Path | None = None) -> Loaded:
    """A pipeline by name, or by absolute file (with a `/` or `.toml`); one that is not there is a fault.

    A faulty pipeline hides what it has the name of: a person who changed `standard` must not get the other.
    """
    if _is_file(name_or_path):
        file = Path(name_or_path).absolute()
        return load(file, _origin(file))
    return _named(name_or_path, _directories(project), project)


def list_all(project: Path | None = None) -> tuple[Loaded, ...]:
    """Every pipeline that a name leads to, sorted by name; the faulty ones too."""
    found: dict[str, Loaded] = {}
    for origin, directory in _directories(project):
        for file in _files(directory):
            found[file.stem] = _load(file, origin, project)
    return tuple(found[name] for name in sorted(found))


def copy(
    name_or_path: str,
    to: Literal["project", "user"],
    project: Path | None = None,
    *,
    overwrite: bool = False,
    name: str = "",
) -> Path:
    """Writes a pipeline and its prompts, byte for byte, where they can be edited; raises CopyError.

    With a `name` of its own it becomes another pipeline, with prompts of its own.

    A name is looked for everywhere but where the copy goes, so that it can bring back what was there. The
    pipeline file is written last, so that one whose prompts are not there yet is never found.
    """
    if _is_file(name_or_path):
        source = find(name_or_path)
    else:
        others = [(origin, directory) for origin, directory in _directories(project) if origin != to]
        source = _named(name_or_path, others, project)
    if source.pipeline is None:
        fault = next(fault for fault in source.faults if fault.severity == "error")
        raise CopyError(f"{_where(fault)}{fault.message}")
    if name and not NAME.fullmatch(name):
        raise CopyError(
            f"`{name[:80]}` can't be a pipeline's name: small letters, digits and single hyphens."
        )
    target = _target(to, project)
    contents = {_inside(source.file.parent, file): _bytes(file) for file in source.files}
    if name and name != source.file.stem:
        contents = _renamed(contents, source.file.stem, name)
    writing = {target / place: content for place, content in contents.items()}
    there = [str(file) for file in writing if os.path.lexists(file)]
    if there and not overwrite:
        raise CopyError(f"{there[0]} is there already; nothing was copied.")
    try:
        for file in reversed(writing):
            _write(file, writing[file], target)
    except OSError as error:
        raise CopyError(f"{target} can't be written: {reason(error)}.") from error
    return target / f"{name or source.file.stem}.toml"


def _renamed(contents: dict[str, bytes], old: str, new: str) -> dict[str, bytes]:
    """The same under another name: prompts go into a folder of that name, and the pipeline file names them there."""
    pipeline, *prompts = contents
    text = contents[pipeline]
    made: dict[str, bytes] = {}
    for prompt in prompts:
        folder, _, file = prompt.rpartition("/")
        above = folder if folder.rpartition("/")[2] != old else folder.rpartition("/")[0]
        place = "/".join(part for part in (above, new, file) if part)
        found = re.compile(rb"([\"'])" + re.escape(prompt.encode()) + rb"\1")
        if not found.search(text):
            raise CopyError(
                f"{pipeline} doesn't name {prompt} by its plain path; copy it under its own name."
            )
        text = found.sub(lambda match, place=place: match[1] + place.encode() + match[1], text)  # type: ignore[misc]  # mypy knows no lambda with a default
        made[place] = contents[prompt]
    return {f"{new}.toml": text, **made}


def _is_file(name_or_path: str) -> bool:
    return "/" in name_or_path or name_or_path.endswith(".toml")


def _named(name: str, directories: list[tuple[Origin, Path]], project: Path | None) -> Loaded:
    names: list[str] = []
    for origin, directory in reversed(directories):
        for file in _files(directory):
            if file.stem == name:
                return _load(file, origin, project)
            names.append(file.stem)
    hint = did_you_mean(name, tuple(sorted(set(names))), label="There are")
    fault = at_start("", f"There is no pipeline `{name[:80]}`.", hint)
    return Loaded(name=name, file=Path(), origin="shipped", pipeline=None, faults=(fault,))


def _directories(project: Path | None) -> list[tuple[Origin, Path]]:
    """Where pipelines are, the one that wins last."""
    found: list[tuple[Origin, Path]] = [("shipped", SHIPPED), ("user", paths.config_dir() / "pipelines")]
    if project is not None:
        found.append(("project", project / ".promptside" / "pipelines"))
    return found


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(directory.glob("*.toml"))[:MAX_FILES]
    except OSError:
        return []  # a directory that can't be read holds no pipeline for us; `doctor` looks at directories


def _load(file: Path, origin: Origin, project: Path | None) -> Loaded:
    return load(file, origin, within=project if origin == "project" else None)


def _origin(file: Path) -> Origin:
    """Of a file that a person named: any place but ours and the person's counts as a project's."""
    try:
        file = file.resolve()
    except (OSError, RuntimeError, ValueError):  # links that go round, a NUL: no place at all
        return "project"
    if file.is_relative_to(SHIPPED.resolve()):
        return "shipped"
    return "user" if file.is_relative_to(paths.config_dir().resolve()) else "project"


def _target(to: Literal["project", "user"], project: Path | None) -> Path:
    if to == "user":
        return paths.config_dir() / "pipelines"
    if project is None:
        raise CopyError("There is no project here to copy it to.")
    target = project / ".promptside" / "pipelines"
    if not target.resolve().is_relative_to(project.resolve()):
        raise CopyError(f"{target} is a link that leads out of the project; nothing was copied.")
    return target


def _inside(base: Path, file: Path) -> str:
    relative = os.path.relpath(file, base)
    if relative.startswith(".."):
        raise CopyError(f"{file} is not below {base}; nothing was copied.")
    return relative


def _bytes(file: Path) -> bytes:
    try:
        return read_bytes(file, MAX_BYTES)
    except OSError as error:
        raise CopyError(f"{file} can't be read: {reason(error)}.") from error


def _write(file: Path, content: bytes, target: Path) -> None:
    """Beside, then renamed: a link that stands in the file's place is replaced, never followed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.parent.resolve().is_relative_to(target.resolve()):
        raise OSError(0, f"{file.parent} is a link that leads elsewhere")
    handle, beside = tempfile.mkstemp(dir=file.parent, prefix=".copy-")
    try:
        with os.fdopen(handle, "wb") as temporary:
            temporary.write(content)
        Path(beside).chmod(0o644)
        Path(beside).replace(file)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        raise


def _where(fault: FaultView) -> str:
    return f"{fault.file}:{fault.line}: " if fault.file else ""
