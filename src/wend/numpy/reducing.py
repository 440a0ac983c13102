"""Reductions, positions of extremes, cumulative sums and sorts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import ShapeError
from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import as_array, as_element, cast, tensor_type
from wend.ir.dtypes import BOOL, FLOAT64, INT64
from wend.ir.op import Op
from wend.numpy import creating, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import as_axis
from wend.numpy.public import STAGED, implements
from wend.numpy.slices import as_wide
from wend.ops import reducing as ops
from wend.ops import searching
from wend.ops import shaping as shaping_ops
from wend.ops.build import Axes


def _axes(x: Any, axis: Any) -> Axes:
    rank = shaping.rank_of(x)
    if axis is None:
        return tuple(range(rank))
    axes = tuple(map(as_axis, axis)) if isinstance(axis, tuple) else (as_axis(axis),)
    if not rank and axes in ((0,), (-1,)):
        return ()  # NumPy accepts these axes for 0-d arrays
    return tuple(normalize_axis_tuple(axes, rank))


def _ravel_unknown_rank(x: Any, axis: Any) -> Any:
    """Flatten the array if all axes are reduced and its rank is unknown."""
    return shaping.reshape(x, -1) if axis is None and tensor_type(x).shape is None else x


def _single_axis(x: Any, axis: Any) -> int | None:
    """Return the normalized axis, or None for a 0-d array, which has no axes."""
    rank, axis = shaping.rank_of(x), as_axis(axis)
    return None if not rank and axis in (0, -1) else normalize_axis_index(axis, rank)


def _sum_dtype(x: Any, dtype: Any) -> np.dtype:
    # As in NumPy, small integers and bools are summed as 64-bit integers.
    if dtype is not None:
        requested: np.dtype = np.dtype(dtype)
        return requested
    return np.add.reduce(np.zeros(1, tensor_type(x).dtype)).dtype  # type: ignore[no-any-return]


_MISMATCH_OF_WHERE = (
    "non-broadcastable operand with shape {shape[0:]} doesn't match the broadcast shape {operand}"
)


def _where(x: Any, where: Any, identity: Any) -> Any:
    """Return the array with the identity for the elements that `where=` leaves out."""
    if where is True:
        return x
    if shaping.rank_of(where) > shaping.rank_of(x):
        raise ShapeError("where= has more dimensions than the array that is reduced")
    if shaping.rank_of(where) and tensor_type(where).dims != tensor_type(x).dims:
        where = shaping.broadcast_like(where, x, message=_MISMATCH_OF_WHERE)
    return ew.where(where, x, cast(identity, tensor_type(x).dtype))


def _from_initial(combine: Callable[..., Any], result: Any, initial: Any) -> Any:
    """Return the result of a reduction that starts from `initial=`."""
    if initial is None:
        return result
    return combine(result, as_element(initial, tensor_type(result).dtype, is_assigned=True))


@implements(np.sum)
def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the sum of array elements over a given axis; see `numpy.sum`."""
    x = _where(cast(_ravel_unknown_rank(x, axis), _sum_dtype(x, dtype)), where, 0)
    op = ops.reduce_any if tensor_type(x).dtype == BOOL else ops.reduce_sum
    total = apply(op, x, axes=_axes(x, axis), keepdims=bool(keepdims))
    return _from_initial(ew.add, total, initial)


@implements(np.prod)
def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the product of array elements over a given axis; see `numpy.prod`.

    Its derivative is correct where elements are 0.
    """
    x = _where(cast(_ravel_unknown_rank(x, axis), _sum_dtype(x, dtype)), where, 1)
    op = ops.reduce_all if tensor_type(x).dtype == BOOL else ops.reduce_prod
    product = apply(op, x, axes=_axes(x, axis), keepdims=bool(keepdims))
    return _from_initial(ew.multiply, product, initial)


def _with_element(x: Any, axis: int, number: Any) -> Any:
    """Return the array with a number after the elements along an axis."""
    dtype = tensor_type(x).dtype
    shape_of_one = cast(any(x, axis, keepdims=True), dtype)
    one = creating.full_like(shape_of_one, as_element(number, dtype, is_assigned=True))
    return apply(shaping_ops.concat, x, one, axis=axis)


def _extreme(original: Callable[..., Any], alias: Callable[..., Any], op: Op, choose: Any) -> Any:
    def staged(
        x: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        x = _ravel_unknown_rank(x, axis)
        axes = _axes(x, axis)
        if where is not True and initial is None:
            raise ValueError(
                f"reduction operation {choose.__name__!r} does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        x = _where(x, where, initial)
        sizes = [tensor_type(x).dims[k] for k in axes]
        unknown = [k for k, size in zip(axes, sizes, strict=True) if not isinstance(size, int)]
        if unknown and 0 not in sizes and initial is not None:
            for k in unknown:
                x = _with_element(x, k, initial)
            return apply(op, x, axes=axes, keepdims=bool(keepdims))
        if 0 not in sizes:
            result = apply(op, x, axes=axes, keepdims=bool(keepdims))
        elif initial is None:
            name = choose.__name__
            raise ShapeError(f"zero-size array to reduction operation {name} which has no identity")
        else:  # any reduction that has an identity gives the shape
            result = cast(any(x, axis, keepdims=keepdims), tensor_type(x).dtype)
            return creating.full_like(result, initial)
        return _from_initial(choose, result, initial)

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = (
        f"Compute `numpy.{original.__name__}` of plain and traced arrays.\n\n"
        "    Tied elements share the derivative evenly."
    )
    return implements(original, alias)(staged)


max = amax = _extreme(np.max, np.amax, ops.reduce_max, ew.maximum)
min = amin = _extreme(np.min, np.amin, ops.reduce_min, ew.minimum)


@implements(np.any)
def any(x: Any, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Any:
    """Test whether any array element along a given axis is True; see `numpy.any`."""
    x = _where(cast(x, BOOL), where, False)
    return apply(ops.reduce_any, x, axes=_axes(x, axis), keepdims=bool(keepdims))


@implements(np.all)
def all(x: Any, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Any:
    """Test whether all array elements along a given axis are True; see `numpy.all`."""
    x = _where(cast(x, BOOL), where, True)
    return apply(ops.reduce_all, x, axes=_axes(x, axis), keepdims=bool(keepdims))


def _element_count(x: Any, axis: Any, where: Any = True, keepdims: bool = False) -> Any:
    """Return the number of elements that are reduced to one."""
    if where is not True:
        return sum(creating.ones_like(x, np.int64), axis, keepdims=keepdims, where=where)
    sizes = shaping.shape(x)
    total: Any = 1
    for k in range(len(sizes)) if axis is None else normalize_axis_tuple(axis, len(sizes)):
        total = total * sizes[k]
    return total


@implements(np.mean)
def mean(
    x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Any:
    """Compute the arithmetic mean along the specified axis; see `numpy.mean`."""
    source = tensor_type(x).dtype
    is_half = dtype is None and source == np.float16  # whose sums overflow early
    if dtype is None and source.kind not in "fc":
        dtype = np.float64
    x = _ravel_unknown_rank(x, axis)
    total = sum(x, axis, np.float32 if is_half else dtype, keepdims=keepdims, where=where)
    result = _divide_by_count(total, _element_count(x, axis, where, keepdims))
    return cast(result, source) if is_half else result


def _divide_by_count(total: Any, count: Any) -> Any:
    # The count is cast so that it does not change the dtype of the quotient; a mean of a requested
    # integer dtype is cut, as in NumPy.
    dtype = tensor_type(total).dtype
    return cast(ew.divide(total, cast(count, dtype if dtype.kind in "fc" else FLOAT64)), dtype)


def degrees_of_freedom(ddof: float, correction: float | None) -> float:
    """Return `ddof=`, which is called `correction=` in the array API standard."""
    if correction is not None and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return as_wide(ddof if correction is None else correction)  # type: ignore[no-any-return]


_mean = mean


@implements(np.var)
def var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    mean: Any = None,
    where: Any = True,
) -> Any:
    """Compute the variance along the specified axis; see `numpy.var`.

    `correction` is the array API standard's name for `ddof`.
    """
    ddof = degrees_of_freedom(ddof, correction)
    if dtype is None and tensor_type(x).dtype.kind not in "fc":
        dtype = np.float64
    is_complex = tensor_type(x).dtype.kind == "c"
    if mean is None:  # in the dtype of the array, whose own mean float16 would compute in float32
        mean = _mean(x, axis, dtype or tensor_type(x).dtype, keepdims=True, where=where)
    x = x if is_complex or dtype is None else cast(x, np.result_type(dtype, tensor_type(x).dtype))
    deviations = x - mean
    squares = (
        ew.real(deviations * ew.conjugate(deviations)) if is_complex else deviations * deviations
    )
    total = sum(squares, axis, dtype, keepdims=keepdims, where=where)
    count = _element_count(x, axis, where, keepdims)
    return _divide_by_count(total, ew.maximum(count - ddof, 0))


@implements(np.std)
def std(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
    mean: Any = None,
    where: Any = True,
) -> Any:
    """Compute the standard deviation along the specified axis; see `numpy.std`.

    `correction` is the array API standard's name for `ddof`.
    """
    ddof = degrees_of_freedom(ddof, correction)
    variance = var(x, axis, dtype, ddof=ddof, keepdims=keepdims, mean=mean, where=where)
    count = _element_count(x, axis) if where is True else None
    kinds = "c" if tensor_type(x).dtype.kind == "c" else "fc"
    is_cut = dtype is not None and np.dtype(dtype).kind not in kinds
    if isinstance(count, int) and count == 1 and ddof == 0 and not is_cut:
        return variance  # 0, and so are its derivatives, which those of the root at 0 are not
    return root_of_variance(variance)


def root_of_variance(variance: Any) -> Any:
    """Return the standard deviation; if an integer is requested, it is cut, as in NumPy."""
    dtype = tensor_type(variance).dtype
    root = ew.sqrt(variance)
    if dtype.kind not in "fc" and shaping.rank_of(root):
        raise TypeError(
            f"Cannot cast ufunc 'sqrt' output from {tensor_type(root).dtype} to {dtype}"
        )
    return cast(root, dtype)


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
    return scan(ops.cumsum, x, axis, reverse=False)


def scan(op: Op, x: Any, axis: int, **attributes: Any) -> Any:
    """Return running sums or products; those of bools say whether any, or all, are true."""
    axis, dtype = normalize_axis_index(axis, shaping.rank_of(x)), tensor_type(x).dtype
    numbers = cast(x, INT64) if dtype == BOOL else x
    return cast(apply(op, numbers, axis=axis, **attributes), dtype)


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
        original(np.zeros(0), -1, kind, order, stable=stable)  # NumPy's errors
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
