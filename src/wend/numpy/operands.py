"""Preparation of the operands of array functions: conversion, promotion and size queries."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wend.base.errors import TypeMismatchError
from wend.eager.checking import checked
from wend.eager.dispatch import Staged, any_staged, apply, recorder
from wend.eager.promotion import (
    PYTHON_SCALARS,
    as_array,
    as_element,
    cast,
    is_scalar,
    is_weak,
    result_dtype,
    tensor_type,
)
from wend.ir.dtypes import is_supported
from wend.numpy import creating, shaping
from wend.ops import creating as creating_ops
from wend.ops import shaping as ops


def operand(x: Any) -> Any:
    """Return the operand as an array or number; it may be a list that holds traced numbers."""
    return creating.asarray(x) if isinstance(x, (list, tuple)) and any_staged(x) else as_array(x)


def put_operand(x: Any, dtype: np.dtype, *, is_assigned: bool = False) -> Any:
    """Return an operand that is put into an array; NumPy casts what is no number to its dtype.

    A scalar of NumPy that is assigned has to fit a signed dtype, as Python's numbers have to fit
    any.

    Raises:
        TypeMismatchError: it is an array that holds no numbers, or complex ones for real ones.
        TypeError: it is Python's, and complex for real numbers.
    """
    array = operand(x)
    is_plain = not isinstance(array, (Staged, *PYTHON_SCALARS))
    is_list = isinstance(x, (list, tuple, range))
    if is_plain and (is_list or not is_supported(array.dtype)):
        elements = np.empty(array.shape, dtype)
        elements[...] = x if is_list else array  # NumPy's error where it has none
        if is_list or not (isinstance(x, np.ndarray) and x.ndim):
            return elements[()]
        # Refused below: it is captured by reference, and no graph can read it.
    if tensor_type(array).dtype.kind == "c" and dtype.kind not in "bc":
        if is_weak(array) or is_list:
            dtype.type(1j)  # NumPy's error
        raise TypeMismatchError(f"cannot put {tensor_type(array)} into an array of {dtype}")
    if dtype.kind not in "iu":
        return array
    if is_list:  # whose numbers have to fit, too
        return creating.asarray(x, dtype)
    is_number = is_weak(array) or (is_assigned and is_scalar(array))
    return as_element(array, dtype, is_assigned=is_assigned) if is_number else array


def put_rank(x: Any) -> int:
    """Return the number of axes of an operand that is put into an array."""
    array = operand(x)
    return shaping.rank_of(array) if isinstance(array, Staged) else np.ndim(array)


def check_single(x: Any, dtype: np.dtype) -> None:
    """Raise NumPy's error for an operand with axes that is put where one element is.

    Raises:
        ValueError: a sequence is assigned to one element.
        TypeError: likewise, where NumPy takes it for a number that cannot be converted.
    """
    is_array = isinstance(x, (Staged, np.ndarray))
    if not is_array:
        np.empty(1, dtype)[0] = [0.0] if any_staged([x]) else x
    raise ValueError("setting an array element with a sequence.")


def staged(x: Any) -> Any:
    """Return the operand as a value of the graph; Python scalars stay as they are, weakly typed.

    An array that the user may mutate is therefore read when the function runs (D9).
    """
    x = operand(x)
    current = recorder.get()
    if current is None or not isinstance(x, (np.ndarray, np.generic)):
        return x
    return current.emit(ops.refine, (x,), {"type": tensor_type(x)})[0]


def all_staged(xs: Sequence[Any]) -> list[Any]:
    """Apply `staged` to each operand."""
    return [staged(x) for x in xs]


def strong(x: Any) -> Any:
    """Return the operand with a strong dtype.

    For functions in which NumPy treats Python scalars as arrays.
    """
    x = staged(x)
    if not is_weak(x):
        return x
    if isinstance(x, Staged):
        return x.as_zero_dim()  # type: ignore[attr-defined]  # a traced number
    return cast(x, tensor_type(x).dtype)


def python_bool(x: Any) -> Any:
    """Return a bool of NumPy, plain or staged, as Python's."""
    return x.as_weak() if isinstance(x, Staged) else bool(x)  # type: ignore[attr-defined]


def promote_dtypes(*xs: Any) -> list[Any]:
    """Cast the operands to their common dtype."""
    arrays = all_staged(xs)
    dtype = result_dtype(*arrays)
    return [cast(x, dtype) for x in arrays]


def promote_dtypes_inexact(*xs: Any) -> list[Any]:
    """Cast the operands to their common dtype, or to float64 if that is not inexact."""
    arrays = all_staged(xs)
    dtype = result_dtype(*arrays)
    dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    return [cast(x, dtype) for x in arrays]


def promote_linalg(*xs: Any) -> list[Any]:
    """Cast the operands to their common dtype as `numpy.linalg` does: integers are float64."""
    arrays = [promote_dtypes_inexact(as_array(x))[0] for x in xs]
    if any(dtype_of(x) == np.float16 for x in arrays):
        raise TypeError("array type float16 is unsupported in linalg")
    return promote_dtypes(*arrays)


def dtype_of(x: Any) -> np.dtype:
    """Return the dtype of an operand, traced or not."""
    return tensor_type(x).dtype


def is_inexact(x: Any) -> bool:
    """Return whether the dtype is that of real or complex floats."""
    return tensor_type(x).dtype.kind in "fc"


def normalize_axes(x: Any, axis: Any) -> tuple[int, ...]:
    """Return the axes as non-negative integers; None means all axes."""
    rank = shaping.rank_of(x)
    return tuple(range(rank)) if axis is None else tuple(normalize_axis_tuple(axis, rank))


def as_axis(axis: Any) -> int:
    """Return one axis as NumPy's functions in C read it, which take no bools."""
    if isinstance(axis, (bool, np.bool)):
        raise TypeError("an integer is required for the axis")
    return operator.index(axis)


def element_count(x: Any, axis: Any = None) -> Any:
    """Return the number of elements along the axes: an int if known statically, else traced."""
    sizes = shaping.shape(x)
    total: Any = 1
    for k in normalize_axes(x, axis):
        total = total * sizes[k]
    return total


def check_nonnegative(number: Any, message: str) -> Any:
    """Return the operand, checked at run time.

    A negative element raises a ValueError; the element replaces `{}` in its message.
    """
    checked = apply(creating_ops.nonnegative, number, message=message)
    is_traced = isinstance(checked, Staged)
    if is_traced:
        return checked.as_weak() if is_weak(number) else checked
    return checked


def require(x: Any, fails: Any, error: type[Exception], text: str) -> Any:
    """Return the operand; an error is raised if `fails` holds: now, or where only the run knows."""
    if isinstance(fails, Staged):
        return checked(x, (fails, error, text))
    if fails:
        raise error(text)
    return x


def slice_axis(x: Any, axis: int, part: slice) -> Any:
    """Return a slice of one axis."""
    key = (slice(None),) * axis + (part,)
    return x[key]


def is_traced_size(size: Any) -> bool:
    """Return whether a size, or one of a tuple of sizes, is traced."""
    return isinstance(size, Staged) or (isinstance(size, (tuple, list)) and any_staged(size))
