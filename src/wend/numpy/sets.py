"""Arrays as sets. How many values are unique, only the run tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wend.eager.dispatch import apply
from wend.ir.dtypes import INT64
from wend.numpy import calculus, indexing, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.operands import alike, staged
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import zeros
from wend.ops import indexing as indexing_ops
from wend.ops import searching


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Any
    inverse_indices: Any


def _starts(ordered: Any) -> Any:
    """Of values in order, which differ from the one before; the first is one, be it NaN."""
    first, changes = ordered[:1], ew.not_equal(ordered[1:], ordered[:-1])
    one = ew.logical_or(ew.equal(first, first), ew.not_equal(first, first))
    return shaping.concatenate([one, changes])


def _values(x: Any) -> Any:
    ordered = reducing.sort(shaping.ravel(staged(x)))
    return ordered[_starts(ordered)]


def _unique_all(x: Any) -> UniqueAll:
    flat = shaping.ravel(staged(x))
    order = reducing.argsort(flat)  # stable: of equal values the first comes first
    ordered = flat[order]
    starts_one = _starts(ordered)
    (starts,) = indexing.nonzero(starts_one)
    total = shaping.shape(flat)[0]
    whole = shaping.reshape(staged(np.int64(0)) + total, (1,))
    counts = calculus.diff(shaping.concatenate([starts, whole]))
    rank = reducing.cumsum(shaping.astype(starts_one, INT64)) - 1
    empty = staged(zeros((total,), np.int64))
    inverse = apply(indexing_ops.scatter_add, empty, rank, order)
    inverse = shaping.reshape(inverse, shaping.shape(x))
    return UniqueAll(ordered[starts], order[starts], inverse, counts)


@implements(np.unique_all)
def unique_all(x: Any, /) -> Any:
    """`numpy.unique_all`, for traced arrays as well."""
    return _unique_all(x)


@implements(np.unique_counts)
def unique_counts(x: Any, /) -> Any:
    """`numpy.unique_counts`, for traced arrays as well."""
    found = _unique_all(x)
    return UniqueCounts(found.values, found.counts)


@implements(np.unique_inverse)
def unique_inverse(x: Any, /) -> Any:
    """`numpy.unique_inverse`, for traced arrays as well."""
    found = _unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@implements(np.unique_values)
def unique_values(x: Any, /) -> Any:
    """`numpy.unique_values`, for traced arrays as well: in order."""
    return _values(x)


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
    """`numpy.unique` of all elements, for traced arrays as well; there each NaN is its own."""
    del sorted, equal_nan
    if axis is not None:
        raise NotImplementedError("unique of a traced array has no axis")
    if not (return_index or return_inverse or return_counts):
        return _values(ar)
    found = _unique_all(ar)
    wanted = [found.values]
    wanted += [found.indices] if return_index else []
    wanted += [found.inverse_indices] if return_inverse else []
    wanted += [found.counts] if return_counts else []
    return tuple(wanted)


@implements(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Any:
    """`numpy.isin`, for traced arrays as well."""
    del assume_unique, kind
    element, given = alike(element, test_elements)
    found = apply(searching.isin, element, shaping.ravel(given))
    return ew.logical_not(found) if invert else found


def _set_of_two(original: Callable[..., Any], choose: Callable[..., Any]) -> Callable[..., Any]:
    @implements(original)
    def function(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
        first, second = alike(ar1, ar2)
        first, second = shaping.ravel(first), shaping.ravel(second)
        return choose(first, second)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    STAGED[original] = function
    return function


def _kept(x: Any, mask: Any) -> Any:
    return unique_values(x[mask])


union1d = _set_of_two(np.union1d, lambda x, y: unique_values(shaping.concatenate([x, y])))
intersect1d = _set_of_two(np.intersect1d, lambda x, y: _kept(x, isin(x, y)))
setdiff1d = _set_of_two(np.setdiff1d, lambda x, y: _kept(x, isin(x, y, invert=True)))
setxor1d = _set_of_two(
    np.setxor1d,
    lambda x, y: unique_values(
        shaping.concatenate([x[isin(x, y, invert=True)], y[isin(y, x, invert=True)]])
    ),
)
