"""Functions that change their first argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import cast, is_weak, result_dtype, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.ir.types import TensorType
from wend.numpy import elementwise as ew
from wend.numpy import indexing, ranges, reducing, shaping, updating
from wend.numpy.operands import all_staged, dtype_of, operand, staged
from wend.numpy.public import STAGED, implements
from wend.ops import searching


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """`numpy.copyto`, into traced arrays as well."""
    dst, src = _changeable(dst, "copyto"), operand(src)
    src = _cast(src, dst, casting)
    dst[...] = src if where is True else ew.where(where, src, dst)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """`numpy.fill_diagonal`, of traced arrays as well."""
    a = _changeable(a, "fill_diagonal")
    dims = tensor_type(a).dims
    if len(dims) < 2:
        raise ValueError("array must be at least 2-d")
    if len(dims) > 2 and len({*dims}) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    if _is_empty(val):
        return
    shape = shaping.shape(a)
    shortest = ew.minimum(shape[0], shape[1])
    if not wrap or len(dims) > 2:
        rows = columns = ranges.arange(shortest)
    else:
        # A tall matrix begins anew after each square and one row between
        first = ranges.arange(shape[0])
        rows = first[ew.remainder(first, shape[1] + 1) < shape[1]]
        columns = ew.remainder(rows, shape[1] + 1)
    a[(rows, *[columns] * (len(dims) - 1))] = _repeated(val, shaping.shape(rows)[0])


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """`numpy.put`, into traced arrays and at traced positions as well."""
    a, ind = _changeable(a, "put"), shaping.ravel(operand(ind))
    if _is_empty(v):
        return
    ind = cast(ind, INT64) if dtype_of(ind) == BOOL else ind  # positions 0 and 1, no mask
    ind = indexing.within(ind, shaping.size(a), mode, "put")
    flat = updating.set_at(shaping.ravel(a), ind, _repeated(v, shaping.size(ind)))
    a[...] = shaping.reshape(flat, shaping.shape(a))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """`numpy.putmask`, of traced arrays and masks as well."""
    a = _changeable(a, "putmask")
    mask = _mask(mask, a, "putmask")
    if _is_empty(values):
        return
    _choose(a, mask, _repeated(_fitting(values, a), shaping.size(a)))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """`numpy.place`, of traced arrays and masks as well."""
    arr = _changeable(arr, "place")
    mask = _mask(mask, arr, "place")
    number = reducing.cumsum(cast(shaping.ravel(mask), INT64)) - 1
    vals = shaping.ravel(_fitting(vals, arr))
    if tensor_type(vals).dims == (0,):
        raise ValueError("Cannot insert from an empty array!")
    _choose(arr, mask, indexing.take(vals, ew.remainder(number, shaping.size(vals))))


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True
) -> Any:
    """`numpy.put_along_axis`; with `inplace=False` it returns a new array, traced or not.

    Of what is written to one place the last stays.
    """
    if not any_staged([arr, indices, values]):
        found = arr if inplace else np.array(arr)
        np.put_along_axis(found, indices, values, axis)
        return None if inplace else found
    if inplace:
        arr = _changeable(arr, "put_along_axis")
        arr[...] = put_along_axis(arr, indices, values, axis, inplace=False)
        return None
    arr, indices, values = all_staged((arr, indices, values))
    if axis is None:
        flat = put_along_axis(shaping.ravel(arr), indices, values, 0, inplace=False)
        return shaping.reshape(flat, shaping.shape(arr))
    place = normalize_axis_index(axis, shaping.rank_of(arr))
    others = [dim for k, dim in enumerate(tensor_type(arr).dims) if k != place]
    count = shaping.shape(indices)[place]
    whole = [*others[:place], count, *others[place:]]
    indices = shaping.broadcast_to(cast(indices, INT64), tuple(whole))
    values = shaping.broadcast_to(cast(values, dtype_of(arr)), tuple(whole))
    return apply(searching.set_along, arr, staged(values), indices, axis=place)


STAGED[np.put_along_axis] = put_along_axis


def _changeable(array: Any, name: str) -> Any:
    if isinstance(array, Staged):
        return array.read()
    raise TypeMismatchError(
        explain(
            f"np.{name} changes an array that Python knows{at(user_source())}, by what only the "
            "run knows.",
            cure="pass the array as an argument, or change a copy: x = x.copy() before.",
        )
    )


def _is_empty(values: Any) -> bool:
    return 0 in tensor_type(operand(values)).dims


def _mask(mask: Any, array: Any, name: str) -> Any:
    mask = cast(operand(mask), BOOL)
    mine, theirs = tensor_type(mask), tensor_type(array)
    if mine.dims == theirs.dims:
        return mask
    if mine.is_static and theirs.is_static and _count(mine) != _count(theirs):
        raise ValueError(f"{name}: mask and data must be the same size")
    return shaping.reshape(mask, shaping.shape(array))


def _count(type: TensorType) -> int:
    return math.prod(dim for dim in type.dims if isinstance(dim, int))


def _cast(x: Any, array: Any, casting: Any) -> Any:
    found, dtype = result_dtype(x, array) if is_weak(x) else dtype_of(x), dtype_of(array)
    if not np.can_cast(found, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {found!r} to {dtype!r} according to the rule '{casting}'"
        )
    return cast(x, dtype)


def _fitting(values: Any, array: Any) -> Any:
    """What is put where a mask is true: arrays fit safely, numbers and lists are cast later."""
    is_array = isinstance(values, (Staged, np.ndarray)) and shaping.rank_of(values)
    return _cast(values, array, "safe") if is_array else operand(values)


def _choose(array: Any, mask: Any, flat: Any) -> None:
    """Let an array hold what a flat one has, or one number, where the mask is true."""
    if dtype_of(flat).kind == "c" and dtype_of(array).kind != "c":
        raise TypeMismatchError(f"cannot put {tensor_type(flat)} into {tensor_type(array)}")
    if shaping.rank_of(flat):
        flat = shaping.reshape(flat, shaping.shape(array))
    array[...] = ew.where(mask, cast(flat, dtype_of(array)), array)


def _repeated(values: Any, count: Any) -> Any:
    """So many of the values, which begin anew where they end; or the one that there is."""
    values = shaping.ravel(operand(values))
    if tensor_type(values).dims == (1,):
        return values[0]
    return indexing.take(values, ew.remainder(ranges.arange(count), shaping.size(values)))
