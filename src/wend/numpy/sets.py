"""Arrays as sets. The number of unique values is known at run time only."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.eager.dispatch import Staged, apply
from wend.ir.dtypes import INT64
from wend.numpy import calculus, indexing, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import dtype_of, promote_dtypes, staged, strong
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import arange, zeros
from wend.numpy.shaping import known_size
from wend.ops import indexing as indexing_ops
from wend.ops import searching


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Any
    inverse_indices: Any


def _run_starts(ordered: Any, equal_nan: bool) -> Any:
    """Return where sorted values differ from their predecessor; True for the first, even if NaN."""
    head, changes = ordered[:1], ew.not_equal(ordered[1:], ordered[:-1])
    is_first = ew.logical_or(ew.equal(head, head), ew.not_equal(head, head))
    if equal_nan:  # NaN sorts last
        changes = ew.logical_and(changes, ew.logical_not(ew.isnan(ordered[:-1])))
    return shaping.concatenate([is_first, changes])


def _unique_values(x: Any, equal_nan: bool = False) -> Any:
    ordered = reducing.sort(shaping.ravel(staged(x)))
    return ordered[_run_starts(ordered, equal_nan)]


def _unique_all(x: Any, equal_nan: bool = False) -> UniqueAll:
    flat = shaping.ravel(staged(x))
    order = reducing.argsort(flat)  # stable, so the first of equal values comes first
    ordered = flat[order]
    result = _of_runs(ordered, order, _run_starts(ordered, equal_nan))
    return result._replace(inverse_indices=shaping.reshape(result[2], shaping.shape(x)))


def _of_runs(ordered: Any, order: Any, is_start: Any) -> UniqueAll:
    """Return the first of each run of equal elements that are sorted, and where they were."""
    (starts,) = indexing.nonzero(is_start)
    total = shaping.shape(order)[0]
    end = shaping.reshape(staged(np.int64(0)) + total, (1,))
    counts = calculus.diff(shaping.concatenate([starts, end]))
    rank = reducing.cumsum(shaping.astype(is_start, INT64)) - 1
    empty = staged(zeros((total,), np.int64))
    inverse = apply(indexing_ops.scatter_add, empty, rank, order)
    return UniqueAll(ordered[starts], order[starts], inverse, counts)


def _unique_along(x: Any, axis: int) -> UniqueAll:
    """Return the different parts of an array along an axis, in lexical order."""
    moved = shaping.moveaxis(staged(x), axis, 0)
    size, *others = shaping.shape(moved)
    width = math.prod(others)
    if isinstance(width, Staged):
        width = known_size(shaping.reshape(moved, (size, -1)), 1, "np.unique")
    rows = shaping.reshape(moved, (size, width))
    order = _lexical_order(rows)
    ordered = indexing.take(rows, order, 0)
    changes = reducing.any(ew.not_equal(ordered[1:], ordered[:-1]), axis=1)
    is_first = ew.greater_equal(order[:1], 0)  # an array of no rows has none
    result = _of_runs(ordered, order, shaping.concatenate([is_first, changes]))
    values = shaping.reshape(result.values, (shaping.shape(result.indices)[0], *others))
    return result._replace(values=shaping.moveaxis(values, 0, axis))


def _lexical_order(rows: Any) -> Any:
    """Return the positions that sort the rows of a matrix, the first column counting most.

    The columns are replaced by the ranks of their elements, and the ranks of two neighbors by one,
    until one column is left.
    """
    width = shaping.shape(rows)[1]
    if not width:
        return staged(arange(shaping.shape(rows)[0]))
    while width > 1:
        ranks = _ranks(rows)
        if width % 2:  # the last column stands alone
            zero = ew.multiply(ranks[:, :1], 0)
            ranks = shaping.concatenate([ranks, zero], axis=1)
        size = shaping.shape(rows)[0]
        rows = ew.add(ew.multiply(ranks[:, ::2], size), ranks[:, 1::2])
        width = (width + 1) // 2
    return reducing.argsort(rows[:, 0])


def _ranks(rows: Any) -> Any:
    """Return the rank of each element in its column; equal ones have the same, and so do NaNs."""
    order = reducing.argsort(rows, axis=0)
    ordered = indexing.take_along_axis(rows, order, 0)
    changes = ew.not_equal(ordered[1:], ordered[:-1])
    if dtype_of(rows).kind in "fc":  # NaN sorts last
        changes = ew.logical_and(changes, ew.logical_not(ew.isnan(ordered[:-1])))
    first = ew.multiply(order[:1], 0)
    steps = shaping.concatenate([first, shaping.astype(changes, INT64)])
    return indexing.take_along_axis(reducing.cumsum(steps, axis=0), reducing.argsort(order, 0), 0)


@implements(np.unique_all)
def unique_all(x: Any, /) -> Any:
    """Find the unique elements, their indices, inverse and counts; see `numpy.unique_all`."""
    return _unique_all(x)


@implements(np.unique_counts)
def unique_counts(x: Any, /) -> Any:
    """Find the unique elements and counts of an array; see `numpy.unique_counts`."""
    result = _unique_all(x)
    return UniqueCounts(result.values, result.counts)


@implements(np.unique_inverse)
def unique_inverse(x: Any, /) -> Any:
    """Find the unique elements and indices to reconstruct x; see `numpy.unique_inverse`."""
    result = _unique_all(x)
    return UniqueInverse(result.values, result.inverse_indices)


@implements(np.unique_values)
def unique_values(x: Any, /) -> Any:
    """Return the unique elements of an array, sorted; see `numpy.unique_values`."""
    return _unique_values(x)


@implements(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """Find the unique elements of an array; see `numpy.unique`."""
    del sorted
    if axis is not None:
        axis = normalize_axis_index(axis, shaping.rank_of(ar))
    is_whole = axis is None or shaping.rank_of(ar) == 1
    if is_whole and not (return_index or return_inverse or return_counts):
        return _unique_values(ar, equal_nan)
    if is_whole or axis is None:
        result = _unique_all(ar, equal_nan)
    else:
        result = _unique_along(ar, axis)
        if not (return_index or return_inverse or return_counts):
            return result.values
    outputs = [result.values]
    outputs += [result.indices] if return_index else []
    outputs += [result.inverse_indices] if return_inverse else []
    outputs += [result.counts] if return_counts else []
    return tuple(outputs)


@implements(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """Test whether each element of an array is also in a second array; see `numpy.isin`."""
    del assume_unique
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: {kind!r}. Please use None, 'sort' or 'table'.")
    element, test_values = promote_dtypes(strong(element), strong(test_elements))
    result = apply(searching.isin, element, shaping.ravel(test_values))
    return ew.logical_not(result) if invert else result


def _set_operation(original: Callable[..., Any], choose: Callable[..., Any]) -> Callable[..., Any]:
    @implements(original)
    def function(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
        return choose(*(shaping.ravel(strong(x)) for x in (ar1, ar2)))

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"Compute `numpy.{original.__name__}` of plain and traced arrays."
    STAGED[original] = function
    return function


def _intersection(x: Any, y: Any) -> Any:
    return unique(x[isin(x, y)])


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Find the union of two arrays; see `numpy.union1d`."""
    return unique(shaping.concatenate([*map(shaping.ravel, promote_dtypes(ar1, ar2))]))


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Find the set difference of two arrays; see `numpy.setdiff1d`.

    It is sorted unless the elements are assumed to be unique.
    """
    x, y = (shaping.ravel(strong(v)) for v in (ar1, ar2))
    others = x[isin(x, y, invert=True)]
    return others if assume_unique else unique(others)


intersect1d = _set_operation(np.intersect1d, lambda x, y: _intersection(*promote_dtypes(x, y)))
setxor1d = _set_operation(
    np.setxor1d,
    lambda x, y: reducing.sort(
        shaping.concatenate(
            [unique(x[isin(x, y, invert=True)]), unique(y[isin(y, x, invert=True)])]
        )
    ),
)
