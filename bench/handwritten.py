"""A hand-written msgspec loop on stdio: the least that answering a request of an editor can cost.

handwritten.py reads Content-Length frames and answers each request with what is in its file argument, if any.
"""

import sys

import msgspec


class Request(msgspec.Struct):
    """What is read of a request."""

    method: str
    id: int | str | None = None


def main(answer: bytes) -> None:
    source, target = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.json.Decoder(Request)
    while line := source.readline():
        length = int(line.partition(b":")[2])
        source.readline()
        request = decoder.decode(source.read(length))
        if request.id is None:
            continue
        body = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (msgspec.json.encode(request.id), answer)
        target.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        target.flush()


if __name__ == "__main__":
    main(sys.argv[1].encode() if len(sys.argv) > 1 else b"null")
