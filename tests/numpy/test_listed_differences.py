"""What docs/from-numpy.md says to differ from NumPy does so, and only so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


def written(z: Any, x: Any) -> Any:
    z[()] = x
    return z


def filled(z: Any, x: Any) -> Any:
    out = np.zeros(())
    out[...] = x + z
    return out


@BACKENDS
@pytest.mark.parametrize("fun", [written, filled])
def test_results_of_no_axes_are_scalars(fun: Any, backend: str) -> None:
    ours, theirs = np.array(3.0), np.array(3.0)
    actual, expected = wend.function(fun, backend=backend)(ours, 2.0), fun(theirs, 2.0)
    assert type(expected) is np.ndarray
    assert type(actual) is np.float64
    assert actual == expected
    np.testing.assert_array_equal(ours, theirs)


@BACKENDS
def test_a_zero_part_of_a_complex_power_has_the_sign_of_numpys(backend: str) -> None:
    run = wend.function(lambda c: c**2, backend=backend)
    number, array = np.complex128(-3 + 0j), np.array([-3 + 0j])
    assert str(run(-3 + 0j)) == str(run(number)) == str(number**2) == "(9-0j)"
    assert str(run(array)) == str(array**2)
    assert str((-3 + 0j) ** 2) == "(9+0j)"


@BACKENDS
def test_errors_of_shapes_of_the_run_have_numpys_class(backend: str) -> None:
    def add(y: Any, v: Any) -> Any:
        y[y > 0] += v
        return y

    for fun in (add, lambda y, v: y[y > 0] + v):
        y, v = np.array([3.0, -1.0, 2.0]), np.arange(4.0)
        with pytest.raises(ValueError, match="could not be broadcast together") as expected:
            fun(y.copy(), v)
        with pytest.raises(type(expected.value), match="could not be broadcast together"):
            wend.function(fun, backend=backend)(y.copy(), v)


@BACKENDS
def test_the_covariance_of_one_row_is_a_matrix_where_the_run_knows_the_number(backend: str) -> None:
    spec = wend.TensorSpec([None, None])
    run = wend.function(np.cov, input_signature=[spec], backend=backend)
    x = np.array([[1.0, 2.0, 4.0]])
    assert np.cov(x).shape == ()
    np.testing.assert_allclose(run(x), [[np.cov(x)]])
    np.testing.assert_allclose(wend.function(np.cov, backend=backend)(x), np.cov(x))
