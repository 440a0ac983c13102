"""`x[key]` on staged arrays: NumPy's basic and advanced indexing."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import ShapeError, explain
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, apply, apply_all
from wend.eager.promotion import as_array, broadcast, cast, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import creating, parts, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import as_axis, dtype_of, operand, require, strong
from wend.numpy.public import implements
from wend.numpy.slices import (
    FULL_SLICE,
    as_position,
    checked_position,
    has_staged_bounds,
    narrow_bounds,
    static_bounds,
)
from wend.ops import indexing as ops
from wend.ops import shaping as shaping_ops
from wend.ops.shapes import WHOLE

_INT64 = np.iinfo(np.int64)


def getitem(x: Any, key: Any) -> Any:
    """Return `x[key]`.

    Args:
        x: a staged array.
        key: integers, slices, None, an ellipsis, arrays of integers or bools, plain or staged,
            lists of such numbers, or a tuple of these. The size of a slice with staged bounds is
            known at run time only.

    Raises:
        IndexError: too many indices, or a static position is out of range.
    """
    if is_scalar_mask(key):
        x, key = with_leading_axis(x, key)
    if has_new_axes(key):
        part = getitem(x, without_new_axes(key))
        return shaping.expand_dims(part, new_axes(x, key))
    keys = parts.staged_axis_entries(tensor_type(x), key)
    if keys is not None and not parts.has_dedicated_op(keys) and not parts.is_small(x):
        return parts.subview_of(x, keys).load(x)
    x, entries = _gather_leading_scalars(*_expand_key(x, key))
    x, entries = apply_dynamic_slices(x, entries)
    x, entries = _drop_known_integers(*_apply_static_slices(x, entries))
    if all(isinstance(entry, slice) for entry in entries):
        return x
    return _gather(x, entries)


def has_new_axes(key: Any) -> bool:
    """Return whether a key of basic indexing inserts axes."""
    return any(k is None for k in _entries(key)) and parts.is_basic(key)


def without_new_axes(key: Any) -> tuple[Any, ...]:
    """Return a key that inserts no axes."""
    return tuple(k for k in _entries(key) if k is not None)


def _entries(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def new_axes(x: Any, key: Any) -> tuple[int, ...]:
    """Return the axes of `x[key]` that a None inserts."""
    entries = _entries(key)
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    axes, axis = [], 0
    for entry in entries:
        if entry is None:
            axes.append(axis)
        if entry is Ellipsis:
            axis += shaping.rank_of(x) - used
        elif entry is None or isinstance(entry, slice):
            axis += 1
    return tuple(axes)


def is_scalar_mask(key: Any) -> bool:
    """Return whether a key is a traced bool, which selects all of an array or nothing."""
    return isinstance(key, Staged) and key.type.dtype == BOOL and not shaping.rank_of(key)


def with_leading_axis(x: Any, key: Any) -> tuple[Any, Any]:
    """Return an array with an axis in front, and the mask along it that a traced bool is."""
    return shaping.expand_dims(x, 0), shaping.reshape(key, (1,))


def flat_positions(dims: Any, entries: Sequence[Any]) -> Any:
    """Return the positions in the flattened array that the entries select.

    They are computed from the positions along each axis, so the cost depends on the size of the
    selected part, not on that of the array.
    """
    positions: Any = np.int64(0)
    rank, stride = 0, 1
    for size, entry in zip(reversed(dims), reversed(entries), strict=True):
        indices = np.arange(size)
        offsets = getitem(indices, entry) if parts.is_staged_key(entry) else indices[entry]
        if isinstance(entry, slice):
            offsets = shaping.expand_dims(offsets, tuple(range(1, rank + 1)))
            rank += 1
        positions, stride = ew.add(ew.multiply(offsets, np.int64(stride)), positions), stride * size
    return positions


def _gather_leading_scalars(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Gather at leading integers first if one is staged.

    Then slices copy only the selected part, and the adjoint adds to one element of `x[k, 0]`, not
    to a column.
    """
    positions: list[Any] = []
    for size, entry in zip(tensor_type(x).dims, entries, strict=True):
        if isinstance(entry, int):
            positions.append(checked_position(entry, len(positions), size))
        elif isinstance(entry, Staged) and tensor_type(entry).shape == ():
            positions.append(entry)
        else:
            break
    trailing = entries[len(positions) :]
    if not any(isinstance(k, Staged) for k in positions):
        return x, entries
    if not all(isinstance(entry, slice) for entry in trailing):
        return x, entries
    return _gather(x, [*positions, *[FULL_SLICE] * len(trailing)]), trailing


def _is_mask(entry: Any) -> bool:
    return not isinstance(entry, slice) and tensor_type(entry).dtype == BOOL


def _is_array_like(entry: Any) -> bool:
    return isinstance(entry, (bool, np.generic, np.ndarray, list, tuple))


def normalize_entry(entry: Any) -> Any:
    """Return an entry as a slice, a Python int, an array, None or an ellipsis."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return _index_of(entry)
    if isinstance(entry, range):
        entry = np.array(entry, np.int64)
    is_staged = parts.is_staged_key(entry)
    if not is_staged and hasattr(type(entry), "__index__") and not _is_array_like(entry):
        return _index_of(entry)
    array = creating.asarray(entry) if is_staged else as_array(entry)
    if isinstance(array, (bool, np.bool_)):
        raise refusal(
            IndexError(
                explain(
                    f"an array is indexed by a Python bool{at(user_source())}.",
                    cure="write x[None] for x[True], and x[None][:0] for x[False].",
                )
            )
        )
    dtype = array.type.dtype if isinstance(array, Staged) else getattr(array, "dtype", None)
    kind = "f" if dtype is None else dtype.kind
    if kind not in "iub" and not (isinstance(entry, (list, tuple)) and np.size(array) == 0):
        example = 0.5 if np.ndim(array) == 0 else np.ones(1)
        np.ones(1)[example]  # type: ignore[index]  # NumPy's error
    return array.astype(np.int64) if kind not in "iub" else array


def _index_of(entry: Any) -> int:
    index = operator.index(entry)
    if not _INT64.min <= index <= _INT64.max:
        np.ones(1)[index]  # NumPy's error
    return index


def _expand_key(x: Any, key: Any) -> tuple[Any, list[Any]]:
    """Return the entry of each axis.

    Expands the ellipsis, inserts axes for None, and unpacks masks.
    """
    entries = [normalize_entry(entry) for entry in _entries(key)]
    used = sum(0 if e is None or e is Ellipsis else _mask_rank(e) for e in entries)
    rank = shaping.rank_of(x)
    if used > rank:
        raise IndexError(
            f"too many indices for array: array is {rank}-dimensional, but {used} were indexed"
        )
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    ellipsis_position = dots[0] if dots else len(entries)
    entries[ellipsis_position : ellipsis_position + len(dots)] = [FULL_SLICE] * (rank - used)
    new_axes: list[int] = []
    full: list[Any] = []
    for entry in entries:
        if entry is None:
            new_axes.append(len(full))
            full.append(FULL_SLICE)
            continue
        start = len(full) - len(new_axes)
        full += unpack_mask(entry, x, start)
    if new_axes:
        x = shaping.expand_dims(x, tuple(new_axes))
    return x, full


def _mask_rank(entry: Any) -> int:
    if isinstance(entry, (slice, int)) or not _is_mask(entry):
        return 1
    return shaping.rank_of(entry)


def unpack_mask(entry: Any, x: Any, start: int) -> list[Any]:
    """Return a mask as one vector of positions per axis, starting at axis `start`."""
    if isinstance(entry, (slice, int)) or not _is_mask(entry):
        return [entry]
    if shaping.rank_of(entry) == 0:
        raise refusal(
            IndexError(
                explain(
                    f"a traced bool{at(user_source())} is one of several indices.",
                    cure="write x[:, None][:, mask] with an array of one bool for x[:, test].",
                )
            )
        )
    return list(apply_all(ops.nonzero, check_mask(entry, x, start)))


def check_mask(mask: Any, x: Any, start: int) -> Any:
    """Return a mask, with a check that its sizes are those of the axes from `start` on."""
    sizes = tensor_type(x).dims[start:]
    for k, (size, mask_size) in enumerate(zip(sizes, tensor_type(mask).dims, strict=False)):
        if size != mask_size:
            mask = _check_mask_size(mask, k, shaping.shape(x)[start + k], start + k)
    return mask


def _check_mask_size(mask: Any, axis: int, size: Any, array_axis: int) -> Any:
    """Return the mask, with a check that its size along `axis` is that of the indexed axis."""
    message = (
        f"boolean index did not match indexed array along axis {array_axis}; size of axis is "
        "{size} but size of corresponding boolean axis is {actual}"
    )
    dims = tensor_type(mask).dims
    if isinstance(size, int) and isinstance(dims[axis], int):
        raise IndexError(message.format(size=size, actual=dims[axis]))
    sizes: list[Any] = [np.array([-1])] * len(dims)
    sizes[axis] = shaping.as_vector(shaping.as_size(size))
    shape = apply(shaping_ops.concat, *sizes, axis=0) if len(sizes) > 1 else sizes[0]
    attrs = {"shape": dims, "message": message, "error": "index"}
    return apply(shaping_ops.keep_shape, mask, shape, **attrs)


def _apply_static_slices(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Apply the static slices; static integers become slices of size 1."""
    dims = tensor_type(x).dims
    slices: list[tuple[int | None, int | None, int | None]] = []
    remaining: list[Any] = []
    for axis, entry in enumerate(entries):
        if isinstance(entry, slice):
            slices.append(static_bounds(entry))
            remaining.append(FULL_SLICE)
        elif isinstance(entry, int) and isinstance(dims[axis], int):
            start = checked_position(entry, axis, dims[axis])
            slices.append((start, start + 1, None))
            remaining.append(0)
        else:
            slices.append(WHOLE)
            remaining.append(entry)
    if any(bounds != WHOLE for bounds in slices):
        x = apply(shaping_ops.slice_, x, slices=tuple(slices))
    return x, remaining


def apply_dynamic_slices(x: Any, entries: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Apply the slices with staged bounds; their entries keep only the steps."""
    remaining = list(entries)
    for axis, entry in enumerate(entries):
        if has_staged_bounds(entry):
            start, stop, size = narrow_bounds(entry, shaping.shape(x)[axis])
            x = apply(shaping_ops.narrow, x, start, stop, axis=axis, size=size)
            remaining[axis] = slice(None, None, entry.step)
    return x, remaining


def _drop_known_integers(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Drop the axes of static integers, unless these broadcast with index arrays."""
    arrays = [e for e in entries if not isinstance(e, (slice, int))]
    dims = tensor_type(x).dims
    known = [k for k, e in enumerate(entries) if isinstance(e, int) and dims[k] == 1]
    if any(shaping.rank_of(array) for array in arrays) or not known:
        return x, entries
    x = shaping.squeeze(x, tuple(known))
    return x, [entry for k, entry in enumerate(entries) if k not in known]


def _gather(x: Any, entries: list[Any]) -> Any:
    """Index by arrays: move their axes to the front, gather, and move the result's axes back."""
    axes = [k for k, entry in enumerate(entries) if not isinstance(entry, slice)]
    try:
        indices = broadcast(*(as_position(entries[k]) for k in axes), error="index")
    except ShapeError as error:
        text = str(error).replace("operands", "shape mismatch: indexing arrays", 1)
        raise IndexError(text) from None
    other_axes = [k for k in range(len(entries)) if k not in axes]
    in_front = shaping.transpose(x, (*axes, *other_axes)) if axes != list(range(len(axes))) else x
    gathered = apply(ops.gather, in_front, *indices)
    index_rank = shaping.rank_of(indices[0])
    is_contiguous = axes == list(range(axes[0], axes[0] + len(axes)))
    if not is_contiguous or axes[0] == 0 or index_rank == 0:
        return gathered
    front = tuple(range(index_rank))
    return shaping.moveaxis(gathered, front, tuple(axes[0] + k for k in front))


@implements(np.take)
def take(x: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Any:
    """Take elements from an array along an axis; see `numpy.take`."""
    x = operand(x)
    if axis is None or (axis in (0, -1) and not shaping.rank_of(x)):
        x, axis = shaping.ravel(x), 0
    axis = normalize_axis_index(as_axis(axis), shaping.rank_of(x))
    indices = operand(indices)
    if tensor_type(indices).dtype.kind not in "iu":
        indices = shaping.cast_as(indices, INT64, "safe")  # bools are positions, too
    indices = apply_index_mode(indices, shaping.shape(x)[axis], mode)
    return _gather(
        x, [FULL_SLICE] * axis + [indices] + [FULL_SLICE] * (shaping.rank_of(x) - axis - 1)
    )


def apply_index_mode(indices: Any, size: Any, mode: str) -> Any:
    """Return the positions, wrapped or clipped to a size as the `mode` of a function asks."""
    if mode == "wrap":
        return ew.remainder(cast(indices, INT64), size)  # a narrow dtype may not hold the size
    if mode == "clip":
        return ew.clip(cast(indices, INT64), 0, size - 1)
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    return cast(indices, INT64) if dtype_of(indices) == np.uint64 else indices  # NumPy wraps these


@implements(np.take_along_axis)
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Any:
    """Take values from an array by matching 1-d index arrays; see `numpy.take_along_axis`."""
    x, indices = as_array(x), as_array(indices)
    if tensor_type(indices).dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        x, axis = shaping.ravel(x), 0
    axis = normalize_axis_index(axis, shaping.rank_of(x))
    x_dims, index_dims = tensor_type(x).dims, tensor_type(indices).dims
    if len(x_dims) != len(index_dims):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    other_dims = [(*dims[:axis], *dims[axis + 1 :]) for dims in (x_dims, index_dims)]
    if other_dims[0] != other_dims[1]:
        x, indices = _broadcast_other_axes(x, indices, axis=axis)
    return apply(ops.take_along, x, cast(indices, INT64), axis=axis)


def _broadcast_other_axes(*xs: Any, axis: int) -> list[Any]:
    """Broadcast two arrays to a common shape along all axes but one."""
    try:
        arrays = shaping.broadcast_batch_dims(
            *(shaping.moveaxis(v, axis, -1) for v in xs), core_rank=1, error="index"
        )
    except ShapeError as error:
        raise IndexError(f"take_along_axis: {error}") from None
    return [shaping.moveaxis(v, -1, axis) for v in arrays]


@implements(np.nonzero)
def nonzero(x: Any) -> Any:
    """Return the indices of the elements that are non-zero; see `numpy.nonzero`.

    For a traced array, their number is known at run time only.
    """
    if not shaping.rank_of(x):
        raise ValueError("nonzero is not defined for 0-d arrays")
    return tuple(apply_all(ops.nonzero, cast(x, BOOL)))


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Convert flat positions into a tuple of coordinate arrays; see `numpy.unravel_index`."""
    np.unravel_index(0, (), order)  # type: ignore[call-overload]  # NumPy's errors
    positions = _as_coordinates(indices)
    sizes = _sizes(shape)
    count = math.prod(sizes)
    is_outside = ew.logical_or(ew.less(positions, 0), ew.greater_equal(positions, count))
    of_size = "" if isinstance(count, Staged) else f" with size {count}"
    text = "index {} is out of bounds for array" + of_size
    positions = _require_all(positions, is_outside, text)
    if not sizes and shaping.rank_of(positions):
        raise ValueError("multiple indices are not supported for 0d arrays")
    coordinates = []
    for size in sizes if order == "F" else reversed(sizes):
        coordinates.append(ew.remainder(positions, size))
        positions = ew.floor_divide(positions, size)
    return tuple(coordinates if order == "F" else reversed(coordinates))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Convert coordinate arrays into flat positions; see `numpy.ravel_multi_index`."""
    sizes = _sizes(dims)
    is_sequence = isinstance(multi_index, (tuple, list))
    count = len(multi_index) if is_sequence else shaping.known_size(multi_index, 0, "its length")
    zero, one = (0,) * count, (1,) * len(sizes)
    np.ravel_multi_index(zero, one, mode, order)  # type: ignore[call-overload]  # NumPy's errors
    modes = (mode,) * count if isinstance(mode, str) else mode
    aligned = broadcast(*[_as_coordinates(multi_index[k]) for k in range(count)])
    coordinates = [*map(_within, aligned, sizes, modes)]
    position: Any = np.int64(0)
    pairs = [*zip(sizes, coordinates, strict=True)]
    for size, coordinate in reversed(pairs) if order == "F" else pairs:
        position = ew.add(ew.multiply(position, size), coordinate)
    return position


def _sizes(shape: Any) -> tuple[Any, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(x if isinstance(x, Staged) else operator.index(x) for x in sizes)


def _as_coordinates(x: Any) -> Any:
    x = strong(x)
    if dtype_of(x).kind not in "iub":
        raise TypeError("only int indices permitted")
    return cast(x, INT64)


def _within(coordinate: Any, size: Any, mode: str) -> Any:
    """Return a coordinate in the range of an axis, as a mode of `np.ravel_multi_index` says."""
    if mode == "wrap":
        return ew.remainder(coordinate, size)
    if mode == "clip":
        return ew.clip(coordinate, 0, size - 1)
    is_outside = ew.logical_or(ew.less(coordinate, 0), ew.greater_equal(coordinate, size))
    return _require_all(coordinate, is_outside, "invalid entry in coordinates array")


def _require_all(x: Any, fails: Any, text: str) -> Any:
    """Return integers; where a test of one holds, the first such is in the ValueError."""
    if not shaping.rank_of(x):
        return require(x, fails, ValueError, text)
    if 0 in tensor_type(x).dims:
        return x
    fails = shaping.ravel(fails)
    any_fails = reducing.any(fails)
    first = getitem(shaping.ravel(x), reducing.argmax(fails))
    return ew.where(any_fails, require(first, any_fails, ValueError, text), x)
