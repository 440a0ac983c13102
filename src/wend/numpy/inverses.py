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
from wend.numpy.decompositions import check_square, svdvals
from wend.numpy.operands import all_staged, dtype_of, inexact, known_size, staged
from wend.numpy.public import STAGED, implements
from wend.numpy.ranges import eye
from wend.ops import factors
from wend.ops import linalg as ops

SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """`numpy.linalg.inv`, for traced arrays as well."""
    (a,) = inexact(a)
    check_square(a)
    one = eye(shaping.shape(a)[-1], dtype=dtype_of(a))
    return apply(ops.solve, a, staged(shaping.broadcast_to(staged(one), shaping.shape(a))))


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """`numpy.linalg.det`, for traced arrays as well.

    Its first derivative is right at singular matrices as well; its second is NaN there.
    """
    (a,) = inexact(a)
    check_square(a)
    return apply(factors.det, a)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """`numpy.linalg.slogdet`, for traced arrays as well."""
    (a,) = inexact(a)
    check_square(a)
    return SlogdetResult(*apply_all(factors.slogdet, a))


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """`numpy.linalg.matrix_power`, for traced arrays as well, by repeated squaring."""
    a, n = staged(a), operator.index(n)
    check_square(a)
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 0:
        one = eye(shaping.shape(a)[-1], dtype=dtype_of(a))
        return shaping.broadcast_to(staged(one), shaping.shape(a))
    found = None
    square = a
    while True:
        if n % 2:
            found = square if found is None else contracting.matmul(found, square)
        n //= 2
        if not n:
            return found
        square = contracting.matmul(square, square)


@implements(np.linalg.matrix_rank)
def matrix_rank(
    A: Any,  # noqa: N803
    tol: Any = None,
    hermitian: bool = False,
    *,
    rtol: Any = None,
) -> Any:
    """`numpy.linalg.matrix_rank`, for traced arrays as well."""
    del hermitian
    (a,) = inexact(A)
    if shaping.rank_of(a) < 2:
        return reducing.any(ew.not_equal(a, 0)).astype(np.int64)
    values = svdvals(a)
    if tol is None:
        if rtol is None:
            size = max(known_size(a, k, "matrix_rank") for k in (-2, -1))
            rtol = size * np.finfo(dtype_of(values)).eps
        tol = reducing.max(values, axis=-1, keepdims=True) * _column(rtol)
    else:
        tol = _column(tol)
    return reducing.sum(cast(values > tol, np.dtype(np.int64)), axis=-1)


def _column(x: Any) -> Any:
    x = staged(x)
    return x if np.ndim(x) == 0 else shaping.expand_dims(x, -1)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any]) -> Any:
    """`numpy.linalg.multi_dot`, for traced arrays as well, in the cheapest order."""
    xs = all_staged(tuple(arrays))
    if len(xs) < 2:
        raise ValueError("Expecting at least two arrays.")
    first, last = shaping.rank_of(xs[0]), shaping.rank_of(xs[-1])
    xs[0] = shaping.expand_dims(xs[0], 0) if first == 1 else xs[0]
    xs[-1] = shaping.expand_dims(xs[-1], 1) if last == 1 else xs[-1]
    sizes: Any = [tensor_type(x).dims[0] for x in xs] + [tensor_type(xs[-1]).dims[1]]
    known = all(isinstance(size, int) for size in sizes)
    found = _chain(xs, sizes) if known else _from_left(xs)
    ones = ([0] if first == 1 else []) + ([1] if last == 1 else [])
    return shaping.squeeze(found, tuple(ones)) if ones else found


def _from_left(xs: Sequence[Any]) -> Any:
    found = xs[0]
    for x in xs[1:]:
        found = contracting.matmul(found, x)
    return found


def _chain(xs: Sequence[Any], sizes: Sequence[int]) -> Any:
    # The matrix-chain order: Cormen et al., "Introduction to Algorithms", section 15.2.
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
    """`numpy.linalg.tensorinv`, for traced arrays of known sizes as well."""
    a = staged(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    sizes = tuple(known_size(a, k, "tensorinv") for k in range(shaping.rank_of(a)))
    rows = math.prod(sizes[:ind])
    found = inv(shaping.reshape(a, (rows, -1)))
    return shaping.reshape(found, (*sizes[ind:], *sizes[:ind]))


# The names of the array API standard
def _standard(
    original: Callable[..., Any], run: Callable[..., Any], **fixed: Any
) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        if not any_staged([*args, *kwargs.values()]):
            return original(*args, **kwargs)
        return run(*args, **{**fixed, **kwargs})

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.linalg.{original.__name__}`, for traced arrays as well."
    function.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    STAGED[original] = function
    return function


trace = _standard(np.linalg.trace, matrices.trace, axis1=-2, axis2=-1)
diagonal = _standard(np.linalg.diagonal, matrices.diagonal, axis1=-2, axis2=-1)
cross = _standard(np.linalg.cross, matrices.cross)
outer = _standard(np.linalg.outer, contracting.outer)
matmul = _standard(np.linalg.matmul, contracting.matmul)
tensordot = _standard(np.linalg.tensordot, contracting.tensordot)
vecdot = _standard(np.linalg.vecdot, contracting.vecdot)
matrix_transpose = _standard(np.linalg.matrix_transpose, shaping.matrix_transpose)
