"""Order statistics, averages and correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.promotion import cast, is_weak, result_dtype, tensor_type
from wend.ir.dtypes import INT64
from wend.numpy import contracting, indexing, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.matrices import diag
from wend.numpy.operands import axes_of, count_of, dtype_of, inexact, is_float, staged, strong
from wend.numpy.public import implements


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.ptp`, for traced arrays as well."""
    a = staged(a)
    high = reducing.max(a, axis=axis, keepdims=keepdims)
    return high - reducing.min(a, axis=axis, keepdims=keepdims)


@implements(np.average)
def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """`numpy.average`, for traced arrays and weights as well."""
    a = staged(a)
    if weights is None:
        found = reducing.mean(a, axis=axis, keepdims=keepdims)
        total: Any = cast(count_of(a, axis), dtype_of(found))
    else:
        weights = _weights(staged(weights), a, axis)
        dtype = result_dtype(a, weights, *([] if is_float(a) else [np.float64(0)]))
        a, weights = cast(a, dtype), cast(weights, dtype)
        total = reducing.sum(weights, axis=axis, keepdims=keepdims)
        found = reducing.sum(a * weights, axis=axis, keepdims=keepdims) / total
        weights = shaping.broadcast_to(weights, shaping.shape(a))
        total = reducing.sum(weights, axis=axis, keepdims=keepdims)
    if not returned:
        return found
    return found, shaping.broadcast_to(staged(total), shaping.shape(found))


def _weights(weights: Any, a: Any, axis: Any) -> Any:
    """Weights of one axis, as an array of the rank of `a`."""
    if tensor_type(weights).dims == tensor_type(a).dims:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = axes_of(a, axis)
    if tensor_type(weights).dims != tuple(tensor_type(a).dims[k] for k in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    others = tuple(k for k in range(shaping.rank_of(a)) if k not in axes)
    return shaping.expand_dims(shaping.transpose(weights, tuple(order)), others)


# Orders
def _rows(a: Any, axis: Any) -> Any:
    """The axes made one, the last."""
    axes = axes_of(a, axis)
    others = tuple(k for k in range(shaping.rank_of(a)) if k not in axes)
    moved = shaping.transpose(a, (*others, *axes))
    sizes = shaping.shape(moved)[: len(others)]
    return shaping.reshape(moved, (*sizes, count_of(a, axes)))


def _unreduced(found: Any, a: Any, axis: Any, lead: int = 0) -> Any:
    """The axes that were reduced, put back with size 1."""
    return shaping.expand_dims(found, tuple(lead + k for k in axes_of(a, axis)))


@implements(np.median)
def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """`numpy.median`, for traced arrays as well."""
    del out, overwrite_input
    (a,) = inexact(a) if not is_float(staged(a)) else (staged(a),)
    rows = reducing.sort(_rows(a, axis), axis=-1)
    count = shaping.shape(rows)[-1]
    if isinstance(count, int) and count == 0:
        return reducing.mean(a, axis=axis, keepdims=keepdims)
    found = (rows[..., (count - 1) // 2] + rows[..., count // 2]) / 2
    found = ew.where(ew.isnan(rows[..., -1]), np.nan, found)
    return _unreduced(found, a, axis) if keepdims else found


_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_STEPS = {"lower": ew.floor, "higher": ew.ceil, "nearest": ew.rint}


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    q = cast(q, dtype_of(a)) if is_weak(q) and dtype_of(a).kind == "f" else inexact(q)[0]
    rows = reducing.sort(_rows(a, axis), axis=-1)
    count = shaping.shape(rows)[-1]
    found = _at(rows, _places(shaping.ravel(q), count, method), count, method)
    return _per_probability(found, q, a, axis, keepdims)


def _nanquantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    if not is_float(a):
        return _quantile(a, q, axis, method, keepdims)
    q = cast(q, dtype_of(a)) if is_weak(q) else inexact(q)[0]
    rows = reducing.sort(_rows(a, axis), axis=-1)  # NaN last
    kept = ew.logical_not(ew.isnan(rows))
    count = reducing.sum(kept, axis=-1, keepdims=True)
    found = _at(rows, _places(shaping.ravel(q), cast(count, dtype_of(q)), method), count, method)
    return _per_probability(found, q, a, axis, keepdims)


def _per_probability(found: Any, q: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """The probabilities' axis, which was the last, brought to the front; none for a number."""
    found = found if shaping.rank_of(found) < 2 else shaping.moveaxis(found, -1, 0)
    if keepdims:
        found = _unreduced(found, a, axis, lead=1)
    return found if shaping.rank_of(q) else found[0]


def _places(q: Any, count: Any, method: str) -> Any:
    """Where in the sorted row each probability falls."""
    if method in _STEPS:
        return _STEPS[method](q * (count - 1))
    if method == "midpoint":
        place = q * (count - 1)
        return 0.5 * (ew.floor(place) + ew.ceil(place))
    if method not in _CONTINUOUS:
        raise NotImplementedError(f"quantile of a traced array has no method {method!r}")
    if method == "linear":
        return q * (count - 1)
    alpha, beta = _CONTINUOUS[method]
    return count * q + (alpha + q * (1 - alpha - beta)) - 1


def _at(rows: Any, place: Any, count: Any, method: str) -> Any:
    """The numbers at places of sorted rows, between two of them in proportion."""
    end = ew.maximum(count - 1, 0)
    low = cast(ew.clip(ew.floor(place), 0, end), INT64)
    high = ew.minimum(low + 1, end)
    # Where each row has a count of its own the places are rows as well.
    is_each = not isinstance(count, int) and shaping.rank_of(count) > 0
    take = indexing.take_along_axis if is_each else indexing.take
    first = take(rows, low, axis=-1)
    if method in _STEPS:
        found = first
    else:
        last = take(rows, high, axis=-1)
        part = ew.clip(place - cast(low, dtype_of(place)), 0, 1)
        gap = last - first
        # From the nearer end, as NumPy does.
        found = ew.where(part >= 0.5, last - gap * (1 - part), first + gap * part)
    if not is_float(rows):
        return found
    # NaN comes last: the last of those counted tells.
    is_nan = ew.isnan(take(rows, end, axis=-1) if is_each else rows[..., -1:])
    return ew.where(is_nan, np.nan, found)


def _orders(
    original: Callable[..., Any], compute: Callable[..., Any], note: str, *, percent: bool = False
) -> Callable[..., Any]:
    """Make the public function of order statistics; `percent`: it takes percentages."""

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Any:
        del out, overwrite_input
        a, q = staged(a), staged(q)
        return compute(a, q / 100 if percent else q, axis, method, keepdims)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, for traced arrays and {note}"
    return implements(original)(function)


quantile = _orders(
    np.quantile,
    _quantile,
    "probabilities as well.\n\n"
    "    All methods but `inverted_cdf`, `averaged_inverted_cdf` and `closest_observation`.\n    ",
)
percentile = _orders(np.percentile, _quantile, "percentages as well.", percent=True)
nanquantile = _orders(np.nanquantile, _nanquantile, "probabilities as well; NaN of nothing else.")
nanpercentile = _orders(np.nanpercentile, _nanquantile, "percentages as well.", percent=True)


# Correlations
@implements(np.cov)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """`numpy.cov`, for traced arrays as well."""
    m = staged(m)
    if shaping.rank_of(m) > 2 or (y is not None and shaping.rank_of(y) > 2):
        raise ValueError("m and y have more than 2 dimensions")
    sets = [m] if y is None else [m, staged(y)]
    given = np.result_type(np.float64, *map(dtype_of, sets)) if dtype is None else np.dtype(dtype)
    rows = [_variables(cast(x, given), rowvar) for x in sets]
    x = rows[0] if y is None else shaping.concatenate(rows, axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = [staged(w) for w in (fweights, aweights) if w is not None]
    if not weights:
        centred = x - reducing.mean(x, axis=1, keepdims=True)
        weighted, scale = centred, shaping.shape(x)[1] - ddof
    else:
        both = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = reducing.sum(both)
        centred = x - reducing.sum(x * both, axis=1, keepdims=True) / total
        weighted = centred * both
        scale = total - ddof
        if aweights is not None:
            scale = total - ddof * reducing.sum(both * weights[-1]) / total
    found = contracting.matmul(centred, shaping.transpose(ew.conjugate(weighted)))
    return shaping.squeeze(found / cast(scale, dtype_of(found)))


def _variables(x: Any, rowvar: bool) -> Any:
    """A variable for each row."""
    if shaping.rank_of(x) < 2:
        return shaping.reshape(x, (1, -1))
    return x if rowvar or tensor_type(x).dims[0] == 1 else shaping.transpose(x)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """`numpy.corrcoef`, for traced arrays as well."""
    c = cov(staged(strong(x)), y, rowvar, dtype=dtype)
    if not shaping.rank_of(c):
        return c / c
    deviation = ew.sqrt(ew.real(diag(c)))
    found = c / shaping.expand_dims(deviation, 1) / deviation
    if dtype_of(found).kind == "c":
        return found
    return ew.clip(found, -1, 1)
