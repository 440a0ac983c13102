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
            value = None if x > 5.0 else x
            x = x - 1.0
        return value

    with pytest.raises(wend.WendError):
        fun(3.0)


def _windows(x, n):
    return [x[i : i + n].sum() for i in range(0, len(x), n)]


def _filled(x, n):
    out = [0.0] * n
    for k in range(n):
        out[k] = x[k] * 2.0
    return out


def _table(x, n):
    rows = [[x[0]] * (n + 1) for _ in range(n)]
    for k in range(1, n):
        rows[k][n] = rows[k - 1][n] + x[k]
    return rows


def _of_an_array(x, n):
    sizes = np.stack([n, n + 1])
    return [x[0]] * sizes[0], [[k] * sizes[1] for k in range(sizes[0])]


@pytest.mark.parametrize("fun", [_windows, _filled, _table, _of_an_array])
def test_lengths_made_of_integer_arguments_are_part_of_the_trace(fun):
    x, compiled = np.arange(1.0, 13.0), wend.function(fun)
    for n in (3, 2, 3, 4):
        result, expected = compiled(x, np.int64(n)), fun(x, np.int64(n))
        assert type(result) is type(expected)
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(one, other)


def test_gradients_of_lengths_made_of_integer_arguments():
    def total(x, n):
        return sum(v * v for v in _filled(x, n))

    x = np.arange(1.0, 6.0)
    for n in (3, 4):
        expected = np.where(np.arange(5) < n, 8.0 * x, 0.0)
        np.testing.assert_allclose(wend.grad(total)(x, np.int64(n)), expected)


def test_a_length_in_a_recorded_loop_is_refused():
    @wend.function
    def fun(n):
        total = 0
        while n > 0:
            total += len([0] * n)
            n = n - 1
        return total

    with pytest.raises(TypeError, match="a repeat count"):
        fun(np.int64(3))
