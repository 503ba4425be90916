"""CW-20: which versions are taken, and what an old one costs."""

import pytest

from promptside_daemon.world.claude.version import COMPLETE, OLDEST, Version, fitness, parse


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("2.1.330 (Claude Code)\n", COMPLETE),
        ("2.1.197 (Claude Code)", OLDEST),
        ("10.0.1-beta (Claude Code)", Version(10, 0, 1)),
        ("claude 1.0", None),
        ("2.1.330", None),
        ("", None),
        ("Python 3.11.2", None),
    ],
)
def test_the_version_is_read(printed: str, version: Version | None) -> None:
    assert parse(printed) == version


def test_versions_are_compared_as_numbers() -> None:
    assert Version(2, 1, 99) < OLDEST < COMPLETE < Version(2, 10, 0)


@pytest.mark.parametrize(
    ("version", "usable", "losses"),
    [
        (None, False, 1),
        (Version(2, 1, 196), False, 1),
        (OLDEST, True, 2),
        (COMPLETE, True, 0),
        (Version(3, 0, 0), True, 0),
    ],
)
def test_what_is_lost_is_named(version: Version | None, usable: bool, losses: int) -> None:
    fit = fitness(version)
    assert (fit.usable, len(fit.losses)) == (usable, losses)
    assert all(str(version) in loss for loss in fit.losses if version)
