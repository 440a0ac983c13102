"""Reductions that leave out NaN; what is left out has derivative 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.promotion import cast
from wend.ir.dtypes import INT64
from wend.numpy import calculus, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import dtype_of, is_float, staged
from wend.numpy.public import implements


def _without(a: Any, number: Any) -> Any:
    """NaN replaced."""
    return ew.where(ew.isnan(a), number, a) if is_float(a) else a


def _count(a: Any, axis: Any, keepdims: bool) -> Any:
    """How many are no NaN."""
    kept = ew.logical_not(ew.isnan(a))
    return reducing.sum(cast(kept, INT64), axis=axis, keepdims=keepdims)


@implements(np.nansum)
def nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.nansum`, for traced arrays as well."""
    return reducing.sum(_without(staged(a), 0), axis, dtype, keepdims=keepdims)


@implements(np.nanprod)
def nanprod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanprod`, for traced arrays as well."""
    return reducing.prod(_without(staged(a), 1), axis, dtype, keepdims=keepdims)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """`numpy.nancumsum`, for traced arrays as well."""
    return reducing.cumsum(_without(staged(a), 0), axis, dtype)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """`numpy.nancumprod`, for traced arrays as well."""
    return calculus.cumprod(_without(staged(a), 1), axis, dtype)


@implements(np.nanmax)
def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanmax`, for traced arrays as well; NaN where there is nothing else."""
    a = staged(a)
    if not is_float(a):
        return reducing.max(a, axis=axis, keepdims=keepdims)
    found = reducing.max(_without(a, -np.inf), axis=axis, keepdims=keepdims)
    return ew.where(ew.equal(_count(a, axis, keepdims), 0), np.nan, found)


@implements(np.nanmin)
def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanmin`, for traced arrays as well; NaN where there is nothing else."""
    a = staged(a)
    if not is_float(a):
        return reducing.min(a, axis=axis, keepdims=keepdims)
    found = reducing.min(_without(a, np.inf), axis=axis, keepdims=keepdims)
    return ew.where(ew.equal(_count(a, axis, keepdims), 0), np.nan, found)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanargmax`, for traced arrays as well; of nothing but NaN it is 0."""
    return reducing.argmax(_without(staged(a), -np.inf), axis=axis, keepdims=keepdims)


@implements(np.nanargmin)
def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanargmin`, for traced arrays as well; of nothing but NaN it is 0."""
    return reducing.argmin(_without(staged(a), np.inf), axis=axis, keepdims=keepdims)


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanmean`, for traced arrays as well."""
    a = staged(a)
    if not is_float(a):
        return reducing.mean(a, axis, dtype, keepdims=keepdims)
    total = reducing.sum(_without(a, 0), axis, dtype, keepdims=keepdims)
    return total / cast(_count(a, axis, keepdims), dtype_of(total))


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Any:
    """`numpy.nanvar`, for traced arrays as well."""
    a = staged(a)
    if not is_float(a):
        return reducing.var(a, axis, dtype, ddof, keepdims=keepdims)
    a = a if dtype is None else cast(a, np.dtype(dtype))
    gaps = _without(a - nanmean(a, axis, keepdims=True), 0)
    squares = ew.real(gaps * ew.conjugate(gaps))
    left = _count(a, axis, keepdims) - ddof
    total = reducing.sum(squares, axis=axis, keepdims=keepdims)
    return ew.where(left <= 0, np.nan, total / cast(ew.where(left <= 0, 1, left), dtype_of(total)))


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, *, keepdims: bool = False
) -> Any:
    """`numpy.nanstd`, for traced arrays as well."""
    return ew.sqrt(nanvar(staged(a), axis, dtype, ddof, keepdims=keepdims))


@implements(np.nanmedian)
def nanmedian(a: Any, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Any:
    """`numpy.nanmedian` along one axis or all, for traced arrays as well."""
    del out
    a = staged(a)
    rank = shaping.rank_of(a)
    rows = shaping.ravel(a) if axis is None else shaping.moveaxis(a, axis, -1)
    ordered = reducing.sort(rows, axis=-1)  # NaN last
    count = _count(rows, -1, keepdims=True)
    low, high = ew.maximum(count - 1, 0) // 2, count // 2
    high = ew.minimum(high, shaping.shape(rows)[-1] - 1)
    low, high = (cast(k, INT64) for k in (low, high))
    middle = [np.take_along_axis(ordered, k, axis=-1) for k in (low, high)]
    found = shaping.squeeze((middle[0] + middle[1]) / 2, -1)
    if not keepdims:
        return found
    return shaping.reshape(found, (1,) * rank) if axis is None else shaping.expand_dims(found, axis)
