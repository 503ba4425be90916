"""Lines of a transcript -> output entries for people, each block of text exactly once.

Text is keyed by API message and block; what came in pieces is held against the `assistant` line, which is
the truth, and abandoned blocks are taken back (CLAUDE_CLI.md 0.7). All is made harmless and redacted (DA-6).

All that the renderer remembers is forgotten where a message of the main agent begins: by then every call of
the one before has ended. So rendering can start there as well as at the start of the file (`resuming`).
"""

from datetime import datetime
from typing import Any, assert_never

from msgspec import Struct

from promptside_daemon.world.claude import lines, outcome, stream, toollines
from promptside_daemon.world.claude.harmless import HarmlessStream, harmless, one_line
from promptside_daemon.world.claude.reader import blocks, finished
from promptside_daemon.world.redact import Redactor
from promptside_protocol.output import OutputEntry, Role


class Renderer:
    """Folds a transcript, line by line, into entries. Paths are shown from `cwd`, where the agent works."""

    def __init__(self, *, cwd: str = "", redactor: Redactor | None = None) -> None:
        self._cwd = cwd
        self._redactor = redactor or Redactor()
        self._forget("")

    def render(self, line: bytes, at: int) -> list[OutputEntry]:
        """The entries of one line (without its newline); `at` is the offset behind it."""
        return self._entries(stream.decode(line), at)

    def close(self, at: int) -> list[OutputEntry]:
        """What was held back of text that nobody will finish; repeating it changes nothing."""
        entries = []
        for block in self._live.values():
            if block.text is not None and not block.whole and (rest := block.text.flush()):
                block.shown += rest
                entries.append(
                    OutputEntry(cursor=at, role="text", text=block.shown, block=block.key, replace=True)
                )
        return entries

    def _forget(self, message: str) -> None:
        self._message = message
        self._live: dict[int, _LiveBlock] = {}
        self._calls: dict[str, _Call] = {}
        self._asked: set[str] = set()
        self._api_error: str | None = None

    def _entries(self, line: lines.Line, at: int) -> list[OutputEntry]:
        match line:
            case lines.StreamEvent():
                return self._on_stream_event(line, at)
            case lines.Assistant():
                return self._on_assistant(line, at)
            case lines.User():
                return self._on_user(line, at)
            case lines.Result():
                return [self._on_result(line, at)]
            case lines.ControlRequest():
                # The time that a person takes to answer is not the tool's.
                self._asked.add(line.request.tool_use_id)
                return []
            case lines.ApiRetry():
                why = " ".join(str(part) for part in (line.error_status, line.error) if part) or "no answer"
                wait = toollines.duration(max(1.0, line.retry_delay_ms / 1000))
                text = f"Try {line.attempt} of {line.max_retries} failed ({why}); the next in {wait}."
                return [self._line("status", text, at, ok=False)]
            case lines.Status():
                return self._on_status(line, at)
            case lines.CompactBoundary():
                meta = line.compact_metadata
                sizes = ""
                if meta.pre_tokens is not None and meta.post_tokens is not None:
                    sizes = f": {meta.pre_tokens} tokens became {meta.post_tokens}"
                return [self._line("note", f"The conversation was summarised{sizes}.", at)]
            case lines.RateLimit():
                reached = line.rate_limit_info.status == "rejected"
                kind = (line.rate_limit_info.kind or "").replace("_", " ")
                limit = f"The plan limit ({kind})" if kind else "The plan limit"
                return [
                    self._line(
                        "status", f"{limit} is {'reached' if reached else 'near'}.", at, ok=not reached
                    )
                ]
            case lines.ModelFallback():
                text = f"{line.original_model} was not to be had; {line.fallback_model} goes on."
                return [self._line("note", text, at)]
            case lines.Informational():
                return [self._line("note", one_line(line.content), at)] if line.content else []
            case lines.Unreadable():
                return [self._line("note", "Output was lost here.", at, ok=False)] if line.torn else []
            case lines.Init() | lines.ControlCancel() | lines.PermissionDenied() | lines.Unknown():
                # A denial shows in the call's own result, a question in its decision.
                return []
            case unreachable:
                assert_never(unreachable)

    def _on_stream_event(self, line: lines.StreamEvent, at: int) -> list[OutputEntry]:
        event = line.event
        if line.parent_tool_use_id is not None:
            return []
        message = line.api_message_id or (event.message.id if event.message else "")
        # A message whose start was lost is told by its id.
        if event.type == "message_start" or message not in {"", self._message}:
            self._forget(message)
        if event.type == "content_block_start" and event.content_block is not None:
            kind = event.content_block.type
            text = _LiveText(self._redactor) if kind == "text" else None
            self._live[event.index] = _LiveBlock(kind, f"{self._message}/{event.index}", text)
        elif event.type == "content_block_delta" and event.delta is not None:
            live = self._live.get(event.index)
            if live is not None and live.text is not None and (piece := live.text.feed(event.delta.text)):
                live.shown += piece
                return [OutputEntry(cursor=at, role="text", text=piece, block=live.key)]
        elif line.abandoned_blocks is not None and line.abandoned_blocks.api_message_id == self._message:
            return self._take_back(line.abandoned_blocks.from_block_index, at)
        return []

    def _take_back(self, first: int, at: int) -> list[OutputEntry]:
        taken = [index for index in self._live if index >= first]
        entries = []
        for index in taken:
            block = self._live.pop(index)
            if block.shown:
                role: Role = "tool" if block.kind == "tool_use" else "text"
                entries.append(OutputEntry(cursor=at, role=role, text="", block=block.key, replace=True))
        return entries

    def _on_assistant(self, line: lines.Assistant, at: int) -> list[OutputEntry]:
        if line.error is not None or line.is_api_error_message:
            # The result that follows says it, with what to do.
            self._api_error = line.error
            return []
        entries = []
        for number, block in enumerate(blocks(line.message)):
            live = self._awaited(line, block.type)
            if block.type == "text":
                key = live.key if live else f"{line.message.id}/@{at}.{number}"
                entries += self._whole_text(
                    block.text, live, key, at, inner=line.parent_tool_use_id is not None
                )
            elif block.type == "tool_use":
                inner = line.parent_tool_use_id is not None
                call = _Call(block.name, block.input, _time(line.timestamp), inner)
                self._calls[block.id] = call
                if live is not None:
                    live.key, live.shown, live.whole = block.id, block.name, True
                entries.append(self._call_entry(block.id, call, at))
            elif live is not None:
                live.whole = True
        return entries

    def _awaited(self, line: lines.Assistant, kind: str) -> "_LiveBlock | None":
        if line.message.id != self._message or line.parent_tool_use_id is not None:
            return None
        return next((live for live in self._live.values() if live.kind == kind and not live.whole), None)

    def _whole_text(
        self, text: str, live: "_LiveBlock | None", key: str, at: int, *, inner: bool
    ) -> list[OutputEntry]:
        whole = self._clean(text)
        shown = ""
        if live is not None:
            shown, live.shown, live.whole = live.shown, whole, True
        if whole == shown:
            return []
        role: Role = "note" if inner else "text"
        if whole.startswith(shown):
            return [OutputEntry(cursor=at, role=role, text=whole[len(shown) :], block=key)]
        return [OutputEntry(cursor=at, role=role, text=whole, block=key, replace=True)]

    def _on_user(self, line: lines.User, at: int) -> list[OutputEntry]:
        if line.is_replay:
            return []
        entries = []
        for block in blocks(line.message):
            if block.type == "tool_result":
                entries += self._on_tool_result(block, line, at)
            elif block.type == "text" and block.text.startswith("[Request interrupted"):
                entries.append(self._line("note", "Interrupted.", at))
            elif block.type == "text" and line.is_synthetic:
                entries.append(self._line("note", one_line(block.text), at))
        return entries

    def _on_tool_result(self, block: lines.Block, line: lines.User, at: int) -> list[OutputEntry]:
        call = self._calls.pop(block.tool_use_id, None)
        if call is None:
            return []
        entries = []
        changed, first = toollines.changed_lines(line.tool_use_result) if not call.inner else ("", None)
        if changed and not block.is_error:
            entry = self._call_entry(block.tool_use_id, call, at, changed=changed, first=first)
            entries.append(entry)
        meta = next((meta for meta in line.tool_result_meta or () if meta.id == block.tool_use_id), None)
        denied = finished(block, meta, at).denied
        stopped = not denied and meta is not None and meta.non_execution_kind is not None
        started, ended = call.started, _time(line.timestamp)
        seconds = None
        if started is not None and ended is not None and block.tool_use_id not in self._asked:
            seconds = (ended - started).total_seconds()
        text = "stopped"
        if not stopped:
            text = toollines.ending_line(
                call.name, block, denied=denied, seconds=seconds, structured=line.tool_use_result
            )
        if text:
            text = f"  {text}" if call.inner else text
            entries.append(
                OutputEntry(
                    cursor=at,
                    role="result",
                    text=self._clean(text),
                    block=f"{block.tool_use_id}/result",
                    ok=not (block.is_error or denied),
                )
            )
        return entries

    def _call_entry(
        self, key: str, call: "_Call", at: int, *, changed: str = "", first: int | None = None
    ) -> OutputEntry:
        said = toollines.call_line(call.name, call.input, self._cwd, changed)
        return OutputEntry(
            cursor=at,
            role="tool",
            text=self._clean(f"  {said.text}" if call.inner else said.text),
            block=key,
            replace=bool(changed),
            path=self._clean(said.path) if said.path else None,
            line=first if first is not None else said.line,
        )

    def _on_status(self, line: lines.Status, at: int) -> list[OutputEntry]:
        if line.status == "compacting":
            return [self._line("status", "The conversation is being summarised.", at)]
        if line.compact_result == "failed":
            return [self._line("note", "The conversation could not be summarised; it goes on as it is.", at)]
        return []

    def _on_result(self, line: lines.Result, at: int) -> OutputEntry:
        ended = outcome.judge_turn(line, api_error=self._api_error)
        if not ended.ok:
            return self._line("status", f"{ended.sentence} {ended.hint}".strip(), at, ok=False)
        turns = f"{line.num_turns} turn{'' if line.num_turns == 1 else 's'}"
        return self._line(
            "status", f"Done: {turns}, {toollines.duration(max(1.0, line.duration_ms / 1000))}.", at, ok=True
        )

    def _line(self, role: Role, text: str, at: int, *, ok: bool | None = None) -> OutputEntry:
        return OutputEntry(cursor=at, role=role, text=self._clean(text), ok=ok)

    def _clean(self, text: str) -> str:
        return self._redactor.text(harmless(text))


def stderr_entry(line: str, cursor: int, redactor: Redactor) -> OutputEntry:
    """A line of standard error. It has no place in the transcript: `cursor` is where it is told."""
    return OutputEntry(cursor=cursor, role="stderr", text=redactor.text(harmless(line)))


class _LiveText:
    """Text of a block as it comes: first made harmless, then redacted, each with what it must hold back."""

    def __init__(self, redactor: Redactor) -> None:
        self._harmless = HarmlessStream()
        self._redacted = redactor.stream()

    def feed(self, piece: str) -> str:
        return self._redacted.feed(self._harmless.feed(piece))

    def flush(self) -> str:
        return self._redacted.feed(self._harmless.flush()) + self._redacted.flush()


class _LiveBlock(Struct):
    """A block of the message that is being streamed; `whole` once its `assistant` line came."""

    kind: str
    key: str
    text: _LiveText | None
    shown: str = ""
    whole: bool = False


class _Call(Struct, frozen=True):
    """A tool call without its result; `inner` if a subagent makes it."""

    name: str
    input: dict[str, Any]
    started: datetime | None
    inner: bool


def _time(timestamp: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(timestamp) if timestamp else None
    except ValueError:
        return None
