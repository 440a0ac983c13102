"""Places in sorted arrays: searches, bins, counts, interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import FLOAT64, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.calculus import diff
from wend.numpy.operands import alike, all_staged, dtype_of, known_size, staged
from wend.numpy.public import implements
from wend.numpy.ranges import linspace, zeros
from wend.ops import indexing as indexing_ops
from wend.ops import searching as ops


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """`numpy.searchsorted`, for traced arrays as well."""
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    a, v = alike(a, v)
    if sorter is not None:
        a = indexing.take(a, sorter)
    return apply(ops.searchsorted, a, v, side=side)


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """`numpy.digitize`, for traced arrays as well.

    Bins that are traced must increase; NumPy takes decreasing ones, which only the run could tell.
    """
    side = "left" if right else "right"
    if not any_staged([bins]) and len(bins) > 1 and bins[0] > bins[-1]:
        other = "right" if right else "left"
        return len(bins) - searchsorted(np.asarray(bins)[::-1], x, other)
    return searchsorted(bins, x, side)


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """`numpy.bincount`, for traced arrays as well.

    Args:
        x: non-negative integers.
        weights: what each adds; None: 1.
        minlength: the least length.
        length: the length, if it is to be known before the run; a number beyond it is an error.
    """
    x = cast(staged(x), INT64)
    if length is None and tensor_type(x).dims[0] == 0:
        return np.zeros(minlength, np.int64)  # as NumPy, whatever the weights
    count = ew.maximum(reducing.max(x) + 1, minlength) if length is None else length
    if weights is None:
        start, given = zeros(count, np.int64), ew.where(ew.equal(x, x), 1, 1)
    else:
        start, given = zeros(count, np.float64), cast(staged(weights), FLOAT64)
    return apply(indexing_ops.scatter_add, staged(start), staged(given), x)


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> Any:
    """`numpy.histogram` of a number of bins or of increasing edges, for traced arrays as well."""
    a = shaping.ravel(staged(a))
    if isinstance(bins, str):
        raise NotImplementedError("histogram of a traced array takes a number of bins, or edges")
    is_number = not np.ndim(bins)
    edges = _edges(a, bins, range) if is_number else staged(bins)
    count = bins if is_number else known_size(edges, 0, "histogram") - 1
    place = ew.where(ew.equal(a, edges[-1]), count, searchsorted(edges, a, "right"))
    weights = None if weights is None else shaping.ravel(staged(weights))
    found = bincount(ew.clip(place, 0, count + 1), weights, length=count + 2)[1:-1]
    found = found if weights is None else cast(found, dtype_of(weights))
    if density:
        found = found / diff(edges) / reducing.sum(found)
    return found, edges


def _edges(a: Any, count: Any, limits: Any) -> Any:
    low, high = (reducing.min(a), reducing.max(a)) if limits is None else limits
    flat = ew.equal(low, high)
    return linspace(ew.where(flat, low - 0.5, low), ew.where(flat, high + 0.5, high), count + 1)


@implements(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Any:
    """`numpy.interp`, for traced arrays as well, with derivatives in `x`, `xp` and `fp`."""
    x, xp, fp = all_staged((x, xp, fp))
    numbers = np.complex128 if dtype_of(fp).kind == "c" else np.float64
    x, xp, fp = cast(x, FLOAT64), cast(xp, FLOAT64), cast(fp, np.dtype(numbers))
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    count = shaping.shape(xp)[0]
    low = ew.clip(searchsorted(xp, x, "right") - 1, 0, ew.maximum(count - 2, 0))
    high = ew.minimum(low + 1, count - 1)
    x0, x1, f0, f1 = xp[low], xp[high], fp[low], fp[high]
    gap = x1 - x0
    slope = (f1 - f0) / ew.where(ew.equal(gap, 0), 1, gap)
    found = slope * (x - x0) + f0
    found = ew.where(ew.equal(x, xp[-1]), fp[-1], found)
    found = ew.where(x > xp[-1], fp[-1] if right is None else right, found)
    return ew.where(x < xp[0], fp[0] if left is None else left, found)


def _periodic(x: Any, xp: Any, fp: Any, period: float) -> tuple[Any, Any, Any]:
    x, xp = ew.remainder(x, period), ew.remainder(xp, period)
    order = reducing.argsort(xp)
    xp, fp = xp[order], fp[order]
    wide = shaping.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, wide, shaping.concatenate([fp[-1:], fp, fp[:1]])
