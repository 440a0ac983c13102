"""The methods of NumPy's ufuncs on traced arrays: `np.add.reduce`, `np.add.outer`, …"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base.errors import AliasError, explain
from wend.base.refusals import refusal
from wend.eager.dispatch import any_staged
from wend.eager.promotion import as_array, cast, is_weak, tensor_type, wrapped
from wend.numpy import calculus, indexing, parts, reducing, shaping, special, updating
from wend.numpy import elementwise as ew
from wend.numpy.operands import dtype_of, normalize_axes, require, slice_axis, staged, strong
from wend.numpy.outputs import put_into
from wend.numpy.public import STAGED
from wend.numpy.ranges import arange
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
    computed = _result_dtype(ufunc, "reduce", x, axis=axis, dtype=dtype, keepdims=keepdims)
    if ufunc not in STAGED:
        raise unknown(ufunc, "reduce")
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
        x = (_reduce_axis if ufunc in _ASSOCIATIVE else _fold_axis)(ufunc, x, k)
    return x if keepdims else shaping.squeeze(x, axes)


def _reduce_axis(ufunc: Any, x: Any, axis: int) -> Any:
    """Combine the two halves of an axis until one element is left."""
    size = known_size(x, axis, f"{ufunc.__name__}.reduce")
    if size < 2 and ufunc.identity is not None:
        widths = [(int(k == axis) * (2 - size), 0) for k in range(shaping.rank_of(x))]
        identity = np.asarray(ufunc.identity).astype(dtype_of(x))[()]  # -1 has all bits
        x, size = shaping.pad(x, widths, constant_values=identity), 2
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


_MAX_STEPS = 256  # of a fold that is recorded element by element


def _fold_axis(ufunc: Any, x: Any, axis: int) -> Any:
    """Combine the elements of an axis from first to last."""
    *_, last = _partial_folds(ufunc, x, axis, "reduce")
    return last


def _partial_folds(ufunc: Any, x: Any, axis: int, method: str) -> list[Any]:
    """Return what is left of an axis after its first element, its first two elements, …"""
    size = known_size(x, axis, f"{ufunc.__name__}.{method}")
    if size == 0 and method == "reduce":
        what = f"zero-size array to reduction operation {ufunc.__name__} which has no identity"
        raise ValueError(what)
    if size > _MAX_STEPS:
        raise not_taken(
            f"{ufunc.__name__}.{method}", "axis", "write it as a loop: for y in x[1:]: r = r / y."
        )
    elements = [slice_axis(x, axis, slice(k, k + 1)) for k in range(size)]
    folds = elements[:1]
    for part in elements[1:]:
        folds.append(STAGED[ufunc](folds[-1], part))
    return folds


def _accumulate(ufunc: Any, x: Any, axis: Any = 0, dtype: Any = None, out: None = None) -> Any:
    x = staged(x)
    computed = _result_dtype(ufunc, "accumulate", x, axis=axis, dtype=dtype)
    if ufunc not in STAGED:
        raise unknown(ufunc, "accumulate")
    (axis,) = normalize_axes(x, axis)
    if ufunc is np.add:
        return reducing.cumsum(x, axis, dtype)
    if ufunc is np.multiply:
        return calculus.cumprod(x, axis, dtype)
    x = cast(x, computed)
    if ufunc is np.subtract:
        first, others = slice_axis(x, axis, slice(None, 1)), slice_axis(x, axis, slice(1, None))
        return reducing.cumsum(shaping.concatenate([first, -others], axis=axis), axis, computed)
    if ufunc not in _ASSOCIATIVE:
        folds = _partial_folds(ufunc, x, axis, "accumulate")
        return shaping.concatenate(folds, axis=axis) if folds else x
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


def _reduceat(
    ufunc: Any, x: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: None = None
) -> Any:
    x = staged(x)
    (axis,) = normalize_axes(x, axis)
    if any_staged([indices]):
        return _reduceat_of_traced(ufunc, x, indices, axis, dtype)
    positions = np.asarray(indices)
    size = known_size(x, axis, f"{ufunc.__name__}.reduceat")
    np.add.reduceat(np.zeros(size), positions)  # NumPy's errors
    bounds = zip(positions, [*positions[1:], size], strict=True)
    results = [
        _reduce(
            ufunc, slice_axis(x, axis, slice(k, end if k < end else k + 1)), axis, dtype, None, True
        )
        for k, end in bounds
    ]
    if not results:
        return slice_axis(x, axis, slice(0, 0))
    return shaping.concatenate(results, axis=axis)


def _reduceat_of_traced(ufunc: Any, x: Any, indices: Any, axis: int, dtype: Any) -> Any:
    """Return `reduceat` at positions of the run: of each row, the elements that do not count."""
    if ufunc not in _REDUCTIONS:
        raise unknown(ufunc, "reduceat")
    identity = ufunc.identity
    if identity is None:
        limits = np.finfo if dtype_of(x).kind == "f" else np.iinfo
        low, high = limits(dtype_of(x)).min, limits(dtype_of(x)).max
        identity = low if ufunc is np.maximum else high
        if dtype_of(x).kind == "f":
            identity = -np.inf if ufunc is np.maximum else np.inf
    x = shaping.moveaxis(x, axis, -1)
    starts, size = as_array(indices), shaping.shape(x)[-1]
    outside = ew.logical_or(starts < 0, starts >= size)
    text = f"index out-of-bounds in {ufunc.__name__}.reduceat [0, {{}})"
    size = require(size, reducing.any(outside), IndexError, text)
    ends = shaping.concatenate([starts[1:], shaping.reshape(staged(np.int64(0)) + size, (1,))])
    ends = ew.where(ends > starts, ends, starts + 1)
    k = arange(size)
    counts = ew.logical_and(k >= starts[:, None], k < ends[:, None])
    fill = np.asarray(identity, dtype_of(x))[()]
    rows = ew.where(counts, shaping.expand_dims(x, -2), fill)
    return shaping.moveaxis(_reduce(ufunc, rows, -1, dtype), -1, axis)


def _at(ufunc: Any, x: Any, key: Any, *values: Any) -> None:
    if ufunc not in STAGED or not hasattr(x, "replace") or len(values) != ufunc.nin - 1:
        raise unknown(ufunc, "at")
    if shaping.rank_of(x) != 1 or x.writeable is None:
        x.check_writeable("operand array with iterator write flag set")
    elif not x.writeable:
        raise refusal(
            AliasError(
                explain(
                    f"{x!r} is a read-only view; np.{ufunc.__name__}.at writes through it in "
                    "NumPy, but not here.",
                    cure="change a copy: y = y.copy() before.",
                )
            )
        )
    values = tuple(map(as_array, values))
    if parts.is_basic(key) and any(map(shaping.rank_of, values)):
        rank = shaping.rank_of(x[key])
        if any(shaping.rank_of(value) > rank for value in values):
            raise ValueError("array is not broadcastable to correct shape")
    if ufunc in (np.add, np.subtract):
        (value,) = values
        value = -value if ufunc is np.subtract else value
        if is_weak(value) and dtype_of(value).kind == "i" and dtype_of(x).kind in "iu":
            value = wrapped(value, dtype_of(x))  # sums wrap, too
        if not np.can_cast(tensor_type(value).dtype, tensor_type(x).dtype, "same_kind"):
            raise TypeError(f"cannot put {tensor_type(value)} into {tensor_type(x)} in place")
        x.replace(updating.add_at(x, key, value))
        return
    if parts.is_basic(key):  # each position once
        result = STAGED[ufunc](x[key], *values)
        if not np.can_cast(tensor_type(result).dtype, tensor_type(x).dtype, "same_kind"):
            raise TypeError(f"cannot put {tensor_type(result)} into {tensor_type(x)} in place")
        x[key] = cast(result, tensor_type(x).dtype)
        return
    is_mask = hasattr(key, "dtype") and dtype_of(key) == np.bool
    if ufunc in _ASSOCIATIVE and parts.is_staged_key(key):
        places, elements = map(staged, updating.places_and_values(x, key, *values))
        if is_mask or isinstance(tensor_type(places).dims[0], int):
            x.replace(_combined_at(ufunc, x, places, elements, are_distinct=is_mask))
            return
    if not tensor_type(x).is_static or parts.is_staged_key(key):
        raise not_taken(
            f"{ufunc.__name__}.at", "indices", "write it as a loop: for k in keys: x[k] = …"
        )
    _apply_at(ufunc, x, key, values)


def _combined_at(ufunc: Any, x: Any, places: Any, values: Any, *, are_distinct: bool) -> Any:
    """Return `x` with `values` combined at flat positions."""
    if not are_distinct:
        places, values = _combined_by_place(ufunc, places, values)
    flat = shaping.reshape(x, (-1,))
    result = STAGED[ufunc](flat[places], values)
    if not np.can_cast(tensor_type(result).dtype, tensor_type(x).dtype, "same_kind"):
        raise TypeError(f"cannot put {tensor_type(result)} into {tensor_type(x)} in place")
    return updating.reshape_like(updating.set_at(flat, places, result), x)


def _combined_by_place(ufunc: Any, places: Any, values: Any) -> tuple[Any, Any]:
    """Return positions without repetition, and the values of each combined by a segmented scan."""
    size = known_size(places, 0, f"{ufunc.__name__}.at")
    if not size:
        return places, values
    order = reducing.argsort(places)
    places, values, step = places[order], values[order], 1
    while step < size:
        is_same = ew.equal(places[step:], places[:-step])
        combined = STAGED[ufunc](values[:-step], values[step:])
        scanned = cast(ew.where(is_same, combined, values[step:]), dtype_of(values))
        values = shaping.concatenate([values[:step], scanned])
        step *= 2
    changes = ew.not_equal(places[1:], places[:-1])
    (ends,) = indexing.nonzero(shaping.concatenate([changes, staged(np.array([True]))]))
    return places[ends], values[ends]


def _apply_at(ufunc: Any, x: Any, key: Any, values: Sequence[Any]) -> None:
    """Apply a ufunc at known positions: at each of them once, then at those that are repeated."""
    shape: Any = tensor_type(x).dims
    places = np.arange(math.prod(shape)).reshape(shape)[key]
    flat, shape = np.ravel(places), np.shape(places)
    order = np.argsort(flat, kind="stable")
    starts = np.r_[True, np.diff(flat[order]) != 0][: flat.size]
    firsts = np.maximum.accumulate(np.where(starts, np.arange(flat.size), 0))
    turns = np.empty(flat.size, int)
    turns[order] = np.arange(flat.size) - firsts
    if turns.max(initial=0) > _MAX_STEPS:
        raise not_taken(
            f"{ufunc.__name__}.at", "indices", "write it as a loop: for k in keys: x[k] = …"
        )
    columns = [shaping.ravel(shaping.broadcast_to(value, shape)) for value in values]
    vector = shaping.reshape(x, (-1,))
    for turn in range(turns.max(initial=-1) + 1):
        (now,) = np.nonzero(turns == turn)
        result = STAGED[ufunc](vector[flat[now]], *(column[now] for column in columns))
        if not np.can_cast(tensor_type(result).dtype, tensor_type(x).dtype, "same_kind"):
            raise TypeError(f"cannot put {tensor_type(result)} into {tensor_type(x)} in place")
        vector = updating.set_at(vector, flat[now], result)
    x.replace(shaping.reshape(vector, tensor_type(x).shape))


_METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
    "at": _at,
    "reduceat": _reduceat,
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
