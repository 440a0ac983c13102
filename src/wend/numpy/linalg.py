"""`wend.numpy.linalg`: linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from wend.eager.dispatch import apply
from wend.numpy import shaping
from wend.numpy.decompositions import (
    check_square,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    lstsq,
    pinv,
    qr,
    svd,
    svdvals,
)
from wend.numpy.inverses import (
    cross,
    det,
    diagonal,
    inv,
    matmul,
    matrix_power,
    matrix_rank,
    matrix_transpose,
    multi_dot,
    outer,
    slogdet,
    tensordot,
    tensorinv,
    trace,
    vecdot,
)
from wend.numpy.norms import cond, matrix_norm, norm, vector_norm
from wend.numpy.operands import promote_linalg, staged
from wend.numpy.public import implements
from wend.ops import linalg as ops

__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "trace",
    "vecdot",
    "vector_norm",
]


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve a linear matrix equation, or a system of them; see `numpy.linalg.solve`."""
    check_square(staged(a))
    a, b = promote_linalg(a, b)
    if not shaping.rank_of(b):
        raise ValueError("solve: Input operand 1 does not have enough dimensions")
    is_vector = shaping.rank_of(b) == 1
    b = shaping.expand_dims(b, -1) if is_vector else b
    x = apply(ops.solve, *shaping.broadcast_batch_dims(a, b, core_rank=2))
    return shaping.squeeze(x, -1) if is_vector else x


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Compute the Cholesky decomposition of a Hermitian matrix; see `numpy.linalg.cholesky`."""
    check_square(staged(a))
    (a,) = promote_linalg(a)
    if not upper:
        return apply(ops.cholesky, a)
    # As in NumPy, only the upper triangle is read in this case.
    return shaping.matrix_transpose(apply(ops.cholesky, shaping.matrix_transpose(a)))
