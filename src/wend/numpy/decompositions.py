"""`wend.numpy.linalg`: eigenvalues, singular values and orthogonal factors.

Equal eigenvalues or singular values: their vectors may turn within their space and have no
derivative there. That turning counts as 0, so whatever does not depend on the choice of vectors,
such as the values alone, has its right gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged, apply, apply_all
from wend.eager.promotion import tensor_type
from wend.numpy import shaping
from wend.numpy.operands import inexact
from wend.numpy.public import STAGED, implements
from wend.ops import decompositions as ops
from wend.ops import factors

EighResult = type(np.linalg.eigh(np.eye(1)))
EigResult = type(np.linalg.eig(np.eye(1)))
QRResult = type(np.linalg.qr(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


def check_square(a: Any) -> None:
    """Raise NumPy's error for what is no stack of square matrices."""
    dims = tensor_type(a).dims
    if len(dims) < 2:
        raise np.linalg.LinAlgError(
            f"{len(dims)}-dimensional array given. Array must be at least two-dimensional"
        )
    if isinstance(dims[-1], int) and isinstance(dims[-2], int) and dims[-1] != dims[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")


def _is_lower(uplo: str) -> bool:
    if uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper() == "L"


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """`numpy.linalg.eigh`, for traced arrays as well.

    The gradient is Hermitian, though only one triangle is read.
    """
    (a,) = inexact(a)
    check_square(a)
    return EighResult(*apply_all(ops.eigh, a, lower=_is_lower(UPLO)))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803
    """`numpy.linalg.eigvalsh`, for traced arrays as well."""
    return eigh(a, UPLO)[0]


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """`numpy.linalg.eig`, for traced arrays as well; there the results are always complex."""
    (a,) = inexact(a)
    check_square(a)
    return EigResult(*apply_all(ops.eig, a))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """`numpy.linalg.eigvals`, for traced arrays as well; there the result is always complex."""
    return eig(a)[0]


@implements(np.linalg.svd)
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """`numpy.linalg.svd`, for traced arrays as well.

    The vectors of a full basis (`full_matrices` of a matrix that is not square) have no derivative.
    """
    del hermitian
    (a,) = inexact(a)
    if not compute_uv:
        return apply_all(ops.svd, a, full=False)[1]
    return SVDResult(*apply_all(ops.svd, a, full=bool(full_matrices)))


def svdvals(x: Any, /) -> Any:
    """`numpy.linalg.svdvals`, for traced arrays as well."""
    if not any_staged([x]):
        return np.linalg.svd(x, compute_uv=False)
    return svd(x, compute_uv=False)


STAGED[np.linalg.svdvals] = svdvals


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """`numpy.linalg.qr`, for traced arrays as well, but for `mode="raw"`.

    The columns that complete a basis (`mode="complete"` of a tall matrix) have no derivative.
    """
    if mode not in ("reduced", "complete", "r"):
        raise NotImplementedError(f"qr of a traced array has no mode {mode!r}")
    (a,) = inexact(a)
    found = apply_all(factors.qr, a, complete=mode == "complete")
    return found[1] if mode == "r" else QRResult(*found)


_UNSET: Any = object()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _UNSET) -> Any:
    """`numpy.linalg.pinv`, for traced arrays as well; its derivative is that at constant rank."""
    del hermitian
    (a,) = inexact(a)
    limit = rcond
    if rcond is None:
        limit = 1e-15 if rtol is _UNSET else rtol
    return apply(factors.pinv, a, rtol=None if limit is None else float(limit))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """`numpy.linalg.lstsq`, for traced arrays as well.

    The residuals are there if the matrix has more rows than columns, whatever its rank.
    """
    a, b = inexact(a, b)
    limit = rcond if rcond is None or rcond >= 0 else float(np.finfo(a.dtype).eps)
    x = apply(factors.pinv, a, rtol=limit) @ b
    values = svdvals(a)
    rows, columns = shaping.shape(a)
    eps = np.finfo(values.dtype).eps
    cut = values[..., :1] * (limit if limit is not None else max(rows, columns) * eps)
    rank = (values > cut).sum().astype(np.int32)
    gaps = b - a @ x
    gaps = np.real(gaps * np.conjugate(gaps))
    if rows > columns:
        left = gaps.sum(axis=0) if shaping.rank_of(b) > 1 else gaps.sum().reshape(1)
    else:
        left = np.zeros(0, values.dtype)
    return x, left, rank, values
