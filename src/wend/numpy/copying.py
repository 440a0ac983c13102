"""Copies and conversions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import Staged
from wend.eager.promotion import as_element
from wend.numpy import shaping
from wend.numpy.creating import asarray
from wend.numpy.operands import staged
from wend.numpy.public import implements
from wend.numpy.shaping import rank_of, reshape
from wend.numpy.ufuncs import copy_if_operand


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """Return a copy of the given array; see `numpy.copy`."""
    del order, subok
    return shaping.as_array_of(copy_if_operand(staged(a), [a]))


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """Return a contiguous array of at least one dimension; see `numpy.ascontiguousarray`."""
    return _in_order(a, dtype, "C")


def asfortranarray(a: Any, dtype: Any = None) -> Any:
    """Return an array of at least one dimension in Fortran's order; see `numpy.asfortranarray`."""
    return _in_order(a, dtype, "F")


def _converted(a: Any, dtype: Any) -> Any:
    """Return an operand, or a list that holds traced numbers, as an array of a dtype."""
    if isinstance(a, (list, tuple)):
        return asarray(a, dtype)
    return staged(a) if dtype is None else as_element(staged(a), np.dtype(dtype))


def _in_order(a: Any, dtype: Any, order: str) -> Any:
    array = _converted(a, dtype)
    array = array if rank_of(array) else reshape(array, 1)
    return array.contiguous_as(order) if array is a and isinstance(a, Staged) else array


@implements(np.asanyarray)
def asanyarray(a: Any, dtype: Any = None, *, order: str | None = None) -> Any:
    """Convert the input to an array; see `numpy.asanyarray`."""
    array = _converted(a, dtype)
    is_ordered = array is a and order is not None and isinstance(a, Staged) and rank_of(a)
    return array.contiguous_as(order) if is_ordered else array
