"""Comparisons of Python lists, tuples, dicts and dataclasses that hold traced values."""

from __future__ import annotations

import dataclasses
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from wend.base.instances import class_with_generated
from wend.capture.guards.reads import static_attribute
from wend.capture.stage.truth import truth
from wend.capture.state import operands
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.state import templates

_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
NAMES = frozenset({"Eq", "NotEq", *_ORDERS})
_METHODS = {"Lt": "__lt__", "LtE": "__le__", "Gt": "__gt__", "GtE": "__ge__"}
# Since Python 3.13 `==` joins the comparisons of the fields by `and`: NaN is unequal to itself
_EQUALS_BY_AND = sys.version_info >= (3, 13)


def compares_items(left: Any, name: str, right: Any) -> bool:
    """Return whether two lists, tuples, dicts or dataclasses are compared, with traced items."""
    if name not in NAMES:
        return False
    is_of_dicts = type(left) is type(right) is dict and name in ("Eq", "NotEq")
    has_items = (
        is_of_dicts or _are_sequences(left, right) or _field_names(left, name, right) is not None
    )
    return has_items and (holds_staged(left) or holds_staged(right))


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
    left, right = _items(left, name, right)
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
    if left is right and not by_identity:
        return True
    left, right = _items(left, "Eq", right)
    if len(left) != len(right):
        return False
    result: Any = True
    for one, other in zip(left, right, strict=True):
        is_same = are_equal(one, other, by_identity)
        if is_same is False:
            return False
        if is_same is not True:
            result = is_same if result is True else ew.logical_and(result, is_same)
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


# Dataclasses
def _field_names(left: Any, name: str, right: Any) -> tuple[str, ...] | None:
    """Return the fields that a comparison of two objects compares, or None if it is another."""
    kind = cast(Any, type(left))
    if type(right) is not type(left) or not hasattr(kind, "__dataclass_fields__"):
        return None
    if name in _METHODS:
        return _fields_of(kind, _METHODS[name])
    if name == "NotEq" and kind.__ne__ is not object.__ne__:
        return None
    names = _fields_of(kind, "__eq__") if name in ("Eq", "NotEq") else None
    if _EQUALS_BY_AND and any(_is_array(static_attribute(left, n)) for n in names or ()):
        return None  # the result may be an array
    return names


def _fields_of(kind: type, method: str) -> tuple[str, ...] | None:
    """Return the fields that a generated method compares."""
    templates.attribute_of(kind, method)  # a read of the trace: another call may find another
    owner = class_with_generated(kind, method)
    if owner is None or "__dataclass_fields__" not in vars(owner):
        return None
    return tuple(field.name for field in dataclasses.fields(owner) if field.compare)


def _fields(owner: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the values of fields, as reads of the trace."""
    return tuple(templates.attribute_of(owner, name) for name in names)


def _equals_by_identity(left: Any) -> bool:
    """Return whether two fields that are one object are equal without a comparison."""
    return not (_EQUALS_BY_AND and hasattr(type(left), "__dataclass_fields__"))


def holds_staged(x: Any) -> bool:
    """Return whether a traced value is in lists, tuples, dicts and fields of dataclasses."""
    return any(isinstance(leaf, Staged) for leaf in _leaves(x, set()))


def _leaves(x: Any, seen: set[int]) -> Iterator[Any]:
    parts: Any = x if isinstance(x, (list, tuple)) else _compared_parts(x)
    if isinstance(x, dict):
        parts = x.values()
    if parts is None:
        yield x
    elif id(x) not in seen:
        seen.add(id(x))
        for part in parts:
            yield from _leaves(part, seen)


def _compared_parts(x: Any) -> list[Any] | None:
    if isinstance(x, (Staged, type)) or not hasattr(type(x), "__dataclass_fields__"):
        return None
    names = {*(_field_names(x, "Eq", x) or ()), *(_field_names(x, "Lt", x) or ())}
    return [static_attribute(x, name) for name in names]


def _is_array(x: Any) -> bool:
    return getattr(x, "shape", ()) != ()
