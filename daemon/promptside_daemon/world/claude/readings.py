"""What a transcript tells the engine: readings.

Every reading carries `at`, the byte offset behind its line. Reading a transcript again from its start gives
the same readings at the same places, so what is at or before a remembered offset has been told already.
"""

from typing import Any

from msgspec import Struct

from promptside_daemon.world.claude.metrics import Metrics
from promptside_daemon.world.claude.outcome import Outcome


class SessionStarted(Struct, frozen=True, kw_only=True, tag=True):
    """The CLI is up, or goes on with another model, mode or set of tools."""

    at: int
    session: str
    model: str
    tools: tuple[str, ...]
    permission_mode: str
    version: str
    mcp_servers: tuple[str, ...]


class ToolUsed(Struct, frozen=True, kw_only=True, tag=True):
    """The agent calls a tool. `parent` is the call that started the subagent, if it is one that calls."""

    at: int
    id: str
    name: str
    input: dict[str, Any]
    parent: str | None = None


class ToolFinished(Struct, frozen=True, kw_only=True, tag=True):
    """A tool call is over. `ran` is false if it was refused before it could do anything.

    `decided_by` is the CLI's word for who allowed or denied it: config, user_temporary, user_reject, …
    """

    at: int
    id: str
    ok: bool
    ran: bool
    denied: bool = False
    decided_by: str | None = None


class Choice(Struct, frozen=True, kw_only=True):
    label: str
    description: str = ""
    preview: str | None = None


class Question(Struct, frozen=True, kw_only=True):
    question: str
    header: str = ""
    choices: tuple[Choice, ...] = ()
    several: bool = False


class Asked(Struct, frozen=True, kw_only=True, tag=True):
    """The agent asks the person, and waits. `input` goes back with the answers."""

    at: int
    request: str
    tool_use: str
    questions: tuple[Question, ...]
    input: dict[str, Any]


class PermissionAsked(Struct, frozen=True, kw_only=True, tag=True):
    """The agent wants to do what nobody has allowed yet, and waits."""

    at: int
    request: str
    tool_use: str
    tool: str
    input: dict[str, Any]
    suggestions: tuple[dict[str, Any], ...] = ()
    blocked_path: str | None = None
    reason: str | None = None
    reason_kind: str | None = None
    needs_person: bool = False


class PlanOffered(Struct, frozen=True, kw_only=True, tag=True):
    """The agent has a plan and waits for leave to carry it out."""

    at: int
    request: str
    tool_use: str
    plan: str
    input: dict[str, Any]


class AskWithdrawn(Struct, frozen=True, kw_only=True, tag=True):
    """A question, permission or plan no longer waits: it was taken back, or its turn is over."""

    at: int
    request: str


class Retrying(Struct, frozen=True, kw_only=True, tag=True):
    """The CLI tries a request again in `delay` seconds; `status` is None if no answer came at all."""

    at: int
    attempt: int
    of: int
    delay: float
    status: int | None
    error: str | None


class RateLimited(Struct, frozen=True, kw_only=True, tag=True):
    """A plan limit is near, or reached (`rejected`); `resets_at` in seconds since 1970."""

    at: int
    rejected: bool
    kind: str | None
    resets_at: float | None


class Denied(Struct, frozen=True, kw_only=True, tag=True):
    """The CLI denied a tool call by rule or mode, without asking us."""

    at: int
    tool: str
    tool_use: str | None
    reason: str | None


class ModelFellBack(Struct, frozen=True, kw_only=True, tag=True):
    at: int
    wanted: str
    used: str


class ContextFill(Struct, frozen=True, kw_only=True, tag=True):
    """How full the conversation is; the window is known after the first turn."""

    at: int
    tokens: int
    window: int | None


class Compacted(Struct, frozen=True, kw_only=True, tag=True):
    """The conversation was summarised, by itself or by order; `ok` false: it was tried and failed."""

    at: int
    ok: bool
    automatic: bool = False
    before: int | None = None
    after: int | None = None


class TurnEnded(Struct, frozen=True, kw_only=True, tag=True):
    """A turn is over. `by_itself`: one that the CLI had started without a message of ours."""

    at: int
    session: str
    outcome: Outcome
    metrics: Metrics
    text: str
    structured: Any
    denials: tuple[str, ...] = ()
    message: str | None = None
    by_itself: bool = False


class OutputLost(Struct, frozen=True, kw_only=True, tag=True):
    """A torn line: the disk was full, or something else wrote into the transcript."""

    at: int


Reading = (
    SessionStarted
    | ToolUsed
    | ToolFinished
    | Asked
    | PermissionAsked
    | PlanOffered
    | AskWithdrawn
    | Retrying
    | RateLimited
    | Denied
    | ModelFellBack
    | ContextFill
    | Compacted
    | TurnEnded
    | OutputLost
)
