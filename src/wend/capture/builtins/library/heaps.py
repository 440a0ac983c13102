"""`heapq` with traced items."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from wend.capture.builtins.builtins import sorted_of, stack_if_list
from wend.capture.builtins.library.heap_functions import CAPTURED
from wend.capture.stage.item_comparisons import holds_staged
from wend.capture.state import operands
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList

Call = Callable[..., Any]


def _is_traced(items: Any) -> bool:
    return isinstance(items, (Staged, TensorList)) or holds_staged(items)


def _changing(original: Call, function: Call) -> Call:
    """Return a function of `heapq` that changes a heap: `function`, captured, of traced items."""

    def run(*args: Any) -> Any:
        return (operands.call(function) if any(map(_is_traced, args)) else original)(*args)

    return run


def _extremes(original: Call, *, reverse: bool) -> Call:
    """Return `heapq.nlargest` or `nsmallest`, which are the first items in sorted order."""

    def run(n: Any, iterable: Any, key: Call | None = None) -> Any:
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
