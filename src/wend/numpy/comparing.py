"""Whether arrays are equal, or nearly."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.promotion import tensor_type
from wend.ir.types import Shape
from wend.numpy import elementwise as ew
from wend.numpy import reducing
from wend.numpy.operands import is_float, staged
from wend.numpy.public import implements


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """`numpy.isclose`, for traced arrays as well."""
    a, b = staged(a), staged(b)
    near = ew.less_equal(ew.absolute(a - b), atol + rtol * ew.absolute(b))
    found = ew.logical_or(ew.logical_and(near, ew.isfinite(b)), ew.equal(a, b))
    if equal_nan:
        found = ew.logical_or(found, ew.logical_and(ew.isnan(a), ew.isnan(b)))
    return found


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """`numpy.allclose`, for traced arrays as well: a traced bool."""
    return reducing.all(isclose(staged(a), b, rtol, atol, equal_nan))


def _never_equal(a: Shape, b: Shape) -> bool:
    if len(a) != len(b):
        return True
    pairs = zip(a, b, strict=True)
    return any(isinstance(x, int) and isinstance(y, int) and x != y for x, y in pairs)


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """`numpy.array_equal`, for traced arrays as well: a traced bool, or False by the shapes.

    Sizes that are not known before the run must be equal then.
    """
    a1, a2 = staged(a1), staged(a2)
    if _never_equal(tensor_type(a1).dims, tensor_type(a2).dims):
        return False
    same = ew.equal(a1, a2)
    if equal_nan and is_float(a1) and is_float(a2):
        same = ew.logical_or(same, ew.logical_and(ew.isnan(a1), ew.isnan(a2)))
    return reducing.all(same)


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    """`numpy.array_equiv`, for traced arrays as well: a traced bool, or False by the shapes."""
    a1, a2 = staged(a1), staged(a2)
    mine, theirs = tensor_type(a1).dims[::-1], tensor_type(a2).dims[::-1]
    for x, y in zip(mine, theirs, strict=False):
        if isinstance(x, int) and isinstance(y, int) and x != y and 1 not in (x, y):
            return False
    return reducing.all(ew.equal(a1, a2))
