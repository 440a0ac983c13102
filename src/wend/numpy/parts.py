"""Parts of staged arrays that NumPy's basic indexing names, some by numbers that are staged."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.ir.op import Op
from wend.ir.types import Dim, TensorType
from wend.numpy import shaping
from wend.numpy.slices import cut_at, has_staged_bounds, is_whole, known_bounds
from wend.ops import parts as ops
from wend.ops import shaping as shaping_ops
from wend.ops.shapes import size_of
from wend.ops.shaping import Slices

_WHOLE = slice(None)
_SMALL = 16  # numbers, which backends may hold in registers


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an array, as the operations of `ops.parts` name it.

    Attributes:
        entries: one for each axis.
        positions: the operands that they take.
        cuts: the sizes of what is cut.
        steps: slices of the part, where staged bounds come with a step; else empty.
    """

    entries: ops.Entries
    positions: Sequence[Any]
    cuts: tuple[Dim, ...]
    steps: Slices

    def take(self, x: Any) -> Any:
        """The part."""
        found = apply(ops.take_part, x, *self.positions, entries=self.entries, cuts=self.cuts)
        return apply(shaping_ops.slice_, found, slices=self.steps) if self.steps else found

    def put(self, op: Op, x: Any, value: Any) -> Any:
        """The array with the part replaced, or something added to it; there are no steps."""
        return apply(op, x, value, *self.positions, entries=self.entries)


def named(x: Any, keys: Sequence[Any]) -> Part:
    """The part that numbers and slices name, one for each axis.

    Raises:
        IndexError: a number that is known is out of range.
    """
    named: list[ops.Entry] = []
    positions: list[Any] = []
    cuts: list[Dim] = []
    steps: list[ops.Bounds] = []
    for axis, (key, size) in enumerate(zip(keys, tensor_type(x).dims, strict=True)):
        if not isinstance(key, slice):
            _check_range(key, axis, size)
            named.append(ops.AT)
            positions.append(cast(key, INT64) if isinstance(key, Staged) else np.int64(key))
        elif has_staged_bounds(key):
            start, stop, cut = cut_at(key, shaping.shape(x)[axis])
            named.append(ops.CUT)
            positions += [start, stop]
            cuts.append(cut)
            steps.append((None, None, None if key.step == 1 else key.step))
        else:
            named.append(known_bounds(key))
            steps.append((None, None, None))
    has_steps = any(step is not None for _, _, step in steps)
    return Part(tuple(named), positions, tuple(cuts), tuple(steps) if has_steps else ())


def _check_range(key: Any, axis: int, size: Dim) -> None:
    if not isinstance(key, Staged) and isinstance(size, int) and not -size <= key < size:
        raise IndexError(f"index {key} is out of bounds for axis {axis} with size {size}")


def is_small(x: Any) -> bool:
    """Whether an array may be held in registers, a number in each."""
    size = size_of(tensor_type(x).dims)
    return size is not None and size <= _SMALL


def are_simple(keys: Sequence[Any]) -> bool:
    """Whether they are leading numbers alone, or cut one axis: that has operations of its own."""
    named = [k for k, key in enumerate(keys) if not is_whole(key)]
    if any(isinstance(keys[k], slice) for k in named):
        return len(named) == 1
    return named == list(range(len(named)))


def are_same(key: Any, other: Any) -> bool:
    """Whether two keys are made of the same objects."""
    if isinstance(key, slice) and isinstance(other, slice):
        bounds = (key.start, key.stop, key.step), (other.start, other.stop, other.step)
        return all(map(operator.is_, *bounds))
    if isinstance(key, tuple) and isinstance(other, tuple):
        return len(key) == len(other) and all(map(are_same, key, other))
    return key is other


def staged_entries(known: TensorType, key: Any) -> list[Any] | None:
    """The entry of each axis, if a key has numbers and slices alone, some of them staged."""
    return entries(known, key) if is_staged_key(key) else None


def entries(known: TensorType, key: Any) -> list[Any] | None:
    """The entry of each axis, if a key has numbers and slices alone."""
    found = list(key) if isinstance(key, tuple) else [key]
    if known.shape is None or not is_basic(key):
        return None
    if any(entry is None or isinstance(entry, bool) or _is_inexact(entry) for entry in found):
        return None
    dots = [k for k, entry in enumerate(found) if entry is Ellipsis]
    missing = len(known.dims) - len(found) + len(dots)
    if len(dots) > 1 or missing < 0:
        return None  # the error is told where the array itself is indexed
    place = dots[0] if dots else len(found)
    found[place : place + len(dots)] = [_WHOLE] * missing
    return found


def _is_inexact(entry: Any) -> bool:
    return isinstance(entry, Staged) and entry.type.dtype.kind not in "iu"


def is_staged_key(key: Any) -> bool:
    """Whether a staged array is in a key, also in a list of positions."""
    if isinstance(key, (tuple, list)):
        return any(map(is_staged_key, key))
    return isinstance(key, Staged) or has_staged_bounds(key)


def is_basic(key: Any) -> bool:
    """Whether NumPy takes a view for it: integers, slices, None and an ellipsis, no arrays."""
    return all(
        entry is None
        or entry is Ellipsis
        or isinstance(entry, (slice, int, np.integer))
        or (isinstance(entry, Staged) and entry.type.shape == () and entry.type.dtype != BOOL)
        for entry in (key if isinstance(key, tuple) else (key,))
    )
