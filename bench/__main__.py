"""`make bench`: every benchmark, one table; `--json` for machines, names of scripts for only those."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parent))

from measure import Figure, table  # the path is set above

SCRIPTS = ("p6_round_trip", "p6s_start", "stream")


def main(words: list[str]) -> int:
    """Run them; 1 if a goal is missed."""
    chosen = [word for word in words if not word.startswith("-")] or list(SCRIPTS)
    found: list[Figure] = []
    for name in chosen:
        found += importlib.import_module(name).figures()
    if "--json" in words:
        rows = [{**msgspec.to_builtins(f), "ratio": f.ratio, "good": f.good} for f in found]
        print(msgspec.json.encode(rows).decode())
    else:
        print(table(found))
    return 0 if all(figure.good for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
