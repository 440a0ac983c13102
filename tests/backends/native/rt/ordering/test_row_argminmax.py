"""Extreme elements, and where they are, by vectors: what NumPy gives, NaN and ties included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.backends.native.emit.array.test_sorting import SEEDS, compiled, numbers, sizes
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.native.rt.ordering.row_argminmax import DTYPES
from wend.backends.native.rt.shared import shared_module_of
from wend.backends.native.target.kinds import REGISTERS
from wend.ops import reducing

NAMES = ("max", "min", "argmax", "argmin")
FUNCTIONS = {
    name: wend.function(lambda x, name=name: getattr(wnp, name)(x), backend="native")
    for name in NAMES
}
SIZES = (
    1,
    2,
    7,
    8,
    31,
    32,
    33,
    64,
    100,
    127,
    128,
    129,
    255,
    256,
    257,
    1000,
    2047,
    2048,
    2049,
    9000,
)


def check(x: np.ndarray) -> None:
    for name, fun in FUNCTIONS.items():
        found, expected = fun(x), getattr(np, name)(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spread", [3, 100])
def test_numbers_of_each_dtype(dtype: np.dtype, spread: int) -> None:
    rng = np.random.default_rng(spread)
    for size in SIZES:
        low = 0 if dtype.kind == "u" else -spread
        check(rng.integers(low, spread, size).astype(dtype))
    info = np.iinfo(dtype) if dtype.kind != "f" else np.finfo(dtype)
    ends = np.full(500, info.min, dtype)
    check(ends)
    ends[400] = info.max
    check(ends)
    check(ends[::-1].copy())


@settings(deadline=None, max_examples=sized(20, 300))
@given(
    size=st.integers(1, 5000),
    base=st.sampled_from(["up", "down", "random", "infinite", "zeros"]),
    nans=st.lists(st.integers(0, 4999), max_size=3),
    is_short=st.booleans(),
)
def test_floats(size: int, base: str, nans: list[int], is_short: bool) -> None:
    x = {
        "up": lambda: np.arange(float(size)),
        "down": lambda: -np.arange(float(size)),
        "random": lambda: np.random.default_rng(size).normal(size=size),
        "infinite": lambda: np.where(np.arange(size) % 3 == 0, np.inf, -np.inf),
        "zeros": lambda: np.where(np.arange(size) % 2 == 0, -0.0, 0.0),
    }[base]().astype(np.float32 if is_short else np.float64)
    x[[k for k in nans if k < size]] = np.nan
    check(x)


def test_all_that_is_not_a_number() -> None:
    for size in SIZES:
        check(np.full(size, np.nan))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", NAMES)
def test_along_axes(name: str, axis: int) -> None:
    def fun(xp: Any, x: Any) -> Any:
        return getattr(xp, name)(x, axis=axis), getattr(xp, name)(x, axis=axis, keepdims=True)

    x = np.random.default_rng(2).normal(size=(5, 4, 300))
    x[2, 1, 77] = np.nan
    native = wend.function(lambda x: fun(wnp, x), backend="native")
    for given_ in (x, x[..., :50].copy(), x[:, :, :1].copy()):
        for found, expected in zip(native(given_), fun(np, given_), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_of_none_there_is_no_extreme() -> None:
    for fun in FUNCTIONS.values():
        with pytest.raises(ValueError, match=r"zero-size|empty"):
            fun(np.zeros(0))


def test_unknown_sizes() -> None:
    fun = wend.function(
        lambda x: (wnp.max(x), wnp.argmin(x)),
        backend="native",
        input_signature=[wend.TensorSpec((None,), np.float64)],
    )
    for size in SIZES:
        x = np.sin(np.arange(float(size)))
        np.testing.assert_array_equal(fun(x), (np.max(x), np.argmin(x)))


def test_only_what_is_called_is_compiled() -> None:
    names = [shared_module_of(f"wend.{name}.f32").exports for name in NAMES]
    assert names == [["wend.max.f32", "wend.argmax.f32"], ["wend.min.f32", "wend.argmin.f32"]] * 2


ANY_DTYPE = st.sampled_from(sorted(REGISTERS, key=str))


@given(
    dtype=ANY_DTYPE,
    length=st.integers(1, 20) | st.sampled_from([255, 256, 257, 600, 1000]),
    others=st.lists(st.integers(0, 3), max_size=2),
    axis=st.integers(0, 2),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(20, 60), deadline=None)
def test_positions_along_axes_of_each_dtype(
    dtype: np.dtype, length: int, others: list[int], axis: int, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    axis %= len(others) + 1
    x = numbers(rng, dtype, sizes(length, others, axis))
    for op, function in ((reducing.argmax, np.argmax), (reducing.argmin, np.argmin)):
        found = compiled(op, [x], known, axis=axis, keepdims=False)
        np.testing.assert_array_equal(found, function(x, axis=axis))


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_any_and_all(share: float) -> None:
    def fun(xp: Any, x: Any) -> list[Any]:
        return [f(x, axis=axis) for f in (xp.any, xp.all) for axis in (None, 0, 1)]

    native = wend.function(
        lambda x: fun(wnp, x),
        backend="native",
        input_signature=[wend.TensorSpec((None, None), np.bool_)],
    )
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (1, 300), (300, 1), (0, 4), (4, 0), (64, 65)):
        x = rng.random(shape) < share
        for found, expected in zip(native(x), fun(np, x), strict=True):
            np.testing.assert_array_equal(found, expected)
    numbers = rng.integers(0, 3, 100) * 256
    anys = wend.function(lambda x: (wnp.any(x), wnp.all(x + 256)), backend="native")
    assert anys(numbers) == (np.any(numbers), np.all(numbers + 256))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?"])
def test_positions_along_each_axis(dtype: str) -> None:
    x = np.random.default_rng(4).integers(0, 5, (3, 70, 9)).astype(dtype)
    if dtype[0] == "f":
        x[1, 44, 3] = x[1, 50, 3] = x[2, 0, 0] = np.nan
    for axis in range(3):
        fun = wend.function(
            lambda x, axis=axis: (wnp.argmax(x, axis), wnp.argmin(x, axis, keepdims=True)),
            backend="native",
        )
        np.testing.assert_array_equal(fun(x)[0], np.argmax(x, axis))
        np.testing.assert_array_equal(fun(x)[1], np.argmin(x, axis, keepdims=True))
