"""Windows that slide along axes of a traced array."""

from __future__ import annotations

import operator
from typing import Any

from numpy.lib import stride_tricks
from numpy.lib.array_utils import normalize_axis_tuple

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.numpy import indexing, ranges, shaping
from wend.numpy.operands import operand, require, staged
from wend.numpy.public import implements
from wend.numpy.views import read_only_view


@implements(stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Return all windows of a shape; see `numpy.lib.stride_tricks.sliding_window_view`.

    The windows of a traced array are a read-only view.

    Raises:
        UnsupportedError: `writeable` is True.
    """
    del subok  # a traced array has no subclass
    if writeable:
        raise UnsupportedError(
            explain(
                f"sliding_window_view(writeable=True){at(user_source())} is not recorded: windows "
                "share elements.",
                cure="write to the array itself.",
            )
        )
    x = operand(x)
    windows = _sizes(window_shape)
    if any(isinstance(size, int) and size < 0 for size in windows):
        raise ValueError("`window_shape` cannot contain negative values")
    axes = _axes(axis, shaping.rank_of(x), len(windows))
    result = staged(x)
    for k, size in zip(axes, windows, strict=True):
        result = _along(result, k, size)
    return read_only_view(x, result)


def _sizes(window_shape: Any) -> tuple[Any, ...]:
    is_number = shaping.is_single_number(window_shape)
    sizes = (window_shape,) if is_number else tuple(window_shape)
    return tuple([x if isinstance(x, Staged) else operator.index(x) for x in sizes])


def _axes(axis: Any, rank: int, count: int) -> tuple[int, ...]:
    """Return the axis of each of `count` windows, which may repeat."""
    if axis is None:
        if count != rank:
            raise ValueError(
                "Since axis is `None`, must provide window_shape for all dimensions of `x`; "
                f"got {count} window_shape elements and `x.ndim` is {rank}."
            )
        return tuple(range(rank))
    axes = tuple(normalize_axis_tuple(axis, rank, allow_duplicate=True))
    if count != len(axes):
        raise ValueError(
            f"Must provide matching length window_shape and axis; got {count} window_shape "
            f"elements and {len(axes)} axes elements."
        )
    return axes


def _along(x: Any, axis: int, window: Any) -> Any:
    """Return the windows along one axis; the positions in a window are the last axis."""
    size = shaping.shape(x)[axis]
    text = "window shape cannot be larger than input array shape"
    if isinstance(window, Staged):
        negative = "`window_shape` cannot contain negative values"
        window = require(window, ew.less(window, 0), ValueError, negative)
    x = require(x, ew.greater(window, size), ValueError, text)
    starts, offsets = (staged(ranges.arange(n)) for n in (size - window + 1, window))
    positions = ew.add(shaping.expand_dims(starts, 1), offsets)
    return shaping.moveaxis(indexing.take(x, positions, axis), axis + 1, -1)
