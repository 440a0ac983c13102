"""`wend.numpy.statistics` and `nans` beside NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
import wend.numpy as wnp
from tests.helpers.arrays import quiet
from tests.helpers.drawn import FLOATS, INEXACT, axes, check, drawn, few
from wend.numpy.statistics import _PLOTTING_POSITIONS

NANS = "nansum nanprod nanmean nanmax nanmin nanvar nanstd"
METHODS = [*_PLOTTING_POSITIONS, "lower", "higher", "nearest", "midpoint"]


@few
@given(x=drawn(dims=(1, 3), least=1), axis=axes, keepdims=st.booleans())
def test_ptp(x: np.ndarray, axis: Any, keepdims: bool) -> None:
    check(lambda m, x: m.ptp(x, axis=axis, keepdims=keepdims), x)


@few
@given(x=drawn(least=1), axis=axes | st.just((0, 1)), keepdims=st.booleans())
def test_median(x: np.ndarray, axis: Any, keepdims: bool) -> None:
    check(lambda m, x: m.median(x, axis=axis, keepdims=keepdims), x)


@few
@given(x=drawn(FLOATS, least=1, odd=True))
def test_median_with_nan(x: np.ndarray) -> None:
    check(lambda m, x: m.median(x), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
@few
@given(
    x=drawn([*FLOATS, "i8", "u1"], dims=(1, 3), least=1),
    q=st.sampled_from([0.0, 0.3, 0.5, 0.77, 1.0]) | st.just(np.array([0.25, 1.0, 0.5])),
    axis=axes,
    keepdims=st.booleans(),
)
def test_quantile(method: str, x: np.ndarray, q: Any, axis: Any, keepdims: bool) -> None:
    if method in ("lower", "higher", "nearest") and x.dtype == np.float32:
        x = x.astype(np.float64)  # at the edge between two, the rounding of q·n decides
    check(lambda m, x: m.quantile(x, q, axis=axis, method=method, keepdims=keepdims), x, ulps=512)


@few
@given(x=drawn(FLOATS, least=1), q=st.sampled_from([0, 12.5, 50, 99, 100]))
def test_percentile(x: np.ndarray, q: float) -> None:
    check(lambda m, x: m.percentile(x, q), x, ulps=512)


@few
@given(x=drawn(shape=(2, 3)), axis=st.sampled_from([None, 0, 1, -1]), returned=st.booleans())
def test_average(x: np.ndarray, axis: Any, returned: bool) -> None:
    check(lambda m, x: m.average(x, axis, returned=returned), x)
    weights = np.arange(1, 7.0).reshape(2, 3)
    check(lambda m, x, w: m.average(x, axis, weights=w, returned=returned), x, weights)
    if axis is not None:
        one = weights[0] if axis else weights[:, 0]
        check(lambda m, x, w: m.average(x, axis, weights=w, returned=returned), x, one)


@few
@given(
    x=drawn([*INEXACT, "i4"], shape=(3, 4)),
    y=drawn(FLOATS, shape=(3, 4)),
    rowvar=st.booleans(),
    options=st.sampled_from([{}, {"bias": True}, {"ddof": 0}]),
)
def test_cov(x: np.ndarray, y: np.ndarray, rowvar: bool, options: Any) -> None:
    check(lambda m, x: m.cov(x, rowvar=rowvar, **options), x, ulps=4000)
    check(lambda m, x, y: m.cov(x, y, rowvar=rowvar, **options), x, y, ulps=4000)
    weights = np.array([1, 2, 1, 3]), np.array([0.5, 1, 2, 1])
    check(lambda m, x, f, a: m.cov(x, fweights=f, aweights=a, **options), x, *weights, ulps=4000)


@few
@given(x=drawn(FLOATS, shape=(3, 4)))
def test_corrcoef(x: np.ndarray) -> None:
    x = x + np.random.default_rng(0).standard_normal(x.shape)
    check(lambda m, x: m.corrcoef(x), x, ulps=4000)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NANS.split())
@few
@given(x=drawn([*FLOATS, "i4"], least=1, odd=True), axis=axes, keepdims=st.booleans())
def test_without_nan(name: str, x: np.ndarray, axis: Any, keepdims: bool) -> None:
    x = np.where(np.isinf(x), 1, x).astype(x.dtype) if x.dtype.kind == "f" else x
    check(lambda m, x: getattr(m, name)(x, axis=axis, keepdims=keepdims), x, ulps=512)


@pytest.mark.parametrize("name", ["nancumsum", "nancumprod", "nanmedian"])
@few
@given(x=drawn(FLOATS, least=1, odd=True), axis=axes)
def test_running_without_nan(name: str, x: np.ndarray, axis: Any) -> None:
    x = np.where(np.isinf(x), 1, x).astype(x.dtype)
    check(lambda m, x: getattr(m, name)(x, axis=axis), x, ulps=512)


PROBABILITIES = [0.5, 1, True, np.bool_(False), np.array([True, False]), np.float32(0.25)]
ARRAYS = [
    *(np.array([3, 1, 2]).astype(dtype) for dtype in "?bLed"),
    *(np.zeros(0, dtype) for dtype in "?le"),
    np.zeros((0, 2)),
]


def _outcome(call: Any, *args: Any) -> Any:
    try:
        return np.asarray(quiet(lambda: call(*args)))
    except Exception as error:
        return error


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["linear", "weibull"])
@pytest.mark.parametrize("name", ["quantile", "nanquantile", "percentile", "nanpercentile"])
def test_quantiles_of_every_dtype(name: str, method: str) -> None:
    """Of bools, of integers and of nothing, and for bools as probabilities."""
    for x, q in itertools.product(ARRAYS, PROBABILITIES):

        def call(x: Any, q: Any) -> Any:
            return getattr(np, name)(x, q, axis=0, method=method)

        expected, actual = (
            _outcome(call, x, q),
            _outcome(wend.function(call, backend="numpy"), x, q),
        )
        case = f"{name}({x!r}, {q!r}): {actual!r}, in NumPy {expected!r}"
        if isinstance(expected, Exception):
            assert isinstance(actual, type(expected)) or isinstance(expected, type(actual)), case
        else:
            assert actual.dtype == expected.dtype, case
            np.testing.assert_allclose(actual, expected, 1e-3, err_msg=case)


@pytest.mark.parametrize("number", [2.0, 2, True])
@pytest.mark.parametrize("function", [np.inner, np.outer, np.kron, np.add.outer, np.append])
def test_a_number_of_the_run_is_an_array_of_its_own_dtype(function: Any, number: Any) -> None:
    x = np.array([1, 2, 3], np.float32)
    result = wend.function(lambda x, y: function(x, y), backend="numpy")(x, number)
    expected = function(x, number)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


OF_NOTHING: dict[str, Callable[..., Any]] = {
    "median": lambda x, m: m.median(x),
    "median along an axis": lambda x, m: m.median(x[:, None] * np.ones(2), axis=0),
    "median that keeps axes": lambda x, m: m.median(x[:, None] * np.ones(2), keepdims=True),
    "nanmedian": lambda x, m: m.nanmedian(x),
    "nanpercentile": lambda x, m: m.nanpercentile(x, [50, 25]),
    "quantile": lambda x, m: m.quantile(x, 0.5),
    "mean": lambda x, m: m.mean(x),
    "var": lambda x, m: m.var(x),
    "average": lambda x, m: m.average(x),
    "max": lambda x, m: m.max(x),
    "argmin": lambda x, m: m.argmin(x),
    "ptp": lambda x, m: m.ptp(x),
    "histogram": lambda x, m: m.histogram(x, 2)[0],
    **{f"norm {p}": lambda x, m, p=p: m.linalg.norm(x, p) for p in (np.inf, -np.inf, 0, 1, 2, 3)},
    **{
        f"norm {p} of a matrix": lambda x, m, p=p: m.linalg.norm(x[:, None] * np.ones(2), p)
        for p in (np.inf, 1, "fro")
    },
    "norm inf of columns": lambda x, m: m.linalg.norm(x[:, None] * np.ones(2), np.inf, axis=0),
}


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("form", OF_NOTHING)
def test_of_a_selection_that_may_be_empty(form: str, backend: str) -> None:
    """The run may find nothing: NumPy's value, or an error of its class."""
    traced = wend.function(lambda x, t: OF_NOTHING[form](x[x > t], wnp), backend=backend)
    x = np.array([1.0, -2.0, 3.0, 0.5])
    for threshold in (9.0, 2.0, -9.0):
        try:
            expected = OF_NOTHING[form](x[x > threshold], np)
        except (ValueError, IndexError) as error:
            with pytest.raises(type(error)):
                traced(x, threshold)
        else:
            np.testing.assert_allclose(traced(x, threshold), expected, rtol=1e-13)
