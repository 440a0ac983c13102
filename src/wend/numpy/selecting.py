"""Functions that choose among arrays, or select elements by a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import apply_all
from wend.eager.promotion import broadcast, cast, result_dtype, wrapped
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import all_staged, dtype_of, promote_dtypes, require, staged
from wend.numpy.public import implements
from wend.ops import indexing as ops


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Return an array drawn from elements in choicelist; see `numpy.select`."""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    values = all_staged([*choicelist, default])
    dtype = result_dtype(*values)
    *choices, result = (wrapped(x, dtype) for x in values)  # not checked for the range
    for condition, choice in zip(condlist[::-1], choices[::-1], strict=True):
        condition = staged(condition)
        if dtype_of(condition) != BOOL:
            raise TypeError("condlist must be boolean arrays")
        result = ew.where(condition, choice, result)
    return result


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Evaluate a piecewise-defined function; see `numpy.piecewise`.

    For a traced array, each function is computed on all of `x`; elements that are not selected have
    derivative 0.
    """
    x = staged(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if len(conditions) not in (len(funclist), len(funclist) - 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    result = shaping.astype(ew.where(ew.equal(x, x), 0, 0), dtype_of(x))
    if len(funclist) > len(conditions):
        result = _evaluate_piece(funclist[-1], x, args, kw)
    # As in NumPy, the last condition that holds takes precedence.
    for condition, function in zip(conditions, funclist, strict=False):
        result = ew.where(condition, _evaluate_piece(function, x, args, kw), result)
    return cast(result, dtype_of(x))


def _evaluate_piece(function: Any, x: Any, args: Any, kw: Any) -> Any:
    value = function(x, *args, **kw) if callable(function) else function
    return broadcast(cast(staged(value), dtype_of(x)), x)[0]


@implements(np.choose)
def choose(a: Any, choices: Any, *, mode: str = "raise") -> Any:
    """Construct an array from an index array and a list of arrays; see `numpy.choose`."""
    arrays = list(choices) if isinstance(choices, (list, tuple)) else [*staged(choices)]
    index, *rows = broadcast(staged(a), *promote_dtypes(*arrays))
    index = indexing.apply_index_mode(shaping.cast_as(index, INT64, "safe"), len(rows), mode)
    if mode == "raise":
        is_out = ew.logical_or(ew.less(index, 0), ew.greater_equal(index, len(rows)))
        index = require(index, reducing.any(is_out), ValueError, "invalid entry in choice array")
    stacked = shaping.stack(rows)
    if not shaping.rank_of(index):
        return stacked[index]
    row = shaping.expand_dims(cast(index, INT64), 0)
    return indexing.take_along_axis(stacked, row, 0)[0]


# By mask
@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """Return selected slices of an array along a given axis; see `numpy.compress`.

    For traced arrays, the size of the result is known at run time only.
    """
    condition, a = all_staged((condition, a))
    if axis is None:
        a, axis = shaping.ravel(a), 0
    (positions,) = apply_all(ops.nonzero, cast(condition, BOOL))
    return indexing.take(a, positions, axis=axis)


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements of an array that satisfy some condition; see `numpy.extract`.

    For traced arrays, the size of the result is known at run time only.
    """
    condition, arr = all_staged((condition, arr))
    return compress(shaping.ravel(condition), shaping.ravel(arr))


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """Return indices that are non-zero in the flattened array; see `numpy.flatnonzero`."""
    return indexing.nonzero(shaping.ravel(staged(a)))[0]


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """Find the indices of array elements that are non-zero; see `numpy.argwhere`."""
    a = staged(a)
    if shaping.rank_of(a):
        return shaping.stack(indexing.nonzero(a), axis=1)
    return argwhere(shaping.reshape(a, (1,)))[:, :0]


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Count the number of non-zero values in an array; see `numpy.count_nonzero`."""
    return reducing.sum(cast(staged(a), BOOL), axis=axis, keepdims=keepdims)
