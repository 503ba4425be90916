"""Slots: never more than the limit, fair between projects, priority within one, then who waits longest (SI-9)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from promptside_daemon.engine.slots import Want, slots

PROJECTS = ("a", "b", "c")
wants = st.lists(
    st.builds(
        Want,
        project=st.sampled_from(PROJECTS),
        task=st.integers(1, 50),
        stage=st.just("research"),
        since=st.floats(0, 100),
        priority=st.sampled_from((10, 50, 90)),
    ),
    max_size=20,
    unique_by=lambda w: (w.project, w.task),
)
running = st.lists(st.sampled_from(PROJECTS), max_size=6)
limits = st.integers(0, 8)


def want(project: str, task: int, since: float = 0.0, priority: int = 50) -> Want:
    return Want(project=project, task=task, stage="research", since=since, priority=priority)


@given(wants, running, limits)
def test_never_more_than_the_limit_and_never_fewer_than_could_be(
    wanted: list[Want], at_work: list[str], limit: int
) -> None:
    granted = slots(wanted, at_work, limit)
    assert len(granted) == min(len(wanted), max(limit - len(at_work), 0))
    assert len(set(map(id, granted))) == len(granted)
    assert all(w in wanted for w in granted)


@given(wants, running, limits)
def test_within_a_project_by_priority_then_by_waiting(
    wanted: list[Want], at_work: list[str], limit: int
) -> None:
    granted = slots(wanted, at_work, limit)
    for project in PROJECTS:
        own = sorted(
            (w for w in wanted if w.project == project), key=lambda w: (-w.priority, w.since, w.task)
        )
        got = [w for w in granted if w.project == project]
        assert got == own[: len(got)]


@given(wants, running, limits)
def test_no_project_gets_one_while_another_with_fewer_waits(
    wanted: list[Want], at_work: list[str], limit: int
) -> None:
    load = Counter(at_work)
    waiting = list(wanted)
    for chosen in slots(wanted, at_work, limit):
        assert load[chosen.project] == min(load[w.project] for w in waiting)
        waiting.remove(chosen)
        load[chosen.project] += 1


@given(wants, running, limits, st.randoms())
def test_the_order_in_which_wants_are_told_does_not_matter(
    wanted: list[Want], at_work: list[str], limit: int, random: object
) -> None:
    mixed = list(wanted)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # Hypothesis's own random.Random
    assert slots(mixed, at_work, limit) == slots(wanted, at_work, limit)


def test_a_queue_of_hundreds_starves_nobody() -> None:
    crowd = [want("a", n, since=float(n), priority=90) for n in range(1, 300)]
    granted = slots([*crowd, want("b", 1, since=1000.0, priority=10)], ["a"], 3)
    assert [(w.project, w.task) for w in granted] == [("b", 1), ("a", 1)]


def test_nothing_is_free() -> None:
    assert slots([want("a", 1)], ["a", "b"], 2) == []
    assert slots([want("a", 1)], ["a", "b", "b"], 2) == []
