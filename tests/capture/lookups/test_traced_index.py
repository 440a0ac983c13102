"""Lists that are read and written at traced indices."""

from __future__ import annotations

import random

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError, StagedRaiseError


def insertion_sort(a):
    for i in range(1, len(a)):
        value, j = a[i], i
        while j > 0 and a[j - 1] > value:
            a[j] = a[j - 1]
            j -= 1
        a[j] = value


def bubble_sort(a):
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(a) - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swapped = True


def _sift(a, n, i):
    while True:
        largest = i
        for child in (2 * i + 1, 2 * i + 2):
            if child < n and a[child] > a[largest]:
                largest = child
        if largest == i:
            return
        a[i], a[largest] = a[largest], a[i]
        i = largest


def heap_sort(a):
    for i in range(len(a) // 2 - 1, -1, -1):
        _sift(a, len(a), i)
    for end in range(len(a) - 1, 0, -1):
        a[0], a[end] = a[end], a[0]
        _sift(a, end, 0)


class Counter:
    def __init__(self, size):
        self.counts = [0.0] * size

    def add(self, k, amount):
        self.counts[k] += amount


def counted(a):
    counter = Counter(3)
    for value in a:
        counter.add(int(value) % 3, value)
    a[:3] = counter.counts


def pivots(a):
    rows = [a[:2], a[2:4]]
    largest = 0
    for k in (0, 1):
        if rows[1][k] > rows[1][largest]:
            largest = k
    rows[0][largest], rows[0][-1] = rows[0][-1], rows[0][largest]
    rows[1][largest] *= 2.0
    a[:2], a[2:4] = rows[0], rows[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", [insertion_sort, bubble_sort, heap_sort, counted, pivots])
def test_lists_of_the_caller(fun, backend):
    numbers = random.Random(0)
    traced = wend.function(fun, backend=backend)
    for _ in range(4):
        a = [round(numbers.uniform(0, 9), 1) for _ in range(5)]
        b = a.copy()
        fun(a), traced(b)
        assert b == a
        assert all(type(x) is float for x in b)
    assert traced.trace_count == 1


def stored(x, i):
    items = [x, x * x, x**3]
    items[i] = 2.0 * x
    return items[0] + items[1] + items[2]


@pytest.mark.parametrize("i", [0, 1, 2, -1, -3])
def test_values_and_derivatives(i):
    index = np.int64(i)
    assert wend.function(stored)(3.0, index) == stored(3.0, i)
    assert wend.grad(stored)(3.0, index) == [35.0, 30.0, 9.0][i]
    assert wend.grad(wend.grad(stored))(3.0, index) == [20.0, 18.0, 2.0][i]


@pytest.mark.parametrize("i", [3, -4])
def test_an_index_out_of_range_raises_pythons_error(i):
    with pytest.raises(IndexError, match="list assignment index out of range"):
        wend.function(stored)(3.0, np.int64(i))


@pytest.mark.usefixtures("integers_stay_traced")
def test_a_handler_of_it_is_refused():
    @wend.function
    def caught(x, i):
        items = [x, x]
        try:
            items[i] = 0.0
        except IndexError:
            return -1.0
        return items[0]

    with pytest.raises(StagedRaiseError, match="may raise IndexError"):
        caught(1.0, np.int64(0))


@pytest.mark.usefixtures("integers_stay_traced")
@pytest.mark.parametrize("items", [[1.0, None], [1.0, "a"], [1.0] * 300, []])
def test_lists_of_other_things_need_the_index(items):
    @wend.function
    def store(i):
        out = items.copy()
        while i < 1:
            out[i] = 2.0
            i += 1
        return out

    with pytest.raises(ConcreteValueError, match="the integer of"):
        store(np.int64(0))


def of_a_tuple(x, k):
    return (x, 2 * x)[k]


def of_a_list(x, k):
    return [x, 2 * x][k]


def of_a_grown_list(x, k):
    items = []
    for i in range(3):
        items.append(x * i)
    return items[k]


def put_beyond(x, k):
    items = [x, 2 * x]
    items[k] = 3 * x
    return items


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("fun", [of_a_tuple, of_a_list, of_a_grown_list, put_beyond])
def test_positions_beyond_64_bits_with_a_sign(fun, backend):
    """Lists raise IndexError there, arrays OverflowError."""
    compiled = wend.function(fun, backend=backend)
    for k in (1, 2**63, 2**64 - 1):
        k = np.uint64(k)
        try:
            expected = fun(1.5, k)
        except IndexError as error:
            with pytest.raises(IndexError, match=str(error)):
                compiled(1.5, k)
        else:
            np.testing.assert_array_equal(compiled(1.5, k), expected)


def test_rows_of_different_lengths_are_refused_with_a_form_that_works() -> None:
    def total(rows, k):
        return sum(x for x in rows[k])

    rows = [[1.0, 2.0], [3.0]]
    with pytest.raises(ConcreteValueError) as caught:
        wend.function(total).get_concrete_function(rows, wend.TensorSpec((), int))
    assert any("for k in range(lengths[i]): rows[i, k]" in x for x in caught.value.__notes__)

    @wend.function
    def total_of_filled(rows, lengths, i):
        total = 0.0
        for k in range(lengths[i]):
            total += rows[i, k]
        return total

    filled, lengths = np.array([[1.0, 2.0], [3.0, 0.0]]), np.array([2, 1])
    assert [total_of_filled(filled, lengths, i) for i in (0, 1)] == [3.0, 3.0]
