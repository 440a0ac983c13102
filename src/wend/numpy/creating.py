"""Functions that make arrays from staged values, or like a staged array."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import as_element, cast, tensor_type
from wend.numpy import shaping
from wend.numpy.public import implements
from wend.numpy.shaping import check_device
from wend.numpy.ufuncs import copy_if_operand


def _full_like(number: Any, like: Any, dtype: Any, shape: Any) -> Any:
    if isinstance(number, (list, tuple)):
        number = asarray(number) if any_staged(number) else np.asarray(number)
    number = cast(number, np.dtype(dtype) if dtype is not None else tensor_type(like).dtype)
    if shape is not None:
        return shaping.new_full(number, shape)
    return shaping.broadcast_like(number, like).copy()


def _constant_like(original: Any, number: int) -> Any:
    def staged(x: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Any:
        check_device(device)
        known = tensor_type(x)
        if shape is None and known.is_static:
            return np.full(known.dims, number, dtype or known.dtype)
        return _full_like(number, x, dtype, shape)

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"Return a new array, as `numpy.{original.__name__}`; `x` may be traced."
    return implements(original)(staged)


zeros_like = _constant_like(np.zeros_like, 0)
ones_like = _constant_like(np.ones_like, 1)
empty_like = _constant_like(np.empty_like, 0)


@implements(np.full_like)
def full_like(
    x: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None, device: Any = None
) -> Any:
    """Return a full array with the shape and dtype of a given array; see `numpy.full_like`."""
    check_device(device)
    return _full_like(fill_value, x, dtype, shape)


def _item(x: Any, dtype: Any) -> Any:
    """Return an item of a list, cast by itself: integers of the run have to fit the dtype."""
    if not any_staged([x]):
        return np.asarray([x], dtype)[0]
    is_cast = isinstance(x, Staged) and dtype is not None
    return as_element(x, np.dtype(dtype), is_assigned=True) if is_cast else asarray(x, dtype)


try:
    np.array([0], copy=False)
except ValueError as error:
    _COPY_NEEDED = str(error)


@implements(np.asarray)
def asarray(
    x: Any,
    dtype: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    order: str | None = None,
) -> Any:
    """Convert an array, or a list that may hold traced arrays, to an array; see `numpy.asarray`."""
    check_device(device)
    original = x
    if not isinstance(x, Staged):
        x = shaping.stack([_item(item, dtype) for item in x])
    x = x if dtype is None else as_element(x, np.dtype(dtype))
    if copy is False and x is not original:
        raise ValueError(_COPY_NEEDED)
    if copy:
        x = copy_if_operand(x, [original])
    elif x is original and order is not None and shaping.rank_of(x):
        x = x.contiguous_as(order)
    return shaping.as_array_of(x)


@implements(np.array)
def array(
    x: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = None,
    ndmin: int = 0,
) -> Any:
    """Create an array, also from lists that hold traced arrays; see `numpy.array`."""
    array = asarray(x, dtype, copy=copy, order=order)
    missing = max(ndmin - shaping.rank_of(array), 0)
    return shaping.expand_dims(array, tuple(range(missing))) if missing else array
