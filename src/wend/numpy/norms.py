"""`wend.numpy.linalg`: norms of vectors and matrices. Their derivative at 0 is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.eager.dispatch import any_staged
from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.decompositions import svdvals
from wend.numpy.inverses import inv
from wend.numpy.operands import dtype_of, normalize_axes, promote_dtypes_inexact
from wend.numpy.public import STAGED, implements


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a matrix or vector norm; see `numpy.linalg.norm`.

    Its derivative at 0 is 0.
    """
    (x,) = promote_dtypes_inexact(x)
    rank = shaping.rank_of(x)
    if axis is None:
        if ord is None or (ord == "fro" and rank == 2) or (ord == 2 and rank == 1):
            return _euclidean_norm(x, normalize_axes(x, None), keepdims)
        if rank not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    axes = normalize_axes(x, _int_or_tuple(axis))
    if len(axes) == 1:
        return _vector_norm(x, axes[0], 2 if ord is None else ord, keepdims)
    if len(axes) == 2:
        return _matrix_norm_along(x, axes, "fro" if ord is None else ord, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _euclidean_norm(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = ew.real(x * ew.conjugate(x)) if dtype_of(x).kind == "c" else x * x
    return _sqrt_flat_at_zero(reducing.sum(squares, axis=axes, keepdims=keepdims))


def _sqrt_flat_at_zero(x: Any) -> Any:
    """Return √x with derivative 0 at 0."""
    is_zero = ew.equal(x, 0)
    return ew.where(is_zero, x, ew.sqrt(ew.where(is_zero, 1, x)))


def _max_or_zero(x: Any, axis: int, keepdims: bool = False) -> Any:
    """Return the maximum of numbers of which none is negative, 0 if there are none."""
    size = tensor_type(x).dims[axis]
    starts = {} if isinstance(size, int) and size > 0 else {"initial": 0}
    return reducing.max(x, axis, keepdims=keepdims, **starts)


def _vector_norm(x: Any, axis: int, ord: Any, keepdims: bool) -> Any:
    magnitudes = ew.absolute(x)
    if ord == np.inf:
        return _max_or_zero(magnitudes, axis, keepdims)
    if ord == -np.inf:
        return reducing.min(magnitudes, axis=axis, keepdims=keepdims)
    if ord == 0:
        is_nonzero = ew.not_equal(x, 0).astype(dtype_of(magnitudes))
        return reducing.sum(is_nonzero, axis=axis, keepdims=keepdims)
    if ord == 1:
        return reducing.sum(magnitudes, axis=axis, keepdims=keepdims)
    if ord == 2:
        return _euclidean_norm(x, (axis,), keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return _norm_of_order(magnitudes, axis, ord, keepdims)


def _norm_of_order(magnitudes: Any, axis: int, ord: Any, keepdims: bool) -> Any:
    """Return (Σ mᵖ)^(1/p), with derivatives 0 where it is 0 or m is."""
    is_zero = ew.equal(magnitudes, 0)
    powers = ew.power(ew.where(is_zero, 1, ew.stop_gradient(magnitudes)), ord)
    powers = ew.where(is_zero, 0 if ord > 0 else np.inf, powers)
    total = reducing.sum(powers, axis=axis, keepdims=True)
    is_flat = ew.equal(total, 0) | ew.isinf(total)
    # Derivatives of a power of the sum would be sums that cancel for the largest term: they are
    # those of m (1 + Σ (mⱼ/m)ᵖ)^(1/p) instead; m has the largest power, and mⱼ are the others.
    is_largest = ew.equal(powers, reducing.max(powers, axis=axis, keepdims=True, initial=0))
    is_largest = is_largest & ew.equal(reducing.cumsum(is_largest, axis=axis), 1)
    largest = reducing.sum(ew.where(is_largest, magnitudes, 0), axis=axis, keepdims=True)
    largest = ew.where(is_flat, 1, largest)
    is_other = ew.logical_not(is_largest | is_zero | is_flat)
    ratios = ew.power(ew.where(is_other, magnitudes / largest, 1), ord)
    remainder = reducing.sum(ew.where(is_other, ratios, 0), axis=axis, keepdims=True)
    by_largest = largest * ew.power(1 + remainder, 1 / ord)
    result = ew.graft(ew.power(total, 1 / ord), by_largest)
    return result if keepdims else shaping.squeeze(result, axis)


def _matrix_norm_along(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    rows, columns = (normalize_axis_index(axis, shaping.rank_of(x)) for axis in axes)
    if rows == columns:
        raise ValueError("Duplicate axes given.")
    x = shaping.moveaxis(x, (rows, columns), (-2, -1))
    result = _matrix_norm(x, ord)
    return shaping.expand_dims(result, (rows, columns)) if keepdims else result


def _matrix_norm(x: Any, ord: Any) -> Any:
    rank = shaping.rank_of(x)
    match ord:
        case "fro":
            return _euclidean_norm(x, (rank - 2, rank - 1), False)
        case "nuc":
            return reducing.sum(svdvals(x), axis=-1)
        case 2:
            return _max_or_zero(svdvals(x), -1)
        case -2:
            return reducing.min(svdvals(x), axis=-1)
    if isinstance(ord, str) or ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    sums = reducing.sum(ew.absolute(x), axis=-2 if abs(ord) == 1 else -1)
    return _max_or_zero(sums, -1) if ord > 0 else reducing.min(sums, axis=-1)


def _int_or_tuple(axis: Any) -> int | tuple[int, ...] | None:
    """Return None and a tuple of axes as they are, and any other axis as an int, as NumPy does."""
    if axis is None or isinstance(axis, tuple):
        return axis
    try:
        return int(axis)
    except Exception as error:
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from error


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Compute the vector norm of a vector or a batch of vectors; see `numpy.linalg.vector_norm`.

    Its derivative at 0 is 0.
    """
    if not any_staged([x]):
        return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    (x,) = promote_dtypes_inexact(x)
    rank, axes = shaping.rank_of(x), normalize_axes(x, _int_or_tuple(axis))
    if keepdims and axis is not None:
        normalize_axis_tuple(axis, rank)  # which takes no floats
    others = tuple(k for k in range(rank) if k not in axes)
    transposed = shaping.transpose(x, (*others, *axes))
    flat = shaping.reshape(transposed, (*shaping.shape(transposed)[: len(others)], -1))
    result = _vector_norm(flat, len(others), ord, False)
    return shaping.expand_dims(result, axes) if keepdims else result


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Compute the matrix norm of a matrix or a stack of matrices; see `numpy.linalg.matrix_norm`.

    Its derivative at 0 is 0.
    """
    if not any_staged([x]):
        return np.linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
    return norm(x, ord=ord, axis=(-2, -1), keepdims=keepdims)


STAGED[np.linalg.vector_norm] = vector_norm
STAGED[np.linalg.matrix_norm] = matrix_norm


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """Compute the condition number of a matrix; see `numpy.linalg.cond`."""
    (x,) = promote_dtypes_inexact(x)
    if 0 in tensor_type(x).dims[-2:]:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        values = svdvals(x)
        ends = (-1, 0) if p == -2 else (0, -1)
        ratio = values[..., ends[0]] / values[..., ends[1]]
    else:
        ratio = norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
    is_defined = ew.logical_or(ew.logical_not(ew.isnan(ratio)), reducing.any(ew.isnan(x), (-2, -1)))
    return ew.where(is_defined, ratio, np.inf)  # that of a matrix of zeros
