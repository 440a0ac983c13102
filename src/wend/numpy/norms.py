"""`wend.numpy.linalg`: norms of vectors and matrices. At 0 their derivative is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.eager.dispatch import any_staged
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.decompositions import svdvals
from wend.numpy.inverses import inv
from wend.numpy.operands import axes_of, dtype_of, inexact
from wend.numpy.public import STAGED, implements


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`numpy.linalg.norm`, for traced arrays as well; its derivative at 0 is 0."""
    (x,) = inexact(x)
    rank = shaping.rank_of(x)
    if axis is None:
        if ord is None or (ord == "fro" and rank == 2) or (ord == 2 and rank == 1):
            return _root_of_squares(x, axes_of(x, None), keepdims)
        if rank not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    axes = axes_of(x, axis)
    if len(axes) == 1:
        return _vector(x, axes[0], 2 if ord is None else ord, keepdims)
    if len(axes) == 2:
        return _matrix(x, axes, "fro" if ord is None else ord, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _root_of_squares(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = ew.real(x * ew.conjugate(x)) if dtype_of(x).kind == "c" else x * x
    return _root(reducing.sum(squares, axis=axes, keepdims=keepdims))


def _root(x: Any) -> Any:
    """√x, flat at 0."""
    zero = ew.equal(x, 0)
    return ew.where(zero, x, ew.sqrt(ew.where(zero, 1, x)))


def _vector(x: Any, axis: int, ord: Any, keepdims: bool) -> Any:
    size = ew.absolute(x)
    if ord == np.inf:
        return reducing.max(size, axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return reducing.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        counted = ew.not_equal(x, 0).astype(dtype_of(size))
        return reducing.sum(counted, axis=axis, keepdims=keepdims)
    if ord == 1:
        return reducing.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return _root_of_squares(x, (axis,), keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    zero = ew.equal(size, 0)
    powers = ew.where(zero, 0 if ord > 0 else np.inf, ew.power(ew.where(zero, 1, size), ord))
    total = reducing.sum(powers, axis=axis, keepdims=keepdims)
    none = ew.equal(total, 0)
    if ord < 0:
        none = none | ew.isinf(total)
    found = ew.power(ew.where(none, 1, total), 1 / ord)
    return ew.where(none, 0, found)


def _matrix(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    rows, columns = (normalize_axis_index(axis, shaping.rank_of(x)) for axis in axes)
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    x = shaping.moveaxis(x, (rows, columns), (-2, -1))
    found = _of_matrix(x, ord)
    return shaping.expand_dims(found, (rows, columns)) if keepdims else found


def _of_matrix(x: Any, ord: Any) -> Any:
    rank = shaping.rank_of(x)
    match ord:
        case "fro":
            return _root_of_squares(x, (rank - 2, rank - 1), False)
        case "nuc":
            return reducing.sum(svdvals(x), axis=-1)
        case 2:
            return reducing.max(svdvals(x), axis=-1)
        case -2:
            return reducing.min(svdvals(x), axis=-1)
    if isinstance(ord, str) or ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    sums = reducing.sum(ew.absolute(x), axis=-2 if abs(ord) == 1 else -1)
    return reducing.max(sums, axis=-1) if ord > 0 else reducing.min(sums, axis=-1)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """`numpy.linalg.vector_norm`, for traced arrays as well; its derivative at 0 is 0."""
    if not any_staged([x]):
        return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    (x,) = inexact(x)
    rank, axes = shaping.rank_of(x), axes_of(x, axis)
    others = tuple(k for k in range(rank) if k not in axes)
    moved = shaping.transpose(x, (*others, *axes))
    flat = shaping.reshape(moved, (*shaping.shape(moved)[: len(others)], -1))
    found = _vector(flat, len(others), ord, False)
    return shaping.expand_dims(found, axes) if keepdims else found


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """`numpy.linalg.matrix_norm`, for traced arrays as well; its derivative at 0 is 0."""
    if not any_staged([x]):
        return np.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
    return norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


STAGED[np.linalg.vector_norm] = vector_norm
STAGED[np.linalg.matrix_norm] = matrix_norm


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """`numpy.linalg.cond`, for traced arrays as well."""
    (x,) = inexact(x)
    if p in (None, 2, -2):
        values = svdvals(x)
        ratio = values[..., 0] / values[..., -1]
        return 1 / ratio if p == -2 else ratio
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
