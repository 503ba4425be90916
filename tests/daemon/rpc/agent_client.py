"""A client as an agent would run it: says hello, puts its requests, prints what came of each.

`agent_client.py SOCKET HOW REQUESTS`: requests are JSON, a list of method and parameters. How it hides:
`plain` not at all; `scrubbed` in a child without the mark; `orphaned` in a grandchild whose parent has ended.
"""

import ctypes
import json
import os
import socket
import sys
from typing import Any


def talk(path: str, requests: list[Any]) -> list[object]:
    hello: list[Any] = ["hello", {"client": "agent", "version": "0", "protocol": 1}]
    outcomes: list[object] = []
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        with sock.makefile("rwb") as file:
            for method, params in (hello, *requests):
                frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
                file.write(json.dumps(frame).encode() + b"\n")
                file.flush()
                answer = json.loads(file.readline())
                outcomes.append(answer["error"]["data"]["code"] if "error" in answer else answer["result"])
    return outcomes


def main() -> None:
    path, how, requests = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if how == "plain":
        print(json.dumps(talk(path, requests)))
        return
    environment = {name: value for name, value in os.environ.items() if name != "PROMPTSIDE_ATTEMPT"}
    again = [sys.executable, __file__, path, "plain", sys.argv[3]]
    if how == "orphaned":
        mother = os.getpid()
        if os.fork() == 0:
            if os.fork() == 0:
                while os.getppid() != mother:
                    os.sched_yield()  # until the process between is gone
                os.execve(again[0], again, environment)
            os._exit(0)
        os.waitpid(-1, 0)
        os.waitpid(-1, 0)  # as the subreaper it gets its grandchild
        return
    os.spawnve(os.P_WAIT, again[0], again, environment)


def become_subreaper() -> None:
    """As a keeper does: take in whatever loses its parents below."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)


if __name__ == "__main__":
    if sys.argv[2] == "orphaned":
        become_subreaper()
    main()
