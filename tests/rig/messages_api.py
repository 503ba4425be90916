"""A scripted stand-in for the Messages API on the loopback: the real `claude` runs without network or key.

Replies are given out by rules on what the agent was told first. A request that no rule answers is kept in
`unexpected` and refused, so that a test can't pass on an answer that nobody wrote.
"""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, assert_never

from msgspec import Struct, field

DEADLINE_SECONDS = 60.0
CHUNK = 24
"""Characters in one delta."""


class Hold:
    """A place in an answer where the model stops until the test lets it go on."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait_until_reached(self) -> None:
        """Return when everything before this place has been sent."""
        assert self._reached.wait(DEADLINE_SECONDS), "the agent never got to this place of its answer"

    def release(self) -> None:
        """Let the answer go on."""
        self._released.set()

    def pass_through(self) -> None:
        """What the model does here."""
        self._reached.set()
        self._released.wait()


class Text(Struct, frozen=True):
    """Words; with `hold` the model stops before `rest`."""

    text: str
    hold: Hold | None = None
    rest: str = ""


class Thinking(Struct, frozen=True):
    """What the model thinks."""

    text: str


class Use(Struct, frozen=True):
    """A tool call."""

    name: str
    input: dict[str, Any]


class Reply(Struct, frozen=True):
    """One message of the model: its blocks, and what it has cost."""

    blocks: tuple[Text | Thinking | Use, ...]
    input_tokens: int = 1200
    output_tokens: int = 180


class Failure(Struct, frozen=True):
    """An answer that is an error; the last one of a rule is given for ever."""

    status: int
    type: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)


class Rule(Struct, frozen=True):
    """The answers for conversations whose first message has these words in it, in order."""

    words: str
    replies: tuple[Reply | Failure, ...]


class Request(Struct, frozen=True, kw_only=True):
    """What the agent sent."""

    body: dict[str, Any]
    answered: bool

    @property
    def first(self) -> str:
        """The text of the first message of the conversation."""
        return next((flat(m["content"]) for m in self.body["messages"] if m["role"] == "user"), "")

    @property
    def last(self) -> str:
        """The text of the last message of the conversation."""
        return flat(self.body["messages"][-1]["content"])

    @property
    def everything(self) -> str:
        """The text of the whole conversation."""
        return "\n".join(flat(message["content"]) for message in self.body["messages"])


def say(text: str) -> Reply:
    """A message of words only, which ends the turn."""
    return Reply((Text(text),))


def use(name: str, /, words: str = "", **tool_input: Any) -> Reply:
    """A message that calls one tool, with some words before it."""
    call = Use(name, tool_input)
    return Reply((Text(words), call) if words else (call,))


def structured(**fields: Any) -> Reply:
    """The output of a stage that has a schema."""
    return use("StructuredOutput", **fields)


class MessagesAPI:
    """A server for one test; a context manager."""

    def __init__(self, *rules: Rule) -> None:
        self._lock = threading.Condition()
        self._rules: list[tuple[Rule, int]] = [(rule, 0) for rule in rules]
        self._requests: list[Request] = []
        self._holds: list[Hold] = []
        handler = type("_BoundHandler", (_Handler,), {"api": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for hold in self._holds:
                hold.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What ANTHROPIC_BASE_URL is to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[Request]:
        """What was asked so far."""
        with self._lock:
            return list(self._requests)

    @property
    def unexpected(self) -> list[Request]:
        """What was asked and has no answer in the script."""
        return [request for request in self.requests if not request.answered]

    def add(self, *rules: Rule) -> None:
        """Answer by these rules too; they come before the ones that are there."""
        with self._lock:
            self._rules[:0] = [(rule, 0) for rule in rules]

    def wait_for(self, condition: Callable[[list[Request]], object]) -> None:
        """Return when the requests fulfil the condition."""
        with self._lock:
            came = self._lock.wait_for(lambda: condition(self._requests), DEADLINE_SECONDS)
            assert came, f"the agent never asked for it; it asked {len(self._requests)} times"

    def answer(self, body: dict[str, Any]) -> Reply | Failure:
        """The next reply for this conversation."""
        first = Request(body=body, answered=False).first
        with self._lock:
            found = self._take(first)
            self._requests.append(Request(body=body, answered=found is not None))
            self._lock.notify_all()
            if isinstance(found, Reply):
                self._holds += [b.hold for b in found.blocks if isinstance(b, Text) and b.hold is not None]
        if found is None:
            return Failure(400, "invalid_request_error", "the script of this test has no answer here")
        return found

    def _take(self, first: str) -> Reply | Failure | None:
        for place, (rule, taken) in enumerate(self._rules):
            if rule.words not in first:
                continue
            if taken < len(rule.replies):
                self._rules[place] = (rule, taken + 1)
                return rule.replies[taken]
            last = rule.replies[-1]
            if isinstance(last, Failure):
                return last
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An agent that was killed in mid-answer is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: MessagesAPI

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
        """Be quiet."""

    def do_HEAD(self) -> None:
        """The CLI looks whether the service is there."""
        self._json(200, {})

    def do_POST(self) -> None:
        """Answer a message; everything else doesn't exist."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            self._json(200, {"input_tokens": len(json.dumps(body)) // 4})
            return
        if path != "/v1/messages":
            self._json(404, _error("not_found_error", path))
            return
        reply = self.api.answer(body)
        if isinstance(reply, Failure):
            self._json(reply.status, _error(reply.type, reply.message), reply.headers)
            return
        message = _message(reply, body["model"])
        if body.get("stream"):
            self._stream(reply, message)
        else:
            self._json(200, message)

    def _json(self, status: int, payload: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, reply: Reply, message: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in _events(reply, message):
            if isinstance(event, Hold):
                event.pass_through()
            else:
                self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def flat(content: Any) -> str:
    """The text of a message's content, whatever its shape."""
    match content:
        case str():
            return content
        case list():
            return "\n".join(flat(part) for part in content)
        case {"text": text}:
            return flat(text)
        case {"content": inner}:
            return flat(inner)
        case _:
            return ""


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _message(reply: Reply, model: str) -> dict[str, Any]:
    calls = any(isinstance(block, Use) for block in reply.blocks)
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [_block(block) for block in reply.blocks],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": reply.output_tokens,
        },
    }


def _block(block: Text | Thinking | Use) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text + block.rest}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": "c2lnbmVk"}
        case Use():
            identity = f"toolu_{uuid.uuid4().hex[:24]}"
            return {"type": "tool_use", "id": identity, "name": block.name, "input": block.input}
        case unreachable:
            assert_never(unreachable)


def _events(reply: Reply, message: dict[str, Any]) -> Iterator[dict[str, Any] | Hold]:
    usage = {**message["usage"], "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**message, "content": [], "stop_reason": None, "usage": usage},
    }
    for index, (block, whole) in enumerate(zip(reply.blocks, message["content"], strict=True)):
        start = {**whole, **_EMPTY[whole["type"]]}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in _deltas(block, whole):
            if isinstance(delta, Hold):
                yield delta
            else:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _deltas(block: Text | Thinking | Use, whole: dict[str, Any]) -> Iterator[dict[str, Any] | Hold]:
    match block:
        case Text():
            yield from ({"type": "text_delta", "text": part} for part in _parts(block.text))
            if block.hold is not None:
                yield block.hold
            yield from ({"type": "text_delta", "text": part} for part in _parts(block.rest))
        case Thinking():
            yield from ({"type": "thinking_delta", "thinking": part} for part in _parts(block.text))
            yield {"type": "signature_delta", "signature": whole["signature"]}
        case Use():
            # In one piece, so that a recording has the names of files whole and can make them neutral.
            yield {"type": "input_json_delta", "partial_json": json.dumps(block.input)}
        case unreachable:
            assert_never(unreachable)


def _parts(text: str) -> Iterator[str]:
    return (text[place : place + CHUNK] for place in range(0, len(text), CHUNK))
