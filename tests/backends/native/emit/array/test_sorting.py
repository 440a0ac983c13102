"""Orders and places in native code: to the last bit NumPy's, of any dtype, axis and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.shares import sized

from wend.backends.native.backend import BACKEND as NATIVE
from wend.backends.native.rt.ordering import sorts
from wend.ir.op import Op
from wend.ir.types import Symbol, TensorType
from wend.ops import searching
from wend.ops.build import Build

DTYPES = st.sampled_from(sorts.DTYPES)
SEEDS = st.integers(0, 2**32 - 1)


def compiled(op: Op, arrays: list[np.ndarray], known: bool, **attrs: Any) -> Any:
    b = Build(op.name)
    types = [
        TensorType(x.dtype, x.shape if known else tuple(Symbol(f"s{n}") for n in x.shape))
        for x in arrays
    ]
    run = NATIVE.compile(b.finish([b.emit(op, *map(b.param, types), **attrs)]))
    assert not run.host_nodes
    return run(arrays)[0]


def numbers(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Any bits at all, or few numbers often; of reals also zeros and NaNs of both signs."""
    bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    if dtype.kind == "b":
        return bits.view(np.uint8) % 2 == 1
    if rng.integers(2):
        low = 0 if dtype.kind == "u" else -3
        bits = rng.integers(low, 4, shape).astype(dtype)
    if dtype.kind == "f":
        odd = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0], dtype)
        bits = np.where(rng.random(shape) < 0.3, rng.choice(odd, shape), bits)
    return np.ascontiguousarray(bits.astype(dtype, copy=False))


def bits_of(x: np.ndarray) -> np.ndarray:
    return x.view(f"u{x.dtype.itemsize}")


def sizes(length: int, others: list[int], axis: int) -> tuple[int, ...]:
    place = axis % (len(others) + 1)
    return (*others[:place], length, *others[place:])


@given(
    dtype=DTYPES,
    length=st.integers(0, 70) | st.sampled_from([100, 257, 1000, 5000]),
    others=st.lists(st.integers(0, 3), max_size=2),
    axis=st.integers(0, 2),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(15, 150), deadline=None)
def test_orders(
    dtype: np.dtype, length: int, others: list[int], axis: int, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    axis %= len(others) + 1
    x = numbers(rng, dtype, sizes(length, others, axis))
    found = compiled(searching.sort, [x], known, axis=axis)
    np.testing.assert_array_equal(bits_of(found), bits_of(np.sort(x, axis=axis, kind="stable")))
    order = compiled(searching.argsort, [x], known, axis=axis)
    np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", sorts.DTYPES, ids=str)
@pytest.mark.parametrize("shape", ["up", "down", "equal", "one digit"])
def test_orders_that_are_there(dtype: np.dtype, shape: str) -> None:
    rng = np.random.default_rng(3)
    x = np.sort(numbers(rng, dtype, (500,)))
    if shape == "down":
        x = np.ascontiguousarray(x[::-1])
    elif shape == "equal":
        x[:] = x[250]
    elif shape == "one digit":
        x = (np.arange(500) * 37 % 11).astype(dtype)
    found = compiled(searching.sort, [x], True, axis=0)
    np.testing.assert_array_equal(bits_of(found), bits_of(np.sort(x, kind="stable")))
    order = compiled(searching.argsort, [x], True, axis=0)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))


@given(
    dtype=DTYPES,
    length=st.integers(0, 40),
    shape=st.lists(st.integers(0, 4), max_size=2),
    side=st.sampled_from(["left", "right"]),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(30, 100), deadline=None)
def test_places(
    dtype: np.dtype, length: int, shape: list[int], side: str, known: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = np.sort(numbers(rng, dtype, (length,)))
    values = numbers(rng, dtype, tuple(shape))
    found = compiled(searching.searchsorted, [x, values], known, side=side)
    expected = np.searchsorted(x, values, side)
    assert np.asarray(found).dtype == np.int64
    np.testing.assert_array_equal(found, expected)


@given(
    dtype=DTYPES,
    shape=st.lists(st.integers(0, 40), max_size=2),
    among=st.sampled_from([0, 1, 4, 5, 30, 40, 300]),
    known=st.booleans(),
    seed=SEEDS,
)
@settings(max_examples=sized(15, 150), deadline=None)
def test_members(dtype: np.dtype, shape: list[int], among: int, known: bool, seed: int) -> None:
    """Compared with each, marked in a table, or looked for by halves."""
    rng = np.random.default_rng(seed)
    x, given_ones = numbers(rng, dtype, tuple(shape)), numbers(rng, dtype, (among,))
    if among:
        x = np.where(rng.random(x.shape) < 0.3, rng.choice(given_ones, x.shape), x)
    found = compiled(searching.isin, [x, given_ones], known)
    assert np.asarray(found).dtype == bool
    np.testing.assert_array_equal(found, np.isin(x, given_ones))
