"""Special functions of SciPy's in native code: its numbers, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import wend
import wend.numpy as wnp
from wend.backends.native.rt import special_functions

NAMES = ["gamma", "gammaln", "digamma", "erfinv", "erfcinv", "ndtri", "log_ndtr"]
NAMES += ["i0", "i1", "j0", "j1"]


@pytest.mark.parametrize("name", NAMES)
def test_as_scipy(name: str) -> None:
    x = np.concatenate([np.linspace(-3, 3, 400), [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e300]])
    run = wend.function(getattr(wnp.special, name), backend="native")
    expected = getattr(scipy.special, name)(x)
    np.testing.assert_array_equal(run(x), expected)
    assert "runs in Python" not in str(run.explain())
    np.testing.assert_array_equal([run(value) for value in x[::40]], expected[::40])


def test_of_32_bits() -> None:
    x = np.linspace(-3, 3, 100, dtype=np.float32)
    found = wend.function(wnp.special.j0, backend="native")(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scipy.special.j0(x), rtol=1e-5, atol=1e-6)


def test_what_scipy_has_not_got_runs_as_its_kernel() -> None:
    assert not special_functions.is_available("no such function")
    run = wend.function(lambda x: wnp.special.polygamma(1, x), backend="native")
    np.testing.assert_array_equal(run(2.5), scipy.special.polygamma(1, 2.5))
    assert "runs in Python: polygamma" in str(run.explain())


def test_the_gradient_is_native_too() -> None:
    run = wend.grad(wnp.special.gammaln)
    assert run(2.5) == scipy.special.digamma(2.5)


@pytest.mark.parametrize("name", ["j1", "i1", "log_ndtr"])
def test_the_gradient_of_a_family_is_native_too(name: str) -> None:
    x = np.linspace(-30, 3, 50)
    run = wend.grad(lambda x: getattr(wnp.special, name)(x).sum())
    with wend.config(backend="numpy"):
        expected = wend.grad(lambda x: getattr(wnp.special, name)(x).sum())(x)
    np.testing.assert_allclose(run(x), expected, rtol=1e-13)
    assert "runs in Python" not in str(run.explain())
