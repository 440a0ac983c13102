"""Linear algebra on stacks of matrices: the last two axes are rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
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
