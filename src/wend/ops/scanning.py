"""Cumulative products and linear recurrences along an axis."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from wend.ir.dtypes import INEXACT, NUMERIC
from wend.ir.op import Explicit, Op, Rounding
from wend.ir.types import TensorType, Type
from wend.ops.shapes import WHOLE, check_axis, check_dtype, check_same, tensor_of


def _infer_cumprod(x: Type, *, axis: int) -> TensorType:
    check_dtype(tensor_of(x), NUMERIC)
    check_axis(axis, len(tensor_of(x).dims))
    return tensor_of(x)


def _shifted(b: Any, x: Any, axis: int, first: Any, *, reverse: bool = False) -> Any:
    """Shift by one along the axis; `first(like)` makes the element that is shifted in."""
    rank = len(x.type.dims)

    def cut(start: int | None, stop: int | None) -> Any:
        slices = [WHOLE] * rank
        slices[axis] = (start, stop, None)
        return b.slice(x, slices=tuple(slices))

    if reverse:
        moved = b.concat(cut(1, None), first(cut(-1, None)), axis=axis)
    else:
        moved = b.concat(first(cut(0, 1)), cut(None, -1), axis=axis)
    return b.refine(moved, x.type)


def _pull_back_cumprod(b: Any, node: Any, cts: Any) -> Any:
    # The product of the elements before times r, where r[i] = ct[i] + x[i+1]·r[i+1]: no division,
    # so it is correct at zeros.
    (x,), (y,), axis = node.operands, node.results, node.attrs["axis"]
    before = _shifted(b, y, axis, b.ones_like)
    after = _shifted(b, x, axis, b.zeros_like, reverse=True)
    return (b.mul(before, b.emit(linear_recurrence, after, cts[0], axis=axis, reverse=True)),)


cumprod = Op(
    "cumprod",
    _infer_cumprod,
    lambda x, *, axis: np.cumprod(x, axis=axis, dtype=x.dtype),
    Explicit(_pull_back_cumprod),
    rounding=Rounding.OF_COMPLEX,
)


def _infer_recurrence(a: Type, x: Type, *, axis: int, reverse: bool) -> TensorType:
    first = check_same((a, x))
    check_dtype(first, INEXACT)
    check_axis(axis, len(first.dims))
    return first


def _kernel_recurrence(a: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    out = np.array(x)
    factors, rows = np.moveaxis(a, axis, 0), np.moveaxis(out, axis, 0)
    order = range(len(rows))[::-1] if reverse else range(len(rows))
    for previous, current in itertools.pairwise(order):
        rows[current] += factors[current] * rows[previous]
    return out


def _pull_back_recurrence(b: Any, node: Any, cts: Any) -> Any:
    # x_ct is the reverse recurrence with the factors of the next element.
    (a, _), (y,) = node.operands, node.results
    axis, reverse = node.attrs["axis"], node.attrs["reverse"]
    following = _shifted(b, a, axis, b.zeros_like, reverse=not reverse)
    x_ct = b.emit(linear_recurrence, following, cts[0], axis=axis, reverse=not reverse)
    return b.mul(x_ct, _shifted(b, y, axis, b.zeros_like, reverse=reverse)), x_ct


# y[i] = x[i] + a[i]·y[i−1], y[−1] = 0; in reverse y[i] = x[i] + a[i]·y[i+1]
linear_recurrence = Op(
    "linear_recurrence",
    _infer_recurrence,
    _kernel_recurrence,
    Explicit(_pull_back_recurrence, linear=(1,)),
    rounding=Rounding.OF_COMPLEX,
)
