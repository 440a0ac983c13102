"""Comparisons of whole arrays: equality, exact or within a tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.promotion import cast, result_dtype, tensor_type
from wend.ir.types import Shape
from wend.numpy import elementwise as ew
from wend.numpy import reducing
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


def _static_shapes_differ(a: Shape, b: Shape) -> bool:
    if len(a) != len(b):
        return True
    pairs = zip(a, b, strict=True)
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs)


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Return whether two arrays have the same shape and elements; see `numpy.array_equal`.

    For traced arrays the result is a traced bool, or False if their static shapes already differ.
    Sizes that are unknown while tracing must agree at run time.
    """
    a1, a2 = staged(a1), staged(a2)
    if _static_shapes_differ(tensor_type(a1).dims, tensor_type(a2).dims):
        return False
    same = ew.equal(a1, a2)
    if equal_nan and is_inexact(a1) and is_inexact(a2):
        same = ew.logical_or(same, ew.logical_and(ew.isnan(a1), ew.isnan(a2)))
    return python_bool(reducing.all(same))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """Return whether two arrays are equal after broadcasting; see `numpy.array_equiv`.

    For traced arrays the result is a traced bool, or False if their static shapes do not broadcast.
    """
    a1, a2 = staged(a1), staged(a2)
    dims1, dims2 = tensor_type(a1).dims[::-1], tensor_type(a2).dims[::-1]
    for x, y in zip(dims1, dims2, strict=False):
        if isinstance(x, int) and isinstance(y, int) and x != y and 1 not in (x, y):
            return False
    return python_bool(reducing.all(ew.equal(a1, a2)))
