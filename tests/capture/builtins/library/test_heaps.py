"""`heapq` with traced items."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

import wend
from wend.base.errors import ConcreteValueError


def largest(x, n):
    heap = []
    for v in x:
        heapq.heappush(heap, v)
        if len(heap) > n:
            heapq.heappop(heap)
    return sum(heap)


def largest_by_the_cure(x, n):
    heap = []
    for v in x:
        heap = sorted([*heap, v])
        if len(heap) > n:
            heap.pop(0)
    return sum(heap)


def shortest_paths(w):
    n = len(w)
    dist, todo = np.full(n, np.inf), np.full(n, np.inf)
    dist[0] = todo[0] = 0.0
    while np.min(todo) < np.inf:
        u = np.argmin(todo)
        todo[u] = np.inf
        for v in range(n):
            if w[u, v] > 0 and dist[u] + w[u, v] < dist[v]:
                dist[v] = todo[v] = dist[u] + w[u, v]
    return dist


def test_heaps_are_refused_with_a_cure_that_works():
    x = np.array([5.0, 1.0, 4.0, 2.0])
    with pytest.raises(ConcreteValueError, match=r"items\[k\] = np\.inf.*keep the list sorted"):
        wend.function(largest)(x, 2)
    assert wend.function(largest_by_the_cure)(x, 2) == largest(x, 2)
    w = np.array([[0.0, 4, 1, 0], [4, 0, 2, 5], [1, 2, 0, 8], [0, 5, 8, 0]])
    np.testing.assert_array_equal(wend.function(shortest_paths)(w), [0, 3, 1, 8])


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
