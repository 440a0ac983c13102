"""The Gaussian mixture of ADBench (Srajer, Kukelova and Fitzgibbon, 2018): its log-likelihood.

Each inverse covariance is QᵀQ, and Q a lower triangle: logarithms of its diagonal, then what is
below it, row by row. The prior is Wishart's, with gamma = 1 and m = 0, less what is constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

PEERS = ("wend", "python", "jax", "torch", "tensorflow", "autograd")
POINTS, MIXTURES = 1000, 25


def plain(lib: Library) -> Program:
    np, lower, rows = lib.np, lib.lower, lib.rows

    def log_sum_exp(x: Any) -> Any:
        largest = np.max(x, axis=-1)
        return largest + np.log(np.sum(np.exp(x - largest[..., None]), axis=-1))

    def program(alphas: Any, means: Any, factors: Any, points: Any) -> Any:
        d = points.shape[1]
        logs, entries = factors[:, :d], factors[:, d:]
        diagonals, sums = np.exp(logs), np.sum(logs, axis=1)
        centred = points[:, None, :] - means
        turned = diagonals * centred + np.einsum("kij,nkj->nki", lower(entries, d), centred)
        terms = alphas + sums - 0.5 * np.sum(turned * turned, axis=2)
        prior = 0.5 * (np.sum(diagonals * diagonals) + np.sum(entries * entries))
        return np.sum(log_sum_exp(terms)) - rows(points) * log_sum_exp(alphas) + prior

    return program


def arguments(points: int, d: int, mixtures: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(25)
    return (
        rng.standard_normal(mixtures),
        rng.standard_normal((mixtures, d)),
        0.5 * rng.standard_normal((mixtures, d * (d + 1) // 2)),
        rng.standard_normal((points, d)),
    )


def workload(d: int) -> Workload:
    return Workload(
        name=f"gmm_{d}",
        title=f"ADBench's GMM: {POINTS} points of {d} numbers, {MIXTURES} Gaussians",
        arguments=arguments(POINTS, d, MIXTURES),
        small=arguments(7, 3, 2),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=plain,
        differentiable=(0, 1, 2),
        answer=differences(plain(LIBRARY), (0, 1, 2)),
        peers=PEERS,
        tolerance=1e-6,
    )


WORKLOADS = [workload(10), workload(64)]
