"""Sizes and strides as products, which can be compared while code is written."""

from __future__ import annotations

from typing import TypeAlias

from wend.backends.native.target.sizes import SizeArithmetic, known

# A number, and the registers that it is multiplied by, sorted
Extent: TypeAlias = tuple[int, tuple[str, ...]]

NONE: Extent = (0, ())
ONE: Extent = (1, ())


def extent(size: str) -> Extent:
    """A size, a literal or a register."""
    return (int(size), ()) if known(size) else (1, (size,))


def times(x: Extent, y: Extent) -> Extent:
    """The product of two."""
    if 0 in (x[0], y[0]):
        return NONE
    return x[0] * y[0], tuple(sorted((*x[1], *y[1])))


def strides(dims: tuple[str, ...]) -> list[Extent]:
    """How far neighbours along each axis lie apart, in elements, in C order."""
    found, step = [], ONE
    for size in reversed(dims):
        found.append(step)
        step = times(step, extent(size))
    return found[::-1]


def written(sizes: SizeArithmetic, x: Extent) -> str:
    """The register, or the literal, that holds it."""
    found = str(x[0])
    for factor in x[1]:
        found = sizes.mul(found, factor)
    return found


def plus(sizes: SizeArithmetic, x: Extent, y: Extent) -> Extent:
    """The sum of two."""
    if NONE in (x, y):
        return y if x == NONE else x
    return extent(sizes.add(written(sizes, x), written(sizes, y)))
