"""Implementations of the Python builtins for traced values."""

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
from wend.capture.stage.iterables import TracedRange
from wend.capture.stage.truth import truth
from wend.eager.dispatch import Staged
from wend.eager.promotion import is_weak
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.state import effects

_PYTHON_TYPES: dict[str, type] = {"f": float, "i": int, "u": int, "b": bool, "c": complex}


def as_weak(result: Any) -> Any:
    """Return a traced scalar as a Python number, which takes the dtype of its operands (D4)."""
    if isinstance(result, Tracer) and result.type.shape == ():
        return type(result)(result.value, result.recording, weak=True)
    return result


def stack_if_list(xs: Any) -> Any:
    """Return a traced list as the array of its items, and other values unchanged."""
    return xs.stack() if isinstance(xs, TensorList) else xs


# Functions of one value
def length(x: Any) -> Any:
    """Return `len(x)`."""
    if isinstance(x, TensorList):
        return x.length()
    if isinstance(x, TracedRange):
        return as_weak(x.count())
    if not shaping.rank_of(x):
        raise TypeError("len() of unsized object")
    return as_weak(shaping.shape(x)[0])


def to_float(x: Any) -> Any:
    """Return `float(x)`."""
    return as_weak(shaping.astype(x, np.float64))


def to_int(x: Any) -> Any:
    """Return `int(x)`."""
    return as_weak(shaping.astype(x, np.int64))


def to_bool(x: Any) -> Any:
    """Return `bool(x)`."""
    if isinstance(x, (TensorList, TracedRange)):
        return length(x) > 0
    return as_weak(truth(x))


def to_complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """Return `complex(real, imag)`."""
    if type(imag) is float and imag == 0.0:
        return as_weak(shaping.astype(real, np.complex128))
    return as_weak(real + 1j * imag)


def round(x: Any, digits: int | None = None) -> Any:
    """Return `round(x, digits)`."""
    if digits is None:
        return to_int(ew.rint(x))
    return rounded(x, digits) if is_weak(x) else ew.rint(x * 10.0**digits) / 10.0**digits


def type_of(x: Any) -> type:
    """Return `type(x)`: Python's types for weak scalars, NumPy's types for others."""
    if not isinstance(x, Staged):
        return list if isinstance(x, TensorList) else type(x)
    if x.type.shape != ():
        return np.ndarray
    return _PYTHON_TYPES[x.type.dtype.kind] if x.weak else x.type.dtype.type


def is_instance(x: Any, kinds: Any) -> bool:
    """Return `isinstance(x, kinds)`, where a traced value has the type that it stands for."""
    if not isinstance(x, (Staged, TensorList)):
        return isinstance(x, kinds)
    return issubclass(type_of(x), kinds) or (isinstance(x, kinds) and _includes_wend_types(kinds))


def _includes_wend_types(kinds: Any) -> bool:
    """Return whether some classes are wend's own."""
    if isinstance(kinds, types.UnionType):
        kinds = kinds.__args__
    if isinstance(kinds, tuple):
        return any(map(_includes_wend_types, kinds))
    return issubclass(kinds, (Staged, TensorList))


def power(x: Any, y: Any, mod: Any = None) -> Any:
    """Return `pow(x, y, mod)`."""
    if mod is None:
        return x**y
    raise TypeError(
        explain(
            f"pow{at(user_source())} of traced values takes no modulus: its integers are "
            "unbounded in Python, and have 64 bits here.",
            cure="write the loop that squares and takes remainders.",
        )
    )


# Functions of many values
def sum_of(xs: Any, start: Any = 0) -> Any:
    """Return `sum(xs, start)`."""
    if isinstance(xs, TensorList):
        return reducing.sum(xs.stack(), 0) + start
    for x in xs:
        start = start + x
    return start


def min_or_max(name: str, compare: Callable[[Any, Any], Any], reduce: Callable[..., Any]) -> Any:
    """Build `min` or `max`, which returns the first of the extreme items."""
    original = getattr(builtins, name)

    def run(*xs: Any, key: Any = None, **default: Any) -> Any:
        if len(xs) == 1 and key is None and isinstance(xs[0], (Staged, TensorList)):
            return reduce(stack_if_list(xs[0]))
        items = [*stack_if_list(xs[0])] if len(xs) == 1 else xs
        keys = items if key is None else [*map(key, items)]
        if len(items) < 2 or not any(map(_holds_staged, (*items, *keys))):
            return original(items, key=key, **default)
        if any(isinstance(item_key, (list, tuple)) for item_key in keys):
            raise StructureError(
                explain(
                    f"{name}{at(user_source())} compares lists or tuples of traced values.",
                    cure="give it a key= that is one number.",
                )
            )
        best, best_key = items[0], keys[0]
        for item, item_key in zip(items[1:], keys[1:], strict=True):
            is_before = compare(item_key, best_key)
            best_key = _select(is_before, item_key, best_key)
            best = best_key if key is None else _select(is_before, item, best)
        return best

    return run


def _holds_staged(x: Any) -> bool:
    return isinstance(x, Staged) or (isinstance(x, tuple) and any(map(_holds_staged, x)))


def _select(test: Any, then: Any, other: Any) -> Any:
    if not isinstance(test, Staged):
        return then if test else other
    if any(isinstance(x, (list, tuple, dict)) for x in (then, other)):
        return if_value(test, lambda: then, lambda: other, None)
    result = ew.where(truth(test), then, other)
    return as_weak(result) if is_weak(then) and is_weak(other) else result


def any_of(xs: Any) -> Any:
    """Return `any(xs)` over all items, since only the run knows which one holds."""
    xs = stack_if_list(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return as_weak(reducing.any(xs)) if is_row else _fold_truths(xs, True, ew.logical_or)


def all_of(xs: Any) -> Any:
    """Return `all(xs)` over all items."""
    xs = stack_if_list(xs)
    is_row = isinstance(xs, Staged) and xs.type.rank == 1
    return as_weak(reducing.all(xs)) if is_row else _fold_truths(xs, False, ew.logical_and)


def _fold_truths(xs: Any, decisive: bool, join: Callable[[Any, Any], Any]) -> Any:
    result: Any = not decisive
    for x in xs:
        if isinstance(x, Staged):
            result = truth(x) if isinstance(result, bool) else join(result, truth(x))
        elif bool(x) is decisive:
            return decisive
    return as_weak(result)


def sorted_of(xs: Any, *, key: Any = None, reverse: bool = False) -> list[Any]:
    """Return `sorted(xs)`."""
    items = [*stack_if_list(xs)]
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
    if reverse:  # the sort stays stable
        items, keys = items[::-1], keys[::-1]
    order = reducing.argsort(shaping.stack(keys), stable=True)
    if reverse:
        order = order[::-1]
    sorted_items = indexing.take(shaping.stack(items), order, axis=0)
    scalars = all(map(is_weak, items))
    return [as_weak(x) if scalars else x for x in sorted_items]


STAGED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.len: length,
    builtins.float: to_float,
    builtins.int: to_int,
    builtins.bool: to_bool,
    builtins.complex: to_complex,
    builtins.round: round,
    builtins.pow: power,
    builtins.sum: sum_of,
    builtins.min: min_or_max("min", operator.lt, reducing.min),
    builtins.max: min_or_max("max", operator.gt, reducing.max),
    builtins.sorted: sorted_of,
    builtins.print: effects.print,
    builtins.range: TracedRange,
}
