"""Tests whose outcome is part of a trace."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import StructureError
from wend.capture.state.paths import TracedPath, deciding_test, keep_deciding_test


def test_tests_of_one_line_are_counted():
    path = TracedPath({})
    first, second = [path.next_site() for _ in range(2)]
    assert first[0] == second[0]
    assert (first[1], second[1]) == (1, 2)


def test_a_refusal_that_stands_for_another_tells_the_test():
    error, refusal = RecursionError(), StructureError()
    keep_deciding_test(error, refusal)
    assert deciding_test(refusal) is None
    error.deciding_test = ("at x.py:1", 1)
    keep_deciding_test(error, refusal)
    assert deciding_test(refusal) == ("at x.py:1", 1)


def test_a_test_in_a_loop_decides_nothing():
    @wend.function
    def fun(x):
        value = 0.0
        while x > 0.0:
            value = "far" if x > 5.0 else x
            x = x - 1.0
        return value

    with pytest.raises(wend.WendError):
        fun(3.0)


def test_several_lists_of_unknown_length_are_made_pythons() -> None:
    def two_lists(xs, limit):
        first, second = [], []
        for x in xs:
            if x > limit:
                first.append(x)
        for x in xs:
            if x <= limit:
                second.append(x)
        return sorted(first), list(second)

    compiled, xs = wend.function(two_lists), np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    for limit in (2.5, 0.0, 9.0):
        assert compiled(xs, limit) == two_lists(xs, limit)
