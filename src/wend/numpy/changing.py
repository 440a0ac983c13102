"""NumPy functions that update their first argument in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import cast, is_scalar, is_weak, result_dtype, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, ranges, reducing, shaping, updating
from wend.numpy.operands import all_staged, dtype_of, operand, put_operand, require, staged
from wend.numpy.public import STAGED, implements
from wend.ops import searching


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy values from one array to another, broadcasting as necessary; see `numpy.copyto`."""
    dst, src = _require_traced(dst, "copyto"), operand(src)
    src = _cast(src, dst, casting)
    dst[...] = src if where is True else ew.where(where, src, dst)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Fill the main diagonal of an array in place; see `numpy.fill_diagonal`."""
    a = _require_traced(a, "fill_diagonal")
    dims = tensor_type(a).dims
    if len(dims) < 2:
        raise ValueError("array must be at least 2-d")
    if len(dims) > 2 and len({*dims}) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    if _is_empty(val, a):
        return
    shape = shaping.shape(a)
    shortest = ew.minimum(shape[0], shape[1])
    if not wrap or len(dims) > 2:
        rows = columns = ranges.arange(shortest)
    else:
        # In a tall matrix the diagonal restarts after each square block and one skipped row.
        first = ranges.arange(shape[0])
        rows = first[ew.remainder(first, shape[1] + 1) < shape[1]]
        columns = ew.remainder(rows, shape[1] + 1)
    a[(rows, *[columns] * (len(dims) - 1))] = _cycle(val, shaping.shape(rows)[0], a)


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Replace specified elements of an array with given values; see `numpy.put`."""
    a, positions = _require_traced(a, "put"), operand(ind)
    if _is_empty(v, a):
        return
    # Bools are the positions 0 and 1 here, not a mask. An empty list has no dtype of its own.
    is_array = isinstance(ind, (Staged, np.ndarray)) and shaping.rank_of(ind)
    casting = "safe" if is_array else "same_kind" if shaping.size(positions) != 0 else "unsafe"
    positions = shaping.ravel(shaping.cast_as(positions, INT64, casting))
    positions = indexing.apply_index_mode(positions, shaping.size(a), mode)
    flat = updating.set_at(shaping.ravel(a), positions, _cycle(v, shaping.size(positions), a))
    a[...] = shaping.reshape(flat, shaping.shape(a))


@implements(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Change elements of an array where a mask is true; see `numpy.putmask`."""
    a = _require_traced(a, "putmask")
    mask = _mask(mask, a, "putmask")
    cast_values = _cast_values(values, a)
    if _is_empty(values, a):
        return
    _assign_where(a, mask, _cycle(cast_values, shaping.size(a), a))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Change elements of an array where a mask is true; see `numpy.place`.

    Unlike `putmask`, it uses the first n values for the n true elements of the mask.
    """
    arr = _require_traced(arr, "place")
    mask = _mask(mask, arr, "place")
    number = reducing.cumsum(cast(shaping.ravel(mask), INT64)) - 1
    vals = shaping.ravel(_cast_values(vals, arr))
    count = tensor_type(vals).dims[0]
    if not isinstance(count, int) or not count:
        is_in_vain = ew.logical_and(reducing.any(mask), ew.equal(shaping.size(vals), 0))
        arr[...] = require(arr, is_in_vain, ValueError, "Cannot insert from an empty array!")
    if count == 0:
        return
    _assign_where(arr, mask, indexing.take(vals, ew.remainder(number, shaping.size(vals))))


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True
) -> Any:
    """Put values into an array by matching 1-d index arrays; see `numpy.put_along_axis`.

    With `inplace=False` it returns a new array, traced or not. If a position is repeated, the last
    value written to it remains.
    """
    if not any_staged([arr, indices, values]):
        result = arr if inplace else np.array(arr)
        np.put_along_axis(result, indices, values, axis)
        return None if inplace else result
    if inplace:
        arr = _require_traced(arr, "put_along_axis")
        arr[...] = put_along_axis(arr, indices, values, axis, inplace=False)
        return None
    arr, indices = all_staged((arr, indices))
    if axis is None:
        flat = put_along_axis(shaping.ravel(arr), indices, values, 0, inplace=False)
        return shaping.reshape(flat, shaping.shape(arr))
    normalized_axis = normalize_axis_index(axis, shaping.rank_of(arr))
    others = [dim for k, dim in enumerate(tensor_type(arr).dims) if k != normalized_axis]
    count = shaping.shape(indices)[normalized_axis]
    whole = [*others[:normalized_axis], count, *others[normalized_axis:]]
    indices = shaping.broadcast_to(cast(indices, INT64), tuple(whole))
    values = put_operand(values, dtype_of(arr))
    values = shaping.broadcast_to(cast(values, dtype_of(arr)), tuple(whole))
    return apply(searching.set_along, arr, staged(values), indices, axis=normalized_axis)


STAGED[np.put_along_axis] = put_along_axis


def _require_traced(array: Any, name: str) -> Any:
    if isinstance(array, Staged):
        array.check_writeable()
        return array.read()
    raise TypeMismatchError(
        explain(
            f"np.{name} changes a concrete array{at(user_source())}, by values that are known "
            "only at run time.",
            cure="pass the array as an argument, or change a copy: x = x.copy() before.",
        )
    )


def _is_empty(values: Any, array: Any) -> bool:
    return 0 in tensor_type(put_operand(values, dtype_of(array))).dims


def _mask(mask: Any, array: Any, name: str) -> Any:
    mask = cast(operand(mask), BOOL)
    mask_type, array_type = tensor_type(mask), tensor_type(array)
    if mask_type.dims == array_type.dims:
        return mask
    differs = ew.not_equal(shaping.size(mask), shaping.size(array))
    mask = require(mask, differs, ValueError, f"{name}: mask and data must be the same size")
    return shaping.reshape(mask, shaping.shape(array))


def _cast(x: Any, array: Any, casting: Any) -> Any:
    """Return a value in the dtype of an array; a Python number's dtype depends on the array's."""
    dtype = dtype_of(array)
    shaping.check_cast(result_dtype(x, array) if is_weak(x) else dtype_of(x), dtype, casting)
    return cast(x, dtype)


def _cast_values(values: Any, array: Any) -> Any:
    """Cast array values under the safe rule; numbers and lists are cast later."""
    is_array = isinstance(values, (Staged, np.ndarray)) and not is_scalar(values)
    values = put_operand(values, dtype_of(array))
    if is_weak(values):
        return cast(values, dtype_of(array))
    return _cast(values, array, "safe") if is_array else values


def _assign_where(array: Any, mask: Any, flat: Any) -> None:
    """Assign a flat array, or one number, to the elements of an array where the mask is true."""
    if dtype_of(flat).kind == "c" and dtype_of(array).kind not in "bc":
        raise TypeMismatchError(f"cannot put {tensor_type(flat)} into {tensor_type(array)}")
    if shaping.rank_of(flat):
        flat = shaping.reshape(flat, shaping.shape(array))
    array[...] = ew.where(mask, cast(flat, dtype_of(array)), array)


def cycled(values: Any, array: Any) -> Any:
    """Return values repeated cyclically in the shape of an array; of one value, only that."""
    values = _cycle(values, shaping.size(array), array)
    return shaping.reshape(values, shaping.shape(array)) if shaping.rank_of(values) else values


def _cycle(values: Any, count: Any, array: Any) -> Any:
    """Return `count` of the values, repeated cyclically; of a single value, only that."""
    values = put_operand(values, dtype_of(array))
    if is_weak(values):
        return cast(values, dtype_of(array))
    values = shaping.ravel(values)
    if tensor_type(values).dims == (1,):
        return values[0]
    return indexing.take(values, ew.remainder(ranges.arange(count), shaping.size(values)))
