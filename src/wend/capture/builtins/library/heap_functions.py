"""`heapq`'s functions in Python, which are captured where the items are traced."""

from __future__ import annotations

import heapq
from typing import Any

_sift_down: Any = vars(heapq)["_siftdown"]
_sift_up: Any = vars(heapq)["_siftup"]


def heapify(heap: Any) -> None:
    """Make a heap of a list."""
    for position in range(len(heap) // 2 - 1, -1, -1):
        _sift_up(heap, position)


def refill(heap: Any, items: Any) -> None:
    """Replace the items of a heap."""
    heap[:] = items


def heappush(heap: Any, item: Any) -> None:
    """Put an item into a heap."""
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    """Take the smallest item from a heap."""
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sift_up(heap, 0)
    return first


def heapreplace(heap: Any, item: Any) -> Any:
    """Take the smallest item from a heap, and put one into it."""
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0)
    return first


def heappushpop(heap: Any, item: Any) -> Any:
    """Put an item into a heap, and take the smallest."""
    if heap and heap[0] < item:
        first = heap[0]
        heap[0] = item
        _sift_up(heap, 0)
        return first
    return item


CAPTURED: dict[Any, Any] = {
    heapq.heapify: heapify,
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
}
CODES = frozenset(f.__code__ for f in (_sift_down, _sift_up, refill, *CAPTURED.values()))
