"""Comparisons of Python lists, tuples, dicts and dataclasses that hold traced values."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from wend.base.instances import class_with_generated, compared_fields
from wend.capture.guards.reads import static_attribute
from wend.capture.stage.branches import if_value
from wend.capture.stage.truth import truth
from wend.capture.state import operands
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.state import templates
from wend.trace.state.text_choice import TextChoice

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
NAMES = frozenset({"Eq", "NotEq", *_ORDERS})
_METHODS = {"Lt": "__lt__", "LtE": "__le__", "Gt": "__gt__", "GtE": "__ge__"}
# Since Python 3.13 `==` joins the comparisons of the fields by `and`, as that of attrs always
# does: NaN is unequal to itself
_EQUALS_BY_AND = sys.version_info >= (3, 13)


def compares_items(left: Any, name: str, right: Any) -> bool:
    """Return whether lists, tuples, dicts or objects are compared by items that need a trace.

    These are traced values, and objects whose class the user tells how to compare.
    """
    if name not in NAMES:
        return False
    is_of_dicts = type(left) is type(right) is dict and name in ("Eq", "NotEq")
    has_items = (
        is_of_dicts or _are_sequences(left, right) or _field_names(left, name, right) is not None
    )
    return has_items and (holds_staged((left, right)) or asks_users((left, right), name))


def _are_sequences(left: Any, right: Any) -> bool:
    """Return whether both are lists or both are tuples, also of classes that compare as these."""
    for base in (list, tuple):
        if isinstance(left, base) and isinstance(right, base):
            return all(
                getattr(type(x), method) is getattr(base, method)
                for x in (left, right)
                for method in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
            )
    return False


def compare_items(left: Any, name: str, right: Any) -> Any:
    """Return what Python's comparison gives, without a look at traced items."""
    if name == "Eq":
        return _as_bool(_equal(left, right))
    if name == "NotEq":
        return _as_bool(_not(_equal(left, right)))
    return _as_bool(_ordered(name, *_items(left, name, right)))


def _ordered(name: str, left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Return the order of two sequences: the first items that differ decide."""
    if not _are_numbers((*left, *right)):
        return _ordered_in_turn(name, left, right)
    result: Any = _ORDERS[name](len(left), len(right))
    for one, other in reversed(list(zip(left, right, strict=False))):
        is_same = are_equal(one, other)
        if is_same is not True:
            order = _order(name, one, other)
            result = order if is_same is False else ew.where(is_same, result, order)
    return result


def _ordered_in_turn(name: str, left: Sequence[Any], right: Sequence[Any]) -> Any:
    """Return the order of two sequences; no item after one that differs is compared."""
    for k, (one, other) in enumerate(zip(left, right, strict=False)):
        is_same = are_equal(one, other)
        if is_same is False:
            return _order(name, one, other)
        if is_same is not True:
            following = partial(_ordered, name, left[k + 1 :], right[k + 1 :])
            return if_value(is_same, following, partial(_order, name, one, other), None, "<")
    return _ORDERS[name](len(left), len(right))


def _order(name: str, one: Any, other: Any) -> Any:
    if compares_items(one, name, other):
        return compare_items(one, name, other)
    return _truth(operands.compared(name, one, other))


def _are_numbers(items: Sequence[Any]) -> bool:
    """Return whether all items may be compared, whatever items before them are."""
    return all(isinstance(x, (Staged, int, float)) for x in items)


def _items(left: Any, name: str, right: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what the comparison compares item by item."""
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return (), (None,)
        return tuple(left.values()), tuple(right[key] for key in left)
    names = _field_names(left, name, right)
    return (left, right) if names is None else (_fields(left, names), _fields(right, names))


def _equal(left: Any, right: Any) -> Any:
    by_identity = _equals_by_identity(left)
    if left is right and not by_identity and hasattr(type(left), "__dataclass_fields__"):
        return True  # as their `__eq__` says first; that of attrs does not
    left, right = _items(left, "Eq", right)
    if len(left) != len(right):
        return False
    return _all_equal(list(zip(left, right, strict=True)), by_identity)


def _all_equal(pairs: Sequence[tuple[Any, Any]], by_identity: bool) -> Any:
    """Return whether the items of all pairs are equal; the user's code compares none after."""
    result: Any = True
    for k, (one, other) in enumerate(pairs):
        is_same = are_equal(one, other, by_identity)
        if is_same is False:
            return False
        if is_same is True:
            continue
        result = is_same if result is True else ew.logical_and(result, is_same)
        following = pairs[k + 1 :]
        if asks_users(following, "Eq"):
            others = partial(_all_equal, following, by_identity)
            return if_value(result, others, lambda: False, None, "==")
    return result


def are_equal(one: Any, other: Any, by_identity: bool = True) -> Any:
    """Return whether two items count as equal: one object does, though it be NaN."""
    if one is other and by_identity:
        return True
    if compares_items(one, "Eq", other):
        return _equal(one, other)
    return _truth(operands.compared("Eq", one, other))


def _truth(x: Any) -> Any:
    return truth(x) if isinstance(x, Staged) else bool(x)


def _not(x: Any) -> Any:
    return ew.logical_not(x) if isinstance(x, Staged) else not x


def _as_bool(x: Any) -> Any:
    return x.as_weak() if isinstance(x, Tracer) else x


# Dataclasses, and classes of attrs
def _field_names(left: Any, name: str, right: Any) -> tuple[str, ...] | None:
    """Return the fields that a comparison of two objects compares, or None if it is another."""
    kind = cast(Any, type(left))
    if type(right) is not type(left) or not _has_fields(kind):
        return None
    if name in _METHODS:
        return _fields_of(kind, _METHODS[name])
    has_own_ne = kind.__ne__ is not object.__ne__ and not class_with_generated(kind, "__ne__")
    if name == "NotEq" and has_own_ne:
        return None
    names = _fields_of(kind, "__eq__") if name in ("Eq", "NotEq") else None
    if not _equals_by_identity(left) and any(
        _is_array(static_attribute(left, n)) for n in names or ()
    ):
        return None  # the result may be an array
    return names


def _has_fields(kind: type) -> bool:
    return hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")


def _fields_of(kind: type, method: str) -> tuple[str, ...] | None:
    """Return the fields that a generated method compares."""
    templates.attribute_of(kind, method)  # a read of the trace: another call may find another
    owner = class_with_generated(kind, method)
    return None if owner is None else compared_fields(owner, by_order=method != "__eq__")


def _fields(owner: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of fields, as reads of the trace."""
    return tuple(templates.attribute_of(owner, name) for name in names)


def _equals_by_identity(left: Any) -> bool:
    """Return whether two items that are one object are equal without a comparison."""
    kind = type(left)
    return not (hasattr(kind, "__attrs_attrs__") or (_EQUALS_BY_AND and _has_fields(kind)))


def holds_staged(x: Any) -> bool:
    """Return whether a traced value is in lists, tuples, dicts and fields of dataclasses."""
    return any(isinstance(part, (Staged, TextChoice)) for part in _parts(x, set()))


def asks_users(x: Any, name: str = "Eq") -> bool:
    """Return whether a method of the user's may compare a value, or one that it holds."""
    methods = {"__eq__", _METHODS.get(name, "__eq__")}
    return any(operands.is_users(part, m) for part in _parts(x, set()) for m in methods)


def _parts(x: Any, seen: set[int]) -> Iterator[Any]:
    """Yield a value, and what it holds in lists, tuples, dicts and fields that are compared."""
    yield x
    parts: Any = x if isinstance(x, (list, tuple)) else _compared_parts(x)
    if isinstance(x, dict):
        parts = x.values()
    if parts is not None and id(x) not in seen:
        seen.add(id(x))
        for part in parts:
            yield from _parts(part, seen)


def _compared_parts(x: Any) -> list[Any] | None:
    if isinstance(x, (Staged, type)) or not _has_fields(type(x)):
        return None
    names = {*(_field_names(x, "Eq", x) or ()), *(_field_names(x, "Lt", x) or ())}
    return [static_attribute(x, name) for name in names]


def _is_array(x: Any) -> bool:
    return getattr(x, "shape", ()) != ()
