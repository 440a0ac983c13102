"""Functions on sorted arrays and bins: search, count, histogram, interpolate."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.refusals import refusal
from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import FLOAT64, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.calculus import diff
from wend.numpy.operands import all_staged, dtype_of, known_size, promote_dtypes, staged
from wend.numpy.public import implements
from wend.numpy.ranges import linspace, zeros
from wend.ops import indexing as indexing_ops
from wend.ops import searching as ops


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find indices where elements must be inserted to keep the order; see `numpy.searchsorted`."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a, v = promote_dtypes(a, v)
    if sorter is not None:
        a = indexing.take(a, sorter)
    return apply(ops.searchsorted, a, v, side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the indices of the bins to which each value belongs; see `numpy.digitize`.

    Traced bins must be increasing. NumPy also takes decreasing ones, but whether they decrease is
    known at run time only.
    """
    side = "left" if right else "right"
    if not any_staged([bins]) and len(bins) > 1 and bins[0] > bins[-1]:
        other = "right" if right else "left"
        return len(bins) - searchsorted(np.asarray(bins)[::-1], x, other)
    return searchsorted(bins, x, side)


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """Count the number of occurrences of each value in non-negative integers; see `numpy.bincount`.

    Args:
        x: non-negative integers.
        weights: the amount that each element adds; None: 1.
        minlength: the minimum length of the result.
        length: the length of the result, if it must be static; a number beyond it is an error.
    """
    x = cast(staged(x), INT64)
    if length is None and tensor_type(x).dims[0] == 0:
        return np.zeros(minlength, np.int64)  # as in NumPy, whatever the weights
    count = ew.maximum(reducing.max(x) + 1, minlength) if length is None else length
    if weights is None:
        start, amounts = zeros(count, np.int64), ew.where(ew.equal(x, x), 1, 1)
    else:
        start, amounts = zeros(count, np.float64), cast(staged(weights), FLOAT64)
    return apply(indexing_ops.scatter_add, staged(start), staged(amounts), x)


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Any:
    """Compute the histogram of a dataset; see `numpy.histogram`.

    For traced arrays, `bins` is a number of bins or an array of increasing edges.
    """
    a = shaping.ravel(staged(a))
    if isinstance(bins, str):
        raise refusal(
            NotImplementedError("histogram of a traced array takes a number of bins, or edges")
        )
    is_number = not np.ndim(bins)
    edges = _bin_edges(a, bins, range) if is_number else staged(bins)
    count = bins if is_number else known_size(edges, 0, "histogram") - 1
    bin_index = ew.where(ew.equal(a, edges[-1]), count, searchsorted(edges, a, "right"))
    weights = None if weights is None else shaping.ravel(staged(weights))
    counts = bincount(ew.clip(bin_index, 0, count + 1), weights, length=count + 2)[1:-1]
    counts = counts if weights is None else cast(counts, dtype_of(weights))
    if density:
        counts = counts / diff(edges) / reducing.sum(counts)
    return counts, edges


def _bin_edges(a: Any, count: Any, limits: Any) -> Any:
    low, high = (reducing.min(a), reducing.max(a)) if limits is None else limits
    is_constant = ew.equal(low, high)
    return linspace(
        ew.where(is_constant, low - 0.5, low), ew.where(is_constant, high + 0.5, high), count + 1
    )


@implements(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Any:
    """Return linear interpolation for monotonically increasing points; see `numpy.interp`.

    It has derivatives with respect to `x`, `xp` and `fp`.
    """
    x, xp, fp = all_staged((x, xp, fp))
    value_dtype = np.complex128 if dtype_of(fp).kind == "c" else np.float64
    x, xp, fp = cast(x, FLOAT64), cast(xp, FLOAT64), cast(fp, np.dtype(value_dtype))
    if period is not None:
        x, xp, fp = _extend_period(x, xp, fp, abs(period))
        left = right = None
    count = shaping.shape(xp)[0]
    low = ew.clip(searchsorted(xp, x, "right") - 1, 0, ew.maximum(count - 2, 0))
    high = ew.minimum(low + 1, count - 1)
    x0, x1, f0, f1 = xp[low], xp[high], fp[low], fp[high]
    gap = x1 - x0
    slope = (f1 - f0) / ew.where(ew.equal(gap, 0), 1, gap)
    values = slope * (x - x0) + f0
    values = ew.where(ew.equal(x, xp[-1]), fp[-1], values)
    values = ew.where(x > xp[-1], fp[-1] if right is None else right, values)
    return ew.where(x < xp[0], fp[0] if left is None else left, values)


def _extend_period(x: Any, xp: Any, fp: Any, period: float) -> tuple[Any, Any, Any]:
    x, xp = ew.remainder(x, period), ew.remainder(xp, period)
    order = reducing.argsort(xp)
    xp, fp = xp[order], fp[order]
    wide = shaping.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, wide, shaping.concatenate([fp[-1:], fp, fp[:1]])
