"""`x[key]` on staged arrays: NumPy's basic and advanced indexing."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import ShapeError
from wend.eager.dispatch import Staged, apply, apply_all
from wend.eager.promotion import as_array, broadcast, cast, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import creating, parts, shaping
from wend.numpy import elementwise as ew
from wend.numpy.public import implements
from wend.numpy.slices import cut_at, has_staged_bounds, is_whole, known_bounds
from wend.ops import indexing as ops
from wend.ops import shaping as shaping_ops

_WHOLE = slice(None)


def getitem(x: Any, key: Any) -> Any:
    """`x[key]`.

    Args:
        x: a staged array.
        key: integers, slices, None, an ellipsis, arrays of integers or bools, plain or staged,
            lists of such numbers, or a tuple of these. A slice with staged bounds has a size that
            only the run tells.

    Raises:
        IndexError: too many indices, or a position that is known to be out of range.
    """
    keys = parts.staged_entries(tensor_type(x), key)
    if keys is not None and not parts.are_simple(keys) and not parts.is_small(x):
        return parts.named(x, keys).take(x)
    x, entries = _row_first(*_per_axis(x, key))
    x, entries = cut(x, entries)
    x, entries = _drop_known_integers(*_slice_axes(x, entries))
    if all(isinstance(entry, slice) for entry in entries):
        return x
    return _advanced(x, entries)


def places_of(dims: Any, entries: Sequence[Any]) -> Any:
    """The positions in the flattened array that entries name: those in each axis, added up.

    So a part costs what its size is, and not what the array's is.
    """
    found: Any = np.int64(0)
    rank, step = 0, 1
    for size, entry in zip(reversed(dims), reversed(entries), strict=True):
        numbers = np.arange(size)
        mine = getitem(numbers, entry) if parts.is_staged_key(entry) else numbers[entry]
        if isinstance(entry, slice):
            mine = shaping.expand_dims(mine, tuple(range(1, rank + 1)))
            rank += 1
        found, step = ew.add(ew.multiply(mine, np.int64(step)), found), step * size
    return found


def _row_first(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Take what leading numbers name before slices copy what is around it."""
    count = 0
    while count < len(entries) and isinstance(entries[count], Staged):
        if tensor_type(entries[count]).shape != ():
            return x, entries
        count += 1
    rest = entries[count:]
    if not count or not all(isinstance(entry, slice) for entry in rest):
        return x, entries
    if all(map(is_whole, rest)):
        return x, entries
    return _advanced(x, [*entries[:count], *[_WHOLE] * len(rest)]), rest


def _is_mask(entry: Any) -> bool:
    return not isinstance(entry, slice) and tensor_type(entry).dtype == BOOL


def normal(entry: Any) -> Any:
    """An entry as a slice, a Python int, or an array."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return entry
    if isinstance(entry, (int, np.integer)) and not isinstance(entry, bool):
        return operator.index(entry)
    array = creating.asarray(entry) if parts.is_staged_key(entry) else as_array(entry)
    if isinstance(array, (bool, np.bool_)):
        raise IndexError("a traced array cannot be indexed by a Python bool; use wend.cond")
    kind = array.dtype.kind if hasattr(array, "dtype") else "f"
    if kind not in "iub" and not (isinstance(array, np.ndarray) and array.size == 0):
        raise IndexError(f"arrays used as indices must be of integer (or bool) type, not {entry!r}")
    return array.astype(np.int64) if kind not in "iub" else array


def _per_axis(x: Any, key: Any) -> tuple[Any, list[Any]]:
    """Give every axis its entry: expand the ellipsis, insert axes for None, unpack masks."""
    entries = [normal(entry) for entry in (key if isinstance(key, tuple) else (key,))]
    used = sum(0 if e is None or e is Ellipsis else _mask_rank(e) for e in entries)
    rank = shaping.rank_of(x)
    if used > rank:
        raise IndexError(
            f"too many indices for array: array is {rank}-dimensional, but {used} were indexed"
        )
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    place = dots[0] if dots else len(entries)
    entries[place : place + len(dots)] = [_WHOLE] * (rank - used)
    new_axes: list[int] = []
    full: list[Any] = []
    for entry in entries:
        if entry is None:
            new_axes.append(len(full))
            full.append(_WHOLE)
            continue
        start = len(full) - len(new_axes)
        full += _unpack_mask(entry, x, start)
    if new_axes:
        x = shaping.expand_dims(x, tuple(new_axes))
    return x, full


def _mask_rank(entry: Any) -> int:
    if isinstance(entry, (slice, int)) or not _is_mask(entry):
        return 1
    return shaping.rank_of(entry)


def _unpack_mask(entry: Any, x: Any, start: int) -> list[Any]:
    """A mask as one vector of positions per axis, from axis `start` of the array on."""
    if isinstance(entry, (slice, int)) or not _is_mask(entry):
        return [entry]
    if shaping.rank_of(entry) == 0:
        raise IndexError("a traced array cannot be indexed by a bool scalar; use wend.cond")
    sizes = tensor_type(x).dims[start:]
    for k, (size, mine) in enumerate(zip(sizes, tensor_type(entry).dims, strict=False)):
        if size != mine:
            entry = _of_size(entry, k, shaping.shape(x)[start + k], start + k)
    return list(apply_all(ops.nonzero, entry))


def _of_size(mask: Any, axis: int, size: Any, place: int) -> Any:
    """A mask, with an error where one of its axes has not the size of the axis at a place."""
    message = (
        f"boolean index did not match indexed array along axis {place}; size of axis is {{size}} "
        "but size of corresponding boolean axis is {mine}"
    )
    dims = tensor_type(mask).dims
    if isinstance(size, int) and isinstance(dims[axis], int):
        raise IndexError(message.format(size=size, mine=dims[axis]))
    wanted: list[Any] = [np.array([-1])] * len(dims)
    wanted[axis] = shaping.reshape_1(shaping.as_size(size))
    given = apply(shaping_ops.concat, *wanted, axis=0) if len(wanted) > 1 else wanted[0]
    attrs = {"shape": dims, "message": message, "error": "index"}
    return apply(shaping_ops.keep_shape, mask, given, **attrs)


def _slice_axes(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Apply the slices; integers that are known become slices of one."""
    dims = tensor_type(x).dims
    slices: list[tuple[int | None, int | None, int | None]] = []
    left: list[Any] = []
    for axis, entry in enumerate(entries):
        if isinstance(entry, slice):
            slices.append(known_bounds(entry))
            left.append(_WHOLE)
        elif isinstance(entry, int) and isinstance(dims[axis], int):
            size = dims[axis]
            assert isinstance(size, int)
            if not -size <= entry < size:
                raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {size}")
            start = entry % size
            slices.append((start, start + 1, None))
            left.append(0)
        else:
            slices.append((None, None, None))
            left.append(entry)
    if any(bounds != (None, None, None) for bounds in slices):
        x = apply(shaping_ops.slice_, x, slices=tuple(slices))
    return x, left


def cut(x: Any, entries: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Apply the slices that have staged bounds; what is left of their entries are their steps."""
    left = list(entries)
    for axis, entry in enumerate(entries):
        if has_staged_bounds(entry):
            start, stop, size = cut_at(entry, shaping.shape(x)[axis])
            x = apply(shaping_ops.narrow, x, start, stop, axis=axis, size=size)
            left[axis] = slice(None, None, entry.step)
    return x, left


def _drop_known_integers(x: Any, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Drop the axes of known integers, unless arrays are there for them to be broadcast with."""
    arrays = [e for e in entries if not isinstance(e, (slice, int))]
    dims = tensor_type(x).dims
    known = [k for k, e in enumerate(entries) if isinstance(e, int) and dims[k] == 1]
    if any(shaping.rank_of(array) for array in arrays) or not known:
        return x, entries
    x = shaping.squeeze(x, tuple(known))
    return x, [entry for k, entry in enumerate(entries) if k not in known]


def _advanced(x: Any, entries: list[Any]) -> Any:
    """Index by arrays: bring their axes to the front, gather, put the result's axes in place."""
    places = [k for k, entry in enumerate(entries) if not isinstance(entry, slice)]
    try:
        indices = broadcast(*(cast(entries[k], INT64) for k in places))
    except ShapeError as error:
        raise IndexError(f"shape mismatch: indexing arrays: {error}") from None
    rest = [k for k in range(len(entries)) if k not in places]
    moved = shaping.transpose(x, (*places, *rest)) if places != list(range(len(places))) else x
    found = apply(ops.gather, moved, *indices)
    index_rank = shaping.rank_of(indices[0])
    together = places == list(range(places[0], places[0] + len(places)))
    if not together or places[0] == 0 or index_rank == 0:
        return found
    front = tuple(range(index_rank))
    return shaping.moveaxis(found, front, tuple(places[0] + k for k in front))


@implements(np.take)
def take(
    x: Any, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Any:
    """`numpy.take`, for traced arrays and positions as well."""
    if out is not None:
        raise TypeError("take of a traced array takes no out=; use the result")
    x = as_array(x)
    if axis is None or (axis in (0, -1) and not shaping.rank_of(x)):
        x, axis = shaping.ravel(x), 0
    place = normalize_axis_index(axis, shaping.rank_of(x))
    indices = as_array(indices)
    indices = within(indices, shaping.shape(x)[place], mode, "take")
    return _advanced(x, [_WHOLE] * place + [indices] + [_WHOLE] * (shaping.rank_of(x) - place - 1))


def within(indices: Any, size: Any, mode: str, name: str) -> Any:
    """Positions as a function's `mode` asks: wrapped or clipped to a size, or as they are."""
    if mode == "wrap":
        return ew.remainder(indices, size)
    if mode == "clip":
        return ew.clip(indices, 0, size - 1)
    if mode != "raise":
        raise ValueError(f"{name}'s mode is 'raise', 'wrap' or 'clip', not {mode!r}")
    return indices


@implements(np.take_along_axis)
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Any:
    """`numpy.take_along_axis`, for traced arrays as well."""
    x, indices = as_array(x), as_array(indices)
    if tensor_type(indices).dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        x, axis = shaping.ravel(x), 0
    place = normalize_axis_index(axis, shaping.rank_of(x))
    mine, theirs = tensor_type(x).dims, tensor_type(indices).dims
    if len(mine) != len(theirs):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    rest = [(*dims[:place], *dims[place + 1 :]) for dims in (mine, theirs)]
    if rest[0] != rest[1]:
        x, indices = _spread_others(x, indices, place=place)
    return apply(ops.take_along, x, cast(indices, INT64), axis=place)


def _spread_others(*xs: Any, place: int) -> list[Any]:
    """Spread two arrays over the shape that all their axes but one have in common."""
    try:
        found = shaping.spread_stacks(*(shaping.moveaxis(v, place, -1) for v in xs), kept=1)
    except ShapeError as error:
        raise IndexError(f"take_along_axis: {error}") from None
    return [shaping.moveaxis(v, -1, place) for v in found]


@implements(np.nonzero)
def nonzero(x: Any) -> Any:
    """`numpy.nonzero`, for traced arrays as well; how many there are, only the run tells."""
    if not shaping.rank_of(x):
        raise ValueError("nonzero is not defined for 0-d arrays")
    return tuple(apply_all(ops.nonzero, cast(x, BOOL)))
