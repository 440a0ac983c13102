"""Arrays made from bounds, sizes and numbers, which may be traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import broadcast, cast, result_dtype
from wend.ir.dtypes import INT64
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.numpy.operands import all_staged, dtype_of, nonnegative, staged
from wend.numpy.public import implements
from wend.ops import creating as ops


@implements(np.arange)
def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Any:
    """`numpy.arange`; of traced bounds the length is only known when the function runs."""
    del device
    if stop is None:
        start, stop = 0, start
    start, stop, step = all_staged((start, stop, step))
    if dtype is None:
        # As NumPy: with an int, which the step is where none is given.
        dtype = np.result_type(np.int64, *(dtype_of(x) for x in (start, stop, step)))
    dtype = np.dtype(dtype)
    if isinstance(step, int) and step and all(dtype_of(x).kind in "iu" for x in (start, stop)):
        # Exact, and the size of an array stays that of this one.
        distance = cast(stop, INT64) - cast(start, INT64) if step > 0 else cast(start, INT64) - stop
        length = ew.floor_divide(distance + (abs(step) - 1), abs(step))
    else:
        length = cast(ew.ceil(ew.divide(stop - start, step)), INT64)
    index = cast(apply(ops.iota, length, dtype=INT64, length=None), dtype)
    first = cast(start, dtype)
    return first + index * (cast(start + step, dtype) - first)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`numpy.linspace`, between traced bounds and of a traced number as well."""
    del device
    if isinstance(num, Staged):
        return _linspace_of_traced(start, stop, num, endpoint, retstep, dtype, axis)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = all_staged((start, stop))
    found_dtype = result_dtype(start, stop, float(num))
    given = found_dtype if dtype is None else np.dtype(dtype)
    start, stop = broadcast(cast(start, found_dtype), cast(stop, found_dtype))
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts > 0 else (stop - start) * np.nan
    rank = shaping.rank_of(start)
    index = np.arange(num, dtype=found_dtype).reshape(-1, *(1,) * rank)
    # Where the step underflows, divide last.
    flat = ew.equal(step, 0)
    points = ew.where(flat, index / max(parts, 1) * (stop - start), index * step)
    points = (points if parts > 0 else index * (stop - start)) + start
    if endpoint and num > 1:
        last = shaping.expand_dims(stop, 0)
        points = shaping.concatenate([points[:-1], last])
    if axis != 0:
        points = shaping.moveaxis(points, 0, normalize_axis_index(axis, rank + 1))
    if given.kind in "iu":
        points = ew.floor(points)
    points = cast(points, given)
    return (points, step) if retstep else points


def _linspace_of_traced(
    start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    """`linspace` whose length is only known when the function runs."""
    start, stop = all_staged((start, stop))
    if shaping.rank_of(start) or shaping.rank_of(stop) or axis not in (0, -1):
        raise NotImplementedError("linspace of a traced number of points goes between two numbers")
    found_dtype = result_dtype(start, stop, 1.0)
    given = found_dtype if dtype is None else np.dtype(dtype)
    start, stop = cast(start, found_dtype), cast(stop, found_dtype)
    num = nonnegative(num, "Number of samples, {}, must be non-negative.")
    parts = cast(num - 1 if endpoint else num, found_dtype)
    index = arange(num)
    place = cast(index, found_dtype)
    step = (stop - start) / ew.where(parts > 0, parts, np.nan)
    flat = ew.logical_or(ew.equal(step, 0), ew.logical_not(parts > 0))
    along = place / ew.maximum(parts, 1) * (stop - start)
    points = ew.where(flat, along, place * step) + start
    if endpoint:
        is_last = ew.logical_and(ew.equal(index, num - 1), num > 1)
        points = ew.where(is_last, stop, points)
    if given.kind in "iu":
        points = ew.floor(points)
    points = cast(points, given)
    return (points, step) if retstep else points


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`numpy.logspace`, between traced bounds as well."""
    points = linspace(staged(start), stop, num, endpoint, axis=axis)
    found = ew.power(base, points)
    return found if dtype is None else cast(found, np.dtype(dtype))


@implements(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """`numpy.geomspace`, between traced real bounds of one sign as well."""
    start, stop = broadcast(*all_staged((start, stop)))
    sign = ew.sign(start)
    logs = ew.log10(ew.absolute(start)), ew.log10(ew.absolute(stop))
    points = logspace(*logs, num, endpoint, axis=axis)
    if axis == 0:
        points = points * sign
    else:
        points = points * shaping.expand_dims(sign, axis)
    return points if dtype is None else cast(points, np.dtype(dtype))


# Arrays of one number
def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """`numpy.full`, of traced sizes and a traced number as well."""
    if not any_staged([shape, fill_value]):
        return np.full(shape, fill_value, dtype, device=device)
    number = staged(fill_value)
    number = cast(number, dtype_of(number) if dtype is None else np.dtype(dtype))
    return shaping.filled(staged(number), shape)


def _filled(original: Callable[..., Any], number: int) -> Callable[..., Any]:
    def function(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
        if not any_staged([shape]):
            return original(shape, dtype, device=device)
        return shaping.filled(staged(np.asarray(number, dtype)), shape)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, of traced sizes as well."
    return function


zeros = _filled(np.zeros, 0)
ones = _filled(np.ones, 1)
empty = _filled(np.empty, 0)


@implements(np.eye)
def eye(
    n_rows: Any, n_cols: Any = None, k: Any = 0, dtype: Any = float, *, device: Any = None
) -> Any:
    """`numpy.eye`, of traced sizes as well."""
    del device
    message = "negative dimensions are not allowed"
    n_rows = nonnegative(n_rows, message)
    n_cols = n_rows if n_cols is None else nonnegative(n_cols, message)
    rows, columns = arange(n_rows), arange(n_cols)
    hit = ew.equal(shaping.expand_dims(rows, 1) + k, columns)
    return cast(hit, np.dtype(dtype))


@implements(np.identity)
def identity(n: Any, dtype: Any = float) -> Any:
    """`numpy.identity`, of a traced size as well."""
    return eye(n, dtype=dtype)


@implements(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:  # noqa: N803
    """`numpy.tri`, of traced sizes as well."""
    rows, columns = arange(N), arange(N if M is None else M)
    hit = ew.greater_equal(shaping.expand_dims(rows, 1) + k, columns)
    return cast(hit, np.dtype(dtype))


# Grids
@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """`numpy.meshgrid`, for traced arrays as well."""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    rank = len(xi)
    grids = []
    for k, x in enumerate(all_staged(xi)):
        flat = shaping.reshape(x, (-1,))
        grids.append(shaping.expand_dims(flat, tuple(j for j in range(rank) if j != k)))
    if indexing == "xy" and rank > 1:
        grids = [shaping.swapaxes(grid, 0, 1) for grid in grids]
    grids = grids if sparse else broadcast(*grids)
    return tuple(grid.copy() for grid in grids) if copy else tuple(grids)
