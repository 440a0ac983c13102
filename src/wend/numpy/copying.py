"""Copies: a traced array never changes, so it is its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.numpy.operands import staged
from wend.numpy.public import implements
from wend.numpy.shaping import astype
from wend.numpy.ufuncs import own


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """`numpy.copy`, for traced arrays as well."""
    del order, subok
    return own(staged(a), [a])


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """`numpy.ascontiguousarray`, for traced arrays as well."""
    a = staged(a)
    a = a if dtype is None else astype(a, dtype)
    return a if a.ndim else a.reshape(1)


@implements(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None) -> Any:
    """`numpy.asanyarray`, for traced arrays as well."""
    a = staged(a)
    return a if dtype is None else astype(a, dtype)
