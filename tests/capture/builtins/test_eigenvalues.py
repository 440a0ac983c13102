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
