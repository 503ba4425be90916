"""The kinds of lines in a Claude CLI transcript, with the fields that we read; all others are ignored.

A field that the CLI may leave out has a default, so a new version that drops one is no fault here.
"""

from typing import Any

import msgspec
from msgspec import Struct, field


class Usage(Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0


class Server(Struct, frozen=True):
    """An MCP server as `init` names it."""

    name: str
    status: str = ""


class Init(Struct, frozen=True):
    """`system/init`; comes again at every turn of a process."""

    session_id: str
    model: str
    tools: tuple[str, ...] = ()
    permission_mode: str = field(name="permissionMode", default="")
    version: str = field(name="claude_code_version", default="")
    mcp_servers: tuple[Server, ...] = ()


class Status(Struct, frozen=True):
    status: str | None = None
    permission_mode: str | None = field(name="permissionMode", default=None)
    compact_result: str | None = None
    compact_error: str | None = None


class ApiRetry(Struct, frozen=True):
    attempt: int
    max_retries: int
    retry_delay_ms: float = 0
    error_status: int | None = None
    error: str | None = None


class ModelFallback(Struct, frozen=True):
    original_model: str
    fallback_model: str
    trigger: str | None = None


class CompactMetadata(Struct, frozen=True):
    trigger: str = ""
    pre_tokens: int | None = None
    post_tokens: int | None = None


class CompactBoundary(Struct, frozen=True):
    compact_metadata: CompactMetadata = CompactMetadata()


class PermissionDenied(Struct, frozen=True):
    tool_name: str
    tool_use_id: str | None = None
    decision_reason_type: str | None = None
    decision_reason: str | None = None
    message: str | None = None


class Informational(Struct, frozen=True):
    content: str = ""
    level: str | None = None


class Block(Struct, frozen=True):
    """A content block of any type; the fields of other types stay at their defaults."""

    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}
    tool_use_id: str = ""
    content: Any = None
    is_error: bool | None = None


class ApiMessage(Struct, frozen=True):
    id: str = ""
    model: str = ""
    content: tuple[Block, ...] | str = ()
    usage: Usage | None = None


class Assistant(Struct, frozen=True):
    """One content block of a message, whole (CLAUDE_CLI.md 1: one event per block, same `message.id`)."""

    message: ApiMessage
    parent_tool_use_id: str | None = None
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    aborted: bool = False
    timestamp: str | None = None
    subagent_type: str | None = None


class PermissionVerdict(Struct, frozen=True):
    decision: str | None = None
    source: str | None = None
    reason_type: str | None = None


class ToolResultMeta(Struct, frozen=True):
    id: str = ""
    permission_decision: PermissionVerdict | None = None
    non_execution_kind: str | None = None


class User(Struct, frozen=True):
    message: ApiMessage
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None
    tool_result_meta: tuple[ToolResultMeta, ...] | None = None
    is_synthetic: bool = field(name="isSynthetic", default=False)
    is_replay: bool = field(name="isReplay", default=False)
    timestamp: str | None = None


class Delta(Struct, frozen=True):
    type: str = ""
    text: str = ""


class ApiEvent(Struct, frozen=True):
    type: str
    index: int = 0
    message: ApiMessage | None = None
    content_block: Block | None = None
    delta: Delta | None = None


class AbandonedBlocks(Struct, frozen=True):
    api_message_id: str
    from_block_index: int = 0


class StreamEvent(Struct, frozen=True):
    event: ApiEvent
    api_message_id: str | None = None
    parent_tool_use_id: str | None = None
    abandoned_blocks: AbandonedBlocks | None = None


class RateLimitInfo(Struct, frozen=True):
    status: str = ""
    resets_at: float | None = field(name="resetsAt", default=None)
    kind: str | None = field(name="rateLimitType", default=None)


class RateLimit(Struct, frozen=True):
    rate_limit_info: RateLimitInfo


class ModelUsage(Struct, frozen=True):
    context_window: int | None = field(name="contextWindow", default=None)


class ToolDenial(Struct, frozen=True):
    tool_name: str
    tool_use_id: str = ""
    tool_input: dict[str, Any] = {}


class Origin(Struct, frozen=True):
    kind: str | None = None


class Result(Struct, frozen=True):
    """The end of a turn, not of the run (CLAUDE_CLI.md 0.5)."""

    is_error: bool = False
    subtype: str = ""
    terminal_reason: str | None = None
    api_error_status: int | None = None
    api_error: str | None = None
    session_id: str = ""
    result: str | None = None
    errors: tuple[str, ...] = ()
    structured_output: Any = msgspec.UNSET
    num_turns: int = 0
    duration_ms: float = 0
    duration_api_ms: float = 0
    total_cost_usd: float = 0
    usage: Usage = Usage()
    model_usage: dict[str, ModelUsage] = field(name="modelUsage", default={})
    permission_denials: tuple[ToolDenial, ...] = ()
    origin: Origin | None = None
    user_message_uuid: str | None = None


class CanUseTool(Struct, frozen=True):
    """The CLI asks its host: may this tool run, or what does the person answer?"""

    tool_name: str
    input: dict[str, Any] = {}
    tool_use_id: str = ""
    permission_suggestions: tuple[dict[str, Any], ...] | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    decision_reason_type: str | None = None
    description: str | None = None
    requires_user_interaction: bool = False


class ControlRequest(Struct, frozen=True):
    request_id: str
    request: CanUseTool


class ControlCancel(Struct, frozen=True):
    request_id: str


class Unknown(Struct, frozen=True):
    """JSON of a kind, or of a shape, that this version of ours doesn't know."""

    kind: str


class Unreadable(Struct, frozen=True):
    """No JSON.

    `torn` if it begins like an object: with a full disk the CLI drops lines and tears one, and the next line
    is glued to it (MEASURED.md B). Anything else is chatter that some builds print.
    """

    start: bytes
    torn: bool


Known = (
    Init
    | Status
    | ApiRetry
    | ModelFallback
    | CompactBoundary
    | PermissionDenied
    | Informational
    | Assistant
    | User
    | StreamEvent
    | RateLimit
    | Result
    | ControlRequest
    | ControlCancel
)

Line = Known | Unknown | Unreadable
