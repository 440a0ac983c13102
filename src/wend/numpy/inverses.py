"""`wend.numpy.linalg`: inverses, determinants, powers and products of matrices."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged, apply, apply_all
from wend.eager.promotion import cast, tensor_type
from wend.numpy import contracting, matrices, reducing, shaping
from wend.numpy import elementwise as ew
from wend.numpy.decompositions import check_square, hermitian_of_lower, svdvals
from wend.numpy.operands import (
    all_staged,
    dtype_of,
    promote_dtypes_inexact,
    promote_linalg,
    staged,
)
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import eye
from wend.numpy.shaping import known_size
from wend.ops import factors
from wend.ops import linalg as ops

SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Compute the inverse of a matrix; see `numpy.linalg.inv`."""
    (a,) = promote_dtypes_inexact(a)
    check_square(a)
    *batch, _, size = shaping.shape(a)
    identity = staged(eye(size, dtype=dtype_of(a)))
    return apply(ops.solve, a, staged(shaping.broadcast_to(identity, (*batch, size, size))))


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """Compute the determinant of an array; see `numpy.linalg.det`.

    Its derivatives are correct at singular matrices, too.
    """
    (a,) = promote_dtypes_inexact(a)
    check_square(a)
    return apply(factors.det, a)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Compute the sign and the logarithm of the determinant; see `numpy.linalg.slogdet`."""
    (a,) = promote_dtypes_inexact(a)
    check_square(a)
    return SlogdetResult(*apply_all(factors.slogdet, a))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Raise a square matrix to an integer power; see `numpy.linalg.matrix_power`.

    It is computed by repeated squaring.
    """
    a, n = staged(a), operator.index(n)
    check_square(a)
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 0:
        identity = eye(shaping.shape(a)[-1], dtype=dtype_of(a))
        return shaping.new_full(staged(identity), shaping.shape(a))
    power = None
    square = a
    while True:
        if n % 2:
            power = square if power is None else contracting.matmul(power, square)
        n //= 2
        if not n:
            return power
        square = contracting.matmul(square, square)


@implements(np.linalg.matrix_rank)
def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> Any:
    """Return the rank of a matrix using the SVD method; see `numpy.linalg.matrix_rank`."""
    (a,) = promote_dtypes_inexact(A)
    if shaping.rank_of(a) < 2:
        return reducing.any(ew.not_equal(a, 0)).astype(np.int64)
    if hermitian:
        check_square(a)
    (a,) = promote_linalg(a)
    if 0 in tensor_type(a).dims[-2:]:
        return reducing.sum(cast(ew.not_equal(a, 0), np.dtype(np.int64)), axis=(-2, -1))
    values = svdvals(hermitian_of_lower(a) if hermitian else a)
    if tol is None:
        if rtol is None:
            size = max(known_size(a, k, "matrix_rank") for k in (-2, -1))
            rtol = size * np.finfo(dtype_of(values)).eps
        tol = reducing.max(values, axis=-1, keepdims=True) * _per_matrix(rtol)
    else:
        tol = _per_matrix(tol)
    return reducing.sum(cast(values > tol, np.dtype(np.int64)), axis=-1)


def _per_matrix(x: Any) -> Any:
    x = staged(x)
    return x if np.ndim(x) == 0 else shaping.expand_dims(x, -1)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any]) -> Any:
    """Compute the product of two or more arrays; see `numpy.linalg.multi_dot`.

    If all sizes are static, the cheapest order is selected.
    """
    xs = all_staged(tuple(arrays))
    if len(xs) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = shaping.rank_of(xs[0]), shaping.rank_of(xs[-1])
    xs[0] = shaping.expand_dims(xs[0], 0) if first == 1 else xs[0]
    xs[-1] = shaping.expand_dims(xs[-1], 1) if last == 1 else xs[-1]
    sizes: Any = [tensor_type(x).dims[0] for x in xs] + [tensor_type(xs[-1]).dims[1]]
    is_static = all(isinstance(size, int) for size in sizes)
    result = _multiply_optimally(xs, sizes) if is_static else _multiply_from_left(xs)
    unit_axes = ([0] if first == 1 else []) + ([1] if last == 1 else [])
    return shaping.squeeze(result, tuple(unit_axes)) if unit_axes else result


def _multiply_from_left(xs: Sequence[Any]) -> Any:
    product = xs[0]
    for x in xs[1:]:
        product = contracting.matmul(product, x)
    return product


def _multiply_optimally(xs: Sequence[Any], sizes: Sequence[int]) -> Any:
    # Matrix-chain order: Cormen et al., "Introduction to Algorithms", section 15.2.
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(xs))}
    for length in range(1, len(xs)):
        for i in range(len(xs) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )

    def product(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        k = best[i, j][1]
        return contracting.matmul(product(i, k), product(k + 1, j))

    return product(0, len(xs) - 1)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Compute the inverse of an n-dimensional array; see `numpy.linalg.tensorinv`.

    The sizes of a traced array must be static.
    """
    a = staged(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    sizes = tuple(known_size(a, k, "tensorinv") for k in range(shaping.rank_of(a)))
    rows = math.prod(sizes[:ind])
    inverse = inv(shaping.reshape(a, (rows, -1)))
    return shaping.reshape(inverse, (*sizes[ind:], *sizes[:ind]))


# The names of the array API standard
def _standard(
    original: Callable[..., Any], run: Callable[..., Any], **fixed: Any
) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if not any_staged([*args, *kwargs.values()]):
            return original(*args, **kwargs)
        return run(*args, **{**fixed, **kwargs})

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"Compute `numpy.linalg.{original.__name__}` of plain and traced arrays."
    function.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    STAGED[original] = function
    return function


trace = _standard(np.linalg.trace, matrices.trace, axis1=-2, axis2=-1)
diagonal = _standard(np.linalg.diagonal, matrices.diagonal, axis1=-2, axis2=-1)


def _cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    sizes = [known_size(staged(x), axis, "np.linalg.cross") for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{sizes[0]} and {sizes[1]} dimensional instead."
        )
    return matrices.cross(x1, x2, axis=axis)


cross = _standard(np.linalg.cross, _cross)


def _outer(x1: Any, x2: Any, /) -> Any:
    ranks = [shaping.rank_of(x) for x in (x1, x2)]
    if ranks != [1, 1]:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={ranks[0]} and "
            f"x2.ndim={ranks[1]}."
        )
    return contracting.outer(x1, x2)


outer = _standard(np.linalg.outer, _outer)
matmul = _standard(np.linalg.matmul, contracting.matmul)
tensordot = _standard(np.linalg.tensordot, contracting.tensordot)
vecdot = _standard(np.linalg.vecdot, contracting.vecdot)
matrix_transpose = _standard(np.linalg.matrix_transpose, shaping.matrix_transpose)
