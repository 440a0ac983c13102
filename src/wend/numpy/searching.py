"""Functions on sorted arrays and bins: search, count, histogram, interpolate."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import cast, result_dtype, tensor_type
from wend.ir.dtypes import BOOL, FLOAT64, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.calculus import diff
from wend.numpy.operands import (
    all_staged,
    check_nonnegative,
    dtype_of,
    operand,
    promote_dtypes,
    require,
    staged,
    strong,
)
from wend.numpy.public import implements
from wend.numpy.ranges import linspace, zeros
from wend.numpy.shaping import known_size
from wend.numpy.slices import as_wide
from wend.ops import elementwise
from wend.ops import indexing as indexing_ops
from wend.ops import searching as ops
from wend.ops import shaping as shaping_ops


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find indices where elements must be inserted to keep the order; see `numpy.searchsorted`."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a, v = promote_dtypes(strong(a), strong(v))
    if sorter is not None:
        a = indexing.take(a, sorter)
    return apply(ops.searchsorted, a, v, side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the indices of the bins to which each value belongs; see `numpy.digitize`.

    Of traced bins only the run knows whether they decrease.
    """
    side = "left" if right else "right"
    if dtype_of(operand(x)).kind == "c":
        raise TypeError("x may not be complex")
    bins = operand(bins)
    require_vector(bins)
    steps = bins[1:], bins[:-1]
    rises, falls, differ = ew.greater(*steps), ew.less(*steps), ew.not_equal(*steps)
    # The first step between bins that differ decides, which one to or from NaN may be.
    is_first = ew.logical_and(differ, ew.equal(reducing.cumsum(differ), 1))
    decreases = reducing.any(ew.greater(is_first, rises))
    is_unsorted = ew.where(decreases, reducing.any(rises), reducing.any(falls))
    text = "bins must be monotonically increasing or decreasing"
    bins = require(bins, is_unsorted, ValueError, text)
    if not isinstance(decreases, Staged) and not decreases:
        return searchsorted(bins, x, side)
    positions = searchsorted(ew.where(decreases, bins[::-1], bins), x, side)
    return ew.where(decreases, shaping.shape(bins)[0] - positions, positions)


def have_other_shapes(a: Any, b: Any) -> Any:
    """Return whether the shapes of two arrays differ: a traced bool where only the run knows."""
    types = tensor_type(a), tensor_type(b)
    if types[0].shape == types[1].shape:
        return False
    if all(type.is_static for type in types) or types[0].rank != types[1].rank:
        return True
    sizes = (apply(shaping_ops.shape_of, staged(x)) for x in (a, b))
    return reducing.any(ew.not_equal(*sizes))


def require_vector(x: Any) -> None:
    """Raise NumPy's error unless an array has one axis."""
    if shaping.rank_of(x) != 1:
        is_number = not shaping.rank_of(x)
        raise ValueError(f"object {'of too small depth' if is_number else 'too deep'} for array")


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """Count the number of occurrences of each value in non-negative integers; see `numpy.bincount`.

    Args:
        x: non-negative integers.
        weights: the amount that each element adds; None: 1.
        minlength: the minimum length of the result.
        length: the length of the result, if it must be static; a number beyond it is an error.
    """
    x = staged(x)
    require_vector(x)
    x = cast(x, INT64) if dtype_of(x).kind == "u" else shaping.cast_as(x, INT64, "safe")
    if tensor_type(x).dims[0] == 0:
        check_nonnegative(minlength, "'minlength' must not be negative")
        return np.zeros(minlength if length is None else length, np.int64)  # whatever the weights
    text = "'list' argument must have no negative elements"
    if length is None:
        is_negative = reducing.any(ew.less(x, 0))  # one loop finds both
        highest = require(_highest(x), is_negative, ValueError, text)
    else:
        x = check_nonnegative(x, text)
    minlength = minlength if isinstance(minlength, Staged) else operator.index(minlength)
    minlength = check_nonnegative(minlength, "'minlength' must not be negative")
    if weights is not None:
        weights = shaping.cast_as(staged(weights), FLOAT64, "safe")
        differ = have_other_shapes(weights, x)
        text = "The weights and list don't have the same length."
        weights = require(weights, differ, ValueError, text)
    return _count(x, weights, ew.maximum(highest + 1, minlength) if length is None else length)


def _highest(x: Any) -> Any:
    """Return the highest of some non-negative numbers; -1 if there are none."""
    if isinstance(tensor_type(x).dims[0], int):
        return reducing.max(x)
    return reducing.max(apply(shaping_ops.concat, x, staged(np.array([-1])), axis=0))


def _count(x: Any, weights: Any, length: Any) -> Any:
    """Return how often each of so many numbers is in `x`, or the sums of its weights."""
    dtype = INT64 if weights is None else dtype_of(weights)
    amounts = shaping.broadcast_to(np.int64(1), shaping.shape(x)) if weights is None else weights
    return apply(indexing_ops.scatter_add, staged(zeros(length, dtype)), staged(amounts), x)


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Any:
    """Compute the histogram of a dataset; see `numpy.histogram`.

    For traced arrays, `bins` is a number of bins or an array of increasing edges.
    """
    a = staged(a)
    if weights is not None:
        weights = staged(weights)
        differ = have_other_shapes(weights, a)
        weights = require(weights, differ, ValueError, "weights should have the same shape as a.")
        weights = shaping.ravel(weights)
    a = shaping.ravel(a)
    if isinstance(bins, str):
        raise UnsupportedError(
            explain(
                f"np.histogram{at(user_source())} of a traced array takes a number of bins, or "
                "edges.",
                cure="compute the edges before the call: np.histogram_bin_edges(x, bins).",
            )
        )
    if not any_staged([bins]):
        np.histogram_bin_edges(np.zeros(1), bins, (0, 1))  # NumPy's errors
    is_number = not np.ndim(bins)
    if is_number:
        text = "`bins` must be positive, when an integer"
        bins = require(as_wide(bins), ew.less(bins, 1), ValueError, text)
    if is_number:
        count, edges = bins, _bin_edges(a, bins, range)
    else:
        edges = _increasing(staged(bins), "`bins` must increase monotonically, when an array")
        count = known_size(edges, 0, "histogram") - 1
    is_even = is_number and dtype_of(a).kind != "c"
    bin_index = (_even_bin_index if is_even else _bin_index)(a, edges, count)
    amounts = None if weights is None else cast(weights, np.result_type(dtype_of(weights), FLOAT64))
    counts = _count(bin_index, amounts, count + 2)[1:-1]
    counts = counts if weights is None else cast(counts, dtype_of(weights))
    if density:
        counts = counts / diff(edges) / reducing.sum(counts)
    return counts, edges


@implements(np.histogram2d)
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
) -> Any:
    """Compute the bi-dimensional histogram of two datasets; see `numpy.histogram2d`.

    For traced arrays, `bins` has for each a number of bins or an array of increasing edges.
    """
    if np.shape(x)[:1] != np.shape(y)[:1]:
        raise ValueError("x and y must have the same length.")
    count = len(bins) if isinstance(bins, (list, tuple)) or np.ndim(bins) else 0
    if count == 1:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    bins = bins if count == 2 else (bins, bins)
    x, y = promote_dtypes(strong(staged(x)), strong(staged(y)))
    limits = (None, None) if range is None else range
    edges, places = [], []
    for k, (a, of_axis, limit) in enumerate(zip((x, y), bins, limits, strict=True)):
        if np.ndim(of_axis) == 0 and of_axis < 1:
            raise ValueError(f"`bins[{k}]` must be positive, when an integer")
        if np.ndim(of_axis):
            text = f"`bins[{k}]` must be monotonically increasing, when an array"
            along = _increasing(staged(of_axis), text)
        else:
            along = _bin_edges(a if limit is None else cast(a, FLOAT64), of_axis, limit)
        edges.append(along)
        places.append(_bin_index(a, along, known_size(along, 0, "histogram2d") - 1))
    columns, rows = (known_size(along, 0, "histogram2d") + 1 for along in edges)
    amounts = None if weights is None else cast(staged(weights), FLOAT64)
    counts = _count(places[0] * rows + places[1], amounts, columns * rows)
    counts = cast(shaping.reshape(counts, (columns, rows))[1:-1, 1:-1], FLOAT64)
    if density:
        areas = diff(edges[0])[:, None] * diff(edges[1])
        counts = counts / areas / reducing.sum(counts)
    return counts, *edges


def _increasing(edges: Any, text: str) -> Any:
    falls = reducing.any(ew.less(edges[1:], edges[:-1]))
    return require(edges, falls, ValueError, text)


def _bin_index(a: Any, edges: Any, count: Any) -> Any:
    """Return the bins of numbers, from 1 on: the last edge is in the last bin."""
    return ew.where(ew.equal(a, edges[-1]), count, searchsorted(edges, a, "right"))


def _even_bin_index(a: Any, edges: Any, count: Any) -> Any:
    """Return the bins of numbers, from 1 on, as NumPy finds them among edges of equal distances.

    The quotient may miss the bin of a number at an edge by one. Bin 0 has the numbers outside.
    """
    edges = staged(edges)
    low, high = edges[0], edges[-1]
    is_inside = ew.logical_and(ew.greater_equal(a, low), ew.less_equal(a, high))
    x = ew.where(is_inside, cast(a, dtype_of(edges)), low)
    place = cast((x - low) / (high - low) * count, INT64)
    place = ew.clip(place, 0, count - 1)
    lower, upper = (
        apply(indexing_ops.gather, edges, k, in_bounds=True) for k in (place, place + 1)
    )
    is_before = ew.less(x, lower)
    is_beyond = ew.logical_and(ew.greater_equal(x, upper), ew.less(place, count - 1))
    return ew.where(is_inside, place + 1 - is_before + is_beyond, 0)


def _bin_edges(a: Any, count: Any, limits: Any) -> Any:
    low, high = _limits(a) if limits is None else limits
    origin = "autodetected" if limits is None else "supplied"
    are_finite = ew.logical_and(ew.isfinite(low), ew.isfinite(high))
    text = f"{origin} range of the bins is not finite"
    low = require(low, ew.logical_not(are_finite), ValueError, text)
    text = "max must be larger than min in range parameter."
    low = require(low, ew.greater(low, high), ValueError, text)
    is_constant = ew.equal(low, high)
    dtype = result_dtype(a, low, high)
    edges = linspace(
        ew.where(is_constant, low - 0.5, low),
        ew.where(is_constant, high + 0.5, high),
        count + 1,
        dtype=dtype if dtype.kind in "fc" else FLOAT64,
    )
    are_empty = reducing.any(ew.greater_equal(edges[:-1], edges[1:]))
    text = f"Too many bins for data range. Cannot create {count} finite-sized bins."
    return require(edges, are_empty, ValueError, text)


def _limits(a: Any) -> tuple[Any, Any]:
    """Return the least and the greatest number of a vector; 0 and 1 if it has none."""
    (size,) = shaping.shape(a)
    if isinstance(size, int):
        return (reducing.min(a), reducing.max(a)) if size else (0, 1)
    kind = dtype_of(a)
    ends: tuple[Any, Any] = (-np.inf, np.inf)
    if kind.kind not in "fc":
        ends = (False, True) if kind == BOOL else (np.iinfo(kind).min, np.iinfo(kind).max)
    low, high = (
        function(apply(shaping_ops.concat, a, staged(np.array([end], kind)), axis=0))
        for function, end in ((reducing.min, ends[1]), (reducing.max, ends[0]))
    )
    is_empty = ew.equal(size, 0)
    return ew.where(is_empty, 0, low), ew.where(is_empty, 1, high)


@implements(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Any:
    """Return linear interpolation for monotonically increasing points; see `numpy.interp`.

    It has derivatives with respect to `x`, `xp` and `fp`.
    """
    x, xp, fp = all_staged((x, xp, fp))
    for points in (x, xp):
        if (dtype := dtype_of(points)).kind == "c":
            raise TypeError(
                f"Cannot cast array data from {dtype!r} to {FLOAT64!r} according to the rule 'safe'"
            )
    differ = have_other_shapes(xp, fp)
    fp = require(fp, differ, ValueError, "fp and xp are not of the same length.")
    if tensor_type(xp).dims == (0,):
        raise ValueError("array of sample points is empty")
    if period is not None:
        x = require(x, period == 0, ValueError, "period must be a non-zero value")
    value_dtype = np.complex128 if dtype_of(fp).kind == "c" else np.float64
    x, xp, fp = cast(x, FLOAT64), cast(xp, FLOAT64), cast(fp, np.dtype(value_dtype))
    if period is not None:
        x, xp, fp = _extend_period(x, xp, fp, abs(period))
        left = right = None
    count = shaping.shape(xp)[0]
    low = ew.clip(searchsorted(xp, x, "right") - 1, 0, ew.maximum(count - 2, 0))
    high = ew.minimum(low + 1, count - 1)
    ends = x, xp[low], xp[high]
    if dtype_of(fp).kind == "c":
        parts = (_interpolate(*ends, part(fp)[low], part(fp)[high]) for part in (ew.real, ew.imag))
        values = apply(elementwise.complex, *parts)
    else:
        values = _interpolate(*ends, fp[low], fp[high])
    values = ew.where(ew.equal(x, xp[-1]), fp[-1], values)
    values = ew.where(x > xp[-1], fp[-1] if right is None else right, values)
    is_nan = ew.logical_and(ew.isnan(x), ew.not_equal(count, 1))  # one value is taken for NaN, too
    values = ew.where(is_nan, x, values)
    return ew.where(x < xp[0], fp[0] if left is None else left, values)


def _interpolate(x: Any, x0: Any, x1: Any, f0: Any, f1: Any) -> Any:
    gap = x1 - x0
    slope = (f1 - f0) / ew.where(ew.equal(gap, 0), 1, gap)
    values = slope * (x - x0) + f0
    # Beside an infinite value, as in NumPy: from the other side, or that of a knot
    values = ew.where(ew.isnan(values), slope * (x - x1) + f1, values)
    is_knot = ew.logical_or(ew.equal(x, x0), ew.equal(f0, f1))
    return ew.where(ew.logical_and(ew.isnan(values), is_knot), f0, values)


def _extend_period(x: Any, xp: Any, fp: Any, period: float) -> tuple[Any, Any, Any]:
    x, xp = ew.remainder(x, period), ew.remainder(xp, period)
    order = reducing.argsort(xp)
    xp, fp = xp[order], fp[order]
    wide = shaping.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, wide, shaping.concatenate([fp[-1:], fp, fp[:1]])
