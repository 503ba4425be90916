"""The machine of going back to an earlier stage, by a person (GA-11)."""

from __future__ import annotations

from msgspec.structs import replace

from promptside_daemon.engine.closing import end
from promptside_daemon.engine.events import WentBack
from promptside_daemon.engine.stage import Stepped, opening, queue, session, set_status, take, unreached
from promptside_daemon.engine.task import AtGate, Draft, Order, Ready, Task, find_stage, with_run


def went_back(task: Task, event: WentBack) -> Stepped:
    """Make an earlier stage the current one again; the later ones run again after it.

    With a reason it is done again and told it; without one its output waits at its gate, if it has any.
    """
    found = find_stage(task, event.stage)
    if found is None or found[0] >= task.current:
        return task, ()  # not an earlier stage any more
    target = found[0]
    task, effects = end(task, "gone_back")
    for index in range(target + 1, len(task.stages)):
        task = with_run(task, index, unreached(task.stages[index]))
    run = replace(task.stages[target], retries=0, mark="")
    task = replace(with_run(task, target, run), current=target)
    if isinstance(task.life, Draft | Ready):
        return with_run(task, target, unreached(run)), effects  # it was skipped, and runs when it is told to
    task = take(task, event.by, event.at)
    if not event.reason and run.form is not None:
        return set_status(task, target, AtGate(since=event.at)), effects
    if event.reason and run.attempts:
        order = Order(cause="redo", resume=session(run), feedback=event.reason)
    else:
        order = Order(resume=opening(task, target), feedback=event.reason)
    task, more = queue(task, target, event.at, order)
    return task, effects + more
