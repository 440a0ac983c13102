"""Calls in captured code: methods of concrete arrays that are given traced values."""

from __future__ import annotations

import numpy as np
import pytest

import wend

OUTSIDE = np.arange(6.0).reshape(2, 3)


def of_a_made_array(x):
    n = x.shape[0]
    ones = np.ones((n, n)) / n
    return ones.dot(x) + x.dot(ones)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", [of_a_made_array, lambda x: OUTSIDE.T[:, :2].dot(x[:2, :2])])
def test_dot(fun, backend):
    x = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(wend.function(fun, backend=backend)(x), fun(x), rtol=1e-14)


def test_other_methods():
    def fun(x, k):
        return OUTSIDE.clip(x, 4.0).sum() + OUTSIDE.ravel().take(k) + OUTSIDE[0].searchsorted(x)

    assert wend.function(fun)(1.5, np.int64(2)) == fun(1.5, 2)
    assert wend.grad(fun)(1.5, np.int64(2)) == 2.0
