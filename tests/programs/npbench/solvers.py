"""PolyBench: linear solvers and decompositions."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def trisolv(L, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def lu(A):
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]


def ludcmp(A, b):
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    for i in range(A.shape[0]):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(A.shape[0] - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def cholesky2(A):
    A[:] = np.linalg.cholesky(A) + np.triu(A, k=1)


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def gramschmidt(A):
    Q = np.zeros_like(A)
    R = np.zeros((A.shape[1], A.shape[1]), dtype=A.dtype)
    for k in range(A.shape[1]):
        norm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(norm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def _definite(rng, dtype, n=6):
    root = rng.normal(size=(n, n))
    return (root @ root.T + n * np.eye(n)).astype(dtype)


def _triangle(rng, dtype):
    lower = np.tril(rng.normal(size=(6, 6))) + 4 * np.eye(6)
    return lower.astype(dtype), np.zeros(6, dtype), rng.normal(size=6).astype(dtype)


def _system(rng, dtype):
    return _definite(rng, dtype), rng.normal(size=6).astype(dtype)


def _correlations(rng, dtype):
    return [(0.5 ** np.arange(1, 8) + 0.02 * rng.normal(size=7)).astype(dtype)]


KERNELS = [
    Kernel(trisolv, _triangle),
    Kernel(lu, lambda rng, dtype: [_definite(rng, dtype)]),
    Kernel(ludcmp, _system),
    Kernel(cholesky, lambda rng, dtype: [_definite(rng, dtype)]),
    Kernel(cholesky2, lambda rng, dtype: [_definite(rng, dtype)]),
    Kernel(durbin, _correlations),
    Kernel(gramschmidt, lambda rng, dtype: [rng.normal(size=(6, 4)).astype(dtype)]),
]
