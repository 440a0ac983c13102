"""`x[key] = value` and `x.at[key]` on staged arrays: a new array with some elements changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import broadcast, cast, common_shape, is_weak, tensor_type
from wend.ir.dtypes import INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, parts, shaping
from wend.numpy.operands import operand
from wend.numpy.slices import has_staged_bounds, is_whole, known_bounds
from wend.ops import creating as creating_ops
from wend.ops import indexing as indexing_ops
from wend.ops import parts as parts_ops
from wend.ops import shaping as shaping_ops
from wend.ops import updating as ops


def set_at(x: Any, key: Any, value: Any) -> Any:
    """A copy of `x` with `x[key] = value`.

    Raises:
        TypeMismatchError: the value's dtype cannot be cast to the array's.
        ShapeError: the value does not broadcast to `x[key]`.
    """
    positions = _leading(x, key)
    if positions is not None:
        value = _fitted(value, x, indexing.getitem(x, key))
        return apply(ops.scatter_set, x, value, *positions)
    bounds = _static_slices(x, key)
    if bounds is not None:
        value = _fitted(value, x, indexing.getitem(x, key))
        return apply(ops.set_slice, x, value, slices=bounds)
    part = _part(x, key)
    if part is not None:
        return part.put(parts_ops.set_part, x, _fitted(value, x, part.take(x)))
    places, found = _places(x, key)
    value = _flat(_fitted(value, x, found))
    flat = apply(ops.scatter_set, shaping.reshape(x, (-1,)), value, places)
    return _like(flat, x)


def add_at(x: Any, key: Any, value: Any) -> Any:
    """A copy of `x` with `value` added at `key`; positions named twice add up."""
    positions = _leading(x, key)
    if positions is not None:
        value = _fitted(value, x, indexing.getitem(x, key))
        return apply(indexing_ops.scatter_add, x, value, *positions)
    part = _part(x, key)
    if part is not None:
        return part.put(parts_ops.add_part, x, _fitted(value, x, part.take(x)))
    places, found = _places(x, key)
    value = _flat(_fitted(value, x, found))
    flat = apply(indexing_ops.scatter_add, shaping.reshape(x, (-1,)), value, places)
    return _like(flat, x)


def _like(flat: Any, x: Any) -> Any:
    dims = tensor_type(x).dims
    if tensor_type(x).is_static:
        return shaping.reshape(flat, dims)
    return apply(shaping_ops.reshape, flat, apply(shaping_ops.shape_of, x), shape=dims)


def _static_slices(x: Any, key: Any) -> Any:
    """The key as slices of all axes, if it is nothing but slices that are known."""
    keys = parts.entries(tensor_type(x), key)
    if keys is None or not all(isinstance(key, slice) for key in keys):
        return None
    return None if any(map(has_staged_bounds, keys)) else tuple(map(known_bounds, keys))


def _leading(x: Any, key: Any) -> Any:
    """The positions along the leading axes, if a key is nothing but numbers or vectors of them.

    So what one element costs does not depend on the size of the array.
    """
    given = list(key) if isinstance(key, tuple) else [key]
    if any(isinstance(entry, (bool, np.bool_)) for entry in given):
        return None  # a mask without axes
    entries = list(map(indexing.normal, given))
    while entries and (entries[-1] is Ellipsis or is_whole(entries[-1])):
        entries.pop()
    if not entries or len([e for e in given if e is not Ellipsis]) > shaping.rank_of(x):
        return None
    for entry in entries:
        if entry is None or entry is Ellipsis or isinstance(entry, slice):
            return None
        known = tensor_type(entry)
        if known.dtype.kind not in "iu" or known.shape is None or len(known.shape) > 1:
            return None
    try:
        return broadcast(*(cast(entry, INT64) for entry in entries))
    except ShapeError:
        return None  # the error is NumPy's where the array itself is indexed


def _part(x: Any, key: Any) -> parts.Part | None:
    """The part that a key of numbers and slices names, staged or not, without steps of cuts."""
    keys = parts.entries(tensor_type(x), key)
    if keys is None or parts.is_small(x):
        return None
    if any(has_staged_bounds(key) and key.step not in (None, 1) for key in keys):
        return None
    return parts.named(x, keys)


def _places(x: Any, key: Any) -> tuple[Any, Any]:
    """The positions in the flattened array that a key names: as a vector, and as they are."""
    known = tensor_type(x)
    entries = parts.staged_entries(known, key) if known.is_static and 0 not in known.dims else None
    if entries is not None:
        found = indexing.places_of(known.dims, entries)
        return _flat(found), found
    if not known.is_static:
        count = apply(creating_ops.iota, shaping.size(x), dtype=INT64, length=None)
        numbers = apply(
            shaping_ops.reshape, count, apply(shaping_ops.shape_of, x), shape=known.dims
        )
    else:
        numbers = np.arange(math.prod(known.dims)).reshape(known.dims)  # type: ignore[arg-type]
    is_plain = isinstance(numbers, np.ndarray) and not parts.is_staged_key(key)
    found = numbers[key] if is_plain else indexing.getitem(numbers, key)
    return _flat(found), found


def _flat(x: Any) -> Any:
    return shaping.reshape(x, (-1,)) if isinstance(x, Staged) else np.ravel(x)


def _fitted(value: Any, x: Any, like: Any) -> Any:
    """The value with the array's dtype, spread over what is set."""
    value, dtype = operand(value), tensor_type(x).dtype
    given = tensor_type(value).dtype
    if not is_weak(value) and given.kind == "c" and dtype.kind != "c":
        raise TypeMismatchError(f"cannot put {tensor_type(value)} into {tensor_type(x)}")
    value = cast(value, dtype)
    shape = tensor_type(like).dims
    while shaping.rank_of(value) > len(shape) and tensor_type(value).dims[0] == 1:
        value = shaping.squeeze(value, 0)
    found = tensor_type(value).dims
    if common_shape([found, shape]) != shape and all(isinstance(d, int) for d in (*found, *shape)):
        raise ShapeError(f"could not broadcast input array from shape {found} into shape {shape}")
    return broadcast(value, like)[0]


class At:
    """`x.at`: updates that give a new array, as in JAX."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self._x, key)


class AtKey:
    """`x.at[key]`: what can be done to those elements. `x` itself stays as it is."""

    def __init__(self, x: Any, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Any:
        """`x[key]`."""
        return self._x[self._key]

    def set(self, value: Any) -> Any:
        """The elements replaced."""
        return set_at(self._x, self._key, value)

    def add(self, value: Any) -> Any:
        """`value` added; a position that is named twice gets both."""
        return add_at(self._x, self._key, value)

    def multiply(self, value: Any) -> Any:
        """The elements multiplied; positions must differ."""
        return self.set(ew.multiply(self.get(), value))

    mul = multiply

    def min(self, value: Any) -> Any:
        """The smaller of element and value; positions must differ."""
        return self.set(ew.minimum(self.get(), value))

    def max(self, value: Any) -> Any:
        """The larger of element and value; positions must differ."""
        return self.set(ew.maximum(self.get(), value))
