"""What array functions do to their operands before they compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wend.base.errors import ShapeError
from wend.eager.dispatch import Staged, any_staged, apply, recorder
from wend.eager.promotion import as_array, cast, is_weak, result_dtype, tensor_type
from wend.numpy import creating, shaping
from wend.ops import creating as creating_ops
from wend.ops import shaping as ops


def operand(x: Any) -> Any:
    """The operand as an array or number; a list of it may have traced numbers in it."""
    return creating.asarray(x) if isinstance(x, (list, tuple)) and any_staged(x) else as_array(x)


def staged(x: Any) -> Any:
    """The operand as a value of the graph; Python's numbers stay as they are, for they are weak.

    So an array that the user may change is read when the function runs (D9).
    """
    x = operand(x)
    current = recorder.get()
    if current is None or not isinstance(x, (np.ndarray, np.generic)):
        return x
    return current.emit(ops.refine, (x,), {"type": tensor_type(x)})[0]


def all_staged(xs: Sequence[Any]) -> list[Any]:
    """Each operand as `staged` gives it."""
    return [staged(x) for x in xs]


def strong(x: Any) -> Any:
    """The operand with a dtype of its own: NumPy takes Python's numbers as arrays here."""
    x = staged(x)
    return cast(x, tensor_type(x).dtype) if is_weak(x) else x


def alike(*xs: Any) -> list[Any]:
    """Operands in their common dtype."""
    arrays = all_staged(xs)
    dtype = result_dtype(*arrays)
    return [cast(x, dtype) for x in arrays]


def inexact(*xs: Any) -> list[Any]:
    """Operands in their common dtype, float64 if that is none of floats."""
    arrays = all_staged(xs)
    dtype = result_dtype(*arrays)
    dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    return [cast(x, dtype) for x in arrays]


def dtype_of(x: Any) -> np.dtype:
    """The dtype of an operand, traced or not."""
    return tensor_type(x).dtype


def is_float(x: Any) -> bool:
    """Whether the numbers are real or complex floats."""
    return tensor_type(x).dtype.kind in "fc"


def axes_of(x: Any, axis: Any) -> tuple[int, ...]:
    """The axes meant, None being all."""
    rank = shaping.rank_of(x)
    return tuple(range(rank)) if axis is None else tuple(normalize_axis_tuple(axis, rank))


def known_size(x: Any, axis: int, role: str) -> int:
    """The size of an axis, which must be known before the run."""
    size = tensor_type(x).dims[axis]
    if not isinstance(size, int):
        raise ShapeError(f"{role} needs the size of axis {axis} before the run")
    return size


def count_of(x: Any, axis: Any = None) -> Any:
    """The number of elements along the axes: an int where it is known, else a traced one."""
    sizes = shaping.shape(x)
    total: Any = 1
    for k in axes_of(x, axis):
        total = total * sizes[k]
    return total


def nonnegative(number: Any, message: str) -> Any:
    """A size or counts; where one is negative a ValueError, with it in place of `{}`."""
    checked = apply(creating_ops.nonnegative, number, message=message)
    is_traced = isinstance(checked, Staged)
    if is_traced:
        checked.weak = is_weak(number)
    return checked


def along(x: Any, axis: int, part: slice) -> Any:
    """A part of one axis."""
    key = (slice(None),) * axis + (part,)
    return x[key]


def is_traced_size(size: Any) -> bool:
    """Whether a size, or one of a tuple of sizes, is only known when the function runs."""
    return isinstance(size, Staged) or (isinstance(size, (tuple, list)) and any_staged(size))
