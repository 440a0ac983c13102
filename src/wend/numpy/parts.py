"""Subviews of staged arrays, as basic indexing selects them, some at staged positions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import tensor_type
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.ir.types import Dim, TensorType
from wend.numpy import shaping
from wend.numpy.slices import (
    FULL_SLICE,
    as_position,
    checked_position,
    has_staged_bounds,
    is_full_slice,
    narrow_bounds,
    static_bounds,
)
from wend.ops import parts as ops
from wend.ops import shaping as shaping_ops
from wend.ops.shapes import WHOLE, Bounds, Slices, size_of

_MAX_SCALARIZED_SIZE = 16  # elements; backends may hold such an array in registers


@dataclass(frozen=True, slots=True)
class Subview:
    """A part of an array, in the form that the operations of `ops.parts` take.

    Attributes:
        entries: one entry for each axis.
        positions: the operands that the entries consume.
        cuts: the sizes of the `"cut"` axes.
        steps: slices to apply to the loaded part if a slice with staged bounds has a step; else ().
    """

    entries: ops.Entries
    positions: Sequence[Any]
    cuts: tuple[Dim, ...]
    steps: Slices

    def load(self, x: Any) -> Any:
        """Return the part of `x`."""
        part = apply(ops.take_part, x, *self.positions, entries=self.entries, cuts=self.cuts)
        return apply(shaping_ops.slice_, part, slices=self.steps) if self.steps else part

    def store(self, op: Op, x: Any, value: Any) -> Any:
        """Return the array with the part set or added to, depending on `op`; ignores `steps`."""
        return apply(op, x, value, *self.positions, entries=self.entries)


def subview_of(x: Any, keys: Sequence[Any]) -> Subview:
    """Return the subview selected by `keys`, an integer or slice for each axis.

    Raises:
        IndexError: a static position is out of range.
    """
    entries: list[ops.Entry] = []
    positions: list[Any] = []
    cuts: list[Dim] = []
    steps: list[Bounds] = []
    for axis, (key, size) in enumerate(zip(keys, tensor_type(x).dims, strict=True)):
        if not isinstance(key, slice):
            if not isinstance(key, Staged):
                checked_position(key, axis, size)
            entries.append(ops.AT)
            positions.append(as_position(key))
        elif has_staged_bounds(key):
            start, stop, cut = narrow_bounds(key, shaping.shape(x)[axis])
            entries.append(ops.CUT)
            positions += [start, stop]
            cuts.append(cut)
            steps.append((None, None, None if key.step == 1 else key.step))
        else:
            entries.append(static_bounds(key))
            steps.append(WHOLE)
    has_steps = any(step is not None for _, _, step in steps)
    return Subview(tuple(entries), positions, tuple(cuts), tuple(steps) if has_steps else ())


def is_small(x: Any) -> bool:
    """Return whether backends may hold the array in registers, one per element."""
    size = size_of(tensor_type(x).dims)
    return size is not None and size <= _MAX_SCALARIZED_SIZE


def has_dedicated_op(keys: Sequence[Any]) -> bool:
    """Return whether the key has an operation of its own.

    Such a key has leading integers only, or cuts a single axis.
    """
    indexed_axes = [k for k, key in enumerate(keys) if not is_full_slice(key)]
    if any(isinstance(keys[k], slice) for k in indexed_axes):
        return len(indexed_axes) == 1
    return indexed_axes == list(range(len(indexed_axes)))


def same_key(key: Any, other: Any) -> bool:
    """Return whether two keys consist of the same objects."""
    if isinstance(key, slice) and isinstance(other, slice):
        bounds = (key.start, key.stop, key.step), (other.start, other.stop, other.step)
        return all(map(operator.is_, *bounds))
    if isinstance(key, tuple) and isinstance(other, tuple):
        return len(key) == len(other) and all(map(same_key, key, other))
    return key is other


def staged_axis_entries(x_type: TensorType, key: Any) -> list[Any] | None:
    """Return the entry of each axis if the key has only integers and slices, at least one staged.

    None for any other key.
    """
    return axis_entries(x_type, key) if is_staged_key(key) else None


def axis_entries(x_type: TensorType, key: Any) -> list[Any] | None:
    """Return the entry of each axis if the key has only integers and slices, else None."""
    entries = list(key) if isinstance(key, tuple) else [key]
    if x_type.shape is None or not is_basic(key):
        return None
    if any(entry is None or isinstance(entry, bool) or _is_inexact(entry) for entry in entries):
        return None
    dots = [k for k, entry in enumerate(entries) if entry is Ellipsis]
    missing = len(x_type.dims) - len(entries) + len(dots)
    if len(dots) > 1 or missing < 0:
        return None  # indexing the array itself raises the error
    ellipsis_position = dots[0] if dots else len(entries)
    entries[ellipsis_position : ellipsis_position + len(dots)] = [FULL_SLICE] * missing
    return entries


def _is_inexact(entry: Any) -> bool:
    return isinstance(entry, Staged) and entry.type.dtype.kind not in "iu"


def is_staged_key(key: Any) -> bool:
    """Return whether a key contains a staged array, also in a list of positions."""
    if isinstance(key, (tuple, list)):
        return any(map(is_staged_key, key))
    return isinstance(key, Staged) or has_staged_bounds(key)


def is_basic(key: Any) -> bool:
    """Return whether the key is one of basic indexing, for which NumPy returns a view.

    That is, it has integers, slices, None and ellipses only.
    """
    return all(
        entry is None
        or entry is Ellipsis
        or isinstance(entry, (slice, int, np.integer))
        or (isinstance(entry, Staged) and entry.type.shape == () and entry.type.dtype != BOOL)
        for entry in (key if isinstance(key, tuple) else (key,))
    )
