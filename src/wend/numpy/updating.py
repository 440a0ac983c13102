"""`x[key] = value` and `x.at[key]` on staged arrays: new arrays with some elements changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wend.base.errors import ShapeError
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import broadcast, cast, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.ir.types import Dim, Symbol, shape_as_tuple_text
from wend.numpy import elementwise as ew
from wend.numpy import indexing, parts, shaping
from wend.numpy.operands import check_single, put_operand, put_rank, staged
from wend.numpy.slices import as_position, has_staged_bounds, is_full_slice, static_bounds
from wend.ops import creating as creating_ops
from wend.ops import indexing as indexing_ops
from wend.ops import parts as parts_ops
from wend.ops import shaping as shaping_ops
from wend.ops import updating as ops
from wend.ops.shapes import WHOLE


def set_at(x: Any, key: Any, value: Any) -> Any:
    """Return a copy of `x` with `x[key] = value`.

    Raises:
        TypeMismatchError: the dtype of the value cannot be cast to that of the array.
        ShapeError: the value does not broadcast to `x[key]`.
    """
    if indexing.is_scalar_mask(key):
        return shaping.squeeze(set_at(*indexing.with_leading_axis(x, key), value), 0)
    mask = _mask_of_all(x, key)
    if mask is not None and not put_rank(value):
        dtype = tensor_type(x).dtype
        return ew.where(mask, cast(put_operand(value, dtype), dtype), x)
    if indexing.has_new_axes(key):
        value = _fit_value(value, x, indexing.getitem(x, key), key)
        value = shaping.squeeze(value, indexing.new_axes(x, key))
        key = indexing.without_new_axes(key)
        return value if all(map(is_full_slice, key)) else set_at(x, key, value)
    positions = _leading_positions(x, key)
    if positions is not None:
        part = indexing.getitem(x, key)
        if mask is not None:
            value = _fit_count(put_operand(value, tensor_type(x).dtype), part)
        return apply(ops.scatter_set, x, _fit_value(value, x, part, key), *positions)
    bounds = _static_slices(x, key)
    if bounds is not None:
        value = _fit_value(value, x, indexing.getitem(x, key), key)
        if set(bounds) <= {WHOLE} and tensor_type(value) == tensor_type(x):
            return value
        return apply(ops.set_slice, x, value, slices=bounds)
    view = _subview(x, key)
    if view is not None:
        return view.store(parts_ops.set_part, x, _fit_value(value, x, view.load(x), key))
    places, target = _flat_positions(x, key)
    value = _flatten(_fit_value(value, x, target, key))
    flat = apply(ops.scatter_set, shaping.reshape(x, (-1,)), value, places)
    return reshape_like(flat, x)


def check_rank(x: Any, key: Any, value: Any) -> None:
    """Raise NumPy's error for a value of `x[key] = value` with more axes than it takes.

    An array may have axes of size 1 in front; a list may not, except where the key has arrays.

    Raises:
        ValueError: a sequence is assigned to one element, or a list has too many axes.
        TypeError: a value for a mask has more than one axis, or a list is no number.
    """
    entries = key if isinstance(key, tuple) else (key,)
    is_list = isinstance(value, (list, tuple))
    rank = put_rank(value)
    is_mask = len(entries) == 1 and getattr(entries[0], "dtype", None) == BOOL
    if is_mask and rank > 1 and shaping.rank_of(entries[0]) == shaping.rank_of(x):
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {rank} dimensions"
        )
    if not rank or not parts.is_basic(key):
        return
    sliced = sum(entry is None or isinstance(entry, slice) for entry in entries)
    if any(entry is Ellipsis for entry in entries):
        used = len(entries) - 1 - sum(entry is None for entry in entries)
        sliced += shaping.rank_of(x) - used
    elif not sliced + shaping.rank_of(x) - len(entries):
        check_single(value, tensor_type(x).dtype)
    else:
        sliced += shaping.rank_of(x) - sum(entry is not None for entry in entries)
    if is_list and rank > sliced:
        raise ValueError(
            "setting an array element with a sequence. The requested array would exceed the "
            f"maximum number of dimension of {sliced}."
        )


def add_at(x: Any, key: Any, value: Any) -> Any:
    """Return a copy of `x` with `value` added at `key`; repeated positions accumulate."""
    positions = _leading_positions(x, key)
    if positions is not None:
        value = _fit_value(value, x, indexing.getitem(x, key), key)
        return apply(indexing_ops.scatter_add, x, value, *positions)
    part = _subview(x, key)
    if part is not None:
        return part.store(parts_ops.add_part, x, _fit_value(value, x, part.load(x), key))
    places, value = places_and_values(x, key, value)
    flat = apply(indexing_ops.scatter_add, shaping.reshape(x, (-1,)), value, places)
    return reshape_like(flat, x)


def places_and_values(x: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Return the flat positions of `x[key]`, and the number of `value` for each of them."""
    places, target = _flat_positions(x, key)
    return places, _flatten(_fit_value(value, x, target, key))


def reshape_like(flat: Any, x: Any) -> Any:
    """Return a vector in the shape of `x`."""
    dims = tensor_type(x).dims
    if tensor_type(x).is_static:
        return shaping.reshape(flat, dims)
    return apply(shaping_ops.reshape, flat, apply(shaping_ops.shape_of, x), shape=dims)


def _static_slices(x: Any, key: Any) -> Any:
    """Return the key as a slice for each axis, or None unless it has static slices only."""
    keys = parts.axis_entries(tensor_type(x), key)
    if keys is None or not all(isinstance(key, slice) for key in keys):
        return None
    return None if any(map(has_staged_bounds, keys)) else tuple(map(static_bounds, keys))


def _mask_of_all(x: Any, key: Any) -> Any:
    """Return the mask of all elements that the key is, or None."""
    key = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(key, (Staged, np.ndarray)) or tensor_type(key).dtype != BOOL:
        return None
    is_whole = 0 < shaping.rank_of(key) == shaping.rank_of(x)
    return indexing.check_mask(key, x, 0) if is_whole else None


def _leading_positions(x: Any, key: Any) -> Any:
    """Return positions along the leading axes if the key has integers, vectors or masks only.

    The cost of an update at one element then does not depend on the size of the array.
    """
    key_entries = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(entry, (bool, np.bool_)) for entry in key_entries):
        return None  # a mask of rank 0
    entries = list(map(indexing.normalize_entry, key_entries))
    while entries and (entries[-1] is Ellipsis or is_full_slice(entries[-1])):
        entries.pop()
    if not entries or len([e for e in key_entries if e is not Ellipsis]) > shaping.rank_of(x):
        return None
    positions: list[Any] = []
    for entry in entries:
        if entry is None or entry is Ellipsis or isinstance(entry, slice):
            return None
        index = tensor_type(entry)
        if index.shape is None or (index.dtype == BOOL and not index.shape):
            return None
        if index.dtype == BOOL and len(positions) + len(index.shape) <= shaping.rank_of(x):
            positions += indexing.unpack_mask(entry, x, len(positions))
        elif index.dtype.kind in "iu" and len(index.shape) <= 1:
            positions.append(entry)
        else:
            return None
    try:
        return broadcast(*map(as_position, positions))
    except ShapeError:
        return None  # indexing the array itself raises NumPy's error


def _subview(x: Any, key: Any) -> parts.Subview | None:
    """Return the subview that a key of integers and slices selects, or None.

    Slices that have both staged bounds and a step are not supported.
    """
    keys = parts.axis_entries(tensor_type(x), key)
    if keys is None or parts.is_small(x):
        return None
    if any(has_staged_bounds(key) and key.step not in (None, 1) for key in keys):
        return None
    return parts.subview_of(x, keys)


def _flat_positions(x: Any, key: Any) -> tuple[Any, Any]:
    """Return the flat positions that a key selects, as a vector and in the shape of the part."""
    known = tensor_type(x)
    entries = (
        parts.staged_axis_entries(known, key) if known.is_static and 0 not in known.dims else None
    )
    if entries is not None:
        positions = indexing.flat_positions(known.dims, entries)
        return _flatten(positions), positions
    if not known.is_static:
        iota = apply(creating_ops.iota, shaping.size(x), dtype=INT64, length=None)
        indices = apply(shaping_ops.reshape, iota, apply(shaping_ops.shape_of, x), shape=known.dims)
    else:
        indices = np.arange(math.prod(known.dims)).reshape(known.dims)  # type: ignore[arg-type]
    is_plain = isinstance(indices, np.ndarray) and not parts.is_staged_key(key)
    positions = indices[key] if is_plain else indexing.getitem(indices, key)
    return _flatten(positions), positions


def _flatten(x: Any) -> Any:
    return shaping.reshape(x, (-1,)) if isinstance(x, Staged) else np.ravel(x)


# NumPy's words
_MISMATCH_OF_PART = "could not broadcast input array from shape {part[0:]} into shape {shape[0:]}"
_MISMATCH_OF_POSITIONS = (
    "shape mismatch: value array of shape {operand} could not be broadcast to indexing result of "
    "shape {shape[0:]}"
)
_COUNTS_DIFFER = (
    "NumPy boolean array indexing assignment cannot assign {actual} input values to the {size} "
    "output values where the mask is true"
)


def _fit_count(value: Any, part: Any) -> Any:
    """Check that a vector has one number, or one for each element where a mask is true."""
    value = staged(value)
    (dim,), (count,) = tensor_type(value).dims, tensor_type(part).dims
    if dim in (1, count):
        return value
    if isinstance(dim, int) and isinstance(count, int):
        raise ShapeError(_COUNTS_DIFFER.format(actual=dim, size=count))
    size, expected = (shaping.as_vector(shaping.shape(x)[0]) for x in (value, part))
    expected = ew.where(ew.equal(size, 1), -1, expected)
    attrs = {"shape": (dim,), "message": _COUNTS_DIFFER, "error": "value"}
    return apply(shaping_ops.keep_shape, value, expected, **attrs)


def _fit_value(value: Any, x: Any, target: Any, key: Any) -> Any:
    """Cast the value to the dtype of the array and broadcast it to the shape of `target`."""
    dtype = tensor_type(x).dtype
    value = cast(put_operand(value, dtype, is_assigned=parts.is_basic(key)), dtype)
    text = _MISMATCH_OF_PART if parts.is_basic(key) else _MISMATCH_OF_POSITIONS
    whole, target_type = tensor_type(value), tensor_type(target)
    while shaping.rank_of(value) > len(target_type.dims) and tensor_type(value).dims[0] == 1:
        value = shaping.squeeze(value, 0)
    dims, extra = tensor_type(value).dims, shaping.rank_of(value) - len(target_type.dims)
    target_dims = (*(1,) * extra, *target_type.dims)
    if not all(map(_may_fit, dims[::-1], target_dims[::-1])):
        shapes = {"operand": whole.dims, "part[0:]": dims, "shape[0:]": target_type.dims}
        for name, shape in shapes.items():
            text = text.replace(f"{{{name}}}", shape_as_tuple_text(shape))
        raise ShapeError(text)
    if dims == target_dims:
        return value
    if not dims or (tensor_type(value).is_static and target_type.is_static):
        return broadcast(value, target)[0]
    if extra <= 0:
        return shaping.broadcast_like(value, target, message=text)
    text = text.replace("[0:]", f"[{extra}:]")
    sizes = apply(shaping_ops.concat, np.ones(extra, np.int64), _shape_of(target), axis=0)
    attrs = {"shape": target_dims, "message": text}
    return reshape_like(apply(shaping_ops.broadcast_to, value, sizes, **attrs), target)


def _may_fit(size: Dim, other: Dim) -> bool:
    """Return whether an axis may be broadcast to another size at run time."""
    return size in (1, other) or isinstance(size, Symbol) or isinstance(other, Symbol)


def _shape_of(x: Any) -> Any:
    return apply(shaping_ops.shape_of, x) if isinstance(x, Staged) else np.array(x.shape, np.int64)


class At:
    """`x.at`: indexed updates that return a new array, as in JAX."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self._x, key)


class AtKey:
    """`x.at[key]`: the updates of the selected elements. `x` itself does not change."""

    def __init__(self, x: Any, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Any:
        """Return `x[key]`."""
        return self._x[self._key]

    def set(self, value: Any) -> Any:
        """Return a copy of the array with the elements replaced."""
        return set_at(self._x, self._key, value)

    def add(self, value: Any) -> Any:
        """Return a copy of the array with `value` added; repeated positions accumulate."""
        return add_at(self._x, self._key, value)

    def multiply(self, value: Any) -> Any:
        """Return a copy with the elements multiplied by `value`; positions must be distinct."""
        return self.set(ew.multiply(self.get(), value))

    mul = multiply

    def min(self, value: Any) -> Any:
        """Return a copy with the minimum of elements and `value`; positions must be distinct."""
        return self.set(ew.minimum(self.get(), value))

    def max(self, value: Any) -> Any:
        """Return a copy with the maximum of elements and `value`; positions must be distinct."""
        return self.set(ew.maximum(self.get(), value))
