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
    """Collects as the transcript is read; a finished tool use leaves only the paths that it named."""

    def __init__(self, project: Path) -> None:
        self._cwd = str(project)
        self._session: SessionStarted | None = None
        self._open: dict[str, ToolUsed] = {}
        self._paths: set[str] = set()
        self._anything = False

    def add(self, reading: Reading) -> None:
        """Take a reading, if it says what a tool did."""
        match reading:
            case SessionStarted(tools=tools):
                known = (*self._session.tools, *tools) if self._session else tools
                self._session = replace(reading, tools=tuple(dict.fromkeys(known)))
            case ToolUsed(input=given):
                kept = {
                    k: str(given[k])[:KEPT_CHARACTERS] for k in KEPT_FIELDS if isinstance(given.get(k), str)
                }
                self._open[reading.id] = replace(reading, input=kept)
            case ToolFinished():
                use = self._open.pop(reading.id, None)
                if use is not None:
                    made = readonly.touched((use, reading), self._cwd)
                    self._paths |= made.paths
                    self._anything = self._anything or bool(made.unknown)
            case _:
                pass  # nothing else says what a tool did

    def breach(self, finished: ToolFinished, offered: tuple[str, ...] | None) -> str:
        """What ran just now though the stage doesn't have it, told before `add`; empty: nothing."""
        use = self._open.get(finished.id)
        if offered is None or not finished.ran or use is None or use.name in offered:
            return ""
        session = (self._session,) if self._session else ()
        found = readonly.breaches((*session, use, finished), frozenset(offered), self._cwd)
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
        # What was still open at the end may have run: it counts as if it had.
        cut_off = readonly.touched(tuple(self._open.values()), self._cwd)
        root = Path(self._cwd)
        names: set[str] = set()
        for path in self._paths | cut_off.paths:
            for form in (Path(path), Path(path).resolve()):
                for base in (root, root.resolve()):
                    if form.is_relative_to(base):
                        names.add(str(form.relative_to(base)))
        return proof.Touched(paths=frozenset(names), anything=self._anything or bool(cut_off.unknown))
