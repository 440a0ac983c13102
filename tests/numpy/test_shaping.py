"""`wend.numpy.shaping` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wend
import wend.numpy as wnp
from tests.helpers.samples import between
from tests.helpers.traced import DTYPES, arrays, broadcastable, check, slope
from wend.base.errors import UnsupportedError

axes = st.integers(-4, 3)
"""Of which some are out of range."""


@given(x=arrays(), data=st.data())
def test_reshape(x: np.ndarray, data: st.DataObject) -> None:
    sizes = data.draw(st.permutations([*x.shape, 1]))
    place = data.draw(st.integers(0, len(sizes)))
    guessed = [-1 if k == place else size for k, size in enumerate(sizes)]
    for shape in (tuple(sizes), guessed, -1, x.size, (*sizes, 2), (-1, -1)):
        check(lambda m, x, shape=shape: m.reshape(x, shape), x)
        check(lambda m, x, shape=shape: x.reshape(shape), x)
    check(lambda m, x: x.reshape(*sizes), x)


@given(x=arrays())
def test_orders_of_axes(x: np.ndarray) -> None:
    check(lambda m, x: m.transpose(x), x)
    check(lambda m, x: m.permute_dims(x), x)
    check(lambda m, x: x.T, x)
    check(lambda m, x: m.ravel(x), x)
    check(lambda m, x: x.flatten(), x)
    check(lambda m, x: m.matrix_transpose(x), x)
    check(lambda m, x: x.mT, x)
    check(lambda m, x: m.squeeze(x), x)
    check(lambda m, x: m.flip(x), x)
    check(lambda m, x: (m.ndim(x), m.size(x), m.shape(x), len(x)), x)
    check(lambda m, x: list(x), x)


@given(x=arrays(), axis=axes, other=axes)
def test_along_an_axis(x: np.ndarray, axis: int, other: int) -> None:
    check(lambda m, x: m.expand_dims(x, axis), x)
    check(lambda m, x: m.expand_dims(x, (axis, other)), x)
    check(lambda m, x: m.squeeze(x, axis), x)
    check(lambda m, x: m.squeeze(x, (axis, other)), x)
    check(lambda m, x: m.flip(x, axis), x)
    check(lambda m, x: m.flip(x, (axis, other)), x)
    check(lambda m, x: m.swapaxes(x, axis, other), x)
    check(lambda m, x: m.moveaxis(x, axis, other), x)
    check(lambda m, x: m.moveaxis(x, (axis, other), (other, axis)), x)
    check(lambda m, x: m.transpose(x, (axis, other)), x)
    check(lambda m, x: m.size(x, axis), x)


@given(x=arrays(), data=st.data())
def test_transpose_to_an_order(x: np.ndarray, data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(x.ndim)))
    check(lambda m, x: m.transpose(x, perm), x)
    check(lambda m, x: x.transpose(*perm), x)


@given(xs=broadcastable(2), shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
def test_broadcasting(xs: Any, shape: tuple[int, ...]) -> None:
    check(lambda m, x: m.broadcast_to(x, shape), xs[0])
    check(lambda m, x: m.broadcast_to(x, np.broadcast_shapes(*(x.shape for x in xs))), xs[0])
    check(lambda m, x, y: m.broadcast_arrays(x, y), *xs)


@given(x=arrays(), other=st.sampled_from(DTYPES), axis=axes, data=st.data())
def test_joining(x: np.ndarray, other: np.dtype, axis: int, data: st.DataObject) -> None:
    y = data.draw(arrays(other, x.shape))
    check(lambda m, x, y: m.concatenate([x, y, x], axis=axis), x, y)
    check(lambda m, x, y: m.concat((x, y), axis=axis), x, y)
    check(lambda m, x, y: m.concatenate([x, y], axis=None), x, y)
    check(lambda m, x, y: m.stack([x, y], axis=axis), x, y)
    check(lambda m, x: m.concatenate([x, y], axis=axis), x)
    check(lambda m, x: m.stack([x, y[..., None]], axis=axis), x)
    check(lambda m, x: m.concatenate([x, y[..., None]], axis=axis), x)


def test_joining_unequal_sizes() -> None:
    x, y = np.ones((2, 3)), np.ones((2, 2), np.int8)
    check(lambda m, x, y: m.concatenate([x, y], axis=1), x, y)
    check(lambda m, x, y: m.concatenate([x, y], axis=0), x, y)
    check(lambda m, x, y: m.stack([x, y]), x, y)
    check(lambda m, x: m.stack([x, 1.0]), np.float32(2))
    check(lambda m, x: m.concatenate([x, [1.0, 2.0]]), np.ones(2, np.float32))


@given(x=arrays(), axis=axes, parts=st.sampled_from([1, 2, 3, [1], [0, 2], [2, 1], [-1], [5], []]))
def test_split(x: np.ndarray, axis: int, parts: Any) -> None:
    check(lambda m, x: m.split(x, parts, axis), x)


@given(
    x=arrays(), low=st.integers(0, 2), high=st.integers(0, 2), value=st.sampled_from([0, 1, 2.5])
)
def test_pad(x: np.ndarray, low: int, high: int, value: Any) -> None:
    check(lambda m, x: m.pad(x, low), x)
    check(lambda m, x: m.pad(x, (low, high), constant_values=value), x)
    check(lambda m, x: m.pad(x, [(low, high)] * x.ndim, "constant", constant_values=value), x)
    check(lambda m, x: m.pad(x, [(low, high)] * (x.ndim + 2)), x)
    check(lambda m, x: m.pad(x, -1), x)


@given(x=arrays(), dtype=st.sampled_from(DTYPES))
def test_casts(x: np.ndarray, dtype: np.dtype) -> None:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        return  # NumPy warns that it drops the imaginary part
    if x.dtype.kind in "fc" and dtype.kind in "iu":
        x = np.where(np.isfinite(x) & (x.real >= 0), x, 1).astype(x.dtype)  # else undefined
    check(lambda m, x: x.astype(dtype), x)
    check(lambda m, x: m.astype(x, dtype), x)


def test_sizes_that_only_the_run_tells() -> None:
    signature = [wend.TensorSpec([None, 3], "float64")]

    @wend.function(input_signature=signature)
    def shapes(x: Any) -> Any:
        rows = x.shape[0]
        spread = wnp.broadcast_to(x[:1], (rows, 3))
        return wnp.reshape(x, (3, rows)), spread, wnp.expand_dims(x, 1), wnp.size(x), x.ravel()

    for rows in (1, 4):
        x = between(-1, 1, rows, 3)
        wanted = (
            x.reshape(3, rows),
            np.broadcast_to(x[:1], (rows, 3)),
            x[:, None],
            3 * rows,
            x.ravel(),
        )
        for a, b in zip(shapes(x), wanted, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: wnp.concatenate([x, x[:1] * 2, x.T.reshape(2, 3)]),
        lambda x: wnp.stack([x, x**2], axis=-1),
        lambda x: wnp.pad(wnp.flip(x, 1), ((0, 1), (2, 0)), constant_values=3) ** 2,
        lambda x: wnp.split(x, [1], axis=1)[1] * x[:, :1],
        lambda x: wnp.moveaxis(wnp.broadcast_to(x, (4, 2, 3)), 0, -1) ** 2,
        lambda x: wnp.squeeze(wnp.expand_dims(x, (0, 2)), 0).astype(np.complex128).real ** 3,
    ],
)
def test_gradients(function: Any) -> None:
    slope(function, between(-1, 1, 2, 3))


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_squeeze_of_an_axis_of_a_size_of_the_run(backend):
    def steps(n, x):
        y = np.zeros((n + 1, x.size)) + x
        return y.squeeze(), np.squeeze(x[n:])

    compiled, x = wend.function(steps, backend=backend), np.arange(4.0)
    for n in (1, 2):
        np.testing.assert_equal(compiled(n, x), steps(n, x))
    for n in (0, 3):  # one of the sizes is 1, and NumPy's result has fewer axes
        with pytest.raises(UnsupportedError, match="finds an axis of size 1"):
            compiled(n, x)
    cured = wend.function(steps, backend=backend, static_argnums=0)
    for n in (0, 3):
        np.testing.assert_equal(cured(n, x), steps(n, x))
