"""How appends are written: a miss leaves nothing of its own append, and everything else goes through.

These functions run on the writer's thread, inside the transaction that `Database.write` opens and commits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from promptside_daemon.store.rows import (
    Append,
    Appended,
    AttemptRow,
    Conflict,
    Existing,
    NewRule,
    Summary,
)


def validate(one: Append) -> None:
    """What would be a mistake of ours is told before the batch begins, so that it can't spoil the others."""
    if not one.events:
        raise ValueError(f"task {one.task}: an append without a fact")
    if (one.task == 0) != (one.summary is None):
        raise ValueError(f"task {one.task}: a summary belongs to a task, and every task has one")
    if one.task == 0 and (one.expected_version or one.body or one.attempts):
        raise ValueError("facts about the project have neither version, body nor attempts")
    if one.task and not one.expected_version and not one.key:
        raise ValueError(f"task {one.task}: a new task needs the client's key")


def write_batch(
    connection: sqlite3.Connection, batch: Sequence[Append]
) -> tuple[list[Appended | Existing | Conflict], int]:
    """The whole batch, within the transaction it is called in; with it the last fact there is."""
    results = [_append_one(connection, one) for one in batch]
    (head,) = connection.execute("select max(seq) from journal").fetchone()
    return results, head or 0


def _append_one(connection: sqlite3.Connection, one: Append) -> Appended | Existing | Conflict:
    if one.task:
        miss = _miss(connection, one)
        if miss is not None:
            return miss
    seq = 0
    for fact in one.events:
        inserted = connection.execute(
            "insert into journal (at, task, kind, body) values (?, ?, ?, ?)",
            (fact.at, one.task, fact.kind, fact.body),
        )
        seq = inserted.lastrowid or 0
    version = 0
    if one.summary is not None:
        version = one.expected_version + 1
        _write_task(connection, one, one.summary, version, seq)
    for attempt in one.attempts:
        _write_attempt(connection, attempt)
    for rule in one.rules_added:
        _add_rule(connection, rule)
    for number in one.rules_removed:
        connection.execute("delete from rules where id = ?", (number,))
    return Appended(task=one.task, version=version, seq=seq)


def _miss(connection: sqlite3.Connection, one: Append) -> Existing | Conflict | None:
    """Why this append can't be written, if it can't."""
    if one.expected_version == 0:
        same = connection.execute("select id, seq from tasks where key = ?", (one.key,)).fetchone()
        if same is not None:
            return Existing(task=same[0], seq=same[1])
        (following,) = connection.execute("select coalesce(max(id), 0) + 1 from tasks").fetchone()
        if one.task == following:
            return None
    found = connection.execute("select version from tasks where id = ?", (one.task,)).fetchone()
    version = 0 if found is None else found[0]
    if one.expected_version and one.expected_version == version:
        return None
    return Conflict(task=one.task, version=version)


def _write_task(
    connection: sqlite3.Connection, one: Append, summary: Summary, version: int, seq: int
) -> None:
    # The key and the time of creation are the first append's for good.
    connection.execute(
        "insert into tasks (id, version, seq, key, state, waiting, running, title, priority, work_type,"
        " created, changed, body) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (id) do update set version = excluded.version, seq = excluded.seq,"
        " state = excluded.state, waiting = excluded.waiting, running = excluded.running,"
        " title = excluded.title, priority = excluded.priority, work_type = excluded.work_type,"
        " changed = excluded.changed, body = excluded.body",
        (
            one.task,
            version,
            seq,
            one.key,
            summary.state,
            summary.waiting,
            summary.running,
            summary.title,
            summary.priority,
            summary.work_type,
            summary.created,
            summary.changed,
            one.body,
        ),
    )


def _write_attempt(connection: sqlite3.Connection, attempt: AttemptRow) -> None:
    # `removed` is left alone: what retention took doesn't come back with a late change of the row.
    connection.execute(
        "insert into attempts (id, task, stage, n, status, started, ended, input_tokens, output_tokens,"
        " cost_usd, duration_s) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (id) do update set status = excluded.status, started = excluded.started,"
        " ended = excluded.ended, input_tokens = excluded.input_tokens,"
        " output_tokens = excluded.output_tokens, cost_usd = excluded.cost_usd,"
        " duration_s = excluded.duration_s",
        (
            attempt.id,
            attempt.task,
            attempt.stage,
            attempt.n,
            attempt.status,
            attempt.started,
            attempt.ended,
            attempt.input_tokens,
            attempt.output_tokens,
            attempt.cost_usd,
            attempt.duration_s,
        ),
    )


def _add_rule(connection: sqlite3.Connection, rule: NewRule) -> None:
    connection.execute(
        "insert into rules (rule, task, stage, decision, by, client, at) values (?, ?, ?, ?, ?, ?, ?)"
        " on conflict (rule, task, stage, decision) do nothing",
        (rule.rule, rule.task, rule.stage, rule.decision, rule.by, rule.client, rule.at),
    )
