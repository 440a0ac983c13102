"""Flows, images and cells on grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import integers, normal, uniform, workload


def shallow_water(lib: Library) -> Program:
    np = lib.np

    def program(height: Any) -> Any:
        h = height.copy()
        u, v = np.zeros(h.shape), np.zeros(h.shape)
        for _ in range(60):
            u[1:-1, :] -= 0.1 * 9.81 * (h[2:, :] - h[:-2, :])
            v[:, 1:-1] -= 0.1 * 9.81 * (h[:, 2:] - h[:, :-2])
            flow = u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2]
            h[1:-1, 1:-1] -= 0.01 * flow
        return np.sum(h * h)

    return program


def shallow_water_scan(lib: Library) -> Program:
    np = lib.np

    def program(height: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            h, u, v = carry
            u = u.at[1:-1, :].add(-0.1 * 9.81 * (h[2:, :] - h[:-2, :]))
            v = v.at[:, 1:-1].add(-0.1 * 9.81 * (h[:, 2:] - h[:, :-2]))
            flow = u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2]
            return (h.at[1:-1, 1:-1].add(-0.01 * flow), u, v), None

        still = np.zeros_like(height)
        (h, _, _), _ = lib.scan(step, (height, still, still), None, length=60)
        return np.sum(h * h)

    return program


def euler(lib: Library) -> Program:
    np = lib.np

    def program(density: Any, pressure: Any) -> Any:
        r, m, e = density.copy(), np.zeros(density.shape), pressure / 0.4
        for _ in range(100):
            u = m / r
            p = 0.4 * (e - 0.5 * r * u * u)
            speed = np.abs(u) + np.sqrt(1.4 * p / r)
            fastest = np.maximum(speed[1:], speed[:-1])
            f0, f1, f2 = m, m * u + p, u * (e + p)
            g0 = 0.5 * (f0[1:] + f0[:-1]) - 0.5 * fastest * (r[1:] - r[:-1])
            g1 = 0.5 * (f1[1:] + f1[:-1]) - 0.5 * fastest * (m[1:] - m[:-1])
            g2 = 0.5 * (f2[1:] + f2[:-1]) - 0.5 * fastest * (e[1:] - e[:-1])
            r[1:-1] -= 0.2 * (g0[1:] - g0[:-1])
            m[1:-1] -= 0.2 * (g1[1:] - g1[:-1])
            e[1:-1] -= 0.2 * (g2[1:] - g2[:-1])
        return np.sum(r**2)

    return program


def euler_scan(lib: Library) -> Program:
    np = lib.np

    def step(q: Any, _: Any) -> Any:
        u = q[1] / q[0]
        p = 0.4 * (q[2] - 0.5 * q[0] * u * u)
        f = np.stack([q[1], q[1] * u + p, u * (q[2] + p)])
        speed = np.abs(u) + np.sqrt(1.4 * p / q[0])
        fastest = np.maximum(speed[1:], speed[:-1])
        g = 0.5 * (f[:, 1:] + f[:, :-1]) - 0.5 * fastest * (q[:, 1:] - q[:, :-1])
        return q.at[:, 1:-1].add(-0.2 * (g[:, 1:] - g[:, :-1])), None

    def program(density: Any, pressure: Any) -> Any:
        start = np.stack([density, np.zeros_like(density), pressure / 0.4])
        return np.sum(lib.scan(step, start, None, length=100)[0][0] ** 2)

    return program


def of_euler(size: int) -> tuple[Any, ...]:
    left = np.arange(size) < size // 2
    return np.where(left, 1.0, 0.125), np.where(left, 1.0, 0.1)


def limiter(lib: Library) -> Program:
    np = lib.np

    def program(u: Any) -> Any:
        n = u.shape[0]
        u = u.copy()
        for _ in range(80):
            flow = np.zeros(n)
            for i in range(n):
                a = u[i] - u[i - 1]
                b = u[(i + 1) % n] - u[i]
                if a * b <= 0.0:
                    slope = 0.0
                elif abs(a) < abs(b):
                    slope = a
                else:
                    slope = b
                flow[i] = u[i] + 0.25 * slope
            new = u.copy()
            for i in range(n):
                new[i] = u[i] - 0.5 * (flow[i] - flow[i - 1])
            u = new
        return np.sum(u * u)

    return program


def limiter_scan(lib: Library) -> Program:
    np = lib.np

    def step(u: Any, _: Any) -> Any:
        a, b = u - np.roll(u, 1), np.roll(u, -1) - u
        slope = np.where(a * b <= 0.0, 0.0, np.where(np.abs(a) < np.abs(b), a, b))
        flow = u + 0.25 * slope
        return u - 0.5 * (flow - np.roll(flow, 1)), None

    return lambda u: np.sum(lib.scan(step, u, None, length=80)[0] ** 2)


def of_limiter(size: int) -> tuple[Any, ...]:
    return (np.sin(np.linspace(0.0, 6.28, size, endpoint=False)) + 0.1 * uniform(size),)


def burgers(lib: Library) -> Program:
    np = lib.np

    def program(u: Any) -> Any:
        for _ in range(200):
            upwind = np.where(u > 0.0, u * (u - np.roll(u, 1)), u * (np.roll(u, -1) - u))
            u = u - 0.1 * upwind + 0.05 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1))
        return np.sum(u**2)

    return program


def burgers_scan(lib: Library) -> Program:
    np = lib.np

    def step(u: Any, _: Any) -> Any:
        upwind = np.where(u > 0.0, u * (u - np.roll(u, 1)), u * (np.roll(u, -1) - u))
        return u - 0.1 * upwind + 0.05 * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)), None

    return lambda u: np.sum(lib.scan(step, u, None, length=200)[0] ** 2)


def correlate(lib: Library) -> Program:
    def program(x: Any, w: Any) -> Any:
        n, m = x.shape
        total = 0.0
        for i in range(n - 4):
            for j in range(m - 4):
                s = 0.0
                for a in range(5):
                    for b in range(5):
                        s += x[i + a, j + b] * w[a, b]
                total += s * s
        return total

    return program


def correlate_in_jax(lib: Library) -> Program:
    from jax.lax import conv_general_dilated

    def program(x: Any, w: Any) -> Any:
        y = conv_general_dilated(x[None, None], w[None, None], (1, 1), "VALID")
        return lib.np.sum(y * y)

    return program


def bilateral(lib: Library) -> Program:
    np = lib.np

    def program(x: Any) -> Any:
        n, m = x.shape
        y = np.zeros((n, m))
        for i in range(2, n - 2):
            for j in range(2, m - 2):
                s, mass = 0.0, 0.0
                for a in range(-2, 3):
                    for b in range(-2, 3):
                        off = x[i + a, j + b] - x[i, j]
                        weight = np.exp(-(a * a + b * b) / 4.0 - off**2 / 0.1)
                        s += weight * x[i + a, j + b]
                        mass += weight
                y[i, j] = s / mass
        return np.sum(y)

    return program


def life(lib: Library) -> Program:
    np = lib.np

    def program(cells: Any) -> Any:
        for _ in range(20):
            around = np.zeros_like(cells)
            for a in (-1, 0, 1):
                for b in (-1, 0, 1):
                    if a != 0 or b != 0:
                        around = around + np.roll(np.roll(cells, a, 0), b, 1)
            cells = np.where((around == 3) | ((cells == 1) & (around == 2)), 1, 0)
        return np.sum(cells)

    return program


WORKLOADS = [
    workload(
        "shallow_water",
        "shallow water on 40 × 40 points, 60 steps by slices",
        shallow_water,
        shallow_water_scan,
        (1.0 + 0.1 * uniform(40, 40),),
        (1.0 + 0.1 * uniform(4, 5),),
        (0,),
    ),
    workload(
        "euler",
        "Sod's shock tube of 200 cells by Rusanov's flux, 100 steps",
        euler,
        euler_scan,
        of_euler(200),
        of_euler(6),
        (0, 1),
    ),
    workload(
        "limiter",
        "advection with a slope limiter on 128 cells, 80 steps cell by cell",
        limiter,
        limiter_scan,
        of_limiter(128),
        of_limiter(5),
        (0,),
    ),
    workload(
        "burgers",
        "Burgers' equation on 500 points, 200 upwind steps by np.roll",
        burgers,
        burgers_scan,
        (np.sin(np.linspace(0.1, 6.1, 500)),),
        (np.sin(np.linspace(0.1, 6.1, 5)),),
        (0,),
    ),
    workload(
        "correlate",
        "a filter of 5 × 5 weights over 40 × 40 pixels, by loops",
        correlate,
        correlate_in_jax,
        (normal(40, 40), normal(5, 5, seed=1)),
        (normal(6, 7), normal(5, 5, seed=1)),
        (0, 1),
    ),
    workload(
        "bilateral",
        "a bilateral filter of 32 × 32 pixels",
        bilateral,
        None,
        (uniform(32, 32),),
        (uniform(6, 5),),
    ),
    workload(
        "life",
        "the Game of Life on 64 × 64 cells, 20 generations by np.roll",
        life,
        None,
        (integers(0, 2, 64, 64),),
        (integers(0, 2, 5, 6, seed=1),),
        refuses={"numba": "np.roll along an axis"},
    ),
]
