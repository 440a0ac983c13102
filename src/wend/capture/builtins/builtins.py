"""What Python's builtin functions become where they are given traced values."""

from __future__ import annotations

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.rounding import rounded
from wend.capture.stage.branches import if_value
from wend.capture.stage.iterables import TracedRange, backwards
from wend.capture.stage.truth import truth
from wend.eager.dispatch import Staged
from wend.eager.promotion import is_weak
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.state import effects

_KINDS: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}


def weak(result: Any) -> Any:
    """A traced scalar as a Python number, which takes the dtype of what it meets (D4)."""
    if isinstance(result, Tracer) and result.type.shape == ():
        return type(result)(result.value, result.recording, weak=True)
    return result


def as_array_of(xs: Any) -> Any:
    """A traced list as the array of its items; anything else as it is."""
    return xs.stack() if isinstance(xs, TensorList) else xs


# Of one value
def length(x: Any) -> Any:
    """`len(x)`."""
    if isinstance(x, TensorList):
        return x.length()
    if isinstance(x, TracedRange):
        return weak(x.count())
    if not shaping.rank_of(x):
        raise TypeError("len() of unsized object")
    return weak(shaping.shape(x)[0])


def to_float(x: Any) -> Any:
    """`float(x)`."""
    return weak(shaping.astype(x, np.float64))


def to_int(x: Any) -> Any:
    """`int(x)`."""
    return weak(shaping.astype(x, np.int64))


def to_bool(x: Any) -> Any:
    """`bool(x)`."""
    if isinstance(x, (TensorList, TracedRange)):
        return length(x) > 0
    return weak(truth(x))


def to_complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """`complex(real, imag)`."""
    if type(imag) is float and imag == 0.0:
        return weak(shaping.astype(real, np.complex128))
    return weak(real + 1j * imag)


def round(x: Any, digits: int | None = None) -> Any:
    """`round(x, digits)`."""
    if digits is None:
        return to_int(ew.rint(x))
    return rounded(x, digits) if is_weak(x) else ew.rint(x * 10.0**digits) / 10.0**digits


def kind_of(x: Any) -> type:
    """`type(x)`: Python's types for its numbers, NumPy's for others."""
    if not isinstance(x, Staged):
        return list if isinstance(x, TensorList) else type(x)
    if x.type.shape != ():
        return np.ndarray
    return _KINDS[x.type.dtype.kind] if x.weak else x.type.dtype.type


def is_instance(x: Any, kinds: Any) -> bool:
    """`isinstance(x, kinds)`: a traced value is what it stands for."""
    if not isinstance(x, (Staged, TensorList)):
        return isinstance(x, kinds)
    return issubclass(kind_of(x), kinds) or (isinstance(x, kinds) and _names_own(kinds))


def _names_own(kinds: Any) -> bool:
    """Whether classes of wend are asked for."""
    if isinstance(kinds, types.UnionType):
        kinds = kinds.__args__
    if isinstance(kinds, tuple):
        return any(map(_names_own, kinds))
    return issubclass(kinds, (Staged, TensorList))


def power(x: Any, y: Any, mod: Any = None) -> Any:
    """`pow(x, y, mod)`."""
    if mod is None:
        return x**y
    raise TypeError(
        explain(
            f"pow{at(user_source())} of traced values takes no modulus: its integers are "
            "unbounded in Python, and have 64 bits here.",
            cure="write the loop that squares and takes remainders.",
        )
    )


# Of many values
def total(xs: Any, start: Any = 0) -> Any:
    """`sum(xs, start)`."""
    if isinstance(xs, TensorList):
        return reducing.sum(xs.stack(), 0) + start
    for x in xs:
        start = start + x
    return start


def extreme(name: str, compare: Callable[[Any, Any], Any], reduce: Callable[..., Any]) -> Any:
    """`min` or `max`: the first of the items that no other one is before."""
    original = getattr(builtins, name)

    def run(*xs: Any, key: Any = None, **default: Any) -> Any:
        if len(xs) == 1 and key is None and isinstance(xs[0], (Staged, TensorList)):
            return reduce(as_array_of(xs[0]))
        items = [*as_array_of(xs[0])] if len(xs) == 1 else xs
        keys = items if key is None else [*map(key, items)]
        if len(items) < 2 or not any(map(_holds_staged, (*items, *keys))):
            return original(items, key=key, **default)
        if any(isinstance(own, (list, tuple)) for own in keys):
            raise StructureError(
                explain(
                    f"{name}{at(user_source())} compares lists or tuples of traced values.",
                    cure="give it a key= that is one number.",
                )
            )
        best, best_key = items[0], keys[0]
        for item, own in zip(items[1:], keys[1:], strict=True):
            is_before = compare(own, best_key)
            best_key = _either(is_before, own, best_key)
            best = best_key if key is None else _either(is_before, item, best)
        return best

    return run


def _holds_staged(x: Any) -> bool:
    return isinstance(x, Staged) or (isinstance(x, tuple) and any(map(_holds_staged, x)))


def _either(test: Any, then: Any, other: Any) -> Any:
    if not isinstance(test, Staged):
        return then if test else other
    if any(isinstance(x, (list, tuple, dict)) for x in (then, other)):
        return if_value(test, lambda: then, lambda: other, None)
    found = ew.where(truth(test), then, other)
    return weak(found) if is_weak(then) and is_weak(other) else found


def some(xs: Any) -> Any:
    """`any(xs)`: every item is looked at, for which one holds is known only when it runs."""
    xs = as_array_of(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return weak(reducing.any(xs)) if is_row else _decided(xs, True, ew.logical_or)


def every(xs: Any) -> Any:
    """`all(xs)`, in the same way."""
    xs = as_array_of(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return weak(reducing.all(xs)) if is_row else _decided(xs, False, ew.logical_and)


def _decided(xs: Any, by: bool, join: Callable[[Any, Any], Any]) -> Any:
    found: Any = not by
    for x in xs:
        if isinstance(x, Staged):
            found = truth(x) if isinstance(found, bool) else join(found, truth(x))
        elif bool(x) is by:
            return by
    return weak(found)


def in_order(xs: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
    """`sorted(xs)`."""
    items = [*as_array_of(xs)]
    keys = items if key is None else [*map(key, items)]
    if not any(map(_holds_staged, keys)):
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[k] for k in order]
    if any(isinstance(x, (list, tuple, dict)) for x in (*items, *keys)):
        raise StructureError(
            explain(
                f"sorted{at(user_source())} would put lists or tuples in an order that is only "
                "known when it runs.",
                cure="keep an array for each part, and order them by wnp.argsort: x[order].",
            )
        )
    if reverse:  # equal ones stay in their order
        items, keys = items[::-1], keys[::-1]
    order = reducing.argsort(shaping.stack(keys), stable=True)
    if reverse:
        order = order[::-1]
    found = indexing.take(shaping.stack(items), order, axis=0)
    scalars = all(map(is_weak, items))
    return [weak(x) if scalars else x for x in found]


def turned(xs: Any) -> Any:
    """`reversed(xs)`."""
    return backwards(xs) if isinstance(xs, TracedRange) else xs[::-1]


STAGED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.len: length,
    builtins.float: to_float,
    builtins.int: to_int,
    builtins.bool: to_bool,
    builtins.complex: to_complex,
    builtins.round: round,
    builtins.pow: power,
    builtins.sum: total,
    builtins.min: extreme("min", operator.lt, reducing.min),
    builtins.max: extreme("max", operator.gt, reducing.max),
    builtins.sorted: in_order,
    builtins.print: effects.print,
    builtins.range: TracedRange,
}
