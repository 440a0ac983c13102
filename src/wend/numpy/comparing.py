"""Comparisons of whole arrays: equality, exact or within a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.promotion import cast, result_dtype, tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.operands import is_inexact, python_bool, staged
from wend.numpy.public import implements


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Return where two arrays are elementwise equal within a tolerance; see `numpy.isclose`."""
    a, b = staged(a), staged(b)
    b = cast(b, result_dtype(b, 1.0))  # so that integers do not wrap
    near = ew.less_equal(ew.absolute(a - b), atol + rtol * ew.absolute(b))
    close = ew.logical_or(ew.logical_and(near, ew.isfinite(b)), ew.equal(a, b))
    if equal_nan:
        close = ew.logical_or(close, ew.logical_and(ew.isnan(a), ew.isnan(b)))
    return close


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Return whether two arrays are elementwise equal within a tolerance; see `numpy.allclose`.

    For traced arrays the result is a traced bool.
    """
    return python_bool(reducing.all(isclose(staged(a), b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Return whether two arrays have the same shape and elements; see `numpy.array_equal`.

    For traced arrays the result is a traced bool, or False if they are known to differ in shape.
    """
    a1, a2 = staged(a1), staged(a2)
    if shaping.rank_of(a1) != shaping.rank_of(a2):
        return False
    is_like = _are_like(a1, a2, lambda n, m: n == m)
    if is_like is False:
        return False
    a1, a2 = _cut(a1, is_like), _cut(a2, is_like)
    same = ew.equal(a1, a2)
    if equal_nan and is_inexact(a1) and is_inexact(a2):
        same = ew.logical_or(same, ew.logical_and(ew.isnan(a1), ew.isnan(a2)))
    return python_bool(ew.logical_and(is_like, reducing.all(same)))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Return whether two arrays are equal after broadcasting; see `numpy.array_equiv`.

    For traced arrays the result is a traced bool, or False if they are known not to broadcast.
    """
    a1, a2 = staged(a1), staged(a2)
    is_like = _are_like(a1, a2, lambda n, m: (n == m) | (n == 1) | (m == 1))
    if is_like is False:
        return False
    same = ew.equal(_cut(a1, is_like), _cut(a2, is_like))
    return python_bool(ew.logical_and(is_like, reducing.all(same)))


def _are_like(a1: Any, a2: Any, fits: Callable[[Any, Any], Any]) -> Any:
    """Return whether the sizes of two arrays fit, from the last axis on.

    It is a traced bool where only the run knows them.
    """
    is_like: Any = True
    dims = zip(tensor_type(a1).dims[::-1], tensor_type(a2).dims[::-1], strict=False)
    sizes = zip(shaping.shape(a1)[::-1], shaping.shape(a2)[::-1], strict=False)
    for (dim1, dim2), pair in zip(dims, sizes, strict=True):
        fit = dim1 == dim2 or fits(*pair)
        if fit is False:
            return False
        is_like = is_like if fit is True else ew.logical_and(is_like, fit)
    return is_like


def _cut(a: Any, is_like: Any) -> Any:
    """Return an array, or what it has none of if its shape does not fit that of another."""
    if is_like is True:
        return a
    return a[tuple(slice(ew.where(is_like, size, 0)) for size in shaping.shape(a))]
