"""Arrays made from bounds, sizes and fill values, which may be traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import as_element, broadcast, cast, is_weak, result_dtype
from wend.ir.dtypes import INT64
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.operands import all_staged, check_nonnegative, dtype_of, require, staged
from wend.numpy.public import implements
from wend.ops import creating as ops


@implements(np.arange)
def arange(
    start: Any, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Any:
    """Return evenly spaced values within a given interval; see `numpy.arange`.

    With traced bounds, the length of the result is known at run time only.
    """
    del device
    if stop is None:
        start, stop = 0, start
    start, stop, step = all_staged((start, stop, step))
    if dtype is None:
        # NumPy promotes with int64, the dtype of the default step.
        dtype = np.result_type(np.int64, *(dtype_of(x) for x in (start, stop, step)))
    dtype = np.dtype(dtype)
    # NumPy divides by it: Python's numbers raise, its own give infinity.
    error = ZeroDivisionError if all(map(is_weak, (start, stop, step))) else ValueError
    step = require(step, ew.equal(step, 0), error, "the step of arange is 0")
    if all(dtype_of(x).kind in "biu" for x in (start, stop, step)):
        # Exact, also where NumPy counts in a narrow dtype, which wraps
        first = start
        start, stop = cast(start, INT64), cast(stop, INT64)
        step = step if isinstance(step, int) else cast(step, INT64)
        if isinstance(step, int):  # keeps a symbolic size the same symbol
            distance = stop - start if step > 0 else start - stop
            length = ew.floor_divide(distance + (abs(step) - 1), abs(step))
        else:
            length = -ew.floor_divide(start - stop, step)
        if dtype != INT64:
            return _spaced(first, step, length, dtype)
        return start + apply(ops.iota, length, dtype=INT64, length=None) * step
    count = ew.ceil(ew.divide(stop - start, step))
    count = require(count, ew.isnan(count), ValueError, "arange: cannot compute length")
    count = require(count, count >= 2.0**63, ValueError, "Maximum allowed size exceeded")
    return _spaced(start, step, cast(count, INT64), dtype)


def _spaced(start: Any, step: Any, length: Any, dtype: np.dtype) -> Any:
    """Return numbers whose first two are put into an array, from which NumPy goes on."""
    first = as_element(_if(length > 0, start), dtype)
    second = as_element(_if(length > 1, start + step), dtype)
    index = apply(ops.iota, length, dtype=INT64, length=None)
    if dtype.kind == "b":
        text = "arange() is only supported for booleans when the result has at most length 2."
        return ew.where(require(index, length > 2, TypeError, text) == 0, first, second)
    values = first + cast(index, dtype) * (second - first)
    if dtype.itemsize < 8 and dtype.kind == "f":  # which may have made infinities of them
        values = ew.where(index < 2, ew.where(index == 0, first, second), values)
    return values


def _if(is_element: Any, x: Any) -> Any:
    """Return a number that has to fit the dtype only if it is an element."""
    if not is_weak(x):
        return x
    if not isinstance(is_element, Staged):
        return x if is_element else 0
    return ew.where(is_element, x, 0).as_weak()


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
    """Return evenly spaced numbers over a specified interval; see `numpy.linspace`.

    The bounds and the number of samples may be traced.
    """
    del device
    if isinstance(num, Staged):
        return _linspace_dynamic(start, stop, num, endpoint, retstep, dtype, axis)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    start, stop = all_staged((start, stop))
    compute_dtype = result_dtype(start, stop, float(num))
    result_type = compute_dtype if dtype is None else np.dtype(dtype)
    start, stop = broadcast(cast(start, compute_dtype), cast(stop, compute_dtype))
    intervals = num - 1 if endpoint else num
    step = (stop - start) / intervals if intervals > 0 else (stop - start) * np.nan
    rank = shaping.rank_of(start)
    index = np.arange(num, dtype=compute_dtype).reshape(-1, *(1,) * rank)
    # If the step underflows, divide the index first.
    is_underflow = ew.equal(step, 0)
    points = ew.where(is_underflow, index / max(intervals, 1) * (stop - start), index * step)
    points = (points if intervals > 0 else index * (stop - start)) + start
    if endpoint and num > 1:
        last = shaping.expand_dims(stop, 0)
        points = shaping.concatenate([points[:-1], last])
    if axis != 0:
        points = shaping.moveaxis(points, 0, normalize_axis_index(axis, rank + 1))
    if result_type.kind in "iu":
        points = ew.floor(points)
    points = cast(points, result_type)
    return (points, step) if retstep else points


def _linspace_dynamic(
    start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    """Return `linspace` for a traced number of samples."""
    start, stop = all_staged((start, stop))
    if shaping.rank_of(start) or shaping.rank_of(stop) or axis not in (0, -1):
        raise UnsupportedError(
            explain(
                f"np.linspace{at(user_source())} of a traced number of points goes between two "
                "numbers.",
                cure="compute it: start + (stop - start) * np.linspace(0, 1, num)[:, None].",
            )
        )
    compute_dtype = result_dtype(start, stop, 1.0)
    result_type = compute_dtype if dtype is None else np.dtype(dtype)
    start, stop = cast(start, compute_dtype), cast(stop, compute_dtype)
    num = check_nonnegative(num, "Number of samples, {}, must be non-negative.")
    intervals = cast(num - 1 if endpoint else num, compute_dtype)
    index = arange(num)
    float_index = cast(index, compute_dtype)
    step = (stop - start) / ew.where(intervals > 0, intervals, np.nan)
    is_degenerate = ew.logical_or(ew.equal(step, 0), ew.logical_not(intervals > 0))
    by_fraction = float_index / ew.maximum(intervals, 1) * (stop - start)
    points = ew.where(is_degenerate, by_fraction, float_index * step) + start
    if endpoint:
        is_last = ew.logical_and(ew.equal(index, num - 1), num > 1)
        points = ew.where(is_last, stop, points)
    if result_type.kind in "iu":
        points = ew.floor(points)
    points = cast(points, result_type)
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
    """Return numbers spaced evenly on a log scale; see `numpy.logspace`.

    The bounds may be traced.
    """
    points = linspace(staged(start), stop, num, endpoint, axis=axis)
    powers = ew.power(base, points)
    return powers if dtype is None else cast(powers, np.dtype(dtype))


@implements(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Return numbers spaced evenly on a log scale (a geometric progression); see `numpy.geomspace`.

    The bounds may be traced.
    """
    start, stop = all_staged((start, stop))
    computed = np.result_type(result_dtype(start, stop, float(num)), np.dtype(dtype))
    start, stop = broadcast(*(cast(_check_nonzero(x), computed) for x in (start, stop)))
    # As in NumPy, `start` is turned to the positive axis, and the results are turned back.
    sign = ew.sign(start)
    first, last = start / sign, stop / sign
    points = logspace(ew.log10(first), ew.log10(last), num, endpoint)
    ends = [shaping.expand_dims(x, 0) for x in (first, last)]
    if num > 1 and endpoint:
        points = shaping.concatenate([ends[0], points[1:-1], ends[1]])
    elif num > 0:
        points = shaping.concatenate([ends[0], points[1:]])
    points = points * sign
    points = points if axis == 0 else shaping.moveaxis(points, 0, axis)
    return cast(points, computed if dtype is None else np.dtype(dtype))


def _check_nonzero(x: Any) -> Any:
    """Return the operand, checked at run time."""
    has_zero = reducing.any(ew.equal(x, 0))
    return require(x, has_zero, ValueError, "Geometric sequence cannot include zero")


# Constant arrays
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None
) -> Any:
    """Return a new array of given shape, filled with `fill_value`; see `numpy.full`.

    The sizes and the value may be traced.
    """
    if not any_staged([shape, fill_value]):
        return np.full(shape, fill_value, dtype, order, device=device)
    number = staged(fill_value)
    number = cast(number, dtype_of(number) if dtype is None else np.dtype(dtype))
    return shaping.as_array_of(shaping.new_full(staged(number), shape))


def _constant_array(original: Callable[..., Any], number: int) -> Callable[..., Any]:
    def function(shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None) -> Any:
        if not any_staged([shape]):
            return original(shape, dtype, order, device=device)
        return shaping.new_full(staged(np.asarray(number, dtype)), shape)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = (
        f"Return a new array, as `numpy.{original.__name__}`; the sizes may be traced."
    )
    return function


zeros = _constant_array(np.zeros, 0)
ones = _constant_array(np.ones, 1)
empty = _constant_array(np.empty, 0)


@implements(np.eye)
def eye(
    n_rows: Any, n_cols: Any = None, k: Any = 0, dtype: Any = float, *, device: Any = None
) -> Any:
    """Return a 2-d array with ones on the diagonal and zeros elsewhere; see `numpy.eye`.

    The sizes may be traced.
    """
    del device
    message = "negative dimensions are not allowed"
    n_rows = check_nonnegative(n_rows, message)
    n_cols = n_rows if n_cols is None else check_nonnegative(n_cols, message)
    k = staged(k)
    if dtype_of(k).kind == "f":  # of a diagonal outside, NumPy does not look at it
        text = "'float' object cannot be interpreted as an integer"
        k = require(k, ew.logical_not(k >= n_cols), TypeError, text)
    rows, columns = arange(n_rows), arange(n_cols)
    is_on_diagonal = ew.equal(shaping.expand_dims(rows, 1) + k, columns)
    return cast(is_on_diagonal, np.dtype(dtype))


@implements(np.identity)
def identity(n: Any, dtype: Any = float) -> Any:
    """Return the identity array; see `numpy.identity`.

    The size may be traced.
    """
    return eye(n, dtype=dtype)


@implements(np.tri)
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float) -> Any:  # noqa: N803
    """Return an array with ones at and below the given diagonal; see `numpy.tri`.

    The sizes may be traced.
    """
    rows, columns = arange(N), arange(N if M is None else M)
    is_in_triangle = ew.greater_equal(shaping.expand_dims(rows, 1) + k, columns)
    return cast(is_in_triangle, np.dtype(dtype))


# Grids
@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return coordinate matrices from coordinate vectors; see `numpy.meshgrid`."""
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
