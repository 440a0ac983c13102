"""Order statistics, averages and correlations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain, listed
from wend.base.source import at, user_source
from wend.eager.promotion import cast, is_weak, result_dtype, tensor_type
from wend.ir.dtypes import BOOL, INT64
from wend.numpy import contracting, indexing, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.matrices import diag
from wend.numpy.operands import (
    dtype_of,
    element_count,
    is_inexact,
    normalize_axes,
    promote_dtypes_inexact,
    require,
    staged,
    strong,
)
from wend.numpy.public import implements
from wend.numpy.ranges import full


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the range of values (maximum - minimum) along an axis; see `numpy.ptp`."""
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
    """Compute the weighted average along the specified axis; see `numpy.average`."""
    a = staged(a)
    axis = axis if axis is None else normalize_axes(a, axis)
    if weights is None:
        mean = reducing.mean(a, axis=axis, keepdims=keepdims)
        total: Any = cast(element_count(a, axis), dtype_of(mean))
    else:
        weights = _expand_weights(staged(weights), a, axis)
        dtype = result_dtype(a, weights, *([] if is_inexact(a) else [np.float64(0)]))
        a, weights = cast(a, dtype), cast(weights, dtype)
        total = reducing.sum(weights, axis=axis, keepdims=keepdims)
        text = "Weights sum to zero, can't be normalized"
        total = require(total, reducing.any(ew.equal(total, 0)), ZeroDivisionError, text)
        mean = reducing.sum(a * weights, axis=axis, keepdims=keepdims) / total
        weights = shaping.broadcast_to(weights, shaping.shape(a))
        total = reducing.sum(weights, axis=axis, keepdims=keepdims)
    if not returned:
        return mean
    return mean, shaping.new_full(staged(total), shaping.shape(mean))


def _expand_weights(weights: Any, a: Any, axis: Any) -> Any:
    """Return the weights of some axes, as an array of the rank of `a`."""
    if tensor_type(weights).dims == tensor_type(a).dims:
        return weights
    if axis is None:
        text = "Axis must be specified when shapes of a and weights differ."
        return shaping.with_sizes(weights, shaping.shape(a), text, "type")
    axes = normalize_axes(a, axis)
    text = "Shape of weights must be consistent with shape of a along specified axis."
    sizes = [shaping.shape(a)[k] for k in axes]
    weights = shaping.with_sizes(weights, sizes, text, "value")
    order = sorted(range(len(axes)), key=axes.__getitem__)
    others = tuple(k for k in range(shaping.rank_of(a)) if k not in axes)
    return shaping.expand_dims(shaping.transpose(weights, tuple(order)), others)


# Order statistics
def as_rows(a: Any, axis: Any) -> Any:
    """Merge the reduced axes into one and make it the last."""
    axes = normalize_axes(a, axis)
    others = tuple(k for k in range(shaping.rank_of(a)) if k not in axes)
    transposed = shaping.transpose(a, (*others, *axes))
    sizes = shaping.shape(transposed)[: len(others)]
    return shaping.reshape(transposed, (*sizes, element_count(a, axes)))


def with_nan_if_empty(rows: Any) -> Any:
    """Add a NaN to rows where only the run knows that they are empty: their median is NaN."""
    *others, count = shaping.shape(rows)
    if isinstance(count, int):
        return rows
    missing = full((*others, ew.maximum(1 - count, 0)), np.nan, dtype_of(rows))
    return shaping.concatenate([rows, missing], axis=-1)


def restore_axes(reduced: Any, a: Any, axis: Any, offset: int = 0) -> Any:
    """Insert the reduced axes with size 1, after `offset` leading axes."""
    return shaping.expand_dims(reduced, tuple(offset + k for k in normalize_axes(a, axis)))


def half_of_sum(x: Any, y: Any) -> Any:
    """Return the mean of two numbers; of float16 numbers, it is computed in float32."""
    dtype = dtype_of(x)
    if dtype != np.float16:
        return (x + y) / 2
    wide = np.dtype(np.float32)
    return cast((cast(x, wide) + cast(y, wide)) / 2, dtype)


@implements(np.median)
def median(
    a: Any,
    axis: Any = None,
    *,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """Compute the median along the specified axis; see `numpy.median`."""
    del overwrite_input
    (a,) = promote_dtypes_inexact(a) if not is_inexact(staged(a)) else (staged(a),)
    rows = reducing.sort(with_nan_if_empty(as_rows(a, axis)), axis=-1)
    count = shaping.shape(rows)[-1]
    if isinstance(count, int) and count == 0:
        return reducing.mean(a, axis=normalize_axes(a, axis), keepdims=keepdims)
    medians = half_of_sum(rows[..., (count - 1) // 2], rows[..., count // 2])
    medians = ew.where(ew.isnan(rows[..., -1]), rows[..., -1], medians)
    return restore_axes(medians, a, axis) if keepdims else medians


# The parameters (alpha, beta) of the plotting position.
_PLOTTING_POSITIONS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# Of the probabilities 0 and 1 as integers, these give the first and the last element.
_EXACT_AT_ENDS = {"linear", "weibull", "interpolated_inverted_cdf"}
_ROUNDING_METHODS = {"lower": ew.floor, "higher": ew.ceil, "nearest": ew.rint}


def _quantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    rows = reducing.sort(as_rows(a, axis), axis=-1)
    count = shaping.shape(rows)[-1]
    is_empty = isinstance(count, int) and count == 0
    if is_empty and (is_inexact(a) or 0 not in tensor_type(q).dims):
        raise IndexError("index -1 is out of bounds for axis 0 with size 0")
    q, method, dtype = _resolve_probabilities(a, q, method)
    quantiles = _interpolate(
        rows, _fractional_index(shaping.ravel(q), count, method), count, method
    )
    quantiles = quantiles if dtype is None else cast(quantiles, dtype)
    return _move_probability_axis(quantiles, q, a, axis, keepdims)


def _resolve_probabilities(a: Any, q: Any, method: str) -> tuple[Any, str, np.dtype | None]:
    """Return inexact probabilities, the method for them, and the dtype of the quantiles.

    The dtype is None if it is that of the interpolation. The probabilities 0 and 1 as integers
    choose the first and the last element, as in NumPy; its other methods but `linear` promote
    the element with them.
    """
    dtype = None
    if dtype_of(q).kind in "biu" and method in _EXACT_AT_ENDS:
        if method != "linear":
            if dtype_of(a) == BOOL:
                raise TypeError("numpy boolean subtract, the `-` operator, is not supported")
            number = np.int64(0) if dtype_of(q) == BOOL else q
            dtype = result_dtype(a, 0.0 if is_weak(q) else number)
        # An interpolation between an infinity and itself is NaN.
        method = method if method != "linear" and is_inexact(a) else "lower"
    if is_weak(q) and dtype_of(a).kind == "f":
        return cast(q, dtype_of(a)), method, dtype
    return promote_dtypes_inexact(q)[0], method, dtype


def _nanquantile(a: Any, q: Any, axis: Any, method: str, keepdims: bool) -> Any:
    if 0 in tensor_type(a).dims:
        return reducing.mean(a, axis=axis, keepdims=keepdims)  # whatever the probabilities are
    if not is_inexact(a):
        return _quantile(a, q, axis, method, keepdims)
    q, method, dtype = _resolve_probabilities(a, q, method)
    rows = reducing.sort(with_nan_if_empty(as_rows(a, axis)), axis=-1)  # NaN sorts last
    is_number = ew.logical_not(ew.isnan(rows))
    count = reducing.sum(is_number, axis=-1, keepdims=True)
    quantiles = _interpolate(
        rows, _fractional_index(shaping.ravel(q), cast(count, dtype_of(q)), method), count, method
    )
    quantiles = quantiles if dtype is None else cast(quantiles, dtype)
    return _move_probability_axis(quantiles, q, a, axis, keepdims)


def _move_probability_axis(quantiles: Any, q: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """Move the axis of the probabilities to the front; drop it if `q` is a scalar."""
    quantiles = quantiles if shaping.rank_of(quantiles) < 2 else shaping.moveaxis(quantiles, -1, 0)
    if keepdims:
        quantiles = restore_axes(quantiles, a, axis, offset=1)
    if shaping.rank_of(q) == 1:
        return quantiles
    return shaping.reshape(quantiles, shaping.shape(q) + shaping.shape(quantiles)[1:])


def _fractional_index(q: Any, count: Any, method: str) -> Any:
    """Return the fractional index of each probability in a sorted row."""
    if method in _ROUNDING_METHODS:
        return _ROUNDING_METHODS[method](q * (count - 1))
    if method == "midpoint":
        index = q * (count - 1)
        return 0.5 * (ew.floor(index) + ew.ceil(index))
    if method not in _PLOTTING_POSITIONS:
        np.quantile(np.zeros(1), 0.5, method=method)  # type: ignore[call-overload]  # NumPy's error
        raise UnsupportedError(
            explain(
                f"quantiles of a traced array have no method {method!r}{at(user_source())}.",
                cure=f"choose one of {listed((*_PLOTTING_POSITIONS, *_ROUNDING_METHODS))}.",
            )
        )
    if method == "linear":
        return q * (count - 1)
    alpha, beta = _PLOTTING_POSITIONS[method]
    return count * q + (alpha + q * (1 - alpha - beta)) - 1


def _interpolate(rows: Any, index: Any, count: Any, method: str) -> Any:
    """Return the values of sorted rows at fractional indices, interpolated linearly."""
    end = ew.maximum(count - 1, 0)
    lower = cast(ew.clip(ew.floor(index), 0, end), INT64)
    upper = ew.minimum(ew.where(index < 0, lower, lower + 1), end)
    # If each row has its own count, the indices have rows, too.
    has_count_per_row = not isinstance(count, int) and shaping.rank_of(count) > 0
    take = indexing.take_along_axis if has_count_per_row else indexing.take
    first = take(rows, lower, axis=-1)
    if method in _ROUNDING_METHODS:
        values = first
    else:
        last = take(rows, upper, axis=-1)
        fraction = ew.clip(index - cast(lower, dtype_of(index)), 0, 1)
        gap = last - first
        # As in NumPy, interpolate from the nearer end.
        values = ew.where(fraction >= 0.5, last - gap * (1 - fraction), first + gap * fraction)
    if not is_inexact(rows):
        return values
    # NaN sorts last, so the last element shows whether there is one.
    is_nan = ew.isnan(take(rows, end, axis=-1) if has_count_per_row else rows[..., -1:])
    return ew.where(is_nan, np.nan, values)


def _make_quantile_function(
    original: Callable[..., Any], compute: Callable[..., Any], note: str, *, percent: bool = False
) -> Callable[..., Any]:
    """Make the public function of a quantile; `percent` makes it take percentages."""

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        *,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
    ) -> Any:
        del overwrite_input
        a, q = staged(a), staged(q)
        if dtype_of(a).kind == "c":
            raise TypeError("a must be an array of real numbers")
        q = strong(q) if dtype_of(q) == BOOL else q
        name, limit = ("Percentiles", 100) if percent else ("Quantiles", 1)
        is_inside = ew.logical_and(ew.greater_equal(q, 0), ew.less_equal(q, limit))
        is_outside = ew.logical_not(reducing.all(is_inside))
        q = require(q, is_outside, ValueError, f"{name} must be in the range [0, {limit}]")
        return compute(a, q / 100 if percent else q, axis, method, keepdims)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"Compute `numpy.{original.__name__}`; the array and the {note}"
    return implements(original)(function)


quantile = _make_quantile_function(
    np.quantile,
    _quantile,
    "probabilities may be traced.\n\n"
    "    For traced arrays, all methods are supported but `inverted_cdf`,\n"
    "    `averaged_inverted_cdf` and `closest_observation`.\n    ",
)
percentile = _make_quantile_function(
    np.percentile, _quantile, "percentages may be traced.", percent=True
)
nanquantile = _make_quantile_function(
    np.nanquantile,
    _nanquantile,
    "probabilities may be traced.\n\n    The result is NaN where all elements are NaN.\n    ",
)
nanpercentile = _make_quantile_function(
    np.nanpercentile, _nanquantile, "percentages may be traced.", percent=True
)


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
    """Estimate a covariance matrix, given data and weights; see `numpy.cov`."""
    m = staged(m)
    if shaping.rank_of(m) > 2 or (y is not None and shaping.rank_of(y) > 2):
        raise ValueError("m and y have more than 2 dimensions")
    samples = [m] if y is None else [m, staged(y)]
    compute_dtype = (
        np.result_type(np.float64, *map(dtype_of, samples)) if dtype is None else np.dtype(dtype)
    )
    rows = [_variables_as_rows(cast(x, compute_dtype), rowvar) for x in samples]
    x = rows[0] if y is None else shaping.concatenate(rows, axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _weights_of_samples(fweights, aweights, x)
    if not weights:
        centred = x - reducing.mean(x, axis=1, keepdims=True)
        weighted, scale = centred, shaping.shape(x)[1] - ddof
    else:
        combined = weights[0] if len(weights) == 1 else weights[0] * weights[1]
        total = reducing.sum(combined)
        centred = x - reducing.sum(x * combined, axis=1, keepdims=True) / total
        weighted = centred * combined
        scale = total - ddof
        if aweights is not None:
            scale = total - ddof * reducing.sum(combined * weights[-1]) / total
    if tensor_type(x).dims[0] == 0:
        return np.zeros((0, 0))
    covariance = contracting.matmul(centred, shaping.transpose(ew.conjugate(weighted)))
    factor = 1 / cast(ew.maximum(scale, 0), dtype_of(covariance))
    return shaping.as_array_of(shaping.squeeze(covariance * factor))


def _weights_of_samples(fweights: Any, aweights: Any, x: Any) -> list[Any]:
    """Return the weights of `cov` that there are, checked as NumPy checks them."""
    checked = []
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        weights = staged(weights)
        if name == "fweights":
            is_whole = reducing.all(ew.equal(weights, ew.rint(weights)))
            text = "fweights must be integer"
            weights = require(weights, ew.logical_not(is_whole), TypeError, text)
        if shaping.rank_of(weights) > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        differ = ew.not_equal(shaping.shape(weights)[0], shaping.shape(x)[1])
        text = f"incompatible numbers of samples and {name}"
        weights = require(weights, differ, RuntimeError, text)
        is_negative = reducing.any(ew.less(weights, 0))
        checked.append(require(weights, is_negative, ValueError, f"{name} cannot be negative"))
    return checked


def _variables_as_rows(x: Any, rowvar: bool) -> Any:
    """Return the samples with one variable per row."""
    if shaping.rank_of(x) < 2:
        return shaping.reshape(x, (1, -1))
    return x if rowvar else shaping.transpose(x)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Return Pearson product-moment correlation coefficients; see `numpy.corrcoef`."""
    c = cov(staged(strong(x)), y, rowvar, dtype=dtype)
    if not shaping.rank_of(c):
        return c / c
    deviation = ew.sqrt(ew.real(diag(c)))
    correlation = c / shaping.expand_dims(deviation, 1) / deviation
    if dtype_of(correlation).kind == "c":
        return correlation
    return ew.clip(correlation, -1, 1)
