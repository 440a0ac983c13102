"""Checks and small functions that the shape rules of several families share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError, listed
from wend.ir.dtypes import INTEGERS, short
from wend.ir.types import Dim, Shape, Symbol, TensorType, Type

# A slice of an axis: start, stop and step
Bounds: TypeAlias = tuple[int | None, int | None, int | None]
Slices: TypeAlias = tuple[Bounds, ...]

WHOLE: Bounds = (None, None, None)


def known_position(number: int | None, size: Dim) -> int | None:
    """Return the position, from the start, of a number that is known to be in range; else None."""
    if number is None or not isinstance(size, int) or not -size <= number < size:
        return None
    return number % size


def tensor_of(type: Type, role: str = "the operand") -> TensorType:
    """Return the type as a tensor's; raise an error with its role if it is another."""
    if not isinstance(type, TensorType):
        raise TypeMismatchError(f"{role} must be a tensor, not {type}")
    return type


def check_dtype(type: TensorType, allowed: Collection[np.dtype], role: str = "the operand") -> None:
    """Check that the dtype is one of those allowed."""
    if type.dtype not in allowed:
        names = listed(sorted(short(dtype) for dtype in allowed))
        raise TypeMismatchError(f"{role} is {type}; it takes {names}")


def check_same(types: tuple[Type, ...]) -> TensorType:
    """Check that all operands have one type: graphs neither promote nor broadcast implicitly."""
    first = tensor_of(types[0])
    for type in types[1:]:
        if type != first:
            raise ShapeError(f"operands must have one type, found {listed(types)}")
    return first


def check_scalar_index(type: Type, role: str) -> None:
    """Check that the operand is a position or a size: one integer."""
    tensor = tensor_of(type, role)
    if tensor.shape != () or tensor.dtype not in INTEGERS:
        raise TypeMismatchError(f"{role} must be an integer scalar, not {tensor}")


def check_axis(axis: int, rank: int) -> None:
    """Check that the axis is nonnegative and in range."""
    if not 0 <= axis < rank:
        raise ShapeError(f"axis {axis} is out of range for an array of {rank} dimensions")


def same_dim(a: Dim, b: Dim, role: str) -> Dim:
    """Return the common size of two dimensions; a symbol and a number may be equal at run time."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ShapeError(f"{role} differ: {a} and {b}")
    return b if isinstance(a, Symbol) else a


def size_of(shape: Shape) -> int | None:
    """Return the number of elements, or None where it is not static."""
    size = 1
    for dim in shape:
        if isinstance(dim, Symbol):
            return None
        size *= dim
    return size


def unwrap_single(results: Sequence[Any]) -> Any:
    """Return the results of a kernel: a tuple, or the only one."""
    return results[0] if len(results) == 1 else tuple(results)
