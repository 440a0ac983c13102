"""Reductions, positions of extremes, running sums and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import ShapeError
from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import as_array, cast, tensor_type
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.numpy.public import STAGED, implements
from wend.ops import reducing as ops
from wend.ops import searching
from wend.ops.build import Axes


def _axes(x: Any, axis: Any) -> Axes:
    rank = shaping.rank_of(x)
    if not rank and axis in (0, -1):
        return ()  # as NumPy has it
    return tuple(range(rank)) if axis is None else tuple(normalize_axis_tuple(axis, rank))


def _of_any_rank(x: Any, axis: Any) -> Any:
    """One row of all elements, where all are reduced and the rank is not known before the run."""
    return shaping.reshape(x, -1) if axis is None and tensor_type(x).shape is None else x


def _axis(x: Any, axis: Any) -> int | None:
    """The one axis of a function that has no more; None: of a 0-d array, which has none."""
    rank = shaping.rank_of(x)
    return None if not rank and axis in (0, -1) else normalize_axis_index(axis, rank)


def _summing_dtype(x: Any, dtype: Any) -> np.dtype:
    # As NumPy: small integers and bools are summed as 64-bit ones.
    if dtype is not None:
        given: np.dtype = np.dtype(dtype)
        return given
    return np.add.reduce(np.zeros(1, tensor_type(x).dtype)).dtype  # type: ignore[no-any-return]


@implements(np.sum)
def sum(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.sum`, for traced arrays as well."""
    x = cast(_of_any_rank(x, axis), _summing_dtype(x, dtype))
    return apply(ops.reduce_sum, x, axes=_axes(x, axis), keepdims=bool(keepdims))


@implements(np.prod)
def prod(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.prod`, for traced arrays as well; its derivative is right where elements are 0."""
    x = cast(_of_any_rank(x, axis), _summing_dtype(x, dtype))
    return apply(ops.reduce_prod, x, axes=_axes(x, axis), keepdims=bool(keepdims))


def _extreme(original: Callable[..., Any], alias: Callable[..., Any], op: Op) -> Any:
    def staged(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        x = _of_any_rank(x, axis)
        axes = _axes(x, axis)
        if 0 in [tensor_type(x).dims[k] for k in axes]:
            name = original.__name__
            raise ShapeError(f"zero-size array to reduction operation {name} which has no identity")
        return apply(op, x, axes=axes, keepdims=bool(keepdims))

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = (
        f"`numpy.{original.__name__}`, for traced arrays as well.\n\n"
        "    Elements that tie share the derivative evenly."
    )
    return implements(original, alias)(staged)


max = amax = _extreme(np.max, np.amax, ops.reduce_max)
min = amin = _extreme(np.min, np.amin, ops.reduce_min)


@implements(np.any)
def any(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.any`, for traced arrays as well."""
    x = cast(x, BOOL)
    return apply(ops.reduce_any, x, axes=_axes(x, axis), keepdims=bool(keepdims))


@implements(np.all)
def all(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.all`, for traced arrays as well."""
    x = cast(x, BOOL)
    return apply(ops.reduce_all, x, axes=_axes(x, axis), keepdims=bool(keepdims))


def _count(x: Any, axis: Any) -> Any:
    """How many elements one sum is of."""
    sizes = shaping.shape(x)
    total: Any = 1
    for k in range(len(sizes)) if axis is None else normalize_axis_tuple(axis, len(sizes)):
        total = total * sizes[k]
    return total


@implements(np.mean)
def mean(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """`numpy.mean`, for traced arrays as well."""
    if dtype is None and tensor_type(x).dtype.kind not in "fc":
        dtype = np.float64
    x = _of_any_rank(x, axis)
    total = sum(x, axis, dtype, keepdims=keepdims)
    return _over(total, _count(x, axis))


def _over(total: Any, count: Any) -> Any:
    # The count takes the dtype of what it divides.
    return ew.divide(total, cast(count, tensor_type(total).dtype))


def _correction(ddof: float, correction: float | None) -> float:
    if correction is not None and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return ddof if correction is None else correction


@implements(np.var)
def var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    correction: float | None = None,
) -> Any:
    """`numpy.var`, for traced arrays as well; `correction` is what the array API calls `ddof`."""
    ddof = _correction(ddof, correction)
    if dtype is None and tensor_type(x).dtype.kind not in "fc":
        dtype = np.float64
    is_complex = tensor_type(x).dtype.kind == "c"
    x = x if dtype is None else cast(x, np.dtype(dtype))
    gap = x - mean(x, axis, keepdims=True)
    squares = ew.real(gap * ew.conjugate(gap)) if is_complex else gap * gap
    total = sum(squares, axis, dtype, keepdims=keepdims)
    return _over(total, ew.maximum(_count(x, axis) - ddof, 0))


@implements(np.std)
def std(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    correction: float | None = None,
) -> Any:
    """`numpy.std`, for traced arrays as well; `correction` is what the array API calls `ddof`."""
    ddof = _correction(ddof, correction)
    return ew.sqrt(var(x, axis, dtype, ddof, keepdims=keepdims))


def _position(original: Callable[..., Any], op: Op) -> Any:
    def staged(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        if axis is None:
            found = apply(op, shaping.ravel(x), axis=0, keepdims=False)
            return shaping.reshape(found, (1,) * shaping.rank_of(x)) if keepdims else found
        place = _axis(x, axis)
        if place is None:
            return apply(op, shaping.ravel(x), axis=0, keepdims=False)
        return apply(op, x, axis=place, keepdims=bool(keepdims))

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    return implements(original)(staged)


argmax = _position(np.argmax, ops.argmax)
argmin = _position(np.argmin, ops.argmin)


@implements(np.cumsum)
def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """`numpy.cumsum`, for traced arrays as well."""
    x = cast(x, _summing_dtype(x, dtype))
    if axis is None or _axis(x, axis) is None:
        x, axis = shaping.ravel(x), 0
    return apply(ops.cumsum, x, axis=normalize_axis_index(axis, shaping.rank_of(x)), reverse=False)


def _ordered(x: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return shaping.ravel(x), 0
    return x, normalize_axis_index(axis, shaping.rank_of(x))


def _ordering(
    original: Callable[..., Any], compute: Callable[[Any, int | None, bool], Any], note: str
) -> Callable[..., Any]:
    """Make the public function of an order along an axis; `compute` takes whether it descends."""

    def function(
        x: Any,
        axis: int | None = -1,
        kind: Any = None,
        order: None = None,
        *,
        stable: bool | None = None,
        descending: bool = False,
    ) -> Any:
        if not any_staged([x]) and not descending:
            return original(x, axis, kind, order, stable=stable)
        if order is not None:
            raise ValueError("Cannot specify order when the array has no fields.")
        return compute(as_array(x), axis, descending)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = (
        f"`numpy.{original.__name__}`, for traced arrays as well; those always stably.\n\n"
        f"    `descending=True` is the array API's: {note}\n    "
    )
    STAGED[original] = function
    return function


def _sort(x: Any, axis: int | None, descending: bool) -> Any:
    x, place = _ordered(x, axis)
    found = apply(searching.sort, x, axis=place)
    return shaping.flip(found, place) if descending else found


def _argsort(x: Any, axis: int | None, descending: bool) -> Any:
    x, place = _ordered(x, axis if axis is None else _axis(x, axis))
    if not descending:
        return apply(searching.argsort, x, axis=place)
    # Sorted backwards, so that equal ones come out in order once all is turned round.
    found = apply(searching.argsort, shaping.flip(x, place), axis=place)
    last = shaping.shape(x)[place] - 1
    return last - shaping.flip(found, place)


sort = _ordering(np.sort, _sort, "from the greatest to the least, NaN first.")
argsort = _ordering(
    np.argsort,
    _argsort,
    "where the elements are from the greatest to the least;\n"
    "    of equal ones the first comes first.",
)
