"""Copies and conversions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.numpy.operands import staged
from wend.numpy.public import implements
from wend.numpy.shaping import astype, rank_of, reshape
from wend.numpy.ufuncs import copy_if_operand


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return a copy of the given array; see `numpy.copy`."""
    del order, subok
    return copy_if_operand(staged(a), [a])


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """Return a contiguous array of at least one dimension; see `numpy.ascontiguousarray`."""
    a = staged(a)
    a = a if dtype is None else astype(a, dtype)
    return a if rank_of(a) else reshape(a, 1)


@implements(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None) -> Any:
    """Convert the input to an array; see `numpy.asanyarray`."""
    a = staged(a)
    return a if dtype is None else astype(a, dtype)
