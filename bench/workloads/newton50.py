"""Newton's method for fifty equations in fifty unknowns: a linear system in every trip."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.python import LIBRARY
from bench.reference import differences
from bench.workload import GRADIENT, VALUE, Library, Program, Workload

PEERS = ("wend", "python", "jax", "jax-tape", "torch", "tensorflow", "autograd", "numba")
SIZE = 50


def plain(lib: Library) -> Program:
    np, solve = lib.np, lib.solve

    def program(a: Any, b: Any) -> Any:
        x = np.zeros_like(b)
        off = a @ x + x * x * x - b
        while np.sum(off * off) > 1e-20:
            x = x - solve(a + np.diag(3.0 * x * x), off)
            off = a @ x + x * x * x - b
        return np.sum(x * x)

    return program


def functional(lib: Library) -> Program:
    np, solve = lib.np, lib.solve

    def program(a: Any, b: Any) -> Any:
        def off(x: Any) -> Any:
            return a @ x + x * x * x - b

        def goes_on(x: Any) -> Any:
            return np.sum(off(x) ** 2) > 1e-20

        def body(x: Any) -> Any:
            return (x - solve(a + np.diag(3.0 * x * x), off(x)),)

        (x,) = lib.while_loop(goes_on, body, (np.zeros_like(b),), 32)
        return np.sum(x * x)

    return program


def arguments(size: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(50)
    return rng.standard_normal((size, size)) * size**-0.5 + 2.0 * np.eye(size), rng.uniform(
        1.0, 3.0, size
    )


WORKLOADS = [
    Workload(
        name="newton50",
        title="Newton's method for 50 equations: a linear system in every trip",
        arguments=arguments(SIZE),
        small=arguments(4),
        measures=(VALUE, GRADIENT),
        plain=plain,
        functional=functional,
        differentiable=(0, 1),
        answer=differences(plain(LIBRARY), (0, 1)),
        peers=PEERS,
        tolerance=1e-6,
    )
]
