"""`wend.numpy.special` beside SciPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import wend
from tests.helpers.drawn import FLOATS, check, drawn, few, spread
from wend.numpy import special

ONE = """erf erfc erfinv erfcinv ndtr ndtri log_ndtr expit logit log_expit gamma gammaln digamma psi
entr i0 i1 j0 j1""".split()
TWO = "xlogy xlog1py rel_entr kl_div".split()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE)
@few
@given(x=drawn([*FLOATS, "i4", "u1"], odd=True))
def test_of_one(name: str, x: np.ndarray) -> None:
    check(lambda m, x: getattr(m, name)(x), x, module=scipy.special, ulps=512)


@pytest.mark.parametrize("name", TWO)
@few
@given(xs=spread(2, [*FLOATS, "i4"], odd=True))
def test_of_two(name: str, xs: Any) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), *xs, module=scipy.special, ulps=512)


@pytest.mark.parametrize("name", ["beta", "betaln"])
@few
@given(xs=spread(2, FLOATS))
def test_beta(name: str, xs: Any) -> None:
    xs = [np.abs(x) + x.dtype.type(0.5) for x in xs]
    check(lambda m, x, y: getattr(m, name)(x, y), *xs, module=scipy.special, ulps=512)


BETAS = [0.0, 5e-324, 1e-320, 1e-300, 1e-8, 0.1, 0.5, 1.0, 3.0, 10.0, 33.3, 100.0, 171.7, 1e3, 1e6]


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_beta_over_the_whole_range(dtype: str, backend: str) -> None:
    """Where Γ overflows float32, and next to zero, where Β has poles beyond any number."""
    x, y = (np.array(v, dtype).ravel() for v in np.meshgrid(BETAS, [*BETAS, *np.negative(BETAS)]))
    kept = (y >= 0) | (y < -1e-300)
    x, y = x[kept], y[kept]
    found, expected = wend.function(special.beta, backend=backend)(x, y), scipy.special.beta(x, y)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-9 if dtype == "f8" else 1e-5, atol=1e-37)


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
@few
@given(
    x=drawn(["f8", "f4", "i4"], least=1, dims=(1, 3), odd=True), axis=st.none() | st.integers(-3, 2)
)
def test_over_axes(name: str, x: np.ndarray, axis: Any) -> None:
    if name != "logsumexp" and not np.isfinite(x).all():
        x = np.nan_to_num(x, posinf=700, neginf=-700)
    check(lambda m, x: getattr(m, name)(x, axis=axis), x, module=scipy.special, ulps=512)


@few
@given(x=drawn(FLOATS, shape=(2, 3)), b=drawn(FLOATS, shape=(2, 3)))
def test_weighted_logsumexp(x: np.ndarray, b: np.ndarray) -> None:
    check(
        lambda m, x, b: m.logsumexp(x, axis=1, b=b, keepdims=True, return_sign=True),
        x,
        b,
        module=scipy.special,
        # Before 1.15 SciPy took exponentials in single precision where x alone is single
        ulps=4000 if scipy.__version__ >= "1.15" else 1e8,
    )


def test_nothing_overflows() -> None:
    for x in (800.0, -800.0):
        for name in ("log_expit", "log_ndtr", "expit", "erf"):
            slope = wend.grad(getattr(special, name))(x)
            assert np.isfinite(slope), name


def test_slopes_at_the_edges() -> None:
    assert wend.grad(special.xlogy, argnums=1)(0.0, 0.0) == 0
    assert wend.grad(special.xlogy)(0.0, 2.0) == np.log(2.0)
    assert wend.grad(wend.grad(special.i1))(0.0) == 0
    assert wend.grad(special.i1)(0.0) == 0.5


def test_scipys_own_names_are_known() -> None:
    """In a process where nobody has asked for `wend.numpy.special` yet, too."""
    code = """
import numpy as np, scipy.special, wend
found = wend.function(lambda x: scipy.special.gammaln(x) + scipy.special.expit(x))(np.ones(2))
assert np.allclose(found, scipy.special.expit(1.0)), found
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 0), ((0, 0), 1)])
def test_logsumexp_of_nothing(shape: tuple[int, ...], axis: int | None) -> None:
    """Sizes that are known or not: −inf, the logarithm of 0."""

    def fun(x: Any) -> Any:
        return special.logsumexp(x, axis=axis)

    x = np.zeros(shape)
    expected = np.sum(x, axis) - np.inf  # SciPy before 1.15 raises
    declared = wend.function(fun, input_signature=[wend.TensorSpec([None] * len(shape))])
    for found in (wend.function(fun)(x), declared(x)):
        np.testing.assert_array_equal(found, expected)
    some = np.arange(6.0).reshape((6,) if len(shape) == 1 else (2, 3))
    np.testing.assert_allclose(declared(some), scipy.special.logsumexp(some, axis=axis))
