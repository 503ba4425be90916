"""Form documents beside the code, and the bytes of each that ever counted, kept in the attempt directory.

The file is the rendering of a draft that the daemon keeps; nothing an agent writes into it decides anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec

from promptside_daemon.engine.gate import Sheet
from promptside_daemon.engine.task import FormState, StageRun, Task
from promptside_protocol import forms
from promptside_protocol.errors import refused

DOCUMENT_LIMIT = 16 * 1024 * 1024
"""Bytes of a document that are read; a larger one is refused with a sentence."""


class Documents:
    """The documents of one project: files under its root, kept bytes under its attempts."""

    def __init__(self, root: Path, attempts: Path) -> None:
        self.root = root
        self.attempts = attempts

    # --- kept bytes -------------------------------------------------------------------------------------

    def keep(self, attempt: str, text: str) -> str:
        """Keep a text under its hash, durably, and return the hash."""
        content = text.encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(content).hexdigest()
        directory = self.attempts / attempt / "documents"
        target = directory / f"{digest}.md"
        if not target.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(target, content, mode=0o600)
        return digest

    def kept(self, attempt: str, digest: str) -> str:
        """A text that was kept; raises FileNotFoundError when retention has taken it."""
        path = self.attempts / attempt / "documents" / f"{digest}.md"
        return path.read_bytes().decode("utf-8", "surrogateescape")

    # --- drafts -----------------------------------------------------------------------------------------

    def draft(self, task: Task, form: FormState) -> str:
        """The text of a form as the daemon has it: kept bytes, or the rendering of definition and answers."""
        if form.text:
            with contextlib.suppress(FileNotFoundError):
                return self.kept(self._attempt(task, form), form.text)
        return forms.render(form.definition, forms.from_plain(form.definition, form.answers))

    def on_disk(self, document: str) -> str | None:
        """The file's text; None where there is none. A link out of the project is not followed."""
        path = self._path(document)
        try:
            if path.stat().st_size > DOCUMENT_LIMIT:
                raise refused("too-large", f"{path.name} is larger than {DOCUMENT_LIMIT >> 20} MB.")
            return path.read_bytes().decode("utf-8", "surrogateescape")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, task: Task, form: FormState, *, only_if_missing: bool = False) -> None:
        """Bring the file in line with the draft; what stood there and was nobody's rendering is kept first."""
        text = self.draft(task, form)
        there = self.on_disk(form.document)
        if there == text or (only_if_missing and there is not None):
            return
        if there is not None:
            self.keep(self._attempt(task, form), there)
        self.put(form.document, text)

    def put(self, document: str, text: str) -> None:
        """Write a file of the task's directory whole, or not at all."""
        path = self._path(document)
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text.encode("utf-8", "surrogateescape"), mode=0o644)

    # --- orders -----------------------------------------------------------------------------------------

    def sheet(self, task: Task, form: FormState, answers: dict[str, Any], text: str | None = None) -> Sheet:
        """Read a form for one order: the draft, with the order's answers or its whole text laid over it.

        The content of a `text` artifact is the file's; the answers of every other kind are the draft's.
        """
        draft = self.draft(task, form)
        there = self.on_disk(form.document)
        definition = form.definition
        before = forms.shown(definition, draft)
        difference = ""
        if text is None and there is not None and forms.shown(definition, there) != before:
            difference = forms.difference(definition, draft, there)
            if isinstance(definition, forms.TextDefinition):
                draft = there
        base = draft if text is None else text
        if answers:
            laid = {**forms.to_plain(forms.parse(definition, base).answers), **answers}
            try:
                base = forms.apply(definition, base, forms.from_plain(definition, laid))
            except forms.FormError as error:
                raise refused("answer", str(error)) from error
        parsed = forms.parse(definition, base)
        plain = forms.to_plain(parsed.answers)
        return Sheet(
            document=form.document,
            answers=plain,
            shown=forms.shown(definition, base),
            before=forms.shown(definition, draft) if isinstance(definition, forms.TextDefinition) else before,
            text=self.keep(self._attempt(task, form), base),
            errors=tuple((p.line, p.text) for p in parsed.problems if p.severity == "error"),
            notes=len(parsed.notes),
            difference=difference,
        )

    def _path(self, document: str) -> Path:
        path = self.root / document
        try:
            inside = path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):
            inside = False
        if not inside:
            raise refused("outside", f"{document} leads out of the project; it is neither read nor written.")
        return path

    def _attempt(self, task: Task, form: FormState) -> str:
        """The id of the attempt that a form belongs to."""
        for run in task.stages:
            if owns(run, form) or (task.questions is form and run.last and run.last.n == form.attempt):
                found = next((a for a in run.attempts if a.n == form.attempt), run.last)
                if found is not None:
                    return found.id
        return "task"


def owns(run: StageRun, form: FormState) -> bool:
    """Whether a form is this stage's gate's."""
    return run.form is not None and run.form.document == form.document


def find_form(task: Task, document: str) -> FormState | None:
    """The form of a task by its document; empty: the one that waits, questions before a gate."""
    if task.questions is not None and document in ("", task.questions.document):
        return task.questions
    if not document:
        return task.run.form if task.run is not None else None
    return next((r.form for r in task.stages if r.form is not None and r.form.document == document), None)


def write_json(path: Path, value: object) -> None:
    """Write a small record of ours whole, or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(path, msgspec.json.encode(value), mode=0o600)


def _replace(path: Path, content: bytes, *, mode: int) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
