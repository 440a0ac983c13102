"""Assignments into arrays that Python knows, of values that are traced.

`out = np.zeros(3); out[0] = x` with a traced x: the array becomes a traced one first. A traced
array changes itself (D7).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.capture.places import touch_attribute, touch_contents
from wend.eager.dispatch import Staged, any_staged
from wend.trace.recording import current

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


def _traced_if(array: Any, *met: Any) -> Any:
    """A NumPy array as a traced one, if it meets traced things or has become one."""
    if not isinstance(array, np.ndarray) or not array.ndim:
        return array
    array = current_array(array)
    if isinstance(array, Staged) or not any_staged(met):
        return array
    recording = current()
    assert recording is not None
    return recording.promote(array)


def _changing(array: Any, *met: Any) -> Any:
    """What stands for an array that is about to change in place."""
    array = _traced_if(array, *met)
    if not isinstance(array, np.ndarray) or not array.ndim:
        return array
    recording = current()
    if recording is not None and (recording.is_region or recording.has_read(array)):
        # Only some runs change it; or what was computed from it has its old elements.
        return recording.promote(array)
    return array


def current_array(array: Any) -> Any:
    """The traced array that a NumPy array has become, for everyone who holds it; else itself."""
    recording = current()
    if recording is None or not isinstance(array, np.ndarray):
        return array
    found = recording.promoted(array)
    return array if found is None else found


def set_item(target: Any, key: Any, value: Any) -> Any:
    """`target[key] = value`; gives what the target's name should hold after it."""
    entries = key if isinstance(key, tuple) else (key,)
    target = _changing(target, value, *entries)
    target[key] = value
    return target


def set_item_in_place(target: Any, key: Any, name: str, value: Any) -> Any:
    """`target[key] += value`, and its kin."""
    entries = key if isinstance(key, tuple) else (key,)
    target = _changing(target, value, *entries)
    target[key] = _IN_PLACE[name](target[key], value)
    return target


def in_place(target: Any, name: str, value: Any) -> Any:
    """`target += value`, and its kin."""
    return _IN_PLACE[name](_changing(target, value), value)


def get_item(array: Any, key: Any) -> Any:
    """`array[key]`, also of an array that Python knows at a traced position."""
    if isinstance(array, np.ndarray):
        array = _traced_if(array, *(key if isinstance(key, tuple) else (key,)))
    return array[key]


# Parts of what an expression gives: `items[0].x = v`, `of()[0] += v`
def set_attribute(value: Any, owner: Any, name: str) -> None:
    """`owner.name = value`, the value first."""
    touch_attribute(lambda: owner, name, f"{type(owner).__name__}.{name}")
    setattr(owner, name, value)


def change_attribute(owner: Any, name: str, operator: str, value: Callable[[], Any]) -> None:
    """`owner.name += value`, and its kin."""
    old = getattr(owner, name)
    set_attribute(_IN_PLACE[operator](old, value()), owner, name)


def set_item_of(value: Any, owner: Any, key: Any) -> None:
    """`owner[key] = value`, the value first."""
    touch_contents(lambda: owner, f"a {type(owner).__name__}.")
    owner[key] = value


def change_item(owner: Any, key: Any, operator: str, value: Callable[[], Any]) -> None:
    """`owner[key] += value`, and its kin."""
    old = owner[key]
    set_item_of(_IN_PLACE[operator](old, value()), owner, key)
