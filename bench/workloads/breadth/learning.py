"""Clusters, transport, flows and networks that are integrated."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload
from bench.workloads.breadth.mechanics import runge_kutta


def lloyd(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        n, d = x.shape
        k = 8
        centers = x[:8].copy()
        for _ in range(10):
            sums, counts = np.zeros((k, d)), np.zeros(k)
            for i in range(n):
                best, least = 0, 1e30
                for j in range(k):
                    square = 0.0
                    for l in range(d):
                        square += (x[i, l] - centers[j, l]) ** 2
                    if square < least:
                        least = square
                        best = j
                counts[best] += 1
                for l in range(d):
                    sums[best, l] += x[i, l]
            for j in range(k):
                if counts[j] > 0:
                    for l in range(d):
                        centers[j, l] = sums[j, l] / counts[j]
        return np.sum(centers)

    return program


def mixture(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, means: Any) -> Any:
        k = means.shape[0]
        scales, weights = np.ones(k), np.full(k, 1.0 / k)
        for _ in range(30):
            p = weights * np.exp(-0.5 * ((x[:, None] - means) / scales) ** 2) / scales
            r = p / np.sum(p, axis=1, keepdims=True)
            n = np.sum(r, axis=0)
            means = np.sum(r * x[:, None], axis=0) / n
            scales = np.sqrt(np.sum(r * (x[:, None] - means) ** 2, axis=0) / n) + 1e-3
            weights = n / x.shape[0]
        return np.sum(means * weights) + np.sum(scales)

    return program


def mixture_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, means: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            means, scales, weights = carry
            p = weights * np.exp(-0.5 * ((x[:, None] - means) / scales) ** 2) / scales
            r = p / np.sum(p, axis=1, keepdims=True)
            n = np.sum(r, axis=0)
            means = np.sum(r * x[:, None], axis=0) / n
            scales = np.sqrt(np.sum(r * (x[:, None] - means) ** 2, axis=0) / n) + 1e-3
            return (means, scales, n / x.shape[0]), None

        k = means.shape[0]
        start = means, np.ones(k), np.full(k, 1.0 / k)
        (means, scales, weights), _ = lib.scan(step, start, None, length=30)
        return np.sum(means * weights) + np.sum(scales)

    return program


def of_mixture(each: int, means: list[float]) -> tuple[Any, ...]:
    noise = normal(len(means), each) + 4.0 * np.arange(len(means))[:, None]
    return noise.ravel(), np.array(means)


def sinkhorn(lib: Library) -> Program:
    np = lib.np

    def program(cost: Any, a: Any, b: Any) -> Any:
        n, m = cost.shape
        kernel = np.exp(-cost / 0.1)
        u, v = np.ones(n), np.ones(m)
        for _ in range(60):
            u = a / (kernel @ v)
            v = b / (kernel.T @ u)
        return np.sum(u.reshape(n, 1) * kernel * v.reshape(1, m) * cost)

    return program


def sinkhorn_scan(lib: Library) -> Program:
    np = lib.np

    def program(cost: Any, a: Any, b: Any) -> Any:
        kernel = np.exp(-cost / 0.1)

        def step(carry: Any, _: Any) -> Any:
            _, v = carry
            u = a / (kernel @ v)
            return (u, b / (kernel.T @ u)), None

        start = np.ones_like(a), np.ones_like(b)
        (u, v), _ = lib.scan(step, start, None, length=60)
        return np.sum(u[:, None] * kernel * v[None, :] * cost)

    return program


def of_sinkhorn(size: int) -> tuple[Any, ...]:
    return uniform(size, size), np.full(size, 1.0 / size), np.full(size, 1.0 / size)


def coupling_flow(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, inner: Any, outer: Any) -> Any:
        density = 0.0
        for k in range(6):
            a, b = x[:, 0], x[:, 1]
            h = np.tanh(a[:, None] * inner[k])
            s, t = np.tanh(h @ outer[k, :, 0]), h @ outer[k, :, 1]
            x = np.stack([b * np.exp(s) + t, a], axis=1)
            density = density + np.sum(s)
        return 0.5 * np.sum(x * x) - density

    return program


def neural_ode(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, v: Any, x: Any) -> Any:
        for _ in range(20):
            k1 = np.tanh(x @ w) @ v
            k2 = np.tanh((x + 0.05 * k1) @ w) @ v
            k3 = np.tanh((x + 0.05 * k2) @ w) @ v
            k4 = np.tanh((x + 0.1 * k3) @ w) @ v
            x = x + 0.1 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return np.sum(x**2)

    return program


def neural_ode_scan(lib: Library) -> Program:
    np = lib.np

    def program(w: Any, v: Any, x: Any) -> Any:
        step = runge_kutta(lambda x: np.tanh(x @ w) @ v, 0.1)
        return np.sum(lib.scan(step, x, None, length=20)[0] ** 2)

    return program


WORKLOADS = [
    workload(
        "lloyd",
        "8 clusters of 500 points by Lloyd's method, 10 steps by loops",
        lloyd,
        None,
        (normal(500, 4),),
        (normal(12, 2),),
    ),
    workload(
        "mixture",
        "a mixture of 4 normal distributions fitted to 400 numbers, 30 steps",
        mixture,
        mixture_scan,
        of_mixture(100, [0.0, 3.0, 7.0, 13.0]),
        of_mixture(4, [0.0, 3.0]),
        (0, 1),
        refuses={"numba": "np.sum with keepdims"},
    ),
    workload(
        "sinkhorn",
        "optimal transport between 64 and 64 points by Sinkhorn's method, 60 steps",
        sinkhorn,
        sinkhorn_scan,
        of_sinkhorn(64),
        of_sinkhorn(3),
        (0,),
    ),
    workload(
        "coupling_flow",
        "the likelihood of 200 points under a flow of 6 coupling layers",
        coupling_flow,
        coupling_flow,
        (normal(200, 2), normal(6, 16), 0.3 * normal(6, 16, 2)),
        (normal(3, 2), normal(6, 2), 0.3 * normal(6, 2, 2)),
        (1, 2),
        refuses={"numba": "np.stack of a list"},
    ),
    workload(
        "neural_ode",
        "a network of 32 units as a differential equation: 16 points, 20 steps",
        neural_ode,
        neural_ode_scan,
        (0.3 * normal(4, 32), 0.3 * normal(32, 4), normal(16, 4)),
        (0.3 * normal(2, 3), 0.3 * normal(3, 2), normal(2, 2)),
        (0, 1),
    ),
]
