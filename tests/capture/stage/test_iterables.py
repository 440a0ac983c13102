"""Loops over ranges near the ends of 64 bits, `np.ndindex` and `np.ndenumerate`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
from wend.base.errors import UnsupportedError
from wend.testing import check_grads

LARGEST = 2**63 - 1
STEPS = (1, -1, 2, -2, 7, -7, 2**62, -(2**62), LARGEST, -LARGEST)


def count_and_last(first, end, step):
    count = last = 0
    for i in range(first, end, step):
        count, last = count + 1, i
    return count, last


def with_step(step):
    def run(first, end):
        count = last = 0
        for i in range(first, end, step):
            count, last = count + 1, i
        return count, last

    return wend.function(run)


ANY_STEP = wend.function(count_and_last)
WITH_STEP = {step: with_step(step) for step in STEPS}


@given(
    st.sampled_from(STEPS),
    st.sampled_from([0, LARGEST, -LARGEST - 1]),
    st.integers(0, 30),
    st.integers(-30, 30),
)
def test_ranges_near_the_ends_of_64_bits(step, base, inside, length):
    first = max(min(base + inside, LARGEST), -LARGEST - 1)
    end = max(min(first + length, LARGEST), -LARGEST - 1)
    expected = count_and_last(first, end, step)
    assert tuple(map(int, ANY_STEP(first, end, step))) == expected
    is_past = not -(2**63) <= end - (step > 0) + step + (step < 0) < 2**63
    if not is_past:
        assert tuple(map(int, WITH_STEP[step](first, end))) == expected
        return
    with pytest.raises(OverflowError, match="would not fit 64 bits"):
        WITH_STEP[step](first, end)


OUTSIDE = np.arange(6.0).reshape(2, 3)


def weighted(a, n, m):
    total = 0.0
    for (i, j), v in np.ndenumerate(a):
        total += i * v * v - j
    return total


def filled(a, n, m):
    b = np.empty_like(a)
    for key in np.ndindex(a.shape):
        b[key] = a[key] * key[0]
    return b


def with_traced_sizes(a, n, m):
    total = 0.0
    for i, j in np.ndindex(n, m):
        total += a[i, j] * (i + 1)
    return total


def written(a, n, m):
    b = a.copy()
    for (i, j), v in np.ndenumerate(b):
        if j < 3:
            b[i, j + 1] = v + 1
    return b


def largest(a, n, m):
    best, place = a[0, 0], (0, 0)
    for key, v in np.ndenumerate(a % 5):
        if v > best:
            best, place = v, key
    return best, place


def rows(a, n, m):
    return [a[key].sum() for key in np.ndindex(a.shape[:1])], list(np.ndenumerate(a[0]))


def one_by_one(a, n, m):
    keys = np.ndindex(2, 2)
    return a[next(keys)] + a[next(keys)]


def numbered(a, n, m):
    total = 0.0
    for k, ((i, j), v) in enumerate(np.ndenumerate(OUTSIDE)):
        total += k * a[i, j] * v
    return total


def of_nothing(a, n, m):
    total = 0.0
    for _, v in np.ndenumerate(a[:, :0]):
        total += v
    for key in np.ndindex():
        total += len(key) + 1.0
    for key, v in np.ndenumerate(a[0, 0]):
        total += v + len(key)
    return total


def of_nditer(a, n, m):
    total = 0.0
    for k, x in enumerate(np.nditer(a, order="C")):
        total += x * k + x.ndim
    for x in np.nditer(a[1]):
        total += x[()] * x
    return total


def of_unknown_size(a, n, m):
    total = 0.0
    for (k,), v in np.ndenumerate(a[a > 2]):
        total += k * v
    return total


GRIDS = [
    weighted, filled, with_traced_sizes, written, largest, rows, one_by_one, numbered, of_nothing,
    of_unknown_size, of_nditer,
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", GRIDS)
def test_positions_and_elements(fun, backend):
    a = np.arange(12.0).reshape(3, 4)
    with wend.config(backend=backend):
        actual, expected = wend.function(fun)(a, 2, 3), fun(a, 2, 3)
    assert type(actual) is type(expected)
    assert wend.tree.structure(actual) == wend.tree.structure(expected)
    for got, wanted in zip(*map(wend.tree.leaves, (actual, expected)), strict=True):
        np.testing.assert_array_equal(got, wanted)
    if fun in (weighted, filled, with_traced_sizes, written, numbered, of_nditer):
        with wend.config(backend=backend):
            check_grads(lambda a: np.sum(fun(a, 2, 3) ** 2), (a + 0.5,), order=1)


def test_all_positions_are_one_loop():
    graph = wend.function(weighted).get_concrete_function(np.ones((9, 9)), 1, 1).graph
    assert str(graph).count("while(") == 1


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_negative_size_raises(backend):
    compiled = wend.function(with_traced_sizes, backend=backend)
    with pytest.raises(ValueError, match=r"^negative dimensions are not allowed"):
        compiled(np.ones((2, 2)), -1, 2)
    with pytest.raises(ValueError, match=r"^negative dimensions are not allowed"):
        wend.function(lambda: list(np.ndindex(-1, 2)))()


def test_what_nditer_does_not_take_is_refused_by_name():
    for run in (lambda x: [*np.nditer(x)], lambda x: [*np.nditer([x[0], x[1]])]):
        with pytest.raises(UnsupportedError, match=r"(?s)np\.nditer at .*loop over x\.flat"):
            wend.function(run)(np.ones((2, 2)))


def test_ranges_with_traced_ends_are_arrays():
    def fun(n):
        return np.array(range(n)), np.asarray(range(1, n, 2), float), np.outer(range(n), range(2))

    for a, b in zip(wend.function(fun)(4), fun(4), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_a_range_is_an_index_array() -> None:
    def indexed(x, n):
        x[range(n)] += 1.0
        y = np.outer(x, x)
        y[range(n), range(n)] = 0.0
        return x[range(2)], x[range(n)], y[:, range(n)], np.zeros(5)[range(0)]

    for n in (0, 3, 5):
        expected, found = (f(np.arange(5.0), n) for f in (indexed, wend.function(indexed)))
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)
