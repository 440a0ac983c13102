"""`wend.numpy.linalg`: eigenvalues, singular values and orthogonal factors.

The vectors of repeated eigenvalues or singular values are determined only up to a rotation of their
subspace, and have no derivative in it. The derivative treats that rotation as 0, so any function
that does not depend on the choice of vectors, such as a function of the values alone, has the
correct gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import any_staged, apply, apply_all
from wend.eager.promotion import tensor_type
from wend.numpy import creating, shaping
from wend.numpy import elementwise as ew
from wend.numpy.matrices import tril, triu
from wend.numpy.operands import all_staged, promote_dtypes_inexact, promote_linalg, staged
from wend.numpy.public import STAGED, implements
from wend.ops import decompositions as ops
from wend.ops import factors

EighResult = type(np.linalg.eigh(np.eye(1)))
EigResult = type(np.linalg.eig(np.eye(1)))
QRResult = type(np.linalg.qr(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


def check_matrix(a: Any) -> None:
    """Raise NumPy's error unless the array is a matrix or a stack of them."""
    rank = shaping.rank_of(a)
    if rank < 2:
        raise np.linalg.LinAlgError(
            f"{rank}-dimensional array given. Array must be at least two-dimensional"
        )


def check_square(a: Any) -> None:
    """Raise NumPy's error unless the array is a square matrix or a stack of them."""
    check_matrix(a)
    dims = tensor_type(a).dims
    if isinstance(dims[-1], int) and isinstance(dims[-2], int) and dims[-1] != dims[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _is_lower(uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper() == "L"


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """Return the eigenvalues and eigenvectors of a Hermitian matrix; see `numpy.linalg.eigh`.

    The gradient is in the triangle that is read.
    """
    (a,) = promote_dtypes_inexact(a)
    check_square(a)
    return EighResult(*apply_all(ops.eigh, a, lower=_is_lower(UPLO)))


def hermitian_of_lower(a: Any) -> Any:
    """Return the Hermitian matrix of a lower triangle, as `hermitian=True` reads it."""
    check_square(a)
    below = tril(a, -1)
    diagonal = tril(triu(ew.real(a)))
    return below + ew.conjugate(shaping.matrix_transpose(below)) + diagonal


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """Compute the eigenvalues of a Hermitian matrix; see `numpy.linalg.eigvalsh`."""
    return eigh(a, UPLO)[0]


def eig(a: Any) -> Any:
    """Compute the eigenvalues and right eigenvectors of a square array; see `numpy.linalg.eig`.

    Unlike NumPy's, the results are always complex.
    """
    if not any_staged([a]):
        values, vectors = np.linalg.eig(a)
        return EigResult(_complex(values), _complex(vectors))
    (a,) = promote_dtypes_inexact(a)
    check_square(a)
    return EigResult(*apply_all(ops.eig, a))


def eigvals(a: Any) -> Any:
    """Compute the eigenvalues of a general matrix; see `numpy.linalg.eigvals`.

    Unlike NumPy's, the result is always complex.
    """
    return eig(a)[0] if any_staged([a]) else _complex(np.linalg.eigvals(a))


def _complex(x: Any) -> Any:
    return x.astype(np.result_type(x, np.complex64), copy=False)


STAGED[np.linalg.eig] = eig
STAGED[np.linalg.eigvals] = eigvals


@implements(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Compute the singular value decomposition; see `numpy.linalg.svd`.

    The vectors that complete a basis (`full_matrices` of a matrix that is not square) have no
    derivative. What is not computed from them has a first one in reverse mode.
    """
    (a,) = promote_dtypes_inexact(a)
    check_matrix(a)
    a = hermitian_of_lower(a) if hermitian else a
    if not compute_uv:
        return apply_all(ops.svd, a, full=False)[1]
    return SVDResult(*apply_all(ops.svd, a, full=bool(full_matrices)))


def svdvals(x: Any, /) -> Any:
    """Return the singular values of a matrix or a stack of matrices; see `numpy.linalg.svdvals`."""
    if not any_staged([x]):
        return np.linalg.svd(x, compute_uv=False)
    return svd(x, compute_uv=False)


STAGED[np.linalg.svdvals] = svdvals


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute the QR factorization of a matrix; see `numpy.linalg.qr`.

    Traced arrays do not support `mode="raw"`. The columns that complete a basis
    (`mode="complete"` of a tall matrix) have no derivative. What is not computed from them has a
    first one in reverse mode.
    """
    if mode not in ("reduced", "complete", "r"):
        np.linalg.qr(np.eye(1), mode)  # type: ignore[call-overload]  # NumPy's error
        raise UnsupportedError(
            explain(
                f"np.linalg.qr of a traced array has no mode {mode!r}{at(user_source())}.",
                cure="choose mode='reduced', 'complete' or 'r'.",
            )
        )
    (a,) = promote_dtypes_inexact(a)
    check_matrix(a)
    results = apply_all(factors.qr, a, complete=mode == "complete")
    return results[1] if mode == "r" else QRResult(*results)


_UNSET: Any = object()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _UNSET) -> Any:
    """Compute the Moore-Penrose pseudo-inverse of a matrix; see `numpy.linalg.pinv`.

    Its derivative assumes that the rank is locally constant.
    """
    a = staged(a)
    check_matrix(a)
    *stack, rows, columns = tensor_type(a).dims
    if 0 in (rows, columns):
        return creating.zeros_like(shaping.reshape(a, (*stack, columns, rows)))
    (a,) = promote_dtypes_inexact(a)
    a = hermitian_of_lower(a) if hermitian else a
    limit = rcond
    if rcond is None:
        limit = 1e-15 if rtol is _UNSET else rtol
    return apply(factors.pinv, a, rtol=None if limit is None else float(limit))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """Return the least-squares solution to a linear matrix equation; see `numpy.linalg.lstsq`."""
    a, b = all_staged((a, b))
    if tensor_type(a).is_static and tensor_type(a).dims[0] != tensor_type(b).dims[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    a, b = promote_linalg(a, b)
    limit = rcond if rcond is None or rcond >= 0 else float(np.finfo(a.dtype).eps)
    x = apply(factors.pinv, a, rtol=limit) @ b
    values = svdvals(a)
    rows, columns = shaping.shape(a)
    eps = np.finfo(values.dtype).eps
    cutoff = values[..., :1] * (limit if limit is not None else max(rows, columns) * eps)
    rank = (values > cutoff).sum().astype(np.int32)
    errors = b - a @ x
    errors = np.real(errors * np.conjugate(errors))
    if rows > columns:
        squared_residuals = (
            errors.sum(axis=0) if shaping.rank_of(b) > 1 else errors.sum().reshape(1)
        )
        # As in NumPy, there are none unless the matrix has full rank.
        count = squared_residuals.shape[0]
        squared_residuals = squared_residuals[: ew.where(ew.equal(rank, columns), count, 0)]
    else:
        squared_residuals = np.zeros(0, values.dtype)
    return x, squared_residuals, rank, values
