"""Draws in lanes: keys are words in registers, and the numbers are those of plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.special
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND
from wend.passes import lane_maps

COUNT = 100
KEYS = wend.random.split(wend.random.key(5), COUNT)


@pytest.fixture(params=[2, 8, 16], autouse=True)
def lanes(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many lanes, for few elements too."""
    width = request.param
    with mock.patch.multiple(lane_maps, NARROW=width, WIDE=width, MIN_ELEMENTS=0):
        yield width


def words(key: Any) -> Any:
    """Counters with what is folded in, of two blocks and of several sizes."""
    n, total = 0, np.uint64(0)
    while n < 5 and total % np.uint64(7) != 3:
        key, other, third = wend.random.split(key, 3)
        folded = wend.random.fold_in(third, n)
        total = total ^ wend.random.bits(folded) ^ wend.random.bits(other, (2,))[1]
        n = n + 1
    return total, key, n


def walk(key: Any, scale: Any = 1.0) -> Any:
    x, n = 0.0, 0
    while n < 20 and abs(x) < 2.0:
        key, draw = wend.random.split(key)
        x, n = x + scale * wend.random.normal(draw) * 0.5, n + 1
    return x, n


def uniforms(key: Any) -> Any:
    s, n = 1.0, 0
    while s > 0.05 and n < 10:
        key, draw = wend.random.split(key)
        s, n = s * wend.random.uniform(draw, minval=0.2), n + 1
    return s


def single(key: Any) -> Any:
    s, n = np.float32(0), 0
    while s < 2 and n < 8:
        key, draw = wend.random.split(key)
        s, n = s + wend.random.normal(draw, dtype=np.float32), n + 1
    return s


def same_bits(vmapped: Any, fun: Callable[..., Any], keys: Any) -> None:
    rows = [wend.tree.leaves(fun(key)) for key in keys]
    for x, y in zip(wend.tree.leaves(vmapped), zip(*rows, strict=True), strict=True):
        np.testing.assert_array_equal(x, np.array(y))


def in_lanes(vmapped: Any) -> bool:
    return "lanes, " in vmapped.explain()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("count", [1, 7, 8, 9, COUNT])
@pytest.mark.parametrize("fun", [words, walk, uniforms, single])
def test_draws_are_those_of_plain_python(fun: Any, count: int) -> None:
    vmapped = wend.vmap(fun)
    same_bits(vmapped(KEYS[:count]), fun, KEYS[:count])
    assert in_lanes(vmapped)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives(order: int) -> None:
    def value(scale: Any, key: Any) -> Any:
        return walk(key, scale)[0] ** 2 * scale

    slope = wend.grad(value)
    slope = slope if order == 1 else wend.grad(slope)
    vmapped = wend.vmap(slope, in_axes=(None, 0))
    found = vmapped(0.7, KEYS)
    assert order == 2 or in_lanes(vmapped)
    np.testing.assert_allclose(found, [slope(0.7, key) for key in KEYS], rtol=1e-12)
    step = 1e-6
    lower = value if order == 1 else wend.grad(value)
    numeric = [(lower(0.7 + step, k) - lower(0.7 - step, k)) / (2 * step) for k in KEYS]
    np.testing.assert_allclose(found, numeric, rtol=1e-4, atol=1e-4)


def test_counters_carry() -> None:
    """The blocks after a counter whose words are full have the next word, too."""
    from wend.eager.dispatch import apply
    from wend.ops.random import random_bits

    full = np.array([2**64 - 1, 2**64 - 1, 3, 0], np.uint64)

    def draw(key: Any, last: Any) -> Any:
        total, n = np.uint64(0), 0
        while n < 2 and total % np.uint64(1000) != 1:
            counter = np.array([full[0], last, full[2], full[3]])
            total, n = total ^ apply(random_bits, key, counter, shape=(8,))[5], n + 1
            key = wend.random.fold_in(key, n)
        return total

    lasts = np.array([2**64 - 1, 5, 2**64 - 2, 0] * 5, np.uint64)
    vmapped = wend.vmap(draw)
    found = vmapped(KEYS[:20], lasts)
    assert in_lanes(vmapped)
    np.testing.assert_array_equal(found, [draw(k, x) for k, x in zip(KEYS, lasts, strict=False)])


def test_quantiles_of_a_vector_are_those_of_scipy() -> None:
    tail = np.exp(-2.0)
    near = [x + k * np.spacing(x) for x in (tail, 1 - tail, 0.5) for k in range(-3, 4)]
    edges = [0.0, 1.0, -0.5, 1.5, np.nan, np.inf, 5e-324, 1e-300, 1 - 2**-53]
    xs = np.array([*near, *edges, *np.random.default_rng(0).uniform(0, 1, 4000)])

    def quantile(x: Any) -> Any:
        y, n = 0.0, 0
        while n < 1:
            y, n = wend.numpy.special.ndtri(x), n + 1
        return y

    vmapped = wend.vmap(quantile)
    np.testing.assert_array_equal(vmapped(xs), scipy.special.ndtri(xs))
    singles = xs.astype(np.float32)
    np.testing.assert_array_equal(wend.vmap(quantile)(singles), scipy.special.ndtri(singles))


def draws_of_trips(count: int) -> Callable[..., Any]:
    """A loop that draws a key and `count` pairs of words a trip."""

    def program(key: Any, steps: Any) -> Any:
        total = np.uint64(0)
        for k in range(steps):
            key, other = wend.random.split(key)
            for n in wend.unroll(range(count)):
                total = total ^ wend.random.bits(wend.random.fold_in(other, n), (2,))[k % 2]
        return total, key

    return program


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("count", "calls"), [(1, False), (2, False), (20, True)])
def test_loops_draw_few_words_in_registers(count: int, calls: bool) -> None:
    program = draws_of_trips(count)
    graph = traced(program, KEYS[0], 3, optimize=True)
    assert ("call void @wend.philox" in BACKEND.text(graph)) is calls
    for steps in (0, 1, 6):
        with wend.config(backend="numpy"):
            expected = wend.function(program)(KEYS[0], steps)
        for found, number in zip(wend.function(program)(KEYS[0], steps), expected, strict=True):
            np.testing.assert_array_equal(found, number)
