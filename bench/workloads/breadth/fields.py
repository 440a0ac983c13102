"""Fields on grids, bodies, splines and polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def heat(lib: Library) -> Program:
    np = lib.np

    def program(u: Any, rate: Any, steps: Any) -> Any:
        u = u.copy()
        for _ in range(steps):
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] += rate * (around - 4.0 * u[1:-1, 1:-1])
        return np.sum(u * u)

    return program


def heat_scan(lib: Library) -> Program:
    np = lib.np

    def program(u: Any, rate: Any, steps: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(rate * (around - 4.0 * u[1:-1, 1:-1])), None

        return np.sum(lib.scan(step, u, None, length=STEPS[u.shape[0]])[0] ** 2)

    return program


STEPS = {64: 50, 5: 3}  # JAX must know them before the call


def waves(lib: Library) -> Program:
    np = lib.np

    def program(u: Any, speed: Any, steps: Any) -> Any:
        before = u
        for _ in range(steps):
            around = np.roll(u, 1) + np.roll(u, -1) - 2.0 * u
            u, before = 2.0 * u - before + speed * around, u
        return np.sum(u * u)

    return program


def waves_scan(lib: Library) -> Program:
    np = lib.np

    def program(u: Any, speed: Any, steps: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            u, before = carry
            around = np.roll(u, 1) + np.roll(u, -1) - 2.0 * u
            return (2.0 * u - before + speed * around, u), None

        (u, _), _ = lib.scan(step, (u, u), None, length=WAVES[u.shape[0]])
        return np.sum(u * u)

    return program


WAVES = {1000: 100, 6: 3}


def schroedinger(lib: Library) -> Program:
    np = lib.np

    def program(potential: Any, start: Any, momenta: Any, steps: Any) -> Any:
        psi = start + 0j
        turn = np.exp(-0.005j * potential)
        drift = np.exp(-0.005j * momenta * momenta)
        for _ in range(steps):
            psi = turn * np.fft.ifft(drift * np.fft.fft(turn * psi))
        return np.sum(np.abs(psi[: potential.shape[0] // 2]) ** 2)

    return program


def schroedinger_scan(lib: Library) -> Program:
    np = lib.np

    def program(potential: Any, start: Any, momenta: Any, steps: Any) -> Any:
        turn = np.exp(-0.005j * potential)
        drift = np.exp(-0.005j * momenta * momenta)

        def step(psi: Any, _: Any) -> Any:
            return turn * np.fft.ifft(drift * np.fft.fft(turn * psi)), None

        psi, _ = lib.scan(step, start + 0j, None, length=20 if potential.shape[0] > 99 else 2)
        return np.sum(np.abs(psi[: potential.shape[0] // 2]) ** 2)

    return program


def of_schroedinger(size: int, steps: int) -> tuple[Any, ...]:
    return uniform(size), normal(size), np.fft.fftfreq(size, 1.0 / size) / 4.0, steps


def bodies(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, v: Any, m: Any, steps: Any) -> Any:
        for _ in range(steps):
            away = x[:, None, :] - x[None, :, :]
            squares = np.sum(away * away, axis=2) + 0.01
            pull = away * (squares**-1.5 * m)[:, :, None]
            v = v - 0.001 * np.sum(pull, axis=1)
            x = x + 0.001 * v
        return np.sum(x * x)

    return program


def bodies_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, v: Any, m: Any, steps: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            x, v = carry
            away = x[:, None, :] - x[None, :, :]
            squares = np.sum(away * away, axis=2) + 0.01
            v = v - 0.001 * np.sum(away * (squares**-1.5 * m)[:, :, None], axis=1)
            return (x + 0.001 * v, v), None

        return np.sum(lib.scan(step, (x, v), None, length=20 if x.shape[0] > 9 else 2)[0][0] ** 2)

    return program


def of_bodies(count: int, steps: int) -> tuple[Any, ...]:
    return normal(count, 3), 0.1 * uniform(count, 3), uniform(count), steps


def tableau(lib: Library) -> Program:
    np = lib.np

    def program(y: Any, a: Any, b: Any, steps: Any) -> Any:
        y = y.copy()
        k = np.zeros((4, 3))
        for _ in range(steps):
            for s in range(4):
                at = y.copy()
                for r in range(s):
                    for i in range(3):
                        at[i] += 0.01 * a[s, r] * k[r, i]
                k[s, 0] = 10.0 * (at[1] - at[0])
                k[s, 1] = at[0] * (28.0 - at[2]) - at[1]
                k[s, 2] = at[0] * at[1] - 8.0 / 3.0 * at[2]
            for s in range(4):
                for i in range(3):
                    y[i] += 0.01 * b[s] * k[s, i]
        return y[0] + y[1] + y[2]

    return program


def thomas(lib: Library) -> Program:
    np = lib.np

    def program(low: Any, mid: Any, up: Any, right: Any) -> Any:
        n = mid.shape[0]
        c, d = np.zeros(n), np.zeros(n)
        c[0], d[0] = up[0] / mid[0], right[0] / mid[0]
        for k in range(1, n):
            pivot = mid[k] - low[k] * c[k - 1]
            c[k] = up[k] / pivot
            d[k] = (right[k] - low[k] * d[k - 1]) / pivot
        x = d.copy()
        for k in range(n - 2, -1, -1):
            x[k] = d[k] - c[k] * x[k + 1]
        return np.sum(x * x)

    return program


def thomas_scan(lib: Library) -> Program:
    np = lib.np

    def program(low: Any, mid: Any, up: Any, right: Any) -> Any:
        def down(carry: Any, row: Any) -> Any:
            c, d = carry
            a, b, u, r = row
            pivot = b - a * c
            found = u / pivot, (r - a * d) / pivot
            return found, found

        def back(x: Any, row: Any) -> Any:
            c, d = row
            return d - c * x, d - c * x

        _, (c, d) = lib.scan(down, (0.0, 0.0), (low.at[0].set(0.0), mid, up, right))
        _, x = lib.scan(back, 0.0, (c.at[-1].set(0.0), d), reverse=True)
        return np.sum(x * x)

    return program


def of_thomas(size: int) -> tuple[Any, ...]:
    return uniform(size), 3.0 + uniform(size), uniform(size)[::-1].copy(), normal(size)


def spline(lib: Library) -> Program:
    np = lib.np

    def program(knots: Any, coefficients: Any, xs: Any) -> Any:
        at = np.searchsorted(knots, xs) - 1
        t = xs - knots[at]
        c = coefficients
        y = c[0][at] + t * (c[1][at] + t * (c[2][at] + t * c[3][at]))
        return np.sum(y * y)

    return program


def of_spline(count: int) -> tuple[Any, ...]:
    return np.linspace(-0.01, 1.01, 33), normal(4, 33), uniform(count)


def horner(lib: Library) -> Program:
    np = lib.np

    def program(coefficients: Any, xs: Any) -> Any:
        y = np.zeros_like(xs)
        for k in range(42):
            y = y * xs + coefficients[k]
        return np.sum(y)

    return program


def horner_scan(lib: Library) -> Program:
    np = lib.np

    def program(coefficients: Any, xs: Any) -> Any:
        return np.sum(lib.scan(lambda y, c: (y * xs + c, None), np.zeros_like(xs), coefficients)[0])

    return program


def bisections(lib: Library) -> Program:
    np = lib.np

    def program(goals: Any) -> Any:
        out = np.zeros_like(goals)
        for k in range(goals.shape[0]):
            low, high = 0.0, 4.0
            for _ in range(40):
                middle = 0.5 * (low + high)
                if middle * np.exp(middle) < goals[k]:
                    low = middle
                else:
                    high = middle
            out[k] = 0.5 * (low + high)
        return out

    return program


def bisections_scan(lib: Library) -> Program:
    np = lib.np

    def program(goals: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            low, high = carry
            middle = 0.5 * (low + high)
            less = middle * np.exp(middle) < goals
            return (np.where(less, middle, low), np.where(less, high, middle)), None

        start = np.zeros_like(goals), np.full_like(goals, 4.0)
        low, high = lib.scan(step, start, None, length=40)[0]
        return 0.5 * (low + high)

    return program


TABLEAU = np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]])
WORKLOADS = [
    workload(
        "heat",
        "heat on 64 × 64 points, 50 steps by slices",
        heat,
        heat_scan,
        (normal(64, 64), 0.2, 50),
        (normal(5, 5), 0.2, 3),
        (0, 1),
    ),
    workload(
        "waves",
        "waves on a ring of 1000 points, 100 steps by np.roll",
        waves,
        waves_scan,
        (normal(1000), 0.2, 100),
        (normal(6), 0.2, 3),
        (0, 1),
        tolerance=1e-4,  # of the central differences: they are of 100 steps
    ),
    workload(
        "schroedinger",
        "Schrödinger's equation on 256 points, 20 split steps by Fourier transforms",
        schroedinger,
        schroedinger_scan,
        of_schroedinger(256, 20),
        of_schroedinger(8, 2),
        (0,),
    ),
    workload(
        "bodies",
        "32 bodies, 20 steps",
        bodies,
        bodies_scan,
        of_bodies(32, 20),
        of_bodies(3, 2),
        (0, 2),
    ),
    workload(
        "tableau",
        "Lorenz's equations, 500 steps by a tableau that loops read",
        tableau,
        None,
        (np.ones(3), TABLEAU, np.array([1, 2, 2, 1]) / 6.0, 500),
        (np.ones(3), TABLEAU, np.array([1, 2, 2, 1]) / 6.0, 2),
        (0, 2),
        tolerance=1e-3,
    ),
    workload(
        "thomas",
        "a tridiagonal system of 1000 equations",
        thomas,
        thomas_scan,
        of_thomas(1000),
        of_thomas(5),
        (1, 3),
    ),
    workload(
        "spline",
        "a cubic spline of 33 knots at 10,000 points",
        spline,
        spline,
        of_spline(10_000),
        of_spline(7),
        (1, 2),
    ),
    workload(
        "horner",
        "a polynomial of degree 42 at 1000 points",
        horner,
        horner_scan,
        (normal(42), uniform(1000)),
        (normal(42), uniform(4)),
        (0, 1),
    ),
    workload(
        "bisections",
        "1000 bisections of 40 trips, point by point",
        bisections,
        bisections_scan,
        (50.0 * uniform(1000),),
        (50.0 * uniform(3),),
    ),
]
