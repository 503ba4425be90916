"""What the daemon must now do to the world; returned by `step`, never done by it.

Each can be asked whether it happened, so doing it again after a crash is harmless (ARCHITECTURE section 6).
"""

from __future__ import annotations

from msgspec import Struct


class WantSlot(Struct, frozen=True, kw_only=True, tag="want_slot"):
    """A stage wants to start an attempt."""

    stage: str


class StartAttempt(Struct, frozen=True, kw_only=True, tag="start_attempt"):
    """Prepare the attempt directory and start its keeper, if that has not happened."""

    stage: str
    attempt: str


class FollowAttempt(Struct, frozen=True, kw_only=True, tag="follow_attempt"):
    """Read on in an attempt that may have started or ended while no daemon was there."""

    stage: str
    attempt: str


class Deliver(Struct, frozen=True, kw_only=True, tag="deliver"):
    """Send what is in the outbox; numbers that the keeper has are not sent again."""

    attempt: str


class CloseInput(Struct, frozen=True, kw_only=True, tag="close_input"):
    """Nothing more comes: the agent ends after its turn."""

    attempt: str


class StopAttempt(Struct, frozen=True, kw_only=True, tag="stop_attempt"):
    """End the process and everything it started."""

    attempt: str
    reason: str


class WriteDocument(Struct, frozen=True, kw_only=True, tag="write_document"):
    """Bring the file of a form in line with its draft."""

    document: str
    only_if_missing: bool = False
    """After a restart: what stands there may hold a person's words."""


class RestoreFiles(Struct, frozen=True, kw_only=True, tag="restore_files"):
    """Take back what an attempt changed."""

    stage: str
    attempt: int
    paths: tuple[str, ...]


class WakeAt(Struct, frozen=True, kw_only=True, tag="wake_at"):
    """Say `Woke` at this time."""

    at: float


class KeepRule(Struct, frozen=True, kw_only=True, tag="keep_rule"):
    """A permission for good; written in the same transaction as the fact that made it."""

    rule: str
    decision: str
    stage: str
    by: str
    client: str
    at: float


Effect = (
    WantSlot | StartAttempt | FollowAttempt | Deliver | CloseInput | StopAttempt | WriteDocument | RestoreFiles
    | WakeAt | KeepRule
)  # fmt: skip
