"""Result sizes of operations, as polynomials in the sizes of the operands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from wend.ir.graph import Value
from wend.ir.op import Op
from wend.ir.types import Dim
from wend.ops import creating, fourier, indexing, parts, shaping
from wend.ops.shapes import Bounds
from wend.trace.sizes.integers import ZERO, DerivedSize, Polynomial, constant, symbolic


class SizeFacts(Protocol):
    """The known integers and sizes of a recording."""

    def of_value(self, value: Value) -> Polynomial: ...

    def of_dim(self, dim: Dim) -> Polynomial: ...

    def expression(self, value: Value) -> object: ...


# Takes the operands, the attributes, and the index of one of the result's new sizes.
Rule: TypeAlias = Callable[[SizeFacts, Sequence[Value], Mapping[str, Any], int], Polynomial | None]


def _iota(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Polynomial:
    return facts.of_value(operands[0]).positive_part()


def _concat(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Polynomial:
    total = ZERO
    for operand in operands:
        total = total.plus(facts.of_dim(operand.tensor.dims[attrs["axis"]]))
    return total


def _pad(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Polynomial:
    size = facts.of_dim(operands[0].tensor.dims[axis])
    return size.plus(constant(sum(attrs["widths"][axis])))


def _rfft(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Polynomial:
    size = facts.of_dim(operands[0].tensor.dims[axis])
    return size.floor_div(2).plus(constant(1))


def _slice(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Polynomial:
    return _size_within(facts.of_dim(operands[0].tensor.dims[axis]), attrs["slices"][axis])


def _take_part(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], axis: int
) -> Polynomial:
    return _size_within(facts.of_dim(operands[0].tensor.dims[axis]), attrs["entries"][axis])


def _size_within(size: Polynomial, bounds: Bounds) -> Polynomial:
    """Return the size of a slice of an axis of some size."""
    start, stop, step = bounds
    step = 1 if step is None else step
    if step < 0:
        return symbolic(DerivedSize("slice", (size, start, stop, step)))
    first = constant(0 if start is None else start)
    last = size if stop is None else constant(stop)
    return slice_size(first, last, size).plus(constant(step - 1)).floor_div(step)


def slice_size(start: Polynomial, stop: Polynomial, size: Polynomial) -> Polynomial:
    """Return the size of `x[start:stop]` for an axis of some size."""
    if not all(bound.is_constant or bound.is_nonnegative for bound in (start, stop)):
        return symbolic(DerivedSize("cut", (start, stop, size)))  # a bound may be negative
    begin, end = _clamped_bound(start, size), _clamped_bound(stop, size)
    if start.is_constant and stop.is_constant and (start.constant < 0) == (stop.constant < 0):
        if stop.constant <= start.constant:
            return ZERO
        return end.minus(begin)
    if start.is_constant and start.constant >= 0 and stop.is_constant:
        # `start` counts from the front, `stop` from the end.
        return size.plus(stop).minus(start).positive_part()
    return end.minus(begin).positive_part()


def _clamped_bound(bound: Polynomial, size: Polynomial) -> Polynomial:
    """Return the position that a slice bound denotes, clamped to the axis."""
    if bound.is_constant and bound.constant < 0:
        return size.plus(bound).positive_part()
    return bound.minimum(size)


def _reshape(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Polynomial | None:
    """Return the size that −1 stands for."""
    dims, target = operands[0].tensor.shape, tuple(map(facts.of_dim, attrs["shape"]))
    sizes = reshape_sizes(None if dims is None else tuple(map(facts.of_dim, dims)), target)
    return sizes[target.index(constant(-1))]


def reshape_sizes(
    shape: Sequence[Polynomial] | None, target: Sequence[Polynomial]
) -> Sequence[Polynomial | None]:
    """Return the sizes of an array after a reshape; None for each unknown one.

    Args:
        shape: the array's sizes; None if its rank is unknown.
        target: the new shape, in which a negative size is inferred.
    """
    if all(size.is_nonnegative for size in target):
        return target
    if shape is None:
        return [size if size.is_nonnegative else None for size in target]
    negative = [size for size in target if size.is_constant and size.constant < 0]
    others = [size for size in target if size not in negative]
    if len(negative) == 1 and all(size.is_nonnegative for size in others):
        inferred = _product(shape).exact_quotient(_product(others))
        return [inferred if size in negative else size for size in target]
    # Only the run tells which of them is inferred.
    whole = DerivedSize("reshape", (*shape, ZERO, *target))
    return [
        size if size.is_nonnegative else symbolic(DerivedSize("size", (whole, axis)))
        for axis, size in enumerate(target)
    ]


def _product(sizes: Iterable[Polynomial]) -> Polynomial:
    return functools.reduce(Polynomial.times, sizes, constant(1))


def _nonzero(
    facts: SizeFacts, operands: Sequence[Value], attrs: Mapping[str, Any], k: int
) -> Polynomial:
    return symbolic(DerivedSize("nonzero", (facts.expression(operands[0]),)))


RULES: Mapping[Op, Rule] = {
    creating.iota: _iota,
    fourier.rfft: _rfft,
    indexing.nonzero: _nonzero,
    parts.take_part: _take_part,
    shaping.concat: _concat,
    shaping.pad: _pad,
    shaping.reshape: _reshape,
    shaping.slice_: _slice,
}
