"""The methods of NumPy's ufuncs on traced arrays: `np.add.reduce`, `np.add.outer`, …"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import explain
from wend.base.refusals import refusal
from wend.eager.promotion import as_array, tensor_type
from wend.numpy import calculus, reducing, shaping, special, updating
from wend.numpy.operands import known_size, slice_axis, staged, strong
from wend.numpy.public import STAGED
from wend.numpy.unknown import unknown


def _reduce_with_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis, dtype, keepdims: function(x, axis, dtype, keepdims=keepdims)


def _reduce_after_cast(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
        x = x if dtype is None else shaping.astype(x, dtype)
        return function(x, axis, keepdims=keepdims)

    return run


_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: _reduce_with_dtype(reducing.sum),
    np.multiply: _reduce_with_dtype(reducing.prod),
    np.maximum: _reduce_after_cast(reducing.max),
    np.minimum: _reduce_after_cast(reducing.min),
    np.logical_and: _reduce_after_cast(reducing.all),
    np.logical_or: _reduce_after_cast(reducing.any),
}
# Ufuncs that are associative: reduced and scanned by pairwise combination.
_ASSOCIATIVE = {
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.logaddexp,
    np.logaddexp2,
    np.hypot,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.gcd,
    np.lcm,
}


def _reduce(
    ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False
) -> Any:
    x = staged(x)
    if ufunc in _REDUCTIONS:
        return _REDUCTIONS[ufunc](x, axis, dtype, keepdims)
    if ufunc not in _ASSOCIATIVE or dtype is not None or isinstance(axis, tuple):
        raise unknown(ufunc, "reduce")
    if axis is None:
        if shaping.rank_of(x) != 1:
            raise unknown(ufunc, "reduce")
        axis = 0
    axis = normalize_axis_index(axis, shaping.rank_of(x))
    size = known_size(x, axis, f"{ufunc.__name__}.reduce")
    if size == 0:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__}")
    # Combine the two halves until one element is left.
    while size > 1:
        half = size // 2
        first, high = (
            slice_axis(x, axis, slice(None, half)),
            slice_axis(x, axis, slice(half, 2 * half)),
        )
        leftover = [slice_axis(x, axis, slice(2 * half, None))] if size % 2 else []
        x = shaping.concatenate([STAGED[ufunc](first, high), *leftover], axis=axis)
        size = half + size % 2
    return x if keepdims else shaping.squeeze(x, axis)


def _accumulate(ufunc: Any, x: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
    x = staged(x)
    if not shaping.rank_of(x):
        raise TypeError("cannot accumulate on a scalar")
    if ufunc is np.add:
        return reducing.cumsum(x, axis, dtype)
    if ufunc is np.multiply:
        return calculus.cumprod(x, axis, dtype)
    if ufunc not in _ASSOCIATIVE or dtype is not None:
        raise unknown(ufunc, "accumulate")
    axis = normalize_axis_index(axis, shaping.rank_of(x))
    size = known_size(x, axis, f"{ufunc.__name__}.accumulate")
    step = 1
    while step < size:
        first = slice_axis(x, axis, slice(None, step))
        pairs = slice_axis(x, axis, slice(None, -step)), slice_axis(x, axis, slice(step, None))
        x = shaping.concatenate([first, STAGED[ufunc](*pairs)], axis=axis)
        step *= 2
    return x


def _outer(ufunc: Any, a: Any, b: Any) -> Any:
    if ufunc.nin != 2 or ufunc not in STAGED:
        raise unknown(ufunc, "outer")
    a, b = strong(a), strong(b)
    new_axes = tuple(range(shaping.rank_of(a), shaping.rank_of(a) + shaping.rank_of(b)))
    return STAGED[ufunc](shaping.expand_dims(a, new_axes) if new_axes else a, b)


def _at(ufunc: Any, x: Any, key: Any, value: Any) -> None:
    if ufunc not in (np.add, np.subtract) or not hasattr(x, "replace"):
        raise unknown(ufunc, "at")
    value = as_array(value)
    if not np.can_cast(tensor_type(value).dtype, tensor_type(x).dtype, "same_kind"):
        raise TypeError(f"cannot put {tensor_type(value)} into {tensor_type(x)} in place")
    x.replace(updating.add_at(x, key, -value if ufunc is np.subtract else value))


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
}


def _scipy_counterpart(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the function of `wend.numpy.special` for a SciPy ufunc, if there is one."""
    module = sys.modules.get("scipy.special")
    is_scipy_ufunc = module is not None and getattr(module, ufunc.__name__, None) is ufunc
    return getattr(special, ufunc.__name__, None) if is_scipy_ufunc else None


def run(ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """Run `ufunc.method(*inputs)`; the method `__call__` is the ufunc itself.

    Raises:
        TypeError: the method is not supported for traced arrays.
    """
    unsupported_options = {name: options.pop(name, None) for name in ("initial", "where")}
    refused = [name for name, x in unsupported_options.items() if x is not None and x is not True]
    if refused and method != "__call__":
        raise refusal(
            TypeError(
                explain(
                    f"numpy.{ufunc.__name__}.{method} of a traced array takes no {refused[0]}=.",
                    cure="use wnp.where on what it is applied to.",
                )
            )
        )
    if method != "__call__":
        if method not in _METHODS:
            raise unknown(ufunc, method)
        return _METHODS[method](ufunc, *inputs, **options)
    function = STAGED.get(ufunc) or _scipy_counterpart(ufunc)
    if function is None:
        raise unknown(ufunc)
    if refused:
        raise refusal(
            TypeError(
                explain(
                    f"numpy.{ufunc.__name__} of a traced array takes no where=.",
                    cure="use wnp.where(condition, result, other).",
                )
            )
        )
    return function(*inputs, **options)
