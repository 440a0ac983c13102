"""Values of a graph while it is lowered, and between runs.

A tensor is a NumPy array where it is known while lowering (sizes are), else an array of JAX. A
list is an array per leaf of its elements, with a static capacity, and a length; a maybe is a value
beside the flag that says whether it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from wend.base.lazy.dataclass import dataclass
from wend.ir.types import Type


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class DeviceList:
    """A list.

    Attributes:
        items: its elements, stacked along a first axis; those from `length` on mean nothing.
        length: the number of elements, which may exceed the capacity: then elements are lost, and
            the run is repeated with more room (D34).
        size: the number of elements, if it is known while lowering.
    """

    items: Any
    length: Any
    size: int | None = field(default=None, metadata={"static": True})

    @property
    def capacity(self) -> int:
        """The number of elements that there is room for."""
        shape: tuple[int, ...] = jax.tree.leaves(self.items)[0].shape
        return shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class TripList:
    """A list that a loop in maps has made longer in each trip: a row of it has those of all.

    All elements of the maps begin the loop at once, so what a trip writes and reads is one row.

    Attributes:
        items: as those of a `DeviceList`, but of all elements of the maps: their axes come behind
            the first axis, or behind the first axes of lists in a list.
        length: the number of elements that it has in this element of the maps.
        axes: the names of the axes of the maps, the outer ones first.
        row: where the next trip writes, while the loop runs.
    """

    items: Any
    length: Any
    axes: tuple[str, ...] = field(metadata={"static": True})
    row: Any = None

    @property
    def capacity(self) -> int:
        """The number of trips that there is room for."""
        shape: tuple[int, ...] = jax.tree.leaves(self.items)[0].shape
        return shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Maybe:
    """A value that may be Zero, and is zeros then."""

    is_present: Any
    value: Any


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class TapeSegment:
    """A part of a tape that leaves the device, or several of them along a first axis."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NewList:
    """An empty list; what uses it makes it, with the capacity of its class."""

    element: Type


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Stacked:
    """A list as an array whose first size only the run knows; it has yet to be given a size.

    Attributes:
        items: the list.
        is_uniform: whether it has one row, which stands for any number of them.
    """

    items: DeviceList
    is_uniform: bool = field(default=False, metadata={"static": True})


# Rows of all elements of maps. Under `jax.vmap` what is gathered along the axis of the map is one
# value for all elements, and a loop writes it without a scatter.
def _row(rows: Any, number: Any) -> Any:
    """Return the row of this element; `number` is its position along the axis of the map."""
    return rows[number]


def _rows_of_all(size: int, is_batched: Any, rows: Any, number: Any) -> tuple[Any, Any]:
    is_one_for_all = not is_batched[0]
    return (rows if is_one_for_all else jax.vmap(_row)(rows, number)), True


_along_axis: Any = jax.custom_batching.custom_vmap(_row)
_along_axis.def_vmap(_rows_of_all)


def gathered(value: Any, axes: Sequence[str], depth: int = 0) -> Any:
    """Return a value with those of all elements of maps, as a row of a `TripList` has them."""

    def gather(x: Any) -> Any:
        for axis in reversed(axes):
            x = jax.lax.all_gather(x, axis, axis=depth)
        return x

    match value:
        case TripList():
            return DeviceList(value.items, gathered(value.length, axes, depth))
        case DeviceList():
            items = gathered(value.items, axes, depth + 1)
            return DeviceList(items, gathered(value.length, axes, depth))
        case Maybe():
            is_present = gathered(value.is_present, axes, depth)
            return Maybe(is_present, gathered(value.value, axes, depth))
    return jax.tree.map(gather, value)


def own(value: Any) -> Any:
    """Return a list of this element of the maps, by itself."""
    if not isinstance(value, TripList):
        return value
    return DeviceList(_own_items(value.items, value.axes, 1), value.length)


def _own_items(items: Any, axes: Sequence[str], depth: int) -> Any:
    """Return what this element of the maps has of the items of a list."""

    def pick(x: Any) -> Any:
        for axis in axes:
            x = _along_axis(jnp.moveaxis(x, depth, 0), jax.lax.axis_index(axis))
        return x

    match items:
        case DeviceList():
            length = _own_items(items.length, axes, depth)
            return DeviceList(_own_items(items.items, axes, depth + 1), length)
        case Maybe():
            is_present = _own_items(items.is_present, axes, depth)
            return Maybe(is_present, _own_items(items.value, axes, depth))
    return jax.tree.map(pick, items)


def trip_list(value: DeviceList, axes: Sequence[str]) -> TripList:
    """Return an empty list to which each trip of a loop in maps adds a row."""
    return TripList(gathered(value.items, axes, 1), value.length, tuple(axes), jnp.int32(0))


def row_at(value: TripList, row: Any) -> Any:
    """Return the element of a list in the row of a trip."""

    def get(x: Any) -> Any:
        return jax.lax.dynamic_index_in_dim(x, row, 0, keepdims=False, allow_negative_indices=False)

    return _element(jax.tree.map(get, value.items), value.axes)


def _element(row: Any, axes: tuple[str, ...]) -> Any:
    match row:
        case DeviceList():
            return TripList(row.items, _own_items(row.length, axes, 0), axes)
        case Maybe():
            return Maybe(_own_items(row.is_present, axes, 0), _element(row.value, axes))
    return _own_items(row, axes, 0)


def element_of_trip_list(value: TripList, index: Any) -> Any:
    """Return the element of a list at a position of its own."""
    numbers = [jax.lax.axis_index(axis) for axis in value.axes]

    def get(items: Any, depth: int) -> Any:
        match items:
            case DeviceList():
                return DeviceList(get(items.items, depth + 1), get(items.length, depth))
            case Maybe():
                return Maybe(get(items.is_present, depth), get(items.value, depth))
        key = (index, *[slice(None)] * (depth - 1), *numbers)
        return jax.tree.map(lambda x: x.at[key].get(mode="clip"), items)

    return get(value.items, 1)


def is_static(value: Any) -> bool:
    """Return whether a value is known while lowering."""
    return isinstance(value, (np.ndarray, np.generic))


# Segments in the memory of the host
_HOST, _DEVICE = jax.memory.Space.Host, jax.memory.Space.Device

# Zeros in the host's memory. A copy of zeros would have to be on the device first; this is what a
# `scan` starts from whose results are offloaded, and XLA allocates it where it is written to.
_host_zeros = Primitive("wend_host_zeros")


def _host_zeros_type(*, shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.core.ShapedArray(shape, dtype, memory_space=_HOST)


_host_zeros.def_abstract_eval(_host_zeros_type)
mlir.register_lowering(_host_zeros, mlir.lower_fun(jnp.zeros, multiple_results=False))


def empty_segments(spec: Any, capacity: int) -> TapeSegment:
    """Return room for so many segments in the memory of the host; numbers stay on the device."""

    def make(x: jax.ShapeDtypeStruct) -> Any:
        zeros = _host_zeros.bind if x.shape else jnp.zeros
        return zeros(shape=(capacity, *x.shape), dtype=x.dtype)

    segments: TapeSegment = jax.tree.map(make, spec)
    return segments


def write_segment(segments: TapeSegment, segment: TapeSegment, index: Any) -> TapeSegment:
    """Return segments with one that moves to the host's memory."""

    def put(rows: Any, x: Any) -> Any:
        row = jax.device_put(x, _HOST) if x.ndim else x
        return jax.lax.dynamic_update_index_in_dim(rows, row, index, 0)

    written: TapeSegment = jax.tree.map(put, segments, segment)
    return written


def read_segment(segments: TapeSegment, index: Any) -> TapeSegment:
    """Return a segment, moved to the device; the first one before all others."""
    position = jnp.maximum(index, 0)

    def get(rows: Any) -> Any:
        row = jax.lax.dynamic_index_in_dim(rows, position, 0, keepdims=False)
        return jax.device_put(row, _DEVICE) if row.ndim else row

    segment: TapeSegment = jax.tree.map(get, segments)
    return segment
