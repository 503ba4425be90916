"""ST-16: a changed path fails a read-only stage only if a tool use of the attempt can have made it."""

from __future__ import annotations

import pytest

from promptside_daemon.world.proof import Meanwhile, Proof, Touched, judge

SAVED = "changed meanwhile, not by the agent"


def proof(verdict: str, breach: list[str], meanwhile: dict[str, str]) -> Proof:
    return Proof(
        verdict=verdict,  # type: ignore[arg-type]  # the table below is plain text
        breach=tuple(breach),
        meanwhile=tuple(
            Meanwhile(path=path, said=said)  # type: ignore[arg-type]  # the same
            for path, said in meanwhile.items()
        ),
    )


@pytest.mark.parametrize(
    ("changes", "named", "anything", "others", "expected"),
    [
        pytest.param([], [], False, [], proof("proved", [], {}), id="nothing changed"),
        pytest.param([], ["a"], True, ["b"], proof("proved", [], {}), id="touched, but as it was"),
        pytest.param(["a"], ["a"], False, [], proof("breach", ["a"], {}), id="written by a tool"),
        pytest.param(["a"], ["a"], False, ["a"], proof("breach", ["a"], {}), id="by a tool and an editor"),
        pytest.param(["a"], [], False, ["a"], proof("meanwhile", [], {"a": SAVED}), id="saved by an editor"),
        pytest.param(["a"], [], False, [], proof("meanwhile", [], {"a": "unknown"}), id="by nobody known"),
        pytest.param(["a"], ["b"], False, [], proof("meanwhile", [], {"a": "unknown"}), id="not the named"),
        pytest.param(["a"], [], True, [], proof("breach", ["a"], {}), id="after a Bash that may write"),
        pytest.param(["a"], [], True, ["a"], proof("meanwhile", [], {"a": SAVED}), id="Bash, but saved"),
        pytest.param(
            ["d", "c", "b", "a"], ["b"], False, ["c"],
            proof("breach", ["b"], {"a": "unknown", "c": SAVED, "d": "unknown"}), id="each for itself",
        ),
    ],
)  # fmt: skip
def test_st_16(
    changes: list[str], named: list[str], anything: bool, others: list[str], expected: Proof
) -> None:
    """ST-16"""
    touched = Touched(paths=frozenset(named), anything=anything)
    assert judge(changes, touched, frozenset(others)) == expected
