"""`heapq` with traced items."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import wend
from wend.ir.graph import Graph


def largest(x, n):
    heap = []
    for v in x:
        heapq.heappush(heap, v)
        if len(heap) > n:
            heapq.heappop(heap)
    return heap


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_heaps_have_the_order_of_pythons(backend):
    rng = np.random.default_rng(0)
    compiled = wend.function(largest, backend=backend)
    for size in (1, 2, 9, 9, 9):
        x = rng.integers(0, 6, size).astype(float)
        assert compiled(x, 4) == largest(x, 4)


@pytest.mark.parametrize("select", [heapq.nlargest, heapq.nsmallest])
@pytest.mark.parametrize("key", [None, abs])
def test_largest_and_smallest(select, key):
    x = np.array([5.0, -1.0, 4.0, -9.0, 2.0])
    for n in (0, 2, 9):
        result = wend.function(lambda x, n=n: select(n, x, key=key))(x)
        assert result == select(n, x.tolist(), key=key)


def test_items_that_python_knows():
    def program(x):
        heap = [3, 1, 2]
        heapq.heapify(heap)
        return x * heapq.heappop(heap), heapq.heappushpop(heap, 5)

    assert wend.function(program)(2.0) == program(2.0)


def reordered(x):
    heap = list(x)
    heapq.heapify(heap)
    return heap


def popped_and_pushed(x):
    heap = [(x[k], k) for k in range(len(x))]
    heapq.heapify(heap)
    first, k = heapq.heappop(heap)
    heapq.heappush(heap, (first + 1.0, k + 10))
    second = heapq.heapreplace(heap, (first * 2.0, 20))
    return first, second, heapq.heappushpop(heap, (first + 0.5, 30)), heap


def merged(x):
    """Huffman's algorithm: the cost of the best code."""
    heap, total = list(x), 0.0
    heapq.heapify(heap)
    while len(heap) > 1:
        a = heapq.heappop(heap)
        b = heapq.heappop(heap)
        total += a + b
        heapq.heappush(heap, a + b)
    return total


def merged_with_numbers(x):
    heap, total, n = [(x[k], k) for k in range(len(x))], 0.0, len(x)
    heapq.heapify(heap)
    while len(heap) > 1:
        a, _ = heapq.heappop(heap)
        b, _ = heapq.heappop(heap)
        total += a + b
        heapq.heappush(heap, (a + b, n))
        n += 1
    return total


def drained(x):
    heap, total = list(x), 0.0
    heapq.heapify(heap)
    for _ in range(len(x)):
        total = total * 0.5 + heapq.heappop(heap)
    return total


def largest_of_a_few(x):
    heap = [x[0], x[1], x[2]]
    heapq.heapify(heap)
    for k in range(3, len(x)):
        if x[k] > heap[0]:
            heapq.heapreplace(heap, x[k])
    return heap[0]


def mixed(x):
    """Numbers of more than one type stay as they are."""
    heap = [3, x[0], 2.5, x[1], 1, x[2], 7]
    heapq.heapify(heap)
    return heapq.heappop(heap) * x[3], heap[0]


KNOWN = (
    *(reordered, popped_and_pushed, merged, merged_with_numbers),
    *(drained, largest_of_a_few, mixed),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("fun", KNOWN)
def test_heaps_of_known_lengths(fun, backend):
    rng = np.random.default_rng(1)
    for size in (4, 5, 6, 13) if backend == "numpy" else (7,):
        for x in (rng.random(size), rng.integers(0, 4, size).astype(float)):
            assert wend.function(fun, backend=backend)(x) == fun(x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fun", [merged, merged_with_numbers, drained, largest_of_a_few])
def test_gradients_of_heaps_of_known_lengths(fun):
    x = np.random.default_rng(2).random(9)
    step = 1e-6 * np.eye(9)
    slopes = [(fun(x + d) - fun(x - d)) / 2e-6 for d in step]
    np.testing.assert_allclose(wend.grad(fun)(x), slopes, atol=1e-8)


def graph_of(fun, size: int) -> Graph:
    return wend.function(fun).get_concrete_function(np.linspace(0.0, 1.0, size)).graph


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [f for f in KNOWN if f is not mixed])
def test_a_heap_makes_a_few_nodes_for_each_item(fun):
    """A loop over the heap is one node, and an operation moves its items in loops."""
    counts = [graph_of(fun, size).count() for size in (20, 40, 80)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])
    assert counts[1] - counts[0] <= 20 * 35
    assert counts[0] < 1100


def test_heaps_may_be_long():
    x = np.random.default_rng(3).random(300)
    assert wend.function(merged, backend="numpy")(x) == merged(x)
