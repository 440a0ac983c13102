"""Linear algebra on stacks of matrices: the last two axes are rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.base.zero import ZERO
from wend.ir.dtypes import BOOL, INEXACT
from wend.ir.op import Explicit, Op, Rounding, no_gradient
from wend.ir.types import TensorType, Type
from wend.ops.raising import LINALG
from wend.ops.shapes import check_dtype, same_dim, tensor_of

_SOLVABLE = frozenset(dtype for dtype in INEXACT if dtype != np.float16)


def _check_square(a: TensorType) -> None:
    check_dtype(a, _SOLVABLE, "the matrix")
    if len(a.dims) < 2:
        raise ShapeError(f"a matrix has at least two dimensions, found {a}")
    same_dim(a.dims[-1], a.dims[-2], f"the last two sizes of {a}")


def _infer_solve(a: Type, y: Type) -> TensorType:
    a, y = tensor_of(a), tensor_of(y)
    _check_square(a)
    if y.dtype != a.dtype or y.rank != a.rank:
        raise TypeMismatchError(f"solve takes matrices of one dtype and rank, found {a} and {y}")
    same_dim(a.dims[-1], y.dims[-2], f"rows of {a} and {y}")
    return y


def _pull_back_solve(b: Any, node: Any, cts: Any) -> Any:
    # x = A⁻¹y: ȳ = A⁻ᵀx̄, Ā = −ȳxᵀ
    (a, _), (x,) = node.operands, node.results
    y_ct = b.solve(b.matrix_transpose(a), cts[0])
    return b.neg(b.matmul(y_ct, b.matrix_transpose(x))), y_ct


# x with a·x = y, for y a matrix of right-hand sides
solve = Op(
    "solve",
    _infer_solve,
    lambda a, y: np.linalg.solve(a, y),
    Explicit(_pull_back_solve, linear=(1,)),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)


LARGEST_FACTORED_TRIANGLE = 8  # rows; larger ones are solved as they are

# In a graph to be differentiated or run, a solve becomes two operations, so that solves with one
# matrix or its transpose share its factors (`passes/factor_solves.py`).


def _infer_lu_factor(a: Type, *, of: str) -> tuple[TensorType, TensorType]:
    a = tensor_of(a)
    _check_square(a)
    return a, TensorType(np.dtype(np.int32), a.dims[:-1])


def _lapack(stem: str, like: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs([stem], [like])


def _kernel_lu_factor(a: Any, *, of: str) -> tuple[Any, Any]:
    (factor,) = _lapack("getrf", a)
    factors, exchanges = np.empty_like(a), np.zeros(a.shape[:-1], np.int32)
    for k in np.ndindex(a.shape[:-2]) if a.size else ():
        if (code := _triangle_code(a[k])) is None:
            factors[k], exchanges[k], _ = factor(a[k])
            exchanges[k] += 1
        else:
            factors[k], exchanges[k] = a[k], code
        if not np.diagonal(factors[k]).all():
            raise np.linalg.LinAlgError("Singular matrix")
    return np.matrix_transpose(factors), exchanges


def _triangle_code(a: Any) -> int | None:
    """Return what marks a larger triangle, of finite numbers; None if it is none."""
    if len(a) <= LARGEST_FACTORED_TRIANGLE or not np.isfinite(a).all():
        return None
    return -1 if not np.tril(a, -1).any() else 0 if not np.triu(a, 1).any() else None


def _pull_back_lu_factor(b: Any, node: Any, cts: Any) -> Any:
    return (cts[0],)


# A matrix as its factors and row exchanges, in the layout of LAPACK's getrf: (L + U - I)ᵀ, and
# numbers from 1. A larger triangle is not factored: instead of exchanges there are zeros for a
# lower one, and -1 for an upper one. Only `lu_solve` reads the factors; they stand for the matrix,
# and their derivative is that of the matrix. An error names the operation `of` the program.
lu_factor = Op(
    "lu_factor",
    _infer_lu_factor,
    _kernel_lu_factor,
    Explicit(_pull_back_lu_factor),
    raises=LINALG,
    error_attrs=("of",),
    rounding=Rounding.OF_FLOATS,
)


def _infer_lu_solve(factors: Type, exchanges: Type, y: Type, *, transposed: bool) -> TensorType:
    return _infer_solve(factors, y)


def _kernel_lu_solve(factors: Any, exchanges: Any, y: Any, *, transposed: bool) -> Any:
    by_factors, by_triangle = _lapack("getrs", factors)[0], _lapack("trtrs", factors)[0]
    x, trans = np.empty_like(y), int(transposed)
    for k in np.ndindex(y.shape[:-2]) if y.size else ():
        matrix, code = factors[k].T, exchanges[k][0]
        if code > 0:
            x[k] = by_factors(matrix, exchanges[k] - 1, y[k], trans=trans)[0]
        else:
            x[k] = by_triangle(matrix, y[k], lower=code == 0, trans=trans)[0]
    return x


def _pull_back_lu_solve(b: Any, node: Any, cts: Any) -> Any:
    # x = A⁻¹y: ȳ = A⁻ᵀx̄, Ā = −ȳxᵀ; with Aᵀ for A: Ā = −xȳᵀ
    (factors, exchanges, _), (x,) = node.operands, node.results
    transposed = node.attrs["transposed"]
    y_ct = b.emit(lu_solve, factors, exchanges, cts[0], transposed=not transposed)
    left, right = (x, y_ct) if transposed else (y_ct, x)
    return b.neg(b.matmul(left, b.matrix_transpose(right))), ZERO, y_ct


# x with a·x = y, or aᵀ·x = y where `transposed`, from the results of `lu_factor`
lu_solve = Op(
    "lu_solve",
    _infer_lu_solve,
    _kernel_lu_solve,
    Explicit(_pull_back_lu_solve, linear=(2,)),
    rounding=Rounding.OF_FLOATS,
)


def _infer_cholesky(a: Type) -> TensorType:
    a = tensor_of(a)
    _check_square(a)
    return a


def _pull_back_cholesky(b: Any, node: Any, cts: Any) -> Any:
    # Ā = Φ(X + Xᴴ), X = L⁻ᴴ Φ(Lᴴ L̄) L⁻¹, Φ the lower triangle with half the diagonal; Murray,
    # "Differentiation of the Cholesky decomposition" (2016), eqs. 9 and 10. Of complex matrices
    # the gradient is the conjugate of the cotangent (D19).
    (lower,) = node.results
    upper = _adjoint(b, lower)
    left = b.solve(upper, b.half_lower(b.matmul(upper, _conjugate(b, cts[0]))))
    inner = _adjoint(b, b.solve(upper, _adjoint(b, left)))
    return (_conjugate(b, b.half_lower(b.add(inner, _adjoint(b, inner)))),)


def _conjugate(b: Any, x: Any) -> Any:
    return b.conj(x) if x.type.dtype.kind == "c" else x


def _adjoint(b: Any, x: Any) -> Any:
    return _conjugate(b, b.matrix_transpose(x))


# Reads the lower triangle, and has its gradient there (D40)
cholesky = Op(
    "cholesky",
    _infer_cholesky,
    lambda a: np.linalg.cholesky(a),
    Explicit(_pull_back_cholesky),
    raises=LINALG,
    rounding=Rounding.OF_FLOATS,
)


def _infer_has_factors(a: Type, *, factors: str) -> TensorType:
    _check_square(tensor_of(a))
    return TensorType(BOOL, ())


def _kernel_has_factors(a: Any, *, factors: str) -> Any:
    try:
        (np.linalg.cholesky if factors == "cholesky" else np.linalg.inv)(a)
    except np.linalg.LinAlgError:
        return np.bool_(False)
    return np.bool_(True)


# Whether `cholesky`, or `solve` for "lu", raises no error for a matrix
has_factors = Op("has_factors", _infer_has_factors, _kernel_has_factors, no_gradient())
