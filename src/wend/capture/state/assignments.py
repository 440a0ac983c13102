"""Assignments into arrays that Python knows, of values that are traced.

Arrays made by calls in captured code see to it themselves (`trace/known_array.py`), and so do
traced ones (D7). What is left are those that operators made, and those of outside.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.capture.heap.locations import log_write_attribute, log_write_contents, references_of_logs
from wend.capture.state import one_shot_iterators
from wend.capture.state.traced_index import item_at
from wend.eager.dispatch import any_staged
from wend.numpy import parts
from wend.trace.arrays.concrete_array import adopt, made_elsewhere
from wend.trace.recording.recording import current

_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
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


def _changeable(array: Any, met: tuple[Any, ...] = ()) -> Any:
    """An array that is about to change in place, as one that can: others become known ones.

    Raises:
        TypeMismatchError: only the run knows how it changes, and it is an array of outside.
    """
    recording = current()
    if recording is None or type(array) is not np.ndarray or not array.ndim:
        return array
    depends = any_staged(met) or any(map(parts.is_staged_key, met))
    if not (depends or recording.is_region):
        return array
    if array.base is not None or sys.getrefcount(array) > _SOLE + references_of_logs(array):
        raise made_elsewhere(array)
    return adopt(array)


def _references(array: Any) -> int:
    return sys.getrefcount(array)


def _references_of(target: Any) -> int:
    return _references(target)


def _of_a_variable() -> int:
    array = np.zeros(1)
    return _references_of(array)


# How often an array is referred to in `_changeable` that one variable holds, and nobody else.
_SOLE = _of_a_variable()


def set_item(target: Any, key: Any, value: Any) -> Any:
    """`target[key] = value`; gives what the target's name should hold after it."""
    if isinstance(key, slice):
        one_shot_iterators.taken_from(value)
    target = _changeable(target, (value, key))
    target[key] = value
    return target


def set_item_in_place(target: Any, key: Any, name: str, value: Any) -> Any:
    """`target[key] += value`, and its kin."""
    target = _changeable(target, (value, key))
    target[key] = _IN_PLACE[name](target[key], value)
    return target


def in_place(target: Any, name: str, value: Any) -> Any:
    """`target += value`, and its kin."""
    return _IN_PLACE[name](_changeable(target, (value,)), one_shot_iterators.taken_from(value))


def get_item(array: Any, key: Any) -> Any:
    """`array[key]`, also of what Python knows at a traced position."""
    if type(array) in (list, tuple):
        return item_at(array, key)
    recording = current()
    if recording is None or type(array) is not np.ndarray or not parts.is_staged_key(key):
        return array[key]
    traced = recording.wrap(recording.lift(array))
    traced.look_at(array)  # in NumPy, changing a part would change the array
    return traced[key]


# Parts of what an expression gives: `items[0].x = v`, `of()[0] += v`
def set_attribute(value: Any, owner: Any, name: str) -> None:
    """`owner.name = value`, the value first."""
    log_write_attribute(lambda: owner, name, f"{type(owner).__name__}.{name}")
    setattr(owner, name, value)


def change_attribute(owner: Any, name: str, operator: str, value: Callable[[], Any]) -> None:
    """`owner.name += value`, and its kin."""
    old = getattr(owner, name)
    set_attribute(_IN_PLACE[operator](old, value()), owner, name)


def set_item_of(value: Any, owner: Any, key: Any) -> None:
    """`owner[key] = value`, the value first."""
    log_write_contents(lambda: owner, f"a {type(owner).__name__}.")
    owner[key] = value


def change_item(owner: Any, key: Any, operator: str, value: Callable[[], Any]) -> None:
    """`owner[key] += value`, and its kin."""
    old = owner[key]
    set_item_of(_IN_PLACE[operator](old, value()), owner, key)
