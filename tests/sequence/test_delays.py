"""Delays of sequences."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import ShapeError
from wend.sequence import future_value, past_value

X = np.arange(1.0, 5.0)


def test_rows_of_earlier_and_later_steps():
    np.testing.assert_array_equal(past_value(X, 0.1), [0.1, 1, 2, 3])
    np.testing.assert_array_equal(future_value(X, 0.1), [2, 3, 4, 0.1])
    np.testing.assert_array_equal(past_value(X, 0.0, 3), [0, 0, 0, 1])
    np.testing.assert_array_equal(past_value(X, 0.0, 6), [0, 0, 0, 0])
    np.testing.assert_array_equal(future_value(X, 0.0, 6), [0, 0, 0, 0])


def test_rows_of_arrays_and_their_dtypes():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = past_value(x, np.array([7.0, 8.0]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[7, 8], [0, 1], [2, 3]])


def test_derivatives_also_where_sizes_are_not_known():
    def fun(x, initial):
        return (past_value(x, initial) * x**2).sum() + (future_value(x, initial, 2) ** 2).sum()

    expected = wend.grad(fun, (0, 1))(X, 0.5)
    traced = wend.grad(wend.function(fun, reduce_retracing=True), (0, 1))
    for size in (4, 4, 3):
        found = traced(X[:size], 0.5)
    assert found[0].shape == (3,)
    for a, b in zip(traced(X, 0.5), expected, strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("function", [past_value, future_value])
def test_refusals(function):
    with pytest.raises(ValueError, match="steps must be a positive int, not 0"):
        function(X, 0.0, 0)
    with pytest.raises(ShapeError, match="a scalar is no sequence"):
        function(1.0)
