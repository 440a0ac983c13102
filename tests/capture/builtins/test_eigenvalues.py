"""Functions of NumPy whose results are real or complex as the values are."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError

NUMBERS = [[1.0, 2.0], [1.0, 2.0 + 1e-20j], [1.0, 2.0 + 1e-3j], [complex(np.nan, np.nan), 1.0]]


@pytest.mark.parametrize("tol", [100, 0.01])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.complex64])
def test_real_if_close(dtype, tol):
    compiled = wend.function(lambda a: np.real_if_close(a, tol))
    for numbers in NUMBERS:
        array = np.array(numbers).astype(dtype) if dtype != np.float64 else np.real(numbers)
        expected, result = np.real_if_close(array, tol), compiled(array)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_real_if_close_in_a_map_is_refused_with_a_cure():
    def program(a):
        return np.abs(np.real_if_close(a)).sum()

    with pytest.raises(ConcreteValueError, match=r"take its \.real, or leave it complex"):
        wend.vmap(program)(np.array([[1j, 2.0], [1, 2.0]]))


POLYNOMIALS = [
    *([1.0, -6, 11, -6], [1.0, 0, 1], [0.0, 1, -3, 2], [1, -3, 2, 0], [0, 0], [2.0]),
    [0.0, 0.0, 5.0],
    *([1.0, 2.0, 3.0, 4.0, 0.0, 0.0], [1j, 2.0, 1.0], [1, 2, 1], [0.0, 3.0, 0.0]),
]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.filterwarnings("ignore:.* was traced")
def test_roots(backend):
    compiled = wend.function(lambda p: np.roots(p), backend=backend)
    for _ in range(2):
        for numbers in POLYNOMIALS:
            p = np.array(numbers)
            expected, result = np.roots(p), compiled(p)
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(np.sort_complex(result), np.sort_complex(expected))
    with pytest.raises(ValueError, match="rank-1"):
        compiled(np.ones((2, 2)))


def test_derivatives_of_roots():
    of_largest = wend.grad(lambda p: np.max(np.roots(p).real))
    # (x - 1)(x - 2)(x - 3) has the slope 2 at 3
    expected = [-27 / 2, -9 / 2, -3 / 2, -1 / 2]
    np.testing.assert_allclose(of_largest(np.array([1.0, -6, 11, -6])), expected)


def test_roots_in_a_loop_are_refused_with_a_cure():
    def program(p, n):
        total = 0.0
        for k in range(n):
            total = total + np.roots(p + k).real.sum()
        return total

    with pytest.raises(ConcreteValueError, match="companion matrix"):
        wend.function(program)(np.array([1.0, -3.0, 2.0]), 3)
