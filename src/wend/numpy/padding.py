"""`np.pad` in all modes; `shaping.pad` pads with one constant or by position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.promotion import cast, tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import ranges, reducing, shaping, statistics
from wend.numpy.operands import dtype_of, slice_axis, staged
from wend.numpy.public import implements

_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reducing.max,
    "minimum": reducing.min,
    "mean": reducing.mean,
    "median": statistics.median,
}


@implements(np.pad)
def pad(x: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    """Pad an array; see `numpy.pad`.

    Raises:
        UnsupportedError: the mode is a function, or `reflect_type` is "odd".
    """
    x, rank = staged(x), shaping.rank_of(x)
    if isinstance(pad_width, dict):
        widths_of = [pad_width.get(k, pad_width.get(k - rank, 0)) for k in range(rank)]
        pad_width = [np.broadcast_to(np.asarray(widths), 2).tolist() for widths in widths_of]
    if mode not in ("empty", "linear_ramp", *_STATISTICS):
        values = options.get("constant_values", 0)
        is_single = mode != "constant" or not np.ndim(values)
        if is_single:
            return shaping.pad(x, pad_width, mode, **options)
    known = np.ones([min(dim, 1) if isinstance(dim, int) else 1 for dim in tensor_type(x).dims])
    np.pad(known, pad_width, mode, **options)  # NumPy's errors
    if mode == "empty":
        return shaping.pad(x, pad_width)
    name = "constant_values" if mode == "constant" else "end_values"
    ends = _pairs(options.get(name, 0), rank)
    lengths = _pairs(options.get("stat_length"), rank)
    for axis, widths in enumerate(_pairs(pad_width, rank)):
        sides = zip(widths, ends[axis], lengths[axis], (False, True), strict=True)
        before, after = (
            _padding(x, axis, int(width), mode, end, length, is_after)
            for width, end, length, is_after in sides
        )
        x = shaping.concatenate([before, x, after], axis=axis)
    return x


def _pairs(x: Any, rank: int) -> list[Any]:
    """Return what is before and after each axis."""
    pairs: list[Any] = np.broadcast_to(np.asarray(x), (rank, 2)).tolist()
    return pairs


def _padding(
    x: Any, axis: int, width: int, mode: str, end: Any, length: Any, is_after: bool
) -> Any:
    """Return what is joined to one end of an axis."""
    shape = shaping.shape(x)
    sizes = (*shape[:axis], width, *shape[axis + 1 :])
    if mode == "constant":
        value = np.asarray(end).astype(dtype_of(x))[()]
        return shaping.new_full(staged(value), sizes)
    if mode == "linear_ramp":
        part = slice(-1, None) if is_after else slice(0, 1)
        edge = shaping.squeeze(slice_axis(x, axis, part), axis)
        ramp = ranges.linspace(end, edge, width, endpoint=False, dtype=dtype_of(x), axis=axis)
        return shaping.flip(ramp, axis) if is_after else ramp
    count = shape[axis] if length is None else ew.minimum(length, shape[axis])
    part = slice(shape[axis] - count, None) if is_after else slice(None, count)
    number = _STATISTICS[mode](slice_axis(x, axis, part), axis=axis, keepdims=True)
    if dtype_of(x).kind in "iu":
        number = ew.rint(number)
    return shaping.broadcast_to(cast(number, dtype_of(x)), sizes)
