"""A hand-written msgspec loop on stdio: the least that answering a request of an editor can cost.

It reads Content-Length frames and answers each request with the value that its argument holds as JSON, if there is one,
encoded anew each time.
"""

import sys
from typing import Any

import msgspec


class Request(msgspec.Struct):
    """What is read of a request."""

    method: str
    id: int | str | None = None
    params: Any = None


class Response(msgspec.Struct):
    """What is answered."""

    id: int | str
    result: Any
    jsonrpc: str = "2.0"


def main(answer: Any) -> None:
    source, target = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.json.Decoder(Request)
    while line := source.readline():
        length = int(line.partition(b":")[2])
        source.readline()
        request = decoder.decode(source.read(length))
        if request.id is None:
            continue
        body = msgspec.json.encode(Response(request.id, answer))
        target.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        target.flush()


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1]) if len(sys.argv) > 1 else None)
