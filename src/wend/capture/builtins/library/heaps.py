"""`heapq` with traced items."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.base import trees
from wend.base.context_values import scoped
from wend.capture.builtins.builtins import sorted_of, stack_if_list
from wend.capture.builtins.grown_lists import is_ordered_here, sorted_list
from wend.capture.builtins.library.heap_functions import CAPTURED, refill
from wend.capture.lookups.traced_index import python_may_run
from wend.capture.stage.item_comparisons import holds_staged
from wend.capture.state import operands
from wend.capture.state.state import is_carried
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.arguments import leaf_type

Call = Callable[..., Any]


def _is_traced(items: Any) -> bool:
    return isinstance(items, (Staged, TensorList)) or holds_staged(items)


def _changing(original: Call, function: Call) -> Call:
    """Return a function of `heapq` that changes a heap: `function`, captured, of traced items."""

    def run(*args: Any) -> Any:
        if not any(map(_is_traced, args)):
            return original(*args)
        heap, *item = args
        if not isinstance(heap, (list, TensorList)):
            return original(*args)  # Python's error
        call = operands.call(function)
        with scoped(python_may_run, False):  # a loop over positions is recorded once for all
            if type(heap) is not list or len(heap) < MIN_LISTED or not are_alike([*heap, *item]):
                return call(*args)
            listed = TensorList.of(heap, heap[-1:])
            result = call(listed, *item)
            length = len(heap) + _GROWTH.get(original, 0)
            operands.call(refill)(heap, [listed[k] for k in range(length)])
            return result

    return run


# What a function adds to the number of items
_GROWTH: Mapping[Call, int] = {heapq.heappush: 1, heapq.heappop: -1}
# In a list that the trace knows, a move to a traced position is a choice for each item. That is
# less than a loop only for few.
MIN_LISTED = 6


def are_alike(items: Sequence[Any]) -> bool:
    """Return whether items are numbers, or tuples of numbers, of the same types."""
    if not all(map(is_carried, items)):
        return False
    leaves, structures = zip(*map(trees.flatten, items), strict=True)
    if not all(trees.is_same_structure(structures[0], other) for other in structures):
        return False
    types = [{*map(leaf_type, column)} for column in zip(*leaves, strict=True)]
    return all(len(of_column) == 1 and of_column.pop().type.shape == () for of_column in types)


def _extremes(original: Call, *, reverse: bool) -> Call:
    """Return `heapq.nlargest` or `nsmallest`, which are the first items in sorted order."""

    def run(n: Any, iterable: Any, key: Call | None = None) -> Any:
        if is_ordered_here(iterable, key):
            return sorted_list(iterable, key, reverse=reverse)[: max(n, 0)]
        key = key and operands.call(key)
        items: Any = stack_if_list(iterable)
        items = items if isinstance(items, (Staged, list, tuple)) else [*items]
        if not _is_traced(items) and (key is None or not any(map(_is_traced, map(key, items)))):
            return original(n, items, key)
        return sorted_of(items, key=key, reverse=reverse)[: max(n, 0)]

    return run


REPLACED: dict[Call, Call] = {
    **{original: _changing(original, function) for original, function in CAPTURED.items()},
    heapq.nlargest: _extremes(heapq.nlargest, reverse=True),
    heapq.nsmallest: _extremes(heapq.nsmallest, reverse=False),
}
