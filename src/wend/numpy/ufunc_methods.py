"""The methods of NumPy's ufuncs on traced arrays: `np.add.reduce`, `np.add.outer`, …"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.promotion import as_array, cast, tensor_type
from wend.numpy import calculus, reducing, shaping, special, updating
from wend.numpy.operands import normalize_axes, slice_axis, staged, strong
from wend.numpy.outputs import put_into
from wend.numpy.public import STAGED
from wend.numpy.shaping import known_size
from wend.numpy.signatures import not_taken
from wend.numpy.ufuncs import call_ufunc
from wend.numpy.unknown import unknown


def _reduce_after_cast(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, axis: Any, dtype: Any, **options: Any) -> Any:
        return function(x if dtype is None else shaping.astype(x, dtype), axis, **options)

    return run


_REDUCTIONS: dict[Any, Callable[..., Any]] = {
    np.add: reducing.sum,
    np.multiply: reducing.prod,
    np.maximum: _reduce_after_cast(reducing.max),
    np.minimum: _reduce_after_cast(reducing.min),
    np.logical_and: _reduce_after_cast(reducing.all),
    np.logical_or: _reduce_after_cast(reducing.any),
}
# Ufuncs that are associative: reduced and scanned by pairwise combination.
_ASSOCIATIVE = {
    np.add,
    np.multiply,
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


def _result_dtype(ufunc: Any, method: str, x: Any, **options: Any) -> np.dtype:
    """Return the dtype that NumPy's method computes in, of an array with one element.

    Raises:
        TypeError, ValueError: those of NumPy, whatever the array has for elements.
    """
    like = np.ones((1,) * shaping.rank_of(x), tensor_type(x).dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers that become real
        dtype: np.dtype = getattr(ufunc, method)(like, **options).dtype
    return dtype


def _reduce(
    ufunc: Any,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    **options: Any,
) -> Any:
    x = staged(x)
    if ufunc not in _ASSOCIATIVE:
        raise unknown(ufunc, "reduce")
    computed = _result_dtype(ufunc, "reduce", x, axis=axis, dtype=dtype, keepdims=keepdims)
    if ufunc in _REDUCTIONS:
        return _REDUCTIONS[ufunc](x, axis, dtype, keepdims=keepdims, **options)
    for option in options:
        raise not_taken(f"{ufunc.__name__}.reduce", option, "use np.where on what it reduces.")
    if not shaping.rank_of(x):
        x, axis = shaping.reshape(x, (1,)), 0
        keepdims = False
    x = cast(x, computed)
    axes = normalize_axes(x, axis)
    for k in axes:
        x = _reduce_axis(ufunc, x, k)
    return x if keepdims else shaping.squeeze(x, axes)


def _reduce_axis(ufunc: Any, x: Any, axis: int) -> Any:
    """Combine the two halves of an axis until one element is left."""
    size = known_size(x, axis, f"{ufunc.__name__}.reduce")
    if size < 2 and ufunc.identity is not None:
        widths = [(int(k == axis) * (2 - size), 0) for k in range(shaping.rank_of(x))]
        x, size = shaping.pad(x, widths, constant_values=ufunc.identity), 2
    if size == 0:
        what = f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        raise ValueError(what)
    while size > 1:
        half = size // 2
        first, high = (
            slice_axis(x, axis, slice(None, half)),
            slice_axis(x, axis, slice(half, 2 * half)),
        )
        leftover = [slice_axis(x, axis, slice(2 * half, None))] if size % 2 else []
        x = shaping.concatenate([STAGED[ufunc](first, high), *leftover], axis=axis)
        size = half + size % 2
    return x


def _accumulate(ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
    x = staged(x)
    if ufunc not in _ASSOCIATIVE:
        raise unknown(ufunc, "accumulate")
    computed = _result_dtype(ufunc, "accumulate", x, axis=axis, dtype=dtype)
    (axis,) = normalize_axes(x, axis)
    if ufunc is np.add:
        return reducing.cumsum(x, axis, dtype)
    if ufunc is np.multiply:
        return calculus.cumprod(x, axis, dtype)
    x = cast(x, computed)
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


def _at(ufunc: Any, x: Any, key: Any, value: Any = None) -> None:
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
    if method != "__call__":
        if method not in _METHODS:
            raise unknown(ufunc, method)
        out = options.pop("out", None)
        result = _METHODS[method](ufunc, *inputs, **options)
        return result if out is None else put_into(out, result)
    function = STAGED.get(ufunc) or _scipy_counterpart(ufunc)
    if function is None:
        raise unknown(ufunc)
    return call_ufunc(ufunc, function, inputs, options)
