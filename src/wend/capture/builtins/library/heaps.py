"""`heapq` with traced items: the largest and smallest, and what the heap itself refuses."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.builtins import sorted_of, stack_if_list
from wend.capture.stage.item_comparisons import holds_staged
from wend.capture.state.paths import deciding_test
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current

Call = Callable[..., Any]
_CURE = (
    "keep the items in an array of fixed size, with np.inf at those that are taken: "
    "k = np.argmin(items); items[k] = np.inf. Or keep the list sorted: "
    "items = sorted([*items, x])."
)


def _is_traced(items: Any) -> bool:
    return isinstance(items, (Staged, TensorList)) or holds_staged(items)


def _comparing(original: Call) -> Call:
    """Return a function of `heapq` that compares items; outside of loops a trace may know how."""

    def refusal() -> ConcreteValueError:
        what = f"heapq.{original.__name__}{at(user_source())} of traced items is not recorded: "
        return ConcreteValueError(
            explain(f"{what}their order in the heap is only known when it runs.", cure=_CURE)
        )

    def run(*args: Any) -> Any:
        recording = current()
        if recording is not None and recording.is_region and any(map(_is_traced, args)):
            raise refusal()
        try:
            return original(*args)
        except ConcreteValueError as error:
            if deciding_test(error) is None:
                raise refusal() from None
            raise

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


_CHANGING = heapq.heapify, heapq.heappush, heapq.heappop, heapq.heappushpop, heapq.heapreplace
REPLACED: dict[Call, Call] = {original: _comparing(original) for original in _CHANGING} | {
    heapq.nlargest: _extremes(heapq.nlargest, reverse=True),
    heapq.nsmallest: _extremes(heapq.nsmallest, reverse=False),
}
