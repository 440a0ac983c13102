"""Each value is of the kind that it has in Python, wherever it is made."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from tests.fuzz.quick import quickly
from tests.helpers.shares import is_chosen
from tests.semantics import kinds
from tests.semantics.world import Program, compare

SHARE = 60  # of the ways in one place, one in so many in a short run
MOST_REFUSED = 0.05


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", kinds.PLACES)
def test_kinds(place: str) -> None:
    chosen = [w for w in kinds.ways_to_make_values() if is_chosen(f"{place} {w}", SHARE)]
    ways = [way for way in chosen if kinds.is_valid(way)]
    assert len(ways) > 0.9 * len(chosen)
    refused = 0
    with quickly(), wend.config(verify=False, cache_dir=""):
        for difference in kinds.differences(ways, place):
            assert difference.kind == "refused", f"{difference}"
            assert "To fix it: " in difference.found
            refused += 1
    assert refused <= MOST_REFUSED * len(ways) + 1


def test_other_kinds_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wend, "function", lambda fun: lambda x: fun(float(x)))
    source = f"{kinds.HEAD}def f(x):\n    see('x', x)"
    difference = compare(Program("planted", source, ["f(np.float64(1.5))"]))
    assert difference is not None
    assert difference.kind == "different"


# A value of Python, one of wend, and whether they agree: scalars of 64 bits stand for numbers
RESULTS = [
    ("1.5", "np.float64(1.5)", True),
    ("1", "np.int64(1)", True),
    ("True", "np.bool_(True)", True),
    ("1.5", "np.float32(1.5)", False),
    ("np.float64(1.5)", "1.5", False),
    ("np.float32(1.5)", "np.float64(1.5)", False),
    ("1", "1.0", False),
    ("True", "1", False),
]


@pytest.mark.parametrize(("value", "result", "agree"), RESULTS)
def test_kinds_of_results(
    value: str, result: str, agree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wend, "function", lambda fun: lambda: eval(result, {"np": np}))
    program = Program("a result", f"def f():\n    return {value}", ["f()", "r = [f()]"])
    assert (compare(program, ["reference"]) is None) is agree
