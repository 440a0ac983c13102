"""Prices of options, by trees, grids and paths."""

from __future__ import annotations

from typing import Any

from bench.workload import Library, Program
from bench.workloads.breadth import normal, workload


def american_option(lib: Library) -> Program:
    np = lib.np

    def program(spot: Any, volatility: Any) -> Any:
        n = 200
        dt = 1.0 / n
        up = np.exp(volatility * np.sqrt(dt))
        down = 1.0 / up
        p, discount = (np.exp(0.05 * dt) - down) / (up - down), np.exp(-0.05 * dt)
        value = np.zeros(n + 1)
        for k in range(n + 1):
            value[k] = max(100.0 - spot * up ** (2 * k - n), 0.0)
        for t in range(n - 1, -1, -1):
            for k in range(t + 1):
                held = discount * (p * value[k + 1] + (1.0 - p) * value[k])
                exercised = 100.0 - spot * up ** (2 * k - t)
                value[k] = max(held, exercised)
        return value[0]

    return program


def american_option_scan(lib: Library) -> Program:
    np = lib.np

    def program(spot: Any, volatility: Any) -> Any:
        n = 200
        dt = 1.0 / n
        up = np.exp(volatility * np.sqrt(dt))
        down = 1.0 / up
        p, discount = (np.exp(0.05 * dt) - down) / (up - down), np.exp(-0.05 * dt)
        k = np.arange(n + 1)

        def step(value: Any, t: Any) -> Any:
            held = discount * (p * np.roll(value, -1) + (1.0 - p) * value)
            return np.maximum(held, 100.0 - spot * up ** (2.0 * k - t)), None

        value = np.maximum(100.0 - spot * up ** (2.0 * k - n), 0.0)
        return lib.scan(step, value, np.arange(n - 1, -1, -1))[0][0]

    return program


def crank_nicolson(lib: Library) -> Program:
    np = lib.np

    def program(volatility: Any) -> Any:
        m = 100
        x, h, k = np.linspace(-2, 2, m), 4 / (m - 1), 0.01
        a = 0.25 * k * volatility**2 / h**2
        value = np.maximum(1.0 - np.exp(x), 0.0)
        for _ in range(40):
            right = value.copy()
            right[1:-1] = a * value[:-2] + (1.0 - 2.0 * a) * value[1:-1] + a * value[2:]
            c, d = np.zeros(m), np.zeros(m)
            d[0] = right[0]
            for i in range(1, m - 1):
                pivot = 1.0 + 2.0 * a + a * c[i - 1]
                c[i] = -a / pivot
                d[i] = (right[i] + a * d[i - 1]) / pivot
            value = np.zeros(m)
            value[0], value[m - 1] = right[0], right[m - 1]
            for i in range(m - 2, 0, -1):
                value[i] = d[i] - c[i] * value[i + 1]
        return value[m // 2]

    return program


def crank_nicolson_scan(lib: Library) -> Program:
    np = lib.np

    def program(volatility: Any) -> Any:
        m = 100
        x, h, k = np.linspace(-2, 2, m), 4 / (m - 1), 0.01
        a = 0.25 * k * volatility**2 / h**2

        def down(carry: Any, right: Any) -> Any:
            c, d = carry
            pivot = 1.0 + 2.0 * a + a * c
            new = -a / pivot, (right + a * d) / pivot
            return new, new

        def back(value: Any, row: Any) -> Any:
            c, d = row
            return d - c * value, d - c * value

        def step(value: Any, _: Any) -> Any:
            right = a * value[:-2] + (1.0 - 2.0 * a) * value[1:-1] + a * value[2:]
            _, rows = lib.scan(down, (0.0, value[0]), right)
            _, inner = lib.scan(back, value[-1], rows, reverse=True)
            return np.concatenate([value[:1], inner, value[-1:]]), None

        start = np.maximum(1.0 - np.exp(x), 0.0)
        return lib.scan(step, start, None, length=40)[0][m // 2]

    return program


def sabr(lib: Library) -> Program:
    np = lib.np

    def program(forward: Any, alpha: Any, nu: Any, rho: Any, noise: Any) -> Any:
        n = noise.shape[2]
        f, a = np.full(n, forward), np.full(n, alpha)
        for t in range(noise.shape[0]):
            z = noise[t, 0]
            w = rho * z + np.sqrt(1.0 - rho * rho) * noise[t, 1]
            f = np.maximum(f + a * np.sqrt(np.maximum(f, 0.0)) * 0.1 * z, 0.0)
            a = a * np.exp(nu * 0.1 * w - 0.5 * nu * nu * 0.01)
        return np.mean(np.maximum(f - 1.0, 0.0))

    return program


def sabr_scan(lib: Library) -> Program:
    np = lib.np

    def program(forward: Any, alpha: Any, nu: Any, rho: Any, noise: Any) -> Any:
        def step(carry: Any, z: Any) -> Any:
            f, a = carry
            w = rho * z[0] + np.sqrt(1.0 - rho * rho) * z[1]
            f = np.maximum(f + a * np.sqrt(np.maximum(f, 0.0)) * 0.1 * z[0], 0.0)
            return (f, a * np.exp(nu * 0.1 * w - 0.5 * nu * nu * 0.01)), None

        n = noise.shape[2]
        (f, _), _ = lib.scan(step, (np.full(n, forward), np.full(n, alpha)), noise)
        return np.mean(np.maximum(f - 1.0, 0.0))

    return program


def heston(lib: Library) -> Program:
    np = lib.np

    def program(kappa: Any, theta: Any, first: Any, second: Any) -> Any:
        n = first.shape[1]
        s, v = np.ones(n), np.full(n, 0.04)
        for t in range(first.shape[0]):
            p = np.maximum(v, 1e-8)
            s = s * np.exp(-0.5 * p * 0.01 + np.sqrt(p * 0.01) * first[t])
            noise = -0.7 * first[t] + 0.714 * second[t]
            v = v + kappa * (theta - p) * 0.01 + 0.3 * np.sqrt(p * 0.01) * noise
        return np.mean(np.maximum(s - 1.0, 0.0))

    return program


def heston_scan(lib: Library) -> Program:
    np = lib.np

    def program(kappa: Any, theta: Any, first: Any, second: Any) -> Any:
        def step(carry: Any, drawn: Any) -> Any:
            (s, v), (z, w) = carry, drawn
            p = np.maximum(v, 1e-8)
            s = s * np.exp(-0.5 * p * 0.01 + np.sqrt(p * 0.01) * z)
            noise = -0.7 * z + 0.714 * w
            return (s, v + kappa * (theta - p) * 0.01 + 0.3 * np.sqrt(p * 0.01) * noise), None

        n = first.shape[1]
        (s, _), _ = lib.scan(step, (np.ones(n), np.full(n, 0.04)), (first, second))
        return np.mean(np.maximum(s - 1.0, 0.0))

    return program


WORKLOADS = [
    workload(
        "american_option",
        "an American option on a tree of 200 steps",
        american_option,
        american_option_scan,
        (95.0, 0.3),
        (103.0, 0.2),
        (0, 1),
    ),
    workload(
        "crank_nicolson",
        "a European option on 100 points, 40 steps of Crank and Nicolson's method",
        crank_nicolson,
        crank_nicolson_scan,
        (0.4,),
        (0.3,),
        (0,),
    ),
    workload(
        "sabr",
        "an option under the SABR model: 200 paths of 100 steps",
        sabr,
        sabr_scan,
        (1.0, 0.3, 0.4, -0.3, normal(100, 2, 200)),
        (1.1, 0.2, 0.3, -0.2, normal(3, 2, 7)),
        (0, 1, 2, 3),
    ),
    workload(
        "heston",
        "an option under Heston's model: 1000 paths of 50 steps",
        heston,
        heston_scan,
        (1.5, 0.04, normal(50, 1000), normal(50, 1000, seed=1)),
        (1.2, 0.05, normal(3, 7), normal(3, 7, seed=1)),
        (0, 1),
        tolerance=1e-4,  # of the central differences: some path is next to the strike
    ),
]
