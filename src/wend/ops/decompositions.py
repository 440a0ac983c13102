"""Eigenvalues and singular values of stacks of matrices.

Rules are written for the gradient of a real function, whose cotangent is conjugated: g = conj(ct)
(D19 pairs without conjugation), and return the gradient conjugated.

Vectors of equal eigenvalues or singular values have no derivative: they may rotate within their
space. The rules leave that rotation out (1/0 counts as 0), so functions that do not depend on the
choice of vectors, such as those of the values alone, have the correct gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import NotDifferentiableError, ShapeError, explain
from wend.base.refusals import refusal
from wend.base.zero import ZERO
from wend.ir.dtypes import INEXACT, complex_of, real_of
from wend.ir.op import Explicit, Op, Rounding
from wend.ir.types import Dim, TensorType, Type
from wend.ops.raising import LINALG
from wend.ops.shapes import WHOLE, check_dtype, same_dim, tensor_of

SOLVABLE = frozenset(dtype for dtype in INEXACT if dtype != np.float16)


def matrix_of(a: Type, *, square: bool = False) -> TensorType:
    """The type of a stack of matrices."""
    a = tensor_of(a)
    check_dtype(a, SOLVABLE, "the matrix")
    if len(a.dims) < 2:
        raise ShapeError(f"a matrix has at least two dimensions, found {a}")
    if square:
        same_dim(a.dims[-1], a.dims[-2], f"the last two sizes of {a}")
    return a


def shorter(a: TensorType) -> Dim:
    """Return the lesser of the sizes of a matrix, which must be known."""
    rows, columns = a.dims[-2:]
    if rows == columns:
        return rows
    if not isinstance(rows, int) or not isinstance(columns, int):
        raise refusal(ShapeError(f"which size of {a} is the lesser must be known before the run"))
    return min(rows, columns)


# Building blocks of the rules
def conj(b: Any, x: Any) -> Any:
    """The conjugate, of real numbers as well."""
    return b.conj(x) if x.type.dtype.kind == "c" else x


def adjoint(b: Any, x: Any) -> Any:
    """The conjugate transpose."""
    return conj(b, b.matrix_transpose(x))


def gradient(b: Any, ct: Any, like: Any) -> Any:
    """A cotangent as the rules here take it; zeros for Zero."""
    return b.zeros_like(like) if ct is ZERO else conj(b, ct)


def product(b: Any, *factors: Any) -> Any:
    """A matrix product from left to right."""
    result = factors[0]
    for factor in factors[1:]:
        result = b.matmul(result, factor)
    return result


def column(b: Any, x: Any) -> Any:
    """Vectors as matrices of one column."""
    return b.insert_axes(x, axes=(len(x.type.dims),))


def row(b: Any, x: Any) -> Any:
    """Vectors as matrices of one row."""
    return b.insert_axes(x, axes=(len(x.type.dims) - 1,))


def times_columns(b: Any, x: Any, factors: Any) -> Any:
    """The matrix with each column times its factor, real or not."""
    return b.mul(x, b.broadcast_like(row(b, b.cast(factors, x.type.dtype)), x))


def times_rows(b: Any, factors: Any, x: Any) -> Any:
    """The matrix with each row times its factor."""
    return b.mul(x, b.broadcast_like(column(b, b.cast(factors, x.type.dtype)), x))


def on_diagonal(b: Any, square: Any) -> Any:
    """A mask of the diagonal, of the shape of a stack of square matrices."""
    size = square.type.dims[-1]
    index = b.iota(size if isinstance(size, int) else b.size_of(square, len(square.type.dims) - 1))
    row_and_column = b.insert_axes(index, axes=(1,)), b.insert_axes(index, axes=(0,))
    return b.eq(*(b.broadcast_like(x, square) for x in row_and_column))


def diagonal(b: Any, values: Any, like: Any) -> Any:
    """A stack of diagonal matrices, of the type of `like`."""
    spread = b.broadcast_like(row(b, b.cast(values, like.type.dtype)), like)
    return b.select(on_diagonal(b, like), spread, b.zeros_like(like))


def inverse_gaps(b: Any, w: Any, like: Any) -> Any:
    """1/(w[j] − w[i]), and 0 where the two are equal."""
    w = b.cast(w, like.type.dtype)
    gaps = b.sub(b.broadcast_like(row(b, w), like), b.broadcast_like(column(b, w), like))
    equal = b.eq(gaps, b.zeros_like(gaps))
    reciprocals = b.reciprocal(b.select(equal, b.ones_like(gaps), gaps))
    return b.select(equal, b.zeros_like(gaps), reciprocals)


def inverse(b: Any, x: Any) -> Any:
    """1/x, and 0 where x = 0."""
    zero = b.eq(x, b.zeros_like(x))
    reciprocals = b.reciprocal(b.select(zero, b.ones_like(x), x))
    return b.select(zero, b.zeros_like(x), reciprocals)


def first_rows(b: Any, x: Any, count: Dim) -> Any:
    """The first rows of a stack of matrices."""
    whole = (WHOLE,) * (len(x.type.dims) - 2)
    return b.slice(x, slices=(*whole, (0, count, None), WHOLE))


def incomplete_basis(what: str, cure: str) -> NotDifferentiableError:
    """Return the refusal of a derivative of columns that a factorization may choose freely."""
    problem = f"the {what} that complete a basis have no derivative."
    return refusal(NotDifferentiableError(explain(problem, cure=f"use {cure}.")))


# Hermitian matrices
def _infer_eigh(a: Type, *, lower: bool) -> tuple[TensorType, ...]:
    a = matrix_of(a, square=True)
    return a.with_shape(a.dims[:-1]).with_dtype(real_of(a.dtype)), a


def _pull_back_eigh(b: Any, node: Any, cts: Any) -> Any:
    # Ā = V(diag(w̄) + F∘(VᴴV̄))Vᴴ, F[i,j] = 1/(w[j] − w[i]); Giles, "Collected matrix derivative
    # results for forward and reverse mode algorithmic differentiation" (2008), section 3.1.
    w, v = node.results
    inner = b.zeros_like(v)
    if cts[1] is not ZERO:
        projected = product(b, adjoint(b, v), gradient(b, cts[1], v))
        inner = b.mul(inverse_gaps(b, w, v), projected)
    if cts[0] is not ZERO:
        inner = b.add(inner, diagonal(b, cts[0], v))
    of_symmetric = product(b, v, inner, adjoint(b, v))
    triangle = b.half_lower(b.add(of_symmetric, adjoint(b, of_symmetric)))
    return (conj(b, triangle if node.attrs["lower"] else adjoint(b, triangle)),)


# Reads one triangle, and has its gradient there (D40)
eigh = Op(
    "eigh",
    _infer_eigh,
    lambda a, *, lower: tuple(np.linalg.eigh(a, "L" if lower else "U")),
    Explicit(_pull_back_eigh),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)


# For any square matrix; the results are always complex
def _infer_eig(a: Type) -> tuple[TensorType, ...]:
    a = matrix_of(a, square=True)
    vectors = a.with_dtype(a.dtype if a.dtype.kind == "c" else complex_of(a.dtype))
    return vectors.with_shape(a.dims[:-1]), vectors


def _kernel_eig(a: Any) -> Any:
    dtype = a.dtype if a.dtype.kind == "c" else complex_of(a.dtype)
    w, v = np.linalg.eig(a)
    return w.astype(dtype), v.astype(dtype)


def _pull_back_eig(b: Any, node: Any, cts: Any) -> Any:
    # Ā = V⁻ᴴ(diag(w̄) + conj(F)∘(VᴴV̄ − VᴴV·Re diag(VᴴV̄)))Vᴴ: vectors of norm 1; Boeddeker et al.,
    # "On the computation of complex-valued gradients" (2017), section 4.4.
    (a,), (w, v) = node.operands, node.results
    inner = b.zeros_like(v)
    if cts[1] is not ZERO:
        projected = product(b, adjoint(b, v), gradient(b, cts[1], v))
        projected_diagonal = b.select(on_diagonal(b, v), projected, b.zeros_like(v))
        length = b.real(b.reduce_sum(projected_diagonal, axes=(len(v.type.dims) - 2,)))
        parallel = times_columns(b, product(b, adjoint(b, v), v), length)
        inner = b.mul(conj(b, inverse_gaps(b, w, v)), b.sub(projected, parallel))
    if cts[0] is not ZERO:
        inner = b.add(inner, diagonal(b, b.conj(cts[0]), v))
    gradient_of_a = b.conj(b.solve(adjoint(b, v), product(b, inner, adjoint(b, v))))
    return (gradient_of_a if a.type.dtype.kind == "c" else b.real(gradient_of_a),)


eig = Op(
    "eig",
    _infer_eig,
    _kernel_eig,
    Explicit(_pull_back_eig),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)


# Singular values
def _infer_svd(a: Type, *, full: bool) -> tuple[TensorType, ...]:
    a = matrix_of(a)
    *stack, rows, columns = a.dims
    k = shorter(a)
    values = a.with_shape((*stack, k)).with_dtype(real_of(a.dtype))
    left, right = (rows, columns) if full else (k, k)
    return a.with_shape((*stack, rows, left)), values, a.with_shape((*stack, right, columns))


def _pull_back_svd(b: Any, node: Any, cts: Any) -> Any:
    # Townsend, "Differentiating the singular value decomposition" (2016), eqs. 20–22; complex:
    # Wan and Zhang, "Automatic differentiation for complex valued SVD" (2019).
    (a,), (u, s, vh) = node.operands, node.results
    rows, columns = a.type.dims[-2:]
    gu, gv = (None if ct is ZERO else conj(b, ct) for ct in (cts[0], cts[2]))
    if node.attrs["full"] and rows != columns:
        is_tall = shorter(a.type) == columns
        if (gu if is_tall else gv) is not None:
            raise incomplete_basis("vectors", "svd with full_matrices=False, or svdvals")
        u, vh = (b.part(u, 0, columns), vh) if is_tall else (u, first_rows(b, vh, rows))
    inner = _gradient_within_spaces(b, u, s, vh, gu, gv)
    if cts[1] is not ZERO:
        inner = b.add(inner, diagonal(b, cts[1], inner))
    grad_a = product(b, u, inner, vh)
    if gu is not None and rows != columns and shorter(a.type) == columns:
        out = b.sub(gu, product(b, u, adjoint(b, u), gu))
        grad_a = b.add(grad_a, product(b, times_columns(b, out, inverse(b, s)), vh))
    if gv is not None and rows != columns and shorter(a.type) == rows:
        out = b.sub(gv, product(b, gv, adjoint(b, vh), vh))
        grad_a = b.add(grad_a, product(b, u, times_rows(b, inverse(b, s), out)))
    return (conj(b, grad_a),)


def _gradient_within_spaces(b: Any, u: Any, s: Any, vh: Any, gu: Any, gv: Any) -> Any:
    """The part of the gradient within the spaces of the singular vectors."""
    left = None if gu is None else product(b, adjoint(b, u), gu)
    right = None if gv is None else product(b, vh, adjoint(b, gv))
    like = product(b, adjoint(b, u), u)
    gaps = inverse_gaps(b, b.square(s), like)
    inner = b.zeros_like(like)
    if left is not None:
        skew = b.sub(left, adjoint(b, left))
        inner = b.add(inner, times_columns(b, b.mul(skew, gaps), s))
    if right is not None:
        skew = b.sub(right, adjoint(b, right))
        inner = b.add(inner, times_rows(b, s, b.mul(skew, gaps)))
    if left is not None and right is not None and left.type.dtype.kind == "c":
        # The remaining freedom: a common phase of u and v.
        gap = b.sub(left, right)
        skew_gap = b.sub(gap, adjoint(b, gap))
        phase = times_columns(b, skew_gap, b.scale(inverse(b, s), 0.25))
        inner = b.add(inner, b.select(on_diagonal(b, like), phase, b.zeros_like(like)))
    return inner


svd = Op(
    "svd",
    _infer_svd,
    lambda a, *, full: tuple(np.linalg.svd(a, full_matrices=full)),
    Explicit(_pull_back_svd),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)
