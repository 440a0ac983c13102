"""Products of matrices in machine code, called by address: every layout, sums within the bound."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.shares import sized

from wend.backends.native.jit.llvm import engine
from wend.backends.native.rt.linalg import blas, small_gemm

FUNCTIONS = [
    pytest.param(name(kind, adds), kind.dtype, id=name(kind, adds))
    for kind, adds in small_gemm.VARIANTS
    for name in (small_gemm.small_product, blas.product)
]
SIZES = st.integers(0, 40)
SEEDS = st.integers(0, 2**32 - 1)


def product(function: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a function gives; with what was there before, where it adds."""
    types = [
        ctypes.c_void_p if t == "ptr" else ctypes.c_int64 for t in small_gemm.TYPES.split(", ")
    ]
    call = ctypes.CFUNCTYPE(None, *types)(engine()._address(function))
    room = np.full(x.shape[0] * y.shape[1] + 2, np.nan, x.dtype)  # with one number at each end
    z = room[1:-1]
    z[:] = started(function, x, y).ravel()
    steps = [step // x.itemsize for step in (*x.strides, *y.strides)]
    sizes = (x.shape[0], y.shape[1], x.shape[1])
    given = (x.ctypes.data, *steps[:2], y.ctypes.data, *steps[2:], z.ctypes.data, *sizes)
    call(*given)
    assert np.isnan(room[[0, -1]]).all()
    return z.reshape(x.shape[0], y.shape[1])


def started(function: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What is in the result before: something to add to, or NaN, which nobody reads."""
    shape = (x.shape[0], y.shape[1])
    if "add" not in function:
        return np.full(shape, np.nan, x.dtype)
    return np.random.default_rng(9).standard_normal(shape).astype(x.dtype)


def check(function: str, x: np.ndarray, y: np.ndarray) -> None:
    """As near to the exact sums as NumPy's are, or to some units in the last place of the terms."""
    found = product(function, x, y)
    before = started(function, x, y) if "add" in function else np.zeros_like(found)
    exact = before + x.astype(np.longdouble) @ y.astype(np.longdouble)
    terms = np.abs(before) + np.abs(x).astype(np.longdouble) @ np.abs(y).astype(np.longdouble)
    bound = np.maximum(2 * np.abs(before + x @ y - exact), 8 * np.finfo(x.dtype).eps * terms)
    assert (np.abs(found - exact) <= bound).all()


def matrix(rng: np.random.Generator, dtype: np.dtype, shape: Any, turned: bool) -> np.ndarray:
    made = rng.standard_normal(shape[::-1] if turned else shape).astype(dtype)
    return made.T if turned else made


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
@given(rows=SIZES, columns=SIZES, depth=SIZES, x_turned=st.booleans(), y_turned=..., seed=SEEDS)
@settings(max_examples=sized(20, 60), deadline=None)
def test_any_size_and_layout(
    function: str,
    dtype: np.dtype,
    rows: int,
    columns: int,
    depth: int,
    x_turned: bool,
    y_turned: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    x = matrix(rng, dtype, (rows, depth), x_turned)
    y = matrix(rng, dtype, (depth, columns), y_turned)
    check(function, x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
@pytest.mark.parametrize(
    "sizes",
    [
        (90, 70, 110),
        (70, 40, 600),
        (3, 500, 400),
        (500, 3, 400),
        (1, 400, 500),
        (500, 1, 300),
        (200, 300, 1),
        (8, 130, 1000),
        (31, 100, 257),
    ],
    ids=str,
)
@pytest.mark.parametrize("x_turned", [False, True])
@pytest.mark.parametrize("y_turned", [False, True])
def test_large(
    function: str, dtype: np.dtype, sizes: tuple[int, int, int], x_turned: bool, y_turned: bool
) -> None:
    rng = np.random.default_rng(5)
    rows, columns, depth = sizes
    x = matrix(rng, dtype, (rows, depth), x_turned)
    y = matrix(rng, dtype, (depth, columns), y_turned)
    check(function, x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
def test_larger_than_what_is_computed_in_parts(function: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(6)
    x, y = matrix(rng, dtype, (270, 260), False), matrix(rng, dtype, (260, 250), True)
    assert 270 * 260 * 250 > blas.MAX_TILED_FMAS
    check(function, x, y)


@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
@pytest.mark.parametrize("sizes", [(9, 11, 13), (60, 70, 80), (1, 60, 50)], ids=str)
def test_neither_axis_dense(function: str, dtype: np.dtype, sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(7)
    rows, columns, depth = sizes
    x = matrix(rng, dtype, (2 * rows, 3 * depth), False)[::2, ::3]
    y = matrix(rng, dtype, (2 * depth, 3 * columns), False)[::2, ::3]
    check(function, x, y)


@pytest.mark.parametrize("kind", small_gemm.KINDS, ids=lambda kind: kind.suffix)
def test_the_product_of_two_vectors_is_that_of_matrices_to_the_bit(kind: Any) -> None:
    rng = np.random.default_rng(8)
    result = ctypes.c_double if kind.dtype == np.float64 else ctypes.c_float
    call = ctypes.CFUNCTYPE(result, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        engine()._address(small_gemm.dot(kind))
    )
    for depth in (*range(70), 127, 128, 1000, 100_003):
        x, y = matrix(rng, kind.dtype, (1, depth), False), matrix(rng, kind.dtype, (depth, 1), True)
        expected = product(small_gemm.small_product(kind), x, y)[0, 0]
        assert kind.dtype.type(call(x.ctypes.data, y.ctypes.data, depth)) == expected


@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
@pytest.mark.parametrize("step", [1, 3])
def test_product_of_two_vectors_has_partial_sums(function: str, dtype: np.dtype, step: int) -> None:
    """One running sum would wait for each addition, and lose every small term here."""
    x = np.ones((1, 200 * step), dtype)[:, ::step]
    x[0, 0] = 4 / np.finfo(dtype).eps
    y = np.ones((200, 1), dtype)
    assert (product(function, x, y) > x[0, 0] + 100).all()


@pytest.mark.parametrize(("function", "dtype"), FUNCTIONS)
@pytest.mark.parametrize("size", [5, 40])
def test_infinities_and_nans_stay_in_their_rows_and_columns(
    function: str, dtype: np.dtype, size: int
) -> None:
    """Lanes that are masked do not count."""
    rng = np.random.default_rng(8)
    for place, number in (((1, 2), np.inf), ((0, 0), np.nan)):
        for x_turned, y_turned in ((False, False), (False, True), (True, True)):
            x = matrix(rng, dtype, (size, size), x_turned)
            y = matrix(rng, dtype, (size, size), y_turned)
            x[place] = number
            y[place[::-1]] = 2 * number
            with np.errstate(all="ignore"):
                expected = x @ y
            found = product(function, x, y)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
@pytest.mark.parametrize(
    ("sizes", "is_for_blas"),
    [
        ((4, 400, 900), False),
        ((15, 130, 1000), False),
        ((3, 400, 900), True),
        ((64, 80, 900), True),
        ((8, 20, 3000), True),
    ],
    ids=str,
)
@pytest.mark.parametrize("y_turned", [False, True])
def test_products_of_few_rows_are_not_for_blas(
    sizes: tuple[int, int, int], is_for_blas: bool, dtype: np.dtype, y_turned: bool
) -> None:
    """Sums in another order have other last digits."""
    rng = np.random.default_rng(3)
    rows, columns, depth = sizes
    x, y = matrix(rng, dtype, (rows, depth), False), matrix(rng, dtype, (depth, columns), y_turned)
    (kind,) = (kind for kind, adds in small_gemm.VARIANTS if kind.dtype == dtype and not adds)
    alone, chosen = (product(name(kind), x, y) for name in (small_gemm.small_product, blas.product))
    assert np.array_equal(alone, chosen) is not is_for_blas


def test_what_is_not_for_blas() -> None:
    assert blas.is_small(32, 32, 32, y_is_plain=True)
    assert not blas.is_small(32, 32, 32, y_is_plain=False)
    assert blas.is_small(1, 128, 128, y_is_plain=False)
    assert not blas.is_small(64, 128, 128, y_is_plain=True)
    assert not blas.is_small(8, 20, 3000, y_is_plain=True)


@pytest.mark.parametrize("has_avx512", [False, True])
def test_more_is_not_for_blas_without_its_kernels_for_avx512(
    has_avx512: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = SimpleNamespace(is_process=True, has=lambda _: has_avx512)
    monkeypatch.setattr(blas, "platform", lambda: processor)
    assert blas.is_small(64, 64, 64, y_is_plain=True) is not has_avx512
    assert blas.is_small(32, 32, 32, y_is_plain=True)
