"""Functions that make arrays, of staged ones or like them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged
from wend.eager.promotion import cast, tensor_type
from wend.numpy import shaping
from wend.numpy.public import implements
from wend.numpy.shaping import check_device
from wend.numpy.ufuncs import own


def _spread(number: Any, like: Any, dtype: Any, shape: Any) -> Any:
    number = cast(number, np.dtype(dtype) if dtype is not None else tensor_type(like).dtype)
    if shape is not None:
        return shaping.filled(number, shape)
    return shaping.broadcast_to_shape_of(number, like).copy()


def _filled(original: Any, number: int) -> Any:
    def staged(x: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Any:
        check_device(device)
        known = tensor_type(x)
        if shape is None and known.is_static:
            return np.full(known.dims, number, dtype or known.dtype)
        return _spread(number, x, dtype, shape)

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    return implements(original)(staged)


zeros_like = _filled(np.zeros_like, 0)
ones_like = _filled(np.ones_like, 1)
empty_like = _filled(np.empty_like, 0)


@implements(np.full_like)
def full_like(
    x: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None, device: Any = None
) -> Any:
    """`numpy.full_like`, for traced arrays as well."""
    check_device(device)
    return _spread(fill_value, x, dtype, shape)


@implements(np.asarray)
def asarray(x: Any, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """`numpy.asarray`, for traced arrays and lists of them as well."""
    check_device(device)
    given = x
    if not isinstance(x, Staged):
        x = shaping.stack([asarray(item) if any_staged([item]) else np.asarray(item) for item in x])
    x = x if dtype is None else cast(x, np.dtype(dtype))
    if copy is False and x is not given:
        raise ValueError("asarray cannot do without a copy here")
    return own(x, [given]) if copy else x


@implements(np.array)
def array(x: Any, dtype: Any = None, *, copy: bool | None = True) -> Any:
    """`numpy.array`, for traced arrays and lists of them as well."""
    return asarray(x, dtype, copy=copy)
