"""Triangles, diagonals and products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.eager.dispatch import any_staged
from wend.eager.promotion import cast, tensor_type
from wend.numpy import contracting, indexing, reducing, shaping, views
from wend.numpy import elementwise as ew
from wend.numpy.operands import all_staged, dtype_of, staged, strong
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import arange
from wend.numpy.shaping import known_size
from wend.numpy.slices import as_wide

_BEYOND_ANY_SIZE = 1 << 62  # differences of sizes and such a number have 64 bits


def _diagonal_offset(x: Any) -> Any:
    """Return column minus row for each element of a matrix."""
    rows, columns = shaping.shape(x)[-2:]
    return arange(columns) - shaping.expand_dims(staged(arange(rows)), 1)


@implements(np.tril)
def tril(m: Any, k: Any = 0) -> Any:
    """Return a copy of an array with elements above the k-th diagonal zeroed; see `numpy.tril`."""
    m = _to_matrix(staged(m))
    return ew.where(_diagonal_offset(m) <= k, m, cast(0, dtype_of(m)))


@implements(np.triu)
def triu(m: Any, k: Any = 0) -> Any:
    """Return a copy of an array with elements below the k-th diagonal zeroed; see `numpy.triu`."""
    m = _to_matrix(staged(m))
    return ew.where(_diagonal_offset(m) >= k, m, cast(0, dtype_of(m)))


def _to_matrix(m: Any) -> Any:
    if not shaping.rank_of(m):
        raise TypeError("a triangle is part of an array of at least one dimension")
    if shaping.rank_of(m) != 1:
        return m
    size = shaping.shape(m)[0]
    return shaping.broadcast_to(m, (size, size))


# Diagonals
@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return specified diagonals of an array; see `numpy.diagonal`.

    The offset must be a plain integer.
    """
    a = staged(a)
    rank = shaping.rank_of(a)
    first, second = (normalize_axis_index(axis, rank) for axis in (axis1, axis2))
    if first == second:
        raise ValueError("axis1 and axis2 cannot be the same")
    front = shaping.moveaxis(a, (first, second), (0, 1))
    rows, columns = shaping.shape(front)[:2]
    offset = max(-_BEYOND_ANY_SIZE, min(int(as_wide(offset)), _BEYOND_ANY_SIZE))
    row, column = max(0, -offset), max(0, offset)
    count = ew.maximum(ew.minimum(rows - row, columns - column), 0)
    index = arange(count)
    result: Any = shaping.moveaxis(front[index + row, index + column], 0, -1)
    return views.read_only_view(a, result)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """Extract a diagonal or construct a diagonal array; see `numpy.diag`."""
    v, k = staged(v), as_wide(k)
    match shaping.rank_of(v):
        case 1:
            return _diagonal_matrix(v, k)
        case 2:
            return diagonal(v, k)
    raise ValueError("Input must be 1- or 2-d.")


def _diagonal_matrix(v: Any, k: int) -> Any:
    size = shaping.shape(v)[0] + abs(k)
    before, after = max(k, 0), max(-k, 0)
    spread = shaping.broadcast_to(shaping.pad(v, (before, after)), (size, size))
    rows = shaping.expand_dims(staged(arange(size)), 1)
    is_on_diagonal = ew.equal(arange(size) - rows, k)
    return ew.where(is_on_diagonal, spread, cast(0, dtype_of(v)))


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """Create a 2-d array with the flattened input as a diagonal; see `numpy.diagflat`."""
    return diag(shaping.ravel(staged(v)), k)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum along diagonals of an array; see `numpy.trace`."""
    return reducing.sum(diagonal(staged(a), offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803
    """Generate a Vandermonde matrix; see `numpy.vander`."""
    x = staged(x)
    if shaping.rank_of(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = known_size(x, 0, "vander without N") if N is None else N
    if count < 0:
        raise ValueError("negative dimensions are not allowed")
    dtype = np.promote_types(tensor_type(x).dtype, int)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    column = shaping.expand_dims(cast(x, dtype), 1)
    return cast(ew.power(column, powers.astype(dtype)), dtype)


# Products
@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """Return the inner product of two arrays; see `numpy.inner`."""
    a, b = strong(a), strong(b)
    if not shaping.rank_of(a) or not shaping.rank_of(b):
        return a * b
    return contracting.contract(a, b, axes=((-1,), (-1,)))


@implements(np.kron)
def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product of two arrays; see `numpy.kron`."""
    a, b = strong(a), strong(b)
    rank = max(shaping.rank_of(a), shaping.rank_of(b))
    a_shape, b_shape = ((1,) * (rank - shaping.rank_of(x)) + shaping.shape(x) for x in (a, b))
    left = shaping.reshape(a, tuple(n for size in a_shape for n in (size, 1)))
    right = shaping.reshape(b, tuple(n for size in b_shape for n in (1, size)))
    return shaping.reshape(
        left * right, tuple(x * y for x, y in zip(a_shape, b_shape, strict=True))
    )


@implements(np.cross)
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Return the cross product of two (arrays of) vectors; see `numpy.cross`.

    NumPy allows vectors of two elements until a later version.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (
        shaping.moveaxis(x, k, -1) for x, k in zip(all_staged((a, b)), (axisa, axisb), strict=True)
    )
    sizes = [shaping.known_size(x, -1, "np.cross") for x in (a, b)]
    np.cross(np.ones(sizes[0]), np.ones(sizes[1]))  # NumPy's errors and warnings
    (a0, a1, *a2), (b0, b1, *b2) = (
        [x[..., k] for k in range(size)] for x, size in zip((a, b), sizes, strict=True)
    )
    last = a0 * b1 - a1 * b0
    if sizes == [2, 2]:
        return last if shaping.rank_of(last) else last.as_zero_dim()
    if sizes == [2, 3]:
        parts = [a1 * b2[0], -(a0 * b2[0]), last]
    elif sizes == [3, 2]:
        parts = [-(a2[0] * b1), a2[0] * b0, last]
    else:
        parts = [a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0], last]
    return shaping.stack(parts, axis=axisc)


def _check_ranks(name: str, *operands: tuple[Any, int]) -> list[Any]:
    """Return the operands as arrays, or raise NumPy's error if one has a lower rank than given."""
    arrays = [strong(x) for x, _ in operands]
    for x, (_, min_rank) in zip(arrays, operands, strict=True):
        if shaping.rank_of(x) < min_rank:
            raise ValueError(f"{name}: Input operand does not have enough dimensions")
    return arrays


def matvec(x1: Any, x2: Any, /) -> Any:
    """Return the matrix-vector product of two arrays; see `numpy.matvec`."""
    if not any_staged([x1, x2]):
        if hasattr(np, "matvec"):
            return np.matvec(x1, x2)
        return np.matmul(x1, np.expand_dims(x2, -1))[..., 0]
    x1, x2 = _check_ranks("matvec", (x1, 2), (x2, 1))
    return shaping.squeeze(contracting.matmul(x1, shaping.expand_dims(x2, -1)), -1)


def vecmat(x1: Any, x2: Any, /) -> Any:
    """Return the vector-matrix product of two arrays; see `numpy.vecmat`."""
    if not any_staged([x1, x2]):
        if hasattr(np, "vecmat"):
            return np.vecmat(x1, x2)
        return np.matmul(np.expand_dims(np.conjugate(x1), -2), x2)[..., 0, :]
    x1, x2 = _check_ranks("vecmat", (x1, 1), (x2, 2))
    row = shaping.expand_dims(ew.conjugate(x1) if dtype_of(x1).kind == "c" else x1, -2)
    return shaping.squeeze(contracting.matmul(row, x2), -2)


if hasattr(np, "matvec"):  # NumPy 2.2
    STAGED[np.matvec] = matvec
    STAGED[np.vecmat] = vecmat


# Indices of triangles
@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices for the upper triangle of an array; see `numpy.triu_indices_from`."""
    return indexing.nonzero(staged(ew.greater_equal(_diagonal_offset(staged(arr)), k)))


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Return the indices for the lower triangle of an array; see `numpy.tril_indices_from`."""
    return indexing.nonzero(staged(ew.less_equal(_diagonal_offset(staged(arr)), k)))
