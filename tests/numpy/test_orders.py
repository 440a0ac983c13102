"""Orders by several keys, elements put in and taken out, angles, ufunc methods: beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import REAL_DTYPES, arrays, check, slope

axes = st.integers(-3, 2)
real = st.sampled_from(REAL_DTYPES)
some = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
filled = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
positions = st.one_of(
    st.integers(-4, 4),
    st.lists(st.integers(-4, 4), max_size=3),
    st.builds(slice, st.none() | st.integers(-4, 4), st.none() | st.integers(-4, 4)),
)


@given(x=arrays(real, filled), axis=axes, kth=st.integers(0, 3))
def test_partition(x: np.ndarray, axis: int, kth: int) -> None:
    assume(-x.ndim <= axis < x.ndim and kth < x.shape[axis] and not np.any(np.isnan(x)))

    def chosen(m: Any, x: Any) -> Any:
        order = m.argpartition(x, kth, axis=axis)
        found = m.take_along_axis(x, order, axis)
        key = (slice(None),) * (axis % x.ndim) + (kth,)
        return m.partition(x, kth, axis)[key], found[key]

    check(chosen, x)


@given(
    keys=st.lists(hnp.arrays(np.int8, 5, elements=st.integers(0, 2)), min_size=1, max_size=3),
)
def test_lexsort(keys: list[np.ndarray]) -> None:
    check(lambda m, *keys: m.lexsort(keys), *keys)
    check(lambda m, keys: m.lexsort(keys), np.array(keys))


@given(x=arrays(real, some, whole=True), axis=st.none() | axes, obj=positions, data=st.data())
def test_insert_and_delete(x: np.ndarray, axis: Any, obj: Any, data: st.DataObject) -> None:
    value = data.draw(arrays(real, st.sampled_from([(), (1,), x.shape[1:]]), whole=True))
    check(lambda m, x, value: m.insert(x, obj, value, axis=axis), x, value)
    check(lambda m, x: m.delete(x, obj, axis=axis), x)


@pytest.mark.usefixtures("integers_stay_traced")
def test_positions_that_are_not_known() -> None:
    for fun in (wnp.delete, lambda x, k: wnp.insert(x, k, 1.0)):
        with pytest.raises(NotImplementedError, match=r"np\.concatenate"):
            wend.function(fun)(np.arange(3.0), np.int64(1))


@given(
    x=arrays(st.sampled_from([np.dtype("f8"), np.dtype("i8")]), some, whole=True),
    axis=axes,
    period=st.sampled_from([5, 4, 2 * np.pi]),
    discont=st.none() | st.sampled_from([1.0, 9.0]),
)
def test_unwrap(x: np.ndarray, axis: int, period: Any, discont: Any) -> None:
    check(lambda m, x: m.unwrap(3 * x, discont, axis, period=period), x, ulps=64)


@given(
    x=arrays(st.sampled_from([np.dtype("f8"), np.dtype("i4")]), filled),
    q=hnp.arrays(float, st.sampled_from([(), (3,)]), elements=st.floats(0, 1, width=16)),
    axis=st.none() | axes,
    keepdims=st.booleans(),
    method=st.sampled_from(["linear", "hazen", "lower", "midpoint"]),
)
def test_nanquantile(x: np.ndarray, q: np.ndarray, axis: Any, keepdims: bool, method: str) -> None:
    assume(not np.any(np.isinf(x)))
    options = {"axis": axis, "keepdims": keepdims, "method": method}
    check(lambda m, x, q: m.nanquantile(x, q, **options), x, q, ulps=256)


@given(
    x=arrays(real, st.integers(0, 5).map(lambda n: (n,)), whole=True),
    y=arrays(real, st.integers(0, 5).map(lambda n: (n,)), whole=True),
)
def test_setxor1d(x: np.ndarray, y: np.ndarray) -> None:
    check(lambda m, x, y: m.setxor1d(x, y), x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "minimum", "fmax", "logaddexp"])
@given(x=arrays(st.sampled_from([np.dtype("f8"), np.dtype("f4")]), filled, whole=True), axis=axes)
def test_methods_of_ufuncs(name: str, x: np.ndarray, axis: int) -> None:
    ufunc = getattr(np, name)
    x = x + 0  # of fmax(0.0, -0.0) NumPy gives either
    check(lambda m, x: ufunc.accumulate(x, axis=axis), x, ulps=64)
    check(lambda m, x: ufunc.reduce(x, axis=axis, keepdims=True), x, ulps=64)
    check(lambda m, x: ufunc.outer(x, x), x, ulps=64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.maximum.accumulate(x, axis=1) ** 2,
        lambda x: np.logaddexp.accumulate(x),
        lambda x: np.logaddexp.reduce(x, axis=1),
        lambda x: np.multiply.outer(x[0], x[1]) ** 2,
        lambda x: wnp.partition(x, 1, axis=1) ** 2,
        lambda x: wnp.insert(x, 1, x[0] ** 2, axis=0) ** 2,
        lambda x: wnp.delete(x, 1, axis=1) ** 2,
        lambda x: wnp.unwrap(4 * x) ** 2,
        lambda x: wnp.nanquantile(x, 0.3, axis=1) ** 2,
        lambda x: wnp.sort(x, descending=True) * np.arange(3.0),
    ],
)
def test_gradients(function: Any) -> None:
    slope(function, between(-1, 1, 2, 3))
