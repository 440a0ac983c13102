"""Networks, sequences, regressions and samplers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peer import Peer
from bench.peers.jax import Jax
from bench.peers.numba import Numba
from bench.peers.python import ValuesOnly
from bench.peers.wend import Wend
from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def gru(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def program(w: Any, u: Any, xs: Any) -> Any:
        n = u.shape[0]
        h, total = np.zeros((xs.shape[1], n), np.float32), np.float32(0.0)
        for k in range(xs.shape[0]):
            a, b = xs[k] @ w, h @ u
            r, z = sigmoid(a[:, :n] + b[:, :n]), sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
            h = z * h + (1 - z) * np.tanh(a[:, 2 * n :] + r * b[:, 2 * n :])
            total = total + np.sum(h * h)
        return total

    return program


def gru_scan(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def program(w: Any, u: Any, xs: Any) -> Any:
        n = u.shape[0]

        def step(h: Any, x: Any) -> Any:
            a, b = x @ w, h @ u
            r, z = sigmoid(a[:, :n] + b[:, :n]), sigmoid(a[:, n : 2 * n] + b[:, n : 2 * n])
            h = z * h + (1 - z) * np.tanh(a[:, 2 * n :] + r * b[:, 2 * n :])
            return h, np.sum(h * h)

        return np.sum(lib.scan(step, np.zeros((xs.shape[1], n), np.float32), xs)[1])

    return program


def of_gru(steps: int, batch: int, size: int) -> tuple[Any, ...]:
    single = np.float32
    return (
        0.1 * normal(size, 3 * size, dtype=single),
        0.1 * normal(size, 3 * size, dtype=single),
        normal(steps, batch, size, dtype=single),
    )


def layers(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, ws: Any) -> Any:
        for k in range(20):
            x = np.tanh(x @ ws[k])
        return np.sum(x * x)

    return program


def layers_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, ws: Any) -> Any:
        return np.sum(lib.scan(lambda x, w: (np.tanh(x @ w), None), x, ws)[0] ** 2)

    return program


def attention(lib: Library) -> Program:
    np = lib.np

    def program(q: Any, k: Any, v: Any) -> Any:
        scores = q @ np.swapaxes(k, 1, 2) / 8.0
        weights = np.exp(scores - np.max(scores, axis=2, keepdims=True))
        weights = weights / np.sum(weights, axis=2, keepdims=True)
        return np.sum((weights @ v) ** 2)

    return program


def convolution(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, w: Any) -> Any:
        rows = x.shape[0] - 4
        y = x[0:rows] @ w[0]
        for k in range(1, 5):
            y = y + x[k : k + rows] @ w[k]
        y = np.maximum(y, 0.0)
        return np.sum(y * y)

    return program


def process(lib: Library) -> Program:
    np = lib.np

    def program(theta: Any, xs: Any, ys: Any) -> Any:
        away = xs[:, None] - xs
        k = theta[0] * np.exp(-away * away * theta[1]) + theta[2] * np.eye(xs.shape[0])
        lower = np.linalg.cholesky(k)
        solved = np.linalg.solve(k, ys)
        return ys @ solved + 2.0 * np.sum(np.log(np.diag(lower)))

    return program


def logistic(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def program(x: Any, y: Any) -> Any:
        w = np.zeros(x.shape[1])
        for _ in range(8):
            p = sigmoid(x @ w)
            s = p * (1.0 - p)
            hessian = x.T @ (x * s.reshape(-1, 1)) + 0.1 * np.eye(x.shape[1])
            w = w + np.linalg.solve(hessian, x.T @ (y - p) - 0.1 * w)
        return np.sum(w * w)

    return program


def logistic_scan(lib: Library) -> Program:
    np, sigmoid = lib.np, lib.sigmoid

    def program(x: Any, y: Any) -> Any:
        def step(w: Any, _: Any) -> Any:
            p = sigmoid(x @ w)
            s = p * (1.0 - p)
            hessian = x.T @ (x * s.reshape(-1, 1)) + 0.1 * np.eye(x.shape[1])
            return w + np.linalg.solve(hessian, x.T @ (y - p) - 0.1 * w), None

        return np.sum(lib.scan(step, np.zeros(x.shape[1]), None, length=8)[0] ** 2)

    return program


def modes(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, steps: Any) -> Any:
        total, a = 0.0, 0.5 * (a + a.T)
        for k in range(steps):
            values, vectors = np.linalg.eigh(a + 0.1 * k * np.eye(5))
            total = total + np.sum(np.log(values)) + np.sum(vectors[:, 4] ** 4)
        return total

    return program


def modes_scan(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, steps: Any) -> Any:
        a = 0.5 * (a + a.T)

        def step(total: Any, k: Any) -> Any:
            values, vectors = np.linalg.eigh(a + 0.1 * k * np.eye(5))
            return total + np.sum(np.log(values)) + np.sum(vectors[:, 4] ** 4), None

        return lib.scan(step, 0.0, np.arange(50))[0]

    return program


def definite(size: int) -> Any:
    root = normal(size, size)
    return root @ root.T + size * np.eye(size)


def langevin(peer: Peer, measure: str) -> Program:
    """A Metropolis-adjusted Langevin sampler of a banana, each with its own random numbers."""
    # wend's and JAX's keys are values, Numba draws from NumPy's generator.
    if isinstance(peer, Jax):
        return _langevin_in_jax(peer.jax)
    helper = peer.njit if isinstance(peer, Numba) else _as_it_is

    def gradient(x: Any, y: Any) -> Any:
        return -x + 4.0 * x * (y - x * x), -2.0 * (y - x * x)

    gradient = helper(gradient)

    def propose(x: Any, y: Any, fx: Any, fy: Any, e: Any, f: Any, u: Any) -> Any:
        at = 0.5 * x * x + (y - x * x) ** 2
        nx, ny = x + 0.05 * fx + 0.31622776601683794 * e, y + 0.05 * fy + 0.31622776601683794 * f
        to = 0.5 * nx * nx + (ny - nx * nx) ** 2
        gx, gy = gradient(nx, ny)
        back = (x - nx - 0.05 * gx) ** 2 + (y - ny - 0.05 * gy) ** 2
        chance = at - to + 0.5 * (e * e + f * f) - back / 0.2
        if np.log(u) < chance:
            return nx, ny, gx, gy
        return x, y, fx, fy

    propose = helper(propose)
    if isinstance(peer, Wend):
        random = peer.wend.random

        def with_keys(seed: Any, steps: Any) -> Any:
            key = random.key(seed)
            x, y, total = 0.1, 0.1, 0.0
            fx, fy = gradient(x, y)
            for _ in range(steps):
                key, first, second = random.split(key, 3)
                noise = random.normal(first, (2,))
                u = random.uniform(second)
                x, y, fx, fy = propose(x, y, fx, fy, noise[0], noise[1], u)
                total = total + x
            return total

        made: Program = peer.wend.function(with_keys)
        return made

    def program(seed: Any, steps: Any) -> Any:
        np.random.seed(seed)  # noqa: NPY002
        x, y, total = 0.1, 0.1, 0.0
        fx, fy = gradient(x, y)
        for _ in range(steps):
            e, f = np.random.normal(), np.random.normal()  # noqa: NPY002
            u = np.random.random()  # noqa: NPY002
            x, y, fx, fy = propose(x, y, fx, fy, e, f, u)
            total = total + x
        return total

    assert isinstance(peer, ValuesOnly)
    return peer.compiled(program)


def _as_it_is(function: Any) -> Any:
    return function


def _langevin_in_jax(jax: Any) -> Program:
    np = jax.numpy

    def energy(x: Any) -> Any:
        return 0.5 * x[0] ** 2 + (x[1] - x[0] ** 2) ** 2

    slope = jax.grad(energy)

    def step(_: Any, carry: Any) -> Any:
        key, x, total = carry
        key, first, second = jax.random.split(key, 3)
        noise = jax.random.normal(first, (2,), np.float64)
        new = x - 0.05 * slope(x) + 0.31622776601683794 * noise
        back = np.sum((x - new + 0.05 * slope(new)) ** 2)
        chance = energy(x) - energy(new) + 0.5 * np.sum(noise**2) - back / 0.2
        x = np.where(np.log(jax.random.uniform(second, dtype=np.float64)) < chance, new, x)
        return key, x, total + x[0]

    def program(seed: Any, steps: Any) -> Any:
        start = jax.random.key(seed.astype(int)), np.full(2, 0.1), 0.0
        return jax.lax.fori_loop(0, steps.astype(int), step, start)[2]

    made: Program = jax.jit(program)
    return made


WORKLOADS = [
    workload(
        "gru",
        "a GRU in f32: 16 sequences of 50 steps, 64 units",
        gru,
        gru_scan,
        of_gru(50, 16, 64),
        of_gru(3, 2, 4),
        (0, 1),
        tolerance=1e-3,
    ),
    workload(
        "layers",
        "20 layers tanh(x @ w) of 64 units, 16 rows",
        layers,
        layers_scan,
        (normal(16, 64), 0.2 * normal(20, 64, 64)),
        (normal(2, 3), 0.2 * normal(20, 3, 3)),
        (1,),
    ),
    workload(
        "attention",
        "attention of 4 heads, 64 positions of 32 numbers",
        attention,
        attention,
        (normal(4, 64, 32), 0.3 * normal(4, 64, 32)[::-1].copy(), uniform(4, 64, 32)),
        (normal(2, 3, 2), 0.3 * normal(2, 3, 2)[::-1].copy(), uniform(2, 3, 2)),
        (0, 1, 2),
    ),
    workload(
        "convolution",
        "a convolution of width 5 as shifted products: 200 positions, 16 to 32 channels",
        convolution,
        convolution,
        (normal(200, 16), 0.1 * normal(5, 16, 32)),
        (normal(7, 2), 0.1 * normal(5, 2, 3)),
        (0, 1),
    ),
    workload(
        "process",
        "the likelihood of a Gaussian process of 60 points",
        process,
        process,
        (np.array([1.0, 0.7, 0.3]), normal(60), uniform(60)),
        (np.array([1.0, 0.7, 0.3]), normal(4), uniform(4)),
        (0,),
    ),
    workload(
        "logistic",
        "logistic regression by Newton's method: 200 rows of 4 numbers, 8 steps",
        logistic,
        logistic_scan,
        (normal(200, 4), (uniform(200) < 0.5).astype(np.float64)),
        (normal(9, 4), (uniform(9) < 0.5).astype(np.float64)),
        (0,),
    ),
    workload(
        "modes",
        "eigenvalues and vectors of 50 matrices of 5 × 5, one by one",
        modes,
        modes_scan,
        (definite(5), 50),
        (definite(5), 50),
        (0,),
    ),
    workload(
        "langevin",
        "a Metropolis-adjusted Langevin sampler, 1000 steps, random numbers drawn in the loop",
        lambda lib: lambda seed, steps: 0.0,
        None,
        (7, 1000),
        (7, 5),
        own=dict.fromkeys(("wend", "python", "numba", "jax"), langevin),
        checked=False,
    ),
]
