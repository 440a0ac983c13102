"""`np.r_[…]` and `np.c_[…]` of traced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.promotion import is_weak, result_dtype
from wend.numpy import creating, ranges, shaping

Concatenator: Any = type(np.r_).__mro__[1]  # the class of both


def concatenated(concatenator: Any, key: Any) -> Any:
    """Return `np.r_[key]` or `np.c_[key]`; see `numpy.r_`.

    Raises:
        UnsupportedError: it asks for a matrix.
    """
    axis, ndmin, position = concatenator.axis, concatenator.ndmin, concatenator.trans1d
    items = key if isinstance(key, tuple) else (key,)
    if items and isinstance(items[0], str):
        axis, ndmin, position = _directive(items[0], axis, ndmin, position)
        items = items[1:]
    parts = [_range(item) if isinstance(item, slice) else item for item in items]
    # Python's numbers have the dtype of the arrays
    dtype = result_dtype(*(x if is_weak(x) else creating.asarray(x) for x in parts))
    arrays = [creating.asarray(x, dtype) for x in parts]
    return shaping.concatenate([_part(array, ndmin, position) for array in arrays], axis)


def _directive(text: str, axis: int, ndmin: int, position: int) -> tuple[int, int, int]:
    """Return the axis, the least rank, and where the axis of a vector goes."""
    numbers = text.split(",")
    if not all(number.strip().lstrip("-").isdigit() for number in numbers):
        problem = f"np.r_[{text!r}, …]{at(user_source())} makes a matrix."
        raise UnsupportedError(explain(problem, cure="use np.concatenate or np.stack."))
    first, second, third = [*map(int, numbers), *[axis, ndmin, position][len(numbers) :]]
    return first, second, third


def _part(array: Any, ndmin: int, position: int) -> Any:
    rank = shaping.rank_of(array)
    missing = ndmin - rank
    if missing <= 0:
        return array if rank else shaping.reshape(array, 1)
    array = shaping.reshape(array, (1,) * missing + shaping.shape(array))
    if position == -1 or not rank:
        return array
    start = position + missing + 1 if position < 0 else position
    axes = [*range(ndmin)]
    return shaping.transpose(array, axes[:start] + axes[missing:] + axes[start:missing])


def _range(part: slice) -> Any:
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if isinstance(step, complex):
        return ranges.linspace(start, part.stop, int(abs(step)))
    return ranges.arange(start, part.stop, step)
