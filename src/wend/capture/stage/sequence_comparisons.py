"""Comparisons of Python lists and tuples that hold traced values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from wend.capture.stage.truth import truth
from wend.eager.dispatch import Staged, any_staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
NAMES = frozenset({"Eq", "NotEq", *_ORDERS})


def compares_items(left: Any, name: str, right: Any) -> bool:
    """Return whether a comparison is one of two sequences of a class, with traced items."""
    is_of_sequences = type(left) in (list, tuple) and type(left) is type(right)
    return is_of_sequences and name in NAMES and any_staged((left, right))


def compare_items(left: Sequence[Any], name: str, right: Sequence[Any]) -> Any:
    """Return what Python's comparison of the sequences gives, without a look at traced items."""
    if name == "Eq":
        return _as_bool(_equal(left, right))
    if name == "NotEq":
        return _as_bool(_not(_equal(left, right)))
    result: Any = _ORDERS[name](len(left), len(right))
    for one, other in reversed(list(zip(left, right, strict=False))):
        is_same = are_equal(one, other)
        if is_same is True:
            continue
        if compares_items(one, name, other):
            order = compare_items(one, name, other)
        else:
            order = _truth(_ORDERS[name](one, other))
        result = order if is_same is False else ew.where(is_same, result, order)
    return _as_bool(result)


def _equal(left: Sequence[Any], right: Sequence[Any]) -> Any:
    if len(left) != len(right):
        return False
    result: Any = True
    for one, other in zip(left, right, strict=True):
        is_same = are_equal(one, other)
        if is_same is False:
            return False
        if is_same is not True:
            result = is_same if result is True else ew.logical_and(result, is_same)
    return result


def are_equal(one: Any, other: Any) -> Any:
    """Return whether two items count as equal: one object does, though it be NaN."""
    if one is other:
        return True
    if compares_items(one, "Eq", other):
        return _equal(one, other)
    return _truth(one == other)


def _truth(x: Any) -> Any:
    return truth(x) if isinstance(x, Staged) else bool(x)


def _not(x: Any) -> Any:
    return ew.logical_not(x) if isinstance(x, Staged) else not x


def _as_bool(x: Any) -> Any:
    return x.as_weak() if isinstance(x, Tracer) else x
