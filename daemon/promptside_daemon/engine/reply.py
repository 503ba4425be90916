"""What a person's answer to a decision means: as data for the record, and in words for the agent."""

from __future__ import annotations

from typing import Any, get_args

from promptside_daemon.engine.approval import vouched
from promptside_daemon.engine.events import PermissionAnswered, QuestionsAnswered, Reply
from promptside_daemon.engine.given import Given
from promptside_daemon.engine.standing import must_be_open
from promptside_daemon.engine.task import Decision, Task
from promptside_protocol import forms
from promptside_protocol.commands import Allow, Answer, Deny, Scope, SendAnswers
from promptside_protocol.errors import refused


def answer(task: Task, command: Answer, given: Given) -> QuestionsAnswered | PermissionAnswered:
    """One decision, by its id."""
    must_be_open(task)
    asked = next((d for d in task.decisions if d.id == command.decision), None)
    if asked is None:
        known = ", ".join(d.id for d in task.open_decisions) or "none"
        raise refused("no-decision", f"There is no question {command.decision}.", f"Open: {known}")
    _still_open(asked)
    if asked.kind == "permission":
        return _permission_by_word(asked, command, given)
    value, words = reply_to(asked, command)
    shown = given.sheet.shown if given.sheet is not None else ""
    reply = Reply(decision=asked.id, value=value, words=words)
    return QuestionsAnswered(at=given.at, by=given.by, replies=(reply,), shown=shown)


def send(task: Task, command: SendAnswers, given: Given) -> QuestionsAnswered:
    """The draft of all open questions."""
    must_be_open(task)
    if not task.open_questions or task.questions is None:
        raise refused("no-question", "No question is open.")
    sheet = vouched(task, task.questions, command.shown, given.sheet, act="sent")
    replies: list[Reply] = []
    missing: list[str] = []
    for asked in task.open_questions:
        value: Any = sheet.answers.get(asked.id)
        if value not in (None, "", [], ()):
            replies.append(Reply(decision=asked.id, value=value, words=in_words(asked, value)))
        elif asked.required:
            missing.append(f"{asked.id} is required and still empty.")
    if missing:
        raise refused("gate-lacks", f"Not sent: {forms.together(missing)}", f"promptside open {task.id}")
    return QuestionsAnswered(at=given.at, by=given.by, replies=tuple(replies), shown=sheet.shown, send=True)


def allow(task: Task, command: Allow, given: Given) -> PermissionAnswered:
    """One tool use may go on."""
    return _allowed(_permission(task, command.decision), command.scope, given)


def deny(task: Task, command: Deny, given: Given) -> PermissionAnswered:
    """One tool use may not, with a word to the agent."""
    asked = _permission(task, command.decision)
    return PermissionAnswered(at=given.at, by=given.by, decision=asked.id, allowed=False, text=command.text)


def scopes(asked: Decision) -> tuple[Scope, ...]:
    """How far a permission can be given: no further than this use where no rule can be made of it."""
    known: tuple[Scope, ...] = get_args(Scope)
    if asked.held:
        return known[:-1]  # no file is unsaved for good
    return known if asked.rule else known[:1]


def reply_to(asked: Decision, command: Answer) -> tuple[Any, str]:
    """The value and the words of an answer by option, text, files or recommendation; refuses what doesn't fit."""
    if command.recommended:
        chosen = [o.id for o in asked.options if o.recommended]
        if not chosen:
            raise refused("no-recommendation", f"Nothing is recommended for {asked.id}.", usage(asked))
        value: Any = chosen[:1] if asked.kind != "any" else chosen
        return value, in_words(asked, value)
    if asked.kind in ("one", "any", "yes_no"):
        value = _choices(asked, command)
    elif command.options:
        raise refused("no-option", f"{asked.id} has no options.", usage(asked))
    elif asked.kind == "files":
        value = [*command.files, *(line.strip() for line in command.text.splitlines() if line.strip())]
    else:
        value = command.text.strip()
    if not value:
        raise refused("empty", f"{asked.id} needs an answer.", usage(asked))
    return value, in_words(asked, value)


def in_words(asked: Decision, value: Any) -> str:
    """An answer as the agent is told it: the options' own titles, or the person's text."""
    if isinstance(value, str):
        return value
    titles = {o.id: o.title for o in asked.options}
    parts = [str(v.get("other", "")) if isinstance(v, dict) else titles.get(str(v), str(v)) for v in value]
    return ", ".join(parts)


def usage(asked: Decision) -> str:
    """How to answer a question in the terminal."""
    if asked.options:
        ids = "|".join(o.id for o in asked.options)
        return f"--option {ids}" + (" or --text “…”" if asked.other else "")
    return "--file PATH" if asked.kind == "files" else "--text “…”"


def _choices(asked: Decision, command: Answer) -> list[Any]:
    known = {o.id.lower(): o.id for o in asked.options}
    value: list[Any] = []
    for wanted in command.options:
        if wanted.lower() not in known:
            raise refused("no-option", f"{asked.id} has no option {wanted}.", usage(asked))
        if known[wanted.lower()] not in value:
            value.append(known[wanted.lower()])
    if command.text.strip():
        if not asked.other:
            raise refused("no-other", f"{asked.id} takes one of its options only.", usage(asked))
        value.append({"other": command.text.strip()})
    if len(value) > 1 and asked.kind != "any":
        raise refused("too-many", f"{asked.id}: {len(value)} are chosen, one is wanted.", usage(asked))
    return value


def _permission_by_word(asked: Decision, command: Answer, given: Given) -> PermissionAnswered:
    word = command.options[0] if command.options else ("deny" if command.text else "")
    if len(command.options) <= 1 and word == "deny":
        return PermissionAnswered(
            at=given.at, by=given.by, decision=asked.id, allowed=False, text=command.text
        )
    scope = next((s for s in get_args(Scope) if s == word), None)
    if scope is None or len(command.options) > 1:
        raise refused("no-option", f"{asked.id} takes one of {', '.join(scopes(asked))} and deny.")
    if command.text:
        raise refused("text-with-allow", "A word to the agent goes with deny only.")
    return _allowed(asked, scope, given)


def _allowed(asked: Decision, scope: Scope, given: Given) -> PermissionAnswered:
    if scope not in scopes(asked):
        raise refused(
            "no-rule",
            f"No rule can be made of {asked.id}; it can be allowed once, or denied.",
            "--option once",
        )
    return PermissionAnswered(at=given.at, by=given.by, decision=asked.id, allowed=True, scope=scope)


def _permission(task: Task, wanted: str) -> Decision:
    must_be_open(task)
    if wanted:
        asked = next((d for d in task.decisions if d.id == wanted and d.kind == "permission"), None)
        if asked is None:
            raise refused("no-decision", f"There is no permission {wanted} asked for.")
        _still_open(asked)
        return asked
    waiting = [d for d in task.open_decisions if d.kind == "permission"]
    if not waiting:
        raise refused("no-decision", "No permission is asked for.")
    if len(waiting) > 1:
        ids = ", ".join(d.id for d in waiting)
        raise refused("which", f"{len(waiting)} permissions are asked for: {ids}.", "Name one.")
    return waiting[0]


def _still_open(asked: Decision) -> None:
    if asked.status in ("open", "parked"):
        return
    if asked.status == "withdrawn":
        raise refused("withdrawn", f"{asked.id} is no longer asked: the agent does not wait for it any more.")
    where = f" from {asked.by.client}" if asked.by and asked.by.client else ""
    said = asked.answer if len(asked.answer) <= 100 else f"{asked.answer[:100]}…"
    raise refused("answered", f"{asked.id} was answered already{where}: {said}. Nothing was changed.")
