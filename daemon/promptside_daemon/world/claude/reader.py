"""A transcript to readings, line by line: a pure fold, always from the start of the file."""

from typing import Any, assert_never

import msgspec
from msgspec import Struct

from promptside_daemon.world.claude import lines, metrics, outcome, stream
from promptside_daemon.world.claude.outcome import Outcome
from promptside_daemon.world.claude.readings import (
    Asked,
    AskWithdrawn,
    Choice,
    Compacted,
    ContextFill,
    Denied,
    ModelFellBack,
    OutputLost,
    PermissionAsked,
    PlanOffered,
    Question,
    RateLimited,
    Reading,
    Retrying,
    SessionStarted,
    ToolFinished,
    ToolUsed,
    TurnEnded,
)


class Reader:
    """Folds a transcript, line by line, into readings."""

    def __init__(self, *, wants_structured: bool = False) -> None:
        self.started = False
        self.in_turn = False
        self.last: TurnEnded | None = None
        self._wants_structured = wants_structured
        self._session: tuple[Any, ...] | None = None
        self._calls: dict[str, dict[str, Any]] = {}
        self._asks: dict[str, str] = {}
        self._api_error: str | None = None
        self._resets_at: float | None = None
        self._fill: tuple[int, int | None] | None = None
        self._model = ""
        self._window: int | None = None

    @property
    def busy(self) -> bool:
        """Does a tool call or a question stand open? Silence doesn't count then (GA-8)."""
        return bool(self._calls or self._asks)

    @property
    def open_asks(self) -> tuple[str, ...]:
        """The requests that wait, oldest first; one that we answered stays until its call ends."""
        return tuple(self._asks)

    def read(self, line: bytes, at: int) -> tuple[Reading, ...]:
        """The readings of one line (without its newline); `at` is the offset behind it."""
        return tuple(self._readings(stream.decode(line), at))

    def judge(self, *, exit_code: int | None, signal: int | None, stderr: str) -> Outcome:
        """The outcome of the run, when the process has ended and its transcript is read to the end."""
        return outcome.judge_run(
            last=self.last.outcome if self.last else None,
            in_turn=self.in_turn,
            started=self.started,
            exit_code=exit_code,
            signal=signal,
            stderr=stderr,
        )

    def _readings(self, line: lines.Line, at: int) -> list[Reading]:
        match line:
            case lines.Init():
                return self._on_init(line, at)
            case lines.Assistant():
                return self._on_assistant(line, at)
            case lines.User():
                return self._on_user(line, at)
            case lines.StreamEvent():
                return self._on_stream_event(line, at)
            case lines.ControlRequest():
                return [self._ask(line, at)]
            case lines.ControlCancel():
                known = self._asks.pop(line.request_id, None)
                return [AskWithdrawn(at=at, request=line.request_id)] if known is not None else []
            case lines.Result():
                return self._on_result(line, at)
            case lines.ApiRetry():
                return [
                    Retrying(
                        at=at,
                        attempt=line.attempt,
                        of=line.max_retries,
                        delay=line.retry_delay_ms / 1000,
                        status=line.error_status,
                        error=line.error,
                    )
                ]
            case lines.RateLimit():
                return [self._limit(line.rate_limit_info, at)]
            case lines.PermissionDenied():
                reason = line.decision_reason or line.message
                return [Denied(at=at, tool=line.tool_name, tool_use=line.tool_use_id, reason=reason)]
            case lines.ModelFallback():
                return [ModelFellBack(at=at, wanted=line.original_model, used=line.fallback_model)]
            case lines.CompactBoundary():
                meta = line.compact_metadata
                automatic = meta.trigger == "auto"
                return [
                    Compacted(
                        at=at, ok=True, automatic=automatic, before=meta.pre_tokens, after=meta.post_tokens
                    )
                ]
            case lines.Status():
                return [Compacted(at=at, ok=False)] if line.compact_result == "failed" else []
            case lines.Unreadable():
                return [OutputLost(at=at)] if line.torn else []
            case lines.Informational() | lines.Unknown():
                return []
            case unreachable:
                assert_never(unreachable)

    def _on_init(self, line: lines.Init, at: int) -> list[Reading]:
        self.started = self.in_turn = True
        self._model = line.model
        servers = tuple(server.name for server in line.mcp_servers)
        session = (line.session_id, line.model, line.tools, line.permission_mode, servers)
        if session == self._session:
            return []
        self._session = session
        return [
            SessionStarted(
                at=at,
                session=line.session_id,
                model=line.model,
                tools=line.tools,
                permission_mode=line.permission_mode,
                version=line.version,
                mcp_servers=servers,
            )
        ]

    def _on_assistant(self, line: lines.Assistant, at: int) -> list[Reading]:
        self.in_turn = True
        if line.parent_tool_use_id is None:
            self._api_error = line.error
        found: list[Reading] = []
        for block in blocks(line.message):
            if block.type == "tool_use":
                self._calls[block.id] = block.input
                parent = line.parent_tool_use_id
                found.append(ToolUsed(at=at, id=block.id, name=block.name, input=block.input, parent=parent))
        if line.parent_tool_use_id is None and line.error is None:
            found += self._context(line.message.usage, at)
        return found

    def _on_user(self, line: lines.User, at: int) -> list[Reading]:
        verdicts = {meta.id: meta for meta in line.tool_result_meta or ()}
        found: list[Reading] = []
        for block in blocks(line.message):
            if block.type != "tool_result":
                continue
            self._calls.pop(block.tool_use_id, None)
            self._asks = {request: use for request, use in self._asks.items() if use != block.tool_use_id}
            found.append(finished(block, verdicts.get(block.tool_use_id), at))
        return found

    def _on_stream_event(self, line: lines.StreamEvent, at: int) -> list[Reading]:
        self.in_turn = True
        message = line.event.message
        if line.event.type != "message_start" or message is None or line.parent_tool_use_id is not None:
            return []
        return self._context(message.usage, at)

    def _on_result(self, line: lines.Result, at: int) -> list[Reading]:
        self.in_turn = False
        used = line.model_usage.get(self._model)
        if used is not None and used.context_window is not None:
            self._window = used.context_window
        withdrawn = [AskWithdrawn(at=at, request=request) for request in self._asks]
        # Whatever was open is over with the turn: the CLI answers every call itself before it ends one.
        self._asks.clear()
        self._calls.clear()
        self.last = TurnEnded(
            at=at,
            session=line.session_id,
            outcome=outcome.judge_turn(
                line,
                api_error=self._api_error,
                resets_at=self._resets_at,
                wants_structured=self._wants_structured,
            ),
            metrics=metrics.of_turn(line),
            text=line.result or "",
            structured=None if line.structured_output is msgspec.UNSET else line.structured_output,
            denials=tuple(denial.tool_name for denial in line.permission_denials),
            message=line.user_message_uuid,
            by_itself=line.origin is not None and line.origin.kind == "task-notification",
        )
        self._api_error = None
        return [*withdrawn, self.last]

    def _ask(self, line: lines.ControlRequest, at: int) -> Reading:
        wanted = line.request
        self._asks[line.request_id] = wanted.tool_use_id
        match wanted.tool_name:
            case "AskUserQuestion" if questions := questions_of(wanted.input):
                return Asked(
                    at=at,
                    request=line.request_id,
                    tool_use=wanted.tool_use_id,
                    questions=questions,
                    input=wanted.input,
                )
            case "ExitPlanMode":
                # The request leaves out the plan that the call itself still has (CLAUDE_CLI.md 2).
                plan = wanted.input.get("plan") or self._calls.get(wanted.tool_use_id, {}).get("plan") or ""
                return PlanOffered(
                    at=at,
                    request=line.request_id,
                    tool_use=wanted.tool_use_id,
                    plan=str(plan),
                    input=wanted.input,
                )
            case _:
                return PermissionAsked(
                    at=at,
                    request=line.request_id,
                    tool_use=wanted.tool_use_id,
                    tool=wanted.tool_name,
                    input=wanted.input,
                    suggestions=wanted.permission_suggestions or (),
                    blocked_path=wanted.blocked_path,
                    reason=wanted.decision_reason,
                    reason_kind=wanted.decision_reason_type,
                    needs_person=wanted.requires_user_interaction,
                )

    def _limit(self, info: lines.RateLimitInfo, at: int) -> Reading:
        rejected = info.status == "rejected"
        self._resets_at = info.resets_at if rejected else None
        return RateLimited(at=at, rejected=rejected, kind=info.kind, resets_at=info.resets_at)

    def _context(self, usage: lines.Usage | None, at: int) -> list[Reading]:
        if usage is None:
            return []
        fill = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        if not fill or (fill, self._window) == self._fill:
            return []
        self._fill = (fill, self._window)
        return [ContextFill(at=at, tokens=fill, window=self._window)]


def blocks(message: lines.ApiMessage) -> tuple[lines.Block, ...]:
    """The content blocks of a message; a plain string is none."""
    return message.content if isinstance(message.content, tuple) else ()


def result_text(content: Any) -> str:
    """The text of a tool result, whose content is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def questions_of(tool_input: dict[str, Any]) -> tuple[Question, ...]:
    """The questions of an AskUserQuestion call; empty if its input has another shape."""
    try:
        asked = msgspec.convert(tool_input.get("questions"), tuple[_WireQuestion, ...])
    except msgspec.ValidationError:
        return ()
    return tuple(
        Question(question=one.question, header=one.header, choices=one.options, several=one.multi_select)
        for one in asked
    )


class _WireQuestion(Struct, frozen=True):
    question: str
    header: str = ""
    options: tuple[Choice, ...] = ()
    multi_select: bool = msgspec.field(name="multiSelect", default=False)


# What the CLI answers to a call of a tool that the stage doesn't have. It is no denial in its own books.
_NO_SUCH_TOOL = "<tool_use_error>Error: No such tool available"
# "user-rejected" is not here: the CLI says it too of a call that an interrupt ended while it ran.
_REFUSED = frozenset({"permission-rule", "automode-unavailable"})


def finished(block: lines.Block, meta: lines.ToolResultMeta | None, at: int) -> ToolFinished:
    verdict = meta.permission_decision if meta else None
    denied = (verdict is not None and verdict.decision == "reject") or (
        meta is not None and meta.non_execution_kind in _REFUSED
    )
    failed = bool(block.is_error)
    absent = failed and result_text(block.content).startswith(_NO_SUCH_TOOL)
    return ToolFinished(
        at=at,
        id=block.tool_use_id,
        ok=not failed,
        ran=not (denied or absent),
        denied=denied,
        decided_by=verdict.source if verdict else None,
    )
