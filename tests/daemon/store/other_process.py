"""A second process at a project's database, for the tests: `other_process.py flood|claim|lock PATH`.

It says on its output what happened, one line each, only after it happened.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

from promptside_daemon.store.project import ProjectStore
from promptside_daemon.store.rows import Append, Appended, Conflict, Fact, Summary

LAST_VERSION = 150
"""Where the race for versions ends."""


def step(task: int, expected: int, body: bytes) -> Append:
    return Append(
        task=task,
        expected_version=expected,
        key="" if expected else f"key of {task}",
        events=(Fact(at=0.0, kind="Stepped", body=body),),
        summary=Summary(
            state="taken",
            waiting=0,
            running=0,
            title="",
            priority=50,
            work_type="coding",
            created=0.0,
            changed=0.0,
        ),
        body=body,
    )


async def flood(path: Path) -> None:
    """Append without end, in batches of up to three tasks, and say each acknowledged seq and its body."""
    store = await ProjectStore.open(path)
    version = 0
    while True:
        batch = [step(task, version, b"%d:%d" % (task, version)) for task in (1, 2, 3)]
        for result in await store.append(batch):
            if not isinstance(result, Appended):
                raise TypeError(result)
            print(f"{result.seq} {result.task}:{version}", flush=True)
        version += 1


async def claim(path: Path) -> None:
    """Race for each version of task 1 up to the last, and say the ones won; begin when told to."""
    store = await ProjectStore.open(path)
    print("ready", flush=True)
    sys.stdin.readline()
    version = 1
    while version < LAST_VERSION:
        (result,) = await store.append([step(1, version, b"")])
        match result:
            case Appended():
                version = result.version
                print(version, flush=True)
            case Conflict():
                version = result.version
            case _:
                raise TypeError(result)
    await store.close()


def lock(path: Path) -> None:
    """Hold the writer's lock until told to end."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin immediate")
    print("locked", flush=True)
    sys.stdin.readline()
    connection.execute("rollback")
    connection.close()


if __name__ == "__main__":
    place = Path(sys.argv[2])
    match sys.argv[1]:
        case "flood":
            asyncio.run(flood(place))
        case "claim":
            asyncio.run(claim(place))
        case "lock":
            lock(place)
        case mode:
            sys.exit(f"no such mode: {mode}")
