"""Form documents beside the code, and the bytes of each that ever counted, kept in the attempt directory.

The file is the rendering of a draft that the daemon keeps; nothing an agent writes into it decides anything.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
from pathlib import Path
from typing import Any

import msgspec

from promptside_daemon.engine.gate import Sheet, Untold
from promptside_daemon.engine.task import FormState, Passed, StageRun, Task
from promptside_daemon.toml_source import read_bytes
from promptside_protocol import forms
from promptside_protocol.errors import refused
from promptside_protocol.queries import HeldDocument

log = logging.getLogger(__name__)

DOCUMENT_LIMIT = 16 * 1024 * 1024
"""Bytes of a document that are read; a larger one is refused with a sentence."""


class Documents:
    """The documents of one project: files under its root, kept bytes under its attempts.

    Beside them it notes what we last wrote into each file: so a file that lags behind its draft, because the
    writing is still to come or was cut off by a crash, is told from one that somebody else changed.
    """

    def __init__(self, root: Path, attempts: Path) -> None:
        self.root = root
        self.attempts = attempts
        self._notes = attempts.parent / "written"

    # --- kept bytes -------------------------------------------------------------------------------------

    def keep(self, attempt: str, text: str) -> str:
        """Keep a text under its hash, durably, and return the hash."""
        content = text.encode()
        digest = hashlib.sha256(content).hexdigest()
        directory = self.attempts / attempt / "documents"
        target = directory / f"{digest}.md"
        if not target.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(target, content, mode=0o600, sync=True)
        return digest

    def kept(self, attempt: str, digest: str) -> str:
        """A text that was kept; raises FileNotFoundError when retention has taken it."""
        return (self.attempts / attempt / "documents" / f"{digest}.md").read_bytes().decode()

    # --- drafts -----------------------------------------------------------------------------------------

    def draft(self, task: Task, form: FormState) -> str:
        """The text of a form as the daemon has it: kept bytes, or the rendering of definition and answers."""
        if form.text:
            with contextlib.suppress(FileNotFoundError):
                return self.kept(self._attempt(task, form), form.text)
        return forms.render(form.definition, forms.from_plain(form.definition, form.answers))

    def left(self, task: Task, form: FormState, attempt: str) -> str:
        """The text of a form that may have been replaced since; refuses where retention has taken it."""
        current = find_form(task, form.document)
        if current is not None and current.attempt == form.attempt:
            return (
                self.theirs(task, form) or self.draft(task, form)
                if _is_text(form)
                else self.draft(task, form)
            )
        if not form.text:
            return forms.render(form.definition, forms.from_plain(form.definition, form.answers))
        try:
            return self.kept(attempt, form.text)
        except FileNotFoundError:
            if not _is_text(form):
                return forms.render(form.definition, forms.from_plain(form.definition, form.answers))
            raise refused("gone", "Retention has removed what this attempt wrote.") from None

    def on_disk(self, document: str) -> str | None:
        """The file's text; None where there is no file, or only behind a link out of the project.

        Raises `Refused` for a file that is there and can't be taken: unreadable, too large, no UTF-8.
        """
        path = self._path(document)
        if path is None:
            return None
        try:
            content = read_bytes(path, DOCUMENT_LIMIT)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if not path.is_file():
                return None  # a directory, a pipe, a link to nowhere: no document
            raise refused("unreadable", f"{path.name} can't be read: {error.strerror}.") from error
        if len(content) > DOCUMENT_LIMIT:
            raise refused("too-large", f"{path.name} is larger than {DOCUMENT_LIMIT >> 20} MB.")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            sentence = f"{path.name} is no UTF-8 text: byte {error.start + 1} is none."
            raise refused("not-utf8", sentence, "Save it as UTF-8.") from error

    def theirs(self, task: Task, form: FormState) -> str | None:
        """The file's text if somebody else wrote it; None where it is as we last wrote it, or not there."""
        there = self.on_disk(form.document)
        return None if there is None or self._is_ours(task, form.document, there) else there

    def write(
        self,
        task: Task,
        form: FormState,
        *,
        only_if_missing: bool = False,
        catch_up: bool = False,
        held: HeldDocument | None = None,
    ) -> None:
        """Bring the file in line with the draft; what stood there and was not ours is kept first.

        With `only_if_missing`, and where a person has changed a text since they approved it, theirs stays; with
        `catch_up` so does a text that never was the draft's. A file that is `held` is left to who holds it, but
        for a new attempt's, which waits for unsaved changes only (UX 2.1).
        """
        text = self.draft(task, form)
        there = self.on_disk(form.document)
        if there == text:
            self._note(task, form.document, text)
            return
        if there is not None and held is not None and (held.unsaved or not _of_another_attempt(form, there)):
            return
        if there is not None and not self._is_ours(task, form.document, there):
            if only_if_missing or _approved_text(task, form):
                return
            if catch_up and isinstance(form.definition, forms.TextDefinition) and not self._kept(task, there):
                return
            self.keep(self._attempt(task, form), there)
        self.put(form.document, text)
        self._note(task, form.document, text)

    def put(self, document: str, text: str) -> None:
        """Write a file of the task's directory whole, or not at all."""
        path = self._path(document)
        if path is None:
            raise refused("outside", f"{document} leads out of the project; it is not written.")
        if not self.root.is_dir():
            raise refused("no-directory", f"{self.root} is not there any more.")
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text.encode(), mode=0o644, sync=True)

    # --- orders -----------------------------------------------------------------------------------------

    def sheet(self, task: Task, form: FormState, answers: dict[str, Any], text: str | None = None) -> Sheet:
        """Read a form for one order: the draft, with the order's answers or its whole text laid over it.

        The content of a `text` artifact is the file's; the answers of every other kind are the draft's.
        """
        definition = form.definition
        draft = self.draft(task, form)
        before = forms.shown(definition, draft)
        difference = ""
        if text is None:
            there = self.theirs(task, form)
            if there is not None and forms.shown(definition, there) != before:
                difference = forms.difference(definition, draft, there)
                if isinstance(definition, forms.TextDefinition):
                    draft, before = there, forms.shown(definition, there)
        elif len(text) > DOCUMENT_LIMIT:
            raise refused("too-large", f"The document is larger than {DOCUMENT_LIMIT >> 20} MB.")
        base = draft if text is None else text
        if answers:
            laid = {**forms.to_plain(forms.parse(definition, base).answers), **answers}
            try:
                base = forms.apply(definition, base, forms.from_plain(definition, laid))
            except forms.FormError as error:
                raise refused("answer", str(error)) from error
        parsed = forms.parse(definition, base)
        return Sheet(
            document=form.document,
            answers=forms.to_plain(parsed.answers),
            shown=forms.shown(definition, base),
            before=before,
            text=self.keep(self._attempt(task, form), base),
            errors=tuple((p.line, p.text) for p in parsed.problems if p.severity == "error"),
            notes=len(parsed.notes),
            difference=difference,
        )

    def without_notes(self, task: Task, form: FormState, words: str = "") -> Untold:
        """What a person wrote to the agent into a form, and the document without it (UX 2.2).

        Notes that are among `words` were sent with the order by whoever read them; they are told once.
        """
        text = self.draft(task, form)
        if isinstance(form.definition, forms.TextDefinition):
            text = self.theirs(task, form) or text
        found = forms.parse(form.definition, text).notes
        if not found:
            return Untold()
        rest = forms.without_notes(text)
        return Untold(
            notes=tuple(
                f"{note.ref}: {note.text}" if note.ref else note.text
                for note in found
                if not note.text or note.text not in words
            ),
            document=form.document,
            shown=forms.shown(form.definition, rest),
            text=self.keep(self._attempt(task, form), rest),
        )

    def take_notes(self, document: str, words: str) -> None:
        """Remove those notes from a document without a form which an order has carried."""
        there = self.on_disk(document)
        rest = forms.without_notes(there, words) if there is not None else there
        if rest is not None and rest != there:
            self.put(document, rest)

    # --- whose a file is --------------------------------------------------------------------------------

    def _is_ours(self, task: Task, document: str, there: str) -> bool:
        return self._noted(task).get(document) == _digest(there)

    def _kept(self, task: Task, there: str) -> bool:
        """Whether this was what the daemon had once, in any attempt of the task."""
        digest = _digest(there)
        ids = (a.id for run in task.stages for a in run.attempts)
        return any((self.attempts / one / "documents" / f"{digest}.md").exists() for one in ids)

    def _note(self, task: Task, document: str, text: str) -> None:
        noted = self._noted(task)
        if noted.get(document) != _digest(text):
            write_json(self._notes / f"{task.id}.json", {**noted, document: _digest(text)}, sync=False)

    def _noted(self, task: Task) -> dict[str, str]:
        try:
            return msgspec.json.decode((self._notes / f"{task.id}.json").read_bytes(), type=dict[str, str])
        except (FileNotFoundError, msgspec.DecodeError):
            return {}

    def _path(self, document: str) -> Path | None:
        """Where a document is; None if that is behind a link out of the project."""
        path = self.root / document
        with contextlib.suppress(OSError, RuntimeError):
            if path.resolve().is_relative_to(self.root.resolve()):
                return path
        return None

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


def write_json(path: Path, value: object, *, sync: bool = True) -> None:
    """Write a small record of ours whole, or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(path, msgspec.json.encode(value), mode=0o600, sync=sync)


def _approved_text(task: Task, form: FormState) -> bool:
    """Whether a person approved this text: what they write into its file later is theirs (CW-23)."""
    if not isinstance(form.definition, forms.TextDefinition):
        return False
    run = next((r for r in task.stages if owns(r, form)), None)
    return run is not None and isinstance(run.status, Passed) and run.status.by is not None


def _of_another_attempt(form: FormState, there: str) -> bool:
    """Whether a document's last line names another attempt; one without such a line is taken for this one's."""
    found = forms.attempt_in(there)
    return found is not None and found != form.attempt


def _is_text(form: FormState) -> bool:
    return isinstance(form.definition, forms.TextDefinition)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replace(path: Path, content: bytes, *, mode: int, sync: bool = False) -> None:
    # A name that nobody can foresee, and a new file in any case: a link laid there is not followed.
    beside = path.with_name(f".{secrets.token_hex(8)}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
