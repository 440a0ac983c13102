"""Arrays as sets. The number of unique values is known at run time only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import apply
from wend.ir.dtypes import INT64
from wend.numpy import calculus, indexing, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import promote_dtypes, staged, strong
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import zeros
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
    is_start = _run_starts(ordered, equal_nan)
    (starts,) = indexing.nonzero(is_start)
    total = shaping.shape(flat)[0]
    end = shaping.reshape(staged(np.int64(0)) + total, (1,))
    counts = calculus.diff(shaping.concatenate([starts, end]))
    rank = reducing.cumsum(shaping.astype(is_start, INT64)) - 1
    empty = staged(zeros((total,), np.int64))
    inverse = apply(indexing_ops.scatter_add, empty, rank, order)
    inverse = shaping.reshape(inverse, shaping.shape(x))
    return UniqueAll(ordered[starts], order[starts], inverse, counts)


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
        normalize_axis_index(axis, shaping.rank_of(ar))
        raise UnsupportedError(
            explain(
                f"np.unique{at(user_source())} of a traced array has no axis.",
                cure="call it on rows or columns, or compute it before the call.",
            )
        )
    if not (return_index or return_inverse or return_counts):
        return _unique_values(ar, equal_nan)
    result = _unique_all(ar, equal_nan)
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


def _unique_selected(x: Any, mask: Any) -> Any:
    return unique(x[mask])


def _intersection(x: Any, y: Any) -> Any:
    return _unique_selected(x, isin(x, y))


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Any:
    """Find the union of two arrays; see `numpy.union1d`."""
    return unique(shaping.concatenate([*map(shaping.ravel, promote_dtypes(ar1, ar2))]))


intersect1d = _set_operation(np.intersect1d, lambda x, y: _intersection(*promote_dtypes(x, y)))
setdiff1d = _set_operation(np.setdiff1d, lambda x, y: _unique_selected(x, isin(x, y, invert=True)))
setxor1d = _set_operation(
    np.setxor1d,
    lambda x, y: reducing.sort(
        shaping.concatenate(
            [unique(x[isin(x, y, invert=True)]), unique(y[isin(y, x, invert=True)])]
        )
    ),
)
