"""The exponential of matrices, and distances, beyond what `test_functions` compares."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as sl

import wend


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 30.0])
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_exponentials_of_all_sizes(scale, backend):
    a = scale * np.random.default_rng(0).normal(size=(4, 4))
    expected = sl.expm(a)
    result = wend.function(lambda a: sl.expm(a), backend=backend)(a)
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13 * np.abs(expected).max())


def test_the_derivative_of_an_exponential_is_that_of_scipy():
    rng = np.random.default_rng(1)
    a, direction = rng.normal(size=(2, 3, 3)) * 4
    _, tangent = wend.jvp(lambda a: sl.expm(a), (a,), (direction,))
    np.testing.assert_allclose(tangent, sl.expm_frechet(a, direction)[1], rtol=1e-9)


def test_other_dtypes_are_refused():
    with pytest.raises(wend.WendError, match="a matrix of doubles"):
        wend.function(lambda a: sl.expm(a))(np.eye(2, dtype=np.float32))
