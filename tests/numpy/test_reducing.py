"""`wend.numpy.reducing` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import REAL_DTYPES, arrays, check, slope

axes = st.none() | st.integers(-4, 3) | st.sampled_from([(), (0, 1), (0, -1), (2, 0), (0, 0)])
SUMS = ["sum", "prod", "mean"]
SPREADS = ["var", "std"]
CHOICES = ["max", "min", "amax", "amin", "any", "all"]
POSITIONS = ["argmax", "argmin"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*SUMS, *CHOICES])
@given(x=arrays(), axis=axes, keepdims=st.booleans())
def test_reductions(name: str, x: np.ndarray, axis: Any, keepdims: bool) -> None:
    check(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), x, ulps=64)
    if hasattr(x, name):
        check(lambda m, x: getattr(x, name)(axis=axis, keepdims=keepdims), x, ulps=64)
    check(lambda m, x: getattr(m, name)(x, axis), x, ulps=64)


@pytest.mark.parametrize("name", SPREADS)
@given(x=arrays(whole=True), axis=axes, keepdims=st.booleans(), ddof=st.sampled_from([0, 1, 0.5]))
def test_spreads(name: str, x: np.ndarray, axis: Any, keepdims: bool, ddof: float) -> None:
    check(lambda m, x: getattr(m, name)(x, axis, ddof=ddof, keepdims=keepdims), x, ulps=512)


@pytest.mark.parametrize("name", [*SUMS, "cumsum", "cumprod", *SPREADS])
@given(x=arrays(whole=True), dtype=st.sampled_from(["f4", "f8", "c16", "?"]))
def test_dtype_of_sums(name: str, x: np.ndarray, dtype: str) -> None:
    if x.dtype.kind == "c" and dtype != "c16":
        return  # NumPy warns that it drops the imaginary part
    if x.size and x.ndim:
        check(lambda m, x: getattr(m, name)(x, 0, dtype=dtype), x, ulps=512)


@pytest.mark.parametrize("name", POSITIONS)
@given(x=arrays(), axis=st.none() | st.integers(-4, 3), keepdims=st.booleans())
def test_positions(name: str, x: np.ndarray, axis: Any, keepdims: bool) -> None:
    check(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), x)
    check(lambda m, x: getattr(x, name)(axis), x)


@given(x=arrays(), axis=st.none() | st.integers(-4, 3))
def test_running_sum(x: np.ndarray, axis: Any) -> None:
    check(lambda m, x: m.cumsum(x, axis), x, ulps=64)
    check(lambda m, x: x.cumsum(axis), x, ulps=64)


@given(x=arrays(), axis=st.none() | st.integers(-4, 3))
def test_orders(x: np.ndarray, axis: Any) -> None:
    check(lambda m, x: m.sort(x, axis), x)
    check(lambda m, x: m.argsort(x, axis, stable=True), x)
    check(lambda m, x: m.sort(x, axis=axis, stable=True), x)


@given(x=arrays(st.sampled_from(REAL_DTYPES)))
def test_reduce_of_ufuncs(x: np.ndarray) -> None:
    for ufunc in (np.add, np.multiply, np.maximum, np.logical_or):
        check(lambda m, x, ufunc=ufunc: ufunc.reduce(x, axis=0), x, ulps=64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: wnp.sum(x * x, axis=0),
        lambda x: wnp.prod(x, axis=1, keepdims=True),
        lambda x: wnp.mean(x**3),
        lambda x: wnp.std(x, axis=1, ddof=1),
        lambda x: wnp.var(x),
        lambda x: wnp.max(x, axis=0) * wnp.min(x),
        lambda x: wnp.cumsum(x, axis=1) ** 2,
        lambda x: wnp.cumsum(x),
        lambda x: wnp.sort(x, axis=None) * np.arange(6),
        lambda x: wnp.sort(x, axis=0) ** 2,
    ],
)
def test_gradients(function: Any) -> None:
    slope(function, between(-1, 2, 2, 3))


@pytest.mark.parametrize("function", [np.mean, np.average, np.median, np.std, lambda x: x.mean(1)])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_averages_of_half_precision_are_numpys(function, backend):
    x = (np.arange(2000.0) / 7).astype(np.float16).reshape(2, 1000)
    with np.errstate(over="ignore"):
        expected = function(x)
        found = wend.function(function, backend=backend)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3)


EXTREMES_FROM = {
    "max": lambda x: np.max(x, initial=0.5),
    "min": lambda x: np.min(x, initial=0.5),
    "reduce": lambda x: np.maximum.reduce(x, initial=-9.0),
    "method": lambda x: x.max(initial=0.5),
    "nanmax": lambda x: np.nanmax(x, initial=0.5),
    "axis": lambda x: np.max(x.reshape(-1, 1), axis=0, initial=0.5),
    "keepdims": lambda x: np.min(x.reshape(1, -1), axis=(0, 1), initial=0.5, keepdims=True),
    "where": lambda x: np.max(x, initial=0.5, where=x > 1.0),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", EXTREMES_FROM)
def test_extremes_start_from_a_number_where_nothing_is_left(name, backend):
    def fun(x, least):
        return EXTREMES_FROM[name](x[x > least])

    compiled = wend.function(fun, backend=backend)
    x = np.array([-2.0, 0.25, 3.0])
    for least in (-9.0, 0.0, 9.0):  # all, some, none
        np.testing.assert_array_equal(compiled(x, least), fun(x, least))
