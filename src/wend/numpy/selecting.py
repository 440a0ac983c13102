"""Choosing among arrays, and reading and writing by position or mask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import apply_all
from wend.eager.promotion import broadcast, cast
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import alike, all_staged, dtype_of, staged
from wend.numpy.public import implements
from wend.ops import indexing as ops


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """`numpy.select`, for traced arrays as well."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    *choices, found = alike(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        condition = staged(condition)
        if dtype_of(condition) != BOOL:
            raise TypeError("condlist must be boolean arrays")
        found = ew.where(condition, choice, found)
    return found


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """`numpy.piecewise`, for traced arrays as well.

    Each function is computed on all of `x`; an element that is not chosen has derivative 0.
    """
    x = staged(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if len(conditions) not in (len(funclist), len(funclist) - 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    found = shaping.astype(ew.where(ew.equal(x, x), 0, 0), dtype_of(x))
    if len(funclist) > len(conditions):
        found = _piece(funclist[-1], x, args, kw)
    # Where several hold the last one counts, as in NumPy.
    for condition, function in zip(conditions, funclist, strict=False):
        found = ew.where(condition, _piece(function, x, args, kw), found)
    return cast(found, dtype_of(x))


def _piece(function: Any, x: Any, args: Any, kw: Any) -> Any:
    value = function(x, *args, **kw) if callable(function) else function
    return broadcast(cast(staged(value), dtype_of(x)), x)[0]


_MODES: dict[str, Callable[[Any, int], Any]] = {
    "raise": lambda index, count: index,
    "wrap": lambda index, count: ew.remainder(index, count),
    "clip": lambda index, count: ew.clip(index, 0, count - 1),
}


@implements(np.choose)
def choose(a: Any, choices: Any, mode: str = "raise") -> Any:
    """`numpy.choose`, for traced arrays as well."""
    arrays = list(choices) if isinstance(choices, (list, tuple)) else [*staged(choices)]
    index, *rows = broadcast(staged(a), *alike(*arrays))
    index = _MODES[mode](index, len(rows))
    stacked = shaping.stack(rows)
    if not shaping.rank_of(index):
        return stacked[index]
    row = shaping.expand_dims(cast(index, INT64), 0)
    return indexing.take_along_axis(stacked, row, 0)[0]


# By mask
@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """`numpy.compress`, for traced arrays as well; how many there are, only the run tells."""
    condition, a = all_staged((condition, a))
    if axis is None:
        a, axis = shaping.ravel(a), 0
    (places,) = apply_all(ops.nonzero, cast(condition, BOOL))
    return indexing.take(a, places, axis=axis)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """`numpy.extract`, for traced arrays as well; how many there are, only the run tells."""
    condition, arr = all_staged((condition, arr))
    return compress(shaping.ravel(condition), shaping.ravel(arr))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """`numpy.flatnonzero`, for traced arrays as well."""
    return indexing.nonzero(shaping.ravel(staged(a)))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """`numpy.argwhere`, for traced arrays as well."""
    return shaping.stack(indexing.nonzero(staged(a)), axis=1)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.count_nonzero`, for traced arrays as well."""
    return reducing.sum(cast(staged(a), BOOL), axis=axis, keepdims=keepdims)
