"""Linear systems, eigenvalues and minima, by loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def givens(lib: Library) -> Program:
    np = lib.np

    def program(a: Any) -> Any:
        n = a.shape[0]
        a = a.copy()
        for j in range(n):
            for i in range(n - 1, j, -1):
                x, y = a[i - 1, j], a[i, j]
                r = np.hypot(x, y)
                c, s = x / r, y / r
                for k in range(j, n):
                    above = c * a[i - 1, k] + s * a[i, k]
                    a[i, k] = -s * a[i - 1, k] + c * a[i, k]
                    a[i - 1, k] = above
        total = 0.0
        for i in range(n):
            total += np.log(np.abs(a[i, i]))
        return total

    return program


def householder(lib: Library) -> Program:
    np = lib.np

    def program(a: Any) -> Any:
        r = a.copy()
        m, n = r.shape
        for k in range(n):
            square = 0.0
            for i in range(k, m):
                square += r[i, k] ** 2
            alpha = -np.sign(r[k, k]) * np.sqrt(square)
            v = np.zeros(m)
            v[k] = r[k, k] - alpha
            for i in range(k + 1, m):
                v[i] = r[i, k]
            length = 0.0
            for i in range(k, m):
                length += v[i] * v[i]
            for j in range(k, n):
                dot = 0.0
                for i in range(k, m):
                    dot += v[i] * r[i, j]
                dot = 2.0 * dot / length
                for i in range(k, m):
                    r[i, j] -= dot * v[i]
        return np.sum(np.abs(r))

    return program


def elimination(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, b: Any) -> Any:
        n = len(b)
        a, b = a.copy(), b.copy()
        for k in range(n):
            pivot = k
            for i in range(k + 1, n):
                if abs(a[i, k]) > abs(a[pivot, k]):
                    pivot = i
            if pivot != k:
                for j in range(n):
                    kept = a[k, j]
                    a[k, j] = a[pivot, j]
                    a[pivot, j] = kept
                kept = b[k]
                b[k] = b[pivot]
                b[pivot] = kept
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                a[i, k:] -= factor * a[k, k:]
                b[i] -= factor * b[k]
        x = np.zeros(n)
        for i in range(n - 1, -1, -1):
            x[i] = (b[i] - np.dot(a[i, i + 1 :], x[i + 1 :])) / a[i, i]
        return np.sum(x * x)

    return program


def jacobi(lib: Library) -> Program:
    np = lib.np

    def program(a: Any) -> Any:
        a = a.copy()
        n = a.shape[0]
        for _ in range(6):
            for p in range(n - 1):
                for q in range(p + 1, n):
                    if abs(a[p, q]) > 1e-14:
                        theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                        sign = 1.0 if theta >= 0.0 else -1.0
                        t = sign / (abs(theta) + np.sqrt(theta * theta + 1.0))
                        c = 1.0 / np.sqrt(t * t + 1.0)
                        s = t * c
                        for k in range(n):
                            x, y = a[k, p], a[k, q]
                            a[k, p], a[k, q] = c * x - s * y, s * x + c * y
                        for k in range(n):
                            x, y = a[p, k], a[q, k]
                            a[p, k], a[q, k] = c * x - s * y, s * x + c * y
        total = 0.0
        for i in range(n):
            total += a[i, i] ** 3
        return total

    return program


def lanczos(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, v: Any) -> Any:
        v = v / np.sqrt(np.dot(v, v))
        before, beta = np.zeros(v.shape), 0.0
        alphas, betas = np.zeros(15), np.zeros(15)
        for k in range(15):
            z = a @ v - beta * before
            alphas[k] = np.dot(z, v)
            z = z - alphas[k] * v
            beta = np.sqrt(np.dot(z, z))
            betas[k] = beta
            before = v
            v = z / beta
        return np.sum(alphas) + np.sum(betas)

    return program


def lanczos_scan(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, v: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            v, before, beta = carry
            z = a @ v - beta * before
            alpha = z @ v
            z = z - alpha * v
            beta = np.sqrt(z @ z)
            return (z / beta, v, beta), (alpha, beta)

        v = v / np.sqrt(v @ v)
        _, (alphas, betas) = lib.scan(step, (v, np.zeros_like(v), 0.0), None, length=15)
        return np.sum(alphas) + np.sum(betas)

    return program


def power_iteration(lib: Library) -> Program:
    np = lib.np

    def program(starts: Any, columns: Any, values: Any) -> Any:
        n = len(starts) - 1
        x = np.ones(n) / n
        for _ in range(50):
            y = np.zeros(n)
            for i in range(n):
                s = 0.0
                for k in range(starts[i], starts[i + 1]):
                    s += values[k] * x[columns[k]]
                y[i] = s
            x = y / np.sqrt(np.sum(y * y))
        return np.sum(x)

    return program


def power_iteration_scan(lib: Library) -> Program:
    np = lib.np

    def program(starts: Any, columns: Any, values: Any) -> Any:
        n = starts.shape[0] - 1
        rows = np.searchsorted(starts, np.arange(columns.shape[0]), side="right") - 1

        def step(x: Any, _: Any) -> Any:
            y = np.zeros(n).at[rows].add(values * x[columns])
            return y / np.sqrt(np.sum(y * y)), None

        return np.sum(lib.scan(step, np.ones(n) / n, None, length=50)[0])

    return program


def sparse(size: int, most: int) -> tuple[Any, ...]:
    """Return a square matrix with 3 numbers in a row or more: where rows start, columns, values."""
    rng = np.random.default_rng(26)
    columns = [rng.choice(size, rng.integers(3, most), replace=False) for _ in range(size)]
    starts = np.cumsum([0, *map(len, columns)])
    return starts, np.concatenate(columns), uniform(starts[-1])


def conjugate_gradients(lib: Library) -> Program:
    np = lib.np

    def program(b: Any) -> Any:
        n = b.shape[0]
        x, r = np.zeros((n, n)), b.copy()
        p = r.copy()
        square, steps = np.sum(r * r), 0
        while square > 1e-12 and steps < 500:
            q = np.zeros((n, n))
            q += 4.2 * p
            q[1:, :] -= p[:-1, :]
            q[:-1, :] -= p[1:, :]
            q[:, 1:] -= p[:, :-1]
            q[:, :-1] -= p[:, 1:]
            alpha = square / np.sum(p * q)
            x = x + alpha * p
            r = r - alpha * q
            new = np.sum(r * r)
            p = r + new / square * p
            square = new
            steps += 1
        return np.sum(x)

    return program


def gauss_newton(lib: Library) -> Program:
    np = lib.np

    def program(t: Any, y: Any) -> Any:
        a, b, c, step, steps = 1.0, 1.0, 0.0, 1.0, 0
        while step > 1e-10 and steps < 50:
            e = np.exp(-b * t)
            r = y - (a * e + c)
            jacobian = np.ones((t.shape[0], 3))
            jacobian[:, 0] = e
            jacobian[:, 1] = -a * t * e
            d = np.linalg.solve(jacobian.T @ jacobian, jacobian.T @ r)
            a += d[0]
            b += d[1]
            c += d[2]
            step = np.sqrt(np.sum(d * d))
            steps += 1
        return a * b + c

    return program


def of_gauss_newton(count: int) -> tuple[Any, ...]:
    t = np.linspace(0.0, 2.0, count)
    return t, 2.0 * np.exp(-1.3 * t) + 0.5 + 0.01 * normal(count)


def bfgs(lib: Library) -> Program:
    np, helper = lib.np, lib.helper

    def rosenbrock(x: Any) -> Any:
        n = x.shape[0]
        value, slope = 0.0, np.zeros(n)
        for i in range(n - 1):
            a, b = x[i + 1] - x[i] ** 2, 1.0 - x[i]
            value += 100.0 * a * a + b * b
            slope[i] += -400.0 * a * x[i] - 2.0 * b
            slope[i + 1] += 200.0 * a
        return value, slope

    rosenbrock = helper(rosenbrock)

    def program(x: Any) -> Any:
        h = np.eye(x.shape[0])
        f, g = rosenbrock(x)
        steps = 0
        while np.sqrt(np.sum(g * g)) > 1e-8 and steps < 200:
            p = -(h @ g)
            alpha, slope = 1.0, np.sum(p * g)
            new = x + alpha * p
            new_f, new_g = rosenbrock(new)
            while new_f > f + 1e-4 * alpha * slope and alpha > 1e-10:
                alpha *= 0.5
                new = x + alpha * p
                new_f, new_g = rosenbrock(new)
            s, y = new - x, new_g - g
            sy = np.sum(s * y)
            if sy > 1e-12:
                hy = h @ y
                yhy = np.sum(y * hy)
                both = np.outer(hy, s) + np.outer(s, hy)
                h = h + (sy + yhy) / (sy * sy) * np.outer(s, s) - both / sy
            x, f, g = new, new_f, new_g
            steps += 1
        return np.sum(x)

    return program


WORKLOADS = [
    workload(
        "givens",
        "the determinant of a matrix of 20 × 20 by Givens rotations",
        givens,
        None,
        (normal(20, 20),),
        (normal(4, 4),),
        (0,),
    ),
    workload(
        "householder",
        "a matrix of 24 × 16 made triangular by Householder's reflections",
        householder,
        None,
        (normal(24, 16),),
        (normal(5, 3),),
    ),
    workload(
        "elimination",
        "a system of 24 equations by Gauss's elimination with pivots",
        elimination,
        None,
        (normal(24, 24), normal(24, seed=1)),
        (normal(4, 4), normal(4, seed=1)),
        (0, 1),
    ),
    workload(
        "jacobi",
        "the eigenvalues of a symmetric matrix of 10 × 10 by Jacobi rotations, 6 sweeps",
        jacobi,
        None,
        (normal(10, 10) + normal(10, 10).T,),
        (normal(4, 4) + normal(4, 4).T,),
    ),
    workload(
        "lanczos",
        "15 steps of Lanczos's method, 80 × 80",
        lanczos,
        lanczos_scan,
        (normal(80, 80) + normal(80, 80).T, normal(80)),
        (normal(20, 20) + normal(20, 20).T, normal(20)),
        (0, 1),
    ),
    workload(
        "power_iteration",
        "50 steps of power iteration, 200 × 200 with 3 to 7 numbers in a row",
        power_iteration,
        power_iteration_scan,
        sparse(200, 8),
        sparse(6, 5),
        (2,),
    ),
    workload(
        "conjugate_gradients",
        "a Helmholtz equation on 48 × 48 points by conjugate gradients, to 1e-6",
        conjugate_gradients,
        None,
        (normal(48, 48),),
        (normal(4, 4),),
    ),
    workload(
        "gauss_newton",
        "a decay fitted to 50 points by Gauss and Newton's method, to 1e-10",
        gauss_newton,
        None,
        of_gauss_newton(50),
        of_gauss_newton(6),
        (1,),
    ),
    workload(
        "bfgs",
        "Rosenbrock's function of 8 numbers by BFGS, to 1e-8",
        bfgs,
        None,
        (np.full(8, -1.0),),
        (np.full(3, -0.5),),
    ),
]
