"""Reductions that ignore NaN. Ignored elements have derivative 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import INT64
from wend.numpy import calculus, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import dtype_of, is_inexact, promote_dtypes_inexact, require, staged
from wend.numpy.public import implements
from wend.numpy.statistics import as_rows, half_of_sum, restore_axes, with_nan_if_empty


def _replace_nan(a: Any, number: Any) -> Any:
    """Return the array with NaN replaced by a number."""
    return ew.where(ew.isnan(a), number, a) if is_inexact(a) else a


def _count_non_nan(a: Any, axis: Any, keepdims: bool, where: Any = True) -> Any:
    """Count the elements that are not NaN."""
    is_number = ew.logical_not(ew.isnan(a))
    return reducing.sum(cast(is_number, INT64), axis=axis, keepdims=keepdims, where=where)


@implements(np.nansum)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum of array elements, treating NaN as zero; see `numpy.nansum`."""
    a = _replace_nan(staged(a), 0)
    return reducing.sum(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


@implements(np.nanprod)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product of array elements, treating NaN as one; see `numpy.nanprod`."""
    a = _replace_nan(staged(a), 1)
    return reducing.prod(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative sum of elements, treating NaN as zero; see `numpy.nancumsum`."""
    return reducing.cumsum(_replace_nan(staged(a), 0), axis, dtype)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative product of elements, treating NaN as one; see `numpy.nancumprod`."""
    return calculus.cumprod(_replace_nan(staged(a), 1), axis, dtype)


def _nan_extreme(original: Callable[..., Any], reduce: Callable[..., Any], lowest: float) -> Any:
    """Return `nanmax` or `nanmin`; `lowest` loses against every element."""

    def staged_extreme(
        a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        a = staged(a)
        numbers = _replace_nan(a, lowest)
        result = reduce(numbers, axis, keepdims=keepdims, initial=initial, where=where)
        if not is_inexact(a) or initial is not None:
            return result
        return ew.where(ew.equal(_count_non_nan(a, axis, keepdims), 0), np.nan, result)

    staged_extreme.__name__ = staged_extreme.__qualname__ = original.__name__
    staged_extreme.__doc__ = (
        f"Return the {reduce.__name__}imum of an array or along an axis, ignoring NaN; see "
        f"`numpy.{original.__name__}`.\n\n"
        "    For a traced array, the result is NaN where all elements are NaN."
    )
    return implements(original)(staged_extreme)


nanmax = _nan_extreme(np.nanmax, reducing.max, -np.inf)
nanmin = _nan_extreme(np.nanmin, reducing.min, np.inf)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the indices of the maximum along an axis, ignoring NaN; see `numpy.nanargmax`."""
    return _nan_arg_extreme(reducing.argmax, -np.inf, a, axis, keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """Return the indices of the minimum along an axis, ignoring NaN; see `numpy.nanargmin`."""
    return _nan_arg_extreme(reducing.argmin, np.inf, a, axis, keepdims)


def _nan_arg_extreme(
    reduce: Callable[..., Any], lowest: float, a: Any, axis: int | None, keepdims: bool
) -> Any:
    """Return the positions of extremes, where no slice may have NaN only."""
    a = staged(a)
    positions = reduce(_replace_nan(a, lowest), axis=axis, keepdims=keepdims)
    if not is_inexact(a):
        return positions
    is_empty = reducing.any(reducing.all(ew.isnan(a), axis=axis))
    # The positions are checked, not the array: of one element, they do not depend on it.
    return require(positions, is_empty, ValueError, "All-NaN slice encountered")


def _check_inexact(dtype: Any) -> None:
    if dtype is not None and np.dtype(dtype).kind not in "fc":
        raise TypeError("If a is inexact, then dtype must be inexact")


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Any:
    """Compute the arithmetic mean, ignoring NaN; see `numpy.nanmean`."""
    a = staged(a)
    if not is_inexact(a):
        return reducing.mean(a, axis, dtype, keepdims=keepdims, where=where)
    _check_inexact(dtype)
    total = reducing.sum(_replace_nan(a, 0), axis, dtype, keepdims=keepdims, where=where)
    return total / cast(_count_non_nan(a, axis, keepdims, where), dtype_of(total))


@implements(np.nanvar)
def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    mean: Any = None,
    where: Any = True,
) -> Any:
    """Compute the variance, ignoring NaN; see `numpy.nanvar`."""
    a = staged(a)
    ddof = reducing.degrees_of_freedom(ddof, correction)
    if not is_inexact(a):
        return reducing.var(a, axis, dtype, ddof=ddof, keepdims=keepdims, mean=mean, where=where)
    _check_inexact(dtype)
    mean = nanmean(a, axis, dtype, keepdims=True, where=where) if mean is None else mean
    # As in NumPy, `dtype` is that of the sums; squares are of the array's.
    deviations = cast(ew.where(ew.isnan(a), 0, a - mean), dtype_of(a))
    squares = ew.real(deviations * ew.conjugate(deviations))
    divisor = _count_non_nan(a, axis, keepdims, where) - ddof
    total = reducing.sum(squares, axis, dtype, keepdims=keepdims, where=where)
    return ew.where(
        divisor <= 0, np.nan, total / cast(ew.where(divisor <= 0, 1, divisor), dtype_of(total))
    )


@implements(np.nanstd)
def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    mean: Any = None,
    where: Any = True,
) -> Any:
    """Compute the standard deviation, ignoring NaN; see `numpy.nanstd`."""
    ddof = reducing.degrees_of_freedom(ddof, correction)
    return reducing.root_of_variance(
        nanvar(staged(a), axis, dtype, ddof=ddof, keepdims=keepdims, mean=mean, where=where)
    )


# NumPy takes the medians of shorter rows as those of a masked array.
_MIN_LENGTH_OF_SINGLE_ROWS = 600


def _adds_in_dtype(rows: Any) -> bool:
    """Return whether NumPy adds the middle elements in their own dtype, where sums may overflow."""
    *others, length = shaping.shape(rows)
    return bool(others) and isinstance(length, int) and length < _MIN_LENGTH_OF_SINGLE_ROWS


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    """Compute the median along axes, ignoring NaN; see `numpy.nanmedian`."""
    del overwrite_input
    a = staged(a)
    (a,) = promote_dtypes_inexact(a) if not is_inexact(a) else (a,)
    rows = as_rows(a, axis)
    if 0 in tensor_type(a).dims:
        return reducing.mean(a, axis=axis, keepdims=keepdims)
    rows = with_nan_if_empty(rows)
    ordered = reducing.sort(rows, axis=-1)  # NaN sorts last
    count = _count_non_nan(rows, -1, keepdims=True)
    lower, upper = ew.maximum(count - 1, 0) // 2, count // 2
    upper = ew.minimum(upper, shaping.shape(rows)[-1] - 1)
    lower, upper = (cast(k, INT64) for k in (lower, upper))
    middle = [np.take_along_axis(ordered, k, axis=-1) for k in (lower, upper)]
    if _adds_in_dtype(rows):
        mean = (middle[0] + middle[1]) / 2
    else:
        mean = ew.where(lower == upper, middle[0], half_of_sum(*middle))
    medians = shaping.squeeze(mean, -1)
    return restore_axes(medians, a, axis) if keepdims else medians
