"""`bisect` with traced values: where a number belongs in a list, as Python's search finds it."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.conversions import as_weak
from wend.capture.state import operands
from wend.eager.dispatch import any_staged
from wend.eager.promotion import is_weak, tensor_type
from wend.numpy import creating, reducing
from wend.numpy import elementwise as ew
from wend.trace.control.tensor_list import TensorList

# Whether a number belongs after an item
Test = Callable[[Any, Any], Any]


def _staged(function: Callable[..., Any], belongs_after: Test) -> Callable[..., Any]:
    """Return a function of `bisect` for a list or a number that is traced."""

    def run(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> Any:
        if key is not None or hi is not None or lo != 0:
            raise UnsupportedError(
                explain(
                    f"{function.__name__}{at(user_source())} of traced values takes no lo, hi or "
                    "key.",
                    cure="take the part of the list, or the keys, before.",
                )
            )
        if isinstance(a, (list, tuple)) and not a:
            return 0
        if isinstance(a, TensorList):
            return operands.call(_search)(a, x, belongs_after)
        tests = _tests(a, x, belongs_after)
        # In a sorted list the position is a count of items.
        return as_weak(reducing.sum(tests) if _is_sorted(a) else _searched(tests))

    return run


def _tests(a: Any, x: Any, belongs_after: Test) -> Any:
    """Return for each item whether the number belongs after it."""
    kinds = {type(item) for item in a} if isinstance(a, (list, tuple)) else set()
    is_uniform = kinds in ({float}, {int}) and is_weak(x)
    if isinstance(a, (list, tuple)) and a and not (is_uniform and _is_of_kind(x, *kinds)):
        # Python compares numbers of two kinds exactly; arrays have one.
        return creating.asarray([belongs_after(item, x) for item in a])
    return belongs_after(creating.asarray(a) if any_staged((a,)) else np.asarray(a), x)


def _is_of_kind(x: Any, kind: type) -> bool:
    return tensor_type(x).dtype == np.dtype(kind)


def _is_sorted(a: Any) -> bool:
    is_known = isinstance(a, (list, tuple)) and not any_staged(a)
    return is_known and all(one <= other for one, other in pairwise((-np.inf, *a)))


def _searched(tests: Any) -> Any:
    """Return where Python's binary search ends, whose items may be in any order."""
    count = operator.index(tests.shape[0])
    low: Any = np.int64(0)
    high: Any = np.int64(count)
    for _ in range(count.bit_length()):
        middle = (low + high) // 2
        is_after = tests[ew.minimum(middle, count - 1)]
        is_open = low < high
        low, high = (
            ew.where(ew.logical_and(is_open, is_after), middle + 1, low),
            ew.where(ew.logical_and(is_open, ew.logical_not(is_after)), middle, high),
        )
    return low


def _is_above(item: Any, x: Any) -> Any:
    return item < x


def _is_not_below(item: Any, x: Any) -> Any:
    return ew.logical_not(x < item)


def _inserting(search: Callable[..., Any]) -> Callable[..., Any]:
    """Return `insort` for a list or a number that is traced, by its search for the position."""

    def run(a: Any, x: Any, lo: Any = 0, hi: Any = None, *, key: Any = None) -> None:
        operands.call(a.insert)(search(a, x, lo, hi, key=key), x)

    return run


def _search(items: Any, x: Any, belongs_after: Test) -> Any:
    """Return a position in a list whose length only the run knows: a loop of the run."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if belongs_after(items[middle], x):
            low = middle + 1
        else:
            high = middle
    return low


_left = _staged(bisect.bisect_left, _is_above)
_right = _staged(bisect.bisect_right, _is_not_below)
STAGED: dict[Callable[..., Any], Callable[..., Any]] = {
    bisect.bisect_left: _left,
    bisect.bisect_right: _right,  # also called `bisect`
    bisect.insort_left: _inserting(_left),
    bisect.insort_right: _inserting(_right),  # also called `insort`
}
CODES = frozenset({_search.__code__})
