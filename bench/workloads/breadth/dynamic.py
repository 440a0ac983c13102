"""Dynamic programs, and loops over integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workload import Library, Program
from bench.workloads.breadth import normal, uniform, workload


def edit_distance(lib: Library) -> Program:
    np = lib.np

    def program(a: Any, b: Any) -> Any:
        m = b.shape[0]
        row = np.arange(m + 1)
        for i in range(a.shape[0]):
            before = row[0]
            row[0] = i + 1
            for k in range(m):
                here = min(row[k + 1] + 1, row[k] + 1, before + (a[i] != b[k]))
                before = row[k + 1]
                row[k + 1] = here
        return row[m]

    return program


def soft_dtw(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, y: Any) -> Any:
        n, m = x.shape[0], y.shape[0]
        r = np.full((n + 1, m + 1), 1e10)
        r[0, 0] = 0.0
        for i in range(n):
            for k in range(m):
                a, b, c = r[i, k], r[i, k + 1], r[i + 1, k]
                low = min(a, b, c)
                total = np.exp(low - a) + np.exp(low - b) + np.exp(low - c)
                r[i + 1, k + 1] = (x[i] - y[k]) ** 2 + low - np.log(total)
        return r[n, m]

    return program


def soft_dtw_scan(lib: Library) -> Program:
    np = lib.np

    def program(x: Any, y: Any) -> Any:
        def row(above: Any, xi: Any) -> Any:
            def cell(left: Any, seen: Any) -> Any:
                a, b, yk = seen
                low = np.minimum(np.minimum(a, b), left)
                total = np.exp(low - a) + np.exp(low - b) + np.exp(low - left)
                here = (xi - yk) ** 2 + low - np.log(total)
                return here, here

            _, cells = lib.scan(cell, 1e10, (above[:-1], above[1:], y))
            return np.concatenate([np.full(1, 1e10), cells]), None

        first = np.concatenate([np.zeros(1), np.full(y.shape[0], 1e10)])
        return lib.scan(row, first, x)[0][-1]

    return program


def knapsack(lib: Library) -> Program:
    np = lib.np

    def program(weights: Any, values: Any, room: Any) -> Any:
        best = np.zeros(room + 1)
        for k in range(weights.shape[0]):
            w = weights[k]
            for r in range(room, w - 1, -1):
                best[r] = max(best[r], best[r - w] + values[k])
        return best[room]

    return program


def sieve(lib: Library) -> Program:
    np = lib.np

    def program(limit: Any) -> Any:
        prime = np.ones(limit, np.bool_)
        prime[0] = prime[1] = False
        k = 2
        while k * k < limit:
            if prime[k]:
                for m in range(k * k, limit, k):
                    prime[m] = False
            k += 1
        return np.sum(prime)

    return program


def queens(lib: Library) -> Program:
    np = lib.np

    def program(size: Any) -> Any:
        columns = np.zeros(size, np.int64)
        row, count = 0, 0
        columns[0] = -1
        while row >= 0:
            columns[row] += 1
            if columns[row] == size:
                row -= 1
                continue
            safe = True
            for above in range(row):
                away = columns[row] - columns[above]
                if away == 0 or abs(away) == row - above:
                    safe = False
                    break
            if safe:
                if row == size - 1:
                    count += 1
                else:
                    row += 1
                    columns[row] = -1
        return count

    return program


def ising(lib: Library) -> Program:
    np = lib.np

    def program(spins: Any, chances: Any, seed: Any, sweeps: Any) -> Any:
        spins = spins.copy()
        n = spins.shape[0]
        state = seed
        for _ in range(sweeps):
            for i in range(n):
                for k in range(n):
                    up, down = spins[(i + 1) % n, k], spins[(i - 1) % n, k]
                    around = up + down + spins[i, (k + 1) % n] + spins[i, (k - 1) % n]
                    state = (state * 1103515245 + 12345) % 2147483648
                    if state < chances[(spins[i, k] * around + 4) // 2]:
                        spins[i, k] = -spins[i, k]
        return np.sum(spins)

    return program


def insertion(lib: Library) -> Program:
    np = lib.np

    def program(rows: Any) -> Any:
        total = 0.0
        for r in range(rows.shape[0]):
            x = np.zeros(12)
            for i in range(12):
                here, k = rows[r, i], i
                while k > 0 and x[k - 1] > here:
                    x[k] = x[k - 1]
                    k -= 1
                x[k] = here
            total += x[5] + x[6]
        return total

    return program


def mandelbrot(lib: Library) -> Program:
    def program(side: Any, most: Any) -> Any:
        total = 0
        for i in range(side):
            for k in range(side):
                c = complex(3.0 * k / side - 2.0, 3.0 * i / side - 1.5)
                z, count = 0j, 0
                while count < most and z.real * z.real + z.imag * z.imag < 4.0:
                    z = z * z + c
                    count += 1
                total += count
        return total

    return program


LETTERS = np.random.default_rng(5).integers(0, 4, 400)
SPINS = np.where(uniform(32, 32) < 0.5, 1, -1)
CHANCES = (2**31 * np.array([1.0, 1.0, 1.0, 0.17, 0.03])).astype(np.int64)
WEIGHTS = np.random.default_rng(6).integers(5, 60, 60)
WORKLOADS = [
    workload(
        "edit_distance",
        "the edit distance of two texts of 200 letters",
        edit_distance,
        None,
        (LETTERS[:200].copy(), LETTERS[200:].copy()),
        (LETTERS[:4].copy(), LETTERS[4:9].copy()),
    ),
    workload(
        "soft_dtw",
        "soft dynamic time warping of two series of 60",
        soft_dtw,
        soft_dtw_scan,
        (normal(60), uniform(60)),
        (normal(4), uniform(5)),
        (0, 1),
    ),
    workload(
        "knapsack",
        "a knapsack of 60 things and 1000 units of room",
        knapsack,
        None,
        (WEIGHTS, uniform(60), 1000),
        (WEIGHTS[:4].copy(), uniform(4), 80),
    ),
    workload("sieve", "the primes below 100,000", sieve, None, (100_000,), (60,)),
    workload("queens", "the ways to place 9 queens", queens, None, (9,), (5,)),
    workload(
        "ising",
        "ten sweeps over 32 × 32 spins, with a generator of its own",
        ising,
        None,
        (SPINS, CHANCES, 1, 10),
        (SPINS[:4, :4].copy(), CHANCES, 1, 2),
    ),
    workload(
        "insertion",
        "insertion sort of 12 numbers, 20,000 times",
        insertion,
        None,
        (normal(20_000, 12),),  # fewer would teach the processor where each branch goes
        (normal(3, 12),),
    ),
    workload(
        "mandelbrot", "100 × 100 points of Mandelbrot's set", mandelbrot, None, (100, 50), (4, 5)
    ),
]
