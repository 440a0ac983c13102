"""Values of a graph while it is lowered, and between runs.

A tensor is a NumPy array where it is known while lowering (sizes are), else an array of JAX. A
list is an array per leaf of its elements, with a static capacity, and a length; a maybe is a value
beside the flag that says whether it is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

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
        row: the length that it has in those elements of a map that have made all trips so far.
    """

    items: Any
    length: Any
    size: int | None = field(default=None, metadata={"static": True})
    row: Any = None

    @property
    def capacity(self) -> int:
        """The number of elements that there is room for."""
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


@dataclass(frozen=True, slots=True)
class Stacked:
    """A list as an array whose first size only the run knows; it has yet to be given a size."""

    items: DeviceList


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
