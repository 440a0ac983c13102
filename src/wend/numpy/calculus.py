"""Differences, integrals, convolutions, and running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import as_array, cast, result_dtype
from wend.ir.dtypes import BOOL, FLOAT64, INT64
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.operands import (
    as_axis,
    dtype_of,
    promote_dtypes_inexact,
    slice_axis,
    staged,
    strong,
)
from wend.numpy.outputs import put_into
from wend.numpy.public import STAGED, implements
from wend.numpy.shaping import known_size
from wend.ops import contracting, scanning


# Running products and sums
def _product_dtype(x: Any, dtype: Any) -> np.dtype:
    if dtype is not None:
        requested: np.dtype = np.dtype(dtype)
        return requested
    product: np.ndarray = np.multiply.reduce(np.ones((1, 1), dtype_of(x)))
    return product.dtype


@implements(np.cumprod)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative product of elements along an axis; see `numpy.cumprod`.

    Its derivative is correct where elements are 0.
    """
    a = staged(a)
    a = cast(a, _product_dtype(a, dtype))
    if axis is None or (as_axis(axis) in (0, -1) and not shaping.rank_of(a)):
        a, axis = shaping.ravel(a), 0
    return reducing.scan(scanning.cumprod, a, axis)


def _cumulative(
    name: str, run: Callable[..., Any], plain: Callable[..., Any], start: int
) -> Callable[..., Any]:
    def function(
        x: Any,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        totals = compute(x, axis, dtype, include_initial)
        if out is None:
            return totals
        if any_staged([totals]):
            return put_into(out, totals)
        np.copyto(out, totals)
        return out

    def compute(x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Any:
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
        totals = (run if traced else plain)(x, axis, dtype)
        if not include_initial:
            return totals
        if not traced:
            first = np.full_like(
                totals.take([], axis=axis), start, shape=_unit_axis_shape(totals.shape, axis)
            )
            return np.concatenate([first, totals], axis=axis)
        sizes = _unit_axis_shape(shaping.shape(totals), axis)
        first = shaping.broadcast_to(staged(np.asarray(start, dtype_of(totals))), sizes)
        return shaping.concatenate([first, totals], axis=axis)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Compute `numpy.{name}` of plain and traced arrays."
    if hasattr(np, name):  # NumPy 2.1
        STAGED[getattr(np, name)] = function
    return function


def _unit_axis_shape(shape: tuple[Any, ...], axis: int) -> tuple[Any, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


cumulative_sum = _cumulative("cumulative_sum", reducing.cumsum, np.cumsum, 0)
cumulative_prod = _cumulative("cumulative_prod", cumprod, np.cumprod, 1)


# Differences
@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Calculate the n-th discrete difference along the given axis; see `numpy.diff`."""
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    a = staged(a)
    if n == 0:
        return a
    if not shaping.rank_of(a):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, shaping.rank_of(a))
    ends = [None if x is None else _boundary_values(staged(x), a, axis) for x in (prepend, append)]
    parts = [x for x in (ends[0], a, ends[1]) if x is not None]
    a = shaping.concatenate(parts, axis=axis) if len(parts) > 1 else a
    for _ in range(n):
        later, earlier = slice_axis(a, axis, slice(1, None)), slice_axis(a, axis, slice(None, -1))
        a = ew.not_equal(later, earlier) if dtype_of(a) == BOOL else later - earlier
    return a


def _boundary_values(x: Any, a: Any, axis: int) -> Any:
    if shaping.rank_of(x):
        return x
    return shaping.broadcast_to(strong(x), _unit_axis_shape(shaping.shape(a), axis))


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Unwrap by taking the complement of large differences; see `numpy.unwrap`."""
    p = staged(p)
    if not shaping.rank_of(p):
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, shaping.rank_of(p))
    gaps = diff(p, axis=axis)
    dtype = result_dtype(gaps, period)
    if dtype.kind in "iu":
        high, remainder = divmod(period, 2)
        is_between = remainder == 0
    else:
        high, is_between = period / 2, True
    low = -high
    discont = high if discont is None else discont
    wrapped = ew.remainder(gaps - low, period) + low
    if is_between:
        wrapped = ew.where(ew.logical_and(ew.equal(wrapped, low), gaps > 0), high, wrapped)
    correction = ew.where(ew.absolute(gaps) < discont, 0, wrapped - gaps)
    later = cast(slice_axis(p, axis, slice(1, None)), dtype) + reducing.cumsum(correction, axis)
    first = cast(slice_axis(p, axis, slice(None, 1)), dtype)
    return shaping.concatenate([first, cast(later, dtype)], axis=axis)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences between consecutive elements of an array; see `numpy.ediff1d`."""
    elements = shaping.ravel(strong(ary))
    differences = elements[1:] - elements[:-1]
    ends = [
        _as_ends(name, x, differences) for name, x in (("to_begin", to_begin), ("to_end", to_end))
    ]
    parts = [x for x in (ends[0], differences, ends[1]) if x is not None]
    return shaping.concatenate(parts) if len(parts) > 1 else differences


def _as_ends(name: str, x: Any, differences: Any) -> Any:
    if x is None:
        return None
    x = shaping.ravel(strong(x))
    if not np.can_cast(dtype_of(x), dtype_of(differences), "same_kind"):
        what = f"dtype of `{name}` must be compatible with input `ary`"
        raise TypeError(f"{what} under the `same_kind` rule.")
    return cast(x, dtype_of(differences))


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the gradient of an n-dimensional array; see `numpy.gradient`.

    It takes central differences inside and one-sided differences at the edges.
    """
    f = staged(f)
    rank = shaping.rank_of(f)
    axes = tuple(range(rank)) if axis is None else normalize_axis_tuple(axis, rank)
    steps = [*varargs] if varargs else [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    dtype = dtype_of(f) if dtype_of(f).kind in "fc" else FLOAT64
    derivatives = [
        _gradient_along(f, staged(h), k, edge_order) for h, k in zip(steps, axes, strict=True)
    ]
    gradients = [cast(slope, dtype) for slope in derivatives]
    return gradients[0] if len(gradients) == 1 else tuple(gradients)


def _gradient_along(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    if known_size(f, axis, "gradient") < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    if dtype_of(f) == BOOL:
        f - f  # NumPy's error
    (f,) = promote_dtypes_inexact(shaping.moveaxis(f, axis, -1))
    if shaping.rank_of(h):
        steps = diff(h)
        step_before, step_after = steps[:-1], steps[1:]
        inner = (
            f[..., :-2] * (-step_after / (step_before * (step_before + step_after)))
            + f[..., 1:-1] * ((step_after - step_before) / (step_before * step_after))
            + f[..., 2:] * (step_before / (step_after * (step_before + step_after)))
        )
        edge_steps = (
            (steps[0], steps[1] if edge_order == 2 else None),
            (
                steps[-1],
                steps[-2] if edge_order == 2 else None,
            ),
        )
    else:
        inner = (f[..., 2:] - f[..., :-2]) / (2.0 * h)
        edge_steps = (h, h), (h, h)
    first = _edge_gradient(f, *edge_steps[0], edge_order)
    last = -_edge_gradient(shaping.flip(f, -1), *edge_steps[1], edge_order)
    derivative = shaping.concatenate([first, inner, last], axis=-1)
    return shaping.moveaxis(derivative, -1, axis)


def _edge_gradient(f: Any, h: Any, h_next: Any, edge_order: int) -> Any:
    """Return the one-sided derivative at the first element."""
    if edge_order == 1:
        return (f[..., 1:2] - f[..., :1]) / h
    h_sum = h + h_next
    a = -(h + h_sum) / (h * h_sum)
    b = h_sum / (h * h_next)
    c = -h / (h_next * h_sum)
    return a * f[..., :1] + b * f[..., 1:2] + c * f[..., 2:3]


# Integrals and convolutions
@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate along an axis with the composite trapezoidal rule; see `numpy.trapezoid`."""
    y = shaping.moveaxis(strong(y), as_axis(axis), -1)
    gaps: Any = dx
    if x is not None:
        x = strong(x)
        gaps = diff(x) if shaping.rank_of(x) == 1 else diff(shaping.moveaxis(x, axis, -1))
    return reducing.sum(gaps * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Return the discrete, linear convolution of two vectors; see `numpy.convolve`."""
    a, v = strong(a), strong(v)
    if max(shaping.rank_of(a), shaping.rank_of(v)) > 1:
        raise ValueError("object too deep for desired array")
    a, v = shaping.ravel(a), shaping.ravel(v)
    dtype = result_dtype(a, v)
    if dtype == BOOL:  # a product is true where any of its terms is
        return ew.not_equal(convolve(cast(a, INT64), v, mode), 0)
    full = apply(contracting.convolve, cast(a, dtype), cast(v, dtype))
    if mode == "full":
        return full
    a_size, v_size = known_size(a, 0, "convolve"), known_size(v, 0, "convolve")
    longer, shorter = max(a_size, v_size), min(a_size, v_size)
    match mode:
        case "same":
            start = (shorter - 1) // 2
            return full[start : start + longer]
        case "valid":
            return full[shorter - 1 : longer]
    raise ValueError("mode must be one of 'valid', 'same', or 'full'")


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Return the cross-correlation of two vectors; see `numpy.correlate`."""
    a, v = strong(a), strong(v)
    a_size, v_size = known_size(a, 0, "correlate"), known_size(v, 0, "correlate")
    backwards = shaping.flip(ew.conjugate(v) if dtype_of(v).kind == "c" else v)
    if mode == "same" and v_size > a_size:
        start = v_size // 2
        start = a_size + v_size - 1 - v_size - (a_size - 1) // 2 if start < 0 else a_size // 2
        return convolve(a, backwards, "full")[start : start + v_size]
    return convolve(a, backwards, mode)
