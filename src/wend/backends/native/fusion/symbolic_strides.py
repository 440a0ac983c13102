"""Symbolic sizes and strides: products that can be compared during code generation."""

from __future__ import annotations

from typing import TypeAlias

from wend.backends.native.target.sizes import SizeArithmetic, is_literal

# A coefficient, and the sorted registers that it is multiplied by
Extent: TypeAlias = tuple[int, tuple[str, ...]]

ZERO_EXTENT: Extent = (0, ())
ONE_EXTENT: Extent = (1, ())


def extent(size: str) -> Extent:
    """Return a size, which is a literal or a register, as an extent."""
    return (int(size), ()) if is_literal(size) else (1, (size,))


def multiply(x: Extent, y: Extent) -> Extent:
    """Return the product of two extents."""
    if 0 in (x[0], y[0]):
        return ZERO_EXTENT
    return x[0] * y[0], tuple(sorted((*x[1], *y[1])))


def strides(dims: tuple[str, ...]) -> list[Extent]:
    """Return the strides of an array in C order, in elements."""
    steps, step = [], ONE_EXTENT
    for size in reversed(dims):
        steps.append(step)
        step = multiply(step, extent(size))
    return steps[::-1]


def materialize(sizes: SizeArithmetic, x: Extent) -> str:
    """Return the register or literal that holds an extent."""
    product = str(x[0])
    for factor in x[1]:
        product = sizes.mul(product, factor)
    return product


def add_extents(sizes: SizeArithmetic, x: Extent, y: Extent) -> Extent:
    """Return the sum of two extents."""
    if ZERO_EXTENT in (x, y):
        return y if x == ZERO_EXTENT else x
    return extent(sizes.add(materialize(sizes, x), materialize(sizes, y)))
