"""What a request must be to be let in: known, well formed, and of a protocol that we speak.

An agent's session may read its own task and nothing else (DA-13).
"""

from typing import TypeVar

import msgspec
from msgspec import Struct

from promptside_protocol import PROTOCOL, __version__, errors, frames
from promptside_protocol.commands import COMMANDS
from promptside_protocol.queries import QUERIES, Decisions, GetTask, Hello, Output, Query

S = TypeVar("S", bound=Struct)

WORDS = {"vscode": "extension", "neovim": "plugin", "terminal": "terminal program"}
"""What a person calls each client."""


def message_in(request: frames.Request) -> Struct:
    """The order or question that a request holds."""
    kind = COMMANDS.get(request.method) or QUERIES.get(request.method)
    if kind is None:
        sentence = f"The daemon (version {__version__}) doesn't know “{request.method}”."
        hint = "It may be older than this client: promptside daemon stop."
        raise errors.UnknownMethod(refusal("unknown-method", sentence, hint))
    return decoded(request.params, kind)


def decoded(params: msgspec.Raw, kind: type[S]) -> S:
    """Parameters as their Struct; the refusal names the path of what doesn't fit."""
    try:
        return msgspec.json.decode(params, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise errors.InvalidParams(refusal("invalid-params", f"{error}.")) from None


def check_protocol(hello: Hello, message: Struct) -> None:
    """Refuse what client and daemon might understand differently.

    A client that is too old may read and not decide (M28); a newer one may only ask us to make way.
    """
    sentence = mismatch(hello)
    if sentence and (hello.protocol > PROTOCOL or not isinstance(message, Query)):
        raise errors.ProtocolMismatch(refusal("protocol", sentence))


def mismatch(hello: Hello) -> str:
    """The sentence for a client whose protocol is neither ours nor the one before; empty if it is."""
    word = WORDS.get(hello.client, "client")
    speaks = f"This {word} speaks version {hello.protocol}, the daemon version {PROTOCOL}."
    if hello.protocol > PROTOCOL:
        return f"{speaks} Stop the daemon with `promptside daemon stop`; the next call starts the newer one."
    if hello.protocol < PROTOCOL - 1:
        return f"{speaks} Update the {word}; until then you can read, not decide."
    return ""


def for_attempt(message: Struct, own: tuple[str, int] | None) -> Struct:
    """The question of an agent, about its own task; task 0 is that one. Anything else is not allowed."""
    if not isinstance(message, GetTask | Output | Decisions):
        raise agent_may_not("approve, answer, give orders or look around")
    if own is None or message.project != own[0] or message.task not in {0, own[1]}:
        raise agent_may_not("read any task but its own")
    return msgspec.structs.replace(message, task=own[1])


def agent_may_not(what: str) -> errors.NotAllowed:
    return errors.NotAllowed(refusal("agent", f"An agent can't {what}; a person does that."))


def refusal(code: str, sentence: str, hint: str = "") -> errors.Refusal:
    return errors.Refusal(code=code, message=sentence, hint=hint)
