"""Which Claude CLI is here, and what an old one costs (CW-20)."""

import re

from msgspec import Struct


class Version(Struct, frozen=True, order=True):
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# The oldest that was tried, and the one that everything here was measured with.
OLDEST = Version(2, 1, 197)
COMPLETE = Version(2, 1, 330)


class Fitness(Struct, frozen=True):
    """May this version be used at all, and what is lost with it: sentences for people."""

    usable: bool
    losses: tuple[str, ...]


def parse(printed: str) -> Version | None:
    """What `claude --version` printed, "2.1.330 (Claude Code)"; None if it is not a Claude CLI's."""
    found = re.match(r"\s*(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b.*Claude Code", printed)
    return Version(*map(int, found.groups())) if found else None


def fitness(version: Version | None) -> Fitness:
    """What is lost with `version`; None: it could not be read."""
    if version is None:
        said = "This “claude” does not say its version as the Claude CLI does. No stage that needs it runs."
        return Fitness(usable=False, losses=(said,))
    if version < OLDEST:
        said = f"claude {OLDEST} is needed; {version} is here. No stage that needs it runs: update it."
        return Fitness(usable=False, losses=(said,))
    if version < COMPLETE:
        return Fitness(
            usable=True,
            losses=tuple(f"claude {version} is older than {COMPLETE}: {loss}" for loss in _LOSSES),
        )
    return Fitness(usable=True, losses=())


_LOSSES = (
    "a stage's own instructions stand in its message, not in the system prompt.",
    "“@file” in a task's description is read into the prompt.",
)
