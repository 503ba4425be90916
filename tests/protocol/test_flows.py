"""CW-16: a flow that is opened again goes on without a gap and without a repeat, wherever it was cut."""

from hypothesis import given
from hypothesis import strategies as st

from promptside_protocol.flows import Flow
from promptside_protocol.notices import CaughtUp, EventHappened, Notice, OutputCame, TaskChanged
from promptside_protocol.output import OutputEntry
from promptside_protocol.queries import FollowOutput, Watch
from promptside_protocol.views import Metrics, TaskView

PROJECTS = ("/a", "/b")


def changed(project: str, seq: int) -> TaskChanged:
    view = TaskView(
        seq=seq,
        id=seq,
        project=project,
        title="",
        description="",
        state="taken",
        state_since=0.0,
        claimed_by=None,
        reason=None,
        pipeline="",
        type="",
        work_type="",
        priority=0,
        agent="",
        stages=(),
        current=None,
        waiting_for=None,
        directory="",
        metrics=Metrics(),
        error=None,
        created=0.0,
    )
    return TaskChanged(flow=1, project=project, seq=seq, task=view)


def happened(project: str, seq: int) -> EventHappened:
    return EventHappened(flow=1, project=project, seq=seq, at=0.0, task=1, kind="k", body={})


def daemon_sends(query: Watch, heads: dict[str, int]) -> list[Notice]:
    """What a daemon sends past the cursors: events or tasks, and for each project that this was all."""
    build = happened if query.events else changed
    sent: list[Notice] = []
    for project, head in heads.items():
        sent += [build(project, seq) for seq in range(query.cursors.get(project, 0) + 1, head + 1)]
        sent.append(CaughtUp(flow=1, project=project, seq=head))
    return sent


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 40)), max_size=8), st.booleans(), st.integers(0, 3)
)
def test_whatever_cuts_the_wire_each_notice_comes_once_and_in_order(
    cuts: list[tuple[int, int]], events: bool, start: int
) -> None:
    """Each cut: how many facts were added since the last, and after how many notices the wire breaks."""
    heads = dict.fromkeys(PROJECTS, start)
    flow = Flow(1, Watch(events=events, cursors=dict.fromkeys(PROJECTS, start)))
    taken: list[Notice] = []
    for grown, cut in (*cuts, (0, 10_000)):
        heads = {project: head + grown for project, head in heads.items()}
        again = flow.again()
        assert isinstance(again, Watch)
        for notice in daemon_sends(again, heads)[:cut]:
            flow.noticed(notice)
            taken.append(notice)
    for project in PROJECTS:
        kind = EventHappened if events else TaskChanged
        found = [notice.seq for notice in taken if isinstance(notice, kind) and notice.project == project]
        assert found == list(range(start + 1, heads[project] + 1))


def test_output_goes_on_behind_its_last_byte_and_with_the_same_attempt() -> None:
    flow = Flow(1, FollowOutput(project="/p", task=3))
    entry = OutputEntry(cursor=90, role="text", text="x")
    flow.noticed(OutputCame(flow=9, task=3, stage="plan", attempt=2, cursor=90, entries=(entry,)))
    assert not flow.ended
    assert flow.again() == FollowOutput(project="/p", task=3, stage="plan", attempt=2, cursor=90)
    flow.noticed(OutputCame(flow=9, task=3, stage="plan", attempt=2, cursor=90, entries=(), ended=True))
    assert flow.ended
