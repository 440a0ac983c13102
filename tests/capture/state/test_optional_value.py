"""Values that are None in some runs; programs with them are in tests/semantics/programs."""

from __future__ import annotations

import numpy as np

import wend


def test_a_tuple_that_is_returned_twice_is_settled_twice() -> None:
    @wend.function
    def f(xs):
        best = None
        for x in xs:
            if x > 0:
                best = x
        pair = best, 1.0
        return pair, [pair], {"pair": pair}

    for _ in range(2):
        assert f(np.array([3.0, -1.0, 2.0])) == ((2.0, 1.0), [(2.0, 1.0)], {"pair": (2.0, 1.0)})
        assert f(-np.ones(3)) == ((None, 1.0), [(None, 1.0)], {"pair": (None, 1.0)})
