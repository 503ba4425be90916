"""What the tool uses of one attempt say about the tree: a breach while it runs, the proof when it has ended (ST-16)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from promptside_daemon.world import proof
from promptside_daemon.world.claude import readonly
from promptside_daemon.world.claude.readings import Reading, SessionStarted, ToolFinished, ToolUsed
from promptside_protocol.views import ProofView

KEPT_FIELDS = ("file_path", "notebook_path", "command", "description")
"""Of a tool's input, for the proof and its sentences; the rest can be megabytes."""
KEPT_CHARACTERS = 4096


class Evidence:
    """Collects as the transcript is read."""

    def __init__(self, project: Path) -> None:
        self._cwd = str(project)
        self._readings: list[Reading] = []
        self._known: frozenset[str] = frozenset()

    def add(self, reading: Reading) -> None:
        """Take a reading, if it says what a tool did."""
        match reading:
            case SessionStarted(tools=tools):
                self._known |= frozenset(tools)
                self._readings.append(reading)
            case ToolUsed(input=given):
                kept = {
                    k: str(given[k])[:KEPT_CHARACTERS] for k in KEPT_FIELDS if isinstance(given.get(k), str)
                }
                self._readings.append(replace(reading, input=kept))
            case ToolFinished():
                self._readings.append(reading)
            case _:
                pass  # nothing else says what a tool did

    def breach(self, finished: ToolFinished, offered: tuple[str, ...] | None) -> str:
        """What ran just now though the stage doesn't have it; empty: nothing."""
        if offered is None or not finished.ran:
            return ""
        use = next(
            (r for r in reversed(self._readings) if isinstance(r, ToolUsed) and r.id == finished.id), None
        )
        if use is None or use.name in offered:
            return ""
        found = readonly.breaches([*self._sessions(), use, finished], frozenset(offered), self._cwd)
        return found[0].what if found else ""

    def touched(self) -> frozenset[str]:
        """Paths below the project that tool uses named."""
        return self._touched().paths

    def judge(self, changed: Iterable[str], others: frozenset[str]) -> ProofView:
        """Whether the agent can have changed what changed."""
        found = proof.judge(changed, self._touched(), others)
        return ProofView(
            verdict=found.verdict,
            breach=found.breach,
            meanwhile=tuple(f"{m.path}: {m.said}" for m in found.meanwhile),
        )

    def _touched(self) -> proof.Touched:
        made = readonly.touched(self._readings, self._cwd)
        root = Path(self._cwd)
        names: set[str] = set()
        for path in made.paths:
            for form in (Path(path), Path(path).resolve()):
                for base in (root, root.resolve()):
                    if form.is_relative_to(base):
                        names.add(str(form.relative_to(base)))
        return proof.Touched(paths=frozenset(names), anything=bool(made.unknown))

    def _sessions(self) -> list[Reading]:
        return [r for r in self._readings if isinstance(r, SessionStarted)]
