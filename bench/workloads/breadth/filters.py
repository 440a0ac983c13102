"""Filters, hidden Markov models and likelihoods of series."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def kalman(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, q: Any, h: Any, r: Any, ys: Any) -> Any:
        size = a.shape[0]
        x, p, total = np.zeros(size), np.eye(size), 0.0
        for k in range(ys.shape[0]):
            x, p = a @ x, a @ p @ a.T + q
            s = h @ p @ h.T + r
            e = ys[k] - h @ x
            inverse = np.linalg.inv(s)
            gain = p @ h.T @ inverse
            total = total - 0.5 * (e @ inverse @ e + np.log(np.linalg.det(s)))
            x, p = x + gain @ e, p - gain @ h @ p
        return total

    return program


def kalman_scan(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, q: Any, h: Any, r: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            x, p, total = carry
            x, p = a @ x, a @ p @ a.T + q
            s = h @ p @ h.T + r
            e = y - h @ x
            inverse = np.linalg.inv(s)
            gain = p @ h.T @ inverse
            total = total - 0.5 * (e @ inverse @ e + np.log(np.linalg.det(s)))
            return (x + gain @ e, p - gain @ h @ p, total), None

        size = a.shape[0]
        return lib.scan(step, (np.zeros(size), np.eye(size), 0.0), ys)[0][2]

    return program


def of_kalman(count: int) -> tuple[Any, ...]:
    a = 0.9 * np.eye(6) + 0.05 * normal(6, 6)
    return a, 0.1 * np.eye(6), normal(2, 6), np.eye(2), normal(count, 2)


def hmm(lib: Library) -> Program:
    np = lib.np

    def program(moves: Any, emits: Any, seen: Any) -> Any:
        alpha = emits[:, seen[0]]
        for k in range(1, seen.shape[0]):
            paths = alpha.reshape(-1, 1) + moves
            top = np.max(paths)
            alpha = top + np.log(np.sum(np.exp(paths - top), axis=0)) + emits[:, seen[k]]
        top = np.max(alpha)
        return top + np.log(np.sum(np.exp(alpha - top)))

    return program


def hmm_scan(lib: Library) -> Program:
    np = lib.np

    def program(moves: Any, emits: Any, seen: Any) -> Any:
        def step(alpha: Any, k: Any) -> Any:
            paths = alpha.reshape(-1, 1) + moves
            top = np.max(paths)
            return top + np.log(np.sum(np.exp(paths - top), axis=0)) + emits[:, k], None

        alpha, _ = lib.scan(step, emits[:, seen[0]], seen[1:])
        top = np.max(alpha)
        return top + np.log(np.sum(np.exp(alpha - top)))

    return program


def of_hmm(states: int, count: int) -> tuple[Any, ...]:
    seen = np.random.default_rng(3).integers(0, 8, count)
    return np.log(uniform(states, states)), np.log(uniform(states, 8)), seen


def garch(lib: Library) -> Program:
    np = lib.np

    def program(theta: Any, ys: Any) -> Any:
        variance, total = theta[0], 0.0
        for y in ys:
            total = total + np.log(variance) + y * y / variance
            variance = theta[0] + theta[1] * y * y + theta[2] * variance
        return total

    return program


def garch_scan(lib: Library) -> Program:
    np = lib.np

    def program(theta: Any, ys: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            variance, total = carry
            total = total + np.log(variance) + y * y / variance
            return (theta[0] + theta[1] * y * y + theta[2] * variance, total), None

        return lib.scan(step, (theta[0], 0.0), ys)[0][1]

    return program


def particles(lib: Library) -> Program:
    np = lib.np

    def program(ys: Any, noise: Any, offsets: Any) -> Any:
        x, total = noise[0], 0.0
        count = x.shape[0]
        for k in range(ys.shape[0]):
            x = 0.5 * x + 25.0 * x / (1.0 + x * x) + noise[k]
            off = ys[k] - x * x / 20.0
            weights = np.exp(-0.5 * off * off) + 1e-300
            mass = np.sum(weights)
            total = total + np.log(mass / count)
            edges = np.cumsum(weights) / mass
            where = (np.arange(count) + offsets[k]) / count
            x = x[np.minimum(np.searchsorted(edges, where), count - 1)]
        return total

    return program


def particles_scan(lib: Library) -> Program:
    np = lib.np

    def program(ys: Any, noise: Any, offsets: Any) -> Any:
        count = noise.shape[1]

        def step(carry: Any, seen: Any) -> Any:
            x, total = carry
            y, drawn, offset = seen
            x = 0.5 * x + 25.0 * x / (1.0 + x * x) + drawn
            off = y - x * x / 20.0
            weights = np.exp(-0.5 * off * off) + 1e-300
            mass = np.sum(weights)
            edges = np.cumsum(weights) / mass
            where = (np.arange(count) + offset) / count
            x = x[np.minimum(np.searchsorted(edges, where), count - 1)]
            return (x, total + np.log(mass / count)), None

        return lib.scan(step, (noise[0], 0.0), (ys, noise, offsets))[0][1]

    return program


THETA = np.array([0.1, 0.1, 0.8])
WORKLOADS = [
    workload(
        "kalman",
        "the likelihood of a Kalman filter of 6 states, 200 steps",
        kalman,
        kalman_scan,
        of_kalman(200),
        of_kalman(4),
        (0, 1, 3),
    ),
    workload(
        "hmm",
        "the likelihood of a hidden Markov model of 16 states, 200 steps",
        hmm,
        hmm_scan,
        of_hmm(16, 200),
        of_hmm(4, 5),
        (0, 1),
    ),
    workload(
        "garch",
        "the likelihood of GARCH(1, 1), 2000 steps of scalars",
        garch,
        garch_scan,
        (THETA, normal(2000)),
        (THETA, normal(5)),
        (0,),
    ),
    workload(
        "particles",
        "a filter of 500 particles, resampled at each of 50 steps",
        particles,
        particles_scan,
        (normal(50), 3.0 * normal(50, 500), uniform(50)),
        (normal(3), 3.0 * normal(3, 7), uniform(3)),
    ),
]
