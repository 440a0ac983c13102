"""Reductions that ignore NaN. Ignored elements have derivative 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.promotion import cast
from wend.ir.dtypes import INT64
from wend.numpy import calculus, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import dtype_of, is_inexact, staged
from wend.numpy.public import implements


def _replace_nan(a: Any, number: Any) -> Any:
    """Return the array with NaN replaced by a number."""
    return ew.where(ew.isnan(a), number, a) if is_inexact(a) else a


def _count_non_nan(a: Any, axis: Any, keepdims: bool) -> Any:
    """Count the elements that are not NaN."""
    is_number = ew.logical_not(ew.isnan(a))
    return reducing.sum(cast(is_number, INT64), axis=axis, keepdims=keepdims)


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Return the sum of array elements, treating NaN as zero; see `numpy.nansum`."""
    return reducing.sum(_replace_nan(staged(a), 0), axis, dtype, keepdims=keepdims)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Return the product of array elements, treating NaN as one; see `numpy.nanprod`."""
    return reducing.prod(_replace_nan(staged(a), 1), axis, dtype, keepdims=keepdims)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative sum of elements, treating NaN as zero; see `numpy.nancumsum`."""
    return reducing.cumsum(_replace_nan(staged(a), 0), axis, dtype)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative product of elements, treating NaN as one; see `numpy.nancumprod`."""
    return calculus.cumprod(_replace_nan(staged(a), 1), axis, dtype)


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the maximum of an array or along an axis, ignoring NaN; see `numpy.nanmax`.

    For a traced array, the result is NaN where all elements are NaN.
    """
    a = staged(a)
    if not is_inexact(a):
        return reducing.max(a, axis=axis, keepdims=keepdims)
    result = reducing.max(_replace_nan(a, -np.inf), axis=axis, keepdims=keepdims)
    return ew.where(ew.equal(_count_non_nan(a, axis, keepdims), 0), np.nan, result)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Return the minimum of an array or along an axis, ignoring NaN; see `numpy.nanmin`.

    For a traced array, the result is NaN where all elements are NaN.
    """
    a = staged(a)
    if not is_inexact(a):
        return reducing.min(a, axis=axis, keepdims=keepdims)
    result = reducing.min(_replace_nan(a, np.inf), axis=axis, keepdims=keepdims)
    return ew.where(ew.equal(_count_non_nan(a, axis, keepdims), 0), np.nan, result)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the indices of the maximum values along an axis, ignoring NaN; see `numpy.nanargmax`.

    For a traced array, the index is 0 where all elements are NaN.
    """
    return reducing.argmax(_replace_nan(staged(a), -np.inf), axis=axis, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the indices of the minimum values along an axis, ignoring NaN; see `numpy.nanargmin`.

    For a traced array, the index is 0 where all elements are NaN.
    """
    return reducing.argmin(_replace_nan(staged(a), np.inf), axis=axis, keepdims=keepdims)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Compute the arithmetic mean, ignoring NaN; see `numpy.nanmean`."""
    a = staged(a)
    if not is_inexact(a):
        return reducing.mean(a, axis, dtype, keepdims=keepdims)
    total = reducing.sum(_replace_nan(a, 0), axis, dtype, keepdims=keepdims)
    return total / cast(_count_non_nan(a, axis, keepdims), dtype_of(total))


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Any:
    """Compute the variance, ignoring NaN; see `numpy.nanvar`."""
    a = staged(a)
    if not is_inexact(a):
        return reducing.var(a, axis, dtype, ddof, keepdims=keepdims)
    a = a if dtype is None else cast(a, np.dtype(dtype))
    deviations = _replace_nan(a - nanmean(a, axis, keepdims=True), 0)
    squares = ew.real(deviations * ew.conjugate(deviations))
    divisor = _count_non_nan(a, axis, keepdims) - ddof
    total = reducing.sum(squares, axis=axis, keepdims=keepdims)
    return ew.where(
        divisor <= 0, np.nan, total / cast(ew.where(divisor <= 0, 1, divisor), dtype_of(total))
    )


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Any:
    """Compute the standard deviation, ignoring NaN; see `numpy.nanstd`."""
    return ew.sqrt(nanvar(staged(a), axis, dtype, ddof, keepdims=keepdims))


@implements(np.nanmedian)
def nanmedian(a: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
    """Compute the median along one axis or all, ignoring NaN; see `numpy.nanmedian`."""
    del out
    a = staged(a)
    rank = shaping.rank_of(a)
    rows = shaping.ravel(a) if axis is None else shaping.moveaxis(a, axis, -1)
    ordered = reducing.sort(rows, axis=-1)  # NaN sorts last
    count = _count_non_nan(rows, -1, keepdims=True)
    lower, upper = ew.maximum(count - 1, 0) // 2, count // 2
    upper = ew.minimum(upper, shaping.shape(rows)[-1] - 1)
    lower, upper = (cast(k, INT64) for k in (lower, upper))
    middle = [np.take_along_axis(ordered, k, axis=-1) for k in (lower, upper)]
    medians = shaping.squeeze((middle[0] + middle[1]) / 2, -1)
    if not keepdims:
        return medians
    return (
        shaping.reshape(medians, (1,) * rank)
        if axis is None
        else shaping.expand_dims(medians, axis)
    )
