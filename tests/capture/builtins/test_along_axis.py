"""`np.apply_along_axis` and `np.vectorize` of traced arrays."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

ARRAY = np.random.default_rng(0).normal(size=(3, 4, 2))


def first_positive(row):
    for value in row:
        if value > 0.0:
            return value
    return 0.0


FUNCTIONS = [np.sum, first_positive, lambda row: row / row.sum(), lambda row: np.outer(row, row)]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_apply_along_axis(fun, axis):
    def program(x):
        return np.apply_along_axis(fun, axis, x)

    expected, result = program(ARRAY), wend.function(program)(ARRAY)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("axes", [0, -1, (0, 2), [2, -2]])
@pytest.mark.parametrize("fun", [np.sum, np.max, lambda a, axis: a.mean(axis) if a.sum() else a])
def test_apply_over_axes(fun, axes):
    def program(x):
        return np.apply_over_axes(fun, x, axes)

    expected, result = program(ARRAY), wend.function(program)(ARRAY)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-13)


def test_further_arguments():
    def program(x, w):
        return np.apply_along_axis(lambda row, w, power: row @ w**power, 1, x, w, power=2)

    x, w = ARRAY[0], ARRAY[0, 1]
    np.testing.assert_allclose(wend.function(program)(x, w), program(x, w), rtol=1e-14)
    check_grads(program, (x, w), order=2)


relu = np.vectorize(lambda v: v if v > 0.0 else 0.0)
larger = np.vectorize(lambda v, w: (max(v, w), v * w), otypes=[float, np.float32])


@pytest.mark.parametrize("program", [relu, lambda x: relu(x.T), lambda x: larger(x, 0.5)])
def test_vectorize(program):
    x = ARRAY[0]
    expected, result = program(x), wend.function(lambda x: program(x))(x)
    for a, b in zip(np.atleast_2d(expected), np.atleast_2d(result), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_the_derivative_of_vectorize():
    slope = wend.grad(lambda x: np.vectorize(lambda v: v * v if v > 0.0 else v)(x).sum())
    np.testing.assert_array_equal(slope(np.array([-1.0, 2.0])), [1.0, 4.0])


def test_a_signature_is_refused():
    sums = np.vectorize(np.sum, signature="(n)->()")
    with pytest.raises(UnsupportedError, match="with a signature"):
        wend.function(lambda x: sums(x))(ARRAY)
