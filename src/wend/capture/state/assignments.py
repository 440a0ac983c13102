"""Assignments of traced values into concrete arrays.

Arrays that calls in captured code create handle this themselves
(`trace/arrays/concrete_array.py`), and so do traced arrays (D7). Left are the arrays that
operators create, and those from outside.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.capture.guards.guards import guard_setter
from wend.capture.guards.outside import entered_items, loaded_item, read_missing_item
from wend.capture.heap.locations import (
    UNBOUND,
    count_log_references,
    evaluate,
    is_write_logged,
    log_write_attribute,
    log_write_contents,
)
from wend.capture.state import one_shot_iterators
from wend.capture.state.traced_index import item_at
from wend.eager.dispatch import Staged, any_staged
from wend.numpy import parts
from wend.numpy.concatenators import Concatenator, concatenated
from wend.trace.arrays.concrete_array import ConcreteTracedArray, adopt, promotion_error
from wend.trace.recording.recording import current

IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "MatMult": operator.imatmul,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
}


def _writable(array: Any, operands: tuple[Any, ...] = ()) -> Any:
    """Return an array that is about to be updated in place, adopted as a concrete traced array.

    Raises:
        TypeMismatchError: the update depends on traced values, and the array is from outside.
    """
    recording = current()
    if recording is None or type(array) is not np.ndarray or not array.ndim:
        return array
    is_data_dependent = any_staged(operands) or any(map(parts.is_staged_key, operands))
    if not (is_data_dependent or recording.is_region):
        return array
    if array.base is not None or sys.getrefcount(
        array
    ) > _SOLE_REFERENCE_COUNT + count_log_references(array):
        raise promotion_error(array)
    return adopt(array)


def _reference_count(array: Any) -> int:
    return sys.getrefcount(array)


def _reference_count_of(target: Any) -> int:
    return _reference_count(target)


def _reference_count_of_variable() -> int:
    array = np.zeros(1)
    return _reference_count_of(array)


# The reference count in `_writable` of an array that one variable alone holds.
_SOLE_REFERENCE_COUNT = _reference_count_of_variable()


def set_item(target: Any, key: Any, value: Any) -> Any:
    """Run `target[key] = value`; return the new value of the target's name."""
    if isinstance(key, slice):
        one_shot_iterators.consume(value)
    target = _writable(target, (value, key))
    target[key] = value
    return target


def set_item_in_place(target: Any, key: Any, name: str, value: Any) -> Any:
    """Run `target[key] += value`, or another in-place operator."""
    target = _writable(target, (value, key))
    target[key] = IN_PLACE[name](target[key], value)
    return target


def in_place(target: Any, name: str, value: Any) -> Any:
    """Run `target += value`, or another in-place operator."""
    return IN_PLACE[name](_writable(target, (value,)), one_shot_iterators.consume(value))


def get_item(array: Any, key: Any, is_base: bool = False, /) -> Any:
    """Return `array[key]`, also for a concrete array and a traced key."""
    if type(array) is np.ndarray:
        array = entered_items(array)
    kind = type(array)
    if issubclass(kind, Staged):
        return array[key]
    take: Callable[[Any, Any], Any] | None = None
    if kind in (list, tuple):
        take = item_at
    elif kind is not np.ndarray or array.dtype.hasobject:
        take = operator.getitem
    if isinstance(array, Concatenator) and (any_staged((key,)) or parts.is_staged_key(key)):
        return concatenated(array, key)
    if take is not None:
        try:
            item = take(array, key)
        except (KeyError, IndexError):
            read_missing_item(array, key)
            raise
        return loaded_item(array, key, item, is_base=is_base)
    recording = current()
    if recording is None or type(array) is not np.ndarray or not parts.is_staged_key(key):
        return array[key]
    tracer = recording.wrap(recording.lift(array))
    tracer.link_view(array)  # in NumPy, a write to the item would change the array
    return tracer[key]


# Targets in the value of an expression: `items[0].x = v`, `of()[0] += v`
def note_attribute_write(owner: Callable[[], Any], name: str, label: str) -> None:
    """Note that an attribute is about to be written, and guard what its setter reads."""
    if not is_write_logged():
        return
    target = evaluate(owner)
    if isinstance(target, Staged) or (name == "flat" and type(target) is ConcreteTracedArray):
        return  # it records its changes
    if target is not UNBOUND:
        guard_setter(target, name)
    log_write_attribute(owner, name, label)


def set_item_of(value: Any, owner: Any, key: Any) -> None:
    """Run `owner[key] = value`, with `value` evaluated first."""
    log_write_contents(lambda: owner, f"a {type(owner).__name__}.", is_store=True)
    owner[key] = value


def change_item(owner: Any, key: Any, operator: str, value: Callable[[], Any]) -> None:
    """Run `owner[key] += value`, or another in-place operator."""
    old = owner[key]
    set_item_of(IN_PLACE[operator](old, value()), owner, key)
