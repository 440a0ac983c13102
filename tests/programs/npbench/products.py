"""PolyBench: products of matrices and vectors (BLAS and kernels)."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def k2mm(alpha, beta, A, B, C, D):
    D[:] = alpha * A @ B @ C + beta * D


def k3mm(A, B, C, D):
    return A @ B @ C @ D


def atax(A, x):
    return (A @ x) @ A


def bicg(A, p, r):
    return r @ A, A @ p


def mvt(x1, x2, y_1, y_2, A):
    x1 += A @ y_1
    x2 += y_2 @ A


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def symm(alpha, beta, C, A, B):
    row = np.empty((C.shape[1],), dtype=C.dtype)
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            row[j] = B[:i, j] @ A[i, :i]
        C[i, :] += alpha * B[i, :] * A[i, i] + alpha * row


def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]


def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


def doitgen(NR, NQ, NP, A, C4):
    for r in range(NR):
        for q in range(NQ):
            row = A[r, q, :] @ C4
            A[r, q, :] = row


def _arrays(*shapes):
    """Two numbers, then arrays."""
    return lambda rng, dtype: [
        *np.array([1.5, 1.2], dtype),
        *(rng.normal(size=shape).astype(dtype) for shape in shapes),
    ]


def _only_arrays(*shapes):
    return lambda rng, dtype: [rng.normal(size=shape).astype(dtype) for shape in shapes]


def _one_number(*shapes):
    return lambda rng, dtype: _arrays(*shapes)(rng, dtype)[1:]


def _doitgen(rng, dtype):
    return 4, 3, 5, *_only_arrays((4, 3, 5), (5, 5))(rng, dtype)


KERNELS = [
    Kernel(gemm, _arrays((4, 5), (4, 6), (6, 5))),
    Kernel(k2mm, _arrays((4, 6), (6, 5), (5, 3), (4, 3))),
    Kernel(k3mm, _only_arrays((4, 6), (6, 5), (5, 3), (3, 7))),
    Kernel(atax, _only_arrays((5, 4), 4)),
    Kernel(bicg, _only_arrays((5, 4), 4, 5)),
    Kernel(mvt, _only_arrays(5, 5, 5, 5, (5, 5))),
    Kernel(gemver, _arrays((5, 5), *[5] * 8)),
    Kernel(gesummv, _arrays((5, 5), (5, 5), 5)),
    Kernel(symm, _arrays((4, 5), (4, 4), (4, 5))),
    Kernel(syrk, _arrays((5, 5), (5, 4))),
    Kernel(syr2k, _arrays((5, 5), (5, 4), (5, 4))),
    Kernel(trmm, _one_number((5, 5), (5, 4))),
    Kernel(doitgen, _doitgen),
]
