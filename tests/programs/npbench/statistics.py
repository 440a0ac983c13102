"""PolyBench: data mining; and the covariance that NumPy has."""

from __future__ import annotations

import numpy as np

from tests.programs.npbench.kernel import Kernel


def correlation(M, float_n, data):
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(M, dtype=data.dtype)
    for i in range(M - 1):
        corr[i + 1 : M, i] = corr[i, i + 1 : M] = data[:, i] @ data[:, i + 1 : M]
    return corr


def covariance(M, float_n, data):
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((M, M), dtype=data.dtype)
    for i in range(M):
        cov[i:M, i] = cov[i, i:M] = data[:, i] @ data[:, i:M] / (float_n - 1.0)
    return cov


def covariance2(M, float_n, data):
    return np.cov(np.transpose(data))


def _data(rng, dtype):
    return 4, np.dtype(dtype).type(7.0), rng.normal(size=(7, 4)).astype(dtype)


KERNELS = [
    Kernel(correlation, _data),
    Kernel(covariance, _data),
    Kernel(covariance2, _data),
]
