"""Differences, integrals and running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import as_array, cast, result_dtype
from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.operands import along, dtype_of, inexact, known_size, staged, strong
from wend.numpy.public import STAGED, implements
from wend.ops import contracting, scanning


# Running products and sums
def _product_dtype(x: Any, dtype: Any) -> np.dtype:
    if dtype is not None:
        given: np.dtype = np.dtype(dtype)
        return given
    product: np.ndarray = np.multiply.reduce(np.ones((1, 1), dtype_of(x)))
    return product.dtype


@implements(np.cumprod)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """`numpy.cumprod`, for traced arrays as well; its derivative is right where elements are 0."""
    a = staged(a)
    a = cast(a, _product_dtype(a, dtype))
    if axis is None:
        a, axis = shaping.ravel(a), 0
    return apply(scanning.cumprod, a, axis=normalize_axis_index(axis, shaping.rank_of(a)))


def _cumulative(
    name: str, run: Callable[..., Any], plain: Callable[..., Any], start: int
) -> Callable[..., Any]:
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Any:
        traced = any_staged([x])
        x = as_array(x) if traced else np.atleast_1d(x)
        rank = shaping.rank_of(x)
        if axis is None:
            if rank > 1:
                raise ValueError(
                    f"For arrays which have more than one dimension, {name} needs axis"
                )
            axis = 0
        if traced and not rank:
            x = shaping.reshape(x, (1,))
        axis = normalize_axis_index(axis, max(rank, 1))
        found = (run if traced else plain)(x, axis, dtype)
        if not include_initial:
            return found
        if not traced:
            first = np.full_like(found.take([], axis=axis), start, shape=_one(found.shape, axis))
            return np.concatenate([first, found], axis=axis)
        sizes = _one(shaping.shape(found), axis)
        first = shaping.broadcast_to(staged(np.asarray(start, dtype_of(found))), sizes)
        return shaping.concatenate([first, found], axis=axis)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`numpy.{name}`, for traced arrays as well."
    if hasattr(np, name):  # NumPy 2.1
        STAGED[getattr(np, name)] = function
    return function


def _one(shape: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


cumulative_sum = _cumulative("cumulative_sum", reducing.cumsum, np.cumsum, 0)
cumulative_prod = _cumulative("cumulative_prod", cumprod, np.cumprod, 1)


# Differences
@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """`numpy.diff`, for traced arrays as well."""
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    a = staged(a)
    if n == 0:
        return a
    if not shaping.rank_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, shaping.rank_of(a))
    ends = [None if x is None else _edge(staged(x), a, axis) for x in (prepend, append)]
    parts = [x for x in (ends[0], a, ends[1]) if x is not None]
    a = shaping.concatenate(parts, axis=axis) if len(parts) > 1 else a
    for _ in range(n):
        later, earlier = along(a, axis, slice(1, None)), along(a, axis, slice(None, -1))
        a = ew.not_equal(later, earlier) if dtype_of(a) == BOOL else later - earlier
    return a


def _edge(x: Any, a: Any, axis: int) -> Any:
    if shaping.rank_of(x):
        return x
    return shaping.broadcast_to(strong(x), _one(shaping.shape(a), axis))


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """`numpy.unwrap`, for traced arrays as well."""
    p = staged(p)
    axis = normalize_axis_index(axis, shaping.rank_of(p))
    gaps = diff(p, axis=axis)
    dtype = result_dtype(gaps, period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        is_between = rest == 0
    else:
        high, is_between = period / 2, True
    low = -high
    discont = high if discont is None else discont
    wrapped = ew.remainder(gaps - low, period) + low
    if is_between:
        wrapped = ew.where(ew.logical_and(ew.equal(wrapped, low), gaps > 0), high, wrapped)
    correction = ew.where(ew.absolute(gaps) < discont, 0, wrapped - gaps)
    later = cast(along(p, axis, slice(1, None)), dtype) + reducing.cumsum(correction, axis)
    return shaping.concatenate([cast(along(p, axis, slice(None, 1)), dtype), later], axis=axis)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """`numpy.ediff1d`, for traced arrays as well."""
    found = diff(shaping.ravel(strong(ary)))
    ends = [
        None if x is None else cast(shaping.ravel(strong(x)), dtype_of(found))
        for x in (to_begin, to_end)
    ]
    parts = [x for x in (ends[0], found, ends[1]) if x is not None]
    return shaping.concatenate(parts) if len(parts) > 1 else found


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """`numpy.gradient`: second differences inside, one-sided ones at the edges."""
    (f,) = inexact(f)
    rank = shaping.rank_of(f)
    axes = tuple(range(rank)) if axis is None else normalize_axis_tuple(axis, rank)
    steps = [*varargs] if varargs else [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    dtype = dtype_of(f)
    slopes = [_slope(f, staged(h), k, edge_order) for h, k in zip(steps, axes, strict=True)]
    found = [cast(slope, dtype) for slope in slopes]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    if known_size(f, axis, "gradient") < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    f = shaping.moveaxis(f, axis, -1)
    if shaping.rank_of(h):
        gaps = diff(h)
        near, far = gaps[:-1], gaps[1:]
        inner = (
            f[..., :-2] * (-far / (near * (near + far)))
            + f[..., 1:-1] * ((far - near) / (near * far))
            + f[..., 2:] * (near / (far * (near + far)))
        )
        ends = (
            (gaps[0], gaps[1] if edge_order == 2 else None),
            (
                gaps[-1],
                gaps[-2] if edge_order == 2 else None,
            ),
        )
    else:
        inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
        ends = (h, h), (h, h)
    first = _end_slope(f, *ends[0], edge_order)
    last = -_end_slope(shaping.flip(f, -1), *ends[1], edge_order)
    found = shaping.concatenate([first, inner, last], axis=-1)
    return shaping.moveaxis(found, -1, axis)


def _end_slope(f: Any, h: Any, further: Any, edge_order: int) -> Any:
    """The slope at the first element."""
    if edge_order == 1:
        return (f[..., 1:2] - f[..., :1]) / h
    both = h + further
    a = -(h + both) / (h * both)
    b = both / (h * further)
    c = -h / (further * both)
    return a * f[..., :1] + b * f[..., 1:2] + c * f[..., 2:3]


# Integrals and convolutions
@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """`numpy.trapezoid`, for traced arrays as well."""
    y = shaping.moveaxis(strong(y), axis, -1)
    gaps: Any = dx
    if x is not None:
        x = strong(x)
        gaps = diff(x) if shaping.rank_of(x) == 1 else diff(shaping.moveaxis(x, axis, -1))
    return reducing.sum(gaps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """`numpy.convolve`, for traced vectors as well."""
    a, v = (shaping.ravel(strong(x)) for x in (a, v))
    dtype = result_dtype(a, v)
    whole = apply(contracting.convolve, cast(a, dtype), cast(v, dtype))
    if mode == "full":
        return whole
    mine, theirs = known_size(a, 0, "convolve"), known_size(v, 0, "convolve")
    long, short = max(mine, theirs), min(mine, theirs)
    match mode:
        case "same":
            start = (short - 1) // 2
            return whole[start : start + long]
        case "valid":
            return whole[short - 1 : long]
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """`numpy.correlate`, for traced vectors as well."""
    a, v = strong(a), strong(v)
    mine, theirs = known_size(a, 0, "correlate"), known_size(v, 0, "correlate")
    backwards = shaping.flip(ew.conjugate(v))
    if mode == "same" and theirs > mine:
        start = theirs // 2
        start = mine + theirs - 1 - theirs - (mine - 1) // 2 if start < 0 else mine // 2
        return convolve(a, backwards, "full")[start : start + theirs]
    return convolve(a, backwards, mode)
