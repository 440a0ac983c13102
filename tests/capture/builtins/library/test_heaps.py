"""`heapq` with traced items."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import wend


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
