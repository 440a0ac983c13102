"""Reductions, positions of extremes, cumulative sums and sorts."""

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
        return ()  # NumPy accepts these axes for 0-d arrays
    return tuple(range(rank)) if axis is None else tuple(normalize_axis_tuple(axis, rank))


def _ravel_unknown_rank(x: Any, axis: Any) -> Any:
    """Flatten the array if all axes are reduced and its rank is unknown."""
    return shaping.reshape(x, -1) if axis is None and tensor_type(x).shape is None else x


def _single_axis(x: Any, axis: Any) -> int | None:
    """Return the normalized axis, or None for a 0-d array, which has no axes."""
    rank = shaping.rank_of(x)
    return None if not rank and axis in (0, -1) else normalize_axis_index(axis, rank)


def _sum_dtype(x: Any, dtype: Any) -> np.dtype:
    # As in NumPy, small integers and bools are summed as 64-bit integers.
    if dtype is not None:
        requested: np.dtype = np.dtype(dtype)
        return requested
    return np.add.reduce(np.zeros(1, tensor_type(x).dtype)).dtype  # type: ignore[no-any-return]


@implements(np.sum)
def sum(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Return the sum of array elements over a given axis; see `numpy.sum`."""
    x = cast(_ravel_unknown_rank(x, axis), _sum_dtype(x, dtype))
    return apply(ops.reduce_sum, x, axes=_axes(x, axis), keepdims=bool(keepdims))


@implements(np.prod)
def prod(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Return the product of array elements over a given axis; see `numpy.prod`.

    Its derivative is correct where elements are 0.
    """
    x = cast(_ravel_unknown_rank(x, axis), _sum_dtype(x, dtype))
    return apply(ops.reduce_prod, x, axes=_axes(x, axis), keepdims=bool(keepdims))


def _extreme(original: Callable[..., Any], alias: Callable[..., Any], op: Op) -> Any:
    def staged(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        x = _ravel_unknown_rank(x, axis)
        axes = _axes(x, axis)
        if 0 in [tensor_type(x).dims[k] for k in axes]:
            name = original.__name__
            raise ShapeError(f"zero-size array to reduction operation {name} which has no identity")
        return apply(op, x, axes=axes, keepdims=bool(keepdims))

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = (
        f"Compute `numpy.{original.__name__}` of plain and traced arrays.\n\n"
        "    Tied elements share the derivative evenly."
    )
    return implements(original, alias)(staged)


max = amax = _extreme(np.max, np.amax, ops.reduce_max)
min = amin = _extreme(np.min, np.amin, ops.reduce_min)


@implements(np.any)
def any(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Test whether any array element along a given axis is True; see `numpy.any`."""
    x = cast(x, BOOL)
    return apply(ops.reduce_any, x, axes=_axes(x, axis), keepdims=bool(keepdims))


@implements(np.all)
def all(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Test whether all array elements along a given axis are True; see `numpy.all`."""
    x = cast(x, BOOL)
    return apply(ops.reduce_all, x, axes=_axes(x, axis), keepdims=bool(keepdims))


def _element_count(x: Any, axis: Any) -> Any:
    """Return the number of elements that are reduced to one."""
    sizes = shaping.shape(x)
    total: Any = 1
    for k in range(len(sizes)) if axis is None else normalize_axis_tuple(axis, len(sizes)):
        total = total * sizes[k]
    return total


@implements(np.mean)
def mean(x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    """Compute the arithmetic mean along the specified axis; see `numpy.mean`."""
    if dtype is None and tensor_type(x).dtype.kind not in "fc":
        dtype = np.float64
    x = _ravel_unknown_rank(x, axis)
    total = sum(x, axis, dtype, keepdims=keepdims)
    return _divide_by_count(total, _element_count(x, axis))


def _divide_by_count(total: Any, count: Any) -> Any:
    # The count is cast so that it does not change the dtype of the quotient.
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
    """Compute the variance along the specified axis; see `numpy.var`.

    `correction` is the array API standard's name for `ddof`.
    """
    ddof = _correction(ddof, correction)
    if dtype is None and tensor_type(x).dtype.kind not in "fc":
        dtype = np.float64
    is_complex = tensor_type(x).dtype.kind == "c"
    x = x if dtype is None else cast(x, np.dtype(dtype))
    deviations = x - mean(x, axis, keepdims=True)
    squares = (
        ew.real(deviations * ew.conjugate(deviations)) if is_complex else deviations * deviations
    )
    total = sum(squares, axis, dtype, keepdims=keepdims)
    return _divide_by_count(total, ew.maximum(_element_count(x, axis) - ddof, 0))


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
    """Compute the standard deviation along the specified axis; see `numpy.std`.

    `correction` is the array API standard's name for `ddof`.
    """
    ddof = _correction(ddof, correction)
    variance = var(x, axis, dtype, ddof, keepdims=keepdims)
    count = _element_count(x, axis)
    if isinstance(count, int) and count == 1 and ddof == 0:
        return variance  # 0, and so are its derivatives, which those of the root at 0 are not
    return ew.sqrt(variance)


def _arg_extreme(original: Callable[..., Any], op: Op) -> Any:
    def staged(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
        if axis is None:
            position = apply(op, shaping.ravel(x), axis=0, keepdims=False)
            return shaping.reshape(position, (1,) * shaping.rank_of(x)) if keepdims else position
        single_axis = _single_axis(x, axis)
        if single_axis is None:
            return apply(op, shaping.ravel(x), axis=0, keepdims=False)
        return apply(op, x, axis=single_axis, keepdims=bool(keepdims))

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"Compute `numpy.{original.__name__}` of plain and traced arrays."
    return implements(original)(staged)


argmax = _arg_extreme(np.argmax, ops.argmax)
argmin = _arg_extreme(np.argmin, ops.argmin)


@implements(np.cumsum)
def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Return the cumulative sum of elements along a given axis; see `numpy.cumsum`."""
    x = cast(x, _sum_dtype(x, dtype))
    if axis is None or _single_axis(x, axis) is None:
        x, axis = shaping.ravel(x), 0
    return apply(ops.cumsum, x, axis=normalize_axis_index(axis, shaping.rank_of(x)), reverse=False)


def _normalize_sort_axis(x: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return shaping.ravel(x), 0
    return x, normalize_axis_index(axis, shaping.rank_of(x))


def _make_sort_function(
    original: Callable[..., Any], compute: Callable[[Any, int | None, bool], Any], note: str
) -> Callable[..., Any]:
    """Make a public sort function; the last argument of `compute` is `descending`."""

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
        f"Compute `numpy.{original.__name__}`; sorts traced arrays stably.\n\n"
        f"    `descending=True`, as in the array API standard, {note}\n    "
    )
    STAGED[original] = function
    return function


def _sort(x: Any, axis: int | None, descending: bool) -> Any:
    x, sort_axis = _normalize_sort_axis(x, axis)
    ordered = apply(searching.sort, x, axis=sort_axis)
    return shaping.flip(ordered, sort_axis) if descending else ordered


def _argsort(x: Any, axis: int | None, descending: bool) -> Any:
    x, sort_axis = _normalize_sort_axis(x, axis if axis is None else _single_axis(x, axis))
    if not descending:
        return apply(searching.argsort, x, axis=sort_axis)
    # Sort the reversed array, so that the order is stable after the final reversal.
    order = apply(searching.argsort, shaping.flip(x, sort_axis), axis=sort_axis)
    last = shaping.shape(x)[sort_axis] - 1
    return last - shaping.flip(order, sort_axis)


sort = _make_sort_function(np.sort, _sort, "sorts from greatest to least, NaN first.")
argsort = _make_sort_function(
    np.argsort,
    _argsort,
    "returns the indices of a descending sort;\n    equal elements keep their order.",
)
