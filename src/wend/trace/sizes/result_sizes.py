"""How large the results of operations are, where the sizes of their operands tell."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from wend.ir.graph import Value
from wend.ir.op import Op
from wend.ir.types import Dim
from wend.ops import creating, indexing, shaping
from wend.trace.sizes.integers import (
    ZERO,
    DerivedSize,
    Number,
    constant,
    one,
)


class SizeFacts(Protocol):
    """What is known of integers and sizes."""

    def number(self, value: Value) -> Number: ...

    def of_dim(self, dim: Dim) -> Number: ...

    def source(self, value: Value) -> Value: ...


# Given the operands, the attributes, and which of the new sizes of a result is asked for.
Rule: TypeAlias = Callable[[SizeFacts, Sequence[Value], Mapping[str, Any], int], Number | None]


def _iota(known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int) -> Number:
    return known.number(operands[0]).positive_part()


def _concat(
    known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Number:
    total = ZERO
    for operand in operands:
        total = total.plus(known.of_dim(operand.tensor.dims[attrs["axis"]]))
    return total


def _pad(
    known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Number:
    size = known.of_dim(operands[0].tensor.dims[axis])
    return size.plus(constant(sum(attrs["widths"][axis])))


def _slice(
    known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Number:
    size = known.of_dim(operands[0].tensor.dims[axis])
    start, stop, step = attrs["slices"][axis]
    step = 1 if step is None else step
    if step < 0:
        return one(DerivedSize("slice", (size, start, stop, step)))
    first = constant(0 if start is None else start)
    last = size if stop is None else constant(stop)
    return cut(first, last, size).plus(constant(step - 1)).divided(step)


def cut(start: Number, stop: Number, size: Number) -> Number:
    """How much of an axis there is between two positions."""
    if not all(position.is_constant or position.is_size for position in (start, stop)):
        return one(DerivedSize("cut", (start, stop, size)))  # either may count from the back
    begin, end = _place(start, size), _place(stop, size)
    if start.is_constant and stop.is_constant and (start.constant < 0) == (stop.constant < 0):
        if stop.constant <= start.constant:
            return ZERO
        return end.minus(begin)
    if start.is_constant and start.constant >= 0 and stop.is_constant:
        # From the front up to a place from the back
        return size.plus(stop).minus(start).positive_part()
    return end.minus(begin).positive_part()


def _place(position: Number, size: Number) -> Number:
    """Where a bound of a slice is, counted from the front."""
    if position.is_constant and position.constant < 0:
        return size.plus(position).positive_part()
    return position.least(size)


def _reshape(
    known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Number | None:
    """What −1 stands for."""
    dims, wanted = operands[0].tensor.shape, tuple(map(known.of_dim, attrs["shape"]))
    found = reshaped(None if dims is None else tuple(map(known.of_dim, dims)), wanted)
    return found[wanted.index(constant(-1))]


def reshaped(shape: Sequence[Number] | None, wanted: Sequence[Number]) -> Sequence[Number | None]:
    """The sizes of what has a shape (None: of any rank), brought to another shape.

    A negative size stands for what is left. None for one of which nothing can be said.
    """
    if all(size.is_size for size in wanted):
        return wanted
    if shape is None:
        return [size if size.is_size else None for size in wanted]
    negative = [size for size in wanted if size.is_constant and size.constant < 0]
    others = [size for size in wanted if size not in negative]
    if len(negative) == 1 and all(size.is_size for size in others):
        left = _product(shape).over(_product(others))
        return [left if size in negative else size for size in wanted]
    # Which of them is left, only the run tells.
    whole = DerivedSize("reshape", (*shape, ZERO, *wanted))
    return [
        size if size.is_size else one(DerivedSize("size", (whole, axis)))
        for axis, size in enumerate(wanted)
    ]


def _product(sizes: Iterable[Number]) -> Number:
    return functools.reduce(Number.times, sizes, constant(1))


def _nonzero(
    known: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Number:
    return one(DerivedSize("nonzero", (known.source(operands[0]),)))


RULES: Mapping[Op, Rule] = {
    creating.iota: _iota,
    indexing.nonzero: _nonzero,
    shaping.concat: _concat,
    shaping.pad: _pad,
    shaping.reshape: _reshape,
    shaping.slice_: _slice,
}
